"""Flap damping: the penalties of links, or of switches, that go down again and again.

As in BGP's route flap damping (RFC 2439): each flap adds to a penalty, which halves in a constant
time. Above `suppress` a link is suppressed, that is, not used; below `reuse` it is used again.
`controller.upkeep.link_state` has the penalties of links and those of switches. No I/O; the caller
passes the time.
"""

from __future__ import annotations

from math import log2

import numpy as np
from numpy.typing import NDArray

from controller.settings import PENALTY_STEP, Damping

LEAST_PENALTY = 1e-9
"""In place of a penalty of 0, which has no logarithm. It is below every threshold."""


class Penalties:
    """The penalties of n links, or of n switches, which have the numbers from 0 to n - 1.

    Attributes:
        suppressed: bool[n], the links or switches that are not used, as they flap.
    """

    def __init__(self, count: int, damping: Damping) -> None:
        self.damping = damping
        self.suppressed = np.zeros(count, np.bool_)
        self._penalty = np.zeros(count)
        """float64[n], the penalty of each at its last flap."""
        self._last_flap_at = np.zeros(count)
        """float64[n], the time of the last flap of each."""

    def flap(self, number: int, now: float) -> bool:
        """Count a flap of the link or switch of this number; returns whether this suppresses it."""
        largest = max(self.damping.ceiling, self.damping.suppress)
        self._penalty[number] = min(float(self.penalty(now, number)) + PENALTY_STEP, largest)
        self._last_flap_at[number] = now
        was_suppressed = bool(self.suppressed[number])
        self.suppressed[number] |= self._penalty[number] > self.damping.suppress
        return bool(self.suppressed[number]) and not was_suppressed

    def hold(self, number: int, seconds: float, now: float) -> None:
        """Suppress a link or switch as another controller did, whose clock may be wrong.

        Args:
            number: the number of the link or switch.
            seconds: until it is used again, by the other controller's record.
            now: the time.
        """
        most_half_lives = log2(max(self.damping.ceiling / self.damping.reuse, 1))
        half_lives = min(max(seconds / self.damping.half_life, 0), most_half_lives)
        self.suppressed[number], self._last_flap_at[number] = True, now
        self._penalty[number] = self.damping.reuse * 2**half_lives

    def forgive(self, which: NDArray[np.bool_]) -> None:
        """Forget the flaps of the links or switches in bool[n]: something else was the cause."""
        self._penalty[which] = 0.0
        self.suppressed[which] = False

    def release(self, now: float) -> NDArray[np.int64]:
        """End the suppressions whose penalty is low again; returns their numbers, int64[n]."""
        suppressed = np.flatnonzero(self.suppressed)
        released = suppressed[self.penalty(now, suppressed) <= self.damping.reuse]
        self.suppressed[released] = False
        return released

    def penalty(self, now: float, number: int | NDArray[np.int64]) -> NDArray[np.float64]:
        """The penalties at this time, float64[n], of n numbers; a single one of an int."""
        half_lives = (now - self._last_flap_at[number]) / self.damping.half_life
        penalty: NDArray[np.float64] = self._penalty[number] * 0.5**half_lives
        return penalty

    def wait(self, number: int, now: float) -> float:
        """Seconds until a suppressed link or switch is used, if it does not flap again."""
        penalty = float(self.penalty(now, number))
        half_lives = log2(max(penalty, LEAST_PENALTY) / self.damping.reuse)
        return max(0.0, self.damping.half_life * half_lives)
