"""The fabric's sessions against a switch of our own that keeps what it is told."""

import struct

import numpy as np
import pytest
from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import message_rows as rows
from compilers.targets.openflow import protocol
from compilers.targets.openflow.encoder import Program
from controller.openflow import multipart as reading
from controller.openflow.messages import Malformed, SessionXid
from controller.switches.current import Current
from controller.switches.events import BuildKept, FabricComplete, ProgramRefused, SwitchProgrammed
from controller.switches.session import PROBE, SWITCH_PATIENCE, SWITCHES_AT_ONCE, LiveFabric
from tests.controller.fake_switches import as_entries

OPENED, COMMITTED = 11 << 24, 11 << 24 | 1
BAD_GROUP_TYPE = (ofproto_v1_3.OFPET_GROUP_MOD_FAILED, ofproto_v1_3.OFPGMFC_BAD_TYPE)
MARKER = rows.marker(0x5047 << 48)


def row(number):
    """A bundled flow-mod that adds a row with this cookie number."""
    body = parts.flow_add(1, number, 0x5046 << 48, (), parts.goto_table(2))
    return parts.block(rows.bundled_add(14, b"".join(body.body), 50 + number))


class Programs:
    def __init__(self, *ids):
        self.by_datapath_id = {number: vertex for vertex, number in enumerate(ids or (11, 12))}

    def program(self, vertex, _=0):
        return Program((), (row(vertex), MARKER))

    def describe(self, number):
        return f"row {number}"


def names(type_, code):
    ryu = ofproto_v1_3
    return ryu.ofp_error_type_to_str(type_), ryu.ofp_error_code_to_str(type_, code)


def error(type_, code, xid):
    """An error as Ryu writes it, quoting a flow-mod with this xid."""
    quoted = protocol.message(14, xid, bytes(56))
    made = ofproto_v1_3_parser.OFPErrorMsg(ofproto_v1_3, type_, code, quoted)
    made.datapath = type("Datapath", (), {"ofproto": ofproto_v1_3})
    made.version, made.xid = 4, xid
    made.serialize()
    return bytes(made.buf)


def multipart(kind, xid, body=b"", more=0):
    return protocol.message(19, xid, struct.pack("!HH4x", kind, more) + body)


REPLY = parts.bundle(protocol.Bundle.COMMIT_REPLY, rows.BUNDLE, 7)


def entries(program):
    return b"".join(entry for block in program.flows for entry in as_entries(block))


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def fabric(now):
    build = Current("0123456789abcdef", ("a", "b"), Programs())
    return LiveFabric(build, names, clock=lambda: now[0])


def sent(fabric, key):
    """What has been sent to a connection since the last look, together."""
    return b"".join(out.data for out in fabric.take() if out.key == key)


def questions(fabric, key):
    """The xids of the requests for flows and groups."""
    found, data = {}, sent(fabric, key)
    while data:
        kind, length, xid = protocol.header(data)
        if kind == protocol.MessageType.MULTIPART_REQUEST:
            found[struct.unpack_from("!H", data, 8)[0]] = xid
        data = data[length:]
    return found


def tell(fabric, key, flows=b"", groups=b""):
    """Answer what the fabric has asked; the switch holds this. Returns what it then sends."""
    asked = questions(fabric, key)
    fabric.received(key, multipart(1, asked[1], flows))
    fabric.received(key, multipart(7, asked[7], groups))
    return sent(fabric, key)


def barrier(fabric, key, xid):
    fabric.received(key, protocol.message(protocol.MessageType.BARRIER_REPLY, xid))
    return sent(fabric, key)


def connect(fabric, key, datapath_id, peer=""):
    """A switch that holds nothing, up to its filled bundle."""
    fabric.connected(key, datapath_id, peer)
    return tell(fabric, key)


def program(fabric, key, datapath_id, peer=""):
    connect(fabric, key, datapath_id, peer)
    assert barrier(fabric, key, OPENED) == rows.commit() + rows.barrier(1)
    fabric.received(key, REPLY)
    barrier(fabric, key, COMMITTED)


def kinds(fabric):
    return [(event.kind, event.node) for event in fabric.drain()]


