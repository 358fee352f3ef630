"""What reconnecting, restarting and reloading do to real Open vSwitch: nothing that need not be."""

import re
import shutil
import signal
import time

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.encoder import Encoder
from tests.controller.makers import (
    SWITCHES,
    Running,
    compile_into,
    has_program,
    polarfab,
    rows,
)
from tests.waiting import until

pytestmark = pytest.mark.live
SPREAD = """name: all
topology: {family: polarfly, q: 3}
hosts_per_node: 2
routing: {balance: spread, protect: link}
addressing: {ipv6: "fd00::/48"}
"""


def ages(ovs, vertex):
    """Seconds that each row of a switch has been there, by the row."""
    found = {}
    for line in ovs.ofctl("dump-flows", f"s{vertex}").splitlines():
        if seconds := re.search(r"duration=([\d.]+)s", line):
            found[re.sub(r"(duration|n_packets|n_bytes)=[\d.]+s?, ", "", line)] = float(seconds[1])
    return found


def counted(controller):
    return controller.status()["differences"]


@pytest.fixture(scope="module")
def killed(switches, builds, tmp_path_factory):
    """A controller that programmed all switches and was killed: when, and their rows' ages."""
    first = Running(switches, tmp_path_factory.mktemp("killed"), polarfab(builds[0], "os-ken"))
    try:
        first.wait_for(SWITCHES, "complete")
        return time.monotonic(), [ages(switches, v) for v in range(SWITCHES)]
    finally:
        first.process.kill()
        first.process.wait()


def test_a_controller_that_is_killed_and_comes_back_sends_nothing(killed, switches, builds, run):
    """Not even if its journal is spoiled: 200,000 brackets ended the start with a bug."""
    began, before = killed
    builds[0].with_name(".build.journal").write_text("[" * 200_000)
    second = run(polarfab(builds[0], "os-ken"))
    found = second.wait_for(SWITCHES, "complete")["differences"]
    assert found == {"added": 0, "changed": 0, "removed": 0, "none": SWITCHES}
    after, passed = [ages(switches, v) for v in range(SWITCHES)], time.monotonic() - began
    for old, new in zip(before, after, strict=True):
        assert old.keys() == new.keys()
        assert all(new[row] > old[row] for row in old)
        assert all(new[row] - old[row] < passed + 2 for row in old)
    second.stop()


@pytest.mark.usefixtures("killed")
def test_only_what_differs_is_put_right_and_what_others_wrote_goes_if_that_is_asked_for(
    switches, builds, run
):
    foreign = "table=9,priority=7,cookie=0x99,ip,nw_dst=192.0.2.1,actions=group:4000"
    switches.ofctl("add-group", "s3", "group_id=4000,type=indirect,bucket=actions=output:1")
    switches.ofctl("add-flow", "s3", foreign)
    switches.ofctl("--strict", "del-flows", "s3", "table=1,priority=30,ip,nw_dst=10.0.0.20/30")
    ours = "table=1,priority=9,cookie=0x5046000000000004,ip,actions=drop"
    switches.ofctl("add-flow", "s3", ours)
    switches.ofctl("mod-group", "s3", "group_id=1,type=indirect,bucket=actions=output:999")
    kept = ages(switches, 3)

    controller = run(polarfab(builds[0], "ryu", "--foreign", "remove"))
    status = controller.wait_for(SWITCHES, "complete")
    assert status["differences"] == {"added": 1, "changed": 1, "removed": 3, "none": SWITCHES - 1}
    now = ages(switches, 3)
    (new,) = now.keys() - kept.keys()
    assert "nw_dst=10.0.0.20/30" in new
    assert all(now[row] > kept[row] for row in kept.keys() & now.keys())
    assert has_program(switches, 3, builds[0])
    groups = switches.ofctl("dump-groups", "s3")
    assert ("output:999" in groups, "group_id=4000" in groups) == (False, False)
    assert not any("table=9" in row for row in rows(switches, "s3"))
    controller.stop()


def test_switches_that_mark_packets_hold_their_program(switches, tmp_path, run):
    spec, build = tmp_path / "fabric.yaml", tmp_path / "build"
    spec.write_text(SPREAD)
    compile_into(build, spec, quick=True)
    controller = run(polarfab(build, "ryu"))
    assert controller.wait_for(SWITCHES, "complete")["errors"] == {}
    controller.stop()
    assert len(rows(switches, "s3")) == Encoder(load(build)).row_count(3)


def test_a_signal_loads_the_build_again(switches, builds, tmp_path, run):
    build = tmp_path / "build"
    shutil.copytree(builds[0], build)
    controller = run(polarfab(build, "ryu"))
    controller.wait_for(SWITCHES, "complete")
    none = counted(controller)["none"]
    controller.process.send_signal(signal.SIGHUP)
    until(lambda: counted(controller)["none"] >= none + SWITCHES, "the same build is found again")

    shutil.rmtree(build)
    controller.process.send_signal(signal.SIGHUP)
    controller.says(f"build {load(builds[0]).identity} stays, the new one cannot be used")
    assert len(controller.status()["programmed"]) == SWITCHES

    shutil.copytree(builds[1], build)
    controller.process.send_signal(signal.SIGHUP)
    controller.says(f"build {load(builds[1]).identity} is loaded")
    status = controller.wait_for(SWITCHES, "complete")
    assert status["build"] == load(builds[1]).identity
    assert all(has_program(switches, v, builds[1]) for v in range(SWITCHES))
    controller.stop()
