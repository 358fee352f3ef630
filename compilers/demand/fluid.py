"""Traffic as a fluid: the load of every arc by given tables.

The switch where a flow enters splits its traffic over the ports of the class, by their weights.
From there the traffic follows the rule of switches (`compilers.forwarding`). Loads are exact
fractions of the traffic rather than counts of packets.

An *arc* is a directed link, as one number: arc s·L + k leaves switch s by its link k. The hosts of
a switch count as one more link here, so L = K + 1 (`ManyPackets`).

An *option* of a class is its minimal port (0) or one of its alternates (1 to A). In shapes, S is
the number of switches, C of the classes of a switch, and D of destinations. Class c of switch s has
the column s·(C + 2) + c.

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
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS

PACKETS_AT_ONCE = 1 << 21
"""About how many pairs of a switch and a destination are followed at once."""
Reals = NDArray[np.float64]
Numbers = NDArray[Any]


class _FlowBlock(NamedTuple):
    """The n flows to a block of D destinations."""

    destinations: Numbers
    """int64[D], the destinations, ascending."""
    egress: Egress
    """[S, D], the egress class of every switch for each destination."""
    class_columns: Numbers
    """int64[D, S], the column of `Fluid.options` for each of these classes."""
    traffic: Traffic
    """The flows."""
    place: Numbers
    """int64[n], the index of each flow's destination in `destinations`."""
    entry_column: Numbers
    """int64[n], the column of `Fluid.options` for the class of each flow where it enters."""


class _Crossing(NamedTuple):
    """What n flows load on an arc each, by one of their options."""

    option: int
    """The number of the option."""
    arc: Numbers
    """int64[n], the arcs."""
    flow: Numbers
    """int32[n], the numbers of the flows."""
    amount: Reals
    """float64[n], the rates of the flows."""


