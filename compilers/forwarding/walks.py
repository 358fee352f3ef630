"""A build made ready for walks: every packet, over every path, under every failure asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding import failure_sets
from compilers.forwarding.cable_crossings import crossing
from compilers.forwarding.failure_sets import Cases, room_for, walk_cases
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.pairs_of_failures import LOSES, walk_two
from compilers.forwarding.program import Egress, egress_classes, program_of
from compilers.forwarding.rule import Program
from compilers.forwarding.single_failures import FIGURES, LONGEST, PATHS, SUSPECT, walk_paths
from compilers.forwarding.tabulation import minimal_next, tabulate
from compilers.tables.build import Build
from compilers.tables.fib import LOOPED, MISDELIVERED, MOST_HOPS, Fib
from compilers.workers.shards import Workers, in_blocks, reported

Numbers = NDArray[np.int64]
NO_CASES = np.zeros((0, 1), np.int64)
CELLS_AT_ONCE = 1 << 22
PAIRS_AT_ONCE = 1 << 18
PAIR_COST = 8
"""What two failures take for a packet, in what one takes."""
LEAST_BLOCKS = 4
"""Blocks of destinations below which another process costs more than it saves."""
Progress = Callable[[int, int], None]
T = TypeVar("T")
NO_ROWS = np.zeros((0, 4), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """The longest path of a packet that met a failure and was delivered, in links, and the most
    links that a repair adds; 0 where none was.
    """

    max_hops: int = 0
    stretch: int = 0

    def with_all(self, figures: NDArray[np.int64]) -> Lengths:
        """The longest of these and int64[n, 2]."""
        if not len(figures):
            return self
        most = np.maximum(figures.max(axis=0), (self.max_hops, self.stretch))
        return Lengths(*map(int, most))


@dataclass(frozen=True, slots=True)
class Alternates:
    """All paths that packets of hosts may take, over all pairs of switches.

    paths: pairs times ports with a weight. strays: the places on the path from which a packet is
    not delivered. max_hops: the links of the longest path. exact: whether a packet was seen to take
    as many; else it is a bound.
    """

    paths: int = 0
    strays: int = 0
    max_hops: int = 0
    exact: bool = True

    def and_also(self, other: Alternates) -> Alternates:
        """These and others, of other destinations."""
        most = max(self.max_hops, other.max_hops)
        exact = any(each.exact and each.max_hops == most for each in (self, other))
        return Alternates(self.paths + other.paths, self.strays + other.strays, most, exact)


@dataclass(frozen=True, eq=False)
class Walks:
    """What walks over a build ask: its program, and the tabulation of that."""

    build: Build
    program: Program
    fib: Fib
    packets: int

    @classmethod
    def of(cls, build: Build, destinations: int | None = None) -> Walks:
        """Lower the tables of a build to links, for walks to so many destinations; None: to all."""
        fib, most = Fib.of(build.tables, build.wiring.cables()), packets(build)
        ends = max(1, int(np.count_nonzero(build.topology.endpoints)))
        count = most if destinations is None else most // ends * destinations
        return cls(build, program_of(build), fib, count)

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """bool[S], the switches with hosts."""
        return np.ascontiguousarray(self.build.topology.endpoints)

    @cached_property
    def table(self) -> NDArray[np.int32]:
        """The switch behind each class's minimal link, of `minimal_next`."""
        table: NDArray[np.int32] = for_packets(self.packets, minimal_next)(self.program)
        return table

    @cached_property
    def tabulated(self) -> tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int16]]:
        """The next hops of `tabulate`."""
        step, shared, number = for_packets(self.packets, tabulate)(self.program)
        return step, shared, number

    @property
    def links(self) -> int:
        """E, the links of the fabric."""
        return int(self.program.cables)

    @property
    def switches(self) -> int:
        """S."""
        return len(self.program.far)

    @property
    def elements(self) -> int:
        """E + S, the elements that can fail: links by their numbers, then switches."""
        return self.links + self.switches

    @cached_property
    def cabled(self) -> NDArray[np.bool_]:
        """bool[S], the switches with a link."""
        return np.asarray((self.program.far >= 0).any(axis=1))

    @cached_property
    def link_ends(self) -> Numbers:
        """int64[E, 2], of `Wiring.link_ends`."""
        return self.build.wiring.link_ends()

    def name(self, element: int) -> str:
        """The name of a node, or `A-B` of a link."""
        names = self.build.wiring.names
        if element >= self.links:
            return names[element - self.links]
        return "-".join(names[end] for end in self.link_ends[element].tolist())

    def egress(self, destinations: Numbers) -> Egress:
        """int16[D, S], of `egress_classes`."""
        return egress_classes(self.build, destinations, self.fib)

    @cached_property
    def all_egress(self) -> Egress:
        """int16[S, S], of `egress` to every switch."""
        return self.egress(np.arange(self.switches))

    def single(
        self, destinations: Numbers, link: bool, node: bool
    ) -> tuple[Alternates, tuple[Lengths, Lengths], Numbers]:
        """All paths to some destinations, and under each failure of one link, and of one switch.

        Returns:
            The paths, the lengths under failures of links and of nodes, and the destinations to
            which packets are lost somewhere. Of these only the number of paths is counted.
        """
        figures = np.zeros((len(destinations), FIGURES + 4), np.int64)
        if self.program.every_hop:
            figures[:, SUSPECT] = True
            return Alternates(), (Lengths(), Lengths()), destinations
        for_packets(self.packets, walk_paths)(
            self.program,
            *self.tabulated,
            self.table,
            self.ends,
            link,
            node,
            self.egress(destinations),
            destinations,
            figures,
        )
        good = figures[:, SUSPECT] == 0
        paths = Alternates(
            int(figures[good, PATHS].sum()), 0, int(figures[good, LONGEST].max(initial=0))
        )
        of_kind = (figures[good, FIGURES + 2 * kind : FIGURES + 2 * kind + 2] for kind in range(2))
        lengths, others = (Lengths().with_all(found) for found in of_kind)
        return paths, (lengths, others), destinations[~good]

    def cases(
        self, destinations: Numbers, rows: Numbers, longest: Numbers | None = None
    ) -> tuple[Alternates, Lengths, Numbers]:
        """All paths to some destinations, and under each set of failures.

        Args:
            destinations: int64[D].
            rows: int64[n, F], the elements that are down in each case; E + S beyond the last.
            longest: int64[n], raised to the longest path that met each case's failures.

        Returns:
            The paths, the lengths under failures, and int64[m, 4] as in `walk_cases`: what is lost.
        """
        figures = np.zeros((len(destinations), failure_sets.ADDED + 1), np.int64)
        case, part = np.nonzero(rows < self.elements)
        element = rows[case, part]
        first = np.concatenate(
            ((0,), np.cumsum(np.bincount(element, minlength=self.elements)))
        ).astype(np.int64)
        of_element = case[np.argsort(element, kind="stable")].astype(np.int64)
        cases = Cases(np.ascontiguousarray(rows), first, of_element)
        lost: Numbers = for_packets(self.packets, walk_cases)(
            self.program,
            self.ends,
            self.egress(destinations),
            destinations,
            self.table,
            cases,
            room_for(self.program, cases),
            rows.shape[1] > 1,
            figures,
            np.zeros(len(rows), np.int64) if longest is None else longest,
        )
        paths = Alternates(
            paths=int(figures[:, failure_sets.PATHS].sum()),
            strays=int(figures[:, failure_sets.STRAYS].sum()),
            max_hops=int(figures[:, failure_sets.LONGEST].max(initial=0)),
        )
        return paths, Lengths().with_all(figures[:, failure_sets.LONGEST_MET :]), lost

    def two(self, destinations: Numbers) -> tuple[Lengths, Numbers]:
        """All packets to some destinations that meet two failures, of all pairs.

        Returns:
            The lengths, and int64[m, 4] as in `walk_cases`: what is lost; the case of a < b is
            a·(E + S) + b.
        """
        figures = np.zeros((len(destinations), 3), np.int64)
        egress = self.egress(destinations)
        follow = for_packets(PAIR_COST * self.packets, walk_two)
        follow(self.program, self.ends, egress, destinations, self.table, figures)
        lengths, loses = Lengths().with_all(figures[:, :2]), np.flatnonzero(figures[:, LOSES])
        if not len(loses):
            return lengths, NO_ROWS
        found = [NO_ROWS]
        for rows in self._pairs():
            _, _, lost = self.cases(destinations[loses], rows)
            lost[:, 0] = rows[lost[:, 0]] @ (self.elements, 1)
            lost[:, 2] = loses[lost[:, 2]]
            found.append(lost)
        return lengths, np.concatenate(found)

    def _pairs(self) -> Iterator[Numbers]:
        """int64[n, 2]: all pairs of elements that can fail, some at a time, the smaller first."""
        failing = np.concatenate((np.arange(self.links), self.links + np.flatnonzero(self.cabled)))
        for some in in_blocks(np.arange(len(failing)), max(1, PAIRS_AT_ONCE // len(failing))):
            first, second = np.nonzero(np.arange(len(failing)) > some[:, None])
            yield np.stack((failing[some[first]], failing[second]), axis=1)

    def crossing(self, destinations: Numbers, cables: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[D, S]: from which switches some path of hosts' packets takes one of the cables.

        Where packets go by intermediates, a path is a leg.

        Args:
            destinations: int64[D].
            cables: bool[E], by the numbers of links.
        """
        crosses: NDArray[np.bool_] = for_packets(self.packets, crossing)(
            self.program, self.egress(destinations), destinations, cables
        )
        return crosses


def packets(build: Build) -> int:
    """The number of packets to follow without failures: pairs times ports of a class."""
    ends = int(np.count_nonzero(build.topology.endpoints))
    return ends * ends * int(build.tables.classes.weight.shape[2])


@dataclass(frozen=True, slots=True)
class BlockWalk(Generic[T]):
    """What is made of the packets to a block of destinations.

    look: at a block. walks: of the build, where they are made already.
    """

    look: Callable[[Walks, Numbers], T]
    walks: Walks | None = None

    def __call__(self, build: Build) -> Callable[[Numbers], T]:
        """What is made of each block of this build."""
        return partial(self.look, self.walks or Walks.of(build))

    def over(
        self,
        build: Build,
        workers: Workers,
        progress: Progress | None = None,
        destinations: Numbers | None = None,
    ) -> Iterator[T]:
        """One value for each block, in order; no `destinations`: those of all hosts."""
        ends = np.flatnonzero(build.topology.endpoints)
        towards = ends if destinations is None else destinations
        cells = build.wiring.far.shape[0] * (build.wiring.far.shape[1] + 1)
        blocks = in_blocks(towards, max(1, CELLS_AT_ONCE // cells))
        if self.walks and not workers.remote and len(blocks) >= LEAST_BLOCKS:
            # Processes that are forked inherit tables and machine code, which this look makes.
            self.look(self.walks, towards[:1])
        yield from reported(workers.over(self, build, blocks, least=LEAST_BLOCKS), blocks, progress)


def minimal_hops(fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.int8]:
    """int8[S, D]: links that a packet from every switch to each destination takes.

    LOST, UNCABLED, LOOPED or MISDELIVERED where it does not arrive; 0 from a switch to itself.
    All packets step together: each cell of `after` holds the flat index of the cell that its
    packet moves to, so one look-up per hop moves every packet. Below the last switch there is
    one row per fault, whose cells point to themselves.
    """
    order, count = len(fib.step), len(destinations)
    column = np.arange(count)
    after = np.empty((order - MISDELIVERED, count), np.int64)
    after[:order] = fib.next_switch(destinations)
    after[order:] = np.arange(order, len(after))[:, None]
    after[after < 0] += len(after)
    after *= count
    after += column
    home = destinations * count + column

    at = after[:order]
    away = at != np.arange(order)[:, None] * count + column
    hops: NDArray[np.int8] = away.astype(np.int8)
    delivers = bool((after[destinations, column] == home).all())
    for _ in range(MOST_HOPS):
        if delivers and (at == home).all():
            return hops
        moved = after.take(at)
        moving = moved != at
        if not moving.any():
            break
        hops += moving
        at = moved
    else:
        hops[moving] = LOOPED
    return _classify(hops, at // count, destinations, order)


def _classify(
    hops: NDArray[np.int8], at: NDArray[np.int64], destinations: NDArray[np.int64], order: int
) -> NDArray[np.int8]:
    """Replace the hops by the fault for packets that stopped anywhere but at their destination."""
    strayed = (at != destinations) & (hops != LOOPED)
    hops[strayed] = np.where(at < order, MISDELIVERED, at - order + MISDELIVERED)[strayed]
    return hops
