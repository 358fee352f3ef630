"""Follow every packet of a build: `Walks` is a build made ready for the loops that do this.

What comes in is a build. What goes out are lengths of paths, and the pairs of switches that lose
packets: without failures, and under failures of links and switches. `compilers.proof` calls these
functions, and so do rehearsals and pictures.

- `Walks` calls the loops of `single_failures`, `failure_sets`, `pairs_of_failures` and
  `cable_crossings`, and turns the columns of numbers that they write into values with names.
- `BlockWalk` calls a function of `Walks` for one block of destinations after the other, in several
  processes if there are any.
- `minimal_hops` needs no `Walks`. It follows packets over minimal ports only.

An *element* is what can fail: a cable, by its number, or switch s, as E + s. A *state* is a switch,
an ingress link there and a tag (`packet_states`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding import failure_sets, pairs_of_failures, single_failures
from compilers.forwarding.cable_crossings import sources_over_cables
from compilers.forwarding.failure_sets import (
    PAIR_CASE,
    PAIR_COLUMN,
    FailureSets,
    scratch_for,
    walk_cases,
)
from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.pairs_of_failures import walk_pairs
from compilers.forwarding.program import Egress, egress_classes, program_of
from compilers.forwarding.rule import Program
from compilers.forwarding.single_failures import StateLayout, buffers_for, layout_of, walk_paths
from compilers.forwarding.tabulation import Tabulation, minimal_next, tabulate
from compilers.tables.build import Build
from compilers.tables.fib import LOOPED, MISDELIVERED, MOST_HOPS, Fib
from compilers.workers.shards import Workers, in_blocks, reported

Numbers = NDArray[np.int64]
NO_CASES = np.zeros((0, 1), np.int64)
"""The rows of `Walks.cases` for no failures."""
CELLS_AT_ONCE = 1 << 22
"""The most pairs of a link and a destination in a block of destinations."""
PAIRS_AT_ONCE = 1 << 18
"""The most pairs of failed elements that are walked at once."""
PAIR_COST = 8
"""By which factor it takes longer to follow a packet under two failures than under one."""
LEAST_BLOCKS = 4
"""The fewest blocks of destinations for which a second process saves more than it costs."""
Progress = Callable[[int, int], None]
"""Called with the number of destinations that are done, and the number of all."""
T = TypeVar("T")
NO_LOST_PAIRS = np.zeros((0, 4), np.int64)
"""No lost pairs, in the form of `walk_cases`."""


@dataclass(frozen=True, slots=True, eq=False)
class PathLengths:
    """The lengths of the paths of packets that met a failure and were delivered, in links."""

    max_hops: int = 0
    """The longest path; 0 if no packet met a failure."""
    stretch: int = 0
    """The most links that a repair adds to a path."""

    def with_all(self, figures: NDArray[np.int64]) -> PathLengths:
        """The largest `max_hops` and `stretch` of this value and of the rows of an array.

        Args:
            figures: int64[n, 2], rows of `max_hops` and `stretch`.
        """
        if not len(figures):
            return self
        most = np.maximum(figures.max(axis=0), (self.max_hops, self.stretch))
        return PathLengths(*map(int, most))


@dataclass(frozen=True, slots=True)
class HostPathFigures:
    """Figures of all paths that packets of hosts may take without failures.

    Between two switches there is one path for each port with a weight.
    """

    paths: int = 0
    """How many paths hosts may choose: pairs of switches times ports with a weight."""
    strays: int = 0
    """In how many states on these paths packets are lost."""
    max_hops: int = 0
    """The links of the longest path, or a bound on them."""
    exact: bool = True
    """Whether a packet was seen to take `max_hops` links; otherwise it is a bound."""

    def combined(self, others: HostPathFigures) -> HostPathFigures:
        """The figures of these paths and of paths to other destinations, together."""
        longest = max(self.max_hops, others.max_hops)
        return HostPathFigures(
            paths=self.paths + others.paths,
            strays=self.strays + others.strays,
            max_hops=longest,
            exact=any(part.exact and part.max_hops == longest for part in (self, others)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class SingleFailures:
    """The result of `Walks.follow_single_failures` for some destinations."""

    alternates: HostPathFigures
    """All paths that hosts may choose without failures, minimal ones and alternates, to the
    destinations that are not `suspect_destinations`."""
    link: PathLengths
    """The lengths under each failure of one link, to the same destinations."""
    node: PathLengths
    """The lengths under each failure of one switch, to the same destinations."""
    suspect_destinations: Numbers
    """int64[n], the destinations to which some packet is lost, or whose next hops cannot be
    tabulated."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseWalks:
    """The result of `Walks.follow_cases` for some destinations."""

    alternates: HostPathFigures
    """All paths that hosts may choose without failures, minimal ones and alternates."""
    lengths: PathLengths
    """The lengths under the failures."""
    lost_pairs: Numbers
    """int64[n, 4], the pairs that lose packets, with the columns PAIR_CASE to PAIR_FOR_EVER of
    `failure_sets`."""


