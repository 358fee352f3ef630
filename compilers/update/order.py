"""The order in which route rows may change: a row after those that its packets meet next.

A *cell* is a switch and a destination. A row may change when, for every destination that it serves,
the cell at its new next hop does what the new tables say. So the *level* of a cell is the number of
cells on its new path, itself included, that differ from the old tables. Rows change level by level.
The order within a level does not matter (docs/how-to/move.md has the proof).

For example, packets from switch 1 to switch 9 went 1-2-9 and shall go 1-3-4-9. Until now switches 3
and 4 have sent packets for 9 to switch 2. So the cells of 1, 3 and 4 for 9 differ from the old
tables. The level of (4, 9) is 1, that of (3, 9) is 2, and that of (1, 9) is 3: switch 1 sends
nothing to 3 before 3 sends to 4, and 4 to 9.

An *aggregate* is a row for many destinations, which serves those that have no row of their own. It
changes all of them at once, so its level is the largest level of their cells. A destination may be
served by an aggregate in only one of the two builds:

- A destination that leaves its aggregate: from round 0 it has its own row with the old aggregate's
  next hop. This row changes in the round of its own level, and the aggregate does not wait for it.
- A destination that joins an aggregate: its own row is removed in the round in which both its cell
  and the aggregate's row may change.

For example, an aggregate of the destinations 8 and 9 serves both before and after. If its cell for
8 has level 1 and that for 9 level 3, the row changes in round 3, for both. If 9 gets a row of its
own, packets to 9 use that row from round 0 on. So the aggregate's row does not wait for 9: the
aggregate's row changes in round 1, and the row of 9 in round 3.

A *group* is consecutive switches that have rows for the same prefixes (`Routes.prefix`). In shapes,
S is the number of switches, D of destinations, R of the rows of a switch.

What comes in is the new build, and a function that compares its cells with those of the old build.
`levels` computes the levels of all cells, and `write_rounds` writes them to the rows of the tables.
`move_plan` calls both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.tables.intermediate_form import Routes, Tables, no_route

ORDER_CELLS_AT_ONCE = 1 << 22
"""The most cells in a block of destinations, which bounds memory."""


class ComparedCells(NamedTuple):
    """The cells of D destinations of the new build, compared with the old tables."""

    is_changed: NDArray[np.bool_]
    """bool[S, D], cells whose row differs from the old tables."""
    not_in_old_aggregate: NDArray[np.bool_]
    """bool[S, D], cells that no aggregate of the old tables serves."""


Compare = Callable[[NDArray[np.int64]], ComparedCells]
"""Compares the cells of some destinations, int64[D]."""


class NoOrder(Exception):
    """Aggregates of the new tables wait for each other: no order of rows is safe."""


@dataclass(frozen=True, slots=True, eq=False)
class CellLevels:
    """The levels of the cells of D destinations."""

    destinations: NDArray[np.int64]
    """int64[D], vertices."""
    cell_levels: NDArray[np.uint8]
    """uint8[S, D], the level of each cell."""
    is_changed: NDArray[np.bool_]
    """bool[S, D], cells whose next hops change."""
    aggregates: NDArray[np.int64]
    """int64[aggregates], the prefix numbers of the aggregates that cover the destinations,
    ascending; -1 among them if some destinations have no aggregate."""
    aggregate_levels: NDArray[np.uint8]
    """uint8[S, aggregates], the level of each aggregate's row."""
    is_merged: NDArray[np.bool_]
    """bool[S, D], cells that had a row of their own, and are served by an aggregate now."""


def path_fibs(build: Build) -> tuple[Fib, ...]:
    """The next hops of a build, one `Fib` for each choice that packets in transit may make.

    Where paths are not shared at every hop, packets in transit have no choice, and there is one
    `Fib`, by the minimal ports.
    """
    has_share = None
    if build.forwarding.every_hop:
        # bool[S, C, A]: the first weight of a class is that of its minimal port.
        has_share = np.asarray(build.tables.classes.weight[:, :, 1:]) > 0
    return fibs_by_alternates(build.tables, build.wiring.far_by_port(), has_share)


