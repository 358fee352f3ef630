"""Shares as whole weights that targets hold: as few parts as keep the hottest link's load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.weight_fit import Fit, FlowPaths, Reals

PARTS = (64, 128, 255)
"""Totals of a class's weights, tried in turn. Open vSwitch has 64 hash values a group unless it is
set otherwise, and 255 is the heaviest next hop of Linux and FRR.
"""
GOOD = 1.02
"""The hottest link's load, to that before rounding, at which no more parts are tried."""
MOVES = 10_000
FEW = 8
"""Arcs that an option crosses at most where parts are moved one by one."""

LEAST_GAIN = 1e-12
"""Of a load, beyond what sums are wrong by."""


class Rounded(NamedTuple):
    """Whole weights, int64[G, W], and float64[arcs], what they load."""

    weights: NDArray[np.int64]
    loads: Reals


def rounded(paths: FlowPaths, found: Fit, largest: float = 1.0) -> Rounded:
    """The weights of fitted shares.

    Args:
        paths: what every option loads.
        found: the shares.
        largest: the largest share of an option, kept to the next part.
    """
    results = []
    for parts in PARTS:
        result = _eased_parts(paths, found, largest, parts)
        results.append(result)
        if result.loads.max() <= GOOD * found.loads.max():
            break
    best = min(results, key=lambda result: float(result.loads.max()))
    return Rounded(_reduced(best.weights), best.loads)


def in_parts(shares: Reals, parts: int) -> NDArray[np.int64]:
    """int64[G, W]: shares as so many parts, or fewer in the same proportions."""
    return _reduced(_largest_remainders(shares, parts))


def _reduced(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    lowest: NDArray[np.int64] = weights // np.gcd.reduce(weights, axis=1)[:, None]
    return lowest


def _eased_parts(paths: FlowPaths, found: Fit, largest: float, parts: int) -> Rounded:
    weights = _largest_remainders(found.shares, parts)
    loads = paths.loads(weights / parts)
    if crossed := _Crossed.of(paths):
        count = np.count_nonzero(paths.options, axis=1)[:, None]
        room = np.ceil(np.maximum(largest, 1 / count) * parts) - weights
        held, room = weights[paths.options], np.broadcast_to(room, weights.shape)[paths.options]
        for given, taken in crossed.moves(held, room, np.append(loads, 0.0), 1 / parts):
            held[given] -= 1
            held[taken] += 1
            room[given] += 1
            room[taken] -= 1
        weights[paths.options] = held
        loads = paths.loads(weights / parts)
    return Rounded(weights, loads)


def _largest_remainders(shares: Reals, parts: int) -> NDArray[np.int64]:
    """int64[G, W]: whole parts, the rest to the largest remainders (Hamilton's method)."""
    exact = shares * parts
    weights = np.floor(exact + 1e-9)
    left = np.rint(parts - weights.sum(axis=1))
    rank = np.argsort(np.argsort(weights - exact, axis=1, kind="stable"), axis=1)
    return np.asarray(weights + (rank < left[:, None]), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Crossed:
    """The arcs that each of V shares crosses, few, and what its whole traffic loads there.

    arcs, amount: [V, FEW], the number of arcs and 0 beyond the last. first: int64[V, 2], the range
    of shares of the same choice. by_arc: int64[V·FEW], shares in the order of `arcs`; start:
    int64[arcs + 2], where those of each arc begin.
    """

    arcs: NDArray[np.int64]
    amount: Reals
    first: NDArray[np.int64]
    by_arc: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, paths: FlowPaths) -> _Crossed | None:
        """None where a share crosses more."""
        # Flows to several destinations cross an arc by the same share: one entry, with their sum.
        key, entry = np.unique(
            paths.share.astype(np.int64) * paths.arcs + paths.arc, return_inverse=True
        )
        share, arc = np.divmod(key, paths.arcs)
        place = np.arange(len(share)) - np.searchsorted(share, share)
        if place.max(initial=0) >= FEW:
            return None
        count = np.count_nonzero(paths.options, axis=1)
        arcs = np.full((count.sum(), FEW), paths.arcs)
        amount = np.zeros(arcs.shape)
        arcs[share, place], amount[share, place] = arc, np.bincount(entry, paths.amount)
        ends = np.cumsum(count)
        sorted_arcs = np.argsort(arcs.ravel(), kind="stable")
        return cls(
            arcs=arcs,
            amount=amount,
            first=np.column_stack((ends - count, ends)).repeat(count, axis=0),
            by_arc=sorted_arcs // FEW,
            start=np.searchsorted(arcs.ravel()[sorted_arcs], np.arange(paths.arcs + 2)),
        )

    def moves(
        self, held: NDArray[np.int64], room: Reals, loads: Reals, part: float
    ) -> Iterator[tuple[int, int]]:
        """Parts to move off the hottest arc, each to where loads stay least, while they fall.

        Args:
            held: int64[V], parts of each share; the caller moves them.
            room: float64[V], how many more it may have; likewise.
            loads: float64[arcs + 1], by these parts; 0 for no arc.
            part: what one is of the whole.
        """
        for _ in range(MOVES):
            hot = int(loads.argmax())
            here = self.by_arc[self.start[hot] : self.start[hot + 1]]
            here = here[held[here] > 0]
            ranges = [np.arange(low, high) for low, high in self.first[here].tolist()]
            if not ranges:
                return
            given, taken = np.repeat(here, list(map(len, ranges))), np.concatenate(ranges)
            free = (room[taken] > 0) & ~(self.arcs[taken] == hot).any(axis=1)
            given, taken = given[free], taken[free]
            after = (loads[self.arcs[taken]] + self.amount[taken] * part).max(axis=1)
            if after.min(initial=np.inf) >= loads[hot] - LEAST_GAIN:
                return
            best = int(after.argmin())
            loads[self.arcs[given[best]]] -= self.amount[given[best]] * part
            loads[self.arcs[taken[best]]] += self.amount[taken[best]] * part
            yield int(given[best]), int(taken[best])
