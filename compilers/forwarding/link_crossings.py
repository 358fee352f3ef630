"""The pairs of switches whose packets cross a link, each with the share that crosses it.

What comes in is a build, and the elements that are down. What goes out are pairs of switches with
shares, for the guaranteed throughput (`compilers.evaluation`), bounds (`link_bounds`) and
symmetries (`link_orbits`). Other modules call `LinkCrossings`. `collect_pairs` does the search for
one link, and writes into `CrossingPairs`.

A search counts all packets, or only *returned* ones (`LinkShares.only_returned`): those that came
to some switch before the link by the minimal link of their class there, so that the switch treats
them as sent back. An example: s sends packets to d over t, but the link from t to d is down. So t
sends them back, they come to s by its minimal link, and s sends them to u, which sends them to d.
They have returned to s, so they count on the links from s to u and from u to d, but not on the
links from s to t and from t to s. `returning_packets` asks which pairs have such packets, as their
loads have less symmetry than those of the others.

The search goes backwards. From a link (u, v) it goes to the packets that leave by the link: packets
of u's hosts, and packets in transit, which left the switch before u by their ingress link
(`link_shares`). It ends where hosts are reached. A link of a fabric of diameter two is crossed by
few pairs of switches, so few pairs are visited.

With a balance that marks packets, a packet of a host gets a *mark* if it leaves by another link
than the minimal one. The next switch *spreads* it: the packet leaves by any of the links *onward*
from its ingress link (`rule.Program.onward`), and loses its mark.

Letters in the loops: p the program, s and t switches, k a link, c an egress class, d the number of
a destination. An *arc* is a directed link: a switch and one of its links.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_shares import LinkShares, NextHopTable, place_in_entries
from compilers.forwarding.machine_code import for_packets, inlined_loop, loop
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import Array, Program, marks, spreads
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

Reals = NDArray[np.float64]
NO_FAILURES = np.zeros(0, np.int64)
"""The failed elements where everything is up."""
FIRST_CAPACITY = 1 << 14
"""How many pairs `LinkCrossings.pairs_by_link` makes room for at first."""
PACKETS_A_CROSSING = 8
"""How long one crossing takes: as long as so many packets, as `for_packets` counts them."""


class DestinationClasses(NamedTuple):
    """The D destinations, which are the switches with hosts, by the classes that switches have."""

    egress_class: Array
    """int16[D, S], the class of each switch for each destination."""
    destinations_by_class: Array
    """int32[S, D], by switch the numbers of the destinations, sorted by their class there."""
    first_of_class: Array
    """int32[S, C + 1], where each class begins in `destinations_by_class`."""
    destination_number: Array
    """int32[S], the number of each switch as a destination; -1 for a switch without hosts."""


class MergedPairs(NamedTuple):
    """The pairs that cross a link, sorted by their sources, each pair once."""

    first_of_source: Array
    """int64[S + 1], where the pairs of each source begin."""
    destination: Array
    """int32[capacity], the number of the destination of each pair."""
    share: Array
    """float64[capacity], the share of the pair's traffic that crosses the link."""
    next_place: Array
    """int64[S], a buffer: where the next entry of each source is written."""
    last_place: Array
    """int64[D], a buffer: where the last pair with each destination is."""


class BackwardPackets(NamedTuple):
    """Packets in transit that are followed backwards from a link, as a stack."""

    switch: Array
    """int64[n], the switch that each packet leaves."""
    link: Array
    """int64[n], the link by which it leaves."""
    distance: Array
    """int64[n], the number of links from this one to the link in question, both counted."""
    share: Array
    """float64[n], the share of these packets that crosses the link in question."""
    is_counted: Array
    """bool[n], whether these packets count. All do in a search for all packets. In a search for
    returned packets only those do that return to a switch between here and the link in question."""


class CrossingPairs(NamedTuple):
    """The pairs of switches that cross a link, in n entries while they are collected.

    A pair may have several entries. They are added one after the other, because a matrix of all
    pairs would be too large for a processor's cache.
    """

    source: Array
    """int32[capacity], the switch of each entry that sends."""
    destination: Array
    """int32[capacity], the number of the destination."""
    share: Array
    """float64[capacity], a share of the pair's traffic that crosses the link."""
    entry_count: Array
    """int64[1], n, the number of entries."""
    merged: MergedPairs
    """The pairs with one entry each, once `merge_pairs` has written them."""
    backward: BackwardPackets
    """A buffer for packets that are followed backwards."""

    @classmethod
    def buffer(cls, switches: int, destinations: int, most_links: int) -> CrossingPairs:
        """No pairs yet, and room for all pairs of switches with at most `most_links` links each."""
        # A packet on the stack is replaced by at most one for each ingress link, MOST_HOPS times.
        stacked, entries = MOST_HOPS * most_links, 2 * switches * destinations
        switch, link, distance = np.zeros((3, stacked), np.int64)
        source, destination, merged_destination = np.empty((3, entries), np.int32)
        share, merged_share = np.empty((2, entries))
        merged = MergedPairs(
            first_of_source=np.zeros(switches + 1, np.int64),
            destination=merged_destination,
            share=merged_share,
            next_place=np.zeros(switches, np.int64),
            last_place=np.zeros(destinations, np.int64),
        )
        backward = BackwardPackets(
            switch=switch,
            link=link,
            distance=distance,
            share=np.zeros(stacked),
            is_counted=np.zeros(stacked, np.bool_),
        )
        return cls(
            source=source,
            destination=destination,
            share=share,
            entry_count=np.zeros(1, np.int64),
            merged=merged,
            backward=backward,
        )


