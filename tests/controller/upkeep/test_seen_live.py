"""What the controller says is what it has seen: the 13 switches of ER_3 on real Open vSwitch, and
packets between all hosts, sent and collected by the test itself.

Each of these lost packets for good, while the status said that all was well.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from time import monotonic

import numpy as np
import pytest

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.scenario.outage import Miswire, Outage
from tests.controller import makers
from tests.controller.cluster.makers import group
from tests.controller.makers import SWITCHES, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.polarfab.forked import command_line
from tests.polarfab.pages import ROOT, blocks, first_wrong
from tests.waiting import until

pytestmark = pytest.mark.live
SPEC = "name: seen\ntopology: {family: polarfly, q: 3}\n"
BAD = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seen")
    (folder / "fabric.yaml").write_text(SPEC)
    return compile_into(folder / "build", folder / "fabric.yaml", quick=True)


@pytest.fixture(scope="module")
def switches(tmp_path_factory):
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        yield ovs


@pytest.fixture(scope="module")
def probe(switches, folder):
    return Probe(switches, load(folder), without=BAD)


@pytest.fixture
def start(probe, folder, run, switches, monkeypatch):
    """Run the controller with these options over the whole fabric."""
    assert probe
    monkeypatch.setattr(makers, "BRIDGES", {f"s{v}": v for v in range(SWITCHES)})
    (folder.parent / ".build.journal").unlink(missing_ok=True)

    def started(*options, complete=SWITCHES, **how):
        running = run(polarfab(folder, "os-ken", *options), **how)
        running.wait_for(complete)
        return running

    yield started
    for table in range(3):
        switches.vsctl("remove", "bridge", f"s{BAD}", "flow_tables", str(table))


def limit(ovs, rows=5):
    """The bad switch holds no more than so many routes."""
    table = ["--", "--id=@t", "create", "flow_table", f"flow_limit={rows}"]
    ovs.vsctl("set", "bridge", f"s{BAD}", "flow_tables:1=@t", *table)


def empty(ovs):
    """The bad switch forgets what it holds."""
    ovs.ofctl("del-flows", f"s{BAD}")
    ovs.ofctl("del-groups", f"s{BAD}")


def others(running):
    """All switches but the bad one hold their program."""
    return set(running.status()["programmed"]) == {str(v) for v in range(SWITCHES) if v != BAD}


def loses_nothing(probe):
    until(lambda: not probe.lost(), "no pair loses packets")
    assert probe.lost() == set(), "and it stays so"


def test_a_fabric_with_a_switch_amiss_moves_and_loses_nothing(start, switches, probe, folder):
    """All switches were loaded at once, each at its own time."""
    running = start("--audit", "2", "--patience", "0.5")
    limit(switches)
    empty(switches)
    running.says(f"switch {BAD} refused its program")
    loses_nothing(probe)
    spec, kept = folder.parent / "other.yaml", folder.with_name("kept")
    spec.write_text(SPEC + "routing: {balance: compact-valiant}\n")
    folder.rename(kept)
    try:
        compile_into(folder, spec, quick=True)
        running.process.send_signal(signal.SIGHUP)
        end = monotonic() + 90
        while "switches hold build" not in running.log.read_text():  # no packet is rarer
            assert probe.lost() == set()
            assert monotonic() < end
        assert probe.lost() == set()
        assert "round 1 of " in running.log.read_text()
        until(lambda: others(running), "all others hold it")
        assert probe.lost() == set()
        switches.vsctl("remove", "bridge", f"s{BAD}", "flow_tables", "1")
        running.wait_for(SWITCHES, "complete")
        loses_nothing(probe)
        running.stop()
    finally:
        shutil.rmtree(folder)
        kept.rename(folder)


def test_ports_that_drop_and_swapped_cables_are_told_and_carry_nothing(start, switches, probe):
    running = start()
    for flag in ("no-forward", "no-receive"):
        switches.ofctl("mod-port", "s0", "s0-eth1", flag)
        running.says(f"is down: port set to {flag}")
        loses_nothing(probe)
        switches.ofctl("mod-port", "s0", "s0-eth1", flag.removeprefix("no-"))
        until(lambda: not running.status()["links"]["down"], "the link is up")
    loses_nothing(probe)

    build, apply_outage = probe.fabric.build, probe.fabric.apply_outage
    far = build.wiring.far
    cables = {frozenset((u, int(far[u, k]))) - {BAD} for u, k in np.argwhere(far >= 0).tolist()}
    one, *others = sorted(sorted(ends) for ends in cables if len(ends) == 2)
    other = next(ends for ends in others if not {*ends} & {*one})
    # Pulled first: Open vSwitch may not find the peer of a patch port that is replaced with it.
    pulled = outage(build, [one, other])
    apply_outage(pulled)
    apply_outage(Outage(miswires=(Miswire(*(tuple(map(str, ends)) for ends in (one, other))),)))
    running.says("miswired, 2 cables misplaced: swap the plugs in")
    until(lambda: len(running.status()["links"]["down"]) == 2, "both links are told")
    assert len(running.status()["links"]["miswired"]) == 1
    assert running.log.read_text().count("miswired, ") == 1
    loses_nothing(probe)
    apply_outage(pulled)
    apply_outage(Outage())
    running.says("all cables that are seen are as planned")
    until(lambda: not running.status()["links"]["down"], "the links are up")
    loses_nothing(probe)
    running.stop()


def test_a_restart_does_not_send_traffic_into_a_dead_switch(start, switches, probe):
    running = start("--patience", "0.5")
    makers.leave(switches, f"s{BAD}")
    empty(switches)
    running.says(f"switch {BAD} has been disconnected for 0.5 s: traffic is routed around it")
    loses_nothing(probe)
    running.process.kill()
    running.process.wait()
    alive = [f"s{v}" for v in range(SWITCHES) if v != BAD]
    again = start("--patience", "0.5", complete=SWITCHES - 1, bridges=alive)
    assert probe.lost() == set()
    assert again.status()["links"]["drained"] == [str(BAD)]
    makers.connect(switches, again.port, f"s{BAD}")
    again.wait_for(SWITCHES, "complete")
    again.says(f"switch {BAD} is back")
    loses_nothing(probe)
    again.stop()


def test_a_returning_switch_that_refuses_its_program_gets_no_transit(start, switches, probe):
    running = start("--patience", "0.5")
    makers.leave(switches, f"s{BAD}")
    running.says(f"switch {BAD} has been disconnected")
    limit(switches)
    empty(switches)
    loses_nothing(probe)
    makers.connect(switches, running.port, f"s{BAD}")
    running.says(f"switch {BAD} refused its program")
    for _ in range(5):
        assert probe.lost() == set()
    assert not re.search(f"switch {BAD} is back", running.log.read_text())
    switches.vsctl("remove", "bridge", f"s{BAD}", "flow_tables", "1")
    running.says(f"switch {BAD} is back")
    loses_nothing(probe)
    running.stop()


def test_the_next_leader_knows_of_a_dead_switch(probe, folder, switches, tmp_path):
    with group(tmp_path, folder, "--patience", "0.5") as (_, first, second):
        both = [f"tcp:127.0.0.1:{one.port}" for one in (first, second)]
        for v in range(SWITCHES):
            switches.vsctl("set-controller", f"s{v}", *both)
        until(first.complete, "all hold their program")
        makers.leave(switches, f"s{BAD}")
        empty(switches)
        first.says(f"switch {BAD} has been disconnected for 0.5 s: traffic is routed around it")
        loses_nothing(probe)
        first.kill()
        until(second.leads, "the other leads")
        for _ in range(5):
            assert probe.lost() == set()
        until(lambda: json.loads(second.status_file.read_text())["links"]["drained"], "known")
        assert probe.lost() == set()
        switches.vsctl("set-controller", f"s{BAD}", *both)
        until(second.complete, "it is back")
        loses_nothing(probe)


OLDER = "89c620fe7dd505305dd7ac69106fd678f5069c52"
"""A version from before most of what is tested here."""


@pytest.fixture
def older(tmp_path):
    """`polarfab` of an older version, from the history of this checkout, and its environment."""
    tree, archive = tmp_path / "older", tmp_path / "older.tar"
    subprocess.run(["git", "-C", ROOT, "archive", "-o", archive, OLDER], check=True)
    shutil.unpack_archive(archive, tree, filter="data")
    return [sys.executable, "-P", "-m", "polarfab"], {"PYTHONPATH": str(tree)}


def holds_all(status):
    return status and status["complete"] and len(status["programmed"]) == SWITCHES


@pytest.mark.long  # needs the history of git, which a clone for CI may not have
def test_an_upgrade_from_an_older_version_and_back_loses_nothing(
    older, probe, switches, run, tmp_path, monkeypatch
):
    """Each process goes on from what the other version has left: build, journal, switches.

    Packets between all hosts are sent and counted while no process runs, and while one starts.
    """
    (python, environment), build = older, tmp_path / "build"
    monkeypatch.setattr(makers, "BRIDGES", {f"s{v}": v for v in range(SWITCHES)})
    (tmp_path / "fabric.yaml").write_text(SPEC)
    words = [*python, "compile", tmp_path / "fabric.yaml", "-o", build]
    subprocess.run(words, env=os.environ | environment, check=True, capture_output=True)
    now, port = polarfab(build, "os-ken"), next(makers.PORTS)

    def before(*where):
        return [*python, *now(*where)[1:]]

    def held():
        return [sorted(makers.rows(switches, f"s{v}")) for v in range(SWITCHES)]

    running = run(before, port=port, **environment)
    running.wait_for(SWITCHES, "complete")
    loses_nothing(probe)
    rows, sent = held(), 0
    for command, how in ((now, {}), (before, environment)):
        running.stop()
        assert probe.lost() == set(), "no process runs"
        running = run(command, port=port, bridges=(), **how)
        while not holds_all(running.status()):
            assert probe.lost() == set(), "one starts"
            sent += len(probe.pairs)
        loses_nothing(probe)
        assert held() == rows
    assert sent
    running.stop()


UNIT = """#!/bin/sh -eu
pid=$(cat ../pid 2> /dev/null || true)
case "$*" in
start*)
  CALL_PID=../pid polarfab controller build --token-file tokens --patience 0.5 > ../log 2>&1 &
  until grep -q "API and status page" ../log; do sleep 0.1; done ;;