@dataclass(frozen=True, eq=False)
class Walks:
    """A build with S switches and E cables, ready for walks."""

    build: Build
    """The build, in which failed elements are named."""
    program: Program
    """Its tables in links, which the rule reads."""
    fib: Fib
    """Its routes, for the egress classes of destinations."""
    packets: int
    """How many packets are followed, for `for_packets`."""

    @classmethod
    def of(cls, build: Build, destinations: int | None = None) -> Walks:
        """Lower the tables of a build to links.

        Args:
            build: its tables and wiring are walked.
            destinations: to how many destinations packets are followed; None: to all.
        """
        fib, count = Fib.of(build.tables, build.wiring.far_by_port()), packet_count(build)
        if destinations is not None:
            all_destinations = max(1, int(np.count_nonzero(build.topology.endpoints)))
            count = count // all_destinations * destinations
        return cls(build, program_of(build), fib, count)

    @cached_property
    def has_hosts(self) -> NDArray[np.bool_]:
        """bool[S], the switches with hosts."""
        return self.build.topology.endpoints.copy()

    @cached_property
    def minimal_far(self) -> NDArray[np.int32]:
        """int32[S, C + 2], the switch behind each class's minimal link, of `minimal_next`."""
        minimal_far: NDArray[np.int32] = for_packets(self.packets, minimal_next)(self.program)
        return minimal_far

    @cached_property
    def tabulation(self) -> Tabulation:
        """The next hops of every switch, class and ingress place."""
        return for_packets(self.packets, tabulate)(self.program)

    @cached_property
    def layout(self) -> StateLayout:
        """How `single_failures` numbers states."""
        return layout_of(self.program)

    @property
    def cable_count(self) -> int:
        """E, the number of cables of the fabric."""
        return int(self.program.cable_count)

    @property
    def switches(self) -> int:
        """S, the switches of the fabric."""
        return len(self.program.far)

    @property
    def elements(self) -> int:
        """E + S, the number of elements that can fail: cables come first, then switches."""
        return self.cable_count + self.switches

    @cached_property
    def cabled(self) -> NDArray[np.bool_]:
        """bool[S], the switches with a link."""
        return np.asarray((self.program.far >= 0).any(axis=1))

    @cached_property
    def link_ends(self) -> Numbers:
        """int64[E, 2], the switches at the ends of each link, the smaller first."""
        return self.build.wiring.link_ends()

    def name(self, element: int) -> str:
        """The name of a node, or `A-B` of a link."""
        names = self.build.wiring.names
        if element >= self.cable_count:
            return names[element - self.cable_count]
        return "-".join(names[end] for end in self.link_ends[element].tolist())

    def egress(self, destinations: Numbers) -> Egress:
        """int16[D, S], the egress class of every switch for these destinations."""
        return egress_classes(self.build, destinations, self.fib)

    @cached_property
    def all_egress(self) -> Egress:
        """int16[S, S], the egress class of every switch for every switch, by destination."""
        return self.egress(np.arange(self.switches))

    def follow_single_failures(
        self, destinations: Numbers, link_fails: bool, node_fails: bool
    ) -> SingleFailures:
        """Follow all packets to some destinations, by tabulated next hops.

        Args:
            destinations: int64[D].
            link_fails: whether each link fails, one at a time.
            node_fails: whether each switch fails, one at a time.
        """
        if self.program.every_hop:  # several next hops in transit cannot be tabulated
            return SingleFailures(HostPathFigures(), PathLengths(), PathLengths(), destinations)
        figures = np.zeros((len(destinations), single_failures.COLUMNS), np.int64)
        for_packets(self.packets, walk_paths)(
            self.program,
            self.tabulation,
            self.minimal_far,
            self.has_hosts,
            self.layout,
            link_fails,
            node_fails,
            self.egress(destinations),
            destinations,
            buffers_for(self.program, self.layout),
            figures,
        )
        suspect = figures[:, single_failures.SUSPECT] != 0
        good = figures[~suspect]
        alternates = HostPathFigures(
            paths=int(good[:, single_failures.PATH_COUNT].sum()),
            max_hops=int(good[:, single_failures.LONGEST_PATH].max(initial=0)),
        )
        link = good[:, [single_failures.LONGEST_AFTER_LINK, single_failures.ADDED_BY_LINK]]
        node = good[:, [single_failures.LONGEST_AFTER_NODE, single_failures.ADDED_BY_NODE]]
        return SingleFailures(
            alternates,
            PathLengths().with_all(link),
            PathLengths().with_all(node),
            destinations[suspect],
        )

    def follow_cases(
        self, destinations: Numbers, failed: Numbers, longest: Numbers | None = None
    ) -> CaseWalks:
        """Follow all packets to some destinations, without failures and under sets of them.

        Args:
            destinations: int64[D].
            failed: int64[n, F], the failed elements of each case; E + S in places after the last.
            longest: int64[n], raised to the longest path that met each case's failures.
        """
        figures = np.zeros((len(destinations), failure_sets.ADDED_LINKS + 1), np.int64)
        cases = self._by_element(failed)
        # Packets that meet a failed element are followed again in each case with that element.
        cases_an_element = max(1, len(cases.cases_of_element) // self.elements)
        lost: Numbers = for_packets(cases_an_element * self.packets, walk_cases)(
            self.program,
            self.has_hosts,
            self.egress(destinations),
            destinations,
            self.minimal_far,
            cases,
            scratch_for(self.program, cases),
            failed.shape[1] > 1,
            figures,
            np.zeros(len(failed), np.int64) if longest is None else longest,
        )
        alternates = HostPathFigures(
            paths=int(figures[:, failure_sets.PATH_COUNT].sum()),
            strays=int(figures[:, failure_sets.LOST_STATES].sum()),
            max_hops=int(figures[:, failure_sets.LONGEST_PATH].max(initial=0)),
        )
        lengths = PathLengths().with_all(
            figures[:, [failure_sets.LONGEST_AFTER_FAILURE, failure_sets.ADDED_LINKS]]
        )
        return CaseWalks(alternates, lengths, lost)

    def _by_element(self, failed: Numbers) -> FailureSets:
        """The cases of int64[n, F], and for each element the cases in which it fails."""
        case, place = np.nonzero(failed < self.elements)  # the rest fills up the row
        element = failed[case, place]
        count = np.bincount(element, minlength=self.elements)
        first = np.concatenate(((0,), np.cumsum(count))).astype(np.int64)
        of_element = case[np.argsort(element, kind="stable")].astype(np.int64)
        return FailureSets(np.ascontiguousarray(failed), first, of_element)

    def follow_pairs_of_failures(self, destinations: Numbers) -> tuple[PathLengths, Numbers]:
        """Follow all packets to some destinations that meet two failures, of all pairs.

        Returns:
            The lengths, and the lost pairs as in `CaseWalks.lost_pairs`; the case of the elements
            a < b is a·(E + S) + b.
        """
        figures = np.zeros((len(destinations), pairs_of_failures.COLUMNS), np.int64)
        egress = self.egress(destinations)
        follow = for_packets(PAIR_COST * self.packets, walk_pairs)
        follow(self.program, self.has_hosts, egress, destinations, self.minimal_far, figures)
        lengths = PathLengths().with_all(
            figures[:, [pairs_of_failures.LONGEST_AFTER_FAILURES, pairs_of_failures.ADDED_LINKS]]
        )
        loses = np.flatnonzero(figures[:, pairs_of_failures.LOSES_PACKETS])
        if not len(loses):
            return lengths, NO_LOST_PAIRS
        # Only now are the pairs tried one by one, to name the switches that lose packets.
        blocks = [NO_LOST_PAIRS]
        for failed in self._pairs_of_elements():
            lost = self.follow_cases(destinations[loses], failed).lost_pairs
            # So far cases count in `failed`, and destinations among those that lose packets.
            smaller, larger = failed[lost[:, PAIR_CASE]].T
            lost[:, PAIR_CASE] = smaller * self.elements + larger
            lost[:, PAIR_COLUMN] = loses[lost[:, PAIR_COLUMN]]
            blocks.append(lost)
        return lengths, np.concatenate(blocks)

    def _pairs_of_elements(self) -> Iterator[Numbers]:
        """Yield all pairs of elements that can fail, int64[n, 2], the smaller element first.

        A switch without a link cannot fail.
        """
        failing = np.concatenate(
            (np.arange(self.cable_count), self.cable_count + np.flatnonzero(self.cabled))
        )
        for block in in_blocks(np.arange(len(failing)), max(1, PAIRS_AT_ONCE // len(failing))):
            first, second = np.nonzero(np.arange(len(failing)) > block[:, None])
            yield np.stack((failing[block[first]], failing[second]), axis=1)

    def sources_over_cables(
        self, destinations: Numbers, cables: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The switches from which some path of hosts' packets takes one of the cables.

        Where packets go over intermediates, each leg is such a path: to the intermediate, and from
        it.

        Args:
            destinations: int64[D].
            cables: bool[E], by their numbers.

        Returns:
            bool[D, S], by destination and source.
        """
        crosses: NDArray[np.bool_] = for_packets(self.packets, sources_over_cables)(
            self.program, self.egress(destinations), destinations, cables
        )
        return crosses


def packet_count(build: Build) -> int:
    """How many packets are followed without failures: pairs of switches times ports of a class."""
    switches_with_hosts = int(np.count_nonzero(build.topology.endpoints))
    return switches_with_hosts**2 * int(build.tables.classes.weight.shape[2])


@dataclass(frozen=True, slots=True)
class BlockWalk(Generic[T]):
    """A function of the packets to a block of destinations, applied to block after block.

    Each worker process calls the `BlockWalk` with the build. It returns the function of blocks, and
    makes the walks that this needs if they are not given.
    """

    function: Callable[[Walks, Numbers], T]
    """The function: from the walks of a build and int64[D], destinations."""
    walks: Walks | None = None
    """The walks of the build; None: each process makes its own."""

    def __call__(self, build: Build) -> Callable[[Numbers], T]:
        """The function for the blocks of a build; each worker process calls this once."""
        return partial(self.function, self.walks or Walks.of(build))

    def over(
        self,
        build: Build,
        workers: Workers,
        progress: Progress | None = None,
        destinations: Numbers | None = None,
    ) -> Iterator[T]:
        """Yield the value of the function for each block, in order.

        Args:
            build: its packets are followed.
            workers: that share the blocks.
            progress: called with destinations done and all.
            destinations: int64[D]; None: all switches with hosts.
        """
        if destinations is None:
            destinations = np.flatnonzero(build.topology.endpoints)
        switches, most_links = build.wiring.far.shape
        links = switches * (most_links + 1)  # the hosts of a switch count as one more link
        blocks = in_blocks(destinations, max(1, CELLS_AT_ONCE // links))
        if self.walks and not workers.remote and len(blocks) >= LEAST_BLOCKS:
            # Forked processes inherit the tables and the machine code that this first call makes.
            self.function(self.walks, destinations[:1])
        yield from reported(workers.over(self, build, blocks, least=LEAST_BLOCKS), blocks, progress)


def minimal_hops(fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.int8]:
    """The links of the minimal path from every switch to some destinations.

    A packet is a cell of a table: its row is the switch that it is in, its column the destination.
    `next_cell` has for each cell the cell that the packet moves to. Cells are numbered row by row,
    so that one look-up moves all packets by a link. Below the rows of the switches there is a row
    for each fault. A packet that comes to such a row stays there.

    Returns:
        int8[S, D]: the links; 0 from a switch to itself; LOST, UNCABLED, LOOPED or MISDELIVERED
        where a packet does not arrive.
    """
    switches, count = len(fib.step), len(destinations)
    faults = -MISDELIVERED  # how many there are: they are numbered from -1 to MISDELIVERED
    column = np.arange(count)
    next_row = np.empty((switches + faults, count), np.int64)
    next_row[:switches] = fib.next_switch(destinations)
    next_row[switches:] = np.arange(switches, len(next_row))[:, None]
    next_row[next_row < 0] += len(next_row)  # a fault becomes the number of its row
    next_cell = next_row * count + column
    destination_cell = destinations * count + column  # int64[D]

    cell = next_cell[:switches]  # int64[S, D], the cell of each packet, after its first link
    leaves_switch = cell != np.arange(switches)[:, None] * count + column
    hops: NDArray[np.int8] = leaves_switch.astype(np.int8)
    delivers = bool((next_cell[destinations, column] == destination_cell).all())
    for _ in range(MOST_HOPS):
        if delivers and (cell == destination_cell).all():
            return hops
        following = next_cell.take(cell)
        is_moving = following != cell
        if not is_moving.any():
            break
        hops += is_moving
        cell = following
    else:  # after MOST_HOPS links, packets that moved in the last turn still move
        hops[is_moving] = LOOPED
    return _with_faults(hops, cell // count, destinations, switches)


def _with_faults(
    hops: NDArray[np.int8], row: NDArray[np.int64], destinations: NDArray[np.int64], switches: int
) -> NDArray[np.int8]:
    """The hops, and the fault in place of hops that do not end at the destination.

    Args:
        hops: int8[S, D], the links of each packet, or LOOPED; changed.
        row: int64[S, D], the row where each packet stopped: a switch, or from S on a fault.
        destinations: int64[D].
        switches: S, the number of switches.
    """
    astray = (row != destinations) & (hops != LOOPED)
    # The rows of faults come after those of switches, in the order of the faults: MISDELIVERED, the
    # least of these negative numbers, has the first.
    fault = row - switches + MISDELIVERED
    hops[astray] = np.where(row < switches, MISDELIVERED, fault)[astray]
    return hops
