"""What people, other apps and hosts do to switches while a controller runs: the 13 switches of
ER_3 on real Open vSwitch, and packets between all of them that the test counts itself.
"""

from __future__ import annotations

import re
import shutil
import signal
import struct
from collections import Counter
from ipaddress import IPv4Address, IPv6Address
from random import Random
from time import monotonic

import numpy as np
import pytest

from compilers.tables.folders.build_folder import load
from mininet_scenarios.ovs.frames import FrameKind, frame_number
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.traffic.frame_exchange import CollectorFrames, exchange
from tests.compilers.targets.live_ovs import dump
from tests.controller import makers
from tests.controller.cluster.meddler import FewGroups, Meddler
from tests.controller.makers import SWITCHES, Running, compile_into, own_network, polarfab
from tests.controller.upkeep.probe import Probe
from tests.outages import outage
from tests.waiting import until

pytestmark = pytest.mark.live
SPEC = """name: others
topology: {family: polarfly, q: 3}
routing: {balance: compact-valiant, protect: link}
addressing: {ipv6: "fd00::/48"}
"""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """The controller, which looks at all switches every second, behind a meddler; and a probe."""
    work = tmp_path_factory.mktemp("others")
    (work / "fabric.yaml").write_text(SPEC)
    folder = compile_into(work / "build", work / "fabric.yaml", quick=True)
    front = next(makers.PORTS)
    with own_network(), PrivateOvs(tmp_path_factory.mktemp("ovs")) as ovs:
        probe = Probe(ovs, load(folder))
        running = Running(ovs, work, polarfab(folder, "ryu", "--audit", "1"), bridges=())
        try:
            with Meddler(front, running.port, None) as meddler:
                makers.connect(ovs, front, *(f"s{v}" for v in range(SWITCHES)))
                running.wait_for(SWITCHES, "complete")
                yield running, meddler, probe
            running.stop()
        finally:
            running.process.kill()
            running.process.wait()


def of_cookies(held, *beginnings):
    """The rows of a dump whose cookies begin so."""
    return [
        row for row in held["flows"] if row.startswith(tuple(f"cookie={b}" for b in beginnings))
    ]


def place(row):
    """What `ovs-ofctl` calls a row's place: all but its cookie and its actions."""
    return re.sub(r"^cookie=\w+, | actions=.*$", "", row)


THEIRS = "0x97"
EXPEDITED = "priority=60000,ip,nw_tos=184"
"""A match of others over our rows."""


def by_hand(ovs, held):
    """Edits of rows and groups, by what they do; each at a switch of its own.

    held: what the switches hold.
    """
    routes = [of_cookies(h, "0x5046000000000004")[3] for h in held]
    actions = [re.search(r" actions=(.*)$", row)[1] for row in routes]
    group = re.search(r"group_id=(\d+)", held[0]["groups"][2])[1]

    def edit(number, *words):
        ovs.ofctl(words[0], *words[1:-1], f"s{number}", words[-1])

    edit(0, "add-flow", f"cookie=0x99,{place(routes[0])},actions=drop")
    edit(1, "add-flow", f"cookie=0x99,{place(routes[1])},actions={actions[1]}")
    edit(2, "add-flow", f"cookie=0x5046000000000004,{place(routes[2])},hard_timeout=1,actions=drop")
    edit(3, "--strict", "mod-flows", f"{place(routes[3])},actions=set_queue:2,{actions[3]}")
    edit(4, "add-flow", "cookie=0x5046000000000001,priority=65000,actions=drop")
    edit(5, "del-flows", "cookie=0x5047000000000000/0xffff000000000000")
    edit(6, "del-flows", "cookie=0x504600000000000d/-1")
    edit(7, "--strict", "del-flows", place(routes[7]))
    edit(8, "del-groups", f"group_id={group}")
    edit(9, "mod-group", f"group_id={group},type=all,bucket=actions=output:1")
    edit(10, "add-group", "group_id=1000,type=indirect,bucket=actions=output:1")
    edit(11, "mod-group", f"group_id={group},type=indirect,bucket=actions=output:999")
    ovs.ofctl("del-groups", "s12")
    ovs.ofctl("del-flows", "s12")


BORROWED = f"""group add group_id=2002,type=indirect,bucket=actions=output:1
flow add cookie={THEIRS},table=9,ip,nw_tos=64,actions=group:2002
"""


def beside(ovs, file):
    """What other apps write beside the program: queues, meters, groups, their own tables."""
    file.write_text(BORROWED)
    ovs.ofctl("bundle", "s3", str(file))
    for words in (
        ("add-group", "group_id=4000,type=indirect,bucket=actions=output:1"),
        ("add-flow", f"cookie={THEIRS},table=9,ip,nw_tos=184,actions=set_queue:3,group:4000"),
        ("add-flow", f"cookie={THEIRS},{EXPEDITED},actions=set_queue:3,goto_table:1"),
        ("add-flow", f"cookie={THEIRS},table=9,ip,nw_tos=96,actions=enqueue:1:3"),
        ("add-meter", "meter=1,kbps,band=type=drop,rate=1000"),
        ("add-flow", f"cookie={THEIRS},table=9,ipv6,actions=meter:1,output:1"),
        ("add-flow", f"cookie={THEIRS},table=9,ct_state=+trk+new,ip,actions=ct(commit,table=10)"),
        ("add-flow", f"cookie={THEIRS},table=9,arp,actions=learn(table=12,NXM_OF_ETH_DST[])"),
    ):
        ovs.ofctl(words[0], "s3", words[1])


