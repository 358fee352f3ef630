"""The guaranteed throughput of a fabric while elements are down, from that of the intact one.

What the worst traffic loads a link with stays as it is, unless pairs that cross the link take other
paths. Where some do, prices of the intact fabric still bound the load, if switches pay more for
pairs whose share has grown. Mostly this shows that the link is not the worst. The other links are
looked at from the highest bound on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import CELLS, Arcs, OverTables
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_link import WorstLink
from compilers.evaluation.worst_traffic import CLOSE, prices, worst_traffic
from compilers.forwarding.changed_paths import ChangedShares, Held, IntactPaths
from compilers.forwarding.link_bounds import LinkBounds, PairPrices, raise_bounds, write_loads
from compilers.forwarding.link_crossings import LinkCrossings, PairsByLink
from compilers.forwarding.link_orbits import like_arcs
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import egress_classes, with_classes
from compilers.routing.link_repair import Repaired
from compilers.tables.build import Build

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
EXACT = 1 << 27
"""Pairs of switches, times links, up to which the worst traffic of each link is looked for before.
In larger fabrics it is one link of those that are alike."""


@dataclass(frozen=True, eq=False)
class ChangedCrossings(OverTables):
    """Who crosses the links of a fabric of which some shares have changed."""

    number: Numbers
    """int64[S, K], the number of each link."""
    before: PairsByLink | None
    """Who crossed each link before; None in a large fabric."""
    growth: PairsByLink
    """By how much shares have grown since; below 0 where they have fallen."""

    @classmethod
    def of(
        cls,
        intact: OverTables,
        number: Numbers,
        before: PairsByLink | None,
        shares: ChangedShares,
    ) -> ChangedCrossings:
        """Sort changed shares by their links."""
        arc = number.ravel()[shares.arc].astype(np.min_scalar_type(len(intact.arcs)))
        order = np.argsort(arc, kind="stable")
        begins = np.zeros(len(intact.arcs) + 1, np.int64)
        np.cumsum(np.bincount(arc, minlength=len(intact.arcs)), out=begins[1:])
        growth = PairsByLink(begins, *(column[order] for column in shares[1:]))
        return cls(intact.crossings, number, before, growth)

    @property
    def same(self) -> NDArray[np.bool_]:
        """bool[arcs], the links of which no share has changed."""
        return np.asarray(self.growth.begins[:-1] == self.growth.begins[1:], np.bool_)

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        numbers = self.number[tuple(arcs.T)]
        if self.before is None:
            loads, before = super().loads(arcs), self.growth.none()
        else:
            loads, before = np.zeros((len(arcs), *self.size)), self.before
        write = for_packets(self.crossings.packets, write_loads)
        write(before, self.growth, numbers, loads)
        return loads


class DamagedLoads:
    """The loads of links by tables, while elements are down.

    Args:
        build: with its tables before.
        rates: of hosts and links.
        times: how often is asked.
    """

    def __init__(self, build: Build, rates: HostRates, times: int) -> None:
        self.build, self.rates = build, rates
        crossings = LinkCrossings.of(build, times=times)
        p, towards = crossings.program, crossings.towards
        self.crossings, self.arcs = OverTables(crossings), crossings.arcs
        self.number: Numbers = np.full(p.far.shape, -1)
        self.number[tuple(self.arcs.T)] = np.arange(len(self.arcs))
        self.carries = rates.links[tuple(self.arcs.T)]
        held = Held(p, crossings.hops, towards.egress, np.flatnonzero(build.topology.endpoints))
        self.intact = IntactPaths(held, crossings.out, towards, crossings.packets)
        bounds = LinkBounds.of(crossings, self.arcs, *rates.ends(*self.crossings.size))
        self.arrives = all_arrive(bounds.arrived, rates)
        self.most, self.exact = bounds.most, np.zeros(len(self.arcs), np.bool_)
        self.prices: PairPrices | None = None
        """float64[arcs, S] and float64[arcs, D], prices on each link while nothing is down; None in
        a large fabric."""
        self.pairs: PairsByLink | None = None
        """Who crosses each link then; None in a large fabric."""
        switches, ends = self.crossings.size
        if len(self.arcs) * switches * ends <= EXACT:
            self._look_at_all()
        else:
            self._look_at_unlike()

    def _look_at_all(self) -> None:
        """Find the worst traffic and prices of each link."""
        switches, ends = self.crossings.size
        rates, step = self.rates, max(1, CELLS // (switches * ends))
        self.pairs = self.crossings.crossings.pairs_by_link()
        self.prices = PairPrices(*(np.zeros((len(self.arcs), n)) for n in self.crossings.size))
        for begin in range(0, len(self.arcs), step):
            loads = self.crossings.loads(self.arcs[begin : begin + step])
            for number, load in enumerate(map(rates.pairs, loads), begin):
                worst = worst_traffic(load, rates)
                paid = prices(load, worst, rates)
                self.prices.source[number, rates.switches] = paid.source
                self.prices.destination[number, rates.columns] = paid.destination
                self.most[number], self.exact[number] = worst.load, True

    def _look_at_unlike(self) -> None:
        """Find the worst traffic of one link of those that are alike."""
        group = np.arange(len(self.arcs))
        if self.rates.alike and len(self.rates.hosts) == self.build.tables.switches:
            group = like_arcs(self.build.topology, self.crossings.crossings)
        unlike, place = np.unique(group, return_inverse=True)
        if len(unlike) * np.prod(self.crossings.size) > EXACT:
            return
        loads = [
            worst_traffic(self.rates.pairs(load), self.rates).load
            for arc in unlike
            for load in self.crossings.loads(self.arcs[[arc]])
        ]
        self.most, self.exact[:] = np.array(loads)[place], True

    def share(self, elements: Numbers, repaired: Repaired | None = None) -> float:
        """The guarantee while elements are down.

        It is 0 where packets are lost, and where no switch with hosts is left.

        Args:
            elements: int64[n], as `Program` numbers them.
            repaired: the tables by then; None: those of the build.
        """
        links = self.intact.held.program.cables
        living = self.rates.without(elements[elements >= links] - links)
        if not (len(living.switches) and self.arrives):
            return 0.0
        dead, after = self._dead(elements), self._held(elements, repaired)
        rows = repaired.rows[:, 0] if repaired else np.zeros(0, np.int64)
        classes = repaired.classes if repaired else np.zeros((0, 2), np.int64)
        changed = self.intact.changed_pairs(after, self.arcs[dead], rows, classes)
        sends, takes = living.ends(*self.crossings.size)
        changed &= (sends > 0)[:, None] & (takes > 0)
        differences = self.intact.shares(after, changed)
        if not differences.arrives:
            return 0.0
        crossings = ChangedCrossings.of(self.crossings, self.number, self.pairs, differences.shares)
        return self._least(crossings, dead, living)

    def _dead(self, elements: Numbers) -> NDArray[np.bool_]:
        """bool[arcs], the directions of links that are down, those of switches too."""
        p = self.intact.held.program
        cable, far = p.cable[tuple(self.arcs.T)], p.far[tuple(self.arcs.T)]
        ends = np.stack((cable, p.cables + far, p.cables + self.arcs[:, 0]))
        return np.asarray(np.isin(ends, elements).any(axis=0), np.bool_)

    def _held(self, elements: Numbers, repaired: Repaired | None) -> Held:
        """What decides where packets go."""
        held, build = self.intact.held, self.build
        p, ends = held.program, held.program.cables
        if repaired:
            build = replace(build, tables=repaired.tables)
            p = with_classes(p, build, np.unique(repaired.classes[:, 0]))
            egress = egress_classes(build, held.ends, repaired.fib)
            held = held._replace(program=p, egress=egress)
        meets = np.isin(p.cable, elements[elements < ends]) & (p.far >= 0)
        meets |= np.isin(p.far, elements[elements >= ends] - ends)
        again = np.flatnonzero(meets.any(axis=1))
        if repaired:
            again = np.union1d(again, repaired.classes[:, 0])
        return held._replace(hops=held.hops.again(p, build, elements, again, self.intact.packets))

    def _least(
        self,
        crossings: ChangedCrossings,
        dead: NDArray[np.bool_],
        living: HostRates,
    ) -> float:
        """The share by the link that the worst traffic loads most, by what it carries.

        Args:
            crossings: who crosses links now.
            dead: bool[arcs], the links that are down.
            living: the hosts that are left.
        """
        same = crossings.same
        if len(living.switches) < len(self.rates.switches):
            same = np.zeros(len(same), np.bool_)
        settled = same & self.exact
        search = WorstLink(crossings, self.arcs, living)
        search.peak = float((self.most / self.carries)[settled].max(initial=0))
        others = np.flatnonzero(~settled & ~dead)
        search.look(others, self._most(crossings, living)[others])
        for number, load in search.loads.items():
            if same[number]:
                self.most[number], self.exact[number] = load, True
        return search.share

    def _most(self, crossings: ChangedCrossings, living: HostRates) -> Reals:
        """float64[arcs], what each link carries at most, by what it can carry.

        Args:
            crossings: who crosses links now.
            living: the hosts that are left.
        """
        sends, takes = living.ends(*crossings.size)
        if self.prices is None or self.pairs is None:
            before, most = crossings.growth.none(), self.most
            paid = PairPrices(*(np.zeros((1, n)) for n in crossings.size))
        else:
            before, paid = self.pairs, self.prices
            most = paid.source @ sends + paid.destination @ takes
        raised = np.zeros(len(self.arcs))
        bound = for_packets(self.intact.packets, raise_bounds)
        bound(before, crossings.growth, paid, sends, takes, raised)
        return np.asarray((most + raised) / self.carries, np.float64)


def all_arrive(arrived: Reals, rates: HostRates) -> bool:
    """Whether all packets between switches with hosts arrive."""
    part = rates.pairs(arrived).copy()
    np.fill_diagonal(part, 1)
    return bool((part > 1 - CLOSE).all())
