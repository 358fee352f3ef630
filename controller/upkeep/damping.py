"""Damping of links and switches that flap (RFC 2439, §4, for these instead of routes).

Each time one goes down its penalty grows by one step; it halves in every half-life. Above the
upper threshold it is suppressed: it counts as dead even when up, until the penalty has fallen
below the lower one. A ceiling bounds how long that takes. The caller passes the time.
"""

from __future__ import annotations

from math import log2

import numpy as np
from numpy.typing import NDArray

from controller.settings import PENALTY_STEP, Damping


class Penalties:
    """The penalties of n links, or of n switches."""

    def __init__(self, count: int, damping: Damping) -> None:
        self.damping = damping
        self.suppressed = np.zeros(count, np.bool_)
        self._penalty = np.zeros(count)
        self._since = np.zeros(count)

    def flap(self, link: int, now: float) -> bool:
        """A link has gone down; returns whether this suppresses it."""
        most = max(self.damping.ceiling, self.damping.suppress)
        self._penalty[link] = min(float(self.penalty(now, link)) + PENALTY_STEP, most)
        self._since[link] = now
        before = bool(self.suppressed[link])
        self.suppressed[link] |= self._penalty[link] > self.damping.suppress
        return bool(self.suppressed[link]) and not before

    def hold(self, number: int, seconds: float, now: float) -> None:
        """Suppress one for so long, as another controller knew it, whose clock may be wrong."""
        longest = log2(max(self.damping.ceiling / self.damping.reuse, 1))
        halves = min(max(seconds / self.damping.half_life, 0), longest)
        self.suppressed[number], self._since[number] = True, now
        self._penalty[number] = self.damping.reuse * 2**halves

    def release(self, now: float) -> NDArray[np.int64]:
        """int64[n]: the links that became usable since the last call."""
        suppressed = np.flatnonzero(self.suppressed)
        calm = suppressed[self.penalty(now, suppressed) <= self.damping.reuse]
        self.suppressed[calm] = False
        return calm

    def penalty(self, now: float, link: int | NDArray[np.int64]) -> NDArray[np.float64]:
        """The penalties of these links at this time: float64[n], or of one."""
        halves = (now - self._since[link]) / self.damping.half_life
        faded: NDArray[np.float64] = self._penalty[link] * 0.5**halves
        return faded

    def wait(self, link: int, now: float) -> float:
        """Seconds until a suppressed link is used, if it does not flap again."""
        penalty = float(self.penalty(now, link))
        return max(0.0, self.damping.half_life * log2(max(penalty, 1e-9) / self.damping.reuse))
