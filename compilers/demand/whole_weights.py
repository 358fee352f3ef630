"""Integer weights for fitted shares, as targets hold them.

`fitted_tables` calls `round_shares` with the shares that `weight_fit` has found. A *group* has the
next hops of one class of a switch, and each next hop has an integer weight.

The weights of a group add up to a *total*. A small total fits more targets; a large total follows
the shares more closely. So totals are tried in turn, until the hottest arc has about the load that
it had before rounding. After rounding, units of weight are moved one by one off the hottest arc,
each to another next hop of the same group.

For example, the shares 0.5, 0.3 and 0.2 of a group become 4, 2 and 2 of a total of 8: the whole
units in them are 4, 2 and 1, and the unit that is left over goes to the next hop whose share lost
most by rounding down. In lowest terms the weights are 2, 1 and 1.

An *arc* is a directed link. In shapes, G is the number of groups, W the most next hops of a group,
and V the number of all next hops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.weight_fit import FlowPaths, Reals, ShareFit

TOTALS = (64, 128, 255)
"""Totals of a group's weights, tried in turn.

Open vSwitch has 64 hash values a group unless it is set otherwise, and 255 is the heaviest next hop
of Linux and FRR.
"""
GOOD_ENOUGH = 1.02
"""No larger total is tried where the load of the hottest arc is at most this factor of its load
before rounding."""
MOST_MOVES = 10_000
"""The most units of weight that are moved, so that the search ends."""
MOST_ARCS = 8
"""K, the most arcs that flows may cross by a next hop for units to be moved. If they cross more by
any next hop, all weights stay as they are rounded."""
LEAST_GAIN = 1e-12
"""A gain of load that is above the error of the sums."""
ROUNDING_ERROR = 1e-9
"""A share of a whole number of units may be computed as less by this number of units."""


class WholeWeights(NamedTuple):
    """Integer weights, and what they load."""

    weights: NDArray[np.int64]
    """int64[G, W], the weights of the next hops of every group."""
    loads: Reals
    """float64[arcs], the load of each arc by these weights."""


def round_shares(paths: FlowPaths, fit: ShareFit, largest: float = 1.0) -> WholeWeights:
    """Return integer weights for fitted shares.

    Args:
        paths: what every next hop loads.
        fit: the shares.
        largest: the largest share of a next hop, rounded up to a whole unit.
    """
    candidates = []
    for total in TOTALS:
        candidate = _round_and_move(paths, fit, largest, total)
        candidates.append(candidate)
        if candidate.loads.max() <= GOOD_ENOUGH * fit.loads.max():
            break
    best = min(candidates, key=lambda candidate: float(candidate.loads.max()))
    return WholeWeights(_in_lowest_terms(best.weights), best.loads)


def as_integer_weights(shares: Reals, total: int) -> NDArray[np.int64]:
    """Return shares as integer weights of a total, in lowest terms, int64[G, W].

    >>> as_integer_weights(np.array([[0.5, 0.25, 0.25], [0.4, 0.3, 0.3]]), 8)
    array([[2, 1, 1],
           [3, 3, 2]])
    """
    return _in_lowest_terms(_largest_remainders(shares, total))


def _in_lowest_terms(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide the weights of each group by their greatest common divisor."""
    lowest: NDArray[np.int64] = weights // np.gcd.reduce(weights, axis=1)[:, None]
    return lowest


def _round_and_move(paths: FlowPaths, fit: ShareFit, largest: float, total: int) -> WholeWeights:
    """Return shares as integer weights of a total, with units moved off the hottest arcs.

    Units are moved only where the flows of every next hop cross few arcs.
    """
    weights = _largest_remainders(fit.shares, total)
    loads = paths.loads(weights / total)
    if crossings := _NextHopCrossings.of(paths):
        count = np.count_nonzero(paths.has_next_hop, axis=1)[:, None]
        largest_weight = np.ceil(np.maximum(largest, 1 / count) * total)
        room = np.broadcast_to(largest_weight - weights, weights.shape)
        weight_of_next_hop = weights[paths.has_next_hop]
        crossings.move_units(
            weight_of_next_hop,
            room=room[paths.has_next_hop],
            loads=np.append(loads, 0.0),
            unit=1 / total,
        )
        weights[paths.has_next_hop] = weight_of_next_hop
        loads = paths.loads(weights / total)
    return WholeWeights(weights, loads)


def _largest_remainders(shares: Reals, total: int) -> NDArray[np.int64]:
    """Round shares to units of a total by largest remainders (Hamilton's method), int64[G, W].

    Every next hop gets the whole units in its share; the units that are left over go to the next
    hops with the largest remainders.
    """
    exact = shares * total
    weights = np.floor(exact + ROUNDING_ERROR)
    left_over = np.rint(total - weights.sum(axis=1))
    # By next hop of a group: how many next hops have larger remainders.
    rank = np.argsort(np.argsort(weights - exact, axis=1, kind="stable"), axis=1)
    return np.asarray(weights + (rank < left_over[:, None]), np.int64)


