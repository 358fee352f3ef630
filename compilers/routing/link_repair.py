"""Tables around links that are dead or missing, made from the tables before: only what must change.

Destinations towards which some row used such a link are looked at, nothing else: the others have
the paths that they always had. Of their rows those change whose next hop is gone or no longer on a
shortest path (`compilers.routing.exact_rows`). In ER_q that is O(q) rows for a link. A row takes a
class that the switch has for its new link: one whose alternates do not come back with this
destination, else one without alternates. Classes change at the ends of failed links alone
(`compilers.routing.class_repair`), and where packets are shared at every hop also those with next
hops that lead no nearer any more. A compile asks for the same (`compilers.routing.damaged_tables`).

Destinations that are cut off lose their rows at those ends; rows elsewhere lead there. A switch
without links keeps its program. A *drained* switch, which may or may not still work,
gets what is for itself and nothing in transit. Without failures the tables are those of the build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.class_repair import ClassParts, CopyOnWrite, Left, arrives, refilled
from compilers.routing.exact_rows import behind, nearer_links, with_rows
from compilers.tables.build import Build
from compilers.tables.computed_array import ComputedArray
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Routes, Tables, no_route
from compilers.topology.distance import BEYOND, distances, table_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.damage import closed_up
from compilers.wiring.wiring import Wiring

Numbers = NDArray[Any]
CELLS_AT_ONCE = 1 << 17
"""Pairs of a switch and a destination, K links of each of which are looked at, at the same time."""


@dataclass(frozen=True, slots=True, eq=False)
class Intact:
    """A build before failures, as far as repairs need it.

    endpoints: bool[S]. diameter: in links. cables: `Wiring.cables()`. link: int64[S, C], the link
    of each class by its place in `Wiring.port`, K where there is none. first_class: int64[S, K+1],
    the first class of each link, -1 where there is none. egress: `Routes.egress`. every_hop: of
    the build.
    """

    tables: Tables
    wiring: Wiring
    endpoints: NDArray[np.bool_]
    diameter: int
    cables: NDArray[np.int32]
    fib: Fib
    link: NDArray[np.int64]
    first_class: NDArray[np.int64]
    egress: CopyOnWrite
    class_parts: ClassParts
    every_hop: bool

    @classmethod
    def of(cls, build: Build) -> Intact:
        """Prepare a build; once, as it takes longer than a repair."""
        return cls.of_tables(build.tables, build.wiring, build.topology, build.forwarding.every_hop)

    @classmethod
    def of_tables(
        cls, tables: Tables, wiring: Wiring, topology: Topology, every_hop: bool = False
    ) -> Intact:
        """Prepare the tables of a fabric.

        Args:
            tables: before failures.
            wiring: of the whole fabric.
            topology: says which switches are endpoints, and the diameter before failures.
            every_hop: whether packets are shared at every hop.
        """
        classes, cables = tables.classes, wiring.cables()
        order, links = wiring.port.shape
        place = np.full((order, cables.shape[1]), links)
        switch, link = np.nonzero(wiring.far >= 0)
        place[switch, wiring.port[switch, link]] = link
        routes = tables.routes
        if isinstance(routes.prefix, ComputedArray):  # repaired rows are stored ones
            tables = replace(tables, routes=replace(routes, prefix=np.asarray(routes.prefix)))
        of_class = np.take_along_axis(place, classes.port.astype(np.int64), axis=1)
        first_class = np.full((order, links + 1), -1)
        for number in reversed(range(of_class.shape[1])):
            first_class[np.arange(order), of_class[:, number]] = number
        return cls(
            tables=tables,
            wiring=wiring,
            endpoints=topology.endpoints,
            diameter=topology.diameter,
            cables=cables,
            fib=Fib.of(tables, cables),
            link=of_class,
            first_class=first_class,
            egress=CopyOnWrite(routes.egress),
            class_parts=ClassParts.of(classes),
            every_hop=every_hop,
        )

    def fib_of(self, routes: Routes) -> Fib:
        """The look-up in these routes and the build's classes."""
        if routes.prefix is self.tables.routes.prefix:
            return replace(self.fib, routes=routes)
        return Fib.of(Tables(routes, self.tables.classes), self.cables)

    def without(self, dead: NDArray[np.bool_]) -> NDArray[np.int32]:
        """`cables` without dead links, bool[S, K]."""
        cables = self.cables.copy()
        switch, link = np.nonzero(dead)
        cables[switch, self.wiring.port[switch, link]] = -1
        return cables


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """Tables without dead links, and where they differ from those before.

    fib: of these tables and all cables. rows: int64[n, 2], switch and prefix number. classes:
    int64[m, 2], switch and class. cut_off: pairs of a destination and a switch with links that no
    path joins any more. diameter: no shortest path has more links. cables: `Wiring.cables()` where
    packets are shared at every hop, else None.
    """

    tables: Tables
    fib: Fib
    rows: NDArray[np.int64]
    classes: NDArray[np.int64]
    diameter: int
    cut_off: int = 0
    cables: NDArray[np.int32] | None = None

    @property
    def switches(self) -> NDArray[np.int64]:
        """The switches whose programs differ, ascending."""
        return np.union1d(self.rows[:, 0], self.classes[:, 0])