*)
  kill -$(case "$1" in stop) echo TERM ;; kill) echo KILL ;; esac) $pid
  while grep -qs "^State:.[^Z]" /proc/$pid/status; do sleep 0.1; done ;;
esac
"""
"""What systemd does with the controller's unit."""


def test_the_runbooks_run_and_lose_nothing(probe, folder, switches, tmp_path):
    """Between every two commands packets go between all hosts."""
    place, tools = tmp_path / "polarfab", tmp_path / "tools"
    shutil.copytree(folder, place / "build")
    (place / "tokens").write_text("a-token-of-the-runbooks\n")
    (place / "tokens").chmod(0o600)
    command_line().program(tools)
    (tools / "systemctl").write_text(UNIT)
    (tools / "systemctl").chmod(0o755)
    env = switches.env | {"PATH": f"{tools}:{switches.env['PATH']}", "PYTHONPATH": str(ROOT)}

    def run(words):
        shell = ["/bin/sh", "-c", words]
        done = subprocess.run(
            shell, cwd=place, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        return (done.stdout + done.stderr).splitlines()

    try:
        for v in range(SWITCHES):
            switches.vsctl("set-controller", f"s{v}", "tcp:127.0.0.1:6653")
        run("systemctl start polarfab-controller")
        run("until polarfab status; do sleep 0.2; done")
        page = ROOT / "docs/how-to/runbooks.md"
        lines, before = page.read_text().splitlines(), ""
        for block in blocks(page):
            heading = next(n[3:] for n in lines[block.line :: -1] if n.startswith("## "))
            if heading == "Replace a switch" != before:
                makers.leave(switches, f"s{BAD}")
                empty(switches)
                loses_nothing(probe)
            before = heading
            for command in block.commands():
                printed = run(command.words)
                assert not command.shown or not first_wrong(command.shown, printed), printed
                assert probe.lost() == set(), command.words
            if "systemctl start" in block.text:
                found = json.loads("\n".join(run("polarfab status --json")))["differences"]
                assert not found["added"] + found["changed"] + found["removed"], heading
        loses_nothing(probe)
    finally:
        with suppress(OSError, ValueError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