def test_what_hands_changed_is_put_right_and_what_apps_wrote_beside_it_stays(fabric, tmp_path):
    """Rows and groups of ours that were changed, deleted or added, and rows of others in the place
    of ours. Everybody's queues, meters and groups elsewhere are left alone, and a group with a
    number of ours that a row of theirs leads to.
    """
    running, _, probe = fabric
    ovs = probe.fabric.ovs
    held = [dump(ovs, f"s{v}") for v in range(SWITCHES)]
    by_hand(ovs, held)
    beside(ovs, tmp_path / "bundle")
    theirs = of_cookies(dump(ovs, "s3"), THEIRS)
    assert len(theirs) == 7

    def put_right(v):
        now = dump(ovs, f"s{v}")
        now["flows"] = [row for row in now["flows"] if not row.startswith(f"cookie={THEIRS},")]
        theirs = ("group_id=4000,", "group_id=2002,")
        now["groups"] = [group for group in now["groups"] if not group.startswith(theirs)]
        return now == held[v]

    until(lambda: all(map(put_right, range(SWITCHES))), "all hold what they held")

    def told():
        status = running.wait_for(SWITCHES, "complete", "foreign", "shadowed")
        rows = status["foreign"], status["shadowed"], status["errors"]
        return rows == ({"3": 8}, {"3": 1}, {})

    until(told, f"eight foreign rows on switch 3, one over its program; {running.status_file}")
    running.says("switch 3 does not forward as compiled: foreign rows over its program (1)")
    assert of_cookies(dump(ovs, "s3"), THEIRS) == theirs
    assert probe.lost() == set()
    # Of many at once the first few are named. Switch 4 drops LLDP, too: a repair around it may
    # rewrite an edited row before the audit does.
    running.says("has drifted, and gets its program again")
    ovs.ofctl("del-flows", "s3", f"cookie={THEIRS}/-1")
    ovs.ofctl("del-groups", "s3", "group_id=4000")
    until(lambda: dump(ovs, "s3") == held[3], "nobody needs the other group any more")
    ovs.ofctl("del-meters", "s3")


def loses_nothing(probe):
    until(lambda: not probe.lost(), "no pair loses packets")
    assert probe.lost() == set(), "and it stays so"


FULL = 5


@pytest.fixture
def full(fabric):
    """Fills the group table of a switch: another app leaves room for so many groups more. forgets:
    all groups have gone.
    """
    running, meddler, probe = fabric
    ovs, number = probe.fabric.ovs, int(probe.fabric.build.wiring.datapath_id[FULL])

    def groups():
        return set(map(int, re.findall(r"group_id=(\d+)", ovs.ofctl("dump-groups", f"s{FULL}"))))

    def fill(room, forgets=False):
        meddler.few_groups[number] = few = FewGroups(len(groups()) + room, groups())
        if forgets:
            ovs.ofctl("del-groups", f"s{FULL}")
            few.held = groups()

    yield fill
    del meddler.few_groups[number]
    running.wait_for(SWITCHES, "complete")
    until(lambda: not running.status()["links"]["drained"], "it carries traffic again")
    loses_nothing(probe)


def test_a_switch_whose_group_table_is_full_is_gone_around(fabric, full):
    """It loses groups, and gets no new ones: its own hosts are cut off, and nobody else."""
    running, _, probe = fabric
    full(-8, forgets=True)
    running.says(f"switch {FULL} refused its program and keeps what it had: group mod failed")
    probe.without = FULL
    until(lambda: not probe.lost(), "the others go around it")
    probe.without = None

    def told():
        status = running.status()
        drained, errors = status["links"]["drained"], status["errors"]
        return drained == [*errors] == [str(FULL)] and "out of groups" in errors[str(FULL)]

    until(told, "the status says so")


def test_a_repair_that_a_full_group_table_refuses_loses_nothing(fabric, full):
    """The switch keeps what it had. The others go around it, as its tables are not repaired."""
    running, _, probe = fabric
    build = probe.fabric.build
    full(0)
    probe.fabric.apply_outage(outage(build, [(FULL, int(build.wiring.far[FULL, 0]))]))
    until(lambda: running.status()["links"]["down"], "the link is down")
    loses_nothing(probe)
    probe.fabric.apply_outage(outage(build))
    until(lambda: not running.status()["links"]["down"], "the link is up")
    loses_nothing(probe)


