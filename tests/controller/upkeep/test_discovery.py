"""Discovery: frames that an independent reader reads, cables found, miswires told, lies ignored."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from os_ken.lib.packet import packet
from os_ken.lib.packet.lldp import TTL, ChassisID, End, OrganizationallySpecific, PortID
from os_ken.lib.packet.lldp import lldp as Lldp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow import protocol
from compilers.wiring.wiring import Wiring
from controller.openflow.messages import packet_in
from controller.upkeep import lldp_frames as lldp
from controller.upkeep.discovery import Discovery, LinkSightings
from controller.upkeep.link_silence import LinkSilence
from tests.compilers.routed import routed
from tests.compilers.wiring.makers import damaged, missing
from tests.controller.switches.conforming_switch import packet_in_of

KEY, ECHO = bytes(32), -1
Cable = Callable[[int, int], tuple[int, int] | None]


def sent(message: bytes) -> list[tuple[int, bytes]]:
    """Port and frame of each packet-out, as os-ken reads them; at last the echo request's data."""
    found = []
    while message:
        size = int.from_bytes(message[2:4], "big")
        if message[1] == protocol.MessageType.ECHO_REQUEST:
            found.append((ECHO, message[8:size]))
            message = message[size:]
            continue
        buffer, in_port, actions = struct.unpack_from("!LLH", message, 8)
        assert (buffer, in_port, actions) == (0xFFFFFFFF, 0xFFFFFFFD, 16)
        action = parser.OFPAction.parser(message, 24)
        assert type(action) is parser.OFPActionOutput
        found.append((action.port, message[40:size]))
        message = message[size:]
    return found


def planned(wiring: Wiring) -> Cable:
    """The cables of the plan: switch and port to switch and port."""
    ends = {
        (v, int(wiring.port[v, k])): (int(wiring.far[v, k]), int(wiring.far_port[v, k]))
        for v, k in np.argwhere(wiring.far >= 0).tolist()
    }
    return lambda vertex, port: ends.get((vertex, port))


NO_PORT_DOWN = np.zeros(24, np.bool_)


def begun(wiring: Wiring) -> Discovery:
    found = Discovery(wiring, key=KEY)
    for vertex in range(len(wiring.far)):
        ports = np.concatenate((wiring.port[vertex], wiring.host_port[vertex]))
        found.connected(vertex, ports, 0.0)
    return found


def run(
    found: Discovery,
    cable: Cable,
    start: float,
    end: float,
    unmanaged: Container[int] = (),
    packets: Callable[[int, int], int] = lambda *_: 5,
) -> list[LinkSightings]:
    """Let frames cross the cables, a tick every quarter second; what is seen each second.

    unmanaged: switches that nothing of ours reaches, and that reach us with nothing. packets: what
    a port says that it has received.
    """
    sights = []
    for now in np.arange(start, end, 0.25).tolist():
        answers = []
        for vertex, message in found.due(now):
            *packets_out, (turn, echo) = sent(message)
            assert turn == ECHO
            for port, frame in packets_out if vertex not in unmanaged else ():
                there = cable(vertex, port)
                if there and there[0] not in unmanaged:
                    assert found.received(there[0], packet_in_of(there[1], frame), now)
            if vertex not in unmanaged:
                answers.append((vertex, int.from_bytes(echo, "big")))
        for vertex, turn in answers:
            found.answered(vertex, turn)
        for direction, vertex, port in found.next_readings():
            if vertex not in unmanaged:
                found.silence.counted(direction, packets(vertex, port))
        if now % 1 == 0:
            sights.append(found.sight(NO_PORT_DOWN, now))
    return sights


def links(chosen: NDArray[np.bool_]) -> list[int]:
    """The numbers of the chosen links."""
    return np.flatnonzero(chosen).tolist()


def exchanged(cable: Cable, *ports: tuple[int, int]) -> Cable:
    """The plugs of two ports in each other's place."""
    place = dict(zip(ports, reversed(ports), strict=True))

    def after(vertex: int, port: int) -> tuple[int, int] | None:
        there = cable(*place.get((vertex, port), (vertex, port)))
        return place.get(there, there) if there else None

    return after


