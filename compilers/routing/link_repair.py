"""Tables around links that have failed, made from the build's tables with as few changes as can be.

What comes in is a build (`Intact`) and the links that have failed. What goes out are tables that
use none of these links (`Repaired`). The controller repairs switches with them, and a compile of a
damaged fabric starts from them (`compilers.routing.damaged_tables`). Without failures they are the
tables of the build.

- **Rows** change only for destinations towards which some row used a failed link. Packets to all
  other destinations keep their paths. A row towards such a destination changes if its next hop has
  failed, or is no longer on a shortest path (`compilers.routing.exact_rows`). In ER_q these are
  O(q) rows for a failed link. The row gets a class that its switch has for the new link: the class
  with most alternates of which none leads packets for this destination back to the switch.
- **Classes** change only at the ends of failed links (`compilers.routing.class_repair`). Where
  packets are shared at every hop, classes elsewhere also lose next hops that no longer lead nearer.
- Rows for destinations that are **cut off** are removed at the ends of failed links only. Rows of
  other switches still lead packets to these ends, where they are dropped. A switch without links
  keeps its tables.
- **Detours** of a balance avoid failures, too (`Tables.avoided`). Marked packets are not spread
  over failed links or to drained switches (`compilers.routing.marked_spread`), and not sent to a
  switch that has no link left for them. No packet goes by a drained intermediate
  (`compilers.routing.intermediates`).
- A **drained** switch, which may or may not work, gets packets for itself, and none in transit. Its
  own tables change only where a link of its own has failed, for the packets of its hosts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_repair import ClassParts, DamagedFabric, arrives, repaired_classes
from compilers.routing.cut_off_pairs import cut_off_pairs
from compilers.routing.exact_rows import ExactRows, covered_destinations, nearer_links, with_rows
from compilers.routing.marked_spread import dead_ends
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray
from compilers.tables.copy_on_write import CopyOnWrite
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Avoided, Classes, Routes, Tables, no_route
from compilers.topology.distance import BEYOND, distances, table_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.damage import without_gaps
from compilers.wiring.wiring import Wiring

Numbers = NDArray[Any]
CELLS_AT_ONCE = 1 << 17
"""About how many pairs of a switch and a destination are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class Intact:
    """A build before failures, prepared once for any number of repairs."""

    tables: Tables
    """The tables of the build."""
    wiring: Wiring
    """All cables."""
    endpoints: NDArray[np.bool_]
    """bool[S], the switches with hosts."""
    diameter: int
    """The most links between two switches."""
    cables: NDArray[np.int32]
    """int32[S, ports + 1], the switch at each port, as of `Wiring.cables()`."""
    fib: Fib
    """The tables joined with the cables."""
    link_of_class: NDArray[np.int64]
    """int64[S, C], the link of each class by its place in `Wiring.port`, K where there is none."""
    first_class: NDArray[np.int64]
    """int64[S, K + 1], the first class of each link, -1 where there is none."""
    egress: CopyOnWrite
    """`Routes.egress`, to be copied for every repair."""
    class_parts: ClassParts
    """The arrays of the classes, to be copied for every repair."""
    every_hop: bool
    """Whether packets are shared at every hop."""
    has_detours: bool
    """Whether packets are marked, or carry an intermediate."""
    marks: bool
    """Whether packets are marked."""

    @classmethod
    def of(cls, build: Build) -> Intact:
        """Prepare a build, which takes longer than a repair."""
        forwarding = build.forwarding
        return cls.of_tables(
            build.tables,
            build.wiring,
            build.topology,
            forwarding.every_hop,
            has_detours=forwarding.marks or forwarding.intermediates,
            marks=forwarding.marks,
        )

    @classmethod
    def of_tables(
        cls,
        tables: Tables,
        wiring: Wiring,
        topology: Topology,
        every_hop: bool = False,
        has_detours: bool = False,
        marks: bool = False,
    ) -> Intact:
        """Prepare the tables of a fabric.

        Args:
            tables: before failures.
            wiring: all cables of the fabric.
            topology: says which switches are endpoints, and the diameter before failures.
            every_hop: whether packets are shared at every hop.
            has_detours: whether packets are marked, or carry an intermediate.
            marks: whether packets are marked.
        """
        classes, cables = tables.classes, wiring.cables()
        switches, most_links = wiring.port.shape
        # int64[S, ports + 1], the link at each port, K where there is none.
        link_at_port = np.full((switches, cables.shape[1]), most_links)
        switch, link = np.nonzero(wiring.far >= 0)
        link_at_port[switch, wiring.port[switch, link]] = link
        routes = tables.routes
        if isinstance(routes.prefix, ComputedArray):  # repaired rows are stored ones
            tables = replace(tables, routes=replace(routes, prefix=np.asarray(routes.prefix)))
        link_of_class = np.take_along_axis(link_at_port, classes.port.astype(np.int64), axis=1)
        first_class = np.full((switches, most_links + 1), -1)
        # The first class of a link is written last, and stays.
        for class_number in reversed(range(link_of_class.shape[1])):
            first_class[np.arange(switches), link_of_class[:, class_number]] = class_number
        return cls(
            tables=tables,
            wiring=wiring,
            endpoints=topology.endpoints,
            diameter=topology.diameter,
            cables=cables,
            fib=Fib.of(tables, cables),
            link_of_class=link_of_class,
            first_class=first_class,
            egress=CopyOnWrite(routes.egress),
            class_parts=ClassParts.of(classes),
            every_hop=every_hop,
            has_detours=has_detours,
            marks=marks,
        )

    def fib_of(self, routes: Routes) -> Fib:
        """Return the look-up in these routes and the build's classes."""
        if routes.prefix is self.tables.routes.prefix:
            return replace(self.fib, routes=routes)
        return Fib.of(Tables(routes, self.tables.classes), self.cables)

    def cables_without(self, dead: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return `cables` without dead links, bool[S, K]: no switch is at their ports."""
        cables = self.cables.copy()
        switch, link = np.nonzero(dead)
        cables[switch, self.wiring.port[switch, link]] = -1
        return cables


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """Tables that use no failed link, and where they differ from those of the build."""

    tables: Tables
    """The repaired tables."""
    fib: Fib
    """The repaired tables joined with all cables."""
    rows: NDArray[np.int64]
    """int64[n, 2], the switch and the prefix number of each row that changed."""
    classes: NDArray[np.int64]
    """int64[m, 2], the switch and the number of each class that changed."""
    diameter: int
    """The most links of a shortest path that is left."""
    cut_off: int = 0
    """How many pairs of a switch and a destination no path joins any more, as `cut_off_pairs`."""
    cables: NDArray[np.int32] | None = None
    """`Wiring.cables()` where packets are shared at every hop, else None."""

    @property
    def switches(self) -> NDArray[np.int64]:
        """The switches whose programs differ, ascending."""
        return np.union1d(np.union1d(self.rows[:, 0], self.classes[:, 0]), self.avoiding)

    @property
    def avoiding(self) -> NDArray[np.int64]:
        """The switches next to what packets on a detour avoid (`Tables.avoided`), ascending."""
        avoided = self.tables.avoided
        if avoided is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(avoided.links.any(axis=1))


def repaired(
    intact: Intact, dead: NDArray[np.bool_], drained: NDArray[np.bool_] | None = None
) -> Repaired:
    """Return the tables around failed links.

    Args:
        intact: the build.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], switches that shall pass nothing on; their own tables change only where
            they have failed links.
    """
    far = intact.wiring.far
    is_drained = np.zeros(len(far), np.bool_) if drained is None else drained
    avoided = avoided_links(far, dead, is_drained)
    live = (far >= 0) & ~avoided
    # bool[S], the switches whose tables may change.
    repairable = (np.count_nonzero(live, axis=1) > 0) & (~is_drained | dead.any(axis=1))
    at_failures = np.flatnonzero(avoided.any(axis=1) & repairable)
    cables = intact.cables if intact.every_hop else None
    cut_off = cut_off_pairs(far, intact.endpoints, dead, is_drained)
    if not len(at_failures):
        none = np.zeros((0, 2), np.int64)
        return Repaired(
            intact.tables, intact.fib, none, none, intact.diameter, cut_off, cables=cables
        )
    routes, removed = _without_rows(intact, avoided, dead, at_failures)
    ends = covered_destinations(routes, removed[:, 1])
    detours = _Detours.of(intact, routes, avoided, live, repairable, is_drained & repairable)
    rows = detours.new_rows(ends[intact.endpoints[ends]])
    routes = with_rows(routes, rows.switch, rows.destination, rows.new_class)
    on_detours = Avoided(avoided, dead, is_drained) if intact.has_detours else None
    tables = replace(intact.tables, routes=routes, avoided=on_detours)
    damaged = DamagedFabric(
        tables=tables,
        fib=intact.fib_of(routes),
        wiring=intact.wiring,
        live=live,
        dead=dead,
        affected=at_failures,
        ends=np.flatnonzero(intact.endpoints),
        depth=rows.depth,
    )
    classes, changed = repaired_classes(damaged, intact.class_parts)
    if intact.every_hop:
        classes, farther = detours.without_farther_hops(classes, damaged.fib, ends)
        changed = distinct(np.concatenate((changed, farther)))
    if intact.marks and on_detours:
        classes, spared = _without_dead_ends(intact.wiring, classes, on_detours)
        changed = distinct(np.concatenate((changed, spared)))
    added = np.column_stack((rows.switch, rows.destination))
    return Repaired(
        tables=replace(tables, classes=classes),
        fib=damaged.fib,
        rows=distinct(np.concatenate((removed, added))),
        classes=changed,
        diameter=rows.depth,
        cut_off=cut_off,
        cables=cables,
    )


def _without_dead_ends(
    wiring: Wiring, classes: Classes, avoided: Avoided
) -> tuple[Classes, NDArray[np.int64]]:
    """Remove alternates to neighbours that have no link left for packets that are marked for them.

    Args:
        wiring: all cables.
        classes: after the repair of the ends of failed links.
        avoided: the links that marked packets are not to use.

    Returns:
        The classes, and int64[m, 2], the switch and number of each class that changed.
    """
    removed = np.zeros(classes.alternate.shape, np.bool_)
    for switch, link in dead_ends(wiring, avoided).tolist():
        neighbour, port = wiring.far[switch, link], wiring.far_port[switch, link]
        removed[neighbour] |= classes.alternate[neighbour] == port
    changed = np.argwhere(removed.any(axis=2))
    if not len(changed):
        return classes, changed
    alternate = np.where(removed, np.uint16(0), classes.alternate)
    weight = np.array(classes.weight)
    weight[..., 1:][removed] = 0
    return replace(classes, alternate=alternate, weight=weight), changed


def avoided_links(
    far: NDArray[np.int32], dead: NDArray[np.bool_], drained: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the links that no packet in transit takes, bool[S, K]: dead, or to a drained switch.

    Links between two drained switches are among them.

    Args:
        far: int32[S, K], the neighbour at each link, -1 where there is none.
        dead: bool[S, K], links that carry nothing.
        drained: bool[S], the drained switches.
    """
    return dead | ((far >= 0) & drained[far])