def test_a_switch_is_programmed_only_when_commit_and_barrier_are_confirmed(fabric):
    parts = Programs().program(1).parts
    assert connect(fabric, "k", 12) == b"".join([rows.opening(), *parts, rows.barrier(0)])
    assert barrier(fabric, "k", COMMITTED) == b""
    assert barrier(fabric, "k", OPENED) == rows.commit() + rows.barrier(1)
    assert barrier(fabric, "k", OPENED) == b""
    fabric.received("k", REPLY)
    assert fabric.status()["programmed"] == []
    barrier(fabric, "k", COMMITTED)
    assert fabric.status()["programmed"] == ["b"]
    assert not fabric.complete
    assert fabric.missing() == ["a"]


def test_a_switch_that_is_right_already_gets_nothing(fabric):
    fabric.connected("k", 12)
    assert tell(fabric, "k", entries(Programs().program(1))) == b""
    assert fabric.status()["programmed"] == ["b"]
    assert fabric.status()["differences"] == {"added": 0, "changed": 0, "removed": 0, "none": 1}


def test_only_the_difference_is_sent(fabric):
    fabric.connected("k", 12)
    had = entries(Program((), (row(7), MARKER)))
    data = tell(fabric, "k", had)
    assert row(1).tobytes() in data
    assert MARKER.tobytes() not in data
    assert data.count(struct.pack("!II", protocol.ONF, 2301)) == 2
    counts = fabric.status()["differences"]
    assert (counts["added"], counts["changed"], counts["removed"]) == (1, 0, 1)


def test_a_reply_in_many_parts_is_one(fabric):
    fabric.connected("k", 12)
    asked, parts = questions(fabric, "k"), [*as_entries(row(1)), *as_entries(MARKER)]
    for part in parts:
        fabric.received("k", multipart(1, asked[1], part, more=1))
    fabric.received("k", multipart(1, asked[1]))
    fabric.received("k", multipart(7, asked[7]))
    assert fabric.status()["programmed"] == ["b"]


def test_rows_of_others_are_kept_and_counted_or_removed(fabric):
    other = parts.flow_add(1, 9, 0x99, ())
    foreign = parts.block(rows.bundled_add(14, b"".join(other.body), 1))
    had = entries(Program((), (row(1), MARKER, foreign)))
    fabric.connected("k", 12)
    assert tell(fabric, "k", had) == b""
    assert fabric.status()["foreign"] == {"b": 1}
    fabric.foreign = "remove"
    fabric.reconcile(1)
    data = tell(fabric, "k", had)
    assert data.count(struct.pack("!II", protocol.ONF, 2301)) == 1


def test_a_row_of_others_in_a_place_of_ours_goes_before_ours_comes(fabric):
    other = parts.flow_add(1, 1, 0x99, ())
    foreign = parts.block(rows.bundled_add(14, b"".join(other.body), 1))
    fabric.foreign = "remove"
    fabric.connected("k", 12)
    data = tell(fabric, "k", entries(Program((), (MARKER, foreign))))
    added, command = data.index(row(1).tobytes()), 24 + 8 + 17
    assert data[len(rows.opening()) + command] == 4
    assert added > len(rows.opening())


def test_a_switch_that_does_not_tell_its_flows_is_refused(fabric):
    fabric.connected("k", 12)
    xid = questions(fabric, "k")[1]
    fabric.received("k", error(1, 2, xid))
    assert fabric.missing() == ["a", "b"]


def test_the_fabric_is_complete_once_and_again_after_a_return(fabric):
    program(fabric, 1, 11)
    program(fabric, 2, 12)
    assert fabric.complete
    assert kinds(fabric)[-1] == ("complete", "0123456789abcdef")
    fabric.closed(1)
    assert not fabric.complete
    assert kinds(fabric) == [("left", "a")]
    program(fabric, 3, 11)
    assert kinds(fabric) == [("connected", "a"), ("programmed", "a"), ("complete", fabric.identity)]


