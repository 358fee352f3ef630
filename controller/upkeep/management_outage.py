"""After an outage of management, gives switches time to return before they are drained.

While more than half of the switches are away, management itself is taken to have failed, and no
switch is drained. Then the switches return in turn, and each has to be read. To drain a healthy one
meanwhile would change tables that it cannot follow. So the switches that were away are *awaited*,
each until it has returned and was read. None is awaited any more when no switch has returned, and
none was being read, for `RETURN_PAUSE`.

A switch that has really failed in the outage must not go unnoticed because others keep returning,
or because management fails again and again. So no switch is awaited for longer than `RETURN_LIMIT`;
only the time in which most others are back counts.

No I/O; the caller passes the time.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

RETURN_PAUSE = 15.0
"""Seconds without a return after which no switch is awaited. Open vSwitch waits up to 8 s until it
tries again to connect, unless it is set otherwise (`max_backoff` in vswitchd/bridge.c).
"""
RETURN_LIMIT = 25.0
"""Most seconds for which a switch is awaited while most others are back. A move waits longer on its
way back (`controller.rollout.rollout.ROLLOUT_PATIENCE`).
"""
LONGEST_STEP = 1.0
"""Most seconds that count from one update to the next: in a move there may be none for long."""


class ManagementOutage:
    """Whether management has failed, and which of S switches are awaited after it.

    Args:
        switches: S, the number of switches.
        patience: seconds that a switch may be away before it is drained; `RETURN_PAUSE` and
            `RETURN_LIMIT` are at least as long.
    """

    def __init__(self, switches: int, patience: float) -> None:
        self._pause, self._limit = max(RETURN_PAUSE, patience), max(RETURN_LIMIT, patience)
        self._awaited = np.zeros(switches, np.bool_)
        """bool[S], the switches that were away in the outage and have not returned yet."""
        self._awaited_for = np.zeros(switches)
        """float64[S], the seconds for which each has been awaited while most others were back."""
        self._return_over_at = -inf
        """When no switch is awaited any more, if none returns or is being read before."""
        self._updated_at = inf
        """The time of the last update; inf before the first."""

    def begin(self, away: NDArray[np.bool_]) -> None:
        """Await these switches, bool[S], which are away: they are more than half of all."""
        self._awaited |= away

    def update(self, connected: NDArray[np.bool_], unread: NDArray[np.bool_], now: float) -> None:
        """Note which switches have returned, while at least half of all are connected.

        Args:
            connected: bool[S], the switches that are connected.
            unread: bool[S], those that have not been read since they returned.
            now: the time.
        """
        if (self._awaited & connected).any():
            self._return_over_at = now + self._pause
        self._awaited &= (unread | ~connected) & (now < self._return_over_at)
        elapsed = min(max(now - self._updated_at, 0.0), LONGEST_STEP)
        self._awaited_for = np.where(self._awaited, self._awaited_for + elapsed, 0.0)
        self._updated_at = now

    @property
    def awaited(self) -> NDArray[np.bool_]:
        """bool[S]: the switches that are not to be drained yet for being away or unread."""
        return self._awaited & (self._awaited_for < self._limit)
