"""Sessions as other parts of the controller use them: builds, changes, upkeep, requests."""

import numpy as np
import pytest

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow import protocol
from controller.openflow import multipart as reading
from controller.state import State
from controller.switches.current import Current
from tests.controller.switches.session_talk import (
    BAD_GROUP_TYPE,
    COMMITTED,
    OPENED,
    REPLY,
    Programs,
    barrier,
    commit,
    connect,
    entries,
    error,
    multipart,
    program,
    questions,
    row,
    sent,
    tell,
)


def test_another_build_is_loaded_while_it_runs(fabric):
    program(fabric, 1, 11)
    program(fabric, 2, 12)
    fabric.load(Current("new", ("x", "y"), Programs(12, 13)))
    assert State.of(fabric).status["unknown"] == [f"{11:016x}"]
    assert fabric.missing() == ["x", "y"]
    data = tell(fabric, 2, entries(Programs().program(1)))
    assert row(0).tobytes() in data
    assert barrier(fabric, 2, 11 << 24 | 2) == rows.commit() + rows.barrier(3)
    commit(fabric, 2, 11 << 24 | 3)
    assert State.of(fabric).status["programmed"] == ["x"]


def test_a_build_loaded_in_the_middle_of_a_push_comes_after_it(fabric):
    connect(fabric, "k", 11)
    fabric.load(Current("new", ("a", "b"), Programs(12, 11)))
    barrier(fabric, "k", OPENED)
    fabric.received("k", REPLY)
    fabric.received("k", protocol.message(protocol.MessageType.BARRIER_REPLY, COMMITTED))
    assert State.of(fabric).status["programmed"] == []
    data = tell(fabric, "k", entries(Programs().program(0)))
    assert row(1).tobytes() in data


def test_changes_of_others_come_one_after_the_other_and_are_told_apart(fabric):
    program(fabric, "k", 11)
    outcomes = []
    fabric.present[0].talk.change([row(5).tobytes()], outcomes.append)
    fabric.present[0].talk.change([row(6).tobytes()], outcomes.append)
    assert row(6).tobytes() not in sent(fabric, "k")
    fabric.received("k", error(*BAD_GROUP_TYPE, 55))
    assert row(6).tobytes() in barrier(fabric, "k", 11 << 24 | 2)
    assert [(o.committed, o.error.xid, o.lost) for o in outcomes] == [(False, 55, False)]
    fabric.closed("k")
    assert (outcomes[1].committed, outcomes[1].lost) == (False, True)


def test_questions_of_others_are_answered(fabric):
    program(fabric, "k", 12)
    answers = []
    fabric.present[1].talk.ask(protocol.Multipart.PORT_STATS, reading.ports_body(), answers.append)
    (xid,) = questions(fabric, "k").values()
    stats = np.zeros(3, protocol.PORT_STATS.dtype)
    stats["port"], stats["sent_bytes"] = [1, 2, 3], [10, 20, 30]
    fabric.received("k", multipart(4, xid, stats.tobytes()))
    (body,) = answers
    assert reading.records(body, protocol.PORT_STATS)["sent_bytes"].tolist() == [10, 20, 30]
    fabric.present[1].talk.ask(protocol.Multipart.PORT_DESC, b"", answers.append)
    fabric.closed("k")
    assert answers[1:] == [None]


@pytest.mark.parametrize("body", [b"\0", bytes(56), b"\0\x38" + bytes(53), b"\xff\xff" + bytes(60)])
def test_replies_that_cannot_be_read_are_malformed(fabric, body):
    fabric.connected("k", 12)
    asked = questions(fabric, "k")
    fabric.received("k", multipart(1, asked[1], body))
    with pytest.raises(Malformed):
        fabric.received("k", multipart(7, asked[7]))