def distinct(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return pairs, int64[n, 2] and none negative, each once and in order, int64[m, 2].

    >>> distinct(np.array([[2, 1], [0, 5], [2, 1]])).tolist()
    [[0, 5], [2, 1]]
    """
    width = int(pairs.max(initial=0)) + 1
    keys = np.sort(pairs[:, 0] * width + pairs[:, 1])  # np.unique hashes: 50 times as slow here
    is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return np.column_stack(np.divmod(keys[is_first], width))


@dataclass(frozen=True, slots=True, eq=False)
class _NewRows:
    """The n rows that change, and the length of the longest path that is left."""

    switch: Numbers
    """int64[n], the switches."""
    destination: Numbers
    """int64[n], the destinations."""
    new_class: Numbers
    """int64[n], the class of each row."""
    depth: int
    """The most links of a shortest path that is left."""


@dataclass(frozen=True, slots=True, eq=False)
class _Detours:
    """The links that are left, to which rows move that used avoided links before."""

    intact: Intact
    """The build."""
    fib: Fib
    """The routes that are left, joined with the cables."""
    cables: NDArray[np.int32]
    """int32[S, ports + 1], the switch at each port, without avoided links."""
    far: NDArray[np.int32]
    """int32[S, K], the neighbours that are left, -1 beyond the last."""
    place: NDArray[np.int64]
    """int64[S, K], the links to these neighbours by their places in `Wiring.port`."""
    table: NDArray[np.int64]
    """The neighbours in the form that `distances` takes."""
    repairable: NDArray[np.bool_]
    """bool[S], the switches whose rows may change."""
    sources: NDArray[np.int64]
    """int64[n], the repairable switches that are drained: packets start there, and none passes."""

    @classmethod
    def of(
        cls,
        intact: Intact,
        routes: Routes,
        avoided: NDArray[np.bool_],
        live: NDArray[np.bool_],
        repairable: NDArray[np.bool_],
        sources: NDArray[np.bool_],
    ) -> _Detours:
        """Prepare what is the same for all destinations.

        Args:
            intact: the build.
            routes: without the rows that use avoided links.
            avoided: bool[S, K], links that no packet in transit takes.
            live: bool[S, K], the links that are left.
            repairable: bool[S], the switches whose rows may change.
            sources: bool[S], the repairable switches that are drained.
        """
        far = without_gaps(intact.wiring.far, live, -1)
        place = without_gaps(np.tile(np.arange(live.shape[1]), (len(live), 1)), live, -1)
        return cls(
            intact=intact,
            fib=intact.fib_of(routes),
            cables=intact.cables_without(avoided),
            far=far,
            place=place,
            table=table_of(far),
            repairable=repairable,
            sources=np.flatnonzero(sources),
        )

    def new_rows(self, ends: NDArray[np.int64]) -> _NewRows:
        """Return the rows that change towards destinations, int64[D], ascending.

        They are computed in blocks of destinations, so that memory does not grow with the damage.
        """
        step = max(1, CELLS_AT_ONCE // len(self.far))
        blocks = [self._block(ends[first : first + step]) for first in range(0, len(ends), step)]
        none = np.zeros(0, np.int64)
        return _NewRows(
            switch=np.concatenate([none, *(block.switch for block in blocks)]),
            destination=np.concatenate([none, *(block.destination for block in blocks)]),
            new_class=np.concatenate([none, *(block.new_class for block in blocks)]),
            depth=max([self.intact.diameter, *(block.depth for block in blocks)]),
        )

    def _block(self, ends: NDArray[np.int64]) -> _NewRows:
        """Return the rows that change towards a block of destinations, int64[D]."""
        repairable, distance = self.repairable, distances(self.table, ends).T
        after = self.fib.next_switch(ends)
        self._measure_sources(after, ends, distance)
        rows = nearer_links(after, self.far, ends, distance)
        changes = repairable[rows.switch]
        switch, end = rows.switch[changes], rows.destination[changes]
        link = self.place[switch, rows.link[changes]]
        after[switch, np.searchsorted(ends, end)] = self.intact.wiring.far[switch, link]
        reached = distance != BEYOND
        return _NewRows(
            switch=switch,
            destination=end,
            new_class=_classes(self.intact, self.cables, after, ends, ExactRows(switch, end, link)),
            depth=int(distance[reached].max(initial=0)),
        )

    def _measure_sources(
        self, after: NDArray[np.int32], ends: NDArray[np.int64], distance: NDArray[np.uint8]
    ) -> None:
        """Set the distances from drained switches: no link leads to them, but their links lead on.

        Args:
            after: int32[S, D], the next switch towards each of `ends`, negative where none is left.
            ends: int64[D], destinations.
            distance: uint8[S, D], the links between switches.
        """
        for switch in self.sources:
            neighbours = self.far[switch][self.far[switch] >= 0]
            nearest = distance[neighbours].min(axis=0)
            distance[switch] = np.where(nearest == BEYOND, nearest, nearest + 1)
            # Between two drained switches the link stays for packets to the other one.
            distance[switch, after[switch] == ends] = 1
            distance[switch, ends == switch] = 0

    def without_farther_hops(
        self, classes: Classes, fib: Fib, ends: NDArray[np.int64]
    ) -> tuple[Classes, NDArray[np.int64]]:
        """Remove next hops that do not lead nearer to every destination of their class.

        Args:
            classes: after the repair of the ends of failed links.
            fib: the repaired routes, joined with the cables.
            ends: int64[D], the destinations to which some distance has changed.

        Returns:
            The classes, and int64[m, 2], the switch and number of each class that changed.
        """
        switch_count, class_count, options = classes.alternate.shape
        switches = np.arange(switch_count)[:, None]
        # int32[S, C, A], the switch that each alternate leads to.
        neighbour = self.cables[switches[..., None], classes.alternate]
        neighbour[classes.alternate == 0] = -1
        farther = np.zeros((switch_count, class_count, options), np.bool_)
        step = max(1, CELLS_AT_ONCE // switch_count)
        for first in range(0, len(ends), step):
            block = ends[first : first + step]
            distance, egress = distances(self.table, block).T, fib.egress(block)
            forwarded = (egress < class_count) & (distance != BEYOND)
            class_number = np.where(forwarded, egress, 0).astype(np.intp)
            for option in range(options):
                far = neighbour[switches, class_number, option]
                nearer = distance[far, np.arange(len(block))] + 1 == distance
                switch, column = np.nonzero(forwarded & (far >= 0) & ~nearer)
                farther[switch, class_number[switch, column], option] = True
        alternate = np.where(farther, np.uint16(0), classes.alternate)
        weight = np.array(classes.weight)
        weight[..., 1:][farther] = 0
        changed = np.argwhere(farther.any(axis=2))
        return replace(classes, alternate=alternate, weight=weight), changed


def _without_rows(
    intact: Intact,
    avoided: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    at_failures: NDArray[np.int64],
) -> tuple[Routes, NDArray[np.int64]]:
    """Remove the rows that use avoided links.

    A row for the drained switch at the other end of a link that works stays.

    Args:
        intact: the build.
        avoided: bool[S, K], links that no packet in transit takes.
        dead: bool[S, K], links that carry nothing.
        at_failures: int64[n], the switches with avoided links.

    Returns:
        The routes, and int64[m, 2], the switch and prefix of each row that was removed.
    """
    routes, wiring = intact.tables.routes, intact.wiring
    no_link = wiring.far.shape[1]
    # int64[n, C + 1], the link of each value of `Routes.egress`. The last column stands for `local`
    # and `no_route`, which are larger than every class.
    link_of_class = intact.link_of_class[at_failures]
    link_of_value = np.pad(link_of_class, ((0, 0), (0, 1)), constant_values=no_link)
    values = np.minimum(routes.egress[at_failures], link_of_value.shape[1] - 1)
    # int64[n, R], the link of each row.
    link = np.take_along_axis(link_of_value, values.astype(np.intp), axis=1)
    is_avoided = np.pad(avoided[at_failures], ((0, 0), (0, 1)))  # `no_link` is not avoided
    place, row = np.nonzero(np.take_along_axis(is_avoided, link, axis=1))
    switch, link = at_failures[place], link[place, row]
    prefix = routes.prefix[routes.group_of(switch), row]
    removes = dead[switch, link] | (wiring.far[switch, link] != prefix)
    egress = intact.egress.copy()
    egress[switch[removes], row[removes]] = no_route(egress)
    removed = np.column_stack((switch, prefix))[removes].astype(np.int64)
    return replace(routes, egress=egress), removed


def _classes(
    intact: Intact,
    cables: NDArray[np.int32],
    after: NDArray[np.int32],
    ends: NDArray[np.int64],
    rows: ExactRows,
) -> NDArray[np.int64]:
    """Choose a class of its link for each row that changes, int64[n].

    A class is suitable if packets come to the destination from all its alternates, and never to the
    switch again. Of the suitable classes of the link, the one with most alternates is chosen.

    Args:
        intact: the build.
        cables: int32[S, ports + 1], the switch at each port, without avoided links.
        after: int32[S, D], the next switch towards each of `ends`.
        ends: int64[D], destinations.
        rows: the rows, with their links by places in `Wiring.port`.
    """
    classes = intact.tables.classes
    if not classes.alternate.shape[2]:
        return intact.first_class[rows.switch, rows.link]
    # One entry for each row and each class of its link.
    row, class_number = np.nonzero(intact.link_of_class[rows.switch] == rows.link[:, None])
    switch, end = rows.switch[row, None], rows.destination[row, None]
    column = np.searchsorted(ends, rows.destination)[row, None]
    # The switch that each alternate of the class leads to, -1 for none.
    first = cables[switch, classes.alternate[rows.switch[row], class_number]]
    links = 2 * intact.diameter + 2
    arrive = arrives(after, first, column, end, (switch,), links)
    all_arrive = np.all(arrive | (first < 0), axis=1)
    alternates = np.where(all_arrive, np.count_nonzero(first >= 0, axis=1), -1)
    # By row, the class with most alternates first; of several, the one with the lowest number.
    best_first = np.lexsort((class_number, -alternates, row))
    best_of_row = np.unique(row[best_first], return_index=True)[1]
    chosen: NDArray[np.int64] = class_number[best_first[best_of_row]]
    return chosen
