"""From the tables of one repair to those of the next: the rows and classes that differ, in rounds.

Both repairs say where they differ from the build, so nothing else is looked at. The order is that
of `compilers.update.order` (docs/how-to/move.md has the proof): a row changes after those that its
packets meet next. Rows of aggregates only come and go here, they never lead elsewhere: one that
goes is the last to, and one that comes back does so before its members lose the rows that they had
meanwhile. Where packets are shared at every hop, classes have in between the next hops that they
have before and after, and a row changes after those that its packets meet next by any of these.
Where a destination was cut off, packets are dropped once all others have their new next hops, and
rows that lead there change after that: sooner, they would meet an old row that may lead back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.exact_rows import behind
from compilers.routing.link_repair import Repaired, distinct
from compilers.routing.split_classes import rows_of
from compilers.tables.fib import MOST_HOPS, Fib
from compilers.tables.intermediate_form import Routes, no_route
from compilers.update.order import by_alternates

Numbers = NDArray[Any]
GONE = -1
"""The egress class of a row that is not there."""
CUT_OFF = 1 << 20
"""Beyond any level; the levels of cells whose packets are dropped start here, and are moved down
behind all others.
"""
CELLS_AT_ONCE = 1 << 20
"""Pairs of a switch and a destination that are compared at the same time."""


@dataclass(frozen=True, slots=True, eq=False)
class RepairRounds:
    """Rows that change, and classes that may, in rounds 0 to `last`, as in `Update`."""

    rows: NDArray[np.int64]
    """int64[n, 4], the switch, the prefix number, the new egress class or GONE, and the round."""
    classes: NDArray[np.int64]
    """int64[m, 2], the switch and the number of each class that may change."""
    entered: NDArray[np.int64]
    """int64[k, 2], the switch and the class of packets that went elsewhere before."""
    last: int
    """The number of the last round."""

    @classmethod
    def of_classes(cls, classes: NDArray[np.int64]) -> RepairRounds:
        """Only these classes change."""
        return cls(np.zeros((0, 4), np.int64), classes, np.zeros((0, 2), np.int64), last=1)

    @classmethod
    def between(cls, before: Repaired, after: Repaired) -> RepairRounds:
        """The rounds from one repair of a build to another."""
        classes = distinct(np.concatenate((before.classes, after.classes)))
        rows = distinct(np.concatenate((before.rows, after.rows)))
        old, new = (_egress(one.tables.routes, rows) for one in (before, after))
        rows, egress = rows[old != new], new[old != new]
        if not len(rows):
            return cls.of_classes(classes)
        cells = _Cells.of(before, after, rows)
        level = cells.levels(egress == GONE)
        rounds = np.zeros(len(rows), np.int64)
        np.maximum.at(rounds, cells.row, level)
        last = int(level[~cells.drops].max(initial=0)) + 1
        rounds = np.where(rounds > 0, rounds, np.where(egress == GONE, last, 1))
        entered = cells.entered[~cells.drops]
        return cls(np.column_stack((rows, egress, rounds)), classes, entered, last)

    def at(self, chosen: NDArray[np.bool_]) -> RepairRounds:
        """What changes at the chosen of all switches, bool[S]."""
        rows, classes, entered = (
            part[chosen[part[:, 0]]] for part in (self.rows, self.classes, self.entered)
        )
        return RepairRounds(rows, classes, entered, self.last)

    @property
    def switches(self) -> NDArray[np.int64]:
        """The switches at which something may change, ascending."""
        return np.union1d(self.rows[:, 0], self.classes[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The n cells (switch and destination) whose packets go elsewhere than before, by new rows."""

    row: NDArray[np.int64]
    """int64[n], the changed row that redirects them."""
    own: NDArray[np.bool_]
    """bool[n], whether that row serves no other cell."""
    whole: NDArray[np.int64]
    """int64[n], the changed row of its aggregate, GONE where there is none."""
    ahead: NDArray[np.int64]
    """int64[n], the next of the cells on the new path, n where there is none."""
    drops: NDArray[np.bool_]
    """bool[n], cells that forward no more."""
    entered: NDArray[np.int64]
    """int64[n, 2], switch and egress."""
    shared: NDArray[np.int64]
    """int64[n], the level where packets are shared at every hop, else 0."""

    @classmethod
    def of(cls, before: Repaired, after: Repaired, rows: NDArray[np.int64]) -> _Cells:
        """The cells that these rows, int64[n, 2] in order, change; some destinations at a time."""
        ends = behind(after.tables.routes, rows[:, 1])
        step = max(1, CELLS_AT_ONCE // len(after.tables.routes.egress))
        blocks = [ends[first : first + step] for first in range(0, max(len(ends), 1), step)]
        fibs = _fibs(before, after)
        return cls._joined([cls._towards(before, after, rows, some, fibs) for some in blocks])

    @classmethod
    def _towards(
        cls,
        before: Repaired,
        after: Repaired,
        rows: NDArray[np.int64],
        ends: NDArray[np.int64],
        fibs: tuple[Fib, ...],
    ) -> _Cells:
        """The cells of some destinations."""
        routes, now = after.tables.routes, after.fib.egress(ends)
        changed = now != before.fib.egress(ends)
        switch, column = np.nonzero(changed)
        own_row, whole = (
            _places(rows, switch, of[column]) for of in (ends, routes.aggregate[ends])
        )
        return cls(
            row=np.where(own_row >= 0, own_row, whole),
            own=own_row >= 0,
            whole=whole,
            ahead=_ahead(after.fib.next_switch(ends), switch, column),
            drops=now[switch, column] == no_route(now),
            entered=np.column_stack((switch, now[switch, column])).astype(np.int64),
            shared=_shared_levels(fibs, ends, changed, now == no_route(now))[switch, column],
        )

    @classmethod
    def _joined(cls, blocks: Sequence[_Cells]) -> _Cells:
        """The cells of several; none leads to one of another."""
        sizes = [len(block.row) for block in blocks]
        total, ahead = sum(sizes), []
        for block, size, start in zip(blocks, sizes, accumulate(sizes, initial=0), strict=False):
            ahead.append(np.where(block.ahead == size, total, block.ahead + start))
        parts = {
            part.name: np.concatenate([getattr(block, part.name) for block in blocks])
            for part in fields(cls)
            if part.name != "ahead"
        }
        return cls(**parts, ahead=np.concatenate(ahead))

    def levels(self, gone: NDArray[np.bool_]) -> NDArray[np.int64]:
        """int64[n]: one more than the level of the next cell, and no less than the aggregate's.

        All 1 where aggregates wait for each other: that concerns destinations which were cut off.

        Args:
            gone: bool[rows], the rows that are there no more.
        """
        if self.shared.any():  # without aggregates: such routes are searched
            return _moved_down(self.shared)
        level = np.zeros(len(self.row) + 1, np.int64)
        waits = (self.whole >= 0) & (~self.own | gone[self.row])
        for _ in range(MOST_HOPS):
            raised = np.where(self.drops, CUT_OFF, 1 + level[self.ahead])
            if waits.any():
                whole = np.zeros(len(gone), np.int64)
                np.maximum.at(whole, self.row[~self.own], raised[~self.own])
                raised[waits] = np.maximum(raised[waits], whole[self.whole[waits]])
            if (raised == level[:-1]).all():
                return _moved_down(raised)
            level[:-1] = raised
        return np.where(self.drops, 2, 1)


def _fibs(before: Repaired, after: Repaired) -> tuple[Fib, ...]:
    """Walkers of the new routes by each path that classes have before and after; none where packets
    are not shared at every hop.
    """
    if after.cables is None:
        return ()
    old, new = before.tables.classes.alternate, after.tables.classes.alternate
    return by_alternates(after.tables, after.cables, old == new)


def _shared_levels(
    fibs: tuple[Fib, ...],
    ends: NDArray[np.int64],
    changed: NDArray[np.bool_],
    drops: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """int64[S, D]: of cells that change, one more than the largest level that packets meet next."""
    level = np.zeros(changed.shape, np.int64)
    if not fibs:
        return level
    column, here = np.arange(len(ends)), np.arange(len(changed))[:, None]
    after = np.stack([fib.next_switch(ends) for fib in fibs])
    away = (after >= 0) & (after != here)
    for _ in range(MOST_HOPS):
        ahead = np.where(away, level[after, column], 0).max(axis=0)
        raised = np.where(changed & drops, CUT_OFF, ahead + changed)
        if (raised == level).all():
            break
        level = raised
    return level


def _moved_down(level: NDArray[np.int64]) -> NDArray[np.int64]:
    """Levels from CUT_OFF on right behind the others."""
    late = level >= CUT_OFF
    return level - np.where(late, CUT_OFF - 1 - level[~late].max(initial=0), 0)


def _ahead(after: NDArray[np.int32], switch: Numbers, column: Numbers) -> NDArray[np.int64]:
    """int64[n]: which of these cells the packets of each meet next; n where they meet none."""
    none = len(switch)
    number = np.full(after.shape, none)
    number[switch, column] = np.arange(none)
    at, ahead = switch, np.full(none, none)
    for _ in range(MOST_HOPS):
        next_switch = after[at, column]
        moving = (ahead == none) & (next_switch >= 0) & (next_switch != at)
        if not moving.any():
            break
        at = np.where(moving, next_switch, at)
        ahead = np.where(moving, number[at, column], ahead)
    return ahead


def _places(rows: NDArray[np.int64], switch: Numbers, prefix: Numbers) -> NDArray[np.int64]:
    """int64[n]: where the row of each switch and prefix is in `rows`, GONE if nowhere."""
    width = int(rows.max()) + 2
    keys, wanted = rows[:, 0] * width + rows[:, 1], switch * width + prefix
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[place] == wanted) & (prefix >= 0) & (prefix < width), place, GONE)


def _egress(routes: Routes, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the class that each row (switch, prefix) leads to; GONE where it is not there."""
    row, present = rows_of(routes, rows[:, 0], rows[:, 1])
    egress = routes.egress[rows[:, 0], row]
    return np.where(present & (egress != no_route(egress)), egress.astype(np.int64), GONE)