def test_events_tell_how_long_programming_took(fabric, now):
    program(fabric, 1, 11)
    now[0] = 2.0
    connect(fabric, 2, 12)
    now[0] = 2.5
    barrier(fabric, 2, OPENED)
    fabric.received(2, REPLY)
    barrier(fabric, 2, COMMITTED)
    identity = fabric.identity
    assert fabric.drain()[-2:] == [SwitchProgrammed("b", 0.5), FabricComplete(identity, 2, 2.5)]
    fabric.reconcile(1)
    assert tell(fabric, 2, entries(Programs().program(1))) == b""
    assert fabric.drain() == [SwitchProgrammed("b", None), FabricComplete(identity, 2, 0.0)]


def test_an_error_while_filling_discards_the_bundle_and_is_explained(fabric):
    connect(fabric, "k", 11)
    fabric.drain()
    for xid in (50, 51, 52):
        fabric.received("k", error(*BAD_GROUP_TYPE, xid))
    assert barrier(fabric, "k", OPENED) == rows.discard(SessionXid.DISCARD)
    text = "group mod failed: bad type (row 50), and 2 more errors"
    assert fabric.drain() == [ProgramRefused("a", text, *BAD_GROUP_TYPE, "row 50", 3)]
    assert fabric.status()["errors"] == {"a": text}
    fabric.received("k", REPLY)
    barrier(fabric, "k", COMMITTED)
    assert fabric.status()["programmed"] == []


def test_an_error_of_the_commit_refuses(fabric):
    connect(fabric, "k", 11)
    barrier(fabric, "k", OPENED)
    bundle_failed = struct.pack("!HHI", 0xFFFF, 2313, protocol.ONF) + protocol.message(4, 7)
    fabric.received("k", protocol.message(protocol.MessageType.ERROR, 7, bundle_failed))
    assert barrier(fabric, "k", COMMITTED) == rows.discard(SessionXid.DISCARD)
    assert fabric.errors == {"a": "bundle failed: a message in it failed (row 7)"}


@pytest.mark.parametrize("answered", [[], [OPENED]])
def test_a_barrier_that_is_refused_is_an_answer(fabric, answered):
    connect(fabric, "k", 11)
    for xid in answered:
        barrier(fabric, "k", xid)
    fabric.received("k", error(1, 6, COMMITTED if answered else OPENED))
    assert sent(fabric, "k") == rows.discard(SessionXid.DISCARD)
    assert list(fabric.errors) == ["a"]
    fabric.reconcile(0)
    assert row(0).tobytes() in tell(fabric, "k")


def test_a_barrier_without_a_commit_reply_refuses(fabric):
    connect(fabric, "k", 11)
    barrier(fabric, "k", OPENED)
    barrier(fabric, "k", COMMITTED)
    assert fabric.errors == {"a": "did not confirm the commit of its bundle"}


def test_success_clears_an_earlier_error_and_a_late_error_is_told_once(fabric):
    connect(fabric, "k", 11)
    barrier(fabric, "k", OPENED)
    barrier(fabric, "k", COMMITTED)
    fabric.closed("k")
    program(fabric, "l", 11)
    assert fabric.errors == {}
    fabric.drain()
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    assert kinds(fabric) == [("error", "a")]
    assert fabric.status()["programmed"] == ["a"]


def test_an_unknown_datapath_gets_nothing_and_is_told_once(fabric):
    fabric.connected("k", 99)
    barrier(fabric, "k", OPENED)
    fabric.closed("k")
    fabric.connected("l", 99)
    assert fabric.take() == []
    assert kinds(fabric) == [("unknown", "0000000000000063")]
    assert fabric.status()["unknown"] == ["0000000000000063"]


def test_the_end_of_an_old_connection_does_not_count_the_switch_as_lost(fabric):
    program(fabric, "old", 11)
    program(fabric, "new", 11)
    fabric.closed("old")
    assert fabric.status()["programmed"] == ["a"]
    assert ("left", "a") not in kinds(fabric)


def test_an_old_connection_cannot_confirm_for_the_new_one(fabric):
    connect(fabric, "old", 11)
    barrier(fabric, "old", OPENED)
    fabric.received("old", REPLY)
    fabric.connected("new", 11)
    barrier(fabric, "old", COMMITTED)
    assert fabric.status()["programmed"] == []


def test_an_impostor_that_has_left_leaves_the_switch_as_it_was(fabric):
    program(fabric, "real", 11)
    fabric.connected("impostor", 11)
    assert fabric.missing() == ["a", "b"]
    fabric.closed("impostor")
    assert fabric.missing() == ["b"]


