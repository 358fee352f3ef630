import struct

import pytest
from ryu.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from controller import wire
from controller.session import DISCARD_XID, PROBE_XID, Event, Fabric

OPENED, COMMITTED = 100, 200
HELD = bytes([4, 4, 0, 24]) + struct.pack("!IIIIHH", 7, wire.ONF, wire.BUNDLE_CONTROL, 5, 4, 3)


def message(kind, xid, body=b""):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


class Programs:
    commit = HELD + message(20, COMMITTED)

    @property
    def by_datapath_id(self):
        return {11: 0, 12: 1}

    def prepare(self, vertex):
        return message(14, 50 + vertex) + message(20, OPENED)

    def describe(self, number):
        return f"row {number}"


def names(type_, code):
    return (
        ofproto_v1_3.ofp_error_type_to_str(type_),
        ofproto_v1_3.ofp_error_code_to_str(type_, code),
    )


def error(type_, code, xid):
    """An error as Ryu writes it, quoting a flow-mod with this xid."""
    quoted = message(14, xid, bytes(56))
    made = ofproto_v1_3_parser.OFPErrorMsg(ofproto_v1_3, type_, code, quoted)
    made.datapath = type("Datapath", (), {"ofproto": ofproto_v1_3})
    made.version, made.xid = 4, xid
    made.serialize()
    return bytes(made.buf)


BARRIER = {xid: message(wire.BARRIER_REPLY, xid) for xid in (OPENED, COMMITTED)}
REPLY = message(4, 7, struct.pack("!IIIHH", wire.ONF, wire.BUNDLE_CONTROL, 5, 5, 3))
BAD_GROUP_TYPE = (ofproto_v1_3.OFPET_GROUP_MOD_FAILED, ofproto_v1_3.OFPGMFC_BAD_TYPE)


@pytest.fixture
def fabric():
    return Fabric("0123456789abcdef", ("a", "b"), Programs(), names)


def program(fabric, key, datapath_id, peer=""):
    fabric.connected(key, datapath_id, peer)
    assert fabric.received(key, BARRIER[OPENED]) == Programs.commit
    fabric.received(key, REPLY)
    fabric.received(key, BARRIER[COMMITTED])


def kinds(fabric):
    return [(event.kind, event.node) for event in fabric.drain()]


def test_a_switch_is_programmed_only_when_commit_and_barrier_are_confirmed(fabric):
    assert fabric.connected("k", 12) == Programs().prepare(1)
    assert fabric.received("k", BARRIER[COMMITTED]) == b""
    assert fabric.received("k", BARRIER[OPENED]) == Programs.commit
    assert fabric.received("k", BARRIER[OPENED]) == b""
    fabric.received("k", REPLY)
    assert fabric.status()["programmed"] == []
    fabric.received("k", BARRIER[COMMITTED])
    assert fabric.status()["programmed"] == ["b"]
    assert not fabric.complete
    assert fabric.missing() == ["a"]


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


def test_an_error_while_filling_discards_the_bundle_and_is_explained(fabric):
    fabric.connected("k", 11)
    fabric.drain()
    for xid in (50, 51, 52):
        assert fabric.received("k", error(*BAD_GROUP_TYPE, xid)) == b""
    assert fabric.received("k", BARRIER[OPENED]) == wire.discard(5, DISCARD_XID)
    text = "group mod failed: bad type (row 50), and 2 more errors"
    assert fabric.drain() == [Event("refused", "a", text)]
    assert fabric.status()["errors"] == {"a": text}
    fabric.received("k", REPLY)
    fabric.received("k", BARRIER[COMMITTED])
    assert fabric.status()["programmed"] == []


def test_an_error_of_the_commit_refuses(fabric):
    fabric.connected("k", 11)
    fabric.received("k", BARRIER[OPENED])
    bundle_failed = struct.pack("!HHI", 0xFFFF, 2313, wire.ONF) + message(4, 7)
    fabric.received("k", message(wire.ERROR, 7, bundle_failed))
    fabric.received("k", BARRIER[COMMITTED])
    assert fabric.errors == {"a": "bundle failed: a message in it failed (row 7)"}


