"""Traffic between all hosts of a fabric while the controller goes away, comes back and reloads."""

import os
import signal
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from compilers.proof.explanation import explain
from compilers.tables.folders.build_folder import load
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import ControllerChange, NodeChange, Setup
from tests.controller.rollout.windows import carried, loses_nothing, probed
from tests.waiting import until

pytestmark = pytest.mark.live
INTERVALS, FASTER = (0.04, 0.16), (0.01, 0.02, 0.04)
"""Seconds between two packets of a pair: the first that the machine carries counts."""
CALM = 0.5


def step(*_):
    return nullcontext(lambda *_: None)


def controller_of(folder):
    """The process id of the controller whose status file is in this folder."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder / "controller.json").encode() in words:
            return int(process.parent.name)
    return None


@pytest.fixture(scope="module")
def engine(builds, tmp_path_factory):
    """Hosts, switches and a controller, for one test after the other."""
    build, work = load(builds[0]), tmp_path_factory.mktemp("engine")
    made = MininetEngine(
        Setup(build=build, folder=builds[0], work=work, framework="ryu", temporary=False)
    )
    try:
        made.start(step)
        yield made
    finally:
        made.stop(step)


def restart(engine, how):
    """End the controller in this way, let packets fly without one, and start it again."""
    if how == signal.SIGKILL:
        engine.apply(ControllerChange(running=False))
    else:
        old = controller_of(engine.setup.work)
        os.kill(old, how)
        until(lambda: controller_of(engine.setup.work) != old, "the controller has ended")
    engine.wait(CALM)
    engine.apply(ControllerChange(running=True))
    engine.settle(60)


def reload(engine):
    """Have the controller load the same build again."""
    log = engine.setup.work / "controller.log"
    before = log.read_text().count("is loaded")
    os.kill(controller_of(engine.setup.work), signal.SIGHUP)
    until(lambda: log.read_text().count("is loaded") > before, "the build is loaded again")
    engine.settle(60)


EVENTS = {
    "killed": lambda engine: restart(engine, signal.SIGKILL),
    "reloaded": reload,
    "ended": lambda engine: restart(engine, signal.SIGTERM),
}


@pytest.mark.parametrize("event", ["killed", pytest.param("reloaded", marks=pytest.mark.long)])
def test_no_packet_is_lost(engine, event):
    loses_nothing(engine, INTERVALS, EVENTS[event])


@pytest.mark.long
@pytest.mark.parametrize("event", EVENTS)
def test_no_packet_of_many_is_lost(engine, event):
    loses_nothing(engine, FASTER, EVENTS[event])


def test_a_switch_that_restarts_loses_only_what_it_was_carrying(engine):
    """A quadric with its links, then without power for a moment and without any rows afterwards."""
    node = 0

    def power(engine):
        engine.apply(NodeChange((str(node),), up=False))
        log = engine.setup.work / "controller.log"
        until(lambda: f"switch {node} left" in log.read_text(), "the controller has seen it")
        engine.apply(NodeChange((str(node),), up=True))
        engine.settle(60)

    found, interval = carried(engine, INTERVALS, power)
    paths = [explain(engine.build, *pair).minimal for pair in found.pairs.tolist()]
    touched = np.array([node in path for path in paths])
    assert found.lost[touched].any()
    assert not found.lost[~touched].any()
    # What were still wrong would lose in both; a busy machine loses by chance.
    calm = (probed(engine, slower, lambda _: None) for slower in (interval, 2 * interval))
    assert any(not window.lost.any() for window in calm)