def test_frames_are_lldp_for_an_independent_reader() -> None:
    made = lldp.frames(0xAB, np.array([1, 300]), 9, 120, KEY)
    for port, frame in zip((1, 300), made, strict=True):
        read = packet.Packet(frame.tobytes())
        ethernet, tlvs = read.protocols[0], read.get_protocol(Lldp).tlvs
        assert (ethernet.dst, ethernet.ethertype) == ("01:80:c2:00:00:0e", 0x88CC)
        assert [type(tlv) for tlv in tlvs] == [
            ChassisID,
            PortID,
            TTL,
            OrganizationallySpecific,
            End,
        ]
        assert tlvs[0].chassis_id == b"dpid:00000000000000ab"
        assert int.from_bytes(tlvs[1].port_id, "big") == port
        assert tlvs[2].ttl == 120
        assert lldp.read_frame(frame.tobytes(), KEY) == (0xAB, port, 9)


def test_a_frame_with_any_other_byte_is_nobodys() -> None:
    frame = lldp.frames(5, np.array([2]), 1, 60, KEY)[0]
    assert lldp.read_frame(frame.tobytes() + b"padding", KEY) == (5, 2, 1)
    for place in range(len(frame) - 2):
        forged = frame.copy()
        forged[place] ^= 1
        assert lldp.read_frame(forged.tobytes(), KEY) is None, place
    assert lldp.read_frame(frame.tobytes(), b"another key") is None
    assert lldp.read_frame(frame.tobytes()[:40], KEY) is None


@pytest.mark.parametrize("size", [0, 20, 31, 33, 49])
def test_a_packet_in_that_is_cut_off_is_malformed(size: int) -> None:
    with pytest.raises(Malformed):
        packet_in(packet_in_of(3, b"x" * 60)[:size])


def test_a_fabric_as_planned_is_seen_and_has_no_miswires() -> None:
    wiring = routed(q=3).wiring
    found = begun(wiring)
    sights = run(found, planned(wiring), 0.0, 3 * found.age)
    assert not any((sight.unseen | sight.doubtful).any() for sight in sights)
    assert sights[-1].seen.all()
    assert found.miswired(3 * found.age) is None
    assert len(found.wired(3 * found.age).cables) == 24


def test_no_frame_leaves_by_a_port_of_a_host() -> None:
    """Two hosts that passed theirs on to each other were reported as a wrong cable."""
    wiring = routed(q=3).wiring
    found = begun(wiring)
    assert (wiring.host_port > 0).any()
    for vertex, message in found.due(0.5):
        ports = [port for port, _ in sent(message)[:-1]]
        assert sorted(ports) == sorted(wiring.port[vertex][wiring.far[vertex] >= 0].tolist())


def one_way(found: Discovery, cable: Cable, *numbers: int) -> Cable:
    """These links carry nothing from their first end to the other."""
    ends = found.cables.ends[[*numbers], 0].tolist()
    silent = {(u, int(found.wiring.port[u, k])) for u, k in ends}
    return lambda v, p: None if (v, p) in silent else cable(v, p)


def test_a_cable_that_is_cut_in_one_direction_is_out_of_use_in_ten_seconds() -> None:
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    sights = run(found, one_way(found, cable, 5), 10.0, 20.0)
    assert links(sights[-1].unseen) == [5]
    assert not any(sight.doubtful.any() for sight in sights)
    assert found.miswired(20.0) is None
    assert run(found, cable, 20.0, 23.0)[-1].seen.all()


@pytest.mark.parametrize("first", [0, 1])
def test_a_silent_link_is_missed_whichever_end_always_answers_first(first):
    """Ends whose turns are together: frames of the one that answered first were never missed."""
    silence = LinkSilence(np.array([[0, 1]]), 2, 2.0)
    for turn in range(1, 6):
        silence.sent(np.array([0, 1]))
        for vertex in (first, 1 - first):
            silence.answered(vertex, turn)
    assert silence.missed.tolist() == [4, 4]


