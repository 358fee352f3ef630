"""The fabric's sessions against a switch of our own that keeps what it is told."""

import struct

import pytest

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import message_parts as parts
from compilers.targets.openflow import protocol
from compilers.targets.openflow.encoder import FlowProgram
from controller.openflow.messages import SessionXid
from controller.state import State
from controller.switches.current import Current
from controller.switches.events import (
    EVENTS_KEPT,
    FabricComplete,
    ProgramRefused,
    SwitchProgrammed,
)
from controller.switches.session import (
    DUPLICATE_PATIENCE,
    MOST_UNKNOWN,
    MOST_UNKNOWN_TOLD,
    PROBE_AFTER,
    PROBE_PATIENCE,
    SILENT_AFTER,
    SLOW_AFTER,
    SWITCH_PATIENCE,
    LiveFabric,
)
from controller.switches.switch import FIRST_RETRY, MOST_TIMEOUTS, PROBE, SWITCHES_AT_ONCE
from tests.controller.reported import as_entries
from tests.controller.switches.session_talk import (
    BAD_GROUP_TYPE,
    COMMITTED,
    MARKER,
    OPENED,
    REPLY,
    Programs,
    barrier,
    check,
    commit,
    connect,
    entries,
    error,
    kinds,
    multipart,
    names,
    program,
    questions,
    row,
    slow,
    tell,
)


def test_a_switch_is_programmed_only_when_commit_and_barrier_are_confirmed(fabric):
    parts = Programs().program(1).parts
    assert connect(fabric, "k", 12) == b"".join([rows.opening(), *parts, rows.barrier(0)])
    assert barrier(fabric, "k", COMMITTED) == b""
    assert barrier(fabric, "k", OPENED) == rows.commit() + rows.barrier(1)
    assert barrier(fabric, "k", OPENED) == b""
    fabric.received("k", REPLY)
    fabric.received("k", protocol.message(protocol.MessageType.BARRIER_REPLY, COMMITTED))
    assert State.of(fabric).status["programmed"] == [], "that it has confirmed it proves nothing"
    check(fabric, "k")
    assert State.of(fabric).status["programmed"] == ["b"]
    assert not fabric.complete
    assert fabric.missing() == ["a"]


def test_a_count_from_before_the_commit_was_confirmed_proves_nothing(fabric):
    """A switch answers in order; one that does not is asked again."""
    connect(fabric, "k", 12)
    assert barrier(fabric, "k", OPENED) == rows.commit() + rows.barrier(1)
    check(fabric, "k")
    assert State.of(fabric).status["programmed"] == []
    commit(fabric, "k")
    assert State.of(fabric).status["programmed"] == ["b"]


def test_a_switch_that_is_right_already_gets_nothing(fabric):
    fabric.connected("k", 12)
    assert tell(fabric, "k", entries(Programs().program(1))) == b""
    assert State.of(fabric).status["programmed"] == ["b"]
    assert State.of(fabric).status["differences"] == {
        "added": 0,
        "changed": 0,
        "removed": 0,
        "none": 1,
    }


def test_only_the_difference_is_sent(fabric):
    fabric.connected("k", 12)
    had = entries(FlowProgram((), (row(7), MARKER)))
    data = tell(fabric, "k", had)
    assert row(1).tobytes() in data
    assert MARKER.tobytes() not in data
    assert data.count(struct.pack("!II", protocol.ONF, 2301)) == 2
    counts = State.of(fabric).status["differences"]
    assert (counts["added"], counts["changed"], counts["removed"]) == (1, 0, 1)


def test_a_reply_in_many_parts_is_one(fabric):
    fabric.connected("k", 12)
    asked, parts = questions(fabric, "k"), [*as_entries(row(1)), *as_entries(MARKER)]
    for part in parts:
        fabric.received("k", multipart(1, asked[1], part, more=1))
    fabric.received("k", multipart(1, asked[1]))
    fabric.received("k", multipart(7, asked[7]))
    assert State.of(fabric).status["programmed"] == ["b"]


def test_rows_of_others_are_kept_and_counted_or_removed(fabric):
    other = parts.flow_add(1, 9, 0x99, ())
    foreign = parts.block(rows.bundled_add(14, b"".join(other.body), 1))
    had = entries(FlowProgram((), (row(1), MARKER, foreign)))
    fabric.connected("k", 12)
    assert tell(fabric, "k", had) == b""
    assert State.of(fabric).status["foreign"] == {"b": 1}
    fabric.foreign = "remove"
    fabric.present[1].request_reading()
    data = tell(fabric, "k", had)
    assert data.count(struct.pack("!II", protocol.ONF, 2301)) == 1


