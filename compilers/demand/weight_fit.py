"""The shares that carry a demand best: those that load the hottest link least, with a bound.

`fitted_tables` calls `fit` with the paths that `fluid` has followed. An *arc* is a directed link.

All flows of one switch in one class are a *choice*: they share the ports of that class, which are
the choice's *options*. The fit looks for the shares x of all options, which add up to 1 in every
choice, such that the largest entry of A·x is least. Here A is what the whole traffic of a choice
loads on each arc by each option.

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
ROUNDS = 4000
"""The most steps of the search."""
LOOK_INTERVAL = 40
"""How many steps are taken between looks at the gap."""
CROSSINGS = 1 << 31
"""The most crossings of arcs that all steps together may add up."""
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
    """What the options of flows load on arcs, as n crossings: the sparse form of the matrix A.

    G choices have up to W options each. Options are numbered choice by choice, without gaps: the
    number of an option is the number of its share.
    """

    arc: NDArray[np.int32]
    """int32[n], the arc of a crossing."""
    share: NDArray[np.int32]
    """int32[n], the number of the option by which a flow crosses the arc."""
    flow: NDArray[np.int32]
    """int32[n], the number of that flow."""
    amount: Reals
    """float64[n], what crosses the arc if the whole flow takes that option."""
    options: NDArray[np.bool_]
    """bool[G, W], which options each choice has."""
    column: NDArray[np.int64]
    """int64[G], the column of each choice in `Fluid.options`."""
    arcs: int
    """The number of arcs of the fabric."""

    def loads(self, shares: Reals) -> Reals:
        """Return A·x, the load of each arc, float64[arcs], for shares x, float64[G, W]."""
        crossing = self.amount * shares[self.options][self.share]
        return np.asarray(np.bincount(self.arc, crossing, minlength=self.arcs), np.float64)

    def costs(self, prices: Reals) -> Reals:
        """Return y·A for prices y: what a choice's traffic would pay on each option, [G, W]."""
        costs = np.zeros(self.options.shape)
        costs[self.options] = np.bincount(
            self.share, self.amount * prices[self.arc], minlength=np.count_nonzero(self.options)
        )
        return costs


class Fit(NamedTuple):
    """Shares that carry a demand, and how good they are."""

    shares: Reals
    """float64[G, W], the shares of the options of every choice."""
    loads: Reals
    """float64[arcs], what these shares load on each arc."""
    prices: Reals
    """float64[arcs], the prices of the arcs that prove the bound."""
    bound: float
    """A load of the hottest arc that no shares get below."""


