"""The next hops of many packets at once, as numpy arrays instead of packet by packet.

- `next_of_packets` evaluates the rule for an array of packets, in any state: switch, ingress link,
  tag and egress class. Rehearsals (`state_hops`) and comparisons with simulators call it.
- `ManyPackets` does the same for a build, in arcs. An *arc* is a directed link, as one number. In
  this file the hosts of a switch count as one more link, and have an arc, too. The next hops of
  packets in transit come from a table (`tabulation`). The fluid model (`compilers.demand.fluid`)
  calls it.
- `add_packet_bounds` bounds the load of each arc where packets go over intermediates that are not
  known (`host_paths`).

Letters in the loops: p the program, s a switch, c an egress class, d a destination, v the number of
an intermediate, n and m how many arcs or next hops are written so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.program import Egress
from compilers.forwarding.rule import (
    DELIVER,
    DROP,
    HOST,
    PLAIN,
    Array,
    Program,
    next_links,
    spreads,
)
from compilers.forwarding.tabulation import (
    FROM_OTHER,
    LINK_BITS,
    LINK_MASK,
    NAMED,
    WITHOUT_FAILURE,
    tabulate,
)
from compilers.forwarding.walks import Walks
from compilers.tables.build import Build

SWITCH, INGRESS, TAG, CLASS = range(4)
"""Columns of an array of packets: the switch that a packet is in, its ingress link there, its tag,
and its egress class."""
LINK, NEXT_TAG = range(2)
"""Columns of an array of next hops: the link, or DELIVER or DROP, and the packet's tag there."""


@loop
def next_of_packets(p: Program, packets: Array, failed: Array) -> tuple[Array, Array]:
    """Evaluate the rule for an array of packets.

    Args:
        p: what switches hold.
        packets: int64[n, 4], with the columns SWITCH to CLASS.
        failed: int64[n, F], the failed elements for each packet; -1: none.

    Returns:
        int64[n], how many next hops each packet has; and int64[m, 2], the next hops packet after
        packet, with the columns LINK and NEXT_TAG.
    """
    most_links = p.far.shape[1]
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    count, hops, m = np.zeros(len(packets), np.int64), np.empty((len(packets), 2), np.int64), 0
    for i in range(len(packets)):
        s, ingress = packets[i, SWITCH], packets[i, INGRESS]
        tag, c = packets[i, TAG], packets[i, CLASS]
        count[i] = next_links(p, s, ingress, tag, c, failed[i], link, tags)
        if m + count[i] > len(hops):
            larger = np.empty((2 * len(hops) + most_links, 2), np.int64)
            for x in range(m):
                larger[x, LINK], larger[x, NEXT_TAG] = hops[x, LINK], hops[x, NEXT_TAG]
            hops = larger
        for x in range(count[i]):
            hops[m, LINK], hops[m, NEXT_TAG] = link[x], tags[x]
            m += 1
    return count, hops[:m].copy()


class ArcCounts(NamedTuple):
    """The crossings of each arc by the paths of one pair of switches over its intermediates."""

    paths: Array
    """int64[arcs], the number of intermediates whose path crosses the arc."""
    crossings: Array
    """int64[arcs], how many times the current path crosses it; 0 between paths."""
    fewest: Array
    """int64[arcs], the fewest times that a path crosses it, of the paths that do."""
    largest: Array
    """int64[arcs], the most times that a path crosses it."""
    touched: Array
    """int64[arcs], the arcs with `paths` above 0."""


@loop
def write_path(first_leg: Array, second_legs: Array, end: int, d: int, path: Array) -> int:
    """Write the arcs of a path over an intermediate; returns how many there are.

    Args:
        first_leg: int32[H], the arcs of the first leg; -1 after the last.
        second_legs: int32[S, S, H'], the arcs of second legs.
        end: the switch where the first leg ends; -1: the packet is lost.
        d: the destination.
        path: int64[H + H'], written.
    """
    n = 0
    for arc in first_leg:
        if arc >= 0:
            path[n] = arc
            n += 1
    if end >= 0:
        for arc in second_legs[end, d]:
            if arc >= 0:
                path[n] = arc
                n += 1
    return n


@loop
def count_path(path: Array, counts: ArcCounts, touched: int) -> int:
    """Add a path, int64[n], to the counts of its arcs.

    Args:
        path: the arcs of the path.
        counts: added to.
        touched: how many arcs are in `ArcCounts.touched`.

    Returns:
        How many arcs are there now.
    """
    for arc in path:
        counts.crossings[arc] += 1
    for arc in path:
        times = counts.crossings[arc]
        if times:
            counts.crossings[arc] = 0
            if counts.paths[arc] == 0:
                counts.touched[touched] = arc
                counts.fewest[arc], counts.largest[arc] = times, times
                touched += 1
            counts.paths[arc] += 1
            counts.fewest[arc] = min(counts.fewest[arc], times)
            counts.largest[arc] = max(counts.largest[arc], times)
    return touched


