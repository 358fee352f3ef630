"""The clock of all time-outs of switches: it stops while the controller itself is behind. No I/O.

The switch sessions (`controller.switches.session`) and the listening sockets
(`controller.switches.connections.listening`) have one `ListeningClock`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MOST_COUNTED = 1.0
"""Most seconds that the listening clock advances between two of its updates."""


@dataclass(slots=True)
class ListeningClock:
    """Seconds in which the controller was reading its switches' messages: time-outs count by it.

    It stops while the controller does other work (more than `MOST_COUNTED` between two updates),
    and while its backlog of unread messages is growing. It does not stop while the oldest unread
    message is always equally old, however old: else one switch that never stops sending would keep
    dead ones from being noticed.
    """

    clock: Callable[[], float]
    """A monotonic clock, in seconds."""
    _stopped_seconds: float = 0.0
    """For how many seconds in all this clock has stood still."""
    _last_update: float | None = None
    """When this clock was updated last, by `clock`."""
    _last_delay: float = 0.0
    """How many seconds the oldest unread message had waited at the last update."""

    def __call__(self) -> float:
        """The time by this clock; between two updates no more than `MOST_COUNTED` passes."""
        now = self.clock()
        if self._last_update is not None:
            now = min(now, self._last_update + MOST_COUNTED)
        return now - self._stopped_seconds

    def update(self, oldest: float | None) -> None:
        """Advance the clock; called a few times a second.

        Args:
            oldest: when the oldest unread message came, by `clock`; None if none is unread.
        """
        now = self.clock()
        last_update = now if self._last_update is None else self._last_update
        elapsed = now - last_update
        delay = 0.0 if oldest is None else max(0.0, last_update - oldest)
        counted = min(elapsed, MOST_COUNTED) - max(0.0, delay - self._last_delay)
        self._stopped_seconds += elapsed - max(0.0, counted)
        self._last_update, self._last_delay = now, delay
