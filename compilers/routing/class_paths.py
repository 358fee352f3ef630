"""The minimal paths of packets, as the search for alternates and repair ports needs them.

What comes in are minimal tables. `ClassPaths` tells, for all destinations at once, which switches
the packets of a switch come through (`walk`, `meets`), and turns properties of destinations into
properties of egress classes (`by_class`). `compilers.routing.link_choices` asks it about the
neighbours of every switch, and `compilers.routing.searched_repairs` about U-turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
Numbers = NDArray[Any]


class KeyGroups(NamedTuple):
    """Equal keys, put together by sorting."""

    keys: Numbers
    """[g], the distinct keys, ascending."""
    starts: Numbers
    """int64[g], where each distinct key begins in the sorted order."""
    order: Numbers
    """int64[n], the indexes of all keys, in sorted order."""


def group_equal_keys(keys: Numbers) -> KeyGroups:
    """Sort keys, [n], and return where each distinct one begins."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return KeyGroups(ordered[starts], starts, order)


class UTurn(NamedTuple):
    """The packets that would leave a switch by their ingress link, and where they go instead."""

    is_returned: Bits
    """bool[…, D], whether a packet came from a switch that is a next hop at the present switch."""
    next_switch: Numbers
    """int32[…, D], the switch to which such a packet goes instead of back; -1 where there is none,
    so that it goes back."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassPaths:
    """Minimal paths of S switches towards the D switches that have hosts."""

    tables: Tables
    """The tables that packets follow."""
    wiring: Wiring
    """The cables."""
    destinations: NDArray[np.int64]
    """int64[D], the destinations, ascending."""
    next_switch: NDArray[np.int32]
    """int32[S, D], the next switch towards each destination; the destination has itself."""
    egress_class: Numbers
    """[S, D], the egress class for each destination. All destinations of a class at a switch have
    the same next hops there."""
    depth: int
    """The most links of a path."""
    distance: NDArray[np.uint8]
    """uint8[S, S], the links between switches; empty unless `shared_at_every_hop`."""
    next_tries: NDArray[np.int32]
    """int32[n, S, D], for a packet that would make a U-turn, as it came in from a next hop of the
    switch: the candidate next switches, best first. -1 for no switch.

    Empty unless `shared_at_every_hop`. `of` puts in two candidates, another next hop and the
    minimal one. `searched_repairs` makes a copy with longer lists, from the ports of `bounce`.
    """

    @classmethod
    def of(
        cls, tables: Tables, wiring: Wiring, topology: Topology, shared_at_every_hop: bool
    ) -> ClassPaths:
        """Follow tables.

        Args:
            tables: lead to every destination.
            wiring: the cables.
            topology: says which switches have hosts, and the diameter.
            shared_at_every_hop: whether packets take any shortest path at every hop.
        """
        destinations = np.flatnonzero(topology.endpoints)
        fib = Fib.of(tables, wiring.far_by_port())
        next_switch = fib.next_switch(destinations)
        # A packet at a switch without links stays there.
        itself = np.arange(len(next_switch), dtype=np.int32)[:, None]
        next_switch = np.where(next_switch < 0, itself, next_switch)
        # Distances are needed only to find several shortest paths.
        switches = np.arange(len(next_switch) if shared_at_every_hop else 0)
        distance = distances(neighbour_table(topology.graph), switches)
        # int32[S, D], the first candidate for U-turns, then the second; no rows where packets are
        # not shared at every hop.
        other = _other_next_hops(wiring.far, next_switch, distance[:, destinations])
        minimal = np.where(other < 0, np.int32(-1), next_switch[: len(other)])
        return cls(
            tables,
            wiring=wiring,
            destinations=destinations,
            next_switch=next_switch,
            egress_class=np.ascontiguousarray(fib.egress(destinations)),
            depth=topology.diameter,
            distance=distance,
            next_tries=np.stack((other, minimal)),
        )

    @property
    def shared_at_every_hop(self) -> bool:
        """Whether packets take any shortest path at every hop, and so have several next hops."""
        return len(self.distance) > 0

    @property
    def classes(self) -> Classes:
        """The classes of the tables."""
        return self.tables.classes

    def with_orders(self, **orders: Numbers) -> ClassPaths:
        """Return the same paths with another `bounce` or `protection` in the classes."""
        return replace(self, tables=replace(self.tables, classes=replace(self.classes, **orders)))

    def walk(self, first: Numbers) -> list[Numbers]:
        """Return the switch of each packet after 0, 1, … `depth` links, int32[…, D] each.

        Args:
            first: int[…, 1], the switches where packets to all destinations start.
        """
        column = np.arange(len(self.destinations))
        steps = [np.broadcast_to(first, (*first.shape[:-1], len(column)))]
        for _ in range(self.depth):
            steps.append(self.next_switch[steps[-1], column])
        return steps

    def meets(
        self, first: Numbers, other: Numbers | int, steps: list[Numbers] | None = None
    ) -> Bits:
        """Return whether packets may come to another switch, or start there, bool[…, D].

        Args:
            first: int[…, D] or int[…, 1], where packets start.
            other: the switch that they may meet.
            steps: `walk(first)`, if the caller has it.
        """
        if self.shared_at_every_hop:
            # The other switch is on a shortest path if the distances over it add up.
            to_other = self.distance[first, other].astype(np.int16)
            from_other = self.distance[other, self.destinations]
            on_path: Bits = to_other + from_other == self.distance[first, self.destinations]
            return on_path
        passed: Bits = np.any([step == other for step in steps or self.walk(first)], axis=0)
        return passed

    def u_turn(self, sender: Numbers | int, at: Numbers) -> UTurn:
        """Return what happens to packets from a next hop, if several next hops share packets.

        Args:
            sender: the switch that packets came from.
            at: int[…, D] or int[…, 1], the switch where they are.
        """
        column = np.arange(len(self.destinations))
        returns: Bits = (
            self.distance[sender, self.destinations] + 1 == self.distance[at, self.destinations]
        )
        next_switch = np.full(returns.shape, -1, np.int32)
        # From the last candidate to the first, so that the best usable one stays.
        for switch in self.next_tries[::-1, at, column]:
            next_switch = np.where((switch >= 0) & (switch != sender), switch, next_switch)
        return UTurn(is_returned=returns, next_switch=next_switch)

    def neighbours(self, switch: int) -> Numbers:
        """Return the neighbours of a switch, int32[K, 1]."""
        far = self.wiring.far[switch]
        neighbours: Numbers = far[far >= 0][:, None]
        return neighbours

    def cabled_switches(self) -> list[int]:
        """Return the switches that have links."""
        cabled: list[int] = np.flatnonzero(self.wiring.far[:, 0] >= 0).tolist()
        return cabled

    def remote_columns(self, switch: int) -> NDArray[np.int64]:
        """Return the columns of the destinations that a switch forwards to, int64[n]."""
        return np.flatnonzero(self.next_switch[switch] != switch)

    def by_class(self, property_of: Callable[[int], Bits], shape: tuple[int, ...]) -> Bits:
        """Return which links have a property for all destinations of a class, bool[n, S, C, K].

        Args:
            property_of: returns n properties for a switch, bool[n, K, D], by link and destination.
            shape: S, C, K.
        """
        common: Bits | None = None
        for switch in self.cabled_switches():
            routed = self.remote_columns(switch)
            by_destination = property_of(switch)
            # After sorting, destinations of one class are adjacent.
            groups = group_equal_keys(self.egress_class[switch, routed])
            ordered = by_destination[..., routed[groups.order]]
            by_class = np.logical_and.reduceat(ordered, groups.starts, axis=2)
            if common is None:
                common = np.zeros((len(by_class), *shape), np.bool_)
            link_count = by_class.shape[1]
            common[:, switch, groups.keys, :link_count] = by_class.transpose(0, 2, 1)
        if common is None:
            return np.zeros((1, *shape), np.bool_)
        return common


def _other_next_hops(
    far: NDArray[np.int32], next_switch: NDArray[np.int32], distance: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """Return another next switch on a shortest path than `next_switch`, int32[S, D]; -1 for none.

    If there are several, the first in cyclic order after the minimal link is taken, as in
    `compilers.routing.port_ranking`.

    Args:
        far: int32[S, K], the neighbour at each link.
        next_switch: int32[S, D], the next switch.
        distance: uint8[S, D]; empty where packets take one path only.
    """
    most_links = far.shape[1]
    other = np.full((len(distance), next_switch.shape[1]), -1, np.int32)
    if most_links == 1:
        return other
    for switch, neighbours in enumerate(far[: len(distance)]):
        # bool[K, D], the links that lead nearer; int[K - 1, D], all but the minimal one in turn.
        nearer = (neighbours >= 0)[:, None] & (distance[neighbours] + 1 == distance[switch])
        minimal = (neighbours[:, None] == next_switch[switch]).argmax(axis=0)
        others = (minimal + np.arange(1, most_links)[:, None]) % most_links
        leads_nearer = np.take_along_axis(nearer, others, axis=0)
        first = leads_nearer.argmax(axis=0)
        link = np.take_along_axis(others, first[None], axis=0)[0]
        other[switch] = np.where(leads_nearer.any(axis=0), neighbours[link], -1)
    return other