class PairsByLink(NamedTuple):
    """The pairs of switches that cross each of some links, n in all."""

    first_of_link: Array
    """int64[links + 1], where the pairs of each link begin."""
    source: Array
    """int16[n], the switch that sends."""
    destination: Array
    """int16[n], the number of the destination."""
    share: Array
    """float64[n], the share of the pair's traffic that crosses the link."""

    def without_pairs(self) -> PairsByLink:
        """No pairs on as many links."""
        return PairsByLink(np.zeros_like(self.first_of_link), *(column[:0] for column in self[1:]))


@inlined_loop
def add_pair(pairs: CrossingPairs, s: int, d: int, share: float) -> None:
    """Add a share of what s sends to d."""
    if share > 0:
        if pairs.entry_count[0] == len(pairs.share):
            pairs.entry_count[0] = replace_by_merged(pairs)
        n = pairs.entry_count[0]
        pairs.source[n], pairs.destination[n], pairs.share[n] = s, d, share
        pairs.entry_count[0] = n + 1


@loop
def replace_by_merged(pairs: CrossingPairs) -> int:
    """Replace the entries by one entry for each pair; returns the number of pairs.

    The arrays are twice as long as there can be pairs, so that at least half of them is free then.
    """
    number, merged = merge_pairs(pairs), pairs.merged
    for s in range(len(merged.first_of_source) - 1):
        for entry in range(merged.first_of_source[s], merged.first_of_source[s + 1]):
            pairs.source[entry], pairs.share[entry] = s, merged.share[entry]
            pairs.destination[entry] = merged.destination[entry]
    return number


@loop
def merge_pairs(pairs: CrossingPairs) -> int:
    """Write the pairs with one entry each into `pairs.merged`; returns the number of pairs."""
    first, destination, share, next_place, last_place = pairs.merged
    switches, entries = len(next_place), pairs.entry_count[0]
    # Sort the entries by their sources: count them, add up the counts, and put each in its place.
    first[:] = 0
    for entry in range(entries):
        first[pairs.source[entry] + 1] += 1
    for s in range(switches):
        first[s + 1] += first[s]
        next_place[s] = first[s]
    for entry in range(entries):
        s = pairs.source[entry]
        place = next_place[s]
        destination[place], share[place] = pairs.destination[entry], pairs.share[entry]
        next_place[s] += 1
    # Add the shares of equal destinations of a source. The place that is written is never beyond
    # the one that is read.
    last_place[:] = -1
    written = 0
    for s in range(switches):
        first_read, first[s] = first[s], written
        for entry in range(first_read, next_place[s]):
            d = destination[entry]
            if last_place[d] >= first[s]:  # a pair of this source, not of an earlier one
                share[last_place[d]] += share[entry]
            else:
                destination[written], share[written], last_place[d] = d, share[entry], written
                written += 1
    first[switches] = written
    return written


@loop
def collect_pairs(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    s: int,
    k: int,
    pairs: CrossingPairs,
) -> None:
    """Collect the pairs that cross link k of switch s.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        s: the switch.
        k: the link.
        pairs: added to.
    """
    classes, most_links = leaving.host_share.shape[1], leaving.host_share.shape[2]
    for c in range(classes):
        place = place_in_entries(leaving, s, k, c)
        has_transit = leaving.first_entry[place] < leaving.first_entry[place + 1]
        if leaving.host_share[s, c, k] == 0 and not has_transit:
            continue
        for i in range(destinations.first_of_class[s, c], destinations.first_of_class[s, c + 1]):
            d = destinations.destinations_by_class[s, i]
            if not leaving.only_returned:  # packets of the switch's own hosts came by no link
                add_pair(pairs, s, d, leaving.host_share[s, c, k])
            if has_transit:
                collect_in_transit(p, leaving, destinations, s, k, d, pairs)
    # Marked packets that s spreads come from the hosts of its neighbours. A switch that spreads a
    # packet does not ask whether it came by the minimal link, so none of them counts as returned.
    for ingress in range(most_links if marks(p) and not leaving.only_returned else 0):
        if p.far[s, ingress] < 0 or not p.onward[s, ingress, k]:
            continue
        sender, sender_link = p.far[s, ingress], p.far_link[s, ingress]
        for c in range(classes):
            share = leaving.spread_share[s, ingress] * leaving.marked_share[sender, c, sender_link]
            if share == 0:
                continue
            for i in range(
                destinations.first_of_class[sender, c], destinations.first_of_class[sender, c + 1]
            ):
                d = destinations.destinations_by_class[sender, i]
                if spreads(p, destinations.egress_class[d, s]):
                    add_pair(pairs, sender, d, share)


