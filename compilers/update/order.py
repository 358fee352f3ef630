"""The order in which route rows may change: a row after those that its packets meet next.

A *cell* is a switch and a destination. A row may change when, for every destination that it serves,
the cell at its new next hop does what the new tables say. So the *level* of a cell is the number of
cells on its new path, itself included, that differ from the old tables. Rows change level by level,
and rows of one level in any order (docs/how-to/move.md has the proof).

For example, packets from switch 1 to switch 9 went 1-2-9 and shall go 1-3-4-9. Until now switches 3
and 4 have sent packets for 9 to switch 2. So the cells of 1, 3 and 4 for 9 differ from the old
tables. The level of (4, 9) is 1, that of (3, 9) is 2, and that of (1, 9) is 3: switch 1 sends
nothing to 3 before 3 sends to 4, and 4 to 9.

The row of an aggregate changes many destinations at once, so its level is the largest of theirs. A
destination that gets a row of its own first gets one that does what the old aggregate did. A
destination that loses its own row to the aggregate does so when both may change.

For example, an aggregate of the destinations 8 and 9 serves both before and after. If its cell for
8 has level 1 and that for 9 level 3, the row changes in round 3, for both. If 9 gets a row of its
own, the aggregate's row does not wait for 9: it changes in round 1, as packets to 9 take their own
row, which is added before and changes in round 3.

A *group* is consecutive switches that have rows for the same prefixes (`Routes.prefix`). In shapes,
S is the number of switches, D of destinations, R of the rows of a switch.

What comes in is the new build, and a function that compares its cells with those of the old build.
`levels` computes the levels of all cells, and `write_rounds` writes them to the rows of the tables.
`move_plan` calls both.
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
"""The most cells in a block of destinations."""
Compare = Callable[[NDArray[np.int64]], tuple[NDArray[np.bool_], NDArray[np.bool_]]]
"""Compares the cells of D destinations: bool[S, D] twice, the cells that differ from the old
tables, and the cells that no aggregate of the old tables serves."""


class NoOrder(Exception):
    """Aggregates of the new tables wait for each other: no order of rows is safe."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The levels of the cells of D destinations."""

    destinations: NDArray[np.int64]
    """int64[D], vertices."""
    cells: NDArray[np.uint8]
    """uint8[S, D], the level of each cell."""
    changed: NDArray[np.bool_]
    """bool[S, D], cells whose next hops change."""
    aggregates: NDArray[np.int64]
    """int64[aggregates], the aggregates that cover the destinations."""
    aggregate_levels: NDArray[np.uint8]
    """uint8[S, aggregates], the level of each aggregate's row."""
    merged: NDArray[np.bool_]
    """bool[S, D], cells that lose their own row to an aggregate."""


def path_fibs(build: Build) -> tuple[Fib, ...]:
    """The next hops of a build, one `Fib` for each choice that packets in transit may make.

    Where paths are not shared at every hop, there is one: by the minimal ports.
    """
    has_share = None
    if build.forwarding.every_hop:
        # bool[S, C, A]: the first weight of a class is that of its minimal port.
        has_share = np.asarray(build.tables.classes.weight[:, :, 1:]) > 0
    return fibs_by_alternates(build.tables, build.wiring.far_by_port(), has_share)


def bounce_fibs(build: Build) -> tuple[Fib, ...]:
    """The next hops of packets that came in by the link of their own next hop.

    One `Fib` for each place in `Classes.bounce`.
    """
    tables, cables = build.tables, build.wiring.far_by_port()
    classes = tables.classes
    return tuple(
        Fib.of(replace(tables, classes=replace(classes, port=port.astype(np.int32))), cables)
        for port in np.moveaxis(np.asarray(classes.bounce), 2, 0)
    )


