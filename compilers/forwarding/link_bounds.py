"""What links carry at most of any traffic, without a look at the traffic.

A source and a destination have prices, which together are at least the share of each pair that
crosses a link. Then no traffic loads the link with more than all sources and destinations pay (the
dual of the transportation problem). Pairs are collected link by link, so no matrix is made; a bound
is mostly within a tenth of the load, and the worst link is among the few of the highest bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import LinkCrossings, Pairs, Towards, collect
from compilers.forwarding.link_shares import LinkShares
from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import Array, Program

Reals = NDArray[np.float64]
TURNS = 4
"""How often the prices of sources and of destinations are lowered in turn."""


class PairPrices(NamedTuple):
    """What sources and destinations pay for the pairs that cross one link."""

    pairs: Array
    """int64[S], how many each source has."""
    source: Array
    """float64[S], the price of each source."""
    destination: Array
    """float64[D], the price of each destination."""


@loop
def lower_prices(source: Array, destination: Array, share: Array, prices: PairPrices) -> None:
    """Find prices that are enough for n pairs.

    Sources begin with what their pairs ask for if they have many, else destinations pay; then both
    lower their prices in turn.

    Args:
        source: int32[n], of the pairs.
        destination: int32[n].
        share: float64[n].
        prices: written.
    """
    row, column, n = prices.source, prices.destination, len(share)
    prices.pairs[:], row[:], column[:] = 0, 0, 0
    for x in range(n):
        prices.pairs[source[x]] += 1
    for x in range(n):
        if prices.pairs[source[x]] ** 2 > n:
            row[source[x]] = max(row[source[x]], share[x])
        else:
            column[destination[x]] = max(column[destination[x]], share[x])
    for _ in range(TURNS):
        row[:] = 0
        for x in range(n):
            row[source[x]] = max(row[source[x]], share[x] - column[destination[x]])
        column[:] = 0
        for x in range(n):
            column[destination[x]] = max(column[destination[x]], share[x] - row[source[x]])


@loop
def bound_links(
    p: Program,
    out: LinkShares,
    towards: Towards,
    arcs: Array,
    sends: Array,
    takes: Array,
    pairs: Pairs,
    most: Array,
    arrived: Array,
) -> None:
    """Write what each of some links carries at most, and what comes over them to where it goes.

    Args:
        p: what switches hold.
        out: their shares.
        towards: the destinations.
        arcs: int64[n, 2], the links.
        sends: float64[S], what the hosts of each switch can send.
        takes: float64[D], what they can take.
        pairs: with no load.
        most: float64[n], written.
        arrived: float64[S, D], the share of each pair that came to its destination; added to.
    """
    ends = pairs.load.shape[1]
    prices = PairPrices(np.empty(len(sends), np.int64), np.empty(len(sends)), np.empty(ends))
    for i in range(len(arcs)):
        s, k = arcs[i]
        pairs.number[0] = 0
        collect(p, out, towards, s, k, pairs)
        n, head = pairs.number[0], towards.number[p.far[s, k]]
        source, destination = np.empty(n, np.int32), np.empty(n, np.int32)
        share = np.empty(n, np.float64)
        for x in range(n):
            one, other = pairs.pair[x] // ends, pairs.pair[x] % ends
            source[x], destination[x], share[x] = one, other, pairs.load[one, other]
            pairs.load[one, other] = 0
            if other == head:
                arrived[one, other] += share[x]
        lower_prices(source, destination, share, prices)
        most[i] = (prices.source * sends).sum() + (prices.destination * takes).sum()


class LinkBounds(NamedTuple):
    """What links carry at most, and whether packets come to where they go."""

    most: Reals
    """float64[n], a load that no traffic exceeds on each link."""
    arrived: Reals
    """float64[S, D], the share of what each switch sends to each destination that comes there over
    these links."""

    @classmethod
    def of(
        cls, crossings: LinkCrossings, arcs: NDArray[np.int64], sends: Reals, takes: Reals
    ) -> LinkBounds:
        """Look at some links.

        Args:
            crossings: who crosses links.
            arcs: int64[n, 2], the links.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what they can take.
        """
        c, (switches, ends) = crossings, crossings.size
        room = Pairs(
            np.zeros((switches, ends)), np.zeros(switches * ends, np.int64), np.zeros(1, np.int64)
        )
        most, arrived = np.zeros(len(arcs)), np.zeros((switches, ends))
        bound = for_packets(c.packets, bound_links)
        bound(c.program, c.out, c.towards, arcs, sends, takes, room, most, arrived)
        return cls(most, arrived)
