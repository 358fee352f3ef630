"""What links carry at most of any traffic, without a look at the traffic.

A source and a destination have prices, which together are at least the share of each pair that
crosses a link. Then no traffic loads the link with more than all sources and destinations pay (the
dual of the transportation problem). Prices are lowered in turn until the bound is low enough. If
that does not suffice, an auction finds better ones. Pairs are collected link by link, so no matrix
is made. The worst link is among the few of the highest bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import (
    LinkCrossings,
    Merged,
    Pairs,
    PairsByLink,
    Towards,
    collect,
    merge,
)
from compilers.forwarding.link_shares import LinkShares
from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import Array, Program

Reals = NDArray[np.float64]
SAME = 1e-12
"""The difference of shares that are the same."""
TURNS = 4
"""How often the prices of sources and of destinations are lowered in turn."""
BIDS = 32
"""The most bids for a destination in an auction."""


class PairPrices(NamedTuple):
    """Prices that together are at least the share of each pair that crosses one link.

    So no traffic loads the link with more than all switches pay for what they send and take.
    """

    source: Array
    """float64[S], the price of each source for what it sends."""
    destination: Array
    """float64[D], the price of each destination for what it takes."""


@loop
def first_prices(crossing: Merged, n: int, prices: PairPrices) -> None:
    """Find prices that are enough for n pairs: sources with many pairs pay, else destinations."""
    begins, row, column = crossing.begins, prices.source, prices.destination
    row[:], column[:] = 0, 0
    for s in range(len(row)):
        many = (begins[s + 1] - begins[s]) ** 2 > n
        for x in range(begins[s], begins[s + 1]):
            share, d = crossing.share[x], crossing.destination[x]
            if many:
                row[s] = max(row[s], share)
            else:
                column[d] = max(column[d], share)


@loop
def lower_sources(crossing: Merged, prices: PairPrices) -> None:
    """Let sources pay what destinations do not."""
    for s in range(len(prices.source)):
        price = 0.0
        for x in range(crossing.begins[s], crossing.begins[s + 1]):
            left = crossing.share[x] - prices.destination[crossing.destination[x]]
            price = max(price, left)
        prices.source[s] = price


@loop
def lower_destinations(crossing: Merged, prices: PairPrices) -> None:
    """Let destinations pay what sources do not."""
    prices.destination[:] = 0
    for s in range(len(prices.source)):
        for x in range(crossing.begins[s], crossing.begins[s + 1]):
            d, left = crossing.destination[x], crossing.share[x] - prices.source[s]
            prices.destination[d] = max(prices.destination[d], left)


@loop
def auction(crossing: Merged, n: int, prices: PairPrices) -> None:
    """Find prices of destinations by an auction: each source bids for the one that leaves it most.

    A bid raises a price by at least a part of the largest share, so there are few bids, and the
    prices are near to the best (Bertsekas, "The auction algorithm", 1988).
    """
    begins, column, largest = crossing.begins, prices.destination, 0.0
    for x in range(n):
        largest = max(largest, crossing.share[x])
    raises, waiting = largest / BIDS, len(prices.source)
    owner, queue = np.full(len(column), -1, np.int64), np.arange(waiting)
    column[:] = 0
    while waiting > 0:
        waiting -= 1
        s = queue[waiting]
        best, second, at = 0.0, 0.0, -1
        for x in range(begins[s], begins[s + 1]):
            left = crossing.share[x] - column[crossing.destination[x]]
            if left > best:
                best, second, at = left, best, crossing.destination[x]
            elif left > second:
                second = left
        if at >= 0:
            column[at] += best - second + raises
            if owner[at] >= 0:
                queue[waiting] = owner[at]
                waiting += 1
            owner[at] = s


@loop
def bound_links(
    p: Program,
    out: LinkShares,
    towards: Towards,
    arcs: Array,
    sends: Array,
    takes: Array,
    enough: float,
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
        enough: a bound that need not be lower.
        pairs: room.
        most: float64[n], written.
        arrived: float64[S, D], the share of each pair that came to its destination; added to.
    """
    prices = PairPrices(np.empty(len(sends)), np.empty(len(takes)))
    for i in range(len(arcs)):
        s, k = arcs[i]
        pairs.number[0] = 0
        collect(p, out, towards, s, k, pairs)
        n, head = merge(pairs), towards.number[p.far[s, k]]
        for x in range(pairs.number[0]):
            if pairs.destination[x] == head:
                arrived[pairs.source[x], head] += pairs.share[x]
        first_prices(pairs.merged, n, prices)
        most[i], turn = paid(prices, sends, takes), 0
        while most[i] > enough and turn < TURNS:
            lower_sources(pairs.merged, prices)
            lower_destinations(pairs.merged, prices)
            most[i], turn = min(most[i], paid(prices, sends, takes)), turn + 1
        if most[i] > enough:
            auction(pairs.merged, n, prices)
            lower_sources(pairs.merged, prices)
            lower_destinations(pairs.merged, prices)
            most[i] = min(most[i], paid(prices, sends, takes))


