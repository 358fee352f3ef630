"""Outages of the management network, and links that are silent with their ports up: ER_3 and
ER_7 on real Open vSwitch, and packets between all of them that the test counts itself. Packets
are spread over all links, so what is not to be used is used where a repair forgets it.
"""

from __future__ import annotations

import signal
from shutil import copytree, rmtree
from time import monotonic, sleep

import pytest

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from tests.controller import makers
from tests.controller.cluster.meddler import Meddler
from tests.controller.makers import Running, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.controller.upkeep.spliced_cable import spliced
from tests.waiting import until

pytestmark = pytest.mark.live


SEEN = 5.0
"""Seconds after which every link has been seen: what was never seen cannot be missed."""
PAUSE = 0.3
"""Seconds between two looks at all pairs; what is to be noticed lasts for seconds."""
FRAMEWORKS = [("ryu", 3), pytest.param(("os-ken", 7), marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=FRAMEWORKS, ids=str)
def fabric(request, tmp_path_factory):
    """The controller behind a meddler, which may take management away, and a probe."""
    framework, q = request.param
    work = tmp_path_factory.mktemp("outage")
    folder, _ = [
        compiled(work / name, f"{{family: polarfly, q: {q}}}", balance)
        for name, balance in (("build", "spread"), ("minimal", "minimal"))
    ]
    front, build = next(makers.PORTS), load(folder)
    switches = len(build.wiring.names)
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        probe = Probe(ovs, build)
        running = Running(ovs, work, polarfab(folder, framework), bridges=())
        try:
            with Meddler(front, running.port, None) as meddler:
                makers.connect(ovs, front, *(f"s{v}" for v in range(switches)))
                running.wait_for(switches, "complete")
                assert lost_in(probe, SEEN)[0] == 0
                yield running, meddler, probe
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()


def compiled(folder, topology, balance):
    """A build in this folder."""
    spec = folder.with_suffix(".yaml")
    text = f"name: outage\ntopology: {topology}\nrouting: {{balance: {balance}}}\n"
    spec.write_text(text)
    return compile_into(folder, spec, quick=True)


def lost_in(probe, seconds):
    """How many pairs lose packets in this time, and how many packets are sent."""
    lost, sent, end = 0, 0, monotonic() + seconds
    while monotonic() < end:
        lost += len(probe.lost())
        sent += len(probe.pairs)
        sleep(PAUSE)
    return lost, sent


@pytest.mark.parametrize("who", ["all", "one"])
def test_an_outage_of_management_costs_no_packet(fabric, who):
    """Frames were missed for 6 s before silence was noticed, and nearly all links were dead."""
    running, meddler, probe = fabric
    numbers = probe.fabric.build.wiring.datapath_id.tolist()
    meddler.management(numbers if who == "all" else numbers[5:6])
    during = lost_in(probe, 7.5)
    meddler.management()
    after = lost_in(probe, 4)
    print(f"{who}: {during[1] + after[1]:,} packets sent")
    assert (during[0], after[0]) == (0, 0)
    assert during[1] > 1000
    assert running.status()["links"]["down"] == []
    assert "not seen" not in running.log.read_text()


def test_a_link_that_is_silent_in_one_direction_is_repaired_in_15_s(fabric):
    running, _, probe = fabric
    build = probe.fabric.build
    u, v = 0, int(build.wiring.far[0, 0])
    with spliced(probe.fabric.ovs, build, u, v) as cable:
        until(lambda: not probe.lost(), "the bridge in the cable passes all")
        cable.carries(True, False)
        began = monotonic()
        assert probe.lost()
        until(lambda: not probe.lost(), "the link is not used", 15)
        print(f"repaired after {monotonic() - began:.1f} s")
        running.says("is down: not seen")
        cable.carries(True, True)
        until(lambda: not running.status()["links"]["down"], "it is seen again")
    until(lambda: not probe.lost(), "the cable is whole")


def test_a_switch_without_rows_and_management_costs_its_own_hosts_alone(fabric):
    """Marked packets were spread over it for good: other pairs lost 7 %."""
    running, meddler, probe = fabric
    switch, build = 10, probe.fabric.build
    number = int(build.wiring.datapath_id[switch])
    probe.without = switch
    meddler.management([number])
    meddler.cut(number)
    until(lambda: f"switch {switch} left" in running.log.read_text(), "it has left")
    probe.fabric.ovs.ofctl("del-flows", f"s{switch}")
    probe.fabric.ovs.ofctl("del-groups", f"s{switch}")
    assert probe.lost()
    until(lambda: not probe.lost(), "nothing goes over the switch", 20)
    assert lost_in(probe, 2)[0] == 0
    probe.without = None
    meddler.management()
    running.wait_for(len(build.wiring.names), "complete")
    until(lambda: not probe.lost(), "it has its rows again")


def test_a_move_to_a_balance_without_marks_waits_for_a_switch_without_management(fabric):
    """Its neighbours did not know what its marks meant: 19 of 24 packets of its hosts were lost."""
    running, meddler, probe = fabric
    work, number = running.log.parent, int(probe.fabric.build.wiring.datapath_id[5])
    folder, then = work / "build", work / "minimal"
    meddler.management([number])
    meddler.cut(number)
    running.says("switch 5 has been disconnected for 5 s")
    rmtree(folder)
    copytree(then, folder)
    running.process.send_signal(signal.SIGHUP)
    running.says(f"the move to build {load(then).identity} waits for 5 (absent), whose")
    waiting = lost_in(probe, 3)
    meddler.management()
    running.says(f"all connected switches hold build {load(then).identity}")
    after = lost_in(probe, 2)
    print(f"{waiting[1] + after[1]:,} packets sent")
    assert (waiting[0], after[0]) == (0, 0)
    assert waiting[1] > 600
    running.wait_for(len(probe.fabric.build.wiring.names), "complete")