def test_a_move_that_a_full_group_table_refuses_is_taken_back(fabric, full, tmp_path):
    """Two generations of groups do not fit, as they have to while a fabric moves."""
    running, _, probe = fabric
    folder, kept = running.log.parent / "build", tmp_path / "kept"
    (tmp_path / "fabric.yaml").write_text(SPEC.replace("compact-valiant, protect: link", "minimal"))
    full(2)
    shutil.copytree(folder, kept)
    shutil.rmtree(folder)
    compile_into(folder, tmp_path / "fabric.yaml", quick=True)
    running.process.send_signal(signal.SIGHUP)
    end = monotonic() + 120
    while (running.status()["rollout"] or {}).get("state") != "failed":
        assert probe.lost() == set()
        assert monotonic() < end, running.log
    running.says(f"{FULL} refused round")
    assert running.status()["build"] == load(kept).identity
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    running.wait_for(SWITCHES, "complete")
    loses_nothing(probe)


LARGE = FrameKind("UDP", 9000, 0), FrameKind("TCP", 16_000, 0)


@pytest.fixture(scope="module")
def ends(fabric):
    """The hosts of all switches."""
    _, _, probe = fabric
    ends = CollectorFrames(probe.folder, probe.hosts.names)
    yield ends
    ends.close()


@pytest.mark.parametrize("kind", LARGE, ids=str)
def test_packets_above_1500_bytes_arrive_whole(fabric, ends, kind):
    """No row looks at sizes, and none cuts a packet."""
    _, _, probe = fabric
    source, destination = np.argwhere(probe.hosts.every_pair()).T
    frames = probe.writer.of_kind(kind, source, destination, 5000, 0)
    sent = frames.by_host(ends.hosts)
    heard, _ = exchange(ends, sent, range(len(sent)), lambda one: frame_number(one[1]))
    got = {
        (frame_number(data), host): frames.difference(frame_number(data), data)[1]
        for host, data in heard
    }
    assert got == {(n, ends.hosts[d]): "" for n, d in enumerate(destination.tolist())}


ATTACKER, WAVES, TIMES = 4, 3, 8
EVERYBODY, NEAREST = b"\xff" * 6, bytes.fromhex("0180c200000e")
ARP, SOLICITATION, ADVERTISEMENT, ROUTER_SOLICITATION = 0x0806, 135, 136, 133


def arp(operation, mac, sender, target):
    """A packet of ARP to everybody (RFC 826)."""
    return (
        EVERYBODY
        + mac
        + struct.pack(
            "!HHHBBH6s4s6s4s", ARP, 1, 0x0800, 6, 4, operation, mac, sender, bytes(6), target
        )
    )


def neighbour(kind, mac, sender, to, body):
    """A message of neighbour discovery to a group of nodes (RFC 4861, section 4)."""
    head = struct.pack("!HIHBB", 0x86DD, 6 << 28, 4 + len(body), 58, 255)
    return b"\x33\x33" + to[-4:] + mac + head + sender + to + bytes((kind, 0, 0, 0)) + body


def flood(build, rng):
    """What a host asks and claims about neighbours in the name of all, and large LLDP frames."""
    plan, everybody = build.addressing, IPv6Address("ff02::1").packed
    for victim in range(SWITCHES):
        mac = rng.randbytes(6)
        addresses = plan.host(victim, 0), plan.gateway(victim)
        four, gateway = (IPv4Address(int(address)).packed for address in addresses)
        six = IPv6Address(int(plan.host6(victim, 0))).packed
        yield arp(1, mac, four, gateway)
        yield arp(2, mac, gateway, four)
        yield arp(2, mac, four, four)
        yield neighbour(ROUTER_SOLICITATION, mac, six, everybody, bytes(4))
        yield neighbour(SOLICITATION, mac, six, everybody, bytes(4) + six)
        claim = b"\xa0\x00\x00\x00" + six + b"\x02\x01" + mac
        yield neighbour(ADVERTISEMENT, mac, six, everybody, claim)
        yield NEAREST + mac + b"\x88\xcc" + bytes(rng.choice((60, 9000, 60_000)))


def test_a_flood_about_neighbours_reaches_nobody_and_costs_no_packet(fabric, ends):
    """Other hosts get no frame of it, and none of discovery. What the switch answers goes back."""
    running, _, probe = fabric
    attacker = ends.hosts[ATTACKER]
    frames = [(attacker, frame) for frame in flood(probe.fabric.build, Random(51))]  # noqa: S311
    reached = Counter()

    def hears(wave):
        """Whether the switch has answered so many waves, and says no more."""
        heard = ends.hear(0.2)
        reached.update(host for host, data in heard if frame_number(data) is None)
        return not heard and reached[attacker] > wave

    for wave in range(WAVES):
        for _ in range(TIMES):
            ends.send(frames)
        assert probe.lost() == set()
        until(lambda wave=wave: hears(wave), "the switch answers")
    assert set(reached) == {attacker}

    def well():
        status = running.status()
        return len(status["programmed"]) == SWITCHES and not status["links"]["down"]

    until(well, "all switches hold their program, and all links are up")
