"""The link whose utilisation by its worst traffic is highest, by branch and bound.

`guarantee` and `failure_guarantees` know an upper bound of each link's utilisation. `WorstLink`
computes the worst traffic of links in the order of these bounds, the highest first, until no
remaining bound is above the highest utilisation so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import CELLS_AT_ONCE, Arcs, Crossings
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_traffic import LOAD_TOLERANCE, WorstTraffic, worst_traffic

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
FIRST_BATCH = 8
"""Links in the first batch; each further batch has twice as many."""


class WorstLink:
    """A search for the worst link.

    Args:
        crossings: the shares of pairs on links.
        arcs: int64[n, 2], the links. The *index* of a link is its place among them.
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
        self.capacity = rates.link_rate[tuple(arcs.T)]
        """float64[n], the rate of each link."""
        self.peak = 0.0
        """The utilisation of the worst link so far."""
        self.worst: WorstTraffic | None = None
        """The worst traffic of this link; None before a link has any load."""
        self.worst_index = 0
        """The index of this link."""
        self.loads: dict[int, float] = {}
        """The load by the worst traffic of each link that was computed, by the link's index."""

    @property
    def share(self) -> float:
        """The share of their rate that all hosts can send, by the worst link so far."""
        return 1 / max(1.0, self.peak)

    def bounds(self, indexes: Numbers) -> Reals:
        """Upper bounds of the utilisation of some links, float64[m].

        Args:
            indexes: int64[m], of the links.
        """
        rates = self.rates.by_switch(*self.crossings.size)
        low_enough = self.peak * float(self.capacity[indexes].min(initial=1))
        load_bounds = self.crossings.bounds(self.arcs[indexes], *rates, low_enough).upper
        return np.asarray(load_bounds / self.capacity[indexes], np.float64)

    def compute(self, indexes: Numbers, bounds: Reals) -> None:
        """Compute links until no remaining one can be worse than the worst so far.

        Args:
            indexes: int64[m], of the links.
            bounds: float64[m], upper bounds of their utilisation.
        """
        order, done_count, batch_size = np.argsort(-bounds, kind="stable"), 0, FIRST_BATCH
        while done_count < len(order):
            if bounds[order[done_count]] <= self.peak * (1 + LOAD_TOLERANCE):
                return
            batch = order[done_count : done_count + batch_size]
            loads = self.rates.between_hosts(self.crossings.loads(self.arcs[indexes[batch]]))
            for index, bound, load in zip(indexes[batch], bounds[batch], loads, strict=True):
                if bound > self.peak * (1 + LOAD_TOLERANCE):
                    self._compute_one(int(index), load)
            done_count += len(batch)
            batch_size = max(1, min(2 * batch_size, CELLS_AT_ONCE // loads[0].size))
            if self.progress:
                self.progress(min(done_count, len(order)), len(order))

    def _compute_one(self, index: int, load: Reals) -> None:
        """Compute the worst traffic of a link.

        Args:
            index: of the link.
            load: float64[H, H], the share of each pair on the link.
        """
        worst = worst_traffic(load, self.rates)
        self.loads[index] = worst.load
        utilisation = worst.load / float(self.capacity[index])
        if utilisation > self.peak * (1 + LOAD_TOLERANCE):
            self.worst, self.peak, self.worst_index = worst, utilisation, index
