"""The order in which route rows may change: a row after those that its packets meet next.

A *cell* is a switch and a destination. A row may change once, for every destination that it
covers, the cell that its new next hop leads to does what the new tables say. So a cell's level is
the number of cells on its new path, itself included, that differ from the old tables; rows change
level by level, and rows of one level in any order (docs/how-to/move.md has the proof).

A row of an aggregate changes all destinations at once that it serves before and after, so it comes
no sooner than the last of them. A destination that gets a row of its own has one beforehand, which
does what the old aggregate did; one that loses its own row to the aggregate does so when both may
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.tables.intermediate_form import Routes, Tables, no_route

ORDER_CELLS_AT_ONCE = 1 << 22
Compare = Callable[[NDArray[np.int64]], tuple[NDArray[np.bool_], NDArray[np.bool_]]]
"""bool[S, D] twice for D destinations: the cells that differ from the old tables, and those that no
aggregate of the old tables serves."""


class NoOrder(Exception):
    """Aggregates of the new tables wait for each other: no order of rows is safe."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The level of each *cell*, a switch and one of D destinations."""

    destinations: NDArray[np.int64]
    """int64[D], vertices."""
    cells: NDArray[np.uint8]
    """uint8[S, D], the level of each cell."""
    changed: NDArray[np.bool_]
    """bool[S, D], cells whose next hops change."""
    aggregates: NDArray[np.int64]
    """int64[G], the aggregates that cover the destinations."""
    whole: NDArray[np.uint8]
    """uint8[S, G], the level of each aggregate's row."""
    merged: NDArray[np.bool_]
    """bool[S, D], cells that lose their own row to an aggregate."""


def path_fibs(build: Build) -> tuple[Fib, ...]:
    """The tables of a build by each path that packets in transit may take, of `by_alternates`."""
    classes = build.tables.classes
    kept = np.asarray(classes.weight[:, :, 1:]) > 0 if build.forwarding.every_hop else None
    return by_alternates(build.tables, build.wiring.cables(), kept)


def bounce_fibs(build: Build) -> tuple[Fib, ...]:
    """The tables of a build by each port of `bounce`: where packets go that come in by their next
    hop.
    """
    tables, cables = build.tables, build.wiring.cables()
    classes = tables.classes
    return tuple(
        Fib.of(replace(tables, classes=replace(classes, port=port.astype(np.int32))), cables)
        for port in np.moveaxis(np.asarray(classes.bounce), 2, 0)
    )


def by_alternates(
    tables: Tables, cables: NDArray[np.int32], kept: NDArray[np.bool_] | None
) -> tuple[Fib, ...]:
    """Tables by the minimal ports, and one for each place of alternates.

    kept: bool[S, C, A], the alternates that packets in transit take, by the minimal port in the
    place of others; None: they take none.
    """
    classes, ports = tables.classes, [tables.classes.port]
    for option, chosen in enumerate(() if kept is None else np.moveaxis(kept, 2, 0)):
        alternate = classes.alternate[:, :, option]
        port = np.where((alternate > 0) & chosen, alternate, classes.port)
        ports.append(port.astype(np.int32))
    return tuple(
        Fib.of(replace(tables, classes=replace(classes, port=port)), cables) for port in ports
    )


def levels(build: Build, fibs: tuple[Fib, ...], compare: Compare) -> Iterator[Levels]:
    """The levels of all cells of the new tables, for some destinations after others.

    fibs: of the build, one a path.

    Raises:
        NoOrder: aggregates wait for each other.
    """
    routes = build.tables.routes
    for destinations in _blocks(routes):
        changed, separate = compare(destinations)
        covers = _Covers.of(routes, fibs[0], destinations, separate)
        after = np.stack([fib.next_switch(destinations) for fib in fibs])
        cells, whole = _levels(after, changed, covers)
        yield Levels(destinations, cells, changed, covers.aggregates, whole, separate & ~covers.own)