@inlined_loop
def collect_in_transit(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    s: int,
    k: int,
    d: int,
    pairs: CrossingPairs,
) -> None:
    """Collect the pairs of packets in transit to d that leave switch s by link k without a mark.

    The packets are followed backwards: `pairs.backward` is a stack of links by which they leave a
    switch. For each link that is taken off the stack, packets of two kinds came to it: those of
    hosts at the switch before, which are pairs, and packets in transit there, which are put on the
    stack.
    """
    has_marks, (switch, link, distance, share, is_counted) = marks(p), pairs.backward
    switch[0], link[0], share[0], distance[0], n = s, k, 1.0, 1, 1
    is_counted[0] = not leaving.only_returned
    while n > 0:
        n -= 1
        t, leaves_by, distance_of_t = switch[n], link[n], distance[n]
        share_so_far, was_counted = share[n], is_counted[n]
        c = destinations.egress_class[d, t]
        place = place_in_entries(leaving, t, leaves_by, c)
        # Marked packets that a switch spreads are collected elsewhere.
        spreads_here = has_marks and spreads(p, c)
        for e in range(leaving.first_entry[place], leaving.first_entry[place + 1]):
            # These packets left `sender`, the switch before t, by its link `sender_link`.
            sender, sender_link = p.far[t, leaving.ingress[e]], p.far_link[t, leaving.ingress[e]]
            if destinations.egress_class[d, sender] < 0:
                continue
            part = share_so_far * leaving.share[e]
            counts = was_counted or leaving.is_return[e]
            if counts:
                collect_from_sender(
                    p, leaving, destinations, sender, sender_link, d, part, spreads_here, pairs
                )
            if distance_of_t < MOST_HOPS:
                switch[n], link[n], distance[n] = sender, sender_link, distance_of_t + 1
                share[n], is_counted[n] = part, counts
                n += 1


@inlined_loop
def collect_from_sender(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    s: int,
    k: int,
    d: int,
    part: float,
    next_spreads: bool,
    pairs: CrossingPairs,
) -> None:
    """Collect the pairs of packets to d that get to link k of switch s without being in transit.

    They are packets of the hosts of s, and marked packets from its neighbours that s spreads.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        s: the switch.
        k: the link.
        d: the number of the destination.
        part: the part of the unmarked packets on link k that goes on to the link in question.
        next_spreads: whether the switch behind link k spreads marked packets to d. Then those that
            the hosts of s mark are left out here.
        pairs: added to.
    """
    c = destinations.egress_class[d, s]
    marked = leaving.marked_share[s, c, k] if next_spreads else 0.0
    add_pair(pairs, s, d, part * (leaving.host_share[s, c, k] - marked))
    if marks(p) and spreads(p, c):
        collect_marked(p, leaving, destinations, s, k, d, part, pairs)


@inlined_loop
def collect_marked(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    s: int,
    k: int,
    d: int,
    part: float,
    pairs: CrossingPairs,
) -> None:
    """Collect the pairs of marked packets to d that switch s spreads over its link k.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        s: the switch.
        k: the link.
        d: the number of the destination.
        part: the part of these packets that goes on to the link in question.
        pairs: added to.
    """
    for ingress in range(p.far.shape[1]):
        if p.far[s, ingress] >= 0 and p.onward[s, ingress, k]:
            sender, sender_link = p.far[s, ingress], p.far_link[s, ingress]
            sender_class = destinations.egress_class[d, sender]
            if sender_class >= 0:
                marked = leaving.marked_share[sender, sender_class, sender_link]
                add_pair(pairs, sender, d, part * leaving.spread_share[s, ingress] * marked)


@loop
def write_shares(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    arcs: Array,
    pairs: CrossingPairs,
    load: Array,
) -> None:
    """Write the shares of all pairs that cross some arcs.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        arcs: int64[n, 2], the arcs.
        pairs: a buffer.
        load: float64[n, S, D], added to.
    """
    for i in range(len(arcs)):
        pairs.entry_count[0] = 0
        collect_pairs(p, leaving, destinations, arcs[i, 0], arcs[i, 1], pairs)
        for x in range(pairs.entry_count[0]):
            load[i, pairs.source[x], pairs.destination[x]] += pairs.share[x]


