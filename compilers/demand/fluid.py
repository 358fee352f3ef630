"""Traffic as a fluid: the load of every arc by given tables.

The switch where a flow enters splits its traffic over the ports of the class, by their weights.
From there the traffic follows the rule of switches (`compilers.forwarding`). Loads are exact
fractions of the traffic rather than counts of packets.

An *arc* is a directed link, as one number: arc s·L + k leaves switch s by its link k. The hosts of
a switch count as one more link here, so L = K + 1. Class c of switch s has the *class number*
s·(C + 2) + c (both in `ManyPackets`).

A class shares the packets of hosts over its *next hops*: number 0 is the minimal port, numbers 1 to
A are the alternates. In shapes, S is the number of switches, C of the classes of a switch, and D of
destinations.

`compilers.evaluation` asks for loads, and `fitted_tables` for the paths that weights are fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths
from compilers.forwarding.many_packets import ManyPackets
from compilers.forwarding.program import Egress
from compilers.forwarding.rule import marks
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS

PACKETS_AT_ONCE = 1 << 21
"""About how many pairs of a switch and a destination are followed at once."""
Reals = NDArray[np.float64]
Numbers = NDArray[Any]
MINIMAL = 0
"""The number of the minimal port among the next hops of a class."""
NO_LIMIT = 1 << 40
"""More crossings of arcs than any memory has room for."""


class _FlowBlock(NamedTuple):
    """The n flows to a block of D destinations."""

    destinations: Numbers
    """int64[D], the destinations, ascending."""
    egress_classes: Egress
    """int16[D, S], the egress class of every switch for each destination."""
    class_numbers: Numbers
    """int32[D, S], the numbers of these classes."""
    traffic: Traffic
    """The flows."""
    destination_index: Numbers
    """int64[n], the index of each flow's destination in `destinations`."""
    entry_class: Numbers
    """int32[n], the number of the class by which each flow leaves the switch where it enters."""


class _Crossings(NamedTuple):
    """The arcs that n flows cross after one link more, each by one next hop of its class."""

    next_hop: int
    """The number of the next hop in the class."""
    arc: Numbers
    """int64[n], the arc that each flow crosses."""
    flow: Numbers
    """int32[n], the numbers of the flows."""
    amount: Reals
    """float64[n], the rates of the flows."""


