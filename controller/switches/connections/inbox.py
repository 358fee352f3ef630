"""Messages that have arrived, handled in slices so that echo requests need not wait.

A thousand replies may arrive at once. If each were handled on receipt, the echo request of a switch
would wait for all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from compilers.targets.openflow.protocol import Malformed

SLICE = 0.01
"""Seconds of handling before the sockets are served again."""
FULL = 128 << 20
"""Waiting bytes above which receiving stops."""
OWN_FULL = 8 << 20
"""Waiting bytes of one connection above which receiving from it stops."""
NAMED, ENDED = b"named", b"ended"
"""In the place of a message: its switch has named itself, or the connection has ended."""


MOST_BETWEEN = 1.0
"""Seconds between two looks that count as heard at most."""


@dataclass(slots=True)
class ListeningClock:
    """Seconds in which switches could be heard, on a machine that may be very busy.

    Not counted is the time in which we did other work, or fell behind with what they had said. Who
    is behind by the same all the time hears everybody, so that one who never stops talking does not
    keep others that are dead from being missed.
    """

    clock: Callable[[], float]
    _deaf: float = 0.0
    _looked: float | None = None
    _behind: float = 0.0

    def __call__(self) -> float:
        """The time by this clock."""
        return self.clock() - self._deaf

    def look(self, oldest: float | None) -> None:
        """Called a few times a second; oldest: when the first message came that waits, if any."""
        now = self.clock()
        looked = now if self._looked is None else self._looked
        behind = 0.0 if oldest is None else max(0.0, looked - oldest)
        heard = min(now - looked, MOST_BETWEEN) - max(0.0, behind - self._behind)
        self._deaf += now - looked - max(0.0, heard)
        self._looked, self._behind = now, behind


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
    """Messages in the order of their arrival. hub: the framework's; clock: gives seconds."""

    def __init__(self, hub: Any, receiver: Receiver, clock: Callable[[], float]) -> None:
        self._hub, self._receiver, self._clock = hub, receiver, clock
        self._waiting: deque[tuple[MessageSource, bytes, float]] = deque()
        self._bytes = 0
        self._own: dict[MessageSource, int] = {}
        self._arrived = hub.Event()

    def put(self, connection: MessageSource, message: bytes) -> None:
        """Add a message."""
        self._waiting.append((connection, message, self._clock()))
        self._count(connection, len(message))
        if not self._arrived.is_set():
            self._arrived.set()

    def full(self, connection: MessageSource) -> bool:
        """Whether receiving from a connection must pause."""
        return self._bytes > FULL or self._own.get(connection, 0) > OWN_FULL

    @property
    def oldest(self) -> float | None:
        """When the first message came that waits, if any; time 0 while receiving stops for all."""
        if self._bytes > FULL:
            return 0.0
        return self._waiting[0][2] if self._waiting else None

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
                connection, message, _ = self._waiting.popleft()
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
