"""Shares against the worst traffic: oblivious routing over the next hops of tables.

Where no switch sends or gets more than its hosts can, the worst traffic for a link is a matching of
sources to destinations (Azar et al. 2003; Applegate and Cohen 2003). Shares are found by mirror
descent. In each round every link finds its worst matching for the shares so far; then next hops
lose share by what these matchings load over them, most of all on the hottest links. The mean of the
matchings, weighted with the links' prices, bounds what any shares reach, so the gap to the optimum
is known. `fitted_tables` calls `worst_case`.

A *group* has the next hops of the flows of one switch in one class (`weight_fit`). In shapes, G is
the number of groups, and W the most next hops of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import AllowedShares, FlowPaths, Reals

ROUNDS = 300
"""The most rounds of the search for shares against the worst traffic."""
RELATIVE_GAP = 0.05
"""The search ends when the worst load is at most this part of its bound above the bound."""
FORGOTTEN_SHARE = 0.02
"""The part by which a round's matchings replace those of earlier rounds in the bound's mean."""
PRICE_EXPONENTS = (8.0, 88.0)
"""The powers of a link's load that its price rises with, in the first round and in the last."""
LEAST_SHARE = 1e-9
"""The least share of a next hop; a share of 0 could not grow again."""
STEP_DECAY = 30
"""The first step is this much larger than the last, about."""
LEAST_DIVISOR = 1e-300
"""In place of 0 where no next hop is dearer than another."""


class WorstCase(NamedTuple):
    """Shares against the worst traffic, and how good they are."""

    shares: Reals
    """float64[G, W], the shares of the next hops of every group."""
    worst_load: float
    """The load of the hottest link under the worst traffic for these shares."""
    load_bound: float
    """A load of the hottest link that the worst traffic reaches whatever the shares are."""


def worst_case(paths: FlowPaths, traffic: Traffic, largest: float = 1.0) -> WorstCase:
    """Return the shares that load the hottest link least under the traffic that is worst for them.

    Args:
        paths: of `traffic`, with its flows.
        traffic: a flow for every pair of switches with hosts, of all that a switch sends.
        largest: the largest share of a next hop.
    """
    allowed, arcs = AllowedShares.of(paths, largest), _arcs_with_flows(paths, traffic)
    has_next_hop, shares = paths.has_next_hop, allowed.equal_shares()
    # The sum of the costs of all rounds, of which each round forgets a part, and of their weights.
    sum_of_costs, sum_of_weights = np.zeros(has_next_hop.shape), 0.0
    best = WorstCase(shares, np.inf, 0.0)
    for round_ in range(ROUNDS):
        part_done = round_ / ROUNDS
        matchings = [arc.worst_matching(shares[has_next_hop]) for arc in arcs]
        loads = np.array([matching.load for matching in matchings])
        if loads.max() < best.worst_load:
            best = best._replace(shares=shares, worst_load=float(loads.max()))
        cost = _cost_of_next_hops(has_next_hop, matchings, _prices(loads, part_done))
        sum_of_costs = (1 - FORGOTTEN_SHARE) * sum_of_costs + cost
        sum_of_weights = (1 - FORGOTTEN_SHARE) * sum_of_weights + 1
        best = best._replace(
            load_bound=max(best.load_bound, allowed.least_cost(sum_of_costs) / sum_of_weights)
        )
        if best.worst_load <= (1 + RELATIVE_GAP) * best.load_bound:
            break
        shares = allowed.shares_in_proportion(
            _next_proportions(shares, has_next_hop, cost, part_done)
        )
    return best


def _prices(loads: Reals, part_done: float) -> Reals:
    """Return the prices of arcs by their loads, which add up to 1.

    Args:
        loads: float64[arcs], of the worst matching of each.
        part_done: the part of all rounds that is done: the later, the more the hottest arcs cost.
    """
    first, last = PRICE_EXPONENTS
    prices: Reals = (loads / loads.max()) ** (first + (last - first) * part_done)
    prices /= prices.sum()
    return prices