class _Move(NamedTuple):
    """The move of a unit of weight from one next hop of a group to another."""

    source: int
    """The next hop that loses the unit."""
    target: int
    """The next hop that gets it."""


@dataclass(frozen=True, slots=True, eq=False)
class _NextHopCrossings:
    """The arcs that flows cross by each of V next hops, at most K (`MOST_ARCS`) for each.

    The next hops of a group have consecutive numbers.
    """

    arcs: NDArray[np.int64]
    """int64[V, K], the arcs by next hop; beyond the last, the number of all arcs."""
    amount: Reals
    """float64[V, K], what the whole traffic of its group loads there; beyond the last, 0."""
    group_range: NDArray[np.int64]
    """int64[V, 2], by next hop the first number in its group, and the number after the last."""
    next_hops_by_arc: NDArray[np.int64]
    """int64[V·K], next hops in the order of the arcs that they cross."""
    first_of_arc: NDArray[np.int64]
    """int64[arcs + 2], where the next hops of each arc begin in `next_hops_by_arc`."""

    @classmethod
    def of(cls, paths: FlowPaths) -> _NextHopCrossings | None:
        """Return the crossings of all next hops; None where one of them crosses more than K arcs.

        Args:
            paths: an entry is a flow that crosses an arc by a next hop. Several flows of a group
                may cross an arc by the same next hop; they are added up.
        """
        # Pairs of a next hop and an arc as numbers: each pair once, sorted by next hop, and the
        # index of the pair of each entry.
        pair_number = paths.next_hop.astype(np.int64) * paths.arc_count + paths.arc
        pairs, pair_of_entry = np.unique(pair_number, return_inverse=True)
        next_hop, arc = np.divmod(pairs, paths.arc_count)
        # The index of each pair among those of its next hop.
        nth_arc = np.arange(len(next_hop)) - np.searchsorted(next_hop, next_hop)
        if nth_arc.max(initial=0) >= MOST_ARCS:
            return None
        next_hops_of_group = np.count_nonzero(paths.has_next_hop, axis=1)
        arcs = np.full((next_hops_of_group.sum(), MOST_ARCS), paths.arc_count)
        amount = np.zeros(arcs.shape)
        arcs[next_hop, nth_arc] = arc
        amount[next_hop, nth_arc] = np.bincount(pair_of_entry, paths.amount)
        ends = np.cumsum(next_hops_of_group)
        group_range = np.column_stack((ends - next_hops_of_group, ends))
        by_arc = np.argsort(arcs.ravel(), kind="stable")
        sorted_arcs = arcs.ravel()[by_arc]
        return cls(
            arcs=arcs,
            amount=amount,
            group_range=group_range.repeat(next_hops_of_group, axis=0),
            next_hops_by_arc=by_arc // MOST_ARCS,
            first_of_arc=np.searchsorted(sorted_arcs, np.arange(paths.arc_count + 2)),
        )

    def move_units(self, weight: NDArray[np.int64], room: Reals, loads: Reals, unit: float) -> None:
        """Move units of weight off the hottest arc, one by one, to next hops of the same groups.

        Each unit goes where the loads of the arcs that it then crosses stay least, for as long as
        this makes the hottest arc cooler.

        Args:
            weight: int64[V], the weight of each next hop; changed.
            room: float64[V], how many more units a next hop may have; changed.
            loads: float64[arcs + 1], the load of each arc by these weights, then 0 for no arc;
                changed.
            unit: one unit as a share of its group's traffic.
        """
        for _ in range(MOST_MOVES):
            move = self._best_move(weight, room, loads, unit)
            if move is None:
                return
            loads[self.arcs[move.source]] -= self.amount[move.source] * unit
            loads[self.arcs[move.target]] += self.amount[move.target] * unit
            weight[move.source] -= 1
            weight[move.target] += 1
            room[move.source] += 1
            room[move.target] -= 1

    def _best_move(
        self, weight: NDArray[np.int64], room: Reals, loads: Reals, unit: float
    ) -> _Move | None:
        """Return the best move of a unit off the hottest arc; None if none makes it cooler.

        The arguments are those of `move_units`.
        """
        hottest = int(loads.argmax())
        sources = self.next_hops_by_arc[self.first_of_arc[hottest] : self.first_of_arc[hottest + 1]]
        sources = sources[weight[sources] > 0]
        # All moves from a source to a next hop of its group.
        targets = [np.arange(low, high) for low, high in self.group_range[sources].tolist()]
        if not targets:
            return None
        source, target = np.repeat(sources, list(map(len, targets))), np.concatenate(targets)
        is_allowed = (room[target] > 0) & ~(self.arcs[target] == hottest).any(axis=1)
        source, target = source[is_allowed], target[is_allowed]
        load_after = (loads[self.arcs[target]] + self.amount[target] * unit).max(axis=1)
        if load_after.min(initial=np.inf) >= loads[hottest] - LEAST_GAIN:
            return None
        best = int(load_after.argmin())
        return _Move(int(source[best]), int(target[best]))
