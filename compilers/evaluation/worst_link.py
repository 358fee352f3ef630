"""The link that the worst traffic loads most, by what it carries, of many links.

Bounds say what each may carry at most. Links are looked at from the highest bound on, until no
other can be worse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import CELLS, Arcs, Crossings
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_traffic import CLOSE, WorstTraffic, worst_traffic

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
FEW = 8
"""Links that are looked at at a time, the first time."""


class WorstLink:
    """A search for the worst link.

    Args:
        crossings: who crosses links.
        arcs: int64[n, 2], the links.
        rates: of hosts and links.
        progress: called with (links looked at, all links).
    """

    def __init__(
        self,
        crossings: Crossings,
        arcs: Arcs,
        rates: HostRates,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.crossings, self.arcs, self.rates, self.progress = crossings, arcs, rates, progress
        self.carries = rates.links[tuple(arcs.T)]
        self.peak = 0.0
        """The load of the worst link by then, by what it carries."""
        self.worst: WorstTraffic | None = None
        """The traffic that loads it so; None before a link is crossed."""
        self.full = 0
        """The number of this link among `arcs`."""
        self.loads: dict[int, float] = {}
        """The load of each link that was looked at, by its number."""

    @property
    def share(self) -> float:
        """The share of their rate that all hosts can send, by the worst link by then."""
        return 1 / max(1.0, self.peak)

    def bounds(self, numbers: Numbers) -> Reals:
        """float64[m], what some links carry at most, by what they can carry.

        Args:
            numbers: int64[m], of links.
        """
        ends = self.rates.ends(*self.crossings.size)
        enough = self.peak * float(self.carries[numbers].min(initial=1))
        most = self.crossings.bounds(self.arcs[numbers], *ends, enough).most
        return np.asarray(most / self.carries[numbers], np.float64)

    def look(self, numbers: Numbers, most: Reals) -> None:
        """Look for a link that is worse.

        Args:
            numbers: int64[m], of links.
            most: float64[m], their bounds.
        """
        order, done, step = np.argsort(-most, kind="stable"), 0, FEW
        while done < len(order) and most[order[done]] > self.peak * (1 + CLOSE):
            some = order[done : done + step]
            loads = self.rates.pairs(self.crossings.loads(self.arcs[numbers[some]]))
            for number, bound, load in zip(numbers[some], most[some], loads, strict=True):
                if bound > self.peak * (1 + CLOSE):
                    self._look_at(int(number), load)
            done += len(some)
            step = max(1, min(2 * step, CELLS // loads[0].size))
            if self.progress:
                self.progress(min(done, len(order)), len(order))

    def _look_at(self, number: int, load: Reals) -> None:
        """Look at one link, by float64[H, H], who crosses it."""
        worst = worst_traffic(load, self.rates)
        self.loads[number] = worst.load
        loaded = worst.load / float(self.carries[number])
        if loaded > self.peak * (1 + CLOSE):
            self.worst, self.peak, self.full = worst, loaded, number
