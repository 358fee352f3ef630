"""Upper bounds of the load of links under any traffic, computed from prices.

What comes in are links, and the rates at which hosts send and receive. What goes out is a load for
each link that no traffic exceeds (`LinkBounds`). `compilers.evaluation` searches for the worst
traffic only on the links with the highest bounds.

Each source and each destination has a price for a link. The prices of a source and a destination
together are at least the share of their packets that crosses the link. Then no traffic loads the
link with more than all sources and destinations pay (the dual of the transportation problem).

The prices of sources and those of destinations are lowered alternately until the bound is low
enough. If that does not suffice, an auction finds better ones. Pairs are collected link by link
(`link_crossings`), so that no matrix of all pairs is made.

Letters in the loops: s a source, d the number of a destination, k a link of s, x an entry, i the
index of a link in `PairsByLink`. An *arc* is a switch and one of its links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import (
    CrossingPairs,
    DestinationClasses,
    LinkCrossings,
    MergedPairs,
    PairsByLink,
    collect_pairs,
    merge_pairs,
)
from compilers.forwarding.link_shares import EQUAL_SHARES, LinkShares
from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import Array, Program

Reals = NDArray[np.float64]
TURNS = 4
"""How often the prices of sources, and then those of destinations, are lowered: then the auction,
which takes longer, is tried."""
BIDS = 32
"""The most bids for a destination in an auction: more would bring its prices nearer to the best."""


class PairPrices(NamedTuple):
    """Prices that together are at least the share of each pair that crosses one link.

    So no traffic loads the link with more than all switches pay for the packets that they send and
    take.
    """

    source: Array
    """float64[S], the price that each source pays for a packet that it sends."""
    destination: Array
    """float64[D], the price that each destination pays for a packet that it takes."""


class UnpaidShares(NamedTuple):
    """The parts of shares that are above the prices of their pairs, n in all."""

    source: Array
    """int64[n], the source of each pair."""
    destination: Array
    """int64[n], the number of its destination."""
    share: Array
    """float64[n], the part of the share that nobody pays yet."""


@loop
def first_prices(pairs: MergedPairs, n: int, prices: PairPrices) -> None:
    """Write prices that suffice for n pairs.

    A source with more than √n pairs pays for all of them. There are at most √n such sources. For
    the pairs of other sources the destinations pay.
    """
    first, source_price, destination_price = (
        pairs.first_of_source,
        prices.source,
        prices.destination,
    )
    source_price[:], destination_price[:] = 0, 0
    for s in range(len(source_price)):
        source_pays = (first[s + 1] - first[s]) ** 2 > n
        for x in range(first[s], first[s + 1]):
            share, d = pairs.share[x], pairs.destination[x]
            if source_pays:
                source_price[s] = max(source_price[s], share)
            else:
                destination_price[d] = max(destination_price[d], share)


@loop
def lower_sources(pairs: MergedPairs, prices: PairPrices) -> None:
    """Let sources pay the part of each share that destinations do not pay."""
    for s in range(len(prices.source)):
        price = 0.0
        for x in range(pairs.first_of_source[s], pairs.first_of_source[s + 1]):
            unpaid = pairs.share[x] - prices.destination[pairs.destination[x]]
            price = max(price, unpaid)
        prices.source[s] = price


@loop
def lower_destinations(pairs: MergedPairs, prices: PairPrices) -> None:
    """Let destinations pay the part of each share that sources do not pay."""
    prices.destination[:] = 0
    for s in range(len(prices.source)):
        for x in range(pairs.first_of_source[s], pairs.first_of_source[s + 1]):
            d, unpaid = pairs.destination[x], pairs.share[x] - prices.source[s]
            prices.destination[d] = max(prices.destination[d], unpaid)


@loop
def auction(pairs: MergedPairs, n: int, prices: PairPrices) -> None:
    """Write prices of destinations by an auction: each source bids for its best destination.

    The best destination is the one with the largest share above its price. Sources wait in a queue
    until they have won a destination, or no destination is worth its price to them.

    A bid raises a price by at least a part of the largest share, so there are few bids, and the
    prices are near to the best (Bertsekas, "The auction algorithm", 1988).
    """
    first, price, largest = pairs.first_of_source, prices.destination, 0.0
    for x in range(n):
        largest = max(largest, pairs.share[x])
    least_raise, waiting = largest / BIDS, len(prices.source)
    owner, queue = np.full(len(price), -1, np.int64), np.arange(waiting)
    price[:] = 0
    while waiting > 0:
        waiting -= 1
        s = queue[waiting]
        best, second_best, best_destination = 0.0, 0.0, -1
        for x in range(first[s], first[s + 1]):
            surplus = pairs.share[x] - price[pairs.destination[x]]
            if surplus > best:
                best, second_best, best_destination = surplus, best, pairs.destination[x]
            elif surplus > second_best:
                second_best = surplus
        if best_destination >= 0:
            price[best_destination] += best - second_best + least_raise
            if owner[best_destination] >= 0:
                queue[waiting] = owner[best_destination]  # outbid: this source bids again
                waiting += 1
            owner[best_destination] = s


@loop
def bound_links(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    arcs: Array,
    sends: Array,
    takes: Array,
    low_enough: float,
    pairs: CrossingPairs,
    upper: Array,
    arrived: Array,
) -> None:
    """Write an upper bound of the load of each of some links, and the shares that arrive over them.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        arcs: int64[n, 2], the arcs, each as switch and link.
        sends: float64[S], the rate at which the hosts of each switch can send.
        takes: float64[D], the rate at which the hosts of each destination can receive.
        low_enough: a bound that need not be lowered further.
        pairs: a buffer.
        upper: float64[n], written: the bounds.
        arrived: float64[S, D], the share of each pair that came to its destination; added to.
    """
    prices = PairPrices(np.empty(len(sends)), np.empty(len(takes)))
    for i in range(len(arcs)):
        s, k = arcs[i]
        pairs.entry_count[0] = 0
        collect_pairs(p, leaving, destinations, s, k, pairs)
        # Packets to the switch at the far end arrive by this link.
        far_end = destinations.destination_number[p.far[s, k]]
        for x in range(pairs.entry_count[0]):
            if pairs.destination[x] == far_end:
                arrived[pairs.source[x], far_end] += pairs.share[x]
        n = merge_pairs(pairs)
        upper[i] = lowest_payment(pairs.merged, n, sends, takes, low_enough, prices)


@loop
def lowest_payment(
    pairs: MergedPairs,
    n: int,
    sends: Array,
    takes: Array,
    low_enough: float,
    prices: PairPrices,
) -> float:
    """The lowest payment for a link that was found, searching until one is low enough.

    Args:
        pairs: the pairs that cross the link.
        n: how many these are.
        sends: as in `bound_links`.
        takes: as in `bound_links`.
        low_enough: as in `bound_links`.
        prices: a buffer.
    """
    first_prices(pairs, n, prices)
    lowest, turn = payment(prices, sends, takes), 0
    while lowest > low_enough and turn < TURNS:
        lower_sources(pairs, prices)
        lower_destinations(pairs, prices)
        lowest, turn = min(lowest, payment(prices, sends, takes)), turn + 1
    if lowest > low_enough:
        auction(pairs, n, prices)
        lower_sources(pairs, prices)
        lower_destinations(pairs, prices)
        lowest = min(lowest, payment(prices, sends, takes))
    return lowest


@loop
def payment(prices: PairPrices, sends: Array, takes: Array) -> float:
    """The payment of all sources and destinations for all packets that they can send and take."""
    total = 0.0
    for s in range(len(sends)):
        total += prices.source[s] * sends[s]
    for d in range(len(takes)):
        total += prices.destination[d] * takes[d]
    return total


@loop
def write_loads(before: PairsByLink, growth: PairsByLink, links: Array, loads: Array) -> None:
    """Write the shares of all pairs that cross some links after a change.

    Args:
        before: the pairs that crossed each link before.
        growth: the growth of shares since then.
        links: int64[n], the indices of the links in `PairsByLink`.
        loads: float64[n, S, D], zeros, written.
    """
    for row in range(len(links)):
        i = links[row]
        for x in range(before.first_of_link[i], before.first_of_link[i + 1]):
            loads[row, before.source[x], before.destination[x]] = before.share[x]
        for x in range(growth.first_of_link[i], growth.first_of_link[i + 1]):
            s, d = growth.source[x], growth.destination[x]
            share = loads[row, s, d] + growth.share[x]
            loads[row, s, d] = share if share > EQUAL_SHARES else 0.0


@loop
def raise_bounds(
    before: PairsByLink,
    growth: PairsByLink,
    paid_before: PairPrices,
    sends: Array,
    takes: Array,
    raised: Array,
) -> None:
    """Write how much more switches pay for links whose shares have grown.

    Prices can be raised in three ways: all sources pay, all destinations pay, or for each pair the
    end that has more unpaid pairs. The cheapest way counts.

    Args:
        before: the pairs that crossed each link before.
        growth: the growth of shares since then.
        paid_before: float64[n, S] and float64[n, D], the prices on each link before; or one row for
            all links.
        sends: float64[S], the rate at which the hosts of each switch can send.
        takes: float64[D], the rate at which the hosts of each destination can receive.
        raised: float64[n], zeros, written.
    """
    # A buffer for `write_unpaid`: the share of each pair on one link.
    sources, destinations = len(sends), len(takes)
    load = np.zeros((sources, destinations))
    unpaid = UnpaidShares(
        np.empty(load.size, np.int64), np.empty(load.size, np.int64), np.empty(load.size)
    )
    for i in range(len(raised)):
        if growth.first_of_link[i] == growth.first_of_link[i + 1]:
            continue
        price_row = min(i, len(paid_before.source) - 1)  # 0 where one row is for all links
        n = write_unpaid(before, growth, paid_before, i, price_row, load, unpaid)
        by_source = PairPrices(np.zeros(sources), np.zeros(destinations))
        by_destination = PairPrices(np.zeros(sources), np.zeros(destinations))
        by_either = PairPrices(np.zeros(sources), np.zeros(destinations))
        pairs_of_source = np.zeros(sources, np.int64)
        pairs_of_destination = np.zeros(destinations, np.int64)
        for x in range(n):
            s, d, share = unpaid.source[x], unpaid.destination[x], unpaid.share[x]
            by_source.source[s] = max(by_source.source[s], share)
            by_destination.destination[d] = max(by_destination.destination[d], share)
            pairs_of_source[s] += 1
            pairs_of_destination[d] += 1
        for x in range(n):
            s, d, share = unpaid.source[x], unpaid.destination[x], unpaid.share[x]
            if pairs_of_source[s] > pairs_of_destination[d]:
                by_either.source[s] = max(by_either.source[s], share)
            else:
                by_either.destination[d] = max(by_either.destination[d], share)
        raised[i] = min(
            payment(by_either, sends, takes),
            payment(by_source, sends, takes),
            payment(by_destination, sends, takes),
        )


@loop
def write_unpaid(
    before: PairsByLink,
    growth: PairsByLink,
    paid_before: PairPrices,
    i: int,
    price_row: int,
    load: Array,
    unpaid: UnpaidShares,
) -> int:
    """Write the shares of a link that are above the prices of their pairs.

    Args:
        before: the pairs that crossed each link before.
        growth: the growth of shares since then.
        paid_before: the prices before.
        i: the index of the link in `PairsByLink`.
        price_row: the row of its prices in `paid_before`.
        load: float64[S, D], zeros, and so it is left.
        unpaid: written.

    Returns:
        How many shares are written.
    """
    n = 0
    for x in range(before.first_of_link[i], before.first_of_link[i + 1]):
        load[before.source[x], before.destination[x]] = before.share[x]
    for x in range(growth.first_of_link[i], growth.first_of_link[i + 1]):
        s, d = growth.source[x], growth.destination[x]
        share = load[s, d] + growth.share[x]
        share -= paid_before.source[price_row, s] + paid_before.destination[price_row, d]
        if share > 0:
            unpaid.source[n], unpaid.destination[n], unpaid.share[n] = s, d, share
            n += 1
    for x in range(before.first_of_link[i], before.first_of_link[i + 1]):
        load[before.source[x], before.destination[x]] = 0
    return n


class LinkBounds(NamedTuple):
    """Bounds of the load of n links, and the shares that arrive over them."""

    upper: Reals
    """float64[n], a load that no traffic exceeds on each link."""
    arrived: Reals
    """float64[S, D], the share of each pair's packets that arrives at the destination over these
    links."""

    @classmethod
    def of(
        cls,
        crossings: LinkCrossings,
        arcs: NDArray[np.int64],
        sends: Reals,
        takes: Reals,
        low_enough: float = 0.0,
    ) -> LinkBounds:
        """Compute the bounds of some links.

        Args:
            crossings: the pairs that cross links.
            arcs: int64[n, 2], the arcs, each as switch and link.
            sends: float64[S], the rate at which the hosts of each switch can send.
            takes: float64[D], the rate at which the hosts of each destination can receive.
            low_enough: a bound that need not be lowered further.
        """
        upper, arrived = np.zeros(len(arcs)), np.zeros(crossings.size)
        for_packets(crossings.packets, bound_links)(
            crossings.program,
            crossings.leaving,
            crossings.destinations,
            arcs,
            sends,
            takes,
            low_enough,
            crossings.pair_buffer(),
            upper,
            arrived,
        )
        return cls(upper, arrived)