def test_a_row_of_others_in_a_place_of_ours_goes_before_ours_comes(fabric):
    other = parts.flow_add(1, 1, 0x99, ())
    foreign = parts.block(rows.bundled_add(14, b"".join(other.body), 1))
    fabric.foreign = "remove"
    fabric.connected("k", 12)
    data = tell(fabric, "k", entries(FlowProgram((), (MARKER, foreign))))
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
    commit(fabric, 2)
    identity = fabric.identity
    assert fabric.take_events()[-2:] == [
        SwitchProgrammed("b", 0.5),
        FabricComplete(identity, 2, 2.5),
    ]
    fabric.present[1].request_reading()
    assert tell(fabric, 2, entries(Programs().program(1))) == b""
    assert fabric.take_events() == [SwitchProgrammed("b", None)], "it was complete before"


def test_an_error_while_filling_discards_the_bundle_and_is_explained(fabric):
    connect(fabric, "k", 11)
    fabric.take_events()
    for xid in (50, 51, 52):
        fabric.received("k", error(*BAD_GROUP_TYPE, xid))
    assert barrier(fabric, "k", OPENED) == rows.discard(SessionXid.DISCARD)
    text = "group mod failed: bad type (row 50), and 2 more errors"
    assert fabric.take_events() == [ProgramRefused("a", text, *BAD_GROUP_TYPE, "row 50", 3)]
    assert State.of(fabric).status["errors"] == {"a": text}
    fabric.received("k", REPLY)
    barrier(fabric, "k", COMMITTED)
    assert State.of(fabric).status["programmed"] == []


def test_a_switch_that_refused_is_read_again_after_a_while_and_once(fabric, now):
    """Ticks that come while it tells what it holds do not begin that anew."""
    connect(fabric, "k", 11)
    fabric.received("k", error(*BAD_GROUP_TYPE, 50))
    barrier(fabric, "k", OPENED)
    fabric.send.take()
    fabric.tick()
    assert not fabric.send.take()
    now[0] += FIRST_RETRY
    for _ in range(2):
        fabric.tick()
    assert row(0).tobytes() in tell(fabric, "k")


def late(xid):
    """A bundle timed out: its next message was late."""
    quoted = struct.pack("!HHI", 0xFFFF, 2314, protocol.ONF) + protocol.message(4, xid)
    return protocol.message(protocol.MessageType.ERROR, xid, quoted)


def test_a_bundle_that_timed_out_is_tried_again(fabric):
    connect(fabric, "k", 11)
    fabric.received("k", late(7))
    fabric.received("k", protocol.message(21, OPENED))
    assert fabric.errors == {}
    assert row(0).tobytes() in tell(fabric, "k")
    assert barrier(fabric, "k", OPENED + 2) == rows.commit() + rows.barrier(3)
    commit(fabric, "k", COMMITTED + 2)
    assert kinds(fabric) == [("connected", "a"), ("given-up", "a"), ("programmed", "a")]
    assert State.of(fabric).status["programmed"] == ["a"]


def test_a_switch_whose_bundles_all_time_out_refuses(fabric):
    connect(fabric, "k", 11)
    for attempt in range(MOST_TIMEOUTS + 1):
        assert fabric.errors == {}
        fabric.received("k", late(7))
        fabric.received("k", protocol.message(21, OPENED + 2 * attempt))
        if attempt < MOST_TIMEOUTS:
            tell(fabric, "k")
    assert fabric.errors == {"a": "bundle failed: timeout (row 7)"}


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
    fabric.take_events()
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    assert kinds(fabric) == [("error", "a")]
    assert State.of(fabric).status["programmed"] == ["a"]


def test_an_unknown_datapath_gets_nothing_and_is_told_once(fabric):
    fabric.connected("k", 99)
    barrier(fabric, "k", OPENED)
    fabric.closed("k")
    fabric.connected("l", 99)
    assert fabric.send.take() == []
    assert kinds(fabric) == [("unknown", "0000000000000063")]
    assert State.of(fabric).status["unknown"] == ["0000000000000063"]


ALIVE = protocol.message(protocol.MessageType.ECHO_REPLY, SessionXid.PROBE)


