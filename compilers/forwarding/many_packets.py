"""The next hops of many packets at once, as numpy arrays instead of packet by packet.

- `next_links_of_packets` evaluates the rule for an array of packets, in any state: switch, ingress
  link, tag and egress class. Rehearsals (`state_hops`) and comparisons with simulators call it.
- `ManyPackets` does the same for a build, in arcs. An *arc* is a directed link, as one number. In
  this file the hosts of a switch count as one more link, and have an arc, too. The next hops of
  packets in transit come from a table (`tabulation`). The fluid model (`compilers.demand.fluid`)
  calls it.

Letters: p the program, s a switch, c an egress class, m how many next hops are written so far. In
shapes, S is the number of switches, K of the links of a switch, C of its classes, D of
destinations.
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
    NAMED,
    WITHOUT_FAILURE,
    ingress_of,
    switch_of,
)
from compilers.forwarding.walks import Walks
from compilers.tables.build import Build

SWITCH, INGRESS, TAG, CLASS = range(4)
"""Columns of an array of packets: the switch that a packet is in, its ingress link there, its tag,
and its egress class."""
LINK, NEXT_TAG = range(2)
"""Columns of an array of next hops: the link, or DELIVER or DROP, and the packet's tag there."""


@loop
def next_links_of_packets(p: Program, packets: Array, failed: Array) -> tuple[Array, Array]:
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
    count, m = np.zeros(len(packets), np.int64), 0
    next_hops = np.empty((len(packets), 2), np.int64)
    for i in range(len(packets)):
        s, ingress = packets[i, SWITCH], packets[i, INGRESS]
        tag, c = packets[i, TAG], packets[i, CLASS]
        count[i] = next_links(p, s, ingress, tag, c, failed[i], link, tags)
        if m + count[i] > len(next_hops):
            larger = np.empty((2 * len(next_hops) + most_links, 2), np.int64)
            for x in range(m):
                larger[x, LINK], larger[x, NEXT_TAG] = next_hops[x, LINK], next_hops[x, NEXT_TAG]
            next_hops = larger
        for x in range(count[i]):
            next_hops[m, LINK], next_hops[m, NEXT_TAG] = link[x], tags[x]
            m += 1
    return count, next_hops[:m].copy()


class NextArcs(NamedTuple):
    """The next hops that packets may take, a row for each packet and next hop."""

    packet: Array
    """int64[m], the number of the packet, ascending."""
    arc: Array
    """int64[m], the arc (`ManyPackets`) by which the packet leaves; or DELIVER or DROP, which are
    negative."""


class _ArcTable(NamedTuple):
    """The next hops of packets in transit, as arcs.

    A row is one class of one switch, by its class number (`ManyPackets`). A class *names* the N
    links of its `Program.order`.
    """

    named_arc: Array
    """int32[N, rows], the arcs of the links that the class of each row names; DROP for none."""
    next_arc: Array
    """int32[rows·(N + NAMED)], by row and ingress place the arc of the next hop; or DELIVER or
    DROP."""