def repaired(
    intact: Intact, dead: NDArray[np.bool_], drained: NDArray[np.bool_] | None = None
) -> Repaired:
    """The tables for what is left when links are dead.

    Args:
        intact: the build.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], switches that are to pass nothing on; their own programs do not change.
    """
    far = intact.wiring.far
    aside = np.zeros(len(far), np.bool_) if drained is None else drained
    avoided = avoided_links(far, dead, aside)
    live = (far >= 0) & ~avoided
    there = (np.count_nonzero(live, axis=1) > 0) & ~aside
    hurt = np.flatnonzero(avoided.any(axis=1) & there)
    cables = intact.cables if intact.every_hop else None
    if not len(hurt):
        none = np.zeros((0, 2), np.int64)
        return Repaired(intact.tables, intact.fib, none, none, intact.diameter, cables=cables)
    routes, removed = _without(intact, avoided, dead, hurt)
    ends = behind(routes, removed[:, 1])
    detours = _Detours.of(intact, routes, avoided, live, there)
    found = detours.towards(ends[intact.endpoints[ends]])
    tables = replace(intact.tables, routes=with_rows(routes, *found.rows))
    left = Left(
        tables=tables,
        fib=intact.fib_of(tables.routes),
        wiring=intact.wiring,
        live=live,
        hurt=hurt,
        ends=np.flatnonzero(intact.endpoints),
        depth=found.depth,
    )
    classes, touched = refilled(left, intact.class_parts)
    if intact.every_hop:
        classes, more = detours.nearer_repairs(classes, left.fib, ends)
        touched = distinct(np.concatenate((touched, more)))
    return Repaired(
        tables=replace(tables, classes=classes),
        fib=left.fib,
        rows=distinct(np.concatenate((removed, np.column_stack(found.rows[:2])))),
        classes=touched,
        diameter=found.depth,
        cut_off=found.cut_off,
        cables=cables,
    )


