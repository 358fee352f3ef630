"""Whole weights for fitted shares, as targets hold them.

`fitted_tables` calls `round_shares` with the shares that `weight_fit` has found.

The weights of a class add up to a *total*. One *part* is a weight of 1, the whole divided by the
total. A small total fits more targets; a large total follows the shares more closely. So totals are
tried in turn, until the hottest link has about the load that it had before rounding. After
rounding, parts are moved one by one off the hottest link.

The ports of a class are the *options* of a *choice* (`weight_fit`). In shapes, G is the number of
choices, and W the most options of a choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.weight_fit import Fit, FlowPaths, Reals

TOTALS = (64, 128, 255)
"""Totals of a class's weights, tried in turn.

Open vSwitch has 64 hash values a group unless it is set otherwise, and 255 is the heaviest next hop
of Linux and FRR.
"""
GOOD_ENOUGH = 1.02
"""No larger total is tried where the load of the hottest link is at most this factor of its load
before rounding."""
MOST_MOVES = 10_000
"""The most parts that are moved."""
MOST_ARCS = 8
"""The most arcs that an option may cross for parts to be moved one by one."""
LEAST_GAIN = 1e-12
"""A gain of load that is above the error of the sums."""


class WholeWeights(NamedTuple):
    """Whole weights, and what they load."""

    weights: NDArray[np.int64]
    """int64[G, W], the weights of the options of every choice."""
    loads: Reals
    """float64[arcs], the load of each arc by these weights."""


def round_shares(paths: FlowPaths, fit: Fit, largest: float = 1.0) -> WholeWeights:
    """Return whole weights for fitted shares.

    Args:
        paths: what every option loads.
        fit: the shares.
        largest: the largest share of an option, rounded up to a whole part.
    """
    candidates = []
    for total in TOTALS:
        candidate = _round_and_move_parts(paths, fit, largest, total)
        candidates.append(candidate)
        if candidate.loads.max() <= GOOD_ENOUGH * fit.loads.max():
            break
    best = min(candidates, key=lambda candidate: float(candidate.loads.max()))
    return WholeWeights(_in_lowest_terms(best.weights), best.loads)


def as_whole_parts(shares: Reals, total: int) -> NDArray[np.int64]:
    """Return shares as whole parts of a total, in lowest terms, int64[G, W].

    >>> as_whole_parts(np.array([[0.5, 0.25, 0.25], [0.4, 0.3, 0.3]]), 8)
    array([[2, 1, 1],
           [3, 3, 2]])
    """
    return _in_lowest_terms(_largest_remainders(shares, total))


def _in_lowest_terms(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide the weights of each choice by their greatest common divisor."""
    lowest: NDArray[np.int64] = weights // np.gcd.reduce(weights, axis=1)[:, None]
    return lowest


def _round_and_move_parts(paths: FlowPaths, fit: Fit, largest: float, total: int) -> WholeWeights:
    """Return shares as whole parts of a total, with parts moved off the hottest arcs.

    Parts are moved only where every option crosses few arcs.
    """
    weights = _largest_remainders(fit.shares, total)
    loads = paths.loads(weights / total)
    if crossings := _OptionCrossings.of(paths):
        count = np.count_nonzero(paths.options, axis=1)[:, None]
        most = np.ceil(np.maximum(largest, 1 / count) * total)
        room = np.broadcast_to(most - weights, weights.shape)[paths.options]
        option_parts = weights[paths.options]
        crossings.move_parts(option_parts, room, np.append(loads, 0.0), 1 / total)
        weights[paths.options] = option_parts
        loads = paths.loads(weights / total)
    return WholeWeights(weights, loads)


