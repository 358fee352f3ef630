"""Many packets at once: where each may go next, by the rule, and loads over intermediates."""

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
from compilers.forwarding.tabulation import FROM_OTHER, LINK_BITS, LINK_MASK, NAMED, tabulate
from compilers.forwarding.walks import Walks
from compilers.tables.build import Build


@loop
def next_of_packets(p: Program, packets: Array, dead: Array) -> tuple[Array, Array]:
    """Ask the rule about packets.

    Args:
        p: what switches hold.
        packets: int64[n, 4]: switch, ingress link, tag and egress class of each.
        dead: int64[n, F], the elements that are down for each; -1: none.

    Returns:
        int64[n], how many links each may leave by, and int64[m, 2]: these, or one DELIVER or DROP,
        and its tag there.
    """
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    count, found, m = np.zeros(len(packets), np.int64), np.empty((len(packets), 2), np.int64), 0
    for i in range(len(packets)):
        s, came, tag, c = packets[i, 0], packets[i, 1], packets[i, 2], packets[i, 3]
        count[i] = next_links(p, s, came, tag, c, dead[i], link, tags)
        if m + count[i] > len(found):
            more = np.empty((2 * len(found) + links_of, 2), np.int64)
            more[:m] = found[:m]
            found = more
        for x in range(count[i]):
            found[m, 0], found[m, 1] = link[x], tags[x]
            m += 1
    return count, found[:m].copy()


@loop
def bounds_over(
    first: Array, ends: Array, then: Array, packets: Array, least: Array, most: Array
) -> None:
    """Add the fewest and the most packets that each arc carries, over whatever intermediates.

    Args:
        first: int32[S, V, H], the arcs of the legs from each switch to each intermediate, -1 beyond
            the last.
        ends: int32[S, V], where these end; -1: the packet is lost.
        then: int32[S, S, H'], the arcs of the second legs.
        packets: int64[S, S], from and to each switch.
        least: int64[arcs], added to.
        most: int64[arcs], added to.
    """
    switches, vias, _ = first.shape
    longest = first.shape[2] + then.shape[2]
    met, crossings = np.zeros(len(most), np.int64), np.zeros(len(most), np.int64)
    fewest, largest = np.zeros(len(most), np.int64), np.zeros(len(most), np.int64)
    touched, path = np.empty(len(most), np.int64), np.empty(longest, np.int64)
    for s in range(switches):
        for d in range(switches):
            if packets[s, d] == 0:
                continue
            arcs = 0
            for v in range(vias):
                n = 0
                for arc in first[s, v]:
                    if arc >= 0:
                        path[n] = arc
                        n += 1
                if ends[s, v] >= 0:
                    for arc in then[ends[s, v], d]:
                        if arc >= 0:
                            path[n] = arc
                            n += 1
                for i in range(n):
                    crossings[path[i]] += 1
                for i in range(n):
                    arc, times = path[i], crossings[path[i]]
                    if times:
                        crossings[arc] = 0
                        if met[arc] == 0:
                            touched[arcs], fewest[arc], largest[arc] = arc, times, times
                            arcs += 1
                        met[arc] += 1
                        fewest[arc] = min(fewest[arc], times)
                        largest[arc] = max(largest[arc], times)
            for i in range(arcs):
                arc = touched[i]
                most[arc] += packets[s, d] * largest[arc]
                if met[arc] == vias:
                    least[arc] += packets[s, d] * fewest[arc]
                met[arc] = 0


class Onward(NamedTuple):
    """The next hops of packets: int64[m] each.

    which: of the packets, ascending. arc: by which arc of `ManyPackets`; DELIVER or DROP, negative.
    """

    which: Array
    arc: Array