def test_a_barrier_without_a_commit_reply_refuses(fabric):
    fabric.connected("k", 11)
    fabric.received("k", BARRIER[OPENED])
    fabric.received("k", BARRIER[COMMITTED])
    assert fabric.errors == {"a": "did not confirm the commit of its bundle"}


def test_success_clears_an_earlier_error_and_a_late_error_is_told_once(fabric):
    fabric.connected("k", 11)
    fabric.received("k", BARRIER[OPENED])
    fabric.received("k", BARRIER[COMMITTED])
    fabric.closed("k")
    program(fabric, "l", 11)
    assert fabric.errors == {}
    fabric.drain()
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    fabric.received("l", error(*BAD_GROUP_TYPE, 9))
    assert kinds(fabric) == [("error", "a")]
    assert fabric.status()["programmed"] == ["a"]


def test_an_unknown_datapath_gets_nothing_and_is_told_once(fabric):
    assert fabric.connected("k", 99) == b""
    assert fabric.received("k", BARRIER[OPENED]) == b""
    fabric.closed("k")
    assert fabric.connected("l", 99) == b""
    assert kinds(fabric) == [("unknown", "0000000000000063")]
    assert fabric.status()["unknown"] == ["0000000000000063"]


def test_the_end_of_an_old_connection_does_not_count_the_switch_as_lost(fabric):
    program(fabric, "old", 11)
    program(fabric, "new", 11)
    fabric.closed("old")
    assert fabric.status()["programmed"] == ["a"]
    assert ("left", "a") not in kinds(fabric)


def test_an_old_connection_cannot_confirm_for_the_new_one(fabric):
    fabric.connected("old", 11)
    fabric.received("old", BARRIER[OPENED])
    fabric.received("old", REPLY)
    fabric.connected("new", 11)
    fabric.received("old", BARRIER[COMMITTED])
    assert fabric.status()["programmed"] == []


PROBE = message(20, PROBE_XID)
ALIVE = message(wire.BARRIER_REPLY, PROBE_XID)


def test_no_question_lands_in_the_middle_of_a_program(fabric):
    fabric.connected("one", 11)
    fabric.connected("two", 11)
    assert fabric.probes() == []
    fabric.received("one", BARRIER[OPENED])
    assert fabric.probes() == [("one", PROBE)]


def test_an_earlier_connection_that_answers_is_another_switch(fabric):
    program(fabric, "one", 11, "192.0.2.1:1000")
    program(fabric, "two", 11, "192.0.2.2:2000")
    assert fabric.status()["errors"] == {}
    assert fabric.probes() == [("one", PROBE)]
    assert fabric.probes() == []
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
    fabric.connected("new", 11)
    fabric.closed("old")
    assert fabric.probes() == []
    assert fabric.status()["errors"] == {}


@pytest.mark.parametrize("length", range(8, 20))
def test_cut_off_errors_are_read(fabric, length):
    fabric.connected("k", 11)
    fabric.received("k", error(*BAD_GROUP_TYPE, 50)[:length])
    fabric.received("k", BARRIER[OPENED])
    assert "a" in fabric.errors


def test_numbers_without_a_name_stay_numbers():
    assert wire.Error(99, 7, 0, 0).words(names) == "error type 99: code 7"
    assert wire.Error(0xFFFF, 3, 0x2320, 0).words(names) == "error 3 of experimenter 0x2320"
    assert wire.Error(1, 1, 0, 0).words(names) == "bad request: bad type"


def test_a_switch_that_is_back_is_not_programmed_until_it_says_so(fabric):
    """A new connection may come before the old one is known to be dead."""
    program(fabric, "first", 11)
    assert fabric.missing() == ["b"]
    fabric.connected("second", 11)
    assert fabric.missing() == ["a", "b"]
    fabric.closed("first")
    assert fabric.missing() == ["a", "b"]