def test_a_switch_keeps_its_place_while_it_answers(fabric, now):
    """The other one gets nothing, is told of once, and is forgotten when it stays away."""
    program(fabric, "one", 11, "192.0.2.1:1000")
    fabric.take_events()
    for _ in range(2):
        fabric.connected("two", 11, "192.0.2.2:2000")
        assert [(out.key, out.data) for out in fabric.send.take()] == [("one", PROBE)]
        fabric.received("one", ALIVE)
        assert [(out.key, out.data) for out in fabric.send.take()] == [("two", None)]
        fabric.closed("two")
    (event,) = fabric.take_events()
    assert (event.kind, event.node) == ("duplicate", "a")
    assert "from 192.0.2.1:1000, which stays, and from 192.0.2.2:2000" in event.text
    assert State.of(fabric).status["programmed"] == ["a"]
    assert State.of(fabric).status["errors"] == {"a": event.text}
    now[0] += DUPLICATE_PATIENCE + 1
    fabric.tick()
    assert State.of(fabric).status["errors"] == {}
    fabric.closed("one")
    assert kinds(fabric) == [("left", "a")]


def test_a_claim_gets_the_place_when_the_connection_before_has_ended(fabric):
    program(fabric, "old", 11)
    fabric.connected("new", 11)
    assert State.of(fabric).status["programmed"] == ["a"]
    fabric.send.take()
    fabric.closed("old")
    assert row(0).tobytes() in tell(fabric, "new")
    assert State.of(fabric).status["programmed"] == []
    assert ("left", "a") not in kinds(fabric)
    assert State.of(fabric).status["errors"] == {}


def test_a_switch_that_does_not_answer_loses_its_place(fabric, now):
    program(fabric, "old", 11)
    fabric.take_events()
    fabric.connected("new", 11)
    fabric.send.take()
    now[0] += PROBE_PATIENCE + 0.1
    fabric.tick()
    assert kinds(fabric) == [("silent", "a"), ("connected", "a")]
    assert ("old", None) in [(out.key, out.data) for out in fabric.send]
    assert row(0).tobytes() in tell(fabric, "new")
    fabric.received("old", ALIVE)
    fabric.closed("old")
    assert list(fabric.present) == [0]


def test_who_talks_and_does_not_answer_loses_its_place(fabric, now):
    """What comes may have been under way before: the answer alone says that the switch lives."""
    program(fabric, "old", 11)
    fabric.take_events()
    fabric.connected("new", 11)
    for _ in range(6):
        now[0] += 0.9
        fabric.received("old", protocol.message(protocol.MessageType.ECHO_REQUEST, 1))
        fabric.tick()
    assert kinds(fabric) == [("silent", "a"), ("connected", "a")]
    assert fabric.present[0].key == "new"


def test_an_old_connection_cannot_confirm_for_the_new_one(fabric, now):
    connect(fabric, "old", 11)
    barrier(fabric, "old", OPENED)
    fabric.received("old", REPLY)
    fabric.connected("new", 11)
    now[0] += PROBE_PATIENCE + 0.1
    fabric.tick()
    fabric.send.take()
    barrier(fabric, "old", COMMITTED)
    assert State.of(fabric).status["programmed"] == []


def test_of_many_claims_one_waits(fabric):
    program(fabric, "one", 11)
    fabric.connected("two", 11)
    fabric.send.take()
    fabric.connected("three", 11)
    assert [(out.key, out.data) for out in fabric.send.take()] == [("three", None)]
    fabric.closed("two")
    fabric.received("one", ALIVE)
    assert fabric.send.take() == []
    assert State.of(fabric).status["errors"] == {}


HERE, THERE = "192.0.2.1:1000", "192.0.2.9:1000"


def test_a_claim_from_elsewhere_cuts_nobody_off_sooner(fabric, now):
    """A switch that was busy for 5 s lost its place to whoever claimed it."""
    program(fabric, "one", 11, HERE)
    fabric.take_events()
    now[0] += PROBE_AFTER
    fabric.tick()
    fabric.connected("thief", 11, THERE)
    now[0] += PROBE_PATIENCE + 0.1
    fabric.tick()
    assert kinds(fabric) == []
    fabric.received("one", ALIVE)
    assert kinds(fabric) == [("duplicate", "a")]
    assert State.of(fabric).status["programmed"] == ["a"]


def test_a_switch_that_returns_goes_before_a_claim_from_elsewhere(fabric, now):
    """Its connections were closed, one after the other, until the other one had the place."""
    program(fabric, "one", 11, HERE)
    fabric.connected("thief", 11, THERE)
    fabric.connected("returned", 11, HERE)
    fabric.connected("another thief", 11, THERE)
    closed = [out.key for out in fabric.send.take() if out.data is None]
    assert closed == ["thief", "another thief"]
    for key in closed:
        fabric.closed(key)
    now[0] += PROBE_PATIENCE + 0.1
    fabric.tick()
    assert fabric.present[0].key == "returned"
    assert "readdressed" not in [kind for kind, _ in kinds(fabric)]


