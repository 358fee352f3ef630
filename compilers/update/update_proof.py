"""Prove a move by walks: packets are followed in states that the fabric passes through.

Within a round some switches have carried it out, and the others have not. There are too many such
mixtures to walk all of them. `prove` walks

- the state at the end of each round but the last. After the last round the fabric is the new build,
  which has a proof of its own;
- some random mixtures within each of these rounds. Round 0 is left out, because no packet uses what
  it adds.

In each state it walks the packets between all switches that both builds have (`MoveCells.walk`). A
*cell* is a switch and a destination. Its *level* (`compilers.update.order`) is the round in which
its row changes. The walk also checks two invariants of every cell:

- a cell with a changed row leads to cells that have their new rows;
- no packet is sent back over its ingress link.

If both hold, the mixtures that are not walked deliver too: a packet gets nearer by the old paths
until it arrives or meets a new row, and from there nearer by the new paths (docs/how-to/move.md has
the proof).

In a build with intermediates, a packet takes one path to its intermediate and another from there:
the *legs*. Packets get intermediates only while all rows are old, or all are new. So in a mixture
it is enough to walk each leg by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import LOST
from compilers.update.move_cells import UPDATE_EXAMPLES, MoveCells, UpdateFault
from compilers.update.move_plan import Update
from compilers.update.order import CellLevels, levels

Progress = Callable[[int, int], None]
"""Called with how many destinations are done, and how many there are. Each switch is one."""


@dataclass(frozen=True, slots=True)
class MoveProof:
    """The result of walking the states of a move.

    If a build has intermediates, a path is a leg.
    """

    states: int
    """How many states were walked: ends of rounds, and mixtures within a round."""
    pairs: int
    """How many ordered pairs of switches were walked in each state."""
    max_hops: int
    """The number of links of the longest path in any state, never more than `hop_bound`."""
    hop_bound: int
    """The number of links of the longest old path and of the longest new path together."""
    faults: tuple[UpdateFault, ...]
    """The first few packets that do not arrive."""


def prove(
    update: Update, mixtures: int = 2, seed: int = 1, progress: Progress | None = None
) -> MoveProof:
    """Walk the end of every round but the last, and some mixtures within each round of routes.

    Args:
        update: the move.
        mixtures: how many mixtures are walked in each round.
        seed: chooses the switches of the mixtures.
        progress: called with the number of destinations that are done, and of all.
    """
    states = list(_walked_states(update, mixtures, seed))
    pairs = max_hops = bound = done = 0
    faults: list[UpdateFault] = []
    for block, cells in _cells_by_block(update):
        if cells is not None:
            bound = max(bound, cells.hop_bound)
            pairs += int(cells.has_path.sum())
            for state in states:
                walked = cells.walk(state.carried_out)
                max_hops = max(max_hops, walked.max_hops)
                if len(faults) < UPDATE_EXAMPLES:
                    faults += cells.faults(state.round, walked.cells_of_fault)
        done += len(block.destinations)
        if progress:
            progress(done, update.new.tables.switches)
    return MoveProof(
        states=len(states),
        pairs=pairs,
        max_hops=max_hops,
        hop_bound=bound,
        faults=tuple(faults[:UPDATE_EXAMPLES]),
    )


def hops_between(update: Update, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The number of links between switches of both builds in a state of a move.

    Args:
        update: the move.
        carried_out: uint8[M], the last round that each switch has carried out.

    Returns:
        int8[M, M], by source and destination; LOST where no path leads there.
    """
    switches = len(carried_out)
    hops = np.full((switches, switches), LOST, np.int8)
    for _, cells in _cells_by_block(update):
        if cells is not None:
            hops[:, cells.destination_node] = cells.hops(carried_out)
    np.fill_diagonal(hops, 0)
    return hops


def _cells_by_block(update: Update) -> Iterator[tuple[CellLevels, MoveCells | None]]:
    """Yield the levels of all destinations of the new build, a block at a time, with the cells.

    The cells are those of destinations that both builds have; None if the block has no such
    destination.
    """
    difference = update.difference
    destinations = difference.nodes.destinations(difference.old, difference.new)
    for block in levels(difference.new, difference.fibs, difference.compare_cells):
        in_both = np.isin(block.destinations, destinations)
        yield block, MoveCells.of(update, block, in_both) if in_both.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class MoveState:
    """A state of M switches during a move."""

    round: int
    """The round that the state is within, or at the end of."""
    carried_out: NDArray[np.uint8]
    """uint8[M], the last round that each switch has carried out."""


def _walked_states(update: Update, mixtures: int, seed: int) -> Iterator[MoveState]:
    """Yield the end of round 0, then mixtures of each further round but the last, and its end."""
    switches = len(update.nodes.datapath_id)
    random = np.random.default_rng(seed)
    yield MoveState(0, np.zeros(switches, np.uint8))
    for round in range(1, update.last_round):
        for _ in range(mixtures):
            # Each switch has carried out this round, or only the round before.
            is_late = random.integers(2, size=switches)
            yield MoveState(round, (round - is_late).astype(np.uint8))
        yield MoveState(round, np.full(switches, round, np.uint8))