def fibs_by_alternates(
    tables: Tables, cables: NDArray[np.int32], is_taken: NDArray[np.bool_] | None
) -> tuple[Fib, ...]:
    """The next hops by the minimal ports, and by each column of alternates.

    Args:
        tables: the tables.
        cables: of `Wiring.cables`.
        is_taken: bool[S, C, A], the alternates that packets in transit take. Where they do not take
            one, the minimal port stands in its place. None: they take no alternates.
    """
    classes, ports = tables.classes, [tables.classes.port]
    if is_taken is not None:
        for column in range(is_taken.shape[2]):
            alternate = classes.alternate[:, :, column]
            port = np.where((alternate > 0) & is_taken[:, :, column], alternate, classes.port)
            ports.append(port.astype(np.int32))
    return tuple(
        Fib.of(replace(tables, classes=replace(classes, port=port)), cables) for port in ports
    )


def levels(build: Build, fibs: tuple[Fib, ...], compare: Compare) -> Iterator[Levels]:
    """Yield the levels of all cells of the new tables, a block of destinations at a time.

    Args:
        build: the new build.
        fibs: its next hops, of `path_fibs`.
        compare: compares its cells with the old tables.

    Raises:
        NoOrder: aggregates wait for each other.
    """
    routes = build.tables.routes
    for destinations in _blocks(routes):
        changed, not_in_old_aggregate = compare(destinations)
        covers = _Covers.of(routes, fibs[0], destinations, not_in_old_aggregate)
        after = np.stack([fib.next_switch(destinations) for fib in fibs])
        cells, aggregate_levels = _levels(after, changed, covers)
        yield Levels(
            destinations=destinations,
            cells=cells,
            changed=changed,
            aggregates=covers.aggregates,
            aggregate_levels=aggregate_levels,
            merged=not_in_old_aggregate & ~covers.has_row,
        )


def write_rounds(build: Build, fib: Fib, block: Levels, rounds: NDArray[np.uint8]) -> None:
    """Write the round in which each row changes: the level of its cell or aggregate, at least 1.

    Args:
        build: the build with the rows.
        fib: its next hops.
        block: the levels of some destinations.
        rounds: uint8[S, R], the round of each row; changed.
    """
    routes = build.tables.routes
    cell_rounds = np.maximum(block.cells, 1)
    aggregate_rounds = np.maximum(block.aggregate_levels, 1)
    if routes.exact:  # row d is that of destination d
        rounds[:, block.destinations] = cell_rounds
        return
    groups, rows = routes.prefix.shape
    by_group = rounds.reshape(groups, -1, rows)  # [groups, switches of one, R]
    for prefixes, rounds_of_prefixes in (
        (block.destinations, cell_rounds),
        (block.aggregates, aggregate_rounds),
    ):
        for prefix, by_switch in zip(prefixes.tolist(), rounds_of_prefixes.T, strict=True):
            # -1 stands for no aggregate, and no row has a prefix above the last in `fib.first`.
            if 0 <= prefix < len(fib.first) - 1:
                entries = fib.by_prefix[fib.first[prefix] : fib.first[prefix + 1]]
                group, column = np.divmod(entries, rows)
                by_group[group, :, column] = by_switch.reshape(groups, -1)[group]


@dataclass(frozen=True, slots=True, eq=False)
class _Covers:
    """Which rows of the new tables serve D destinations: their own, or those of aggregates."""

    has_row: NDArray[np.bool_]
    """bool[S, D], cells with a row for the destination alone; bool[1, 1] if all cells have one, as
    it is broadcast."""
    not_in_old_aggregate: NDArray[np.bool_]
    """bool[S, D], cells that no old aggregate serves."""
    aggregate_index: NDArray[np.int64]
    """int64[D], the aggregate of each destination, as an index into `aggregates`."""
    aggregates: NDArray[np.int64]
    """int64[aggregates], the aggregates, ascending."""
    first: NDArray[np.int64]
    """int64[aggregates], the first column of the destinations of each aggregate."""

    @classmethod
    def of(
        cls,
        routes: Routes,
        fib: Fib,
        destinations: NDArray[np.int64],
        not_in_old_aggregate: NDArray[np.bool_],
    ) -> _Covers:
        """The rows for some destinations.

        Args:
            routes: the routes of the new tables.
            fib: their next hops.
            destinations: int64[D].
            not_in_old_aggregate: bool[S, D], the cells that no old aggregate serves.
        """
        none = np.zeros(0, np.int64)
        if routes.exact:
            every_cell_has_row = np.ones((1, 1), np.bool_)
            return cls(every_cell_has_row, not_in_old_aggregate, none, none, none)
        aggregate = routes.aggregate[destinations].astype(np.int64)
        aggregates, first, aggregate_index = np.unique(
            aggregate, return_index=True, return_inverse=True
        )
        has_own = has_own_row(routes, fib, destinations)
        # No aggregate covers these destinations, so their cells wait for none. A cell without a row
        # of its own has no route.
        has_own[:, aggregate < 0] = True
        return cls(has_own, not_in_old_aggregate, aggregate_index, aggregates, first)