def test_hosts_of_switches_are_known_while_another_controller_leads(fabric):
    """A switch that reconnected to a follower would wait among strangers."""
    is_own = fabric.rejected.is_own
    here, there = (address.rpartition(":")[0] for address in (HERE, THERE))
    fabric.note_host(11, HERE, None)
    fabric.note_host(99, THERE, None)  # of no switch of the build
    fabric.note_host(11, THERE, frozenset({"b"}))  # with another switch's certificate
    assert is_own(here)
    assert not is_own(there)
    fabric.note_host(11, THERE, frozenset({"a"}))
    assert is_own(there)
    assert not is_own(here)
    program(fabric, "one", 11, HERE)
    assert "readdressed" not in [kind for kind, _ in kinds(fabric)]


@pytest.mark.parametrize("certificate", [None, frozenset({"a"})])
def test_a_switch_that_connects_from_elsewhere_is_told(fabric, now, certificate):
    """Nothing said that it may be another machine, which then kept the switch away."""
    program(fabric, "one", 11, HERE)
    fabric.connected("two", 11, THERE, certificate)
    now[0] += SILENT_AFTER + 0.1
    fabric.tick()
    assert fabric.present[0].key == "two"
    told = [event.text for event in fabric.take_events() if event.kind == "readdressed"]
    assert len(told) == (certificate is None)
    assert all("192.0.2.9:1000, before 192.0.2.1;" in text for text in told)


def test_a_datapath_id_is_accepted_from_its_certificate_only(fabric):
    """A stolen certificate of one switch does not make a peer another one."""
    fabric.connected("thief", 11, "192.0.2.9:1000", frozenset({"b"}))
    assert [(out.key, out.data) for out in fabric.send.take()] == [("thief", None)]
    (event,) = fabric.take_events()
    assert (event.kind, event.node) == ("misnamed", "192.0.2.9")
    assert "datapath id of switch a and a certificate that names b" in event.text
    fabric.connected("a", 11, "192.0.2.1:1000", frozenset({"a", "b"}))
    assert list(fabric.present) == [0]


def test_a_certificate_of_many_names_makes_no_long_event(fabric):
    names = frozenset(f"x{number:03}" for number in range(300))
    fabric.connected("thief", 11, "192.0.2.9:1000", names)
    (event,) = fabric.take_events()
    assert "a certificate that names x000, x001, x002 and 297 more" in event.text


def test_unknown_datapath_ids_do_not_fill_memory(fabric):
    for number in range(100, 100 + 2 * MOST_UNKNOWN):
        fabric.connected(number, number)
        fabric.closed(number)
    assert len(fabric.unknown) == MOST_UNKNOWN
    assert len(fabric.take_events()) == MOST_UNKNOWN_TOLD <= EVENTS_KEPT / 10, "older events stay"
    fabric.load(fabric.current, silent=True)
    fabric.connected("stranger", 99)
    assert not fabric.take_events(), "an intermediate build of a move begins no new hundred"


def test_a_switch_that_an_intermediate_build_has_is_not_unknown(fabric):
    """A switch that a move adds was listed as unknown until the move ended; one that a move would
    have removed, as long as the old build was kept."""
    for number in (11, 12, 99):
        fabric.connected(number, number)
    assert fabric.unknown == {99}
    before = fabric.current
    fabric.load(Current(before.identity, ("a",), Programs(99)), silent=True)
    assert fabric.unknown == {11, 12}
    fabric.load(before, silent=True)
    assert fabric.unknown == {99}


@pytest.mark.parametrize("length", [8, 12, 19])
def test_cut_off_errors_are_read(fabric, length):
    connect(fabric, "k", 11)
    fabric.received("k", error(*BAD_GROUP_TYPE, 50)[:length])
    barrier(fabric, "k", OPENED)
    assert "a" in fabric.errors


def test_so_many_switches_at_once_and_the_next_when_one_is_done():
    ids = range(1, SWITCHES_AT_ONCE + 3)
    build = Current("0123456789abcdef", [str(i) for i in ids], Programs(*ids))
    fabric = LiveFabric(build, names)
    for number in ids:
        fabric.connected(number, number)
    asked = {out.key for out in fabric.send.take()}
    assert asked == set(range(1, SWITCHES_AT_ONCE + 1))
    fabric.closed(1)
    assert {out.key for out in fabric.send.take()} == {SWITCHES_AT_ONCE + 1}


