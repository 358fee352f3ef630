"""Traffic between all hosts of a fabric on real Open vSwitch while it moves to another build."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress

import pytest

from compilers.tables.folders.build_folder import load
from tests.controller.makers import POLARFAB, SWITCHES, polarfab
from tests.controller.rollout.makers import (
    INTERVALS,
    MINIMAL,
    Site,
    compiled,
    two_builds,
)
from tests.controller.rollout.windows import loses_nothing
from tests.waiting import until

pytestmark = pytest.mark.live
HTTP = 7801


def test_a_controller_that_is_killed_in_a_move_goes_on_and_loses_nothing(tmp_path):
    first, then = two_builds(tmp_path)
    with Site(tmp_path, first) as site:
        loses_nothing(site.engine, INTERVALS, lambda _: site.interrupted(then, 2), SWITCHES)
        assert f"all switches hold build {load(then).identity}" in site.log
        assert not (tmp_path / ".current.journal").exists()


def test_plan_and_apply_over_the_api(tmp_path, run):
    first, then = two_builds(tmp_path)
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
    assert call("apply", then)[1]["state"] == "none"

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


def test_a_build_that_is_not_confirmed_goes_though_the_disk_is_full(tmp_path, small_disk, run):
    """A minute later it still ran, and a rollback by hand was refused."""
    first, then = two_builds(tmp_path)
    shutil.copytree(first, folder := small_disk / "build")
    (tokens := tmp_path / "tokens").write_text("a-token-for-this-test\n")
    tokens.chmod(0o600)
    url, before, after = f"127.0.0.1:{HTTP + 1}", load(first).identity, load(then).identity
    controller = run(polarfab(folder, "os-ken", "--http", url, "--token-file", tokens))
    controller.wait_for(SWITCHES, "complete")

    def apply(*words):
        address = ("--to", f"http://{url}", "--token-file", tokens)
        done = subprocess.run(
            [*map(str, (POLARFAB, "apply", *words, *address))], capture_output=True, text=True
        )
        return done.returncode, done.stderr

    def back():
        status = controller.wait_for(SWITCHES, "complete")
        return status["build"] == before and load(folder).identity == after

    for within, by_hand in (("3s", False), ("10m", True)):
        assert apply(then, "--confirm-within", within)[0] == 0
        fill(small_disk)
        if by_hand:
            code, error = apply("--undo")
            assert (code, "the controller could not write it down" in error) == (1, True)
            assert len(error) < 1000
        until(back, f"the fabric is back, and the folder lacks it: {controller.log}", 60)
        for file in small_disk.glob("filler*"):
            file.unlink()
        until(lambda: load(folder).identity == before, "there is room again", 60)
    controller.stop()