def bounce_fibs(build: Build) -> tuple[Fib, ...]:
    """The next hops of packets that came in by the link of their own next hop.

    There is one `Fib` for each column of `Classes.bounce`.
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
        cables: the switch at the far end of each port (`Wiring.far_by_port`).
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


def levels(build: Build, fibs: tuple[Fib, ...], compare: Compare) -> Iterator[CellLevels]:
    """Yield the levels of all cells of the new tables, a block of destinations at a time.

    Args:
        build: the new build.
        fibs: its next hops (`path_fibs`).
        compare: compares its cells with the old tables.

    Raises:
        NoOrder: aggregates wait for each other.
    """
    routes = build.tables.routes
    for destinations in _blocks(routes):
        compared = compare(destinations)
        covers = _Covers.of(routes, fibs[0], destinations, compared.not_in_old_aggregate)
        next_switch = np.stack([fib.next_switch(destinations) for fib in fibs])
        cells, aggregate_levels = _levels(next_switch, compared.is_changed, covers)
        yield CellLevels(
            destinations=destinations,
            cell_levels=cells,
            is_changed=compared.is_changed,
            aggregates=covers.aggregates,
            aggregate_levels=aggregate_levels,
            is_merged=compared.not_in_old_aggregate & ~covers.waits_for_no_aggregate,
        )


def write_rounds(build: Build, fib: Fib, block: CellLevels, rounds: NDArray[np.uint8]) -> None:
    """Write the round in which each row changes: the level of its cell or aggregate, at least 1.

    A row that does not change gets a round as well, in which nothing is sent for it.

    Args:
        build: the build with the rows.
        fib: its next hops.
        block: the levels of some destinations.
        rounds: uint8[S, R], the round of each row, into which is written.
    """
    routes = build.tables.routes
    cell_rounds = np.maximum(block.cell_levels, 1)
    aggregate_rounds = np.maximum(block.aggregate_levels, 1)
    if routes.exact:  # row d is that of destination d
        rounds[:, block.destinations] = cell_rounds
        return
    groups, rows = routes.prefix.shape
    by_group = rounds.reshape(groups, -1, rows)  # uint8[groups, switches of a group, R]
    for prefixes, rounds_of_prefixes in (
        (block.destinations, cell_rounds),
        (block.aggregates, aggregate_rounds),
    ):
        for prefix, by_switch in zip(prefixes.tolist(), rounds_of_prefixes.T, strict=True):
            group, row = fib.rows_of_prefix(prefix)
            by_group[group, :, row] = by_switch.reshape(groups, -1)[group]


@dataclass(frozen=True, slots=True, eq=False)
class _Covers:
    """Which rows of the new tables serve D destinations: their own, or those of aggregates."""

    waits_for_no_aggregate: NDArray[np.bool_]
    """bool[S, D], cells with a row for the destination alone, and cells whose destination has no
    aggregate. bool[1, 1], which is broadcast, if all cells have a row of their own."""
    not_in_old_aggregate: NDArray[np.bool_]
    """bool[S, D], cells that no old aggregate serves."""
    aggregate_index: NDArray[np.int64]
    """int64[D], the aggregate of each destination, as an index into `aggregates`."""
    aggregates: NDArray[np.int64]
    """int64[aggregates], as in `CellLevels`."""
    first_column: NDArray[np.int64]
    """int64[aggregates], the first column of the destinations of each aggregate. The destinations
    of an aggregate are adjacent, as `_blocks` lists all destinations in ascending order."""

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
            no_cell_waits = np.ones((1, 1), np.bool_)
            return cls(no_cell_waits, not_in_old_aggregate, none, none, none)
        aggregate = routes.aggregate[destinations].astype(np.int64)
        aggregates, first_column, aggregate_index = np.unique(
            aggregate, return_index=True, return_inverse=True
        )
        waits_for_no_aggregate = has_own_row(routes, fib, destinations)
        # Where no aggregate covers a destination, a cell without a row of its own has no route, and
        # waits for no aggregate either.
        waits_for_no_aggregate[:, aggregate < 0] = True
        return cls(
            waits_for_no_aggregate, not_in_old_aggregate, aggregate_index, aggregates, first_column
        )


def has_own_row(routes: Routes, fib: Fib, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether switches have a row for a destination alone, bool[S, D].

    Args:
        routes: the routes.
        fib: their next hops, with an index of rows by prefix.
        destinations: int64[D].
    """
    groups, rows = routes.prefix.shape
    none = no_route(routes.egress)
    by_group = routes.egress.reshape(groups, -1, rows)  # [groups, switches of a group, R]
    has_row = np.zeros((len(destinations), *by_group.shape[:2]), np.bool_)
    for index, destination in enumerate(destinations.tolist()):
        group, row = fib.rows_of_prefix(destination)
        has_row[index, group] = by_group[group, :, row] != none
    return has_row.reshape(len(destinations), -1).T