def test_a_switch_that_leaves_before_its_turn_takes_none(fabric):
    fabric.admission.capacity = 1
    fabric.connected("k", 11)
    fabric.connected("l", 12)
    fabric.closed("l")
    tell(fabric, "k")
    barrier(fabric, "k", OPENED)
    commit(fabric, "k")
    program(fabric, "m", 12)
    assert fabric.complete


def test_a_silent_switch_is_cut_off_and_told_once(fabric, now):
    connect(fabric, "k", 11)
    now[0] = SWITCH_PATIENCE - 1
    fabric.tick()
    assert [out.data for out in fabric.send.take()] == [PROBE]
    fabric.received("k", ALIVE)
    now[0] = SWITCH_PATIENCE + 1
    fabric.take_events()
    fabric.tick()
    fabric.tick()
    assert [out.data for out in fabric.send.take()] == [None]
    assert kinds(fabric) == [("silent", "a"), ("left", "a")]


def test_a_switch_that_says_nothing_is_asked_and_cut_off_within_seconds(fabric, now):
    program(fabric, "k", 11)
    program(fabric, "l", 12)
    fabric.take_events()
    now[0] = PROBE_AFTER
    fabric.tick()
    assert {(out.key, out.data) for out in fabric.send.take()} == {("k", PROBE), ("l", PROBE)}
    fabric.received("l", ALIVE)
    now[0] += SLOW_AFTER + 0.1
    fabric.tick()
    assert slow(fabric) == {0}
    now[0] = PROBE_AFTER + SILENT_AFTER + 0.1
    fabric.tick()
    assert {(out.key, out.data) for out in fabric.send.take()} == {("k", None), ("l", PROBE)}
    assert kinds(fabric) == [("silent", "a"), ("left", "a")]


def test_nobody_is_silent_whose_messages_wait_or_while_we_do_other_work(fabric, now):
    """Hundreds of 3,783 were cut off on a busy machine, with their answers in our hands."""
    fabric.connected(1, 11)
    fabric.send.take()
    fabric.listening_clock.update(None)
    for _ in range(int(SILENT_AFTER)):
        now[0] += 10.0  # a long step of ours, then messages that wait
        fabric.listening_clock.update(None)
        came = now[0] - 1.0
        for _ in range(10):
            now[0] += 1.0
            fabric.listening_clock.update(came)
        fabric.tick()
        assert None not in [out.data for out in fabric.send.take()]
    for _ in range(4):
        now[0] += 1.0
        fabric.listening_clock.update(None)
        fabric.tick()
    assert [out.data for out in fabric.send.take()] == [None]


def test_a_message_that_is_read_first_after_a_pause_is_not_of_the_future(fabric, now):
    """It counted as heard when the pause ended: a dead switch was noticed later by the pause."""
    fabric.connected(1, 11)
    fabric.send.take()
    fabric.listening_clock.update(None)
    now[0] += 40.0
    fabric.received(1, ALIVE)
    for _ in range(int(PROBE_AFTER + SILENT_AFTER) + 2):
        fabric.listening_clock.update(None)
        fabric.tick()
        now[0] += 1.0
    assert [out.data for out in fabric.send.take()] == [PROBE, None]


def test_one_who_never_stops_talking_keeps_nobody_from_being_silent(fabric, now):
    """While some message always waited no time passed: a dead switch was never repaired around."""
    fabric.connected(1, 11)
    fabric.send.take()
    tick, waited = 0.25, 3.0
    for _ in range(int((PROBE_AFTER + SILENT_AFTER + waited) / tick) + 2):
        now[0] += tick
        fabric.listening_clock.update(now[0] - min(now[0], waited))
        fabric.tick()
    assert [out.data for out in fabric.send.take()] == [PROBE, None]


def test_a_switch_that_does_its_work_slowly_is_not_silent(fabric, now):
    fabric.connected("k", 12)
    asked = questions(fabric, "k")
    fabric.received("k", multipart(13, asked[13]))
    for _ in range(5):
        now[0] += SWITCH_PATIENCE - 1
        fabric.received("k", multipart(1, asked[1], entries(FlowProgram((), (row(1),))), more=1))
        fabric.received("k", multipart(7, asked[7], more=1))
        fabric.tick()
        assert None not in [out.data for out in fabric.send.take()]