def test_of_links_that_fall_silent_together_no_more_than_two_are_out_of_use() -> None:
    """The others are doubtful and stay in use: one cause is behind all."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    sights = run(found, one_way(found, cable, 1, 5, 9, 20), 10.0, 40.0)
    assert links(sights[-1].doubtful | sights[-1].unseen) == [1, 5, 9, 20]
    assert max(np.count_nonzero(sight.unseen) for sight in sights) <= 2


def test_links_that_stay_silent_together_go_out_of_use_a_few_at_a_time() -> None:
    """They stayed in use for ever."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    sights = run(found, one_way(found, cable, 1, 5, 9, 20), 10.0, 110.0)
    assert links(sights[-1].unseen) == [1, 5, 9, 20]
    counts = [np.count_nonzero(sight.unseen) for sight in sights]
    pace = len(sights) // 10
    assert max(later - now for now, later in zip(counts, counts[pace - 1 :], strict=False)) <= 2
    assert run(found, cable, 110.0, 115.0)[-1].seen.all()


def test_a_link_over_which_packets_still_arrive_is_doubtful() -> None:
    """A switch that is flooded with packets for us reports some of ours no more."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    arriving = iter(range(1000))
    silent = one_way(found, cable, 5)
    sights = run(found, silent, 10.0, 30.0, packets=lambda *_: next(arriving))
    assert links(sights[-1].doubtful) == [5]
    assert not any(sight.unseen.any() for sight in sights)


def test_a_port_that_counts_nothing_does_not_keep_its_link_in_use() -> None:
    """What it says instead of a number was one that overflowed."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    sights = run(found, one_way(found, cable, 5), 10.0, 20.0, packets=lambda *_: 2**64 - 1)
    assert links(sights[-1].unseen) == [5]


def test_links_of_a_switch_that_reports_nothing_any_more_are_doubtful() -> None:
    """As when another application's row is over ours."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)

    def deaf(vertex: int, port: int) -> tuple[int, int] | None:
        far = cable(vertex, port)
        return None if far and far[0] == 4 else far

    sights = run(found, deaf, 10.0, 30.0)
    touching = links((found.cables.ends[:, :, 0] == 4).any(axis=1))
    assert links(sights[-1].doubtful) == touching
    assert not any(sight.unseen.any() for sight in sights)


@pytest.mark.parametrize("unmanaged", [set(range(13)), {1, 4, 6}, {4}], ids=["all", "some", "one"])
def test_no_outage_of_management_silences_a_link(unmanaged: set[int]) -> None:
    """After 6.5 to 7.5 s nearly all links counted as dead, and repaired tables went out."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    now = 10.0
    run(found, cable, 0.0, now)
    for length in (1.0, 3.5, 6.0, 6.5, 7.0, 7.5, 8.0, 12.5, 30.0):
        sights = run(found, cable, now, now + length, unmanaged)
        sights += run(found, cable, now + length, now + length + 10)
        assert not any(sight.unseen.any() for sight in sights), length
        assert sights[-1].seen.all()
        now += length + 10


def test_nothing_is_missed_before_it_could_have_been_heard() -> None:
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 10.0)
    silent = one_way(found, cable, 5)
    run(found, silent, 10.0, 15.0)
    for vertex in range(13):
        ports = np.concatenate((wiring.port[vertex], wiring.host_port[vertex]))
        found.connected(vertex, ports, 15.0)
    assert not any(sight.unseen.any() for sight in run(found, silent, 15.0, 20.0))
    assert links(run(found, silent, 20.0, 25.0)[-1].unseen) == [5]
    (u, k), _ = found.cables.ends[5].tolist()
    found.set_port(u, int(wiring.port[u, k]), exists=False)
    assert not found.sight(NO_PORT_DOWN, 25.0).unseen.any(), "no port, nothing to be heard"


@pytest.mark.parametrize("keeps", [set(range(13)), {4}])
def test_of_switches_that_keep_lldp_to_themselves_nothing_is_told(keeps: set[int]) -> None:
    """On by default it would take all their links for dead."""
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)

    def carried(vertex: int, port: int) -> tuple[int, int] | None:
        far = cable(vertex, port)
        return None if vertex in keeps or (far and far[0] in keeps) else far

    reads = []
    packets = lambda *port: reads.append(port) or 5  # noqa: E731
    sights = run(found, carried, 0.0, 20.0, packets=packets)
    assert not any((sight.unseen | sight.doubtful).any() for sight in sights)
    assert not reads, "no counter decides anything"


