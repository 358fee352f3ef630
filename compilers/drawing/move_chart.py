"""Chart of a move: a grid of switches for each round, shaded by what changes at each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.chart import Chart, Grid, of_grids
from compilers.drawing.link_matrix import SwitchGroups
from compilers.tables.build import Build
from compilers.update.move_plan import PREPARE, Update, plan
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import changes_by_round

MOST_COLUMNS = 64
ROUND_PIXELS = 260


def move_chart(old: Build, new: Build) -> Chart:
    """What each round of a move changes at each switch of the new build.

    Raises:
        InputError: no order of rows is safe.
    """
    update = plan(old, new)
    changes = changes_of(update)
    groups = SwitchGroups.of(new)
    row, column, first = _places(groups)
    high, wide = int(first[-1]), int(column.max()) + 1
    size = max(4, min(20, ROUND_PIXELS // max(high, wide)))
    grids = []
    for number in range(update.rounds):
        changed = changes[:, number]
        count, switches = int(changed.sum()), int(np.count_nonzero(changed))
        note = f"{count:,} changes, {switches:,} of {len(changed):,} switches"
        bounds = first[1:-1].tolist() if (np.diff(first) > 1).any() else ()
        title = f"round {number + 1}: {_purpose(update, number)}"
        grids.append(Grid(title, note, row, column, changed, size, high, wide, bounds))
    parts = [f"{update.rounds} rounds, each confirmed before the next"]
    both = "old and new rows both there until the last round"
    parts.append("rows changed one by one" if update.in_place else both)
    if left := int(np.count_nonzero(update.nodes.after < 0)):
        parts.append(f"{left} switches that the new build has not are left as they are")
    name = new.name if new.name == old.name else f"{old.name} to {new.name}"
    return of_grids(
        f"{name}: the rounds of a move",
        " · ".join(parts),
        grids,
        groups.names,
        (first[:-1] + first[1:]) / 2,
        "rows and groups added, changed or removed at a switch",
    )


def changes_of(update: Update) -> NDArray[np.int64]:
    """int64[S, rounds]: rows and groups that change at each switch of the new build."""
    programs, nodes = SwitchPrograms(update), update.nodes
    changes = np.zeros((update.new.topology.graph.order, update.rounds), np.int64)
    for node, vertex in enumerate(nodes.after.tolist()):
        if vertex >= 0:
            changes[vertex] = changes_by_round(programs.slots(node), update.rounds)
    return changes


def _purpose(update: Update, number: int) -> str:
    """What a round is for."""
    if number == PREPARE:
        return "new rows and groups added"
    if number == update.last:
        return "alternates, the old out"
    return f"routes, level {number}"


def _places(groups: SwitchGroups) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """int64[S] twice, row and column of each switch; int64[groups + 1], the first row of each."""
    rows = np.maximum(1, -(-groups.sizes // MOST_COLUMNS))
    first = np.concatenate(([0], np.cumsum(rows)))
    line, column = np.divmod(groups.position, MOST_COLUMNS)
    return first[groups.group] + line, column, first
