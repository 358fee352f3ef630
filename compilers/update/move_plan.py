"""Plan a move from one build to another: the round in which each row and class changes.

`plan` compares the builds (`difference`), takes the order of route rows from `order`, and returns
an `Update`. It sends nothing. `programs` turns an update into messages of OpenFlow, `router_move`
into routes of routers, and `update_proof` walks every state on the way.

A *cell* is a switch and a destination. Its *level* is the round in which its row may change. An
*aggregate* is the row of a prefix that covers several destinations. In shapes, S is the number of
switches of the new build, R of the rows of a switch, M of the switches that either build has, and C
of the classes of a switch.
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
from compilers.update.matching import Matching, find_numbers
from compilers.update.order import Levels, NoOrder, levels, write_rounds
from inventory.problems import InputError

PREPARE = 0
"""The round that adds what no packet uses yet to what switches hold."""
NO_ROUND = -1
"""In place of a round, or of a cell: there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class MergedCells:
    """The n cells that lose their own row to an aggregate."""

    cell: NDArray[np.int64]
    """int64[n], ascending, each cell as switch · S + destination."""
    round: NDArray[np.uint8]
    """uint8[n], the round in which each cell loses its row."""

    @classmethod
    def joined(cls, blocks: Sequence[MergedCells]) -> MergedCells:
        """The cells of several blocks of destinations, in ascending order."""
        if not blocks:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.uint8))
        cell = np.concatenate([block.cell for block in blocks])
        order = np.argsort(cell)
        return cls(cell[order], np.concatenate([block.round for block in blocks])[order])


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """A move from one build to another, in rounds 0 to `last`."""

    difference: TableDifference
    """The rows and classes that change."""
    row: NDArray[np.uint8]
    """uint8[S, R], the round in which every route row of the new tables changes."""
    merged: MergedCells
    """The cells that lose their own row to an aggregate."""
    affected: NDArray[np.bool_]
    """bool[M, C], the classes whose packets from hosts keep to the minimal port until the last
    round; all False if rows do not change in place."""
    last: int
    """The number of the last round."""
    pauses: bool = False
    """Whether hosts' packets get no intermediate between the first round and the last, as both
    builds have intermediates, and rows by intermediates change."""
    swaps: bool = False
    """Whether one build marks packets, and the other has intermediates. Both are written into the
    MAC address, which means the one before round `last` - 1 and the other from then on. In that
    round no packet has such an address."""

    @property
    def old(self) -> Build:
        """The build that switches hold."""
        return self.difference.old

    @property
    def new(self) -> Build:
        """The build that switches will hold."""
        return self.difference.new

    @property
    def nodes(self) -> Matching:
        """The switches of both builds."""
        return self.difference.nodes

    @property
    def in_place(self) -> bool:
        """Whether switches keep the generation of their class numbers."""
        return self.difference.in_place

    @property
    def spread_round(self) -> int:
        """The round in which switches learn to spread the new tables' marked packets.

        A switch spreads a marked packet: it sends it over a random link. All route rows are new
        then, and no host's packet is marked by the new tables yet.
        """
        return self.last - 1 if self.new.forwarding.marks else self.last

    @property
    def carried_round(self) -> int:
        """The round in which switches get the new rows by intermediates.

        No packet carries an intermediate then.
        """
        return self.last - 1 if self.pauses or self.swaps else PREPARE

    def forgetting_round(self, back: bool = False) -> int | None:
        """The round in which switches forget what one of the builds writes into packets.

        They forget the meaning of its marks, or of its intermediates.

        Args:
            back: whether the move is undone: then they forget what the new build writes, when this
                round is undone. Else they forget what the old build writes.

        Returns:
            The round; None if the other build writes the same.
        """
        before, after = self.old.forwarding, self.new.forwarding
        if back:
            before, after = after, before
        forgets_marks = before.marks and not after.marks
        forgets_intermediates = before.intermediates and not after.intermediates
        if not (forgets_marks or forgets_intermediates):
            return None
        if self.swaps:
            return self.last - 1
        return PREPARE if back else self.last

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return self.last + 1

    def change_rounds(self, vertex: int, prefixes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rounds in which rows of the new tables change at a switch.

        Args:
            vertex: the switch, in the new build.
            prefixes: int64[n], prefix numbers of its rows in the new build.

        Returns:
            int64[n].
        """
        column = np.searchsorted(self.new.tables.routes.prefixes(vertex), prefixes)
        rounds: NDArray[np.int64] = self.row[vertex, column].astype(np.int64)
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
        merged = self.merged
        rounds = np.full(len(prefixes), self.last)
        switches = self.new.tables.switches
        if not len(prefixes) or not len(merged.cell):
            return rounds
        old_prefix = self.nodes.prefix6 if v6 else self.nodes.prefix
        # By old prefix number the destination that has this prefix in the new build.
        highest = int(max(old_prefix.max(initial=0), prefixes.max()))
        destination_of = np.full(highest + 1, NO_ROUND)
        in_old = np.flatnonzero(old_prefix[:switches] >= 0)
        destination_of[old_prefix[in_old]] = in_old
        destination = destination_of[prefixes]
        cell = np.where(destination >= 0, vertex * switches + destination, NO_ROUND)
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
    row = np.zeros(new.tables.routes.egress.shape, np.uint8)
    # bool[S, C], the classes to which rows that change lead.
    enters = np.zeros(new.tables.classes.port.shape[:2], np.bool_)
    deepest = 0  # the highest level of all
    merged: list[MergedCells] = []
    for block in _block_levels(difference):
        write_rounds(new, difference.fib, block, row)
        merged.append(_merged_cells(block, new.tables.switches))
        if not block.changed.any():
            continue
        highest_cell = int(block.cells[block.changed].max())
        highest_aggregate = int(block.aggregate_levels.max(initial=0))
        deepest = max(deepest, highest_cell, highest_aggregate)
        if difference.in_place:
            egress = difference.fib.egress(block.destinations)
            switch, column = np.nonzero(block.changed & (egress < no_route(egress)))
            enters[switch, egress[switch, column]] = True
    pauses = _has_pause(difference, has_levels=deepest > 0)
    swaps = (old.forwarding.marks and new.forwarding.intermediates) or (
        old.forwarding.intermediates and new.forwarding.marks
    )
    one_more_round = new.forwarding.marks or pauses or swaps
    return Update(
        difference=difference,
        row=row,
        merged=MergedCells.joined(merged),
        affected=_affected_classes(difference, enters, has_levels=deepest > 0),
        last=deepest + (2 if one_more_round else 1),
        pauses=pauses,
        swaps=swaps,
    )


def _affected_classes(
    difference: TableDifference, enters: NDArray[np.bool_], has_levels: bool
) -> NDArray[np.bool_]:
    """The classes whose packets from hosts keep to the minimal port until the last round.

    Args:
        difference: the two builds.
        enters: bool[S, C], the classes to which rows that change lead.
        has_levels: whether any row changes.

    Returns:
        bool[M, C].
    """
    if difference.in_place and has_levels:
        at_nodes: NDArray[np.bool_] = enters[np.maximum(difference.nodes.new_vertex, 0)]
        return difference.changed_classes() | at_nodes
    return np.zeros((len(difference.nodes.datapath_id), enters.shape[1]), np.bool_)


def _has_pause(difference: TableDifference, has_levels: bool) -> bool:
    """Whether hosts' packets get no intermediate during the move (`Update.pauses`).

    Args:
        difference: the two builds.
        has_levels: whether any row changes.
    """
    if not (difference.old.forwarding.intermediates and difference.new.forwarding.intermediates):
        return False
    return has_levels or not difference.in_place or _intermediates_change(difference)


def _intermediates_change(difference: TableDifference) -> bool:
    """Whether other intermediates, or other repairs, change rows by intermediates."""
    old, new, nodes = difference.old, difference.new, difference.nodes
    before, after = nodes.node_of_old[intermediates(old)], nodes.node_of_new[intermediates(new)]
    repairs_change = old.forwarding.repairs != new.forwarding.repairs
    return repairs_change or not np.array_equal(before, after)


def _block_levels(difference: TableDifference) -> Iterator[Levels]:
    """The levels of all cells of the new tables.

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


def _merged_cells(levels: Levels, switches: int) -> MergedCells:
    """The cells that lose their own row to an aggregate.

    Args:
        levels: of a block of destinations.
        switches: the number of switches.
    """
    if not len(levels.aggregates):
        return MergedCells.joined([])
    switch, column = np.nonzero(levels.merged & levels.changed)
    cell = switch * switches + levels.destinations[column]
    return MergedCells(cell, levels.cells[switch, column])
