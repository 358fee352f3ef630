"""Plan a move from one build to another: the round in which each row and class changes.

`plan` compares the builds (`difference`), takes the order of route rows from `order`, and returns
an `Update`. It sends nothing. `programs` turns an update into messages of OpenFlow, `router_move`
into routes of routers, and `update_proof` walks states on the way.

A *cell* is a switch and a destination. Its *level* is the round in which its row may change. An
*aggregate* is the row of a prefix that covers several destinations. The rounds of a move are

| round | what changes |
|---|---|
| 0 (`PREPARE`) | rows and groups that no packet uses yet are added |
| 1 to the highest level | the route rows of each level |
| one more round, in some moves | rows for marked packets, and rows by intermediates |
| `Update.last_round` | hosts' packets get their alternates back; what nothing uses is removed |

In an OpenFlow switch, the rows of routes and the groups name classes by numbers of one of two
*generations*, two ranges of numbers. A move is *in place* if the new tables keep the generation of
the old ones: then only rows and classes that differ change. Otherwise all numbers change, so every
row and group changes (`difference` has the conditions).

In shapes, S is the number of switches of the new build, R of the rows of a switch, M of the
switches that either build has, and C of the classes of a switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.update.difference import TableDifference
from compilers.update.matching import SwitchMatching, find_numbers
from compilers.update.order import CellLevels, NoOrder, levels, write_rounds
from inventory.problems import InputError

PREPARE = 0
"""The round that adds what no packet uses yet to what switches hold."""
NO_CELL = -1
"""In place of a destination or of a cell: there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class MergedCells:
    """The n cells that lose their own row to an aggregate."""

    cell: NDArray[np.int64]
    """int64[n], ascending, each cell as switch · S + destination."""
    round: NDArray[np.uint8]
    """uint8[n], the round in which each cell loses its row."""

    @classmethod
    def concatenate(cls, blocks: Sequence[MergedCells]) -> MergedCells:
        """The cells of several blocks of destinations, in ascending order."""
        if not blocks:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.uint8))
        cell = np.concatenate([block.cell for block in blocks])
        order = np.argsort(cell)
        return cls(cell[order], np.concatenate([block.round for block in blocks])[order])


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """A move from one build to another, in rounds 0 to `last_round`.

    What builds write into packets, marks or intermediates, decides what happens besides routes:

    | old build writes | new build writes | flag | one more round |
    |---|---|---|---|
    | intermediates | intermediates | `pauses_intermediates`, if rows change | if it is set |
    | marks | intermediates | `swaps_mac_meaning` | yes |
    | intermediates | marks | `swaps_mac_meaning` | yes |
    | marks or nothing | marks | none | yes |
    | nothing | intermediates | none | no |
    | anything | nothing | none | no |
    """

    difference: TableDifference
    """The rows and classes that change."""
    row_round: NDArray[np.uint8]
    """uint8[S, R], the round in which every route row of the new tables changes."""
    merged_cells: MergedCells
    """The cells that lose their own row to an aggregate."""
    keeps_minimal: NDArray[np.bool_]
    """bool[M, C], the classes whose packets from hosts keep to the minimal port until the last
    round. All are False if no row changes, because then the paths behind alternates are the same
    before and after; or if the move is not in place, because then hosts' packets keep to the old
    rows of their classes until the last round, which brings the new ones."""
    last_round: int
    """The number of the last round, in which hosts' packets get the new alternates."""
    pauses_intermediates: bool = False
    """Whether hosts' packets get no intermediate between the first round and the last, because rows
    by intermediates change. No packet may carry an intermediate then."""
    swaps_mac_meaning: bool = False
    """Whether a MAC address means a mark in one build, and an intermediate in the other. It gets
    its new meaning in round `last_round` - 1, when no packet has such an address."""

    @property
    def old(self) -> Build:
        """The build that switches hold."""
        return self.difference.old

    @property
    def new(self) -> Build:
        """The build that switches will hold."""
        return self.difference.new

    @property
    def nodes(self) -> SwitchMatching:
        """The switches of both builds."""
        return self.difference.nodes

    @property
    def is_in_place(self) -> bool:
        """Whether switches keep the generation of their class numbers."""
        return self.difference.is_in_place

    @property
    def learn_marks_round(self) -> int:
        """The round in which switches learn to spread the packets that the new tables mark.

        To spread a packet is to send it over a random link. All route rows are new by then, and the
        new tables mark no packet before the last round.
        """
        return self.last_round - 1 if self.new.forwarding.marks else self.last_round

    @property
    def learn_intermediates_round(self) -> int:
        """The round in which switches learn the new rows by intermediates.

        No packet carries an intermediate then.
        """
        has_round = self.pauses_intermediates or self.swaps_mac_meaning
        return self.last_round - 1 if has_round else PREPARE

    def forget_round(self, back: bool = False) -> int | None:
        """The round in which switches forget the meaning of marks or intermediates in packets.

        On the way forth they forget those of the old build. On the way back, when the move is
        undone, they forget those of the new build, in the moment in which this round is undone.

        Args:
            back: whether the move is undone.

        Returns:
            The round; None if the build to which the fabric moves writes the same into packets.
        """
        leaves, enters = self.old.forwarding, self.new.forwarding
        if back:
            leaves, enters = enters, leaves
        forgets_marks = leaves.marks and not enters.marks
        forgets_intermediates = leaves.intermediates and not enters.intermediates
        if not (forgets_marks or forgets_intermediates):
            return None
        if self.swaps_mac_meaning:
            return self.last_round - 1
        return PREPARE if back else self.last_round

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return self.last_round + 1

    def change_rounds(self, vertex: int, prefixes: NDArray[np.integer]) -> NDArray[np.int64]:
        """The rounds in which rows of the new tables change at a switch.

        Args:
            vertex: the switch, in the new build.
            prefixes: int[n], prefix numbers of its rows in the new build.

        Returns:
            int64[n].
        """
        column = np.searchsorted(self.new.tables.routes.prefixes(vertex), prefixes)
        rounds: NDArray[np.int64] = self.row_round[vertex, column].astype(np.int64)
        return rounds

    def removal_rounds(
        self, vertex: int, prefixes: NDArray[np.int64], v6: bool
    ) -> NDArray[np.int64]:
        """The rounds in which rows are removed that the new tables of a switch do not have.

        A row that hides the row of an aggregate is removed when the aggregate may serve its
        destination. Other rows are removed in the last round.

        Args:
            vertex: the switch, in the new build.
            prefixes: int64[n], prefix numbers of its rows in the old build.
            v6: whether these are IPv6 prefixes.

        Returns:
            int64[n].
        """
        merged = self.merged_cells
        rounds = np.full(len(prefixes), self.last_round)
        if not len(prefixes) or not len(merged.cell):
            return rounds
        switches = self.new.tables.switches
        # The first prefix numbers of a build are those of its vertices, so of its destinations.
        old_prefix = (self.nodes.old_prefix6 if v6 else self.nodes.old_prefix)[:switches]
        in_old = np.flatnonzero(old_prefix >= 0)
        # By old prefix number, the destination that has this prefix in the new build.
        highest = int(max(old_prefix.max(initial=0), prefixes.max()))
        destination_of = np.full(highest + 1, NO_CELL)
        destination_of[old_prefix[in_old]] = in_old
        destination = destination_of[prefixes]
        cell = np.where(destination >= 0, vertex * switches + destination, NO_CELL)
        index, is_merged = find_numbers(merged.cell, cell)
        return np.where(is_merged, merged.round[index], rounds)