def test_exchanged_plugs_are_told_with_the_move_that_repairs_them() -> None:
    wiring = routed(q=3).wiring
    found = begun(wiring)
    ports = (3, int(wiring.port[3, 0])), (8, int(wiring.port[8, 2]))
    end = 2 * found.age
    run(found, exchanged(planned(wiring), *ports), 0.0, found.age)
    assert found.miswired(found.age) is None  # switches have not told all they see
    run(found, exchanged(planned(wiring), *ports), found.age, end)
    report = found.miswired(end)
    assert report is not None
    assert len(report.misplaced) == 2
    assert len(report.moves) == 1
    assert report.moves[0].kind == "swap"
    assert found.sight(NO_PORT_DOWN, end).unseen.sum() == 2


def test_lies_are_not_counted() -> None:
    """Frames of hosts and of others, forged ones, ones sent again later, unknown switches."""
    wiring = routed(q=3).wiring
    found = begun(wiring)
    _, first = found.due(0.5)[0]
    _, frame = sent(first)[0]
    for other in (b"", b"\x01" * 90, frame[:30], b"\xff" * 6 + frame[6:]):
        assert not found.received(1, packet_in_of(1, other), 0.5)
    for key, datapath_id in ((b"not the key", 1), (KEY, 999)):
        forged = lldp.frames(datapath_id, np.array([1]), 1, 60, key)[0].tobytes()
        assert not found.received(1, packet_in_of(1, forged), 0.5)
    assert not found.received(1, packet_in_of(4000, frame), 0.5)
    assert not found.wired(0.5).cables
    for now in np.arange(1.0, 20.0, 0.25).tolist():
        found.due(now)
    assert not found.received(1, packet_in_of(1, frame), 20.0)


def test_no_more_frames_a_second_than_allowed() -> None:
    wiring = routed(q=7).wiring
    found = Discovery(wiring, rate=100, key=KEY)
    assert found.interval == pytest.approx(np.count_nonzero(wiring.far >= 0) / 100)
    for vertex in range(57):
        found.connected(vertex, wiring.port[vertex], 100.0)
    found.due(100.0)
    count = [
        sum(len(sent(message)) for _, message in found.due(now))
        for now in np.arange(100.25, 100.0 + 2 * found.interval, 0.25).tolist()
    ]
    assert max(count) <= 100 / 4 + 2 * 8
    assert sum(count) == pytest.approx(2 * np.count_nonzero(wiring.far >= 0), rel=0.15)


def test_planned_nodes_give_the_others_no_more_turns() -> None:
    """With half of the nodes planned, twice as many frames a second were sent after a start."""
    whole, absent = routed(q=3), [0, 2, 7, 9, 10, 11]
    wiring = damaged(whole, missing(whole.wiring, absent, [])).wiring
    found = Discovery(wiring, rate=2, key=KEY)
    for vertex in {*range(13)}.difference(absent):
        found.connected(vertex, wiring.port[vertex], 100.0)
    found.due(100.0)
    times = np.arange(100.25, 100.0 + found.interval / 2, 0.25).tolist()
    assert sum(len(found.due(now)) for now in times) <= 4


def test_a_plug_that_moves_is_seen_at_its_new_place_alone() -> None:
    wiring = routed(q=3).wiring
    found, cable = begun(wiring), planned(wiring)
    run(found, cable, 0.0, 7.0)
    ports = (3, int(wiring.port[3, 0])), (8, int(wiring.port[8, 2]))
    run(found, exchanged(cable, *ports), 7.0, 7.0 + found.interval + 0.25)
    report = found.miswired(7.0 + found.interval)
    assert report is not None
    assert [move.kind for move in report.moves] == ["swap"]


@given(st.binary(max_size=200), st.integers(0, 150))
@settings(max_examples=200)
def test_whatever_comes_in_is_read_or_malformed(data: bytes, cut: int) -> None:
    good = packet_in_of(3, lldp.frames(5, np.array([2]), 1, 60, KEY)[0].tobytes())
    for message in (data, good[:cut] + data, good[:24] + data):
        try:
            _, frame = packet_in(message)
        except Malformed:
            continue
        assert lldp.read_frame(frame, KEY) in (None, (5, 2, 1))