def fit(
    paths: FlowPaths,
    largest: float = 1.0,
    before: Fit | None = None,
    gap: float = GAP,
    crossings: int = CROSSINGS,
) -> Fit:
    """Return shares that load the hottest arc least, to within a gap if the steps suffice.

    Args:
        paths: what every option loads.
        largest: the largest share of an option, from 0 to 1; where a choice has too few options for
            it, they get equal shares.
        before: an earlier fit, whose shares and prices the search begins with.
        gap: the relative gap to the bound at which the search ends.
        crossings: the most crossings of arcs that all steps together add up.
    """
    game = ShareSets.of(paths, largest)
    x, y = game.even(), np.full(paths.arcs, 1 / paths.arcs)
    if before:
        x, y = game.nearest(before.shares), before.prices
    best, average = _Best(x, np.array([np.inf]), y), _Average(x, y)
    load, norm = paths.loads(x), game.norm()
    # A step of x has the length `price_step / norm`, a step of y the length 1 / (norm·price_step).
    price_step = 1.0
    gap_at_restart = np.inf
    rounds = int(np.clip(crossings // max(1, len(paths.arc)), LOOK_INTERVAL, ROUNDS))
    for round_ in range(1, rounds + 1):
        next_x = game.nearest(x - price_step / norm * paths.costs(y))
        next_load = paths.loads(next_x)
        # Prices follow the load as it would be after one more step of the same kind.
        y = on_simplex(y + (2 * next_load - load) / (norm * price_step))
        x, load = next_x, next_load
        average.add(x, y)
        if round_ % LOOK_INTERVAL:
            continue
        gap_here = best.take_better(game, x, y)
        gap_of_mean = best.take_better(game, *average.mean())
        if best.loads.max() <= (1 + gap) * best.bound:
            break
        # Restart where the gap has become a third, or after a third of all steps without that.
        smaller_gap = min(gap_here, gap_of_mean)
        if smaller_gap < gap_at_restart / 3 or average.count > round_ / 3:
            if gap_of_mean < gap_here:
                x, y = average.mean()
                load = paths.loads(x)
            gap_at_restart, price_step = smaller_gap, average.step_ratio(x, y, price_step)
            average = _Average(x, y)
    return Fit(best.shares, best.loads, best.prices, best.bound)


@dataclass(frozen=True, slots=True, eq=False)
class ShareSets:
    """The set of allowed shares: none negative, none too large, and 1 in sum for every choice."""

    paths: FlowPaths
    """The choices and their options."""
    largest: Reals
    """float64[G, 1], the largest share of an option of each choice."""

    @classmethod
    def of(cls, paths: FlowPaths, largest: float) -> ShareSets:
        """Return the allowed shares of choices.

        Where a choice has too few options for shares of at most `largest`, they have equal shares.
        """
        count = np.count_nonzero(paths.options, axis=1)[:, None]
        return cls(paths, np.maximum(largest, 1 / count))

    def even(self) -> Reals:
        """Return equal shares of all options of a choice, float64[G, W]."""
        options = self.paths.options
        equal: Reals = options / np.count_nonzero(options, axis=1)[:, None]
        return equal

    def norm(self) -> float:
        """Return a little more than the spectral norm of A, which bounds the length of steps.

        By the power method for AᵀA, from equal shares.
        """
        x = self.even()
        for _ in range(POWER_STEPS):
            x /= np.linalg.norm(x)
            x = self.paths.costs(self.paths.loads(x))
        return NORM_MARGIN * float(np.sqrt(np.linalg.norm(x)))

    def nearest(self, shares: Reals) -> Reals:
        """Return the allowed shares that are nearest to float64[G, W], by Euclidean distance.

        They are the given numbers less some t, clipped to 0…largest, with t such that they add up
        to 1. As t falls, the sum grows piecewise linearly: at each of the points where a share
        leaves 0 or reaches the largest, its slope becomes one more or one less.
        """
        options, most = self.paths.options, self.largest
        numbers = np.where(options, shares, -OUT_OF_REACH)
        points = np.concatenate((numbers, numbers - most), axis=1)
        order = np.argsort(-points, axis=1, kind="stable")
        points = np.take_along_axis(points, order, axis=1)
        # The slope of the sum beyond each point, and the sum at each next point.
        slope = np.cumsum(np.where(order < options.shape[1], 1.0, -1.0), axis=1)
        total = np.cumsum(slope[:, :-1] * -np.diff(points, axis=1), axis=1)
        # For each choice the point after which the sum reaches 1, and the sum before it.
        row, segment = np.arange(len(options)), np.count_nonzero(total < 1 - TOLERANCE, axis=1)
        before = np.where(segment > 0, total[row, np.maximum(segment, 1) - 1], 0.0)
        lowered = points[row, segment] - (1 - before) / np.maximum(slope[row, segment], 1.0)
        return np.where(options, np.clip(shares - lowered[:, None], 0, most), 0)

    def scaled(self, proportions: Reals) -> Reals:
        """Return shares in proportions float64[G, W], or the nearest allowed ones."""
        shares: Reals = proportions / proportions.sum(axis=1, keepdims=True)
        if (shares <= self.largest).all():
            return shares
        return self.nearest(shares)

    def least_cost(self, costs: Reals) -> float:
        """Return the least total cost of allowed shares, where options cost float64[G, W].

        Every choice fills its cheapest options up to the largest share.
        """
        options, most = self.paths.options, self.largest
        cost = np.sort(np.where(options, costs, OUT_OF_REACH), axis=1)
        rank = np.arange(options.shape[1])
        share = np.clip(1 - rank * most, 0, most)
        return float((np.where(share > TOLERANCE, cost, 0) * share).sum())


@dataclass(slots=True)
class _Best:
    """The best shares so far, and the prices of the best bound so far."""

    shares: Reals
    """float64[G, W], the shares with the least load of the hottest arc."""
    loads: Reals
    """float64[arcs], what these shares load."""
    prices: Reals
    """float64[arcs], the prices with the highest bound."""
    bound: float = 0.0
    """The highest bound."""

    def take_better(self, game: ShareSets, x: Reals, y: Reals) -> float:
        """Keep shares x or prices y if they are better, and return the gap between the two."""
        loads, bound = game.paths.loads(x), game.least_cost(game.paths.costs(y))
        peak = float(loads.max())
        if peak < self.loads.max():
            self.shares, self.loads = x, loads
        if bound > self.bound:
            self.prices, self.bound = y, bound
        return peak - bound


class _Average:
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


def on_simplex(values: Reals) -> Reals:
    """Return the nearest values that are not negative and add up to 1 (Michelot 1986).

    >>> on_simplex(np.array([0.9, 0.5, -2.0]))
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