def plan(old: Build, new: Build) -> Update:
    """Plan the rounds that lead from one build to another.

    Args:
        old: the build that every switch holds.
        new: the build that it shall hold.

    Raises:
        InputError: no order of rows is safe.
    """
    difference = TableDifference.of(old, new)
    row_round = np.zeros(new.tables.routes.egress.shape, np.uint8)
    # bool[S, C], the classes to which rows that change lead.
    is_entered = np.zeros(new.tables.classes.port.shape[:2], np.bool_)
    highest_level = 0
    merged: list[MergedCells] = []
    for block in _block_levels(difference):
        write_rounds(new, difference.fib, block, row_round)
        merged.append(_merged_cells(block, new.tables.switches))
        highest_level = max(highest_level, _highest_level(block))
        if difference.is_in_place and block.is_changed.any():
            _note_entered(is_entered, difference, block)
    has_levels = highest_level > 0
    pauses = _pauses_intermediates(difference, has_levels)
    swaps = (old.forwarding.marks and new.forwarding.intermediates) or (
        old.forwarding.intermediates and new.forwarding.marks
    )
    has_one_more_round = new.forwarding.marks or pauses or swaps
    return Update(
        difference=difference,
        row_round=row_round,
        merged_cells=MergedCells.concatenate(merged),
        keeps_minimal=_classes_that_keep_minimal(difference, is_entered, has_levels),
        last_round=highest_level + (2 if has_one_more_round else 1),
        pauses_intermediates=pauses,
        swaps_mac_meaning=swaps,
    )


