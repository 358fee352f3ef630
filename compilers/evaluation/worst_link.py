"""The link whose utilisation by its worst traffic is highest.

Each link has a bound of this utilisation. The worst traffic of links is computed, the highest bound
first, until no remaining link can be worse.
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
"""Links in the first batch; each further batch has twice as many."""


class WorstLink:
    """A search for the worst link.

    Args:
        crossings: the shares of pairs on links.
        arcs: int64[n, 2], the links.
        rates: the rates of hosts and links.
        progress: called with (links done, all links).
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
        """float64[n], what each link carries."""
        self.peak = 0.0
        """The utilisation of the worst link so far."""
        self.worst: WorstTraffic | None = None
        """The worst traffic of this link; None before a link has any load."""
        self.full = 0
        """The number of this link among `arcs`."""
        self.loads: dict[int, float] = {}
        """The load by the worst traffic of each link that was computed, by the link's number."""

    @property
    def share(self) -> float:
        """The share of their rate that all hosts can send, by the worst link so far."""
        return 1 / max(1.0, self.peak)

    def bounds(self, numbers: Numbers) -> Reals:
        """float64[m], the utilisation of each link that no traffic exceeds.

        Args:
            numbers: int64[m], of links.
        """
        ends = self.rates.ends(*self.crossings.size)
        enough = self.peak * float(self.carries[numbers].min(initial=1))
        most = self.crossings.bounds(self.arcs[numbers], *ends, enough).most
        return np.asarray(most / self.carries[numbers], np.float64)

    def compute(self, numbers: Numbers, most: Reals) -> None:
        """Compute links until no remaining one can be worse than the worst so far.

        Args:
            numbers: int64[m], of links.
            most: float64[m], the bounds of their utilisation.
        """
        order, done, step = np.argsort(-most, kind="stable"), 0, FEW
        while done < len(order) and most[order[done]] > self.peak * (1 + CLOSE):
            batch = order[done : done + step]
            loads = self.rates.pairs(self.crossings.loads(self.arcs[numbers[batch]]))
            for number, bound, load in zip(numbers[batch], most[batch], loads, strict=True):
                if bound > self.peak * (1 + CLOSE):
                    self._compute_one(int(number), load)
            done += len(batch)
            step = max(1, min(2 * step, CELLS // loads[0].size))
            if self.progress:
                self.progress(min(done, len(order)), len(order))

    def _compute_one(self, number: int, load: Reals) -> None:
        """Compute the worst traffic of a link.

        Args:
            number: of the link.
            load: float64[H, H], the share of each pair on the link.
        """
        worst = worst_traffic(load, self.rates)
        self.loads[number] = worst.load
        utilisation = worst.load / float(self.carries[number])
        if utilisation > self.peak * (1 + CLOSE):
            self.worst, self.peak, self.full = worst, utilisation, number