@loop
def add_packet_bounds(
    first: Array, ends: Array, second: Array, packets: Array, fewest: Array, most: Array
) -> None:
    """Add the fewest and the most packets that each arc carries, whatever intermediates they take.

    A packet from s to d goes over one of V intermediates, and it is not known over which. An arc on
    the paths over all intermediates carries it in any case; an arc on some of them may carry it.

    Args:
        first: int32[S, V, H], the arcs of the first leg from each switch to each intermediate; -1
            after the last.
        ends: int32[S, V], the switch where the first leg ends; -1: the packet is lost.
        second: int32[S, S, H'], the arcs of the second leg.
        packets: int64[S, S], the number of packets from each switch to each switch.
        fewest: int64[arcs], added to.
        most: int64[arcs], added to.
    """
    switches, vias, _ = first.shape
    path = np.empty(first.shape[2] + second.shape[2], np.int64)
    arcs = len(most)
    counts = ArcCounts(
        np.zeros(arcs, np.int64),
        np.zeros(arcs, np.int64),
        np.zeros(arcs, np.int64),
        np.zeros(arcs, np.int64),
        np.empty(arcs, np.int64),
    )
    for s in range(switches):
        for d in range(switches):
            if packets[s, d] == 0:
                continue
            touched = 0
            for v in range(vias):
                n = write_path(first[s, v], second, ends[s, v], d, path)
                touched = count_path(path[:n], counts, touched)
            for arc in counts.touched[:touched]:
                most[arc] += packets[s, d] * counts.largest[arc]
                if counts.paths[arc] == vias:
                    fewest[arc] += packets[s, d] * counts.fewest[arc]
                counts.paths[arc] = 0


class NextArcs(NamedTuple):
    """The next hops that packets may take, a row for each packet and next hop."""

    packet: Array
    """int64[m], the number of the packet, ascending."""
    arc: Array
    """int64[m], the arc (`ManyPackets`) by which the packet leaves; or DELIVER or DROP, which are
    negative."""


class _ArcTable(NamedTuple):
    """The next hops of packets in transit, as arcs.

    Each switch has C + 2 classes here: the last two stand for DROP and DELIVER. Row s·(C + 2) + c
    is class c of switch s. A class *names* the N links of its `order`.
    """

    named: Array
    """int32[N, rows], the arcs of the links that the class of each row names; DROP for none."""
    next_arc: Array
    """int32[rows·(N + NAMED)], by row and ingress place the arc of the next hop; or DELIVER or
    DROP."""


