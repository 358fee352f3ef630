"""Traffic between all hosts of a fabric while the controller goes away, comes back and reloads."""

from contextlib import nullcontext

import numpy as np
import pytest

from compilers.proof.explanation import explain
from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import PhysicalChange, Setup
from tests.controller.rollout.makers import EVENTS
from tests.controller.rollout.windows import carried, loses_nothing, probed
from tests.waiting import until

pytestmark = [pytest.mark.live, pytest.mark.long]
INTERVALS = 0.01, 0.02, 0.04, 0.16
"""Seconds between two packets of a pair: the first that the machine carries counts."""


def step(*_):
    return nullcontext(lambda *_: None)


@pytest.fixture(scope="module")
def engine(builds, tmp_path_factory):
    """Hosts, switches and a controller, for one test after the other."""
    build, work = load(builds[0]), tmp_path_factory.mktemp("engine")
    made = MininetEngine(Setup((build,), (builds[0],), work, framework="ryu", temporary=False))
    try:
        made.start(step)
        yield made
    finally:
        made.stop(step)


@pytest.mark.parametrize("event", EVENTS)
def test_no_packet_is_lost(engine, event):
    loses_nothing(engine, INTERVALS, EVENTS[event])


def test_a_switch_that_restarts_loses_only_what_it_was_carrying(engine):
    """A quadric with its links, then without power for a moment and without any rows afterwards."""
    node = 0

    def power(engine):
        engine.apply(PhysicalChange(switches=(str(node),)))
        log = engine.setup.work / "controller.log"
        until(lambda: f"switch {node} left" in log.read_text(), "the controller has seen it")
        engine.apply(PhysicalChange(switches=(str(node),), up=True))
        engine.settle(60)

    found, interval = carried(engine, INTERVALS[2:], power)
    paths = [explain(engine.build, *pair).minimal for pair in found.pairs.tolist()]
    touched = np.array([node in path for path in paths])
    assert found.lost[touched].any()
    assert not found.lost[~touched].any()
    # What were still wrong would lose in both; a busy machine loses by chance.
    calm = (probed(engine, slower, lambda _: None) for slower in (interval, 2 * interval))
    assert any(not window.lost.any() for window in calm)
