"""The weights that carry a demand best: the least load of the hottest link, with a bound.

A linear program: minimise the largest entry of A·x, where x are the shares of the options of every
choice, which add up to 1, and A what an option's whole traffic loads on each arc. As a game, x
against prices y of the arcs, min over x of max over y of y·A·x, it is solved by primal-dual steps
with averages and restarts (Chambolle and Pock 2011; Applegate et al., PDLP, 2021). Any prices give
a bound that no weights pass, so the gap to the optimum is known. At 31,744 shares this takes
seconds where HiGHS takes minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
GAP = 0.005
"""The relative gap to the optimum at which weights are good."""
ROUNDS, EVERY, CROSSINGS = 4000, 40, 1 << 31
"""Steps at most, steps between looks at the gap, and crossings of an arc that all steps add up."""
FAR = 1e9
"""Beyond all that a step can reach."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowPaths:
    """What the options of flows load, before their shares are known.

    arc, share, flow: int32[n], an arc that a flow crosses, by the option of which share; amount:
    float64[n], how much crosses it if all takes that option. options: bool[G, W], the options of
    each choice; shares are numbered choice by choice. row: int64[G], each choice's column of
    `Fluid.options`. arcs: how many there are.
    """

    arc: NDArray[np.int32]
    share: NDArray[np.int32]
    flow: NDArray[np.int32]
    amount: Reals
    options: NDArray[np.bool_]
    row: NDArray[np.int64]
    arcs: int

    def loads(self, shares: Reals) -> Reals:
        """float64[arcs]: the load of each arc, of float64[G, W] shares."""
        crossing = self.amount * shares[self.options][self.share]
        return np.asarray(np.bincount(self.arc, crossing, minlength=self.arcs), np.float64)

    def costs(self, prices: Reals) -> Reals:
        """float64[G, W]: what the whole traffic of a choice would pay on each of its options."""
        result = np.zeros(self.options.shape)
        pays = np.bincount(
            self.share, self.amount * prices[self.arc], minlength=np.count_nonzero(self.options)
        )
        result[self.options] = pays
        return result


class Fit(NamedTuple):
    """Shares, float64[G, W]; what they load, float64[arcs]; prices, float64[arcs], and the bound
    that they are for the load of the hottest arc.
    """

    shares: Reals
    loads: Reals
    prices: Reals
    bound: float


