"""Traffic between all hosts of a fabric on real Open vSwitch while it moves to another build."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.flow_tables import RowKind, Table
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from tests.controller.makers import POLARFAB, SWITCHES, polarfab
from tests.controller.rollout.makers import (
    FULL,
    INTERVALS,
    MINIMAL,
    Site,
    compiled,
    dump,
)
from tests.controller.rollout.windows import loses_nothing
from tests.waiting import until

pytestmark = pytest.mark.live
HTTP = 7801


def test_a_controller_that_is_killed_in_a_move_goes_on_and_loses_nothing(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, then = compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)
    with Site(tmp_path, first) as site:
        loses_nothing(site.engine, INTERVALS, lambda _: site.interrupted(then, 2), SWITCHES)
        assert f"all switches hold build {load(then).identity}" in site.log
        assert not (tmp_path / ".current.journal").exists()


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
    standing = [b for s in SwitchPrograms(update).slots(4) for b in s.held_after(update.last - 1)]
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

    code, state, _ = call("apply", "--undo")
    assert (code, state["state"], state["to"]) == (0, "done", before)
    code, state, _ = call("apply", then, "--confirm-within", "1m")
    assert (code, state["state"], state["before"]) == (0, "done", before)
    code, _, error = call("apply", then)
    assert (code, "on trial" in error) == (2, True)
    assert call("apply", "--confirm")[1]["until"] is None
    assert call("apply", "--confirm")[0] == 2
    past = subprocess.run(
        [POLARFAB, "status", "--to", url, "--history"], capture_output=True, text=True
    )
    assert [before in past.stdout, "line 1" in past.stdout] == [True, True]
    lines = (tmp_path / "one" / ".build.actions").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    asked = [one["action"] for one in actions if one["outcome"] == "asked"]
    assert asked == ["apply"] * 3 + ["rollback"] + ["apply"] * 2 + ["confirm"] * 2
