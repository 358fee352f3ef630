"""The shares that carry a demand best: those that load the hottest link least, with a bound.

`fitted_tables` calls `fit` with the paths that `fluid` has followed. An *arc* is a directed link.

All flows of one switch in one class share a *group* of next hops: the ports of that class. The fit
looks for the shares x of all next hops, which add up to 1 in every group, such that the largest
entry of A·x is least. Here A is what the whole traffic of a group loads on each arc by each next
hop. In shapes, G is the number of groups, and W the most next hops of a group.

This linear program is a game of shares x against prices y of the arcs, which add up to 1: the least
over x of the largest y·A·x over y. It is solved by primal-dual steps with averages and restarts
(Chambolle and Pock 2011; Applegate et al., PDLP, 2021). Any prices give a lower bound of the load,
so the gap to the optimum is known. For 31,744 shares this takes seconds where HiGHS takes minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
GAP = 0.005
"""The relative gap to the optimum at which the search ends."""
MOST_STEPS = 4000
"""The most steps of the search."""
STEPS_A_LOOK = 40
"""How many steps are taken between looks at the gap, as a look takes longer than a step."""
CROSSINGS = 1 << 31
"""The most crossings of arcs that all steps together may add up: with more flows fewer steps are
taken."""
POWER_STEPS = 20
"""How many steps the power method takes to find the norm of A."""
NORM_MARGIN = 1.05
"""The factor by which the norm is raised, as the power method approaches it from below."""
TOLERANCE = 1e-12
"""Sums of shares that differ by less are equal."""
OUT_OF_REACH = 1e9
"""A number that is larger than all that a step can reach."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowPaths:
    """What flows load on arcs by each next hop, as n crossings: the sparse form of the matrix A.

    G groups have up to W next hops each. Next hops are numbered group by group, without gaps. A
    crossing is an arc that a flow crosses if it takes a certain next hop of its group.
    """

    arc: NDArray[np.int32]
    """int32[n], the arc of a crossing."""
    next_hop: NDArray[np.int32]
    """int32[n], the number of the next hop by which a flow crosses the arc."""
    flow: NDArray[np.int32]
    """int32[n], the number of that flow."""
    amount: Reals
    """float64[n], what crosses the arc if the whole flow takes that next hop."""
    has_next_hop: NDArray[np.bool_]
    """bool[G, W], which next hops each group has: the minimal port, then the alternates."""
    class_number: NDArray[np.int64]
    """int64[G], the number of each group's class (`ManyPackets`)."""
    arc_count: int
    """The number of arcs of the fabric."""

    def loads(self, shares: Reals) -> Reals:
        """Return A·x, the load of each arc, float64[arcs], for shares x, float64[G, W]."""
        share_of_next_hop = shares[self.has_next_hop]
        crossing = self.amount * share_of_next_hop[self.next_hop]
        return np.asarray(np.bincount(self.arc, crossing, minlength=self.arc_count), np.float64)

    def costs(self, prices: Reals) -> Reals:
        """Return y·A for prices y, float64[arcs]: what each next hop would cost, float64[G, W].

        This is what the whole traffic of its group would pay for the arcs that it crosses.
        """
        costs = np.zeros(self.has_next_hop.shape)
        costs[self.has_next_hop] = np.bincount(
            self.next_hop,
            self.amount * prices[self.arc],
            minlength=np.count_nonzero(self.has_next_hop),
        )
        return costs


class ShareFit(NamedTuple):
    """Shares that carry a demand, and how good they are."""

    shares: Reals
    """float64[G, W], the shares of the next hops of every group."""
    loads: Reals
    """float64[arcs], what these shares load on each arc."""
    prices: Reals
    """float64[arcs], the prices of the arcs that prove the bound."""
    load_bound: float
    """A load of the hottest arc that no shares get below."""


