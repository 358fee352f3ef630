"""The weights whose worst traffic is least bad: oblivious routing over the options of tables.

The worst traffic for a link, where no switch sends or gets more than its hosts can, is a matching
of sources to destinations (Azar et al. 2003; Applegate and Cohen 2003). In rounds every link finds
its worst matching for the weights so far, and an option loses weight by what these load, most of
all those of the hottest links (mirror descent). The matchings with the links' prices bound what any
weights reach, so the gap to the optimum is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths, Reals, ShareSets

ROUNDS = 300
CLOSE = 0.05
"""The relative gap between the worst load and what no weights avoid at which it ends."""
FORGET = 0.02
"""What a round's matchings count for in the mean that bounds."""
STEEP = (8.0, 88.0)
"""The exponents of load that prices rise with, in the first round and the last."""
LEAST = 1e-9
"""The least share, so that none is lost for good."""
SLOW = 30
"""How much smaller the last step is than the first."""


class WorstCase(NamedTuple):
    """Shares, float64[G, W]; the hottest link's load under the worst traffic; what none avoids."""

    shares: Reals
    worst: float
    bound: float


def worst_case(paths: FlowPaths, traffic: Traffic, largest: float = 1.0) -> WorstCase:
    """The shares that load the hottest link least under whatever traffic is worst for them.

    Args:
        paths: of `traffic`, with its flows.
        traffic: every pair of switches with hosts, each with all that a switch sends.
        largest: the largest share of an option.
    """
    sets, arcs = ShareSets.of(paths, largest), _arcs(paths, traffic)
    options, shares, mean, weight = paths.options, sets.even(), np.zeros(paths.options.shape), 0.0
    best = WorstCase(shares, np.inf, 0.0)
    for round_ in range(ROUNDS):
        done = round_ / ROUNDS
        matched = [arc.worst(shares[options]) for arc in arcs]
        loads = np.array([load for load, _ in matched])
        if loads.max() < best.worst:
            best = best._replace(shares=shares, worst=float(loads.max()))
        prices = (loads / loads.max()) ** (STEEP[0] + (STEEP[1] - STEEP[0]) * done)
        prices /= prices.sum()
        crossed = [share for _, share in matched]
        pays = np.repeat(prices, list(map(len, crossed)))
        cost = np.zeros(options.shape)
        cost[options] = np.bincount(
            np.concatenate(crossed), pays, minlength=np.count_nonzero(options)
        )
        mean, weight = (1 - FORGET) * mean + cost, (1 - FORGET) * weight + 1
        best = best._replace(bound=max(best.bound, sets.least(mean) / weight))
        if best.worst <= (1 + CLOSE) * best.bound:
            break
        dearer = np.where(options, cost - np.where(options, cost, np.inf).min(axis=1)[:, None], 0)
        step = 1 / (max(float(dearer.max()), 1e-300) * (1 + SLOW * done))
        shares = sets.scaled(np.maximum(shares * np.exp(-dearer * step), LEAST * options))
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Arc:
    """The flows that can cross an arc: int64[n], the share by which, and source and destination as
    places in a matrix of this size.
    """

    share: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    size: tuple[int, int]

    def worst(self, shares: Reals) -> tuple[float, NDArray[np.int64]]:
        """The load of the worst matching, and the shares that load it."""
        from scipy.optimize import linear_sum_assignment

        place = self.row * self.size[1] + self.column
        load = np.bincount(place, shares[self.share], minlength=self.size[0] * self.size[1])
        rows, columns = linear_sum_assignment(load.reshape(self.size), maximize=True)
        matched = np.zeros(len(load), np.bool_)
        matched[rows * self.size[1] + columns] = True
        return float(load[matched].sum()), self.share[matched[place]]


def _arcs(paths: FlowPaths, traffic: Traffic) -> list[_Arc]:
    """Those that any flow can cross."""
    order = np.argsort(paths.arc, kind="stable")
    starts = np.flatnonzero(np.diff(paths.arc[order], prepend=-1))
    result = []
    for some in np.split(order, starts[1:]):
        flow = paths.flow[some]
        sources, row = np.unique(traffic.source[flow], return_inverse=True)
        ends, column = np.unique(traffic.destination[flow], return_inverse=True)
        size = len(sources), len(ends)
        result.append(_Arc(paths.share[some].astype(np.int64), row.ravel(), column.ravel(), size))
    return result