def _levels(
    next_switch: NDArray[np.int32], changed: NDArray[np.bool_], covers: _Covers
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The least levels of cells and of aggregates' rows that the rules of this module allow.

    All levels begin at 0, and are raised until none is too low. Without aggregates, the level of a
    cell is right as soon as the levels of the cells on its path are. So there are at most as many
    steps as links on a path.

    Args:
        next_switch: int32[W, S, D], the next switch of each cell on W paths.
        changed: bool[S, D], the cells that differ from the old tables.
        covers: which rows serve the destinations.

    Returns:
        uint8[S, D], by cell, and uint8[S, aggregates], by aggregate.

    Raises:
        NoOrder: aggregates wait for each other.
    """
    _, switches, width = next_switch.shape
    # bool[W, S, D]: whether a packet of this cell leaves the switch, to another one.
    is_sent_on = (next_switch >= 0) & (next_switch != np.arange(switches)[:, None])
    # int64[W, S, D], the flat index of the cell that a packet meets next.
    next_cell = np.where(is_sent_on, next_switch, 0).astype(np.int64) * width + np.arange(width)
    is_forwarded = is_sent_on.any(axis=0)
    level = np.zeros((switches, width), np.uint8)
    aggregate_levels = np.zeros((switches, len(covers.aggregates)), np.uint8)
    for _ in range(MOST_HOPS):
        raised = (
            np.where(is_sent_on, level.take(next_cell) + changed, 0).max(axis=0).astype(np.uint8)
        )
        if len(covers.aggregates):
            aggregate_levels = _aggregate_levels(raised, covers)
            # A cell without a row of its own changes with the row of its aggregate.
            raised = np.where(
                covers.waits_for_no_aggregate | ~is_forwarded,
                raised,
                np.maximum(raised, aggregate_levels[:, covers.aggregate_index]),
            )
        if (raised == level).all():
            return level, aggregate_levels
        level = raised
    raise NoOrder


def _aggregate_levels(level: NDArray[np.uint8], covers: _Covers) -> NDArray[np.uint8]:
    """The level of each aggregate's row, uint8[S, aggregates]: the largest of its cells' levels.

    The row waits only for cells that an aggregate serves both in the old and in the new tables.

    Args:
        level: uint8[S, D], the levels of cells.
        covers: which rows serve the destinations.
    """
    stays_in_aggregate = ~(covers.waits_for_no_aggregate | covers.not_in_old_aggregate)
    level_by_cell = np.where(stays_in_aggregate, level, 0)
    largest: NDArray[np.uint8] = np.maximum.reduceat(level_by_cell, covers.first_column, axis=1)
    return largest


def _blocks(routes: Routes) -> Iterator[NDArray[np.int64]]:
    """Yield all destinations in blocks, int64[D]; those of one aggregate are in one block."""
    switches = len(routes.egress)
    per_aggregate = 1 if routes.exact else routes.group_size
    step = max(1, ORDER_CELLS_AT_ONCE // switches // per_aggregate) * per_aggregate
    for first in range(0, switches, step):
        yield np.arange(first, min(first + step, switches))
