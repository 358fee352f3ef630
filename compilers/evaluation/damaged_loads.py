"""The guaranteed throughput of a fabric while elements are down, from that of the intact fabric.

An *element* is a cable or a switch; `Program` numbers the cables first, then the switches. An *arc*
is one direction of a link, and its *index* is its place among `LinkCrossings.arcs`.
`failure_guarantees` makes one `DamagedLoads` for a build, and calls `guarantee` for each failure. A
*share* here is that of a pair of switches on an arc: which part of the pair's packets crosses it.

The worst load of a link changes only if pairs whose packets cross the link take other paths. Then a
bound is computed first, which is quick. The dual prices of the intact fabric
(`worst_traffic.dual_prices`) stay a solution of the dual problem if they are raised by as much as
the pairs' shares have grown. Mostly this bound shows that the link cannot be the worst. For the
links that are left, the worst traffic is computed (`worst_link`).

Shares are read in two forms: `TableCrossings` has those of the intact fabric, and
`ChangedCrossings` those while elements are down. `LinkCrossings` has the tables and the list of
links behind both.

What is computed of the intact fabric depends on its size:

| size | loads of links | dual prices and shares of pairs |
|---|---|---|
| up to `MOST_COMPUTED` | exact, of each link | stored |
| up to `MOST_COMPUTED` with one link of each orbit | exact, by orbit | None |
| larger | upper bounds, exact once a failure needs them | None |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import SHARES_AT_ONCE, Arcs, TableCrossings
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_link import WorstLink
from compilers.evaluation.worst_traffic import LOAD_TOLERANCE, dual_prices, worst_traffic
from compilers.forwarding.changed_paths import ChangedShares, FabricState, IntactPaths
from compilers.forwarding.link_bounds import LinkBounds, PairPrices, raise_bounds, write_loads
from compilers.forwarding.link_crossings import LinkCrossings, PairsByLink
from compilers.forwarding.link_orbits import orbit_of_arc
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import egress_classes, with_classes
from compilers.routing.link_repair import RepairedTables
from compilers.tables.build import Build

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
MOST_COMPUTED = 1 << 27
"""Pairs of switches, times links, up to which the worst traffic of each link of the intact fabric
is computed. In larger fabrics it is computed for one link of each orbit of automorphisms."""


@dataclass(frozen=True, eq=False)
class ChangedCrossings(TableCrossings):
    """The shares of pairs on links while elements are down, as changes of the intact fabric's."""

    arc_index: Numbers
    """int64[S, K], the index of each link among `arcs`; -1 where no link is."""
    intact_shares: PairsByLink | None
    """The shares of pairs on each link of the intact fabric; None if they are not stored."""
    growth: PairsByLink
    """By how much shares have grown since elements are down; below 0 where they have fallen."""

    @classmethod
    def of(
        cls,
        intact: TableCrossings,
        arc_index: Numbers,
        intact_shares: PairsByLink | None,
        shares: ChangedShares,
    ) -> ChangedCrossings:
        """Sort changed shares by their links.

        Args:
            intact: the program and links of the intact fabric.
            arc_index: as the field.
            intact_shares: as the field.
            shares: the pairs and links whose shares have changed.
        """
        arc_count = len(intact.arcs)
        arc = arc_index.ravel()[shares.arc].astype(np.min_scalar_type(arc_count))
        by_arc = np.argsort(arc, kind="stable")
        first_of_arc = np.zeros(arc_count + 1, np.int64)
        np.cumsum(np.bincount(arc, minlength=arc_count), out=first_of_arc[1:])
        growth = PairsByLink(
            first_of_link=first_of_arc,
            source=shares.source[by_arc],
            destination=shares.destination[by_arc],
            share=shares.growth[by_arc],
        )
        return cls(intact.link_crossings, arc_index, intact_shares, growth)

    @property
    def unchanged(self) -> NDArray[np.bool_]:
        """bool[arcs], the links whose share of every pair's packets is unchanged."""
        return np.asarray(self.growth.first_of_link[:-1] == self.growth.first_of_link[1:], np.bool_)

    def shares(self, arcs: Arcs) -> Reals:
        """As in `Crossings`: the intact fabric's shares, to which the growth is added."""
        indexes = self.arc_index[tuple(arcs.T)]
        if self.intact_shares is None:
            shares, stored_shares = super().shares(arcs), self.growth.without_pairs()
        else:
            shares, stored_shares = np.zeros((len(arcs), *self.size)), self.intact_shares
        write = for_packets(self.link_crossings.packets, write_loads)
        write(stored_shares, self.growth, indexes, shares)
        return shares


