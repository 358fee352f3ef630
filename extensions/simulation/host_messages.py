"""Messages between hosts that depend on each other, such as those of a collective operation.

A host sends its messages in order, each only when the messages that it depends on have been
received. `collective_completion` and the replay of traces make a `HostMessages`; `packet_kernel`
calls the functions here to know when a host may send (`due`), and tells them of each packet that
is sent or received.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop

Numbers = NDArray[Any]
NOT_DUE = 2**31 - 2
"""Stands for the cycle in which a host sends next, if it has nothing to send or has to wait for a
message. It is one less than `packet_kernel.NEVER`, and the latest cycle in which a host may make a
random packet (`next_packet_cycle`)."""


class HostMessages(NamedTuple):
    """M messages between H hosts, such as those of an MPI program with a rank on each host.

    They are sorted by sender, and the messages of a sender by the order in which it sends them. A
    host sends a message when it has sent its messages before, and has received all messages that
    this one depends on. The simulation changes `awaited`, `ready_cycle`, `unsent`, `unreceived`,
    `next_message`, `link_free` and `done_cycle`; the other fields stay.
    """

    destination_arc: NDArray[np.int32]
    """int32[M], the *arc* of the host that each message goes to. `SimulatedNetwork` numbers the
    ports of all switches as arcs, those of hosts like those of links. Empty if there are no
    messages."""
    sender: NDArray[np.int32]
    """int32[M], the host that sends each message."""
    dependent: NDArray[np.int32]
    """int32[M], the receiver's first message that depends on this message, -1 for none. Later ones
    of the receiver need no entry, as they are sent after that one."""
    awaited: NDArray[np.int32]
    """int32[M], how many messages the sender still has to receive before it may send this one."""
    ready_cycle: NDArray[np.int32]
    """int32[M], the cycle from which the message may be sent, as far as is known: `earliest_cycle`,
    or when the last message that it depends on was received."""
    unsent: NDArray[np.int32]
    """int32[M], how many packets of each message are not yet sent."""
    unreceived: NDArray[np.int32]
    """int32[M], how many packets of each message have not yet arrived."""
    next_message: NDArray[np.int32]
    """int32[H], the message that a host sends next."""
    end_message: NDArray[np.int32]
    """int32[H], the number after the last message of a host, which `next_message` has when all are
    sent."""
    link_free: NDArray[np.int32]
    """int32[H], the cycle from which the host's link is free."""
    earliest_cycle: NDArray[np.int32]
    """int32[M], the cycle from which the message may be sent, if it depends on no other."""
    done_cycle: NDArray[np.int32]
    """int32[M], the cycle in which the last packet of each message has come."""

    @classmethod
    def of(
        cls,
        arcs: Numbers,
        source: Numbers,
        destination: Numbers,
        stage: Numbers,
        releases_stage: Numbers,
        size: int | Numbers,
        earliest: int | Numbers = 0,
    ) -> HostMessages:
        """Messages that hosts send in the order of their stages.

        Args:
            arcs: int[H], the arc of each host (`SimulatedNetwork`).
            source: int[M], the host that sends each message.
            destination: int[M], the host that each goes to.
            stage: int[M], the place of each message in the order of its sender's messages. Messages
                of a stage follow each other in the order of the arrays.
            releases_stage: int[M], the stage from which messages of the receiver depend on it.
            size: int[M], the packets of each message; or one number for all.
            earliest: int[M], the cycle from which each may be sent; or one number for all.
        """
        hosts, stages = len(arcs), int(max(stage.max(), releases_stage.max())) + 1
        by_sender = np.lexsort((stage, source))
        source, destination, stage, releases_stage = (
            source[by_sender],
            destination[by_sender],
            stage[by_sender],
            releases_stage[by_sender],
        )
        size = np.broadcast_to(size, len(by_sender))[by_sender]
        earliest = np.broadcast_to(earliest, len(by_sender))[by_sender]
        # Host h has the messages from first_message[h] to first_message[h + 1].
        first_message = np.searchsorted(source, np.arange(hosts + 1)).astype(np.int32)
        # By message, the receiver's first message of the released stage or a later one. Messages
        # are in the order of this number: host by host, and of a host stage by stage.
        host_and_stage = source.astype(np.int64) * stages + stage
        released = np.searchsorted(host_and_stage, destination * stages + releases_stage)
        is_of_receiver = released < first_message[destination + 1]
        dependent = np.where(is_of_receiver, released, -1).astype(np.int32)
        awaited = np.bincount(dependent[dependent >= 0], minlength=len(dependent))
        return cls(
            destination_arc=arcs[destination].astype(np.int32),
            sender=source.astype(np.int32),
            dependent=dependent,
            awaited=awaited.astype(np.int32),
            ready_cycle=earliest.astype(np.int32),
            unsent=size.astype(np.int32),
            unreceived=size.astype(np.int32),
            next_message=first_message[:-1].copy(),
            end_message=first_message[1:].copy(),
            link_free=np.zeros(hosts, np.int32),
            earliest_cycle=earliest.astype(np.int32),
            done_cycle=np.zeros(len(source), np.int32),
        )

    @property
    def first_due(self) -> NDArray[np.int32]:
        """int32[H], the cycle in which each host sends first; NOT_DUE if it has to wait."""
        # A host without messages may have M as its next message. An entry is added for that; its
        # value does not matter.
        is_waiting = np.append(self.awaited, 0)[self.next_message] > 0
        ready = np.append(self.ready_cycle, 0)[self.next_message]
        has_none = self.next_message == self.end_message
        return np.where(is_waiting | has_none, NOT_DUE, ready).astype(np.int32)

    @classmethod
    def empty(cls) -> HostMessages:
        """No messages: hosts make packets by chance."""
        return cls(*(np.zeros(0, np.int32) for _ in cls._fields))


@inlined_loop
def due(messages: HostMessages, host: int) -> int:
    """The cycle in which a host sends its next packet; NOT_DUE if that is not known yet."""
    message = messages.next_message[host]
    if message == messages.end_message[host] or messages.awaited[message]:
        return NOT_DUE
    return int(max(messages.link_free[host], messages.ready_cycle[message]))


@inlined_loop
def packet_sent(messages: HostMessages, host: int, link_free: int) -> int:
    """Count the next packet of a host as sent.

    Args:
        messages: the messages of all hosts, changed.
        host: the host.
        link_free: the cycle from which its link is free again.

    Returns:
        The message that the packet belongs to.
    """
    message = messages.next_message[host]
    messages.unsent[message] -= 1
    messages.link_free[host] = link_free
    if not messages.unsent[message]:
        messages.next_message[host] += 1
    return int(message)


@inlined_loop
def packet_received(messages: HostMessages, message: int, when: int) -> int:
    """Count a packet of a message as arrived.

    Args:
        messages: the messages of all hosts, changed.
        message: the message.
        when: the cycle.

    Returns:
        The host that may now send, -1 for none: the message has arrived whole, and the next message
        of that host depends on it. The host may have to wait for others as well.
    """
    messages.unreceived[message] -= 1
    dependent = messages.dependent[message]
    messages.done_cycle[message] = max(messages.done_cycle[message], when)
    if messages.unreceived[message] or dependent < 0:
        return -1
    messages.awaited[dependent] -= 1
    messages.ready_cycle[dependent] = max(messages.ready_cycle[dependent], when)
    host = messages.sender[dependent]
    return int(host) if messages.next_message[host] == dependent else -1
