"""The send queue of one switch: order and limits. No I/O.

A connection (`controller.switches.connections.connection`) puts messages into a `SendQueue` and
takes bytes to send from it. A message that is waited for (an echo reply, a request, a packet-out)
goes ahead of bulk, but never into the middle of another message.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from controller.openflow.messages import boundary

SEND_CHUNK_BYTES = 64 * 1024
"""Bytes of bulk sent at once; an urgent message waits for no more than these."""
MOST_URGENT_BYTES = 1 << 20
"""Most bytes of urgent messages that may wait. More wait only if the switch does not read."""


class SendPriority(IntEnum):
    """The priority of a message. Messages of one priority stay in their order."""

    URGENT = 0
    BULK = 1


@dataclass(frozen=True, slots=True)
class QueuedData:
    """Data to send on a connection."""

    key: Any
    """The connection."""
    priority: SendPriority
    """When it is sent, compared with other data."""
    data: bytes | None
    """The bytes; None closes the connection."""


class Outbox(list[QueuedData]):
    """Collects what is sent where there are no sockets, in order."""

    def __call__(self, key: Any, priority: SendPriority, data: bytes | None) -> None:
        """Add data."""
        self.append(QueuedData(key, priority, data))

    def take(self) -> list[QueuedData]:
        """What has been sent since the last call."""
        out = self[:]
        self.clear()
        return out


class Overflow(Exception):
    """A switch sends requests and does not read the replies."""


class SendQueue:
    """The bytes waiting to be sent on one connection."""

    def __init__(self) -> None:
        self._urgent: deque[bytes] = deque()
        """The urgent messages."""
        self._bulk: deque[memoryview] = deque()
        """The bulk data, each entry the bytes of one or more messages."""
        self._start = 0
        """How many bytes of the first entry of `_bulk` have been taken."""
        self._urgent_bytes = 0
        """The bytes of all urgent messages."""
        self._rest: bytes | memoryview = b""
        """Bytes that were taken and could not be sent."""

    def __bool__(self) -> bool:
        return bool(self._rest or self._urgent or self._bulk)

    def put(self, priority: SendPriority, data: bytes) -> None:
        """Queue whole messages; bulk is not copied.

        Raises:
            Overflow: more than `MOST_URGENT_BYTES` of urgent messages wait.
        """
        if priority == SendPriority.BULK:
            if data:
                self._bulk.append(memoryview(data))
            return
        self._urgent_bytes += len(data)
        if self._urgent_bytes > MOST_URGENT_BYTES:
            raise Overflow
        self._urgent.append(data)

    def take(self) -> bytes | memoryview:
        """The bytes to send next.

        These are, in this order: the bytes that were put back, else all urgent messages, else whole
        bulk messages of about `SEND_CHUNK_BYTES`.
        """
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        if self._urgent:
            data = b"".join(self._urgent)
            self._urgent.clear()
            self._urgent_bytes = 0
            return data
        chunk: list[memoryview] = []
        room = SEND_CHUNK_BYTES
        while room > 0 and self._bulk:
            messages, start = self._bulk[0], self._start
            self._start = end = boundary(messages, start, room)
            chunk.append(messages[start:end])
            room -= end - start
            if end == len(messages):
                self._bulk.popleft()
                self._start = 0
        return chunk[0] if len(chunk) == 1 else b"".join(chunk)

    def put_back(self, rest: bytes | memoryview) -> None:
        """Put back bytes that were taken and could not be sent."""
        self._rest = rest

    def waiting(self) -> int:
        """The number of waiting bytes."""
        return len(self._rest) + self._urgent_bytes + sum(map(len, self._bulk)) - self._start
