"""Messages between hosts that wait for each other, such as those of a collective operation.

`packet_kernel` asks them when hosts send and when packets come. A host sends its messages in order,
each when the messages that it needs have come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop

Numbers = NDArray[Any]
IDLE = 2**31 - 2
"""In place of the cycle in which a host sends: it has nothing to send now."""


class HostMessages(NamedTuple):
    """M messages, host by host, in the order in which each host sends them, as in an MPI program.

    A host sends a message when it has sent the messages before it, and when as many messages as
    `waits` says have come.
    """

    destination: NDArray[np.int32]
    """int32[M], the arc of the host that it goes to."""
    sender: NDArray[np.int32]
    """int32[M], the host that sends it."""
    next_message: NDArray[np.int32]
    """int32[M], the receiver's first message that needs it, -1 for none."""
    waits: NDArray[np.int32]
    """int32[M], how many messages its sender must have received before."""
    ready: NDArray[np.int32]
    """int32[M], the cycle in which the last message that it needs has come."""
    sending: NDArray[np.int32]
    """int32[M], how many of its packets are not yet sent."""
    coming: NDArray[np.int32]
    """int32[M], how many of its packets have not yet arrived."""
    head: NDArray[np.int32]
    """int32[H], the next message of a host."""
    last: NDArray[np.int32]
    """int32[H], the message after the last one of a host."""
    free: NDArray[np.int32]
    """int32[H], the cycle from which its link is free."""
    earliest: NDArray[np.int32]
    """int32[M], the cycle from which the message may be sent, if it needs no other message."""
    done: NDArray[np.int32]
    """int32[M], the cycle in which its last packet has come."""

    @classmethod
    def of(
        cls,
        arcs: Numbers,
        source: Numbers,
        destination: Numbers,
        stage: Numbers,
        releases_stage: Numbers,
        size: int | Numbers,
        ready: int | Numbers = 0,
    ) -> HostMessages:
        """Messages that hosts send in the order of their stages.

        Args:
            arcs: int[H], the arcs of the hosts.
            source: int[M], the host that sends each message.
            destination: int[M], the host that it goes to.
            stage: int[M], its place in the order of the host's messages.
            releases_stage: int[M], the stage from which messages of its receiver wait for it.
            size: int[M], the packets of each message; or one number for all.
            ready: int[M], the cycle from which it may be sent; or one number for all.
        """
        hosts, stages = len(arcs), int(max(stage.max(), releases_stage.max())) + 1
        order = np.lexsort((stage, source))
        source, destination, stage, releases_stage = (
            source[order],
            destination[order],
            stage[order],
            releases_stage[order],
        )
        size = np.broadcast_to(size, len(order))[order]
        ready = np.broadcast_to(ready, len(order))[order]
        bounds = np.searchsorted(source, np.arange(hosts + 1)).astype(np.int32)
        # Messages are in the order of this number: host by host, and of a host stage by stage.
        host_and_stage = source.astype(np.int64) * stages + stage
        released = np.searchsorted(host_and_stage, destination * stages + releases_stage)
        next_message = np.where(released < bounds[destination + 1], released, -1).astype(np.int32)
        return cls(
            destination=arcs[destination].astype(np.int32),
            sender=source.astype(np.int32),
            next_message=next_message,
            waits=np.bincount(next_message[next_message >= 0], minlength=len(next_message)).astype(
                np.int32
            ),
            ready=ready.astype(np.int32),
            sending=size.astype(np.int32),
            coming=size.astype(np.int32),
            head=bounds[:-1].copy(),
            last=bounds[1:].copy(),
            free=np.zeros(hosts, np.int32),
            earliest=ready.astype(np.int32),
            done=np.zeros(len(order), np.int32),
        )

    @property
    def first_due(self) -> NDArray[np.int32]:
        """int32[H], the cycle in which each host sends first; IDLE if it has to wait."""
        # A host without messages has a head that may be behind the last message.
        is_waiting = np.append(self.waits, 1)[self.head] > 0
        ready = np.append(self.ready, 0)[self.head]
        has_none = self.head == self.last
        return np.where(is_waiting | has_none, IDLE, ready).astype(np.int32)

    @classmethod
    def none(cls) -> HostMessages:
        """No messages: hosts make packets by chance."""
        return cls(*(np.zeros(0, np.int32) for _ in cls._fields))


@inlined_loop
def due(messages: HostMessages, host: int) -> int:
    """The cycle in which a host sends its next packet; IDLE if that is not known yet."""
    message = messages.head[host]
    if message == messages.last[host] or messages.waits[message]:
        return IDLE
    return int(max(messages.free[host], messages.ready[message]))


@inlined_loop
def packet_sent(messages: HostMessages, host: int, free: int) -> int:
    """Count the next packet of a host as sent; returns the message that it belongs to.

    Args:
        messages: of all hosts, changed.
        host: the host.
        free: the cycle from which its link is free again.
    """
    message = messages.head[host]
    messages.sending[message] -= 1
    messages.free[host] = free
    if not messages.sending[message]:
        messages.head[host] += 1
    return int(message)


@inlined_loop
def packet_came(messages: HostMessages, message: int, when: int) -> int:
    """Count a packet of a message as arrived.

    Args:
        messages: of all hosts, changed.
        message: the message.
        when: the cycle.

    Returns:
        The host whose next message now waits for one message less; -1: none.
    """
    messages.coming[message] -= 1
    after = messages.next_message[message]
    messages.done[message] = max(messages.done[message], when)
    if messages.coming[message] or after < 0:
        return -1
    messages.waits[after] -= 1
    messages.ready[after] = max(messages.ready[after], when)
    host = messages.sender[after]
    return int(host) if messages.head[host] == after else -1