@loop
def write_pairs(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    arcs: Array,
    pairs: CrossingPairs,
    by_link: PairsByLink,
) -> int:
    """Write the pairs that cross each of some arcs, as far as there is room.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        arcs: int64[n, 2], the arcs.
        pairs: a buffer.
        by_link: written.

    Returns:
        How many pairs there are. If `by_link` has no room for so many, the rest is not written.
    """
    written = 0
    for i in range(len(arcs)):
        pairs.entry_count[0] = 0
        collect_pairs(p, leaving, destinations, arcs[i, 0], arcs[i, 1], pairs)
        merge_pairs(pairs)
        for s in range(len(pairs.merged.next_place)):
            for x in range(pairs.merged.first_of_source[s], pairs.merged.first_of_source[s + 1]):
                if written < len(by_link.share):
                    by_link.source[written] = s
                    by_link.destination[written] = pairs.merged.destination[x]
                    by_link.share[written] = pairs.merged.share[x]
                written += 1
        by_link.first_of_link[i + 1] = written
    return written


@dataclass(frozen=True, eq=False)
class LinkCrossings:
    """A build prepared for the search for the pairs that cross a link."""

    program: Program
    """Its tables in links."""
    next_hops: NextHopTable
    """The links by which packets leave, by their ingress links."""
    leaving: LinkShares
    """The shares of packets in transit, by the links by which they leave."""
    destinations: DestinationClasses
    """The destinations."""
    packets: int
    """How much there is to do, as `for_packets` counts it."""

    @classmethod
    def of(
        cls, build: Build, failed: NDArray[np.int64] = NO_FAILURES, times: int = 1
    ) -> LinkCrossings:
        """Prepare a build: evaluate the rule for all switches, classes and ingress links.

        Args:
            build: its tables and cables.
            failed: int64[n], the failed elements, as `Program` numbers them.
            times: for how many sets of failed elements this is done; for many, loops run as
                machine code (`for_packets`).
        """
        p, weight = program_of(build), build.tables.classes.weight
        packets = times * PACKETS_A_CROSSING * len(p.far) ** 2 * weight.shape[2]
        if marks(p):
            packets *= p.far.shape[1]
        next_hops = NextHopTable.of(p, build, failed, packets)
        destinations = _destination_classes(build, p)
        return cls(p, next_hops, LinkShares.of(next_hops), destinations, packets)

    @cached_property
    def arcs(self) -> NDArray[np.int64]:
        """int64[n, 2]: each direction of each link, as a switch and its link."""
        return np.argwhere(self.program.far >= 0)

    @property
    def size(self) -> tuple[int, int]:
        """S and D."""
        return len(self.program.far), len(self.destinations.egress_class)

    def pair_buffer(self) -> CrossingPairs:
        """A buffer for the pairs that cross one link."""
        return CrossingPairs.buffer(*self.size, self.program.far.shape[1])

    def loads(self, arcs: NDArray[np.int64]) -> Reals:
        """float64[n, S, D]: the share of what each switch sends to each destination on each arc."""
        load = np.zeros((len(arcs), *self.size))
        write = for_packets(self.packets, write_shares)
        write(self.program, self.leaving, self.destinations, arcs, self.pair_buffer(), load)
        return load

    def pairs_by_link(self) -> PairsByLink:
        """The pairs that cross each link."""
        write, buffer = for_packets(self.packets, write_pairs), self.pair_buffer()
        capacity = FIRST_CAPACITY
        while True:
            first = np.zeros(len(self.arcs) + 1, np.int64)
            source, destination = np.zeros((2, capacity), np.int16)
            pairs = PairsByLink(first, source, destination, np.zeros(capacity))
            count = write(self.program, self.leaving, self.destinations, self.arcs, buffer, pairs)
            if count <= capacity:
                return pairs
            capacity = count


def _destination_classes(build: Build, p: Program) -> DestinationClasses:
    """The destinations of a build, whose program is p, by the classes that switches have."""
    destinations = np.flatnonzero(build.topology.endpoints)
    egress = egress_classes(build, destinations, Fib.of(build.tables, build.wiring.far_by_port()))
    # [S, D], by switch the destinations sorted by their class, and these classes.
    by_class = np.argsort(egress.T, axis=1, kind="stable")
    sorted_classes = np.take_along_axis(egress.T, by_class, axis=1)
    classes = np.arange(p.order.shape[1] + 1)
    first = np.stack([np.searchsorted(row, classes) for row in sorted_classes])
    number = np.full(len(p.far), -1, np.int32)
    number[destinations] = np.arange(len(destinations))
    return DestinationClasses(
        egress_class=egress,
        destinations_by_class=by_class.astype(np.int32),
        first_of_class=first.astype(np.int32),
        destination_number=number,
    )
