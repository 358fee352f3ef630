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
INTERVALS = 0.01, 0.04, 0.16
"""Seconds between two packets of a pair.

A machine that is busy with other things loses packets of a fast probe by itself; an outage loses
some of each.
"""
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


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda e: restart(e, signal.SIGTERM), id="restart"),
        pytest.param(lambda e: restart(e, signal.SIGKILL), id="killed"),
        pytest.param(reload, id="reload"),
    ],
)
def test_no_packet_is_lost(engine, event):
    assert 0 in (lost(engine, event, interval) for interval in INTERVALS)


def lost(engine, event, interval):
    """Packets that a probe between all hosts lost while this happened."""
    pairs = np.array(list(permutations(range(len(engine.build.wiring.names)), 2)))
    engine.probe_start(pairs, interval)
    engine.wait(CALM)
    event(engine)
    engine.wait(CALM)
    probed = engine.probe_stop()
    each = np.bincount(probed.pair)
    assert len(each) == len(pairs)
    assert each.min() >= CALM / interval, "the probe kept half of its rate at least"
    return int(np.isnan(probed.received).sum())
