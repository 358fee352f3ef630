"""A chart of a move between two builds: a grid of switches for each round.

`picture.draw_chart` calls `move_chart`. The shade of a switch says how many of its OpenFlow rows
and groups change in the round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.chart import Chart, Grid, chart_of_grids
from compilers.drawing.link_matrix import SwitchGroups
from compilers.tables.build import Build
from compilers.update.move_plan import PREPARE, Update, plan
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import changes_by_round

MOST_COLUMNS = 64
"""The most switches in a row of a grid."""
ROUND_PIXELS = 260
"""About how many pixels a grid is wide or high."""


def move_chart(old: Build, new: Build) -> Chart:
    """A chart of what each round of a move changes at each switch of the new build.

    Args:
        old: the build that switches hold.
        new: the build that they will hold.

    Raises:
        InputError: no order of rows is safe.
    """
    update = plan(old, new)
    changes = changes_of(update)
    groups = SwitchGroups.of(new)
    places = _places(groups)
    first_row = places.first_row
    rows, columns = int(first_row[-1]), int(places.column.max()) + 1
    size = max(4, min(20, ROUND_PIXELS // max(rows, columns)))
    # Lines between the groups, unless each group is a single row.
    bounds = first_row[1:-1].tolist() if (np.diff(first_row) > 1).any() else ()
    grids = []
    for number in range(update.rounds):
        changes_of_switch = changes[:, number]
        count, switches = int(changes_of_switch.sum()), int(np.count_nonzero(changes_of_switch))
        note = f"{count:,} changes, {switches:,} of {len(changes_of_switch):,} switches"
        title = f"round {number + 1}: {_purpose(update, number)}"
        grid = Grid(
            title=title,
            note=note,
            row=places.row,
            column=places.column,
            value=changes_of_switch,
            size=size,
            rows=rows,
            columns=columns,
            row_bounds=bounds,
        )
        grids.append(grid)
    parts = [f"{update.rounds} rounds, each confirmed before the next"]
    if update.is_in_place:
        parts.append("rows changed one by one")
    else:
        parts.append("old and new rows both there until the last round")
    if removed := int(np.count_nonzero(update.nodes.new_vertex < 0)):
        parts.append(f"{removed} switches that the new build has not are left as they are")
    name = new.name if new.name == old.name else f"{old.name} to {new.name}"
    return chart_of_grids(
        f"{name}: the rounds of a move",
        subtitle=" · ".join(parts),
        grids=grids,
        names=groups.names,
        middles=(first_row[:-1] + first_row[1:]) / 2,  # of each group, where its name stands
        words="rows and groups added, changed or removed at a switch",
    )


def changes_of(update: Update) -> NDArray[np.int64]:
    """How many rows and groups change at each switch of the new build, int64[S, rounds]."""
    programs, nodes = SwitchPrograms(update), update.nodes
    changes = np.zeros((update.new.topology.graph.order, update.rounds), np.int64)
    for node, vertex in enumerate(nodes.new_vertex.tolist()):
        if vertex >= 0:
            changes[vertex] = changes_by_round(programs.slots(node), update.rounds)
    return changes


def _purpose(update: Update, number: int) -> str:
    """What a round does, in words.

    The first round adds what the later ones lead to. Then rows of routes change, level by level.
    The last round sets the alternates, and removes the old rows and groups.
    """
    if number == PREPARE:
        return "new rows and groups added"
    if number == update.last_round:
        return "alternates, the old out"
    return f"routes, level {number}"


class _Places(NamedTuple):
    """Where S switches are in a grid."""

    row: NDArray[np.int64]
    """int64[S], the row of each switch."""
    column: NDArray[np.int64]
    """int64[S], the column of each switch."""
    first_row: NDArray[np.int64]
    """int64[groups + 1], the first row of each group, and the number of rows."""


def _places(groups: SwitchGroups) -> _Places:
    """Place the switches of each group in rows of at most MOST_COLUMNS."""
    rows = np.maximum(1, -(-groups.sizes // MOST_COLUMNS))  # rounded up
    first = np.concatenate(([0], np.cumsum(rows)))
    line, column = np.divmod(groups.position, MOST_COLUMNS)
    return _Places(first[groups.group] + line, column, first)