def has_own_row(routes: Routes, fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether switches have a row for a destination alone, bool[S, D].

    Args:
        routes: the routes.
        fib: their next hops, which know the rows of each prefix.
        destinations: int64[D].
    """
    groups, rows = routes.prefix.shape
    none = no_route(routes.egress)
    by_group = routes.egress.reshape(groups, -1, rows)  # [groups, switches of one, R]
    has_row = np.zeros((len(destinations), *by_group.shape[:2]), np.bool_)
    for j, destination in enumerate(destinations.tolist()):
        entries = fib.by_prefix[fib.first[destination] : fib.first[destination + 1]]
        group, row = np.divmod(entries, rows)
        has_row[j, group] = by_group[group, :, row] != none
    return has_row.reshape(len(destinations), -1).T


def _levels(
    after: NDArray[np.int32], changed: NDArray[np.bool_], covers: _Covers
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The least levels of cells and of aggregates' rows that the rules of this module allow.

    Args:
        after: int32[W, S, D], the next switches of each cell on W paths.
        changed: bool[S, D], the cells that differ from the old tables.
        covers: which rows serve the destinations.

    Returns:
        uint8[S, D], by cell, and uint8[S, aggregates], by aggregate.

    Raises:
        NoOrder: aggregates wait for each other.
    """
    _, switches, width = after.shape
    leaves = (after >= 0) & (after != np.arange(switches)[:, None])
    # int64[W, S, D], the flat index of the cell that a packet meets next.
    next_cell = np.where(leaves, after, 0).astype(np.int64) * width + np.arange(width)
    level, is_forwarded = np.zeros((switches, width), np.uint8), leaves.any(axis=0)
    aggregate_levels = np.zeros((switches, len(covers.aggregates)), np.uint8)
    for _ in range(MOST_HOPS):
        raised = np.where(leaves, level.take(next_cell) + changed, 0).max(axis=0).astype(np.uint8)
        if len(covers.aggregates):
            # An aggregate's row waits only for the cells that it serves in both the old and the
            # new tables.
            stays_in_aggregate = ~(covers.has_row | covers.not_in_old_aggregate)
            level_by_cell = np.where(stays_in_aggregate, raised, 0)
            aggregate_levels = np.maximum.reduceat(level_by_cell, covers.first, axis=1)
            raised = np.where(
                covers.has_row | ~is_forwarded,
                raised,
                np.maximum(raised, aggregate_levels[:, covers.aggregate_index]),
            )
        if (raised == level).all():
            return level, aggregate_levels
        level = raised
    raise NoOrder


def _blocks(routes: Routes) -> Iterator[NDArray[np.int64]]:
    """Yield all destinations in blocks, int64[D]; those of one aggregate are in one block."""
    switches = len(routes.egress)
    per_aggregate = 1 if routes.exact else routes.group_size
    step = max(1, ORDER_CELLS_AT_ONCE // switches // per_aggregate) * per_aggregate
    for first in range(0, switches, step):
        yield np.arange(first, min(first + step, switches))