@dataclass(frozen=True, eq=False)
class Fluid:
    """The tables of a build, ready to be followed by traffic."""

    forwarding: ManyPackets
    """What switches do with packets, asked for many packets at once."""
    first_arcs: NDArray[np.int32]
    """int32[1 + A, S·(C + 2)], the arc of each next hop of each class, -1 where there is none."""
    table_shares: Reals
    """float64[1 + A, S·(C + 2)], the share of each next hop by the weights of the tables."""

    @classmethod
    def of(cls, build: Build) -> Fluid:
        """Join the tables of a build with its cables."""
        forwarding = ManyPackets.of(build)
        program, switches = forwarding.program, forwarding.switches
        # [S, C, 1 + A], the links of each class: of the minimal port, then of the alternates.
        links = np.concatenate((program.order[..., :1], program.shares[..., 1:]), axis=2)
        switch = np.arange(switches, dtype=np.int32)[:, None, None]
        arcs = np.where(links >= 0, switch * np.int32(forwarding.arcs_a_switch) + links, -1)
        # [1 + A, S·(C + 2)]: the last two classes of a switch, DROP and DELIVER, have no next hops.
        two_classes_more = (0, 0), (0, 2), (0, 0)
        first_arcs = np.pad(arcs.astype(np.int32), two_classes_more, constant_values=-1)
        weights = np.pad(build.tables.classes.weight, two_classes_more)
        first_arcs = np.ascontiguousarray(first_arcs.reshape(-1, first_arcs.shape[2]).T)
        weights = np.ascontiguousarray(weights.reshape(-1, weights.shape[2]).T)
        return cls(forwarding, first_arcs, weights / np.maximum(1, weights.sum(axis=0)))

    @property
    def marks(self) -> bool:
        """Whether packets are marked where they enter, and spread once more by the next switch."""
        return bool(marks(self.forwarding.program))

    def minimal_shares(self) -> Reals:
        """Return the shares that send all traffic over the minimal ports, as in `table_shares`."""
        shares = np.zeros_like(self.table_shares)
        shares[MINIMAL] = 1
        return shares

    def loads_by_weights(self, traffic: Traffic) -> Reals:
        """Return the load of each arc by the weights of the tables, float64[S·L].

        If the tables share traffic at every hop, so does this traffic.
        """
        if not self.forwarding.program.every_hop:
            return self.loads(traffic, self.table_shares)
        load = self._no_load()
        for block in self._blocks(traffic):
            load += self._load_shared_at_every_hop(block)
        return load

    def loads(self, traffic: Traffic, shares: Reals) -> Reals:
        """Return the load of each arc, float64[S·L], in units of what a switch's hosts send.

        Traffic is split where it enters, and then takes minimal ports. Traffic that takes an
        alternate is marked where packets are marked at all; with the shares of `minimal_shares`
        none does.

        Args:
            traffic: the flows.
            shares: float64[1 + A, S·(C + 2)], of the next hops of every class.
        """
        load = self._no_load()
        for block in self._blocks(traffic):
            self._add_load_by_shares(load, block, shares)
        return load

    def _no_load(self) -> Reals:
        """Return a load of 0 on each arc, float64[S·L]."""
        return np.zeros(len(self.forwarding.far_arc))

    def _add_load_by_shares(self, load: Reals, block: _FlowBlock, shares: Reals) -> None:
        """Add what flows load that are split over the next hops of their class where they enter.

        Args:
            load: float64[S·L], the load of each arc, which grows.
            block: the flows.
            shares: float64[1 + A, S·(C + 2)], of the next hops of every class.
        """
        far_arc = self.forwarding.far_arc
        marks_alternates = self.marks and shares[MINIMAL + 1 :].any()
        # float64[S·L, D], the marked traffic that comes in by each arc, by its destination.
        marked = np.zeros((len(load), len(block.destinations)) if self.marks else (0, 0))
        for next_hop, (arc_of_class, share) in enumerate(zip(self.first_arcs, shares, strict=True)):
            amount = block.traffic.amount * share[block.entry_class]
            flow = np.flatnonzero(amount > 0)
            first_arc = arc_of_class[block.entry_class[flow]]
            destination = block.destination_index[flow]
            if marks_alternates and next_hop != MINIMAL:
                load += np.bincount(first_arc, amount[flow], minlength=len(load))
                np.add.at(marked, (far_arc[first_arc], destination), amount[flow])
                continue
            for arcs, packet in self._follow(block, first_arc, destination):
                load += np.bincount(arcs, amount[flow[packet]], minlength=len(load))
        if marked.any():
            load += self._load_of_marked(block, marked)

    def _load_shared_at_every_hop(self, block: _FlowBlock) -> Reals:
        """Return the load of each arc, float64[S·L], where every switch shares traffic equally.

        Traffic is followed over at most `MOST_HOPS` links.
        """
        forwarding, width = self.forwarding, len(block.destinations)
        load = self._no_load()
        amount: Numbers = block.traffic.amount
        # Traffic that came in by the same arc and is for the same destination is one state. Its
        # number is arc · D + the index of its destination.
        state = forwarding.host_arcs(block.traffic.source) * width + block.destination_index
        for _ in range(MOST_HOPS):
            if not len(state):
                break
            distinct, index = np.unique(state, return_inverse=True)
            amount = np.bincount(index, amount, len(distinct))
            arc, destination = np.divmod(distinct, width)
            # A row for each next hop of a state: the index of the state, and the next arc; a
            # negative number where the traffic leaves to a host or is dropped.
            state_index, next_arc = forwarding.next_arcs(block.egress_classes, arc, destination)
            next_hops = np.bincount(state_index, minlength=len(distinct))
            goes_on = next_arc >= 0
            leaving = (amount / next_hops)[state_index][goes_on]
            state_index, next_arc = state_index[goes_on], next_arc[goes_on]
            load += np.bincount(next_arc, leaving, minlength=len(load))
            comes_in_by = forwarding.far_arc[next_arc].astype(np.int64)
            state = comes_in_by * width + destination[state_index]
            amount = leaving
        return load

    def _load_of_marked(self, block: _FlowBlock, marked: Reals) -> Reals:
        """Return the load of each arc by marked traffic, float64[S·L], from its second link on.

        Args:
            block: the flows.
            marked: float64[S·L, D], the marked traffic that comes in by each arc.
        """
        forwarding, load = self.forwarding, self._no_load()
        # bool[S, 1, D], whether each switch spreads marked packets to each destination.
        spreads = forwarding.switches_spread(block.egress_classes).T[:, None]
        # [S, L, L] times [S, L, D]: by switch, from the arcs in to the arcs out.
        amount = marked.reshape(
            forwarding.switches, forwarding.arcs_a_switch, len(block.destinations)
        )
        spread_on = np.where(spreads, self._spread_shares.transpose(0, 2, 1) @ amount, 0.0)
        leaving = spread_on.reshape(marked.shape)
        # What is not spread goes on as a packet in transit does.
        arc, destination = np.nonzero(np.where(spreads, 0.0, amount).reshape(marked.shape))
        packet, next_arc = forwarding.next_arcs(block.egress_classes, arc, destination)
        packet, next_arc = packet[next_arc >= 0], next_arc[next_arc >= 0]
        arc, destination = arc[packet], destination[packet]
        np.add.at(leaving, (next_arc, destination), marked[arc, destination])
        # From here on nothing is marked.
        arc, destination = np.nonzero(leaving)
        for arcs, packet in self._follow(block, arc, destination):
            carried = leaving[arc[packet], destination[packet]]
            load += np.bincount(arcs, carried, minlength=len(load))
        return load

    @cached_property
    def _spread_shares(self) -> Reals:
        """float64[S, L, L], how each switch spreads marked traffic.

        By ingress arc and next arc, the part of what comes in by the one that leaves by the other.
        """
        # float64[S, K, K], 1 where a packet from the first link may leave by the second.
        links = self.forwarding.program.onward.astype(np.float64)
        links /= np.maximum(1, links.sum(axis=2, keepdims=True))
        return np.pad(links, ((0, 0), (0, 1), (0, 1)))  # hosts are one more link

    def _blocks(self, traffic: Traffic) -> Iterator[_FlowBlock]:
        """Yield the flows by blocks of destinations, so that memory stays small."""
        forwarding = self.forwarding
        # Marked traffic takes an array of arcs and destinations, other traffic one of switches.
        rows = len(forwarding.far_arc) if self.marks else forwarding.switches
        step = max(1, PACKETS_AT_ONCE // rows)
        for first in range(0, forwarding.switches, step):
            flows = traffic.between(first, first + step)
            if len(flows.source):
                destinations = np.arange(first, min(first + step, forwarding.switches))
                egress = forwarding.walks.egress(destinations)
                class_numbers = forwarding.class_numbers(egress)
                destination_index = flows.destination - first
                yield _FlowBlock(
                    destinations=destinations,
                    egress_classes=egress,
                    class_numbers=class_numbers,
                    traffic=flows,
                    destination_index=destination_index,
                    entry_class=class_numbers[destination_index, flows.source],
                )

    def paths(self, traffic: Traffic, most: int = NO_LIMIT) -> FlowPaths:
        """Return the arcs that each flow loads by each next hop of its class.

        The flows of one switch in one class share their next hops, so they have one *group*.

        Args:
            traffic: the flows.
            most: the most crossings of arcs.

        Raises:
            OverflowError: there are more crossings.
        """
        entry_classes: list[Numbers] = []
        crossings: list[_Crossings] = []
        flow_count, crossing_count = 0, 0
        for block in self._blocks(traffic):
            for part in self._crossings_of(block, flow_count):
                crossings.append(part)
                crossing_count += len(part.arc)
            if crossing_count > most:
                raise OverflowError(crossing_count)
            entry_classes.append(block.entry_class)
            flow_count += len(block.entry_class)
        return self._joined(crossings, np.concatenate(entry_classes))

    def _crossings_of(self, block: _FlowBlock, first_flow: int) -> Iterator[_Crossings]:
        """Yield the arcs that flows cross by each next hop that has a weight, link by link.

        Args:
            block: the flows.
            first_flow: the number of its first flow.
        """
        for next_hop, arc_of_class in enumerate(self.first_arcs):
            has_weight = self.table_shares[next_hop, block.entry_class] > 0
            users = np.flatnonzero(has_weight)
            first_arc = arc_of_class[block.entry_class[users]]
            destination = block.destination_index[users]
            for arcs, packet in self._follow(block, first_arc, destination):
                flow = users[packet]
                number = (first_flow + flow).astype(np.int32)
                yield _Crossings(next_hop, arcs, number, block.traffic.amount[flow])

    def _joined(self, crossings: Sequence[_Crossings], class_of_flow: Numbers) -> FlowPaths:
        """Number the groups and their next hops, and put crossings together.

        Args:
            crossings: of all flows.
            class_of_flow: int64[flows], the number of the class by which each flow enters.
        """
        class_number, group = np.unique(class_of_flow, return_inverse=True)
        group_of_flow = group.ravel()
        has_next_hop = self.table_shares[:, class_number].T > 0
        # int32[G, W], the number of each next hop among those of all groups.
        count_so_far = np.cumsum(has_next_hop.ravel()).reshape(has_next_hop.shape)
        number = (count_so_far - 1).astype(np.int32)
        next_hop = [number[group_of_flow[part.flow], part.next_hop] for part in crossings]
        return FlowPaths(
            arc=np.concatenate([part.arc for part in crossings]).astype(np.int32),
            next_hop=np.concatenate(next_hop),
            flow=np.concatenate([part.flow for part in crossings]),
            amount=np.concatenate([part.amount for part in crossings]),
            has_next_hop=has_next_hop,
            class_number=class_number,
            arc_count=len(self.forwarding.far_arc),
        )

    def _follow(
        self, block: _FlowBlock, first_arc: Numbers, destination: Numbers
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Follow packets in transit, one link at a time.

        Args:
            block: the flows.
            first_arc: int64[n], the arc by which each packet leaves first.
            destination: int64[n], the index of each packet's destination in `block.destinations`.

        Yields:
            The arcs that packets cross, and the numbers of these packets, int64[m] each.
        """
        forwarding, packet = self.forwarding, np.arange(len(first_arc))
        class_numbers = block.class_numbers.ravel()
        arc = first_arc
        for _ in range(MOST_HOPS):
            forwarded = arc >= 0
            arc, packet = arc[forwarded], packet[forwarded]
            if not len(arc):
                return
            yield arc, packet
            came_in_by = forwarding.far_arc.take(arc)
            switch = came_in_by // forwarding.arcs_a_switch
            class_number = class_numbers.take(destination[packet] * forwarding.switches + switch)
            arc = forwarding.transit_arcs(came_in_by, class_number)