def _next_proportions(
    shares: Reals, has_next_hop: NDArray[np.bool_], cost: Reals, part_done: float
) -> Reals:
    """Return proportions for the next round's shares: dearer next hops lose share, [G, W].

    Args:
        shares: float64[G, W], of this round.
        has_next_hop: bool[G, W], the next hops of every group.
        cost: float64[G, W], of these next hops.
        part_done: the part of all rounds that is done: the later, the smaller the step.
    """
    cheapest = np.where(has_next_hop, cost, np.inf).min(axis=1)[:, None]
    dearer = np.where(has_next_hop, cost - cheapest, 0)
    step = 1 / (max(float(dearer.max()), LEAST_DIVISOR) * (1 + STEP_DECAY * part_done))
    proportions: Reals = np.maximum(shares * np.exp(-dearer * step), LEAST_SHARE * has_next_hop)
    return proportions


class _Matching(NamedTuple):
    """The traffic that is worst for an arc."""

    load: float
    """What it loads on the arc."""
    next_hops: NDArray[np.int64]
    """int64[n], the numbers of the next hops by which its flows cross the arc."""


@dataclass(frozen=True, slots=True, eq=False)
class _Arc:
    """The n ways of flows over an arc, as cells of a matrix of sources and destinations."""

    next_hop: NDArray[np.int64]
    """int64[n], the number of the next hop by which a flow takes this way."""
    row: NDArray[np.int64]
    """int64[n], the row of the flow's source."""
    column: NDArray[np.int64]
    """int64[n], the column of the flow's destination."""
    matrix_shape: tuple[int, int]
    """The rows and columns of the matrix."""

    def worst_matching(self, shares: Reals) -> _Matching:
        """Return the matching of sources to destinations that loads the arc most.

        Args:
            shares: of all next hops, by their numbers.
        """
        from scipy.optimize import linear_sum_assignment

        row_count, column_count = self.matrix_shape
        cell = self.row * column_count + self.column
        load = np.bincount(cell, shares[self.next_hop], minlength=row_count * column_count)
        rows, columns = linear_sum_assignment(load.reshape(self.matrix_shape), maximize=True)
        is_matched = np.zeros(len(load), np.bool_)
        is_matched[rows * column_count + columns] = True
        return _Matching(float(load[is_matched].sum()), self.next_hop[is_matched[cell]])


def _cost_of_next_hops(
    has_next_hop: NDArray[np.bool_], matchings: Sequence[_Matching], prices: Reals
) -> Reals:
    """Return what each next hop pays for the arcs that the worst matchings cross by it.

    Args:
        has_next_hop: bool[G, W], the next hops of every group.
        matchings: the worst one of each arc.
        prices: float64[arcs], of a crossing of each arc.

    Returns:
        float64[G, W].
    """
    used = [matching.next_hops for matching in matchings]
    payments = np.repeat(prices, list(map(len, used)))
    cost = np.zeros(has_next_hop.shape)
    cost[has_next_hop] = np.bincount(
        np.concatenate(used), payments, minlength=np.count_nonzero(has_next_hop)
    )
    return cost


def _arcs_with_flows(paths: FlowPaths, traffic: Traffic) -> list[_Arc]:
    """Return the arcs that any flow can cross."""
    order = np.argsort(paths.arc, kind="stable")
    starts = np.flatnonzero(np.diff(paths.arc[order], prepend=-1))
    arcs = []
    for crossings in np.split(order, starts[1:]):
        flow = paths.flow[crossings]
        sources, row = np.unique(traffic.source[flow], return_inverse=True)
        ends, column = np.unique(traffic.destination[flow], return_inverse=True)
        arcs.append(
            _Arc(
                next_hop=paths.next_hop[crossings].astype(np.int64),
                row=row.ravel(),
                column=column.ravel(),
                matrix_shape=(len(sources), len(ends)),
            )
        )
    return arcs