@loop
def paid(prices: PairPrices, sends: Array, takes: Array) -> float:
    """What all sources and destinations pay, for all that they send and take."""
    total = 0.0
    for s in range(len(sends)):
        total += prices.source[s] * sends[s]
    for d in range(len(takes)):
        total += prices.destination[d] * takes[d]
    return total


@loop
def write_loads(before: PairsByLink, growth: PairsByLink, arcs: Array, loads: Array) -> None:
    """Write who crosses some links since shares have changed.

    Args:
        before: who crossed each link before.
        growth: by how much shares have grown since.
        arcs: int64[n], the numbers of the links.
        loads: float64[n, S, D], zeros, written.
    """
    for i in range(len(arcs)):
        for x in range(before.begins[arcs[i]], before.begins[arcs[i] + 1]):
            loads[i, before.source[x], before.destination[x]] = before.share[x]
        for x in range(growth.begins[arcs[i]], growth.begins[arcs[i] + 1]):
            s, d = growth.source[x], growth.destination[x]
            share = loads[i, s, d] + growth.share[x]
            loads[i, s, d] = share if share > SAME else 0.0


@loop
def raise_bounds(
    before: PairsByLink,
    growth: PairsByLink,
    paid_before: PairPrices,
    sends: Array,
    takes: Array,
    raised: Array,
) -> None:
    """Write how much more switches pay for links since shares have grown.

    Sources or destinations raise their prices until they are enough, or of each pair the one that
    has more such pairs.

    Args:
        before: who crossed each link before.
        growth: by how much shares have grown since.
        paid_before: float64[n, S] and float64[n, D], the prices on each link before; or one row for
            all links.
        sends: float64[S], what the hosts of each switch can send.
        takes: float64[D], what they can take.
        raised: float64[n], zeros, written.
    """
    load, switches, ends = np.zeros((len(sends), len(takes))), len(sends), len(takes)
    source, destination = np.empty(load.size, np.int64), np.empty(load.size, np.int64)
    gains = np.empty(load.size)
    for arc in range(len(raised)):
        if growth.begins[arc] == growth.begins[arc + 1]:
            continue
        for x in range(before.begins[arc], before.begins[arc + 1]):
            load[before.source[x], before.destination[x]] = before.share[x]
        row = min(arc, len(paid_before.source) - 1)
        by_source, rows = np.zeros(switches), np.zeros(switches, np.int64)
        by_destination, columns, n = np.zeros(ends), np.zeros(ends, np.int64), 0
        for x in range(growth.begins[arc], growth.begins[arc + 1]):
            s, d = growth.source[x], growth.destination[x]
            gain = load[s, d] + growth.share[x]
            gain -= paid_before.source[row, s] + paid_before.destination[row, d]
            if gain > 0:
                source[n], destination[n], gains[n] = s, d, gain
                by_source[s] = max(by_source[s], gain)
                by_destination[d] = max(by_destination[d], gain)
                rows[s], columns[d], n = rows[s] + 1, columns[d] + 1, n + 1
        for x in range(before.begins[arc], before.begins[arc + 1]):
            load[before.source[x], before.destination[x]] = 0
        mixed = PairPrices(np.zeros(switches), np.zeros(ends))
        for x in range(n):
            s, d = source[x], destination[x]
            if rows[s] > columns[d]:
                mixed.source[s] = max(mixed.source[s], gains[x])
            else:
                mixed.destination[d] = max(mixed.destination[d], gains[x])
        raised[arc] = min(
            paid(mixed, sends, takes),
            paid(PairPrices(by_source, np.zeros(ends)), sends, takes),
            paid(PairPrices(np.zeros(switches), by_destination), sends, takes),
        )


class LinkBounds(NamedTuple):
    """What links carry at most, and whether packets come to where they go."""

    most: Reals
    """float64[n], a load that no traffic exceeds on each link."""
    arrived: Reals
    """float64[S, D], the share of what each switch sends to each destination that comes there over
    these links."""

    @classmethod
    def of(
        cls,
        crossings: LinkCrossings,
        arcs: NDArray[np.int64],
        sends: Reals,
        takes: Reals,
        enough: float = 0.0,
    ) -> LinkBounds:
        """Look at some links.

        Args:
            crossings: who crosses links.
            arcs: int64[n, 2], the links.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what they can take.
            enough: a bound that need not be lower.
        """
        c = crossings
        most, arrived = np.zeros(len(arcs)), np.zeros(c.size)
        bound = for_packets(c.packets, bound_links)
        bound(c.program, c.out, c.towards, arcs, sends, takes, enough, c.room(), most, arrived)
        return cls(most, arrived)