@dataclass(frozen=True, eq=False)
class ManyPackets:
    """The program of a build, asked about many packets at once.

    An *arc* is a switch and one of its links, or its hosts: s·L + k, L = K + 1, is link k of switch
    s, and s·L + K a host there. It says by what packets come in, and by what they leave.

    end: int32[S·L], the arc at the other end of each link; -1 where there is none.
    """

    walks: Walks
    end: Array

    @classmethod
    def of(cls, build: Build) -> ManyPackets:
        """Lower the tables of a build to links."""
        walks = Walks.of(build)
        p = walks.program
        end = np.where(p.far >= 0, p.far * (p.far.shape[1] + 1) + p.far_link, -1)
        end = np.pad(end, ((0, 0), (0, 1)), constant_values=-1).ravel().astype(np.int32)
        return cls(walks, end)

    @property
    def program(self) -> Program:
        """What the switches hold."""
        return self.walks.program

    @property
    def switches(self) -> int:
        """S, the number of switches."""
        return len(self.program.far)

    @property
    def slots(self) -> int:
        """L, the number of arcs of a switch."""
        return int(self.program.far.shape[1]) + 1

    @property
    def classes(self) -> int:
        """C, the number of egress classes of a switch."""
        return int(self.program.order.shape[1])

    @property
    def ends(self) -> Array:
        """int64[S·L]: the switch at the other end of each arc, -1 where there is none."""
        return np.where(self.end >= 0, self.end // self.slots, -1)

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """The arcs of each class's links, int32[N, S·(C + 2)], and of its next hops by ingress
        place, int32[S·(C + 2)·(N + NAMED)], of `tabulate`; the last two classes drop and deliver.
        """
        p, first = self.program, np.arange(self.switches)[:, None, None] * self.slots
        step = for_packets(self.walks.packets, tabulate)(p)[0][..., 0]
        into = (step >> LINK_BITS) * self.slots + (step & LINK_MASK)
        room = (0, 0), (0, 2), (0, 0)
        after = np.pad(np.where(step >= 0, self.end[np.where(step >= 0, into, 0)], DROP), room)
        after[:, -2:] = np.array((DROP, DELIVER))[:, None]
        order = np.pad(np.where(p.order >= 0, first + p.order, DROP), room, constant_values=DROP)
        named = np.ascontiguousarray(order.reshape(-1, order.shape[2]).T.astype(np.int32))
        return named, after.astype(np.int32).ravel()

    def rows(self, egress: Egress) -> Array:
        """int32[D, S]: s·(C + 2) + the class of each switch; the last two drop and deliver."""
        width = self.classes + 2
        first = np.arange(0, self.switches * width, width, dtype=np.int32)
        found: Array = first + egress % np.int16(width)
        return found

    def transit(self, arc: Array, row: Array) -> Array:
        """int32[n]: the arc by which packets in transit leave, each by one; DELIVER or DROP.

        Args:
            arc: int[n], by which they came in, from no host.
            row: int32[n], of `rows`, at their switches.
        """
        named, after = self._table
        place = row * (len(named) + NAMED) + FROM_OTHER
        for i in range(len(named) - 1, -1, -1):
            same = named[i].take(row) == arc
            place[same] = row[same] * (len(named) + NAMED) + NAMED + i
        found: Array = after.take(place)
        return found

    def spreads(self, egress: Egress) -> Array:
        """bool[D, S]: whether switches spread marked packets of these classes."""
        of_class = [spreads(self.program, c) for c in range(DROP, self.classes)]
        found: Array = np.array(of_class)[egress.astype(np.intp) - DROP]
        return found

    def after(
        self,
        egress: Egress,
        arc: Array,
        column: Array,
        dead: Array | None = None,
    ) -> Onward:
        """The next hops that packets without a mark may take.

        Args:
            egress: of some destinations.
            arc: int64[n], by which each packet came in.
            column: int64[n], its destination among these.
            dead: int64[D, F], the elements that are down for packets to each destination.
        """
        switch, came = np.divmod(arc, self.slots)
        packets = np.zeros((len(arc), 4), np.int64)
        packets[:, 0], packets[:, 1] = switch, np.where(came == self.slots - 1, HOST, came)
        packets[:, 2], packets[:, 3] = PLAIN, egress[column, switch]
        down = np.zeros((len(egress), 0), np.int64) if dead is None else dead
        next_of, distinct = for_packets(self.walks.packets, next_of_packets), np.arange(len(arc))
        if next_of is next_of_packets:  # which takes its time for each
            key = arc * (self.classes + 2) + packets[:, 3] + 2
            if dead is not None:
                key = key * len(egress) + column
            _, first, distinct = np.unique(key, return_index=True, return_inverse=True)
            packets, column = packets[first], column[first]
        count, found = next_of(self.program, packets, down[column])
        begins = np.cumsum(count) - count
        count, begins = count[distinct], begins[distinct]
        which = np.repeat(np.arange(len(arc)), count)
        place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        link = found[np.repeat(begins, count) + place, 0]
        return Onward(which, np.where(link >= 0, switch[which] * self.slots + link, link))

    def host(self, switch: Array) -> Array:
        """int64[n]: the arcs of packets from hosts at switches."""
        found: Array = switch * self.slots + self.slots - 1
        return found