def avoided_links(
    far: NDArray[np.int32], dead: NDArray[np.bool_], drained: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """bool[S, K]: links that are dead, or lead to a drained switch.

    Also those between two drained switches; what one of them sends itself is its own affair.
    """
    return dead | ((far >= 0) & drained[far])


def distinct(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[m, 2]: the pairs, int64[n, 2] and none negative, each once and in order."""
    width = int(pairs.max(initial=0)) + 1
    keys = np.sort(pairs[:, 0] * width + pairs[:, 1])  # np.unique hashes: 50 times as slow here
    first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
    return np.column_stack(np.divmod(keys[first], width))


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Rows that change, as switch, destination and class, int64[n] each; the links of the longest
    path; pairs that are cut off.
    """

    rows: tuple[Numbers, Numbers, Numbers]
    depth: int
    cut_off: int


@dataclass(frozen=True, slots=True, eq=False)
class _Detours:
    """What is left of the links, where rows that used avoided ones are to lead now.

    fib: of the routes that are left. cables: without avoided links. far: int32[S, K], neighbours
    that are left, and number: int64[S, K], their links. table: that of `distances`. there: bool[S],
    the switches that get rows.
    """

    intact: Intact
    fib: Fib
    cables: NDArray[np.int32]
    far: NDArray[np.int32]
    number: NDArray[np.int64]
    table: NDArray[np.int64]
    there: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        intact: Intact,
        routes: Routes,
        avoided: NDArray[np.bool_],
        live: NDArray[np.bool_],
        there: NDArray[np.bool_],
    ) -> _Detours:
        """Prepare what all destinations share."""
        far = closed_up(intact.wiring.far, live, -1)
        number = closed_up(np.tile(np.arange(live.shape[1]), (len(live), 1)), live, -1)
        fib, cables = intact.fib_of(routes), intact.without(avoided)
        return cls(intact, fib, cables, far, number, table_of(far), there)

    def towards(self, ends: NDArray[np.int64]) -> _Found:
        """The rows towards these destinations, some at a time: memory does not grow with damage."""
        step = max(1, CELLS_AT_ONCE // len(self.far))
        blocks = [self._some(ends[first : first + step]) for first in range(0, len(ends), step)]
        none = np.zeros(0, np.int64)
        rows = [block.rows for block in blocks] or [(none, none, none)]
        switch, end, number = (np.concatenate(part) for part in zip(*rows, strict=True))
        depth = max((block.depth for block in blocks), default=0)
        cut_off = sum(block.cut_off for block in blocks)
        return _Found((switch, end, number), max(depth, self.intact.diameter), cut_off)

    def nearer_repairs(
        self, classes: Classes, fib: Fib, ends: NDArray[np.int64]
    ) -> tuple[Classes, NDArray[np.int64]]:
        """Classes of next hops that lead nearer to all that they serve; int64[m, 2], those that
        change.

        fib: of the repaired routes. ends: the destinations to which some distance has changed.
        """
        order, count, options = classes.alternate.shape
        here = np.arange(order)[:, None]
        leads = self.cables[here[..., None], classes.alternate]
        leads[classes.alternate == 0] = -1
        away = np.zeros((order, count, options), np.bool_)
        step = max(1, CELLS_AT_ONCE // order)
        for some in (ends[first : first + step] for first in range(0, len(ends), step)):
            distance, number = distances(self.table, some).T, fib.egress(some)
            known = (number < count) & (distance != BEYOND)
            served = np.where(known, number, 0).astype(np.intp)
            for option in range(options):
                far = leads[here, served, option]
                nearer = distance[far, np.arange(len(some))] + 1 == distance
                switch, column = np.nonzero(known & (far >= 0) & ~nearer)
                away[switch, served[switch, column], option] = True
        alternate = np.where(away, np.uint16(0), classes.alternate)
        weight = np.array(classes.weight)
        weight[..., 1:][away] = 0
        changed = np.argwhere(away.any(axis=2))
        return replace(classes, alternate=alternate, weight=weight), changed

    def _some(self, ends: NDArray[np.int64]) -> _Found:
        there, distance = self.there, distances(self.table, ends).T
        after = self.fib.next_switch(ends)
        rows = nearer_links(after, self.far, ends, distance)
        switch, end, link = (part[there[rows[0]]] for part in rows)
        link = self.number[switch, link]
        after[switch, np.searchsorted(ends, end)] = self.intact.wiring.far[switch, link]
        chosen = _classes(self.intact, self.cables, after, ends, (switch, end, link))
        reached = distance != BEYOND
        lost = ~reached & there[:, None] & there[ends]
        depth = int(distance[reached].max(initial=0))
        return _Found((switch, end, chosen), depth, int(np.count_nonzero(lost)))


def _without(
    intact: Intact,
    avoided: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    hurt: NDArray[np.int64],
) -> tuple[Routes, NDArray[np.int64]]:
    """Routes without the rows that use avoided links; int64[n, 2], their switches and prefixes.

    A row for the very switch at the other end of a link that is avoided and not dead stays.
    """
    routes, wiring = intact.tables.routes, intact.wiring
    nowhere = wiring.far.shape[1]
    of_class = np.pad(intact.link[hurt], ((0, 0), (0, 1)), constant_values=nowhere)
    number = np.minimum(routes.egress[hurt], of_class.shape[1] - 1).astype(np.intp)
    link = np.take_along_axis(of_class, number, axis=1)
    gone = np.pad(avoided[hurt], ((0, 0), (0, 1)))
    which, row = np.nonzero(np.take_along_axis(gone, link, axis=1))
    switch, link = hurt[which], link[which, row]
    prefix = routes.prefix[switch * len(routes.prefix) // len(routes.egress), row]
    goes = dead[switch, link] | (wiring.far[switch, link] != prefix)
    egress = intact.egress.copy()
    egress[switch[goes], row[goes]] = no_route(egress)
    removed = np.column_stack((switch, prefix))[goes].astype(np.int64)
    return replace(routes, egress=egress), removed


def _classes(
    intact: Intact,
    cables: NDArray[np.int32],
    after: NDArray[np.int32],
    ends: NDArray[np.int64],
    rows: tuple[Numbers, Numbers, Numbers],
) -> NDArray[np.int64]:
    """int64[n]: the class of each row (switch, destination, link) that changes.

    Of the classes of its link the one with most alternates from all of which `after`, int32[S, D],
    leads to the destination and never to the switch again.
    """
    switch, end, link = rows
    classes = intact.tables.classes
    if not classes.alternate.shape[2]:
        return intact.first_class[switch, link]
    row, number = np.nonzero(intact.link[switch] == link[:, None])
    here, column = switch[row, None], np.searchsorted(ends, end)[row, None]
    first = cables[here, classes.alternate[switch[row], number]]
    links = 2 * intact.diameter + 2
    arrive = arrives(after, first, column, end[row, None], (here,), links)
    good = np.all(arrive | (first < 0), axis=1)
    spread = np.where(good, np.count_nonzero(first >= 0, axis=1), -1)
    best = np.lexsort((number, -spread, row))
    chosen: NDArray[np.int64] = number[best[np.unique(row[best], return_index=True)[1]]]
    return chosen
