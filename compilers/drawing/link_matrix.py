"""Charts with a cell for each link: its load under a traffic pattern, or the effect of its failure.

`picture.draw_chart` calls `load_chart` and `failure_chart`. Rows and columns are switches in the
order of their clusters. In a fabric with more than 200 switches they are clusters, and a cell shows
the worst link between two clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import hardware_of
from compilers.drawing.chart import Array, Chart, Grid, chart_of_grids, short_number
from compilers.drawing.positions import by_kind
from compilers.evaluation.pattern_traffic import most_hosts_of_switch, require_pattern
from compilers.evaluation.saturation import LinkLoads
from compilers.forwarding.failure_sets import PAIR_CASE
from compilers.forwarding.walks import BlockWalk, Numbers, Progress, Walks
from compilers.tables.build import Build
from compilers.topology.layout import layout, layouts, places_in
from compilers.workers.shards import THIS_PROCESS
from inventory.problems import InputError

MOST_ROWS_OF_SWITCHES = 200
"""The most switches with a row each."""
MOST_GROUPS = 200
"""The most groups of switches."""
MATRIX_PIXELS = 380
"""About how many pixels a matrix is wide."""


@dataclass(frozen=True, slots=True, eq=False)
class SwitchGroups:
    """S switches, divided into groups."""

    group: NDArray[np.int64]
    """int64[S], the group of each switch."""
    position: NDArray[np.int64]
    """int64[S], the place of each switch in its group."""
    names: tuple[str, ...]
    """The name of each group."""

    @classmethod
    def of(cls, build: Build) -> SwitchGroups:
        """The clusters of a build; if these are many, the parts of a coarser layout, or kinds."""
        topology, hardware = build.topology, hardware_of(build)
        all_layouts = [layout(topology, name) for name in layouts(topology)]
        position = all_layouts[0].position if all_layouts else np.zeros(topology.graph.order)
        names, group = hardware.cluster_names, hardware.cluster
        # While there are too many groups, take the next coarser grouping. Clusters come from the
        # hardware, and have the positions of the first layout.
        for grouping in (*all_layouts, by_kind(topology)):
            if len(names) > MOST_GROUPS:
                names, group, position = grouping.names, grouping.rack, grouping.position
        return cls(group.astype(np.int64), places_in(group, position).astype(np.int64), names)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[groups], how many switches each group has."""
        return np.bincount(self.group, minlength=len(self.names))


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """The rows of a matrix of switches, which are its columns, too."""

    row: NDArray[np.int64]
    """int64[S], the row of each switch."""
    rows: int
    """How many rows there are."""
    names: tuple[str, ...]
    """The name of each group of rows."""
    sizes: NDArray[np.int64]
    """int64[G], how many rows each group has."""
    has_switch_rows: bool
    """Whether each row is one switch, and not a cluster."""

    @classmethod
    def of(cls, build: Build) -> Matrix:
        """A row for each switch if these are few, else a row for each cluster."""
        groups, switches = SwitchGroups.of(build), build.topology.graph.order
        names = groups.names
        if switches > MOST_ROWS_OF_SWITCHES:
            return cls(
                row=groups.group,
                rows=len(names),
                names=names,
                sizes=np.ones(len(names), np.int64),
                has_switch_rows=False,
            )
        row = np.empty(switches, np.int64)
        row[np.lexsort((groups.position, groups.group))] = np.arange(switches)
        return cls(row, switches, names, groups.sizes, has_switch_rows=True)

    @property
    def middles(self) -> NDArray[np.float64]:
        """float64[groups], the middle of each group, in rows."""
        middles: NDArray[np.float64] = np.cumsum(self.sizes) - self.sizes / 2
        return middles

    def grid(self, title: str, note: str, ends: Array, value: Array) -> Grid:
        """A grid with the values of n links; a cell with several links shows the largest value.

        Args:
            title: the heading of the grid.
            note: the line below the heading.
            ends: int[n, 2], the switches of each link: row and column.
            value: [n], the value of each link, not negative.
        """
        u, v = self.row[ends].T
        keys, cell = np.unique(u * self.rows + v, return_inverse=True)
        worst = np.zeros(len(keys))
        np.maximum.at(worst, cell, value)
        row, column = np.divmod(keys, self.rows)
        bounds = np.cumsum(self.sizes)[:-1].tolist() if self.has_switch_rows else ()
        size = max(3, min(22, MATRIX_PIXELS // self.rows))
        count = self.rows
        return Grid(
            title=title,
            note=note,
            row=row,
            column=column,
            value=worst,
            size=size,
            rows=count,
            columns=count,
            row_bounds=bounds,
            column_bounds=bounds,
        )

    @property
    def words(self) -> str:
        """What a cell shows, in words."""
        cell = "a link" if self.has_switch_rows else "the worst link between two clusters"
        return f"a cell is {cell}, from its row to its column"


def load_chart(build: Build, pattern: str) -> Chart:
    """A chart of the load of every link while all hosts send as much as they can.

    There is a grid for minimal routes, for the routes of the build, and for fitted weights. A load
    of 1 fills a link.

    Args:
        build: the fabric.
        pattern: the traffic, one of `PATTERNS`.

    Raises:
        InputError: there is no such pattern, or it has no traffic in this fabric.
    """
    require_pattern(pattern)
    loads = LinkLoads.of(build, pattern)
    if not loads.flows:
        required, todo = "a pattern with traffic between switches here", "such as uniform"
        raise InputError.of(required, pattern, todo, key="pattern")
    forwarding, matrix = loads.fluid.forwarding, Matrix.of(build)
    arcs = np.flatnonzero(forwarding.far_arc >= 0)
    ends = np.stack((arcs, forwarding.far_arc[arcs]), axis=1) // forwarding.arcs_a_switch
    names, grids = build.wiring.names, []
    for title, load in (
        ("minimal routes", loads.minimal),
        ("as emitted", loads.by_tables),
        ("weights fitted to the pattern", loads.adaptive),
    ):
        if load is not None:
            limit = loads.saturation(load)
            u, v = limit.hottest
            full = load / loads.capacity
            hottest = f"hottest {short_number(float(full.max()))}, {names[u]} → {names[v]}"
            note = f"{hottest}; hosts get {limit.share:.1%}"
            grids.append(matrix.grid(title, note, ends, full[arcs]))
    hosts = most_hosts_of_switch(build)
    hosts_words = "1 host a switch" if hosts == 1 else f"{hosts} hosts a switch"
    return chart_of_grids(
        f"{build.name}: load of the links, {pattern}",
        subtitle=f"{build.topology.title()}, {hosts_words} · {matrix.words}",
        grids=grids,
        names=matrix.names,
        middles=matrix.middles,
        words="load if every host sends at its link's rate; 1 fills a link",
    )


def failure_chart(build: Build, progress: Progress | None = None) -> Chart:
    """A chart of what each failed link does before a controller acts.

    It shows how many pairs of switches lose packets; or if none does, the longest repaired path.

    Args:
        build: its tables and wiring are walked.
        progress: called with destinations done and all.
    """
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
    return chart_of_grids(
        f"{build.name}: failure of each link",
        subtitle=f"{build.topology.title()}, protect: {build.forwarding.protect} · {matrix.words}",
        grids=[grid],
        names=matrix.names,
        middles=matrix.middles,
        words=words,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LinkLosses:
    """What the failure of each of E links does to packets."""

    ends: NDArray[np.int64]
    """int64[E, 2], the two switches of the link."""
    lost: NDArray[np.int64]
    """int64[E], how many ordered pairs of switches lose packets on some path that the source may
    choose."""
    longest: NDArray[np.int64]
    """int64[E], the links of the longest path of a packet that met the failure and was delivered; 0
    if no packet met it."""

    @classmethod
    def of(cls, build: Build, progress: Progress | None = None) -> LinkLosses:
        """Walk every packet that meets a failed link.

        Args:
            build: its tables and wiring are walked.
            progress: called with destinations done and all.
        """
        walks = Walks.of(build)
        lost, longest = np.zeros(walks.cable_count, np.int64), np.zeros(walks.cable_count, np.int64)
        for longest_of_block, lost_of_block in BlockWalk(_losses, walks).over(
            build, THIS_PROCESS, progress
        ):
            np.maximum(longest, longest_of_block, out=longest)
            lost += lost_of_block
        return cls(walks.link_ends, lost, longest)


def _losses(walks: Walks, block: Numbers) -> tuple[Numbers, Numbers]:
    """The losses by each failed link, of packets to a block of destinations.

    Returns:
        The links of the longest path, and how many pairs lose packets, int64[E] each.
    """
    links = np.arange(walks.cable_count)
    longest = np.zeros(walks.cable_count, np.int64)
    lost = walks.follow_cases(block, links[:, None], longest).lost_pairs
    return longest, np.bincount(lost[:, PAIR_CASE], minlength=walks.cable_count)