@dataclass(frozen=True, eq=False)
class ManyPackets:
    """The next hops of a build's switches, for many packets at once.

    Arcs are numbered. A switch has L = K + 1: its K links, and one more for its hosts. Arc s·L + k
    is link k of switch s, and arc s·L + K stands for its hosts. A packet comes in by an arc of a
    switch, and leaves by an arc of the switch.

    Classes are numbered, too. A switch has C + 2 *class numbers*: class c of switch s is number
    s·(C + 2) + c, and the last two numbers of a switch stand for DROP and DELIVER.

    For example, with K = 3 links a switch has L = 4 arcs. Switch 0 has the arcs 0 to 2, and 3 for
    its hosts; switch 1 has the arcs 4 to 6, and 7. Let a cable join link 2 of switch 0 and link 1
    of switch 1. A packet that leaves switch 0 by arc 2 comes in at switch 1 by arc 5: the far arc
    of 2 is 5, and that of 5 is 2. With C = 2 classes, class 1 of switch 1 has the number 5; 6
    stands for DROP at switch 1, and 7 for DELIVER.

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
    def class_numbers_a_switch(self) -> int:
        """C + 2: a switch has a number for each of its classes, for DROP and for DELIVER."""
        return self.classes + 2

    @property
    def drop_class(self) -> int:
        """The class that stands for DROP at every switch."""
        return self.classes

    @property
    def deliver_class(self) -> int:
        """The class that stands for DELIVER at every switch."""
        return self.classes + 1

    @cached_property
    def _table(self) -> _ArcTable:
        """The tables of the switches in arcs."""
        p = self.program
        two_classes_more = (0, 0), (0, 2), (0, 0)
        # [S, C + 2, N + NAMED], the next hops by class and ingress place. A next hop of `tabulate`
        # says where the packet comes in; it leaves by the far end of that arc.
        hop = self.walks.tabulation.next_hop[..., WITHOUT_FAILURE]
        exists = hop >= 0
        comes_in_by = switch_of(hop) * self.arcs_a_switch + ingress_of(hop)
        leaves_by = self.far_arc[np.where(exists, comes_in_by, 0)]
        next_arc = np.pad(np.where(exists, leaves_by, DROP), two_classes_more)
        next_arc[:, self.drop_class], next_arc[:, self.deliver_class] = DROP, DELIVER
        # [S, C + 2, N], the arcs of the links that classes name.
        first_arc = np.arange(self.switches)[:, None, None] * self.arcs_a_switch
        named = np.where(p.order >= 0, first_arc + p.order, DROP)
        named = np.pad(named, two_classes_more, constant_values=DROP)
        named_by_row = named.reshape(-1, named.shape[2]).T.astype(np.int32)
        return _ArcTable(np.ascontiguousarray(named_by_row), next_arc.astype(np.int32).ravel())

    def class_numbers(self, egress: Egress) -> Array:
        """The class numbers of some classes.

        Args:
            egress: int16[D, S], by destination and switch a class, or DROP or DELIVER.

        Returns:
            int32[D, S].
        """
        count = self.class_numbers_a_switch
        first = np.arange(0, self.switches * count, count, dtype=np.int32)
        # DROP is -2 and DELIVER is -1: C + 2 more are `drop_class` and `deliver_class`.
        number = egress + np.where(egress < 0, np.int16(count), np.int16(0))
        numbers: Array = first + number
        return numbers

    def transit_arcs(self, arc: Array, class_number: Array) -> Array:
        """The arcs by which packets in transit leave their switches.

        Args:
            arc: int[n], the arc by which each packet came in, not from a host.
            class_number: int32[n], of the class for its destination at its switch.

        Returns:
            int32[n], arcs; DELIVER or DROP.
        """
        named, next_arc = self._table
        ingress_places = len(named) + NAMED
        entry = class_number * ingress_places + FROM_OTHER
        for i in range(len(named) - 1, -1, -1):  # if a class names a link twice, the first counts
            came_by_named = named[i].take(class_number) == arc
            entry[came_by_named] = class_number[came_by_named] * ingress_places + NAMED + i
        leaves_by: Array = next_arc.take(entry)
        return leaves_by

    def switches_spread(self, egress: Egress) -> Array:
        """Whether switches spread marked packets of some classes: bool[D, S], as `egress`."""
        # DROP is the least number in place of a class, and so has the first place.
        by_class = np.array([spreads(self.program, c) for c in range(DROP, self.classes)])
        switch_spreads: Array = by_class[egress.astype(np.intp) - DROP]
        return switch_spreads

    def next_arcs(
        self,
        egress: Egress,
        arc: Array,
        destination: Array,
        failed: Array | None = None,
    ) -> NextArcs:
        """The next hops that packets without a mark may take.

        Args:
            egress: int16[D, S], of `egress_classes` for some destinations.
            arc: int64[n], the arc by which each packet came in.
            destination: int64[n], the row of its destination in `egress`.
            failed: int64[D, F], the failed elements for packets to each destination; None: none.
        """
        switch, link = np.divmod(arc, self.arcs_a_switch)
        packets = np.zeros((len(arc), 4), np.int64)
        packets[:, SWITCH] = switch
        packets[:, INGRESS] = np.where(link == self.arcs_a_switch - 1, HOST, link)
        packets[:, TAG], packets[:, CLASS] = PLAIN, egress[destination, switch]
        if failed is None:
            failed_of_packet = np.zeros((len(arc), 0), np.int64)
        else:
            failed_of_packet = failed[destination]
        packet, next_link = self._next_links(packets, failed_of_packet)
        is_link = next_link >= 0
        next_arc = np.where(is_link, switch[packet] * self.arcs_a_switch + next_link, next_link)
        return NextArcs(packet, next_arc)

    def _next_links(self, packets: Array, failed: Array) -> tuple[Array, Array]:
        """Evaluate the rule for an array of packets.

        Args:
            packets: int64[n, 4], as `next_links_of_packets` takes them.
            failed: int64[n, F], the failed elements for each.

        Returns:
            int64[m], the numbers of the packets, ascending, each once for each of its next hops;
            and int64[m], the links of these next hops, or DELIVER or DROP.
        """
        next_of = for_packets(self.walks.packets, next_links_of_packets)
        # Plain Python is slow: there, equal packets are evaluated once.
        if next_of is next_links_of_packets:
            one_of_equals, distinct_of_packet = _equal_rows(np.hstack((packets, failed)))
            packets, failed = packets[one_of_equals], failed[one_of_equals]
        else:
            distinct_of_packet = np.arange(len(packets))
        count, next_hops = next_of(self.program, packets, failed)
        # The next hops of a distinct packet stand together. Each packet takes those of its own.
        begins = (np.cumsum(count) - count)[distinct_of_packet]
        count = count[distinct_of_packet]
        packet = np.repeat(np.arange(len(distinct_of_packet)), count)
        first_row = np.cumsum(count) - count
        nth_next_hop = np.arange(len(packet)) - first_row[packet]
        return packet, next_hops[begins[packet] + nth_next_hop, LINK]

    def host_arcs(self, switch: Array) -> Array:
        """The arcs of packets from hosts at some switches, int64[n] both."""
        arcs: Array = switch * self.arcs_a_switch + self.arcs_a_switch - 1
        return arcs


def _equal_rows(rows: Array) -> tuple[Array, Array]:
    """The index of one of each set of equal rows, int64[m], and for each row its set, int64[n].

    Args:
        rows: int64[n, columns].
    """
    lowest = rows.min(axis=0, initial=0)
    widths = rows.max(axis=0, initial=0) - lowest + 1
    # One number for each row, as sorting rows would be slower.
    number = np.ravel_multi_index(tuple((rows - lowest).T), tuple(widths))
    _, one_of_equals, row_set = np.unique(number, return_index=True, return_inverse=True)
    return one_of_equals, row_set.ravel()
