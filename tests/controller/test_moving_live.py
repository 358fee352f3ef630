"""Traffic between all hosts of a fabric on real Open vSwitch while it moves to another build."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import nullcontext
from itertools import permutations

import numpy as np
import pytest

from compilers.build import load
from compilers.targets.openflow import Encoder
from compilers.targets.openflow_pipeline import Kind, Table
from compilers.update.plan import plan
from compilers.update.programs import Programs
from compilers.update.slots import kind_of
from mininet_scenarios.engine import Setup
from mininet_scenarios.mininet_engine import MininetEngine
from tests.controller.conftest import POLARFAB, SWITCHES, polarfab, until
from tests.controller.test_hitless_live import controller_of

pytestmark = pytest.mark.live
INTERVAL = 0.04
"""Seconds between two packets of a pair: as many as a busy machine forwards."""
CALM = 0.5
SPEC = "name: lab\ntopology: {{family: polarfly, q: 3}}\nrouting: {}\ninventory: inventory.yaml\n"
INVENTORY = "generate: {type: copackaged-4x8}\n"
MINIMAL, FULL = "{balance: minimal}", "{balance: compact-valiant, protect: link}"


def compiled(folder, routing):
    """A verified build in FOLDER/build."""
    (folder / "inventory.yaml").write_text(INVENTORY)
    (folder / "fabric.yaml").write_text(SPEC.format(routing))
    subprocess.run(
        [POLARFAB, "compile", folder / "fabric.yaml", "-o", folder / "build"], check=True
    )
    return folder / "build"


def step(*_):
    return nullcontext(lambda *_: None)


def moved(tmp_path, first, then, physical=None):
    """Start with one build and have the controller move to another; what the probe saw, and why."""
    (work := tmp_path / "work").mkdir()
    setup = Setup(
        build=load(physical or first), folder=first, work=work, framework="ryu", temporary=False
    )
    engine = MininetEngine(setup)
    try:
        engine.start(step)
        small, large = load(first), load(then)
        hosts = range(len(small.wiring.names))
        engine.probe_start(np.array(list(permutations(hosts, 2))), INTERVAL)
        engine.wait(CALM)
        first.rename(tmp_path / "before")
        then.rename(first)
        os.kill(controller_of(work), signal.SIGHUP)
        log = work / "controller.log"
        until(lambda: f"all switches hold build {large.identity}" in log.read_text(), log, 60)
        engine.settle(60)
        engine.wait(CALM)
        return engine.probe_stop(), large, log.read_text()
    finally:
        engine.stop(step)


def check(probed, log):
    each = np.bincount(probed.pair)
    assert len(each) == 13 * 12
    assert each.min() >= 2 * CALM / INTERVAL / 2, "the probe kept its rate"
    assert np.isnan(probed.received).sum() == 0, log
    assert "round 1 of" in log


@pytest.mark.parametrize(
    ("old", "new"), [(MINIMAL, FULL), pytest.param(FULL, MINIMAL, marks=pytest.mark.long)]
)
def test_a_policy_change_loses_nothing(tmp_path, old, new):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", old), compiled(tmp_path / "two", new)
    probed, _, log = moved(tmp_path, first, then)
    check(probed, log)


def test_an_expansion_loses_nothing(tmp_path):
    (tmp_path / "one").mkdir()
    first = compiled(tmp_path / "one", FULL)
    then = tmp_path / "larger"
    subprocess.run([POLARFAB, "expand", first, "--racks", "quadric:1", "-o", then], check=True)
    probed, large, log = moved(tmp_path, first, then, physical=then)
    check(probed, log)
    assert len(Encoder(large).by_datapath_id) == 17


def test_a_refusal_in_the_last_round_takes_all_back(tmp_path, switches, run):
    """A switch whose class table is full once both generations are in it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)
    update = plan(load(first), load(then))
    controller = run(polarfab(first, "ryu"))
    controller.wait_for(SWITCHES, "complete")
    before = [dump(switches, v) for v in range(SWITCHES)]
    standing = [b for s in Programs(update).slots(4) for b in s.standing(update.last - 1)]
    rows = sum(len(block) for block in standing if kind_of(block) == Kind.CLASS)
    limit = f"flow_limit={rows}", "overflow_policy=refuse"
    switches.vsctl(
        *("--id=@full", "create", "Flow_Table", *limit),
        *("--", "set", "bridge", "s4", f"flow_tables:{int(Table.CLASSES)}=@full"),
    )
    try:
        first.rename(tmp_path / "before")
        then.rename(first)
        controller.process.send_signal(signal.SIGHUP)
        controller.says(f"refused round {update.rounds}: flow mod failed: table full")
        controller.says("stays, the new one cannot be used: n4 ")
        controller.wait_for(SWITCHES, "complete")
        assert [dump(switches, v) for v in range(SWITCHES)] == before
    finally:
        switches.vsctl("clear", "bridge", "s4", "flow_tables")


def dump(ovs, vertex):
    """Flows and groups of a switch, without what differs by chance."""
    flows = ovs.ofctl("--no-stats", "dump-flows", f"s{vertex}")
    groups = ovs.ofctl("dump-groups", f"s{vertex}")
    lines = [line.strip() for line in (flows + groups).splitlines()]
    return sorted(re.sub(r" ?cookie=0x0,", "", line) for line in lines if "OFPST" not in line)
