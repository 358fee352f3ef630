"""Prove by walks that every state in which a fabric is during a move delivers all packets.

A *state* is the end of a round, or a mixture within a round: some switches have carried it out, and
the others have not. `prove` walks in every state every packet between switches that both builds
have (`move_cells`). A *cell* is a switch and a destination. On the way `prove` checks two
invariants per cell: a cell with a new row leads to a cell with a new row, and no packet is sent
back over its ingress link. If both hold, every other mixture delivers too, because a packet gets
nearer by the old paths until it arrives or meets a new row, and from there nearer by the new paths
(docs/how-to/move.md has the proof).

The *level* of a cell (`compilers.update.order`) says in which round it changes: it is the number of
cells on its new path, itself included, that differ from the old tables.

Packets get an intermediate only while all rows are old, or all are new. So in a build with
intermediates the legs of their paths are walked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import LOST
from compilers.update.move_cells import UPDATE_EXAMPLES, Cells, UpdateFault
from compilers.update.move_plan import Update
from compilers.update.order import levels

Progress = Callable[[int, int], None]
"""Called with how many destinations are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of walking all states.

    If packets go by intermediates, lengths are those of a leg.
    """

    states: int
    """How many states were walked: those between rounds, and mixtures within a round."""
    pairs: int
    """How many ordered pairs of switches were walked in each state."""
    max_hops: int
    """The links of the longest path, never more than `bound`."""
    bound: int
    """The links of the longest old and the longest new path together."""
    faults: tuple[UpdateFault, ...]
    """The first few packets that do not arrive."""


def prove(
    update: Update, mixtures: int = 2, seed: int = 1, progress: Progress | None = None
) -> Proof:
    """Walk the end of every round, and some mixtures within each round of routes.

    Args:
        update: the move.
        mixtures: how many mixtures are walked in each round.
        seed: chooses the switches of the mixtures.
        progress: called with destinations done and all.
    """
    difference = update.difference
    common = difference.nodes.destinations(difference.old, difference.new)
    states = list(_move_states(update, mixtures, seed))
    pairs = longest = bound = done = 0
    faults: list[UpdateFault] = []
    for block in levels(difference.new, difference.fibs, difference.compare_cells):
        in_both = np.isin(block.destinations, common)
        if in_both.any():
            cells = Cells.of(update, block, in_both)
            bound = max(bound, cells.bound)
            pairs += int(cells.sources.sum())
            for state in states:
                walked = cells.walk(state.carried_out)
                longest = max(longest, walked.longest)
                if len(faults) < UPDATE_EXAMPLES:
                    faults += cells.faults(state.round, walked.cells_of_fault)
        done += len(block.destinations)
        if progress:
            progress(done, difference.new.tables.switches)
    return Proof(
        states=len(states),
        pairs=pairs,
        max_hops=longest,
        bound=bound,
        faults=tuple(faults[:UPDATE_EXAMPLES]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class MoveState:
    """A state of M switches during a move."""

    round: int
    """The round that the state is within, or at the end of."""
    carried_out: NDArray[np.uint8]
    """uint8[M], the last round that each switch has carried out."""


def _move_states(update: Update, mixtures: int, seed: int) -> Iterator[MoveState]:
    """The states that are walked: some random mixtures of each round, and its end."""
    count = len(update.nodes.datapath_id)
    random = np.random.default_rng(seed)
    yield MoveState(0, np.zeros(count, np.uint8))
    for round in range(1, update.last):
        for _ in range(mixtures):
            yield MoveState(round, (round - random.integers(2, size=count)).astype(np.uint8))
        yield MoveState(round, np.full(count, round, np.uint8))


def hops_between(update: Update, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The links between switches of both builds in a state of a move.

    Args:
        update: the move.
        carried_out: uint8[M], the last round that each switch has carried out.

    Returns:
        int8[M, M], by source and destination; LOST where no path leads there.
    """
    difference = update.difference
    common, count = difference.nodes.destinations(difference.old, difference.new), len(carried_out)
    table = np.full((count, count), LOST, np.int8)
    for block in levels(difference.new, difference.fibs, difference.compare_cells):
        in_both = np.isin(block.destinations, common)
        if in_both.any():
            cells = Cells.of(update, block, in_both)
            table[:, cells.destination_place] = cells.hops(carried_out)
    np.fill_diagonal(table, 0)
    return table
