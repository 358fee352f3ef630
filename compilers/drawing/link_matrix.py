"""Charts with a cell for each link: its load under a traffic pattern, its failure.

Rows and columns are switches in the order of their clusters; beyond 200 switches they are clusters,
and a cell has the worst link between two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import hardware_of
from compilers.drawing.chart import Array, Chart, Grid, of_grids, short_number
from compilers.drawing.positions import by_kind
from compilers.evaluation.pattern_traffic import fullest, require_pattern
from compilers.evaluation.saturation import LinkLoads
from compilers.forwarding.walks import BlockWalk, Numbers, Progress, Walks
from compilers.tables.build import Build
from compilers.topology.layout import layout, layouts, places_in
from compilers.workers.shards import THIS_PROCESS
from inventory.problems import InputError

MOST_ROWS_OF_SWITCHES = MOST_GROUPS = 200
MATRIX_PIXELS = 380


@dataclass(frozen=True, slots=True, eq=False)
class SwitchGroups:
    """S switches in groups."""

    group: NDArray[np.int64]
    """int64[S], the group of each switch."""
    position: NDArray[np.int64]
    """int64[S], the place of each switch in its group."""
    names: tuple[str, ...]
    """The name of each group."""

    @classmethod
    def of(cls, build: Build) -> SwitchGroups:
        """The clusters of a build if there are few, else those of a coarser layout, or kinds."""
        topology, hardware = build.topology, hardware_of(build)
        layouts_of = [layout(topology, name) for name in layouts(topology)]
        place = layouts_of[0].position if layouts_of else np.zeros(topology.graph.order)
        names, group = hardware.cluster_names, hardware.cluster
        for grouping in (*layouts_of, by_kind(topology)):
            if len(names) > MOST_GROUPS:
                names, group, place = grouping.names, grouping.rack, grouping.position
        return cls(group.astype(np.int64), places_in(group, place).astype(np.int64), names)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[groups]: how many switches are in each."""
        return np.bincount(self.group, minlength=len(self.names))


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """The rows of switches, which are also their columns."""

    row: NDArray[np.int64]
    """int64[S], the row of each switch."""
    rows: int
    """How many rows there are."""
    names: tuple[str, ...]
    """The name of each group of rows."""
    sizes: NDArray[np.int64]
    """int64[G], how many rows each group has."""
    singly: bool
    """Whether each row is one switch."""

    @classmethod
    def of(cls, build: Build) -> Matrix:
        """One row a switch if there are few, else one a cluster."""
        groups, order = SwitchGroups.of(build), build.topology.graph.order
        names = groups.names
        if order > MOST_ROWS_OF_SWITCHES:
            return cls(groups.group, len(names), names, np.ones(len(names), np.int64), False)
        row = np.empty(order, np.int64)
        row[np.lexsort((groups.position, groups.group))] = np.arange(order)
        return cls(row, order, names, groups.sizes, True)

    @property
    def middles(self) -> NDArray[np.float64]:
        """float64[groups]: the middle of each group, in rows."""
        middles: NDArray[np.float64] = np.cumsum(self.sizes) - self.sizes / 2
        return middles

    def grid(self, title: str, note: str, ends: Array, value: Array) -> Grid:
        """A value for each arc or link; the largest where several are in a cell.

        Args:
            title: above it.
            note: below the title.
            ends: int[n, 2], the switches of each.
            value: [n], not negative.
        """
        u, v = self.row[ends].T
        keys, which = np.unique(u * self.rows + v, return_inverse=True)
        worst = np.zeros(len(keys))
        np.maximum.at(worst, which, value)
        row, column = np.divmod(keys, self.rows)
        bounds = np.cumsum(self.sizes)[:-1].tolist() if self.singly else ()
        size = max(3, min(22, MATRIX_PIXELS // self.rows))
        count = self.rows
        return Grid(title, note, row, column, worst, size, count, count, bounds, bounds)

    @property
    def words(self) -> str:
        """What a cell is."""
        cell = "a link" if self.singly else "the worst link between two clusters"
        return f"a cell is {cell}, from its row to its column"


def load_chart(build: Build, pattern: str) -> Chart:
    """The load of every link while all hosts send as much as they can: 1 is a full link.

    Raises:
        InputError: there is no such pattern, or it has no traffic in this fabric.
    """
    require_pattern(pattern)
    loads = LinkLoads.of(build, pattern)
    if not loads.flows:
        required, todo = "a pattern with traffic between switches here", "such as uniform"
        raise InputError.of(required, pattern, todo, key="pattern")
    f, matrix = loads.fluid.hops, Matrix.of(build)
    arcs = np.flatnonzero(f.end >= 0)
    ends = np.stack((arcs, f.end[arcs]), axis=1) // f.slots
    names, grids = build.wiring.names, []
    for title, load in (
        ("minimal routes", loads.minimal),
        ("as emitted", loads.as_emitted),
        ("weights fitted to the pattern", loads.adaptive),
    ):
        if load is not None:
            limit = loads.saturation(load)
            u, v = limit.hottest
            full = load / loads.room
            hottest = f"hottest {short_number(float(full.max()))}, {names[u]} → {names[v]}"
            note = f"{hottest}; hosts get {limit.share:.1%}"
            grids.append(matrix.grid(title, note, ends, full[arcs]))
    hosts = fullest(build)
    hosts_words = "1 host a switch" if hosts == 1 else f"{hosts} hosts a switch"
    return of_grids(
        f"{build.name}: load of the links, {pattern}",
        f"{build.topology.title()}, {hosts_words} · {matrix.words}",
        grids,
        matrix.names,
        matrix.middles,
        "load if every host sends at its link's rate; 1 fills a link",
    )


def failure_chart(build: Build, progress: Progress | None = None) -> Chart:
    """What each failed link does before a controller acts: pairs lost, longest path."""
    losses, matrix = LinkLosses.of(build, progress), Matrix.of(build)
    ends = np.concatenate((losses.ends, losses.ends[:, ::-1]))
    harmful = int(np.count_nonzero(losses.lost))
    if harmful:
        value, words = losses.lost, "pairs of switches that lose packets while the link is down"
        title, note = "pairs that lose packets", f"{harmful:,} of {len(value):,} links lose some"
        note += f", at most {int(value.max()):,} pairs"
    else:
        value, words = losses.longest, "links on the longest path around the failed link"
        title, note = "longest path", f"no link loses a packet; at most {int(value.max())} links"
    grid = matrix.grid(title, note, ends, np.concatenate((value, value)))
    return of_grids(
        f"{build.name}: failure of each link",
        f"{build.topology.title()}, protect: {build.forwarding.protect} · {matrix.words}",
        [grid],
        matrix.names,
        matrix.middles,
        words,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LinkLosses:
    """What the failure of each of the E links does to packets."""

    ends: NDArray[np.int64]
    """int64[E, 2], the two switches of the link."""
    lost: NDArray[np.int64]
    """int64[E], ordered pairs of switches that lose packets on some path that their source may
    choose."""
    longest: NDArray[np.int64]
    """int64[E], links on the longest path of a packet that met the failure and was delivered; 0
    where no packet did."""

    @classmethod
    def of(cls, build: Build, progress: Progress | None = None) -> LinkLosses:
        """Walk every packet that meets a failed link.

        Args:
            build: its tables and wiring are walked.
            progress: called with destinations done and all.
        """
        walks = Walks.of(build)
        lost, longest = np.zeros(walks.links, np.int64), np.zeros(walks.links, np.int64)
        for of_block, pairs in BlockWalk(_losses, walks).over(build, THIS_PROCESS, progress):
            np.maximum(longest, of_block, out=longest)
            lost += pairs
        return cls(walks.link_ends, lost, longest)


def _losses(walks: Walks, block: Numbers) -> tuple[Numbers, Numbers]:
    """The longest path under the failure of each link, and the pairs that lose packets."""
    links = np.arange(walks.links)
    longest = np.zeros(walks.links, np.int64)
    _, _, lost = walks.cases(block, links[:, None], longest)
    return longest, np.bincount(lost[:, 0], minlength=walks.links)