def fit(
    paths: FlowPaths,
    largest: float = 1.0,
    before: ShareFit | None = None,
    gap: float = GAP,
    crossings: int = CROSSINGS,
) -> ShareFit:
    """Return shares that load the hottest arc least, to within a gap if the steps suffice.

    Args:
        paths: what every next hop loads.
        largest: the largest share of a next hop, from 0 to 1; where a group has too few next hops
            for it, they get equal shares.
        before: an earlier fit, whose shares and prices the search begins with.
        gap: the relative gap to the bound at which the search ends.
        crossings: the most crossings of arcs that all steps together add up.
    """
    allowed = AllowedShares.of(paths, largest)
    x, y = allowed.equal_shares(), np.full(paths.arc_count, 1 / paths.arc_count)
    if before:
        x, y = allowed.nearest_shares(before.shares), before.prices
    best, average = _BestFit(x, np.array([np.inf]), y), _RunningMeans(x, y)
    load, norm = paths.loads(x), allowed.spectral_norm()
    # A step of x has the length `step_ratio / norm`, a step of y the length 1 / (norm·step_ratio).
    step_ratio = 1.0
    gap_at_restart = np.inf
    steps = int(np.clip(crossings // max(1, len(paths.arc)), STEPS_A_LOOK, MOST_STEPS))
    for step in range(1, steps + 1):
        next_x = allowed.nearest_shares(x - step_ratio / norm * paths.costs(y))
        next_load = paths.loads(next_x)
        # Prices follow the load as it would be after one more step of the same kind.
        y = nearest_on_simplex(y + (2 * next_load - load) / (norm * step_ratio))
        x, load = next_x, next_load
        average.add(x, y)
        if step % STEPS_A_LOOK:
            continue
        gap_here = best.take_better(allowed, x, y)
        gap_of_mean = best.take_better(allowed, *average.mean())
        if best.loads.max() <= (1 + gap) * best.load_bound:
            break
        # Restart where the gap has become a third, or after a third of all steps without that.
        smaller_gap = min(gap_here, gap_of_mean)
        if smaller_gap < gap_at_restart / 3 or average.count > step / 3:
            if gap_of_mean < gap_here:
                x, y = average.mean()
                load = paths.loads(x)
            gap_at_restart, step_ratio = smaller_gap, average.step_ratio(x, y, step_ratio)
            average = _RunningMeans(x, y)
    return ShareFit(best.shares, best.loads, best.prices, best.load_bound)


@dataclass(frozen=True, slots=True, eq=False)
class AllowedShares:
    """The set of allowed shares: none negative, none too large, and 1 in sum for every group."""

    paths: FlowPaths
    """The groups and their next hops."""
    largest: Reals
    """float64[G, 1], the largest share of a next hop of each group."""

    @classmethod
    def of(cls, paths: FlowPaths, largest: float) -> AllowedShares:
        """Return the allowed shares of groups.

        Where a group has too few next hops for shares of at most `largest`, they have equal shares.
        """
        count = np.count_nonzero(paths.has_next_hop, axis=1)[:, None]
        return cls(paths, np.maximum(largest, 1 / count))

    def equal_shares(self) -> Reals:
        """Return equal shares of all next hops of a group, float64[G, W]."""
        has_next_hop = self.paths.has_next_hop
        equal: Reals = has_next_hop / np.count_nonzero(has_next_hop, axis=1)[:, None]
        return equal

    def spectral_norm(self) -> float:
        """Return a little more than the spectral norm of A, which bounds the length of steps.

        By the power method for AᵀA, from equal shares.
        """
        x = self.equal_shares()
        for _ in range(POWER_STEPS):
            x /= np.linalg.norm(x)
            x = self.paths.costs(self.paths.loads(x))
        return NORM_MARGIN * float(np.sqrt(np.linalg.norm(x)))

    def nearest_shares(self, shares: Reals) -> Reals:
        """Return the allowed shares that are nearest to float64[G, W], by Euclidean distance.

        They are the given numbers less some t, clipped to 0…largest, with t such that they add up
        to 1. As t falls, the sum grows piecewise linearly: at each of the points where a share
        leaves 0 or reaches the largest, its slope becomes one more or one less.
        """
        has_next_hop, largest = self.paths.has_next_hop, self.largest
        # float64[G, 2W], the points of each group as values of t, falling: where a share leaves 0,
        # and where it reaches the largest.
        leaves_zero = np.where(has_next_hop, shares, -OUT_OF_REACH)
        points = np.concatenate((leaves_zero, leaves_zero - largest), axis=1)
        order = np.argsort(-points, axis=1, kind="stable")
        points = np.take_along_axis(points, order, axis=1)
        # The slope of the sum beyond each point, and the sum at each next point.
        is_rise = order < has_next_hop.shape[1]
        slope = np.cumsum(np.where(is_rise, 1.0, -1.0), axis=1)
        total = np.cumsum(slope[:, :-1] * -np.diff(points, axis=1), axis=1)
        # For each group the last point before the sum reaches 1, and the sum there.
        group, point = np.arange(len(points)), np.count_nonzero(total < 1 - TOLERANCE, axis=1)
        total_there = np.where(point > 0, total[group, np.maximum(point, 1) - 1], 0.0)
        # From there t falls until the sum is 1.
        missing = (1 - total_there) / np.maximum(slope[group, point], 1.0)
        t = points[group, point] - missing
        return np.where(has_next_hop, np.clip(shares - t[:, None], 0, largest), 0)

    def shares_in_proportion(self, proportions: Reals) -> Reals:
        """Return shares in proportions float64[G, W], or the nearest allowed ones."""
        shares: Reals = proportions / proportions.sum(axis=1, keepdims=True)
        if (shares <= self.largest).all():
            return shares
        return self.nearest_shares(shares)

    def least_cost(self, costs: Reals) -> float:
        """Return the least total cost of allowed shares, where next hops cost float64[G, W].

        Every group fills its cheapest next hops up to the largest share.
        """
        cheapest_first = np.sort(np.where(self.paths.has_next_hop, costs, OUT_OF_REACH), axis=1)
        rank = np.arange(costs.shape[1])
        share = np.clip(1 - rank * self.largest, 0, self.largest)
        # Where a share is 0, the cost may be that of no next hop, which must not count.
        return float((np.where(share > TOLERANCE, cheapest_first, 0) * share).sum())


@dataclass(slots=True)
class _BestFit:
    """The best shares so far, and the prices of the best bound so far."""

    shares: Reals
    """float64[G, W], the shares with the least load of the hottest arc."""
    loads: Reals
    """float64[arcs], what these shares load."""
    prices: Reals
    """float64[arcs], the prices with the highest bound."""
    load_bound: float = 0.0
    """The highest bound."""

    def take_better(self, allowed: AllowedShares, x: Reals, y: Reals) -> float:
        """Keep shares x or prices y if they are better, and return the gap between the two."""
        paths = allowed.paths
        loads, bound = paths.loads(x), allowed.least_cost(paths.costs(y))
        peak = float(loads.max())
        if peak < self.loads.max():
            self.shares, self.loads = x, loads
        if bound > self.load_bound:
            self.prices, self.load_bound = y, bound
        return peak - bound


class _RunningMeans:
    """The means of shares x and of prices y since the last restart."""

    def __init__(self, x: Reals, y: Reals) -> None:
        self.start_x, self.start_y = x, y
        self.sum_x, self.sum_y = np.zeros_like(x), np.zeros_like(y)
        self.count = 0

    def add(self, x: Reals, y: Reals) -> None:
        """Add the shares and prices of one step."""
        self.count += 1
        self.sum_x += x
        self.sum_y += y

    def mean(self) -> tuple[Reals, Reals]:
        """Return the means of shares and of prices."""
        return self.sum_x / self.count, self.sum_y / self.count

    def step_ratio(self, x: Reals, y: Reals, before: float) -> float:
        """Return the ratio of the steps of x and y for the next restart.

        It is the geometric mean of the ratio so far, `before`, and the ratio of the distances that
        shares and prices went since the last restart.
        """
        distance_x = float(np.linalg.norm(x - self.start_x))
        distance_y = float(np.linalg.norm(y - self.start_y))
        if min(distance_x, distance_y) <= 0:
            return before
        return float(np.sqrt(before * distance_x / distance_y))


def nearest_on_simplex(values: Reals) -> Reals:
    """Return the nearest values that are not negative and add up to 1 (Michelot 1986).

    >>> nearest_on_simplex(np.array([0.9, 0.5, -2.0]))
    array([0.7, 0.3, 0. ])
    """
    positive = values
    while True:
        # What to subtract so that the positive values add up to 1. Those that it makes negative
        # become 0, and take no part in the next round.
        lowered = (positive.sum() - 1) / len(positive)
        above = positive[positive > lowered]
        if len(above) == len(positive):
            nearest: Reals = np.maximum(values - lowered, 0)
            return nearest
        positive = above
