"""Traffic between all hosts of a fabric on real Open vSwitch while it moves to another build."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from compilers.tables.folders.build_folder import load
from compilers.tables.folders.folder_contents import identity_in
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.makers import SWITCHES, called, own_network, polarfab
from tests.controller.rollout.makers import MINIMAL, compiled, two_builds
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.waiting import until

pytestmark = pytest.mark.live
HTTP = 7801
CLOCK, DISK = (Path(__file__).parents[1] / name for name in ("shifted_clock.py", "hung_disk.py"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Builds of two policies."""
    return two_builds(tmp_path_factory.mktemp("two"))


@pytest.fixture
def pair(made, tmp_path):
    """Copies of them: a controller replaces the build that it runs."""
    return [shutil.copytree(folder, tmp_path / folder.parent.name / "build") for folder in made]


@pytest.fixture(scope="module")
def switches(tmp_path_factory):
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        yield ovs


@pytest.fixture(scope="module")
def probe(switches, made):
    """The switches with their cables, and packets between all of them."""
    return Probe(switches, load(made[0]))


@pytest.fixture(autouse=True)
def bridges(probe, monkeypatch):
    """The bridges of this fabric."""
    assert probe
    monkeypatch.setattr(makers, "BRIDGES", {f"s{v}": v for v in range(SWITCHES)})


def test_a_controller_that_is_killed_in_a_move_goes_on_and_loses_nothing(pair, probe, run):
    folder, then = pair
    controller = run(polarfab(folder, "ryu"))
    controller.wait_for(SWITCHES, "complete")
    assert probe.lost() == set()
    shutil.rmtree(folder)
    shutil.copytree(then, folder)
    controller.process.send_signal(signal.SIGHUP)
    controller.says("round 2 of ")
    controller.process.kill()
    controller.process.wait()
    assert probe.lost() == set()
    controller = run(polarfab(folder, "ryu"))
    end = monotonic() + 120
    while f"switches hold build {load(then).identity}" not in controller.log.read_text():
        assert probe.lost() == set()
        assert monotonic() < end, controller.log
    controller.wait_for(SWITCHES, "complete")
    assert probe.lost() == set()
    journal = folder.with_name(".build.journal")
    until(lambda: not journal.exists(), "the move is over")


