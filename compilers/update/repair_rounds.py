"""The rounds from the tables of one repair to those of the next, which lose no packet on the way.

The controller repairs tables around failures again and again. `RepairRounds.of_repairs` compares
two such repairs of a build. Each says where it differs from the build, so only these rows and
classes are looked at. `repair_messages` encodes the result.

A *cell* is a switch and a destination. The *level* of a cell is the number of cells on its new
path, itself included, whose egress class changes. A row changes in the round with the number of the
largest level of its cells, so after the rows that its packets meet next. This is the order of
`compilers.update.order` (docs/how-to/move.md has the proof).

For example, packets for switch 9 went 3-2-9 and 4-9. The link 2-9 fails, and the new path of switch
2 is 2-3-4-9. So the cells (2, 9) and (3, 9) change. The level of (3, 9) is 1, and that of (2, 9) is
2: if switch 2 changed first, it would send packets to 3, and 3 back to 2.

Three rules are added:

- Aggregates (`_Cells.levels`). The row of an aggregate is removed or added here, but never leads
  elsewhere. It is removed after its destinations have rows of their own, and added before they lose
  these rows.
- Paths shared at every hop (`_multipath_levels`). During the update a class uses only next hops
  that are in both its old and its new set. A row changes after those that its packets meet next by
  any of these. For example, a class of switch 2 goes from the next hops 3 and 4 to 4 and 5, and
  during the update to 4 only. So its row changes after that of switch 4. Packets that come in from
  5 are forwarded like all others until the last round: 5 sends them here by its old rows. From then
  on they take the bounce, as only a repair sends them here (`repair_messages`).
- Destinations that are cut off (FIRST_LATE_LEVEL). Their packets are dropped after all other
  packets have their new next hops, and rows that lead to the dropping switches change after that.
  For example, packets for 9 went 2-4-9. Now 2 drops them, and 4 has only the row of an aggregate,
  which leads to 2. If 4 changed first, it would send packets to 2, and 2 back to 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.exact_rows import covered_destinations
from compilers.routing.link_repair import RepairedTables, distinct_pairs
from compilers.routing.split_classes import exact_rows_of
from compilers.tables.fib import MOST_HOPS
from compilers.tables.intermediate_form import Routes, no_route
from compilers.update.matching import find_numbers
from compilers.update.order import fibs_by_alternates

Numbers = NDArray[Any]
GONE = -1
"""In place of the new egress class of a row: the row is removed."""
NO_CHANGED_ROW = -1
"""In place of an index of `RepairRounds.rows`: no row changes."""
FIRST_LATE_LEVEL = 1 << 20
"""The first level of cells that drop packets while levels are computed, above all other levels. At
the end `_without_gap` moves these levels down, so that they follow the others.
"""
CELLS_AT_ONCE = 1 << 20
"""How many cells are compared at once, which bounds memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """The n route rows that change in a repair."""

    switch: NDArray[np.int64]
    """int64[n], the switch that has each row."""
    prefix: NDArray[np.int64]
    """int64[n], the prefix number of each row."""
    egress: NDArray[np.int64]
    """int64[n], the new egress class; GONE for a row that is removed."""
    round: NDArray[np.int64]
    """int64[n], the round in which each row changes."""

    @classmethod
    def empty(cls) -> RowChanges:
        """No rows."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, empty)

    def selected(self, chosen: NDArray[np.bool_]) -> RowChanges:
        """Some of the rows.

        Args:
            chosen: bool[n].
        """
        return RowChanges(
            self.switch[chosen], self.prefix[chosen], self.egress[chosen], self.round[chosen]
        )


@dataclass(frozen=True, slots=True, eq=False)
class RepairRounds:
    """Rows that change, and classes that may change, in rounds 0 to `last_round`.

    As in a move (`move_plan.Update`), round 0 adds what no packet uses yet, routes change in the
    rounds in between, and in the last round packets from hosts get their alternates back.
    """

    rows: RowChanges
    """The rows that change, with their rounds."""
    classes: NDArray[np.int64]
    """int64[m, 2], the switch and the number of each class that may change."""
    entered_classes: NDArray[np.int64]
    """int64[k, 2], the switch and the new class of each cell that changes and does not drop."""
    last_round: int
    """The number of the last round."""
    avoiding_switches: NDArray[np.int64]
    """The switches at which packets on a detour may avoid something else (`Tables.avoided`),
    ascending. They do so from the first round on."""

    @classmethod
    def of_classes(
        cls, classes: NDArray[np.int64], avoiding: NDArray[np.int64] | None = None
    ) -> RepairRounds:
        """The rounds if only classes and detours change, and no row.

        Args:
            classes: int64[m, 2], the switch and the number of each class.
            avoiding: the switches as in the field of this name; None: no switches.
        """
        return cls(
            rows=RowChanges.empty(),
            classes=classes,
            entered_classes=np.zeros((0, 2), np.int64),
            last_round=1,
            avoiding_switches=np.zeros(0, np.int64) if avoiding is None else avoiding,
        )

    @classmethod
    def of_repairs(cls, before: RepairedTables, after: RepairedTables) -> RepairRounds:
        """The rounds from one repair of a build to another."""
        classes = distinct_pairs(np.concatenate((before.changed_classes, after.changed_classes)))
        avoiding = np.union1d(before.avoiding_switches, after.avoiding_switches)
        # Rows that one of the repairs changed may differ between the two.
        rows = distinct_pairs(np.concatenate((before.changed_rows, after.changed_rows)))
        old_egress = _egress_of_rows(before.tables.routes, rows)
        new_egress = _egress_of_rows(after.tables.routes, rows)
        differs = old_egress != new_egress
        if not differs.any():
            return cls.of_classes(classes, avoiding)
        rows, egress = rows[differs], new_egress[differs]
        blocks = _destination_blocks(after.tables.routes, rows)
        cells = _Cells.of(before, after, rows, blocks)
        # None stands for tables whose paths are not shared at every hop.
        if after.switch_at_port is None:
            level = _without_gap(cells.levels(is_removed=egress == GONE))
        else:
            level = _without_gap(_multipath_levels(before, after, after.switch_at_port, blocks))
        last = int(level[~cells.drops].max(initial=0)) + 1
        # A row changes in the round of its largest level. A row that gives no cell a new class is
        # removed in the last round, or changed in the first one.
        highest_level = np.zeros(len(rows), np.int64)
        np.maximum.at(highest_level, cells.row, level)
        without_cells = np.where(egress == GONE, last, 1)
        switch, prefix = rows.T
        return cls(
            rows=RowChanges(
                switch=switch,
                prefix=prefix,
                egress=egress,
                round=np.where(highest_level > 0, highest_level, without_cells),
            ),
            classes=classes,
            entered_classes=cells.entered[~cells.drops],
            last_round=last,
            avoiding_switches=avoiding,
        )

    def of_switches(self, chosen: NDArray[np.bool_]) -> RepairRounds:
        """The changes at some switches.

        Args:
            chosen: bool[S].
        """
        return RepairRounds(
            rows=self.rows.selected(chosen[self.rows.switch]),
            classes=self.classes[chosen[self.classes[:, 0]]],
            entered_classes=self.entered_classes[chosen[self.entered_classes[:, 0]]],
            last_round=self.last_round,
            avoiding_switches=self.avoiding_switches[chosen[self.avoiding_switches]],
        )

    @property
    def has_route_rounds(self) -> bool:
        """Whether there are rounds between round 0 and the last one, in which routes change."""
        return self.last_round > 1

    @property
    def switches(self) -> NDArray[np.int64]:
        """The switches at which something may change, ascending."""
        return np.union1d(np.union1d(self.rows.switch, self.classes[:, 0]), self.avoiding_switches)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The n cells, pairs of a switch and a destination, whose egress class changes.

    Changed rows are named by their index in `RepairRounds.rows`.
    """

    row: NDArray[np.int64]
    """int64[n], the changed row that gives the cell its new class."""
    has_own_row: NDArray[np.bool_]
    """bool[n], whether that row is for this destination alone."""
    aggregate_row: NDArray[np.int64]
    """int64[n], the changed row of the destination's aggregate, or NO_CHANGED_ROW."""
    next_changed_cell: NDArray[np.int64]
    """int64[n], the first of these cells that packets meet next on the new path; n if they meet
    none."""
    drops: NDArray[np.bool_]
    """bool[n], whether the cell drops packets from now on."""
    entered: NDArray[np.int64]
    """int64[n, 2], the switch and the new class of each cell."""

    @classmethod
    def of(
        cls,
        before: RepairedTables,
        after: RepairedTables,
        rows: NDArray[np.int64],
        blocks: Sequence[NDArray[np.int64]],
    ) -> _Cells:
        """The cells that change by some rows.

        Args:
            before: the repair whose tables are held.
            after: the repair whose tables will be held.
            rows: int64[r, 2], ascending, the switch and the prefix number of each changed row.
            blocks: of `_destination_blocks`.
        """
        return cls._joined([cls._towards(before, after, rows, block) for block in blocks])

    @classmethod
    def _towards(
        cls,
        before: RepairedTables,
        after: RepairedTables,
        rows: NDArray[np.int64],
        destinations: NDArray[np.int64],
    ) -> _Cells:
        """The cells of some destinations.

        Args:
            before: the repair whose tables are held.
            after: the repair whose tables will be held.
            rows: int64[r, 2], ascending, the switch and the prefix number of each changed row.
            destinations: int64[D].
        """
        routes, egress = after.tables.routes, after.fib.egress(destinations)
        switch, column = np.nonzero(egress != before.fib.egress(destinations))
        own_row = _changed_rows(rows, switch, destinations[column])
        aggregate_row = _changed_rows(rows, switch, routes.aggregate[destinations][column])
        has_own_row = own_row != NO_CHANGED_ROW
        next_switch = after.fib.next_switch(destinations)
        new_class = egress[switch, column]
        return cls(
            row=np.where(has_own_row, own_row, aggregate_row),
            has_own_row=has_own_row,
            aggregate_row=aggregate_row,
            next_changed_cell=_next_changed_cells(next_switch, switch, column),
            drops=new_class == no_route(egress),
            entered=np.column_stack((switch, new_class)).astype(np.int64),
        )

    @classmethod
    def _joined(cls, blocks: Sequence[_Cells]) -> _Cells:
        """The cells of several blocks of destinations; none leads to a cell of another block.

        Cells are numbered block by block, so the next cells of a block are shifted by its start.
        """
        sizes = [len(block.row) for block in blocks]
        total, next_cells = sum(sizes), []
        for block, size, start in zip(blocks, sizes, accumulate(sizes, initial=0), strict=False):
            next_cell = block.next_changed_cell
            next_cells.append(np.where(next_cell == size, total, next_cell + start))
        columns = {
            field.name: np.concatenate([getattr(block, field.name) for block in blocks])
            for field in fields(cls)
            if field.name != "next_changed_cell"
        }
        return cls(**columns, next_changed_cell=np.concatenate(next_cells))

    def levels(self, is_removed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The level of each cell, int64[n], where paths are not shared at every hop.

        It is one more than the level of the cell that its packets meet next, and no less than the
        level of a changed row of its aggregate. Cells that drop packets come after all others. If
        aggregates wait for each other, which happens only where destinations were cut off, all
        levels are 1, or 2 where packets are dropped.

        Args:
            is_removed: bool[r], the changed rows that are removed.
        """
        level = np.zeros(len(self.row), np.int64)
        # Levels only rise. They are right when none rises any more.
        for _ in range(MOST_HOPS):
            raised = self._raised(level, is_removed)
            if (raised == level).all():
                return level
            level = raised
        # Aggregates wait for each other, so no order is safe.
        return np.where(self.drops, 2, 1)

    def _raised(self, level: NDArray[np.int64], is_removed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The levels of cells that follow from those of other cells, int64[n].

        Args:
            level: int64[n], the levels so far.
            is_removed: bool[r], the changed rows that are removed.
        """
        # The last entry is for cells without a next changed cell.
        level_of_next = np.append(level, 0)[self.next_changed_cell]
        raised = np.where(self.drops, FIRST_LATE_LEVEL, 1 + level_of_next)
        in_aggregate = ~self.has_own_row
        # These cells change no sooner than the row of their aggregate: it serves them now, or will
        # serve them when their own row is gone.
        has_changed_aggregate = self.aggregate_row != NO_CHANGED_ROW
        waits = has_changed_aggregate & (in_aggregate | is_removed[self.row])
        if waits.any():
            row_level = np.zeros(len(is_removed), np.int64)
            np.maximum.at(row_level, self.row[in_aggregate], raised[in_aggregate])
            raised[waits] = np.maximum(raised[waits], row_level[self.aggregate_row[waits]])
        return raised


def _destination_blocks(routes: Routes, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The destinations of changed rows, in blocks of CELLS_AT_ONCE cells.

    Without destinations there is one empty block, so that there are arrays to join.

    Args:
        routes: the routes after the repair.
        rows: int64[r, 2], the switch and the prefix number of each changed row.
    """
    destinations = covered_destinations(routes, rows[:, 1])
    step = max(1, CELLS_AT_ONCE // len(routes.egress))
    first_of_blocks = range(0, max(len(destinations), 1), step)
    return [destinations[first : first + step] for first in first_of_blocks]


def _multipath_levels(
    before: RepairedTables,
    after: RepairedTables,
    switch_at_port: NDArray[np.int32],
    blocks: Sequence[NDArray[np.int64]],
) -> NDArray[np.int64]:
    """The levels of cells where paths are shared at every hop, int64[n].

    Then routes have no aggregates. The level of a cell is one more than the largest level that its
    packets meet next, by any next hop that its class has before and after.

    Args:
        before: the repair whose tables are held.
        after: the repair whose tables will be held.
        switch_at_port: of `after`.
        blocks: of `_destination_blocks`.
    """
    old, new = before.tables.classes.alternate, after.tables.classes.alternate
    fibs = fibs_by_alternates(after.tables, switch_at_port, old == new)
    levels = []
    for destinations in blocks:
        egress = after.fib.egress(destinations)
        is_changed = egress != before.fib.egress(destinations)
        # int32[W, S, D], the next switches by each of W choices.
        next_switch = np.stack([fib.next_switch(destinations) for fib in fibs])
        drops = is_changed & (egress == no_route(egress))
        levels.append(_levels_by_choices(next_switch, is_changed, drops)[is_changed])
    return np.concatenate(levels)


def _levels_by_choices(
    next_switch: NDArray[np.int32], is_changed: NDArray[np.bool_], drops: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The largest level that packets at each switch meet, its own cell included, int64[S, D].

    Args:
        next_switch: int32[W, S, D], the next switches by each of W choices.
        is_changed: bool[S, D], the cells that change.
        drops: bool[S, D], the cells that change and drop packets from now on.
    """
    switch_count, destination_count = is_changed.shape
    switch, column = np.arange(switch_count)[:, None], np.arange(destination_count)
    forwards = (next_switch >= 0) & (next_switch != switch)
    level = np.zeros(is_changed.shape, np.int64)
    for _ in range(MOST_HOPS):
        level_of_next = np.where(forwards, level[next_switch, column], 0).max(axis=0)
        raised = np.where(drops, FIRST_LATE_LEVEL, level_of_next + is_changed)
        if (raised == level).all():
            break
        level = raised
    return level


def _without_gap(level: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lower the levels from FIRST_LATE_LEVEL on, so that they follow the others without a gap.

    Levels 1, 2, FIRST_LATE_LEVEL become 1, 2, 3.
    """
    is_late = level >= FIRST_LATE_LEVEL
    highest = level[~is_late].max(initial=0)
    return level - np.where(is_late, FIRST_LATE_LEVEL - 1 - highest, 0)


def _next_changed_cells(
    next_switch: NDArray[np.int32], switch: Numbers, column: Numbers
) -> NDArray[np.int64]:
    """The changed cell that the packets of each of n cells meet next; n if they meet none.

    Packets of all cells are followed at once, each until it comes to a changed cell.

    Args:
        next_switch: int32[S, D], by switch and destination.
        switch: int64[n], the switch of each cell.
        column: int64[n], its destination, a column of `next_switch`.

    Returns:
        int64[n].
    """
    count = len(switch)
    # int64[S, D], the number of the changed cell at each switch and destination; n for none.
    cell_at = np.full(next_switch.shape, count)
    cell_at[switch, column] = np.arange(count)
    packet_at, next_cell = switch, np.full(count, count)
    for _ in range(MOST_HOPS):
        leads_to = next_switch[packet_at, column]
        is_moving = (next_cell == count) & (leads_to >= 0) & (leads_to != packet_at)
        if not is_moving.any():
            break
        packet_at = np.where(is_moving, leads_to, packet_at)
        next_cell = np.where(is_moving, cell_at[packet_at, column], next_cell)
    return next_cell


def _changed_rows(rows: NDArray[np.int64], switch: Numbers, prefix: Numbers) -> NDArray[np.int64]:
    """The index in `rows` of each of n switches and prefixes, int64[n], or NO_CHANGED_ROW.

    Args:
        rows: int64[r, 2], ascending, the switch and the prefix number of each changed row.
        switch: int64[n].
        prefix: int64[n], prefix numbers; negative for no prefix.
    """
    # A switch and a prefix as one number, which is unique for prefixes from 0 to width - 1. No row
    # has another prefix, so pairs with another one are left out.
    width = int(rows.max()) + 2
    switch_of_row, prefix_of_row = rows.T
    row_keys, keys = switch_of_row * width + prefix_of_row, switch * width + prefix
    index, is_found = find_numbers(row_keys, keys)
    return np.where(is_found & (prefix >= 0) & (prefix < width), index, NO_CHANGED_ROW)


def _egress_of_rows(routes: Routes, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class that rows lead to, int64[n]; GONE where the tables do not have the row.

    Args:
        routes: the routes of the tables.
        rows: int64[n, 2], the switch and the prefix number of each row.
    """
    switch, prefix = rows.T
    row, is_present = exact_rows_of(routes, switch, prefix)
    egress = routes.egress[switch, row]
    return np.where(is_present & (egress != no_route(egress)), egress.astype(np.int64), GONE)