def _largest_remainders(shares: Reals, total: int) -> NDArray[np.int64]:
    """Round shares to whole parts by largest remainders (Hamilton's method), int64[G, W].

    Every option gets the whole parts in its share; the parts that are left over go to the options
    with the largest remainders.
    """
    exact = shares * total
    weights = np.floor(exact + 1e-9)
    left_over = np.rint(total - weights.sum(axis=1))
    # By option of a choice: how many options have larger remainders.
    rank = np.argsort(np.argsort(weights - exact, axis=1, kind="stable"), axis=1)
    return np.asarray(weights + (rank < left_over[:, None]), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _OptionCrossings:
    """The at most K (`MOST_ARCS`) arcs that each of V options crosses, and the loads there."""

    arcs: NDArray[np.int64]
    """int64[V, K], the arcs that an option crosses; beyond the last, the number of all arcs."""
    amount: Reals
    """float64[V, K], what the whole traffic of its choice loads there; beyond the last, 0."""
    choice: NDArray[np.int64]
    """int64[V, 2], the range of the numbers of all options of the same choice."""
    by_arc: NDArray[np.int64]
    """int64[V·K], options in the order of the arcs that they cross."""
    start: NDArray[np.int64]
    """int64[arcs + 2], where the options of each arc begin in `by_arc`."""

    @classmethod
    def of(cls, paths: FlowPaths) -> _OptionCrossings | None:
        """Return the crossings of all options; None where an option crosses more than K arcs."""
        # Flows to several destinations cross an arc by the same option: one entry, with their sum.
        key, entry = np.unique(
            paths.share.astype(np.int64) * paths.arcs + paths.arc, return_inverse=True
        )
        option, arc = np.divmod(key, paths.arcs)
        # The index of each entry among those of its option.
        place = np.arange(len(option)) - np.searchsorted(option, option)
        if place.max(initial=0) >= MOST_ARCS:
            return None
        count = np.count_nonzero(paths.options, axis=1)
        arcs = np.full((count.sum(), MOST_ARCS), paths.arcs)
        amount = np.zeros(arcs.shape)
        arcs[option, place], amount[option, place] = arc, np.bincount(entry, paths.amount)
        ends = np.cumsum(count)
        sorted_arcs = np.argsort(arcs.ravel(), kind="stable")
        return cls(
            arcs=arcs,
            amount=amount,
            choice=np.column_stack((ends - count, ends)).repeat(count, axis=0),
            by_arc=sorted_arcs // MOST_ARCS,
            start=np.searchsorted(arcs.ravel()[sorted_arcs], np.arange(paths.arcs + 2)),
        )

    def move_parts(
        self, option_parts: NDArray[np.int64], room: Reals, loads: Reals, part: float
    ) -> None:
        """Move parts off the hottest arc, one by one, to other options of the same choices.

        Each part goes where the loads of the arcs that it then crosses stay least, for as long as
        this makes the hottest arc cooler.

        Args:
            option_parts: int64[V], the parts of each option; changed.
            room: float64[V], how many more parts an option may have; changed.
            loads: float64[arcs + 1], the load of each arc by these parts, then 0 for no arc;
                changed.
            part: one part as a share of the whole.
        """
        for _ in range(MOST_MOVES):
            hottest = int(loads.argmax())
            sources = self.by_arc[self.start[hottest] : self.start[hottest + 1]]
            sources = sources[option_parts[sources] > 0]
            # The options of the same choice, for each source.
            targets = [np.arange(low, high) for low, high in self.choice[sources].tolist()]
            if not targets:
                return
            source, target = np.repeat(sources, list(map(len, targets))), np.concatenate(targets)
            is_allowed = (room[target] > 0) & ~(self.arcs[target] == hottest).any(axis=1)
            source, target = source[is_allowed], target[is_allowed]
            load_after = (loads[self.arcs[target]] + self.amount[target] * part).max(axis=1)
            if load_after.min(initial=np.inf) >= loads[hottest] - LEAST_GAIN:
                return
            best = int(load_after.argmin())
            loses, gets = source[best], target[best]
            loads[self.arcs[loses]] -= self.amount[loses] * part
            loads[self.arcs[gets]] += self.amount[gets] * part
            option_parts[loses] -= 1
            option_parts[gets] += 1
            room[loses] += 1
            room[gets] -= 1