ALIVE = protocol.message(protocol.MessageType.BARRIER_REPLY, SessionXid.PROBE)


def test_an_earlier_connection_that_answers_is_another_switch(fabric):
    program(fabric, "one", 11, "192.0.2.1:1000")
    program(fabric, "two", 11, "192.0.2.2:2000")
    assert fabric.status()["errors"] == {}
    fabric.tick()
    assert sent(fabric, "one") == PROBE
    fabric.tick()
    assert fabric.take() == []
    fabric.drain()
    fabric.received("one", ALIVE)
    fabric.received("one", ALIVE)
    (event,) = fabric.drain()
    assert (event.kind, event.node) == ("duplicate", "a")
    assert "from 192.0.2.1:1000 and from 192.0.2.2:2000" in event.text
    assert fabric.status()["errors"] == {"a": event.text}
    fabric.closed("two")
    assert fabric.status()["errors"] == {}
    assert fabric.status()["programmed"] == ["a"]
    fabric.closed("one")
    assert kinds(fabric) == [("left", "a")]
    assert fabric.status()["programmed"] == []


def test_a_connection_that_is_dead_is_no_duplicate(fabric):
    program(fabric, "old", 11)
    connect(fabric, "new", 11)
    fabric.closed("old")
    fabric.tick()
    assert fabric.take() == []
    assert fabric.status()["errors"] == {}


@pytest.mark.parametrize("length", range(8, 20))
def test_cut_off_errors_are_read(fabric, length):
    connect(fabric, "k", 11)
    fabric.received("k", error(*BAD_GROUP_TYPE, 50)[:length])
    barrier(fabric, "k", OPENED)
    assert "a" in fabric.errors


def test_a_switch_that_is_back_is_not_programmed_until_it_says_so(fabric):
    """A new connection may come before the old one is known to be dead."""
    program(fabric, "first", 11)
    assert fabric.missing() == ["b"]
    fabric.connected("second", 11)
    assert fabric.missing() == ["a", "b"]
    fabric.closed("first")
    assert fabric.missing() == ["a", "b"]


def test_so_many_switches_at_once_and_the_next_when_one_is_done():
    ids = range(1, SWITCHES_AT_ONCE + 3)
    build = Current("0123456789abcdef", [str(i) for i in ids], Programs(*ids))
    fabric = LiveFabric(build, names)
    for number in ids:
        fabric.connected(number, number)
    asked = {out.key for out in fabric.take()}
    assert asked == set(range(1, SWITCHES_AT_ONCE + 1))
    fabric.closed(1)
    assert {out.key for out in fabric.take()} == {SWITCHES_AT_ONCE + 1}


def test_a_silent_switch_is_cut_off_and_told_once(fabric, now):
    connect(fabric, "k", 11)
    now[0] = SWITCH_PATIENCE - 1
    fabric.tick()
    assert fabric.take() == []
    now[0] = SWITCH_PATIENCE + 1
    fabric.drain()
    fabric.tick()
    fabric.tick()
    assert [out.data for out in fabric.take()] == [None]
    assert kinds(fabric) == [("silent", "a")]


def test_a_switch_that_does_its_work_slowly_is_not_silent(fabric, now):
    fabric.connected("k", 12)
    asked = questions(fabric, "k")
    fabric.received("k", multipart(13, asked[13]))
    for _ in range(5):
        now[0] += SWITCH_PATIENCE - 1
        fabric.received("k", multipart(1, asked[1], entries(Program((), (row(1),))), more=1))
        fabric.received("k", multipart(7, asked[7], more=1))
        fabric.tick()
        assert fabric.take() == []


def test_another_build_is_loaded_while_it_runs(fabric):
    program(fabric, 1, 11)
    program(fabric, 2, 12)
    fabric.load(Current("new", ("x", "y"), Programs(12, 13)))
    assert fabric.status()["unknown"] == [f"{11:016x}"]
    assert fabric.missing() == ["x", "y"]
    data = tell(fabric, 2, entries(Programs().program(1)))
    assert row(0).tobytes() in data
    assert barrier(fabric, 2, 11 << 24 | 2) == rows.commit() + rows.barrier(3)
    fabric.received(2, REPLY)
    barrier(fabric, 2, 11 << 24 | 3)
    assert fabric.status()["programmed"] == ["x"]