def fit(
    paths: FlowPaths,
    largest: float = 1.0,
    before: Fit | None = None,
    gap: float = GAP,
    crossings: int = CROSSINGS,
) -> Fit:
    """The shares that load the hottest arc least, but for a gap, where the steps suffice.

    Args:
        paths: what every option loads.
        largest: the largest share of an option, from 0 to 1; where a choice has too few options for
            it, they get equal shares.
        before: shares and prices to begin with.
        gap: the relative one to the bound, at which it ends.
        crossings: of an arc that all steps add up, at most.
    """
    game = ShareSets.of(paths, largest)
    x, y = game.even(), np.full(paths.arcs, 1 / paths.arcs)
    if before:
        x, y = game.nearest(before.shares), before.prices
    best, since = _Best(x, np.array([np.inf]), y), _Average(x, y)
    load, price_step, length = paths.loads(x), 1.0, game.norm()
    restarted_at = np.inf
    rounds = int(np.clip(crossings // max(1, len(paths.arc)), EVERY, ROUNDS))
    for round_ in range(1, rounds + 1):
        after = game.nearest(x - price_step / length * paths.costs(y))
        load_after = paths.loads(after)
        y = on_simplex(y + (2 * load_after - load) / (length * price_step))
        x, load = after, load_after
        since.add(x, y)
        if round_ % EVERY:
            continue
        here, mean = best.look(game, x, y), best.look(game, *since.mean())
        if best.loads.max() <= (1 + gap) * best.bound:
            break
        if min(here, mean) < restarted_at / 3 or since.count > round_ / 3:
            if mean < here:
                x, y = since.mean()
                load = paths.loads(x)
            restarted_at, price_step = min(here, mean), since.ratio(x, y, price_step)
            since = _Average(x, y)
    return Fit(best.shares, best.loads, best.prices, best.bound)


@dataclass(frozen=True, slots=True, eq=False)
class ShareSets:
    """The shares that there may be: of options, at most float64[G, 1] each, 1 a choice."""

    paths: FlowPaths
    largest: Reals

    @classmethod
    def of(cls, paths: FlowPaths, largest: float) -> ShareSets:
        """Those of options; where a choice has too few for the largest share, they are equal."""
        count = np.count_nonzero(paths.options, axis=1)[:, None]
        return cls(paths, np.maximum(largest, 1 / count))

    def even(self) -> Reals:
        """Equal shares."""
        options = self.paths.options
        equal: Reals = options / np.count_nonzero(options, axis=1)[:, None]
        return equal

    def norm(self) -> float:
        """The spectral norm of A, nearly: how long steps may be."""
        x = self.even()
        for _ in range(20):
            x /= np.linalg.norm(x)
            x = self.paths.costs(self.paths.loads(x))
        return 1.05 * float(np.sqrt(np.linalg.norm(x)))

    def nearest(self, wanted: Reals) -> Reals:
        """The nearest shares that add up to 1 a choice, none below 0 or above the largest."""
        options, most = self.paths.options, self.largest
        low = np.where(options, wanted, -FAR)
        # Lowered by t, shares clipped to 0…most add up to more as t falls: past each of these
        # points there is one more that grows, or one less.
        points = np.concatenate((low, low - most), axis=1)
        order = np.argsort(-points, axis=1, kind="stable")
        points = np.take_along_axis(points, order, axis=1)
        grows = np.cumsum(np.where(order < options.shape[1], 1.0, -1.0), axis=1)
        total = np.cumsum(grows[:, :-1] * -np.diff(points, axis=1), axis=1)
        row, place = np.arange(len(options)), np.count_nonzero(total < 1 - 1e-12, axis=1)
        before = np.where(place > 0, total[row, np.maximum(place, 1) - 1], 0.0)
        lowered = points[row, place] - (1 - before) / np.maximum(grows[row, place], 1.0)
        return np.where(options, np.clip(wanted - lowered[:, None], 0, most), 0)

    def scaled(self, wanted: Reals) -> Reals:
        """Shares in these proportions; what is above the largest goes to the others."""
        shares: Reals = wanted / wanted.sum(axis=1, keepdims=True)
        if (shares <= self.largest).all():
            return shares
        return self.nearest(shares)

    def least(self, costs: Reals) -> float:
        """What all shares cost at least, where those of an option cost float64[G, W]."""
        options, most = self.paths.options, self.largest
        cost = np.sort(np.where(options, costs, FAR), axis=1)
        rank = np.arange(options.shape[1])
        share = np.clip(1 - rank * most, 0, most)
        return float((np.where(share > 1e-12, cost, 0) * share).sum())


@dataclass(slots=True)
class _Best:
    """The best shares so far, and the prices of the best bound."""

    shares: Reals
    loads: Reals
    prices: Reals
    bound: float = 0.0

    def look(self, game: ShareSets, x: Reals, y: Reals) -> float:
        """The gap of these shares and prices; they are kept if they are better."""
        loads, bound = game.paths.loads(x), game.least(game.paths.costs(y))
        peak = float(loads.max())
        if peak < self.loads.max():
            self.shares, self.loads = x, loads
        if bound > self.bound:
            self.prices, self.bound = y, bound
        return peak - bound


class _Average:
    """The mean of shares and of prices since a start."""

    def __init__(self, x: Reals, y: Reals) -> None:
        self.start = x, y
        self.sums = np.zeros_like(x), np.zeros_like(y)
        self.count = 0

    def add(self, x: Reals, y: Reals) -> None:
        self.count += 1
        for total, part in zip(self.sums, (x, y), strict=True):
            total += part

    def mean(self) -> tuple[Reals, Reals]:
        return self.sums[0] / self.count, self.sums[1] / self.count

    def ratio(self, x: Reals, y: Reals, before: float) -> float:
        """How far shares went to how far prices went, smoothed: the step of one to the other's."""
        far = [float(np.linalg.norm(b - a)) for a, b in zip(self.start, (x, y), strict=True)]
        return float(np.sqrt(before * far[0] / far[1])) if min(far) > 0 else before


def on_simplex(wanted: Reals) -> Reals:
    """The nearest values that add up to 1, none below 0 (Michelot 1986)."""
    some = wanted
    while True:
        lowered = (some.sum() - 1) / len(some)
        kept = some[some > lowered]
        if len(kept) == len(some):
            nearest: Reals = np.maximum(wanted - lowered, 0)
            return nearest
        some = kept
