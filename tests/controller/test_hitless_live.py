"""Traffic between all hosts of a fabric while the controller goes away, comes back and reloads."""

import os
import signal
from contextlib import nullcontext
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from compilers.build import load
from mininet_scenarios.engine import ControllerChange, Setup
from mininet_scenarios.mininet_engine import MininetEngine
from tests.controller.conftest import until

pytestmark = pytest.mark.live
INTERVAL = 0.01
"""Seconds between two packets of a pair."""
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


@pytest.fixture
def engine(builds, tmp_path):
    build = load(builds[0])
    made = MininetEngine(
        Setup(build=build, folder=builds[0], work=tmp_path, framework="ryu", temporary=False)
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
    os.kill(controller_of(engine.setup.work), signal.SIGHUP)
    until(lambda: "is loaded" in log.read_text(), "the build is loaded again")
    engine.settle(60)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda e: restart(e, signal.SIGTERM), id="restart"),
        pytest.param(lambda e: restart(e, signal.SIGKILL), id="killed"),
        pytest.param(reload, id="reload"),
    ],
)
def test_no_packet_is_lost(engine, event):
    pairs = np.array(list(permutations(range(len(engine.build.wiring.names)), 2)))
    engine.probe_start(pairs, INTERVAL)
    engine.wait(CALM)
    event(engine)
    engine.wait(CALM)
    probed = engine.probe_stop()
    each = np.bincount(probed.pair)
    assert len(each) == len(pairs)
    assert each.min() >= 2 * CALM / INTERVAL / 2, "the probe kept its rate"
    assert np.isnan(probed.received).sum() == 0