@dataclass(frozen=True, eq=False)
class ManyPackets:
    """The next hops of a build's switches, for many packets at once.

    The arcs of a switch are its K links, and one more for its hosts. With L = K + 1, arc s·L + k is
    link k of switch s, and arc s·L + K stands for its hosts. A packet comes in by an arc of a
    switch, and leaves by an arc of the switch.

    The *ingress place* of a packet in a class tells how it came in (`tabulation`): FROM_HOST;
    NAMED + i for the i-th link of the class's `order`; FROM_OTHER for any other link.
    """

    walks: Walks
    """The build as a program."""
    far_arc: Array
    """int32[S·L], the arc at the far end of the same link; -1 where there is none."""

    @classmethod
    def of(cls, build: Build) -> ManyPackets:
        """Lower the tables of a build to links."""
        walks = Walks.of(build)
        p = walks.program
        far_arc = np.where(p.far >= 0, p.far * (p.far.shape[1] + 1) + p.far_link, -1)
        # One column more, for the arcs of hosts, which have no far end.
        far_arc = np.pad(far_arc, ((0, 0), (0, 1)), constant_values=-1)
        return cls(walks, far_arc.ravel().astype(np.int32))

    @property
    def program(self) -> Program:
        """What the switches hold."""
        return self.walks.program

    @property
    def switches(self) -> int:
        """S, the number of switches."""
        return len(self.program.far)

    @property
    def arcs_a_switch(self) -> int:
        """L, the number of arcs of a switch."""
        return int(self.program.far.shape[1]) + 1

    @property
    def classes(self) -> int:
        """C, the number of egress classes of a switch."""
        return int(self.program.order.shape[1])

    @property
    def rows_of_switch(self) -> int:
        """C + 2, how many rows a switch has in `_ArcTable`: for its classes, DROP and DELIVER."""
        return self.classes + 2

    @cached_property
    def _table(self) -> _ArcTable:
        """The tables of the switches in arcs."""
        p, first_arc = self.program, np.arange(self.switches)[:, None, None] * self.arcs_a_switch
        step = for_packets(self.walks.packets, tabulate)(p).step[..., WITHOUT_FAILURE]
        ingress_arc = (step >> LINK_BITS) * self.arcs_a_switch + (step & LINK_MASK)
        with_two_classes_more = (0, 0), (0, 2), (0, 0)
        # The packet leaves by the far end of the arc by which it comes in at the next switch.
        leaves_by = self.far_arc[np.where(step >= 0, ingress_arc, 0)]
        next_arc = np.where(step >= 0, leaves_by, DROP)
        next_arc = np.pad(next_arc, with_two_classes_more)
        next_arc[:, -2:] = np.array((DROP, DELIVER))[:, None]
        order = np.where(p.order >= 0, first_arc + p.order, DROP)
        order = np.pad(order, with_two_classes_more, constant_values=DROP)
        named = np.ascontiguousarray(order.reshape(-1, order.shape[2]).T.astype(np.int32))
        return _ArcTable(named, next_arc.astype(np.int32).ravel())

    def rows(self, egress: Egress) -> Array:
        """The rows of `_ArcTable` for packets to some destinations, as `transit` takes them.

        Returns:
            int32[D, S], by destination and switch.
        """
        classes = self.rows_of_switch
        first = np.arange(0, self.switches * classes, classes, dtype=np.int32)
        # DROP, which is -2, becomes class C, and DELIVER, which is -1, class C + 1.
        rows: Array = first + egress % np.int16(classes)
        return rows

    def transit(self, arc: Array, row: Array) -> Array:
        """The arcs by which packets in transit leave their switches.

        Args:
            arc: int[n], the arc by which each packet came in, not from a host.
            row: int32[n], the row of `rows` for its destination at its switch.

        Returns:
            int32[n], arcs; DELIVER or DROP.
        """
        named, next_arc = self._table
        places = len(named) + NAMED  # the number of ingress places of a class
        entry = row * places + FROM_OTHER
        for i in range(len(named) - 1, -1, -1):  # if a class names a link twice, the first counts
            came_by_named = named[i].take(row) == arc
            entry[came_by_named] = row[came_by_named] * places + NAMED + i
        leaves_by: Array = next_arc.take(entry)
        return leaves_by

    def switches_spread(self, egress: Egress) -> Array:
        """Whether switches spread marked packets of some classes: bool[D, S], as `egress`."""
        by_class = np.array([spreads(self.program, c) for c in range(DROP, self.classes)])
        switch_spreads: Array = by_class[egress.astype(np.intp) - DROP]
        return switch_spreads

    def next_arcs(
        self,
        egress: Egress,
        arc: Array,
        column: Array,
        dead: Array | None = None,
    ) -> NextArcs:
        """The next hops that packets without a mark may take.

        Args:
            egress: int16[D, S], of `egress_classes` for some destinations.
            arc: int64[n], the arc by which each packet came in.
            column: int64[n], the row of its destination in `egress`.
            dead: int64[D, F], the failed elements for packets to each destination; None: none.
        """
        switch, ingress = np.divmod(arc, self.arcs_a_switch)
        packets = np.zeros((len(arc), 4), np.int64)
        packets[:, SWITCH] = switch
        packets[:, INGRESS] = np.where(ingress == self.arcs_a_switch - 1, HOST, ingress)
        packets[:, TAG], packets[:, CLASS] = PLAIN, egress[column, switch]
        down = np.zeros((len(egress), 0), np.int64) if dead is None else dead
        next_of, distinct = for_packets(self.walks.packets, next_of_packets), np.arange(len(arc))
        if next_of is next_of_packets:  # plain Python is slow: equal packets are evaluated once
            # One number for each arc and class; classes count from 0, as DROP is the least.
            key = arc * self.rows_of_switch + packets[:, CLASS] - DROP
            if dead is not None:
                key = key * len(egress) + column
            _, first, distinct = np.unique(key, return_index=True, return_inverse=True)
            packets, column = packets[first], column[first]
        count, hops = next_of(self.program, packets, down[column])
        begins = np.cumsum(count) - count
        # Each packet has the next hops of the distinct packet that it equals.
        count, begins = count[distinct], begins[distinct]
        packet = np.repeat(np.arange(len(arc)), count)
        nth_hop = np.arange(len(packet)) - np.repeat(np.cumsum(count) - count, count)
        link = hops[np.repeat(begins, count) + nth_hop, LINK]
        return NextArcs(
            packet, np.where(link >= 0, switch[packet] * self.arcs_a_switch + link, link)
        )

    def host_arcs(self, switch: Array) -> Array:
        """The arcs of packets from hosts at some switches, int64[n] both."""
        arcs: Array = switch * self.arcs_a_switch + self.arcs_a_switch - 1
        return arcs
