import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import MessageType
from controller.switches.connections.sending import (
    MOST_URGENT_BYTES,
    Overflow,
    SendPriority,
    SendQueue,
)


def messages(data):
    """The messages that bytes are made of, by their xids."""
    found = []
    while data:
        _, length, xid = protocol.header(data)
        found.append(xid)
        assert len(data) >= length, "a message that is cut"
        data = data[length:]
    return found


def program(first, count, size=500):
    return b"".join(protocol.message(14, first + i, bytes(size)) for i in range(count))


def test_an_echo_reply_waits_for_one_chunk_at_most():
    queue = SendQueue()
    queue.put(SendPriority.BULK, program(0, 1000))
    queue.take()
    queue.put(SendPriority.URGENT, protocol.message(MessageType.ECHO_REPLY, 9999))
    assert messages(queue.take()) == [9999]


puts = st.lists(st.tuples(st.sampled_from(SendPriority), st.integers(1, 30)), max_size=12)


@given(puts, st.lists(st.booleans(), max_size=40))
def test_each_priority_keeps_its_order_and_nothing_is_lost(puts, turns):
    queue, sent, number = SendQueue(), [], 0
    wanted = {priority: [] for priority in SendPriority}
    for priority, count in puts:
        queue.put(priority, program(number, count, 3000))
        wanted[priority] += range(number, number + count)
        number += count
        while queue and turns and turns.pop():
            sent += messages(bytes(queue.take()))
    assert queue.waiting() == (number - len(sent)) * 3008
    while queue:
        sent += messages(bytes(queue.take()))
    for priority in SendPriority:
        chosen = set(wanted[priority])
        assert [xid for xid in sent if xid in chosen] == wanted[priority]
    assert queue.waiting() == 0


def test_a_peer_that_asks_and_does_not_read_is_too_much():
    queue, answer = SendQueue(), protocol.message(MessageType.ECHO_REPLY, 0, bytes(60000))
    for _ in range(MOST_URGENT_BYTES // len(answer)):
        queue.put(SendPriority.URGENT, answer)
    with pytest.raises(Overflow):
        queue.put(SendPriority.URGENT, answer)
