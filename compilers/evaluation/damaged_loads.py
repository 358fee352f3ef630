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
from compilers.forwarding.link_bounds import LinkBounds, PairPrices
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_orbits import like_arcs
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
    shares: ChangedShares
    """The shares that differ from the intact fabric."""
    by_arc: Numbers
    """int64[n], the numbers of these, those of a link together."""
    begins: Numbers
    """int64[arcs + 1], where those of each link begin."""

    @classmethod
    def of(cls, intact: OverTables, number: Numbers, shares: ChangedShares) -> ChangedCrossings:
        """Sort changed shares by their links."""
        arcs, links = len(intact.arcs), number.shape[1]
        arc = number[shares.arc // links, shares.arc % links]
        by_arc = np.argsort(arc.astype(np.min_scalar_type(arcs)), kind="stable")
        begins = np.searchsorted(arc[by_arc], np.arange(arcs + 1))
        return cls(intact.crossings, number, shares, by_arc, begins)

    @property
    def same(self) -> NDArray[np.bool_]:
        """bool[arcs], the links of which no share has changed."""
        return np.asarray(self.begins[:-1] == self.begins[1:], np.bool_)

    def loads(self, arcs: Arcs) -> Reals:
        """As in `Crossings`."""
        loads, shares = super().loads(arcs), self.shares
        for load, number in zip(loads, self.number[tuple(arcs.T)].tolist(), strict=True):
            entry = self.by_arc[self.begins[number] : self.begins[number + 1]]
            load[shares.source[entry], shares.destination[entry]] = shares.after[entry]
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
        switches, ends = self.crossings.size
        if len(self.arcs) * switches * ends <= EXACT:
            self._look_at_all()
        else:
            self._look_at_unlike()

    def _look_at_all(self) -> None:
        """Find the worst traffic and prices of each link."""
        switches, ends = self.crossings.size
        rates, step = self.rates, max(1, CELLS // (switches * ends))
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
        most = self._most(differences.shares, sends, takes)
        most[dead] = 0
        return self._least(most / self.carries, differences.shares, living)

    def _most(self, shares: ChangedShares, sends: Reals, takes: Reals) -> Reals:
        """float64[arcs], what no traffic loads each link with more, if some shares have changed."""
        most, paid, links = self.most, shares.before, self.number.shape[1]
        if self.prices:
            source, destination = self.prices
            arc = self.number.ravel()[shares.arc]
            most = source @ sends + destination @ takes
            paid = source[arc, shares.source] + destination[arc, shares.destination]
        gains = self.intact.gains(shares, paid, sends, takes)
        return np.asarray(most + gains[self.arcs[:, 0] * links + self.arcs[:, 1]], np.float64)

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

    def _least(self, most: Reals, shares: ChangedShares, living: HostRates) -> float:
        """The share by the link that the worst traffic loads most, by what it carries.

        Args:
            most: float64[arcs], a bound of the load of each link, by what it carries.
            shares: those that differ from the intact fabric.
            living: the hosts that are left.
        """
        crossings = ChangedCrossings.of(self.crossings, self.number, shares)
        same = crossings.same
        if len(living.switches) < len(self.rates.switches):
            same = np.zeros(len(same), np.bool_)
        settled = same & self.exact
        search = WorstLink(crossings, self.arcs, living)
        search.peak = float((self.most / self.carries)[settled].max(initial=0))
        others = np.flatnonzero(~settled & (most > 0))
        search.look(others, most[others])
        for number, load in search.loads.items():
            if same[number]:
                self.most[number], self.exact[number] = load, True
        return search.share


def all_arrive(arrived: Reals, rates: HostRates) -> bool:
    """Whether all packets between switches with hosts arrive."""
    part = rates.pairs(arrived).copy()
    np.fill_diagonal(part, 1)
    return bool((part > 1 - CLOSE).all())