def put_rows(build: Build, fib: Fib, levels: Levels, row: NDArray[np.uint8]) -> None:
    """Write levels to where their rows are in `row`, uint8[S, R]; 1 at least."""
    routes = build.tables.routes
    cells, whole = np.maximum(levels.cells, 1), np.maximum(levels.whole, 1)
    if routes.exact:
        row[:, levels.destinations] = cells
        return
    sets, rows = routes.prefix.shape
    alike = row.reshape(sets, -1, rows)
    for prefixes, values in ((levels.destinations, cells), (levels.aggregates, whole)):
        for prefix, value in zip(prefixes.tolist(), values.T, strict=True):
            if 0 <= prefix < len(fib.first) - 1:
                entries = fib.by_prefix[fib.first[prefix] : fib.first[prefix + 1]]
                here, column = np.divmod(entries, rows)
                alike[here, :, column] = value.reshape(sets, -1)[here]


@dataclass(frozen=True, slots=True, eq=False)
class _Covers:
    """Which rows serve D destinations."""

    own: NDArray[np.bool_]
    """bool[S, D], cells with a row for the destination alone."""
    separate: NDArray[np.bool_]
    """bool[S, D], cells that no old aggregate serves."""
    group: NDArray[np.int64]
    """int64[D], the aggregate of each destination, as a place in `aggregates`."""
    aggregates: NDArray[np.int64]
    """int64[G], the aggregates, ascending."""
    first: NDArray[np.int64]
    """int64[G], the place where the destinations of each aggregate start."""

    @classmethod
    def of(
        cls,
        routes: Routes,
        fib: Fib,
        destinations: NDArray[np.int64],
        separate: NDArray[np.bool_],
    ) -> _Covers:
        none = np.zeros(0, np.int64)
        if routes.exact:
            return cls(np.ones((1, 1), np.bool_), separate, none, none, none)
        aggregate = routes.aggregate[destinations].astype(np.int64)
        aggregates, first, group = np.unique(aggregate, return_index=True, return_inverse=True)
        has_own = own_rows(routes, fib, destinations)
        has_own[:, aggregate < 0] = True
        return cls(has_own, separate, group, aggregates, first)


def own_rows(routes: Routes, fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[S, D]: whether a switch has a row for a destination alone."""
    sets, rows = routes.prefix.shape
    none = no_route(routes.egress)
    alike = routes.egress.reshape(sets, -1, rows)
    has_row = np.zeros((len(destinations), *alike.shape[:2]), np.bool_)
    for of_destination, destination in zip(has_row, destinations.tolist(), strict=True):
        entries = fib.by_prefix[fib.first[destination] : fib.first[destination + 1]]
        here, row = np.divmod(entries, rows)
        of_destination[here] = alike[here, :, row] != none
    return has_row.reshape(len(destinations), -1).T


def _levels(
    after: NDArray[np.int32], changed: NDArray[np.bool_], covers: _Covers
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """uint8[S, D] and uint8[S, G]: the least levels that the rules above allow.

    after: int32[W, S, D], the next switches.
    """
    _, order, width = after.shape
    away = (after >= 0) & (after != np.arange(order)[:, None])
    ahead = np.where(away, after, 0).astype(np.int64) * width + np.arange(width)
    level, sent = np.zeros((order, width), np.uint8), away.any(axis=0)
    whole = np.zeros((order, len(covers.aggregates)), np.uint8)
    for _ in range(MOST_HOPS):
        raised = np.where(away, level.take(ahead) + changed, 0).max(axis=0).astype(np.uint8)
        if len(covers.aggregates):
            together = np.where(covers.own | covers.separate, 0, raised)
            whole = np.maximum.reduceat(together, covers.first, axis=1)
            raised = np.where(
                covers.own | ~sent, raised, np.maximum(raised, whole[:, covers.group])
            )
        if (raised == level).all():
            return level, whole
        level = raised
    raise NoOrder


def _blocks(routes: Routes) -> Iterator[NDArray[np.int64]]:
    """All destinations in blocks, those under one aggregate together."""
    order = len(routes.egress)
    together = 1 if routes.exact else order // len(routes.prefix)
    step = max(1, ORDER_CELLS_AT_ONCE // order // together) * together
    for first in range(0, order, step):
        yield np.arange(first, min(first + step, order))