def _highest_level(block: CellLevels) -> int:
    """The highest level of a row that changes; 0 if none does."""
    if not block.is_changed.any():
        return 0
    return max(
        int(block.cell_levels[block.is_changed].max()), int(block.aggregate_levels.max(initial=0))
    )


def _note_entered(
    is_entered: NDArray[np.bool_], difference: TableDifference, block: CellLevels
) -> None:
    """Note the classes to which the changed rows of a block of destinations lead.

    Args:
        is_entered: bool[S, C], the classes, which are set here.
        difference: the two builds.
        block: the levels of the block.
    """
    egress = difference.fib.egress(block.destinations)
    switch, column = np.nonzero(block.is_changed & (egress < no_route(egress)))
    is_entered[switch, egress[switch, column]] = True


def _classes_that_keep_minimal(
    difference: TableDifference, is_entered: NDArray[np.bool_], has_levels: bool
) -> NDArray[np.bool_]:
    """The classes whose packets from hosts keep to the minimal port (`Update.keeps_minimal`).

    These are the classes that change themselves, and those to which rows that change lead. Their
    alternates are safe only when all rows on the paths behind them are new.

    Args:
        difference: the two builds.
        is_entered: bool[S, C], the classes to which rows that change lead.
        has_levels: whether any row changes.

    Returns:
        bool[M, C].
    """
    if difference.is_in_place and has_levels:
        at_nodes: NDArray[np.bool_] = is_entered[np.maximum(difference.nodes.new_vertex, 0)]
        return difference.changed_classes() | at_nodes
    return np.zeros((len(difference.nodes.datapath_id), is_entered.shape[1]), np.bool_)


def _pauses_intermediates(difference: TableDifference, has_levels: bool) -> bool:
    """Whether hosts' packets get no intermediate during the move.

    Args:
        difference: the two builds.
        has_levels: whether any row changes.
    """
    if not (difference.old.forwarding.intermediates and difference.new.forwarding.intermediates):
        return False
    return has_levels or not difference.is_in_place or _intermediates_change(difference)


def _intermediates_change(difference: TableDifference) -> bool:
    """Whether rows by intermediates change although no route does.

    They do if other switches are intermediates, or if other failures are repaired.
    """
    old, new, nodes = difference.old, difference.new, difference.nodes
    before, after = nodes.node_of_old[intermediates(old)], nodes.node_of_new[intermediates(new)]
    repairs_change = old.forwarding.repairs != new.forwarding.repairs
    return repairs_change or not np.array_equal(before, after)


def _block_levels(difference: TableDifference) -> Iterator[CellLevels]:
    """Yield the levels of all cells of the new tables, a block of destinations at a time.

    Raises:
        InputError: no order of rows is safe.
    """
    try:
        yield from levels(difference.new, difference.fibs, difference.compare_cells)
    except NoOrder as error:
        raise InputError.of(
            required="an order of route rows in which every packet arrives",
            given="aggregates that wait for each other",
            todo="go by a build in between, with fewer links missing",
        ) from error


def _merged_cells(block: CellLevels, switches: int) -> MergedCells:
    """The cells of a block of destinations that lose their own row to an aggregate.

    Args:
        block: the levels of the block.
        switches: the number of switches.
    """
    if not len(block.aggregates):
        return MergedCells.concatenate([])
    switch, column = np.nonzero(block.is_merged & block.is_changed)
    cell = switch * switches + block.destinations[column]
    return MergedCells(cell, block.cell_levels[switch, column])