def test_a_build_loaded_in_the_middle_of_a_push_comes_after_it(fabric):
    connect(fabric, "k", 11)
    fabric.load(Current("new", ("a", "b"), Programs(12, 11)))
    barrier(fabric, "k", OPENED)
    fabric.received("k", REPLY)
    fabric.received("k", protocol.message(protocol.MessageType.BARRIER_REPLY, COMMITTED))
    assert fabric.status()["programmed"] == []
    data = tell(fabric, "k", entries(Programs().program(0)))
    assert row(1).tobytes() in data


def test_changes_of_others_come_one_after_the_other_and_are_told_apart(fabric):
    program(fabric, "k", 11)
    outcomes = []
    fabric.change(0, [row(5).tobytes()], outcomes.append)
    fabric.change(0, [row(6).tobytes()], outcomes.append)
    assert row(6).tobytes() not in sent(fabric, "k")
    fabric.received("k", error(*BAD_GROUP_TYPE, 55))
    assert row(6).tobytes() in barrier(fabric, "k", 11 << 24 | 2)
    assert [(o.committed, o.error.xid, o.lost) for o in outcomes] == [(False, 55, False)]
    fabric.closed("k")
    assert (outcomes[1].committed, outcomes[1].lost) == (False, True)


def test_a_change_that_a_switch_takes_along_is_told_when_the_switch_has_left(fabric):
    """Who hears of it may want to change other switches at once, and this one not any more."""
    program(fabric, "k", 11)
    seen = []
    fabric.change(
        0, [row(5).tobytes()], lambda _: seen.append((fabric.in_sync, fabric.connections))
    )
    fabric.closed("k")
    assert seen == [(frozenset(), {})]


def test_messages_of_a_kind_go_to_those_who_want_them(fabric):
    seen, present = [], []
    fabric.hooks.on(
        protocol.MessageType.PORT_STATUS, lambda vertex, data: seen.append((vertex, data))
    )
    fabric.hooks.on_presence(lambda vertex, up: present.append((vertex, up)))
    program(fabric, "k", 12)
    status = protocol.message(protocol.MessageType.PORT_STATUS, 0, bytes(72))
    fabric.received("k", status)
    fabric.received("k", protocol.message(protocol.MessageType.PACKET_IN, 0))
    fabric.closed("k")
    assert seen == [(1, status)]
    assert present == [(1, True), (1, False)]


def test_questions_of_others_are_answered(fabric):
    program(fabric, "k", 12)
    answers = []
    fabric.ask(1, protocol.Multipart.PORT_STATS, reading.ports_wanted(), answers.append)
    (xid,) = questions(fabric, "k").values()
    stats = np.zeros(3, protocol.PORT_STATS)
    stats["port"], stats["sent_bytes"] = [1, 2, 3], [10, 20, 30]
    fabric.received("k", multipart(4, xid, stats.tobytes()))
    (body,) = answers
    assert reading.records(body, protocol.PORT_STATS)["sent_bytes"].tolist() == [10, 20, 30]
    fabric.ask(1, protocol.Multipart.PORT_DESC, b"", answers.append)
    fabric.closed("k")
    assert answers[1:] == [None]


@pytest.mark.parametrize("body", [b"\0", bytes(56), b"\0\x38" + bytes(53), b"\xff\xff" + bytes(60)])
def test_replies_that_cannot_be_read_are_malformed(fabric, body):
    fabric.connected("k", 12)
    asked = questions(fabric, "k")
    fabric.received("k", multipart(1, asked[1], body))
    with pytest.raises(Malformed):
        fabric.received("k", multipart(7, asked[7]))


def test_a_build_that_cannot_be_loaded_changes_nothing(fabric):
    program(fabric, "k", 12)
    fabric.drain()
    fabric.cannot_load("not verified")
    assert fabric.drain() == [BuildKept(fabric.identity, "not verified")]
    assert (fabric.status()["programmed"], fabric.take()) == (["b"], [])