@dataclass(frozen=True, eq=False)
class Fluid:
    """The tables of a build, ready to be followed by traffic."""

    hops: ManyPackets
    """The rule of switches, asked about many packets at once."""
    options: NDArray[np.int32]
    """int32[1 + A, S·(C + 2)], the arc of each option of each class, -1 where there is none."""
    table_shares: Reals
    """float64[1 + A, S·(C + 2)], the share of each option by the weights that the tables have."""

    @classmethod
    def of(cls, build: Build) -> Fluid:
        """Join the tables of a build with its cables."""
        hops = ManyPackets.of(build)
        program = hops.program
        # The number of the first arc of each switch, [S, 1, 1].
        first_arc = np.arange(0, len(hops.far_arc), hops.arcs_a_switch, dtype=np.int32)
        first_arc = first_arc[:, None, None]
        # [S, C, 1 + A], the links of each class: of the minimal port, then of the alternates.
        links = np.concatenate((program.order[..., :1], program.shares[..., 1:]), axis=2)
        options = np.moveaxis(np.where(links >= 0, first_arc + links, np.int32(-1)), 2, 0)
        # Two more classes a switch stand for `no_route` and `local`, which have no options.
        two_classes_more = (0, 0), (0, 0), (0, 2)
        options = np.pad(options, two_classes_more, constant_values=-1).reshape(len(options), -1)
        weight = np.pad(np.moveaxis(build.tables.classes.weight, 2, 0), two_classes_more)
        weight = weight.reshape(options.shape)
        return cls(hops, options, weight / np.maximum(1, weight.sum(axis=0)))

    @property
    def marks(self) -> bool:
        """Whether packets are marked where they enter, and spread once more by the next switch."""
        return len(self.hops.program.onward) > 0

    def minimal(self) -> Reals:
        """Return the shares that send all traffic over the minimal ports, as in `table_shares`."""
        shares = np.zeros_like(self.table_shares)
        shares[0] = 1
        return shares

    def loads_by_weights(self, traffic: Traffic) -> Reals:
        """Return the load of each arc by the weights of the tables, float64[S·L].

        If the tables share traffic at every hop, so does this traffic.
        """
        if not self.hops.program.every_hop:
            return self.loads(traffic, self.table_shares)
        load = np.zeros(len(self.hops.far_arc))
        for block in self._blocks(traffic):
            load += self._load_shared_at_every_hop(block)
        return load

    def loads(self, traffic: Traffic, shares: Reals) -> Reals:
        """Return the load of each arc, float64[S·L], in units of what a switch's hosts send.

        Traffic is split where it enters, and then takes minimal ports. Traffic that takes an
        alternate is marked where packets are marked at all; with the shares of `minimal` none does.

        Args:
            traffic: the flows.
            shares: float64[1 + A, S·(C + 2)], of the options of every class.
        """
        load = np.zeros(len(self.hops.far_arc))
        for block in self._blocks(traffic):
            self._add_load_of_options(load, block, shares)
        return load

    def _add_load_of_options(self, load: Reals, block: _FlowBlock, shares: Reals) -> None:
        """Add what flows load that are split over options where they enter.

        Args:
            load: float64[S·L], the load of each arc, which grows.
            block: the flows.
            shares: float64[1 + A, S·(C + 2)], of the options of every class.
        """
        end = self.hops.far_arc
        marks_alternates = self.marks and shares[1:].any()  # option 0 is the minimal port
        # float64[S·L, D], the marked traffic over each arc by its destination.
        marked = np.zeros((len(load), len(block.destinations)) if self.marks else (0, 0))
        for option, (arc_of_class, share) in enumerate(zip(self.options, shares, strict=True)):
            amount = block.traffic.amount * share[block.entry_column]
            flow = np.flatnonzero(amount > 0)
            first_arc, place = arc_of_class[block.entry_column[flow]], block.place[flow]
            if marks_alternates and option > 0:
                load += np.bincount(first_arc, amount[flow], minlength=len(load))
                np.add.at(marked, (end[first_arc], place), amount[flow])
                continue
            for arcs, packet in self._follow(block, first_arc, place):
                load += np.bincount(arcs, amount[flow[packet]], minlength=len(load))
        if marked.any():
            load += self._load_of_marked(block, marked)

    def _load_shared_at_every_hop(self, block: _FlowBlock) -> Reals:
        """Return the load of each arc, float64[S·L], where every switch shares traffic equally.

        Traffic is followed over at most `MOST_HOPS` links.
        """
        hops, width = self.hops, len(block.destinations)
        load = np.zeros(len(hops.far_arc))
        amount: Numbers = block.traffic.amount
        # A state of traffic is the arc that it came in by, and the place of its destination.
        state = hops.host_arcs(block.traffic.source) * width + block.place
        for _ in range(MOST_HOPS):
            if not len(state):
                break
            distinct, index = np.unique(state, return_inverse=True)
            amount = np.bincount(index, amount, len(distinct))
            arc, place = np.divmod(distinct, width)
            # Of each next hop of a state: the number of the state, and the arc; -1 to a host.
            number, next_arc = hops.next_arcs(block.egress, arc, place)
            next_hops = np.bincount(number, minlength=len(distinct))
            goes_on = next_arc >= 0
            leaving = (amount / next_hops)[number][goes_on]
            number, next_arc = number[goes_on], next_arc[goes_on]
            load += np.bincount(next_arc, leaving, minlength=len(load))
            state = hops.far_arc[next_arc].astype(np.int64) * width + place[number]
            amount = leaving
        return load

    def _load_of_marked(self, block: _FlowBlock, marked: Reals) -> Reals:
        """Return the load of each arc by marked traffic, float64[S·L], from its second link on.

        Args:
            block: the flows.
            marked: float64[S·L, D], the marked traffic that comes in by each arc.
        """
        hops, load = self.hops, np.zeros(len(self.hops.far_arc))
        # bool[S, 1, D], whether each switch spreads marked packets to each destination.
        spreads = hops.switches_spread(block.egress).T[:, None]
        # [S, L, L] times [S, L, D]: by switch, from the arcs in to the arcs out.
        amount = marked.reshape(hops.switches, hops.arcs_a_switch, len(block.destinations))
        spread_on = np.where(spreads, self._spread_shares.transpose(0, 2, 1) @ amount, 0.0)
        leaving = spread_on.reshape(marked.shape)
        # What is not spread goes on as a packet in transit does.
        arc, place = np.nonzero(np.where(spreads, 0.0, amount).reshape(marked.shape))
        number, next_arc = hops.next_arcs(block.egress, arc, place)
        number, next_arc = number[next_arc >= 0], next_arc[next_arc >= 0]
        arc, place = arc[number], place[number]
        np.add.at(leaving, (next_arc, place), marked[arc, place])
        arc, place = np.nonzero(leaving)
        for arcs, packet in self._follow(block, arc, place):
            carried = leaving[arc[packet], place[packet]]
            load += np.bincount(arcs, carried, minlength=len(load))
        return load

    @cached_property
    def _spread_shares(self) -> Reals:
        """How each switch spreads marked traffic, float64[S, L, L].

        The part of what comes in by each arc that leaves by each arc.
        """
        # float64[S, K, K], 1 where a packet from the first link may leave by the second.
        links = self.hops.program.onward.astype(np.float64)
        links /= np.maximum(1, links.sum(axis=2, keepdims=True))
        return np.pad(links, ((0, 0), (0, 1), (0, 1)))  # hosts are one more link

    def _blocks(self, traffic: Traffic) -> Iterator[_FlowBlock]:
        """Yield the flows by blocks of destinations, so that memory stays small."""
        switches = self.hops.switches
        step = max(1, PACKETS_AT_ONCE // (len(self.hops.far_arc) if self.marks else switches))
        for first in range(0, switches, step):
            flows = traffic.between(first, first + step)
            if len(flows.source):
                destinations = np.arange(first, min(first + step, switches))
                egress = self.hops.walks.egress(destinations)
                class_columns, place = self.hops.rows(egress), flows.destination - first
                yield _FlowBlock(
                    destinations=destinations,
                    egress=egress,
                    class_columns=class_columns,
                    traffic=flows,
                    place=place,
                    entry_column=class_columns[place, flows.source],
                )

    def paths(self, traffic: Traffic, most: int = 1 << 40) -> FlowPaths:
        """Return the arcs that each flow loads by each of its options.

        The flows of one switch in one class share their options, so they are one *choice*.

        Args:
            traffic: the flows.
            most: the most crossings of arcs.

        Raises:
            OverflowError: there are more crossings.
        """
        columns: list[Numbers] = []
        crossings: list[_Crossing] = []
        flows, count = 0, 0
        for block in self._blocks(traffic):
            for option, arcs_of_option in enumerate(self.options):
                users = np.flatnonzero(self.table_shares[option, block.entry_column] > 0)
                first_arc = arcs_of_option[block.entry_column[users]]
                for arcs, packet in self._follow(block, first_arc, block.place[users]):
                    flow = users[packet]
                    number = (flows + flow).astype(np.int32)
                    crossings.append(_Crossing(option, arcs, number, block.traffic.amount[flow]))
                    count += len(arcs)
            if count > most:
                raise OverflowError(count)
            columns.append(block.entry_column)
            flows += len(block.entry_column)
        return self._flow_paths(crossings, np.concatenate(columns))

    def _flow_paths(self, crossings: Sequence[_Crossing], column_of_flow: Numbers) -> FlowPaths:
        """Number the choices and their options, and put crossings together.

        Args:
            crossings: of all flows, by hops.
            column_of_flow: int64[flows], the column of `options` for each flow.
        """
        columns, choice = np.unique(column_of_flow, return_inverse=True)
        choice_of_flow = choice.ravel()
        options = self.table_shares[:, columns].T > 0
        # int32[G, W], the number of each option, as in `FlowPaths`.
        number = (np.cumsum(options.ravel()).reshape(options.shape) - 1).astype(np.int32)
        share = [number[choice_of_flow[part.flow], part.option] for part in crossings]
        return FlowPaths(
            arc=np.concatenate([part.arc for part in crossings]).astype(np.int32),
            share=np.concatenate(share),
            flow=np.concatenate([part.flow for part in crossings]),
            amount=np.concatenate([part.amount for part in crossings]),
            options=options,
            column=columns,
            arcs=len(self.hops.far_arc),
        )

    def _follow(
        self, block: _FlowBlock, first_arc: Numbers, place: Numbers
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Follow packets in transit, one hop at a time.

        Args:
            block: the flows.
            first_arc: int64[n], the arc by which each packet leaves first.
            place: int64[n], the index of each packet's destination in `block.destinations`.

        Yields:
            The arcs that packets cross, and the numbers of these packets, int64[m] each.
        """
        hops, packet = self.hops, np.arange(len(first_arc))
        class_columns = block.class_columns.ravel()
        arc = first_arc
        for _ in range(MOST_HOPS):
            forwarded = arc >= 0
            arc, packet = arc[forwarded], packet[forwarded]
            if not len(arc):
                return
            yield arc, packet
            came_in = hops.far_arc.take(arc)
            switch = came_in // hops.arcs_a_switch
            column = class_columns.take(place[packet] * hops.switches + switch)
            arc = hops.transit(came_in, column)
