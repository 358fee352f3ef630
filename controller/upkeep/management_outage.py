"""After an outage of management, gives switches time to return before they are drained.

While more than half of the switches are away, management itself is taken to have failed, and no
switch is drained. Then switches return in turn, and each has to be read. To drain a healthy switch
meanwhile would change tables that it cannot follow. So the return goes on until no switch has
returned, and none was being read, for three times the patience. Only then are those drained that
are still missing.

A switch that has really failed in the outage must not go unnoticed because others keep returning,
or because management fails again and again. So the seconds that a switch is missing while most
others are back are added up, and have a limit.

No I/O; the caller passes the time.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

RETURN_PATIENCES = 3
"""For how many times the patience no switch has returned when the return is over. Open vSwitch
waits up to 8 s until it tries again to connect, unless it is set otherwise (`max_backoff` in
vswitchd/bridge.c).
"""
MOST_PATIENCES = 6
"""For how many times the patience a switch may be missing while most others are back."""
LONGEST_STEP = 1.0
"""Most seconds that count from one update to the next: the controller itself may have paused."""


class ManagementOutage:
    """When management has failed, and which of S switches are given time to return after it.

    Args:
        switches: S, the number of switches.
        patience: seconds that a switch may be away before it is drained.
    """

    def __init__(self, switches: int, patience: float) -> None:
        self._patience = patience
        self._over_at = -inf
        """When the return is over, if no further switch returns or is read before."""
        self._missing = np.zeros(switches)
        """float64[S], the seconds that each has been missing while most others were back."""
        self._connected = np.zeros(switches, np.bool_)
        """bool[S], the switches that were connected at the last update."""
        self._most_were_away = False
        """Whether most switches were away at the last update."""
        self._updated_at = inf
        """The time of the last update; inf before the first."""

    def update(
        self,
        connected: NDArray[np.bool_],
        unread: NDArray[np.bool_],
        most_are_away: bool,
        now: float,
    ) -> None:
        """Take the state of all switches.

        Args:
            connected: bool[S], the switches that are connected.
            unread: bool[S], those of them that have not been read since they returned.
            most_are_away: whether more than half of the switches are away.
            now: the time.
        """
        elapsed = min(max(now - self._updated_at, 0.0), LONGEST_STEP)
        is_missing = ~connected | unread
        self._missing[~is_missing] = 0
        if not most_are_away:
            self._missing[is_missing] += elapsed
        has_returned = bool((connected & ~self._connected).any())
        is_being_read = bool((unread & self._has_time).any())
        goes_on = now < self._over_at and (has_returned or is_being_read)
        if most_are_away or self._most_were_away or goes_on:
            self._over_at = now + RETURN_PATIENCES * self._patience
        self._most_were_away = most_are_away
        self._connected, self._updated_at = connected.copy(), now

    def may_return(self, now: float) -> NDArray[np.bool_]:
        """bool[S]: the switches that, if they are missing now, are not to be drained for it yet."""
        return self._has_time & (now < self._over_at)

    @property
    def _has_time(self) -> NDArray[np.bool_]:
        """bool[S]: the switches that have not been missing for too long."""
        return self._missing < MOST_PATIENCES * self._patience