def test_plan_and_apply_over_the_api(pair, tmp_path, run):
    first, then = pair
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-for-this-test\n")
    tokens.chmod(0o600)
    url = f"http://127.0.0.1:{HTTP}"
    api = ("--http", f"127.0.0.1:{HTTP}", "--token-file", tokens)
    controller = run(polarfab(first, "ryu", *api))
    controller.wait_for(SWITCHES, "complete")

    def call(*words):
        done = called(*words, "--to", url, "--json", "--token-file", tokens)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    until(lambda: call("status")[0] == 0, "the API tells that the fabric is complete")
    before = load(first).identity
    code, planned, _ = call("plan", then)
    assert (code, planned["lossless"], planned["from"]) == (0, True, load(first).identity)
    code, state, _ = call("apply", then)
    assert (code, state["state"], state["rounds"]) == (0, "done", planned["rounds"])
    status = controller.wait_for(SWITCHES, "complete")
    assert status["build"] == load(then).identity
    until(lambda: identity_in(first) == identity_in(then), "the controller's folder has it")
    (tmp_path / "three").mkdir()
    other = compiled(tmp_path / "three", MINIMAL, "hosts_per_node: 3\n")
    code, _, error = call("apply", other)
    assert code == 2
    assert "--accept-loss" in error
    assert "156 that lose packets: 13 hosts are removed, moved or renumbered" in error
    assert call("apply", then)[1]["state"] == "none"

    code, state, _ = call("apply", "--undo")
    assert (code, state["state"], state["to"]) == (0, "done", before)
    code, state, _ = call("apply", then, "--confirm-within", "1m")
    assert (code, state["state"], state["before"]) == (0, "done", before)
    code, _, error = call("apply", then)
    assert (code, "on trial" in error) == (2, True)
    assert call("apply", "--confirm")[1]["until"] is None
    assert call("apply", "--confirm")[0] == 2
    past = called("status", "--to", url, "--history")
    assert [before in past.stdout, "line 1" in past.stdout] == [True, True]
    lines = (tmp_path / "one" / ".build.actions").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    asked = [one["action"] for one in actions if one["outcome"] == "asked"]
    assert asked == ["apply"] * 3 + ["rollback"] + ["apply"] * 2 + ["confirm"] * 2


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB."""
    (disk := tmp_path / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk):
    """Write until there is no room."""
    with suppress(OSError):
        for number in range(2000):
            (disk / f"filler{number}").write_bytes(bytes(4096))
    assert shutil.disk_usage(disk).free == 0


def test_a_build_that_is_not_confirmed_goes_whatever_the_clock_and_the_disk_say(
    pair, tmp_path, small_disk, run
):
    """A minute after its end it still ran if the disk was full, and a rollback by hand was refused.
    With a clock that was set two hours back it stayed open, and forward it ended at once.
    """
    first, then = pair
    shutil.copytree(first, folder := small_disk / "build")
    (tokens := tmp_path / "tokens").write_text("a-token-for-this-test\n")
    tokens.chmod(0o600)
    ahead = tmp_path / "ahead"

    def set_clock(seconds):
        (tmp_path / "next").write_text(str(seconds))
        (tmp_path / "next").replace(ahead)

    set_clock(0)
    url, before, after = f"127.0.0.1:{HTTP + 1}", load(first).identity, load(then).identity
    words = polarfab(folder, "os-ken", "--http", url, "--token-file", tokens)
    controller = run(lambda *where: [sys.executable, CLOCK, ahead, *words(*where)[1:]])
    controller.wait_for(SWITCHES, "complete")

    def apply(*words):
        done = called("apply", *words, "--to", f"http://{url}", "--token-file", tokens)
        return done.returncode, done.stderr

    def back():
        status = controller.wait_for(SWITCHES, "complete")
        return status["build"] == before and identity_in(folder) == after

    for within, by_hand, seconds in (("10m", True, 7200), ("6s", False, -7200)):
        set_clock(0)
        for file in small_disk.glob("filler*"):
            file.unlink()
        code, error = apply(then, "--confirm-within", within)
        assert code == 0, error
        set_clock(seconds)
        fill(small_disk)
        if by_hand:
            code, error = apply("--undo")
            assert (code, "the controller could not write it down" in error) == (1, True)
            assert len(error) < 1000
        until(back, f"the fabric is back, and the folder lacks it: {controller.log}", 60)
        by_itself = controller.log.read_text().count("was not confirmed")
        assert by_itself == (not by_hand)
    for file in small_disk.glob("filler*"):
        file.unlink()
    until(lambda: identity_in(folder) == before, "there is room again", 60)
    controller.stop()


def test_a_disk_that_hangs_stops_neither_repairs_nor_a_return(pair, probe, tmp_path, run):
    """In a move no dead link was repaired until it answered, and no trial fell back.

    `mod-port` does nothing to patch ports, so the link itself is taken away.
    """
    folder, then = pair
    (tokens := tmp_path / "tokens").write_text("a-token-for-this-test\n")
    tokens.chmod(0o600)
    hangs, url = tmp_path / "hangs", f"127.0.0.1:{HTTP + 2}"
    words = polarfab(folder, "os-ken", "--http", url, "--token-file", tokens)

    def child(*where):
        return [makers.COPY, DISK, hangs, folder.parent, *words(*where)[1:]]

    controller = run(child)
    controller.wait_for(SWITCHES, "complete")
    before, after = load(folder).identity, load(then).identity

    def applied(*more):
        done = called("apply", *more, "--to", f"http://{url}", "--token-file", tokens)
        assert done.returncode == 0, done.stderr

    build = load(then)
    cut = outage(build, [(3, int(build.wiring.far[3, 0]))])

    with ThreadPoolExecutor() as threads:
        moving = threads.submit(applied, then, "--confirm-within", "30s")
        controller.says("round 2 of ")
        hangs.touch()
        controller.says("waits for the disk after round ")
        probe.fabric.apply_outage(cut)
        controller.says(" is down: port down")
        until(lambda: probe.lost() == set(), "the link is repaired in the midst of a move", 10)
        hangs.unlink()
        moving.result()
    until(lambda: identity_in(folder) == after, "the folder has it")
    hangs.touch()
    probe.fabric.apply_outage(outage(build))
    until(lambda: controller.status()["build"] == before, "it falls back, disk or not", 90)
    controller.wait_for(SWITCHES, "complete")
    assert probe.lost() == set()
    controller.process.kill()
    controller.process.wait()
    hangs.unlink()
    assert identity_in(folder) == after
    controller = run(child)
    until(lambda: identity_in(folder) == before, f"the folder has it: {controller.log}", 60)
    status = controller.wait_for(SWITCHES, "complete")
    assert (status["build"], status["differences"]["changed"]) == (before, 0)
    assert probe.lost() == set()
    controller.stop()
