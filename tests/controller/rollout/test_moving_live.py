"""Traffic between all hosts of a fabric on real Open vSwitch while it moves to another build."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import nullcontext
from shutil import copytree, rmtree

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.flow_tables import RowKind, Table
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import ControllerChange, Setup
from tests.controller.conftest import POLARFAB, SWITCHES, compile_into, polarfab
from tests.controller.rollout.test_hitless_live import controller_of
from tests.controller.rollout.windows import loses_nothing
from tests.waiting import until

pytestmark = pytest.mark.live
INTERVALS = 0.04, 0.08, 0.16
"""Seconds between two packets of a pair: the first that the machine carries counts."""
HTTP = 7801
SPEC = "name: lab\ntopology: {{family: polarfly, q: {}}}\nrouting: {}\ninventory: inventory.yaml\n"
INVENTORY = "generate: {type: copackaged-4x8}\n"
MINIMAL, FULL = "{balance: minimal}", "{balance: compact-valiant, protect: link}"


def compiled(folder, routing, more="", q=3):
    """A verified build in FOLDER/build."""
    (folder / "inventory.yaml").write_text(INVENTORY)
    (folder / "fabric.yaml").write_text(SPEC.format(q, routing) + more)
    return compile_into(folder / "build", folder / "fabric.yaml")


def step(*_):
    return nullcontext(lambda *_: None)


class Site:
    """A fabric on real parts, whose controller takes the build that is put in its folder."""

    def __init__(self, tmp_path, first):
        (work := tmp_path / "work").mkdir()
        self.folder, self.work = tmp_path / "current", work
        copytree(first, self.folder)
        setup = Setup(load(first), self.folder, work, framework="ryu", temporary=False)
        self.engine = MininetEngine(setup)

    def __enter__(self):
        self.engine.start(step)
        return self

    def __exit__(self, *_):
        self.engine.stop(step)

    @property
    def log(self):
        return (self.work / "controller.log").read_text()

    def move(self, build):
        """Have the controller move to a build, and wait until it has."""
        text = f"all switches hold build {load(build).identity}"
        before = self.log.count(text)
        rmtree(self.folder)
        copytree(build, self.folder)
        os.kill(controller_of(self.work), signal.SIGHUP)
        until(lambda: "is complete" in "".join(self.log.split(text)[before + 1 :]), text, 60)

    def begin(self, build, round):
        """Have the controller move to a build, and wait until it is in this round."""
        before = self.log.count(f"round {round} of")
        rmtree(self.folder)
        copytree(build, self.folder)
        os.kill(controller_of(self.work), signal.SIGHUP)
        until(lambda: self.log.count(f"round {round} of") > before, f"round {round}", 60)

    def interrupted(self, build, round):
        """Have the controller move to a build, kill it in this round, and start it again."""
        self.begin(build, round)
        self.engine.apply(ControllerChange(running=False))
        before = self.log.count("all switches hold build")
        self.engine.apply(ControllerChange(running=True))
        until(lambda: self.log.count("all switches hold build") > before, "the move is over", 60)
        self.engine.settle(60)

    def moves_without_loss(self, build):
        """Move while 13 hosts send to each other."""
        loses_nothing(self.engine, INTERVALS, lambda _: self.move(build), SWITCHES)
        assert "round 1 of" in self.log


def test_a_controller_that_is_killed_in_a_move_goes_on_and_loses_nothing(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)
    with Site(tmp_path, first) as site:
        loses_nothing(site.engine, INTERVALS, lambda _: site.interrupted(then, 2), SWITCHES)
        assert f"all switches hold build {load(then).identity}" in site.log
        assert not (tmp_path / ".current.journal").exists()


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), [(MINIMAL, FULL), (FULL, MINIMAL)])
def test_a_policy_change_loses_nothing(tmp_path, old, new):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", old), compiled(tmp_path / "two", new)
    with Site(tmp_path, first) as site:
        site.moves_without_loss(then)


@pytest.mark.long
def test_an_expansion_loses_nothing(tmp_path):
    (tmp_path / "one").mkdir()
    first = compiled(tmp_path / "one", FULL)
    then = tmp_path / "larger"
    subprocess.run([POLARFAB, "expand", first, "--clusters", "quadric:1", "-o", then], check=True)
    with Site(tmp_path, then) as site:  # all switches are cabled; the new ones are not in use
        site.move(first)
        site.moves_without_loss(then)


@pytest.mark.long  # test_rollout has a refusal in every round, without switches
def test_a_refusal_in_the_last_round_takes_all_back(tmp_path, switches, run):
    """A switch whose class table is full once both generations are in it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)
    update = plan(load(first), load(then))
    controller = run(polarfab(first, "ryu"))
    controller.wait_for(SWITCHES, "complete")
    before = [dump(switches, v) for v in range(SWITCHES)]
    standing = [b for s in SwitchPrograms(update).slots(4) for b in s.standing(update.last - 1)]
    rows = sum(len(block) for block in standing if kind_of(block) == RowKind.CLASS)
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


def test_plan_and_apply_over_the_api(tmp_path, run):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-for-this-test\n")
    tokens.chmod(0o600)
    url = f"http://127.0.0.1:{HTTP}"
    api = ("--http", f"127.0.0.1:{HTTP}", "--token-file", tokens)
    controller = run(polarfab(first, "ryu", *api))
    controller.wait_for(SWITCHES, "complete")

    def call(*words):
        command = [POLARFAB, *words, "--to", url, "--json", "--token-file", tokens]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    before = load(first).identity
    code, planned, _ = call("plan", then)
    assert (code, planned["lossless"], planned["from"]) == (0, True, load(first).identity)
    code, state, _ = call("apply", then)
    assert (code, state["state"], state["rounds"]) == (0, "done", planned["rounds"])
    status = controller.wait_for(SWITCHES, "complete")
    assert status["build"] == load(then).identity
    until(lambda: load(first).identity == load(then).identity, "the controller's folder has it")
    (tmp_path / "three").mkdir()
    other = compiled(tmp_path / "three", MINIMAL, "hosts_per_node: 3\n")
    code, _, error = call("apply", other)
    assert code == 2
    assert "--accept-loss" in error
    assert "156 that lose packets: 13 hosts are removed, moved or renumbered" in error
    assert call("apply", then)[1]["state"] == "done"

    code, state, _ = call("rollback")
    assert (code, state["state"], state["to"]) == (0, "done", before)
    code, state, _ = call("apply", then, "--confirm-within", "1m")
    assert (code, state["state"], state["before"]) == (0, "done", before)
    code, _, error = call("apply", then)
    assert (code, "on trial" in error) == (2, True)
    assert call("confirm")[1]["until"] is None
    assert call("confirm")[0] == 2
    past = subprocess.run([POLARFAB, "status", url, "--history"], capture_output=True, text=True)
    assert [before in past.stdout, "line 1" in past.stdout] == [True, True]
    lines = (tmp_path / "one" / ".build.actions").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    asked = [one["action"] for one in actions if one["outcome"] == "asked"]
    assert asked == ["apply"] * 3 + ["rollback"] + ["apply"] * 2 + ["confirm"] * 2


def dump(ovs, vertex):
    """Flows and groups of a switch, without what differs by chance."""
    flows = ovs.ofctl("--no-stats", "dump-flows", f"s{vertex}")
    groups = ovs.ofctl("dump-groups", f"s{vertex}")
    lines = [line.strip() for line in (flows + groups).splitlines()]
    return sorted(re.sub(r" ?cookie=0x0,", "", line) for line in lines if "OFPST" not in line)
