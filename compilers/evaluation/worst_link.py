"""The link whose utilisation by its worst traffic is highest, found with upper bounds.

`guarantee` and `failure_guarantees` know an upper bound of each link's utilisation. `WorstLink`
computes the worst traffic of links in the order of these bounds, the highest first, until no
remaining bound is above the highest utilisation so far. So most links are never computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import SHARES_AT_ONCE, Arcs, Crossings
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_traffic import LOAD_TOLERANCE, WorstTraffic, worst_traffic

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
FIRST_BATCH = 8
"""Links in the first batch; each further batch has twice as many."""


class WorstLink:
    """A search for the worst link, and the worst link so far.

    `compute` may be called several times, with further links. Before a link with a load was found,
    `peak` is 0 and `worst` is None.

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
        """The utilisation of the worst link so far. A caller that knows the utilisation of other
        links may raise it, so that fewer links are computed."""
        self.worst: WorstTraffic | None = None
        """The worst traffic of the worst link so far; None before a link has any load."""
        self.worst_index = 0
        """The index of the worst link so far; meaningless as long as `worst` is None."""
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
        # No link with such a load, however small its rate, exceeds the peak: bounds below it need
        # not be tighter.
        harmless_load = self.peak * float(self.capacity[indexes].min(initial=1))
        load_bounds = self.crossings.bounds(self.arcs[indexes], *rates, harmless_load).upper
        return np.asarray(load_bounds / self.capacity[indexes], np.float64)

    def compute(self, indexes: Numbers, bounds: Reals) -> None:
        """Compute links until no remaining one can be worse than the worst so far.

        Args:
            indexes: int64[m], of the links.
            bounds: float64[m], upper bounds of their utilisation.
        """
        by_bound = np.argsort(-bounds, kind="stable")  # the highest first
        done_count, batch_size = 0, FIRST_BATCH
        while done_count < len(by_bound):
            if not self._exceeds_peak(bounds[by_bound[done_count]]):
                return
            batch = by_bound[done_count : done_count + batch_size]
            # float64[batch, H, H], the share of each pair's packets that crosses each link.
            crossing = self.rates.between_hosts(self.crossings.shares(self.arcs[indexes[batch]]))
            links = zip(indexes[batch], bounds[batch], crossing, strict=True)
            for index, bound, crossing_share in links:
                if self._exceeds_peak(bound):
                    self._compute_link(int(index), crossing_share)
            done_count += len(batch)
            batch_size = max(1, min(2 * batch_size, SHARES_AT_ONCE // crossing[0].size))
            if self.progress:
                self.progress(min(done_count, len(by_bound)), len(by_bound))

    def _exceeds_peak(self, utilisation: float) -> bool:
        """Whether a utilisation is above that of the worst link so far."""
        return bool(utilisation > self.peak * (1 + LOAD_TOLERANCE))

    def _compute_link(self, index: int, crossing_share: Reals) -> None:
        """Compute the worst traffic of a link.

        Args:
            index: the index of the link.
            crossing_share: float64[H, H], the share of each pair's packets that crosses the link.
        """
        traffic = worst_traffic(crossing_share, self.rates)
        self.loads[index] = traffic.load
        utilisation = traffic.load / float(self.capacity[index])
        if self._exceeds_peak(utilisation):
            self.worst, self.peak, self.worst_index = traffic, utilisation, index