class DamagedLoads:
    """The loads of links by tables, while elements are down.

    All attributes describe the intact fabric. `guarantee` changes only `load_bounds` and
    `is_exact`, when it computes the exact load of a link that a failure has not changed.

    Args:
        build: the intact fabric.
        rates: the rates of hosts and links.
        failure_count: how many failures `guarantee` will be called for; for many, loops are
            compiled to machine code.
    """

    def __init__(self, build: Build, rates: HostRates, failure_count: int) -> None:
        self.build, self.rates = build, rates
        link_crossings = LinkCrossings.of(build, times=failure_count)
        program, destinations = link_crossings.program, link_crossings.destinations
        self.crossings, self.arcs = TableCrossings(link_crossings), link_crossings.arcs
        self.arc_index: Numbers = np.full(program.far.shape, -1)
        """As in `ChangedCrossings`."""
        self.arc_index[tuple(self.arcs.T)] = np.arange(len(self.arcs))
        self.link_rate = rates.link_rate[tuple(self.arcs.T)]
        """float64[arcs], the rate of each link."""
        endpoints = np.flatnonzero(build.topology.endpoints)
        state = FabricState(program, link_crossings.next_hops, destinations.egress_class, endpoints)
        self.intact = IntactPaths(
            state, link_crossings.leaving, destinations, link_crossings.packets
        )
        bounds = LinkBounds.of(link_crossings, self.arcs, *rates.by_switch(*self.crossings.size))
        self.arrives = all_arrive(bounds.arrived, rates)
        """Whether all packets arrive in the intact fabric."""
        self.load_bounds = bounds.upper
        """float64[arcs], the load of each link by its worst traffic, or an upper bound of it."""
        self.is_exact = np.zeros(len(self.arcs), np.bool_)
        """bool[arcs], whether `load_bounds` is the exact load."""
        self.pair_prices: PairPrices | None = None
        """The dual prices of each link, float64[arcs, S] and float64[arcs, D]; None if they are not
        stored."""
        self.pair_shares: PairsByLink | None = None
        """The shares of pairs on each link; None if they are not stored."""
        switches, destination_count = self.crossings.size
        if len(self.arcs) * switches * destination_count <= MOST_COMPUTED:
            self._compute_each_link()
        else:
            self._compute_each_orbit()

    def _compute_each_link(self) -> None:
        """Find the worst traffic and prices of each link."""
        rates, arc_count = self.rates, len(self.arcs)
        switches, destinations = self.crossings.size
        step = max(1, SHARES_AT_ONCE // (switches * destinations))
        self.pair_shares = self.crossings.link_crossings.pairs_by_link()
        self.pair_prices = PairPrices(
            source=np.zeros((arc_count, switches)), destination=np.zeros((arc_count, destinations))
        )
        for begin in range(0, arc_count, step):
            shares = self.crossings.shares(self.arcs[begin : begin + step])
            for index, share in enumerate(map(rates.between_hosts, shares), begin):
                worst_traffic_of_link = worst_traffic(share, rates)
                link_prices = dual_prices(share, worst_traffic_of_link, rates)
                self.pair_prices.source[index, rates.switches] = link_prices.source
                self.pair_prices.destination[index, rates.endpoint_index] = link_prices.destination
                self.load_bounds[index], self.is_exact[index] = worst_traffic_of_link.load, True

    def _compute_each_orbit(self) -> None:
        """Find the worst traffic of one link of each orbit, unless there are too many orbits.

        Links of an orbit have the same load only if all switches have hosts of the same rate. Else
        each link counts as an orbit of its own.
        """
        orbit = np.arange(len(self.arcs))
        if self.rates.are_equal and len(self.rates.host_rate_sum) == self.build.tables.switches:
            orbit = orbit_of_arc(self.build.topology, self.crossings.link_crossings)
        representatives, orbit_of_link = np.unique(orbit, return_inverse=True)
        if len(representatives) * np.prod(self.crossings.size) > MOST_COMPUTED:
            return
        loads = [
            worst_traffic(self.rates.between_hosts(share), self.rates).load
            for arc in representatives
            for share in self.crossings.shares(self.arcs[[arc]])
        ]
        self.load_bounds, self.is_exact[:] = np.array(loads)[orbit_of_link], True

    def guarantee(self, elements: Numbers, new_tables: RepairedTables | None = None) -> float:
        """The guaranteed throughput while elements are down, as a part of the hosts' rates.

        It is 0 if packets are lost, or if no switch with hosts is left.

        Args:
            elements: int64[n], as `Program` numbers them.
            new_tables: those that a controller has installed; None: those of the build.
        """
        cable_count = self.intact.state.program.cable_count
        living = self.rates.without(elements[elements >= cable_count] - cable_count)
        if not (len(living.switches) and self.arrives):
            return 0.0
        is_dead = self._dead_arcs(elements)
        crossings = self._changed_crossings(elements, new_tables, self.arcs[is_dead], living)
        if crossings is None:
            return 0.0
        return self._guarantee_by_worst_link(crossings, is_dead, living)

    def _changed_crossings(
        self,
        elements: Numbers,
        new_tables: RepairedTables | None,
        dead_arcs: Arcs,
        living: HostRates,
    ) -> ChangedCrossings | None:
        """The shares of pairs on links while elements are down; None if packets are lost.

        Only pairs whose paths may have changed are followed.

        Args:
            elements: as in `guarantee`.
            new_tables: as in `guarantee`.
            dead_arcs: int64[n, 2], the links that are down.
            living: the hosts that are left.
        """
        state = self._state(elements, new_tables)
        changed_rows = new_tables.changed_rows[:, 0] if new_tables else np.zeros(0, np.int64)
        changed_classes = new_tables.changed_classes if new_tables else np.zeros((0, 2), np.int64)
        # bool[S, D], the pairs with hosts at both ends, if their paths may have changed.
        may_differ = self.intact.changed_pairs(state, dead_arcs, changed_rows, changed_classes)
        sends, takes = living.by_switch(*self.crossings.size)
        may_differ &= (sends > 0)[:, None] & (takes > 0)
        differences = self.intact.shares(state, may_differ)
        if not differences.arrives:
            return None
        return ChangedCrossings.of(
            self.crossings, self.arc_index, self.pair_shares, differences.shares
        )

    def _dead_arcs(self, elements: Numbers) -> NDArray[np.bool_]:
        """bool[arcs], the directions of links that are down, or whose switch is down."""
        program = self.intact.state.program
        cable, far = program.cable[tuple(self.arcs.T)], program.far[tuple(self.arcs.T)]
        far_switch, near_switch = program.cable_count + far, program.cable_count + self.arcs[:, 0]
        needed_elements = np.stack((cable, far_switch, near_switch))
        return np.asarray(np.isin(needed_elements, elements).any(axis=0), np.bool_)

    def _state(self, elements: Numbers, repaired: RepairedTables | None) -> FabricState:
        """The state of all switches while elements are down.

        Only switches next to an element that is down, or with repaired classes, have new next hops.

        Args:
            elements: int64[n], the elements that are down.
            repaired: the tables of a controller; None: those of the build.
        """
        state, build = self.intact.state, self.build
        program, cable_count = state.program, state.program.cable_count
        if repaired:
            build = replace(build, tables=repaired.tables)
            program = with_classes(program, build, np.unique(repaired.changed_classes[:, 0]))
            egress = egress_classes(build, state.destinations, repaired.fib)
            state = state._replace(program=program, egress_class=egress)
        # bool[S, K], the links that are down, or whose far end is down.
        is_changed = np.isin(program.cable, elements[elements < cable_count]) & (program.far >= 0)
        is_changed |= np.isin(program.far, elements[elements >= cable_count] - cable_count)
        switches = np.flatnonzero(is_changed.any(axis=1))
        if repaired:
            switches = np.union1d(switches, repaired.changed_classes[:, 0])
        next_hops = state.next_hops.evaluated_at(
            program, build, elements, switches, self.intact.packets
        )
        return state._replace(next_hops=next_hops)

    def _guarantee_by_worst_link(
        self,
        crossings: ChangedCrossings,
        is_dead: NDArray[np.bool_],
        living: HostRates,
    ) -> float:
        """The guarantee that the link with the highest utilisation by its worst traffic allows.

        Links that the failure has not changed have the load of the intact fabric. If this load is
        known exactly, they need no search. Else it is searched, and stored for the next failures.

        Args:
            crossings: the shares of pairs on links while elements are down.
            is_dead: bool[arcs], the links that are down.
            living: the hosts that are left.
        """
        unchanged = crossings.unchanged
        if len(living.switches) < len(self.rates.switches):
            # With fewer hosts the worst traffic of every link is another.
            unchanged = np.zeros(len(unchanged), np.bool_)
        has_known_load = unchanged & self.is_exact
        search = WorstLink(crossings, self.arcs, living)
        search.peak = float((self.load_bounds / self.link_rate)[has_known_load].max(initial=0))
        to_search = np.flatnonzero(~has_known_load & ~is_dead)
        search.compute(to_search, self._utilisation_bounds(crossings, living)[to_search])
        for index, load in search.loads.items():
            if unchanged[index]:
                self.load_bounds[index], self.is_exact[index] = load, True
        return (
            search.share
        )  # here the part of its rate that each host can send, and no pair's share

    def _utilisation_bounds(self, crossings: ChangedCrossings, living: HostRates) -> Reals:
        """Upper bounds of the links' utilisation by any traffic, float64[arcs].

        Args:
            crossings: the shares of pairs on links while elements are down.
            living: the hosts that are left.
        """
        switches, destinations = crossings.size
        sends, takes = living.by_switch(switches, destinations)
        if self.pair_prices is None or self.pair_shares is None:
            # Without stored prices, each bound grows by what the growth of shares can carry.
            intact_shares, load_bounds = crossings.growth.without_pairs(), self.load_bounds
            pair_prices = PairPrices(
                source=np.zeros((1, switches)), destination=np.zeros((1, destinations))
            )
        else:
            intact_shares, pair_prices = self.pair_shares, self.pair_prices
            load_bounds = pair_prices.source @ sends + pair_prices.destination @ takes
        increase = np.zeros(len(self.arcs))
        raise_by_growth = for_packets(self.intact.packets, raise_bounds)
        raise_by_growth(intact_shares, crossings.growth, pair_prices, sends, takes, increase)
        return np.asarray((load_bounds + increase) / self.link_rate, np.float64)


def all_arrive(arrived: Reals, rates: HostRates) -> bool:
    """Whether all packets between switches with hosts arrive."""
    arrived_part = rates.between_hosts(arrived).copy()
    np.fill_diagonal(arrived_part, 1)
    return bool((arrived_part > 1 - LOAD_TOLERANCE).all())
