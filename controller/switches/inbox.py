"""Messages that have arrived, handled in slices so that echo requests need not wait.

A thousand replies may arrive at once. If each were handled on receipt, the echo request of a switch
would wait for all of them.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from time import perf_counter
from typing import Any, Protocol

from controller.openflow.messages import Malformed

SLICE = 0.01
"""Seconds of handling before the sockets are served again."""
FULL = 128 << 20
"""Waiting bytes above which receiving stops."""
OWN_FULL = 8 << 20
"""Waiting bytes of one connection above which receiving from it stops."""


class MessageSource(Protocol):
    """The connection that a message came from."""

    def end(self) -> None:
        """Close the connection."""

    def abort(self, text: str) -> None:
        """Close the connection because of what its peer did."""


class Receiver(Protocol):
    """A handler of messages."""

    def handle(self, connection: Any, message: bytes) -> None:
        """Handle one message.

        Raises:
            Malformed: it cannot be read.
        """

    def bug(self, error: Exception) -> None:
        """A message could not be handled, which is a bug of ours; its connection is closed."""


class Inbox:
    """Messages in the order of their arrival. hub: the framework's."""

    def __init__(self, hub: Any, receiver: Receiver) -> None:
        self._hub, self._receiver = hub, receiver
        self._waiting: deque[tuple[MessageSource, bytes]] = deque()
        self._bytes = 0
        self._own: dict[MessageSource, int] = {}
        self._arrived = hub.Event()

    def put(self, connection: MessageSource, message: bytes) -> None:
        """Add a message."""
        self._waiting.append((connection, message))
        self._count(connection, len(message))
        if not self._arrived.is_set():
            self._arrived.set()

    def full(self, connection: MessageSource) -> bool:
        """Whether receiving from a connection must pause."""
        return self._bytes > FULL or self._own.get(connection, 0) > OWN_FULL

    def _count(self, connection: MessageSource, size: int) -> None:
        self._bytes += size
        own = self._own.pop(connection, 0) + size
        if own:
            self._own[connection] = own

    def work(self) -> None:
        """Handle messages for ever; a bad message ends only its own connection."""
        while True:
            self._arrived.wait()
            self._arrived.clear()
            began = perf_counter()
            while self._waiting:
                connection, message = self._waiting.popleft()
                self._count(connection, -len(message))
                self._handle(connection, message)
                if perf_counter() - began > SLICE:
                    self._hub.sleep(0)
                    began = perf_counter()

    def _handle(self, connection: MessageSource, message: bytes) -> None:
        try:
            self._receiver.handle(connection, message)
        except Malformed as error:
            connection.abort(str(error))
        except Exception as error:
            with suppress(Exception):  # nothing may end this loop
                self._receiver.bug(error)
                connection.end()
