"""The proof of an update by walking: every state that the fabric passes through delivers.

A state is one of the borders between rounds, or a mixture inside a round in which each switch has
carried it out or has not. In every state every packet between switches that both builds have is
walked, and two things are looked at on the way, from which the rest follows (docs/how-to/move.md):
a new cell leads to a new one, and no packet is sent back to where it came from. Packets that carry
an intermediate are drawn only while all rows are old, or all are new, so that what is walked there
are their legs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.program import program_of
from compilers.forwarding.rule import DROP, spreads
from compilers.forwarding.walks import minimal_hops
from compilers.tables.build import Build
from compilers.tables.fib import LOST, MOST_HOPS, Fib
from compilers.update.move_plan import NO_ROUND, Update
from compilers.update.order import Levels, levels

Progress = Callable[[int, int], None]
UPDATE_EXAMPLES = 10
NOT_HOME = 2 * MOST_HOPS
"""Links of packets that are not home after as many as are walked."""
NEVER_ARRIVES = 255
"""The level of cells that stay old: those of switches that the new build has not."""


@dataclass(frozen=True, slots=True)
class UpdateFault:
    """A packet that does not arrive in some state of the move."""

    round: int
    """The round after which it is lost."""
    source: str
    """The name of the switch where it begins."""
    destination: str
    """The name of the switch that it is for."""
    what: str
    """What becomes of the packet, in words."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What walking all states gave.

    Where packets go by intermediates, lengths are those of a leg.
    """

    states: int
    """How many states were walked: those between rounds, and mixtures within a round."""
    pairs: int
    """Ordered pairs of switches walked in each state."""
    max_hops: int
    """The links of the longest path, never more than `bound`."""
    bound: int
    """The links of the longest old and the longest new path together."""
    faults: tuple[UpdateFault, ...]
    """The first few packets that do not arrive."""


def prove(
    update: Update, mixtures: int = 2, seed: int = 1, progress: Progress | None = None
) -> Proof:
    """Walk every border, and so many seeded mixtures in each round of routes.

    Args:
        update: what to walk.
        mixtures: how many in each round.
        seed: of the choice of switches.
        progress: called with destinations done and all.
    """
    d = update.difference
    common = d.nodes.destinations(d.old, d.new)
    states = list(_states(update, mixtures, seed))
    pairs = longest = bound = done = 0
    faults: list[UpdateFault] = []
    for block in levels(d.new, d.fibs, d.compare):
        kept = np.isin(block.destinations, common)
        if kept.any():
            cells = Cells.of(update, block, kept)
            bound = max(bound, cells.bound)
            pairs += int(cells.sources.sum())
            for round, carried_out in states:
                hops, wrong = cells.walk(carried_out)
                longest = max(longest, hops)
                if len(faults) < UPDATE_EXAMPLES:
                    faults += cells.faults(round, wrong)[: UPDATE_EXAMPLES - len(faults)]
        done += len(block.destinations)
        if progress:
            progress(done, d.new.tables.switches)
    return Proof(len(states), pairs, longest, bound, tuple(faults))


def _states(update: Update, mixtures: int, seed: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The round of each state and, uint8[M], the last round that each switch has carried out."""
    count = len(update.nodes.datapath_id)
    random = np.random.default_rng(seed)
    yield 0, np.zeros(count, np.uint8)
    for round in range(1, update.last):
        for _ in range(mixtures):
            yield round, (round - random.integers(2, size=count)).astype(np.uint8)
        yield round, np.full(count, round, np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The M switches and D destinations that both builds have."""

    update: Update
    """The rounds of the move."""
    before: NDArray[np.int32]
    """int32[W, M + 1, D], the next switch on W paths by the old tables; the switch itself where it
    delivers, M where it drops packets."""
    after: NDArray[np.int32]
    """int32[W, M + 1, D], the same by the new tables."""
    level: NDArray[np.uint8]
    """uint8[M + 1, D], the level of each cell, as in `Levels`."""
    changed: NDArray[np.bool_]
    """bool[M, D], cells whose next hops change."""
    home: NDArray[np.int64]
    """int64[D], the place of each destination among the M switches."""
    spreads_before: NDArray[np.bool_]
    """bool[M + 1, D], whether the old row of each switch spreads marked packets; empty where none
    are marked."""
    spreads_after: NDArray[np.bool_]
    """bool[M + 1, D], whether the new row does."""
    sources: NDArray[np.bool_]
    """bool[M, D], pairs that have a path both before and after."""
    bound: int
    """The links of the longest old and the longest new path together."""

    @classmethod
    def of(cls, update: Update, block: Levels, kept: NDArray[np.bool_]) -> Cells:
        """The cells of some destinations."""
        d, n = update.difference, update.nodes
        new, count = block.destinations[kept], len(n.datapath_id)
        old = n.prefix[new]
        before, after = (
            np.stack([_at_nodes(w.next_switch(ends), *places, count) for w in fibs])
            for fibs, ends, places in (
                (d.fibs_before, old, (n.before, n.node_before)),
                (d.fibs, new, (n.after, n.node_after)),
            )
        )
        level = np.full(before.shape[1:], NEVER_ARRIVES, np.uint8)
        level[:count][n.after >= 0] = block.cells[:, kept][n.after[n.after >= 0]]
        changed = block.changed[:, kept][n.after] & (n.after >= 0)[:, None]
        sources, bound = n.both[:, None] & np.ones(len(new), np.bool_), 0
        for fib, ends, vertex in ((d.fib_before, old, n.before), (d.fib, new, n.after)):
            hops = minimal_hops(fib, ends)[np.maximum(vertex, 0)]
            sources &= hops > 0
            bound += int(hops[n.both].max(initial=0))
        spreads = (
            _spreading(d.old, d.fib_before, old, n.before),
            _spreading(d.new, d.fib, new, n.after),
        )
        home = n.node_after[new]
        return cls(update, before, after, level, changed, home, *spreads, sources, bound)

    def walk(self, carried_out: NDArray[np.uint8]) -> tuple[int, dict[str, NDArray[np.bool_]]]:
        """The longest path, and what is wrong at which cells, bool[M, D].

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        count = len(carried_out)
        renewed, step, flat, away = self._steps(carried_out)
        here, ahead = np.arange(count)[:, None], flat[:, :count]
        open_cell = self.changed & renewed[:count] & (away & ~renewed.take(ahead)).any(axis=0)
        returned = np.zeros(self.changed.shape, np.bool_)
        for next_switch in step:
            returned |= (away & (next_switch.take(ahead) == here)).any(axis=0)
        hops, lost = self._follow(flat)
        arrived = self.sources & ~lost
        wrong = {
            "is not delivered": lost,
            "is sent back to where it came from": returned,
            "meets an old row behind a new one": open_cell,
            "is sent back by where it was spread to": self._spread_back(renewed, step),
        }
        longest = int(hops[arrived].max(initial=0))
        return longest, {what: self.sources & where for what, where in wrong.items()}

    def hops(self, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
        """int8[M, D]: links of each pair's path in a state; LOST where there is none.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        hops, lost = self._follow(self._steps(carried_out)[2])
        return np.where(self.sources & ~lost, hops, LOST).astype(np.int8)

    def _steps(self, carried_out: NDArray[np.uint8]) -> tuple[NDArray[Any], ...]:
        """bool[M + 1, D], cells that are new; [W, M + 1, D], where each leads, in the flat table,
        too; bool[W, M, D], whether away.
        """
        count, width = len(carried_out), len(self.home)
        renewed = np.zeros(self.level.shape, np.bool_)
        renewed[:count] = self.level[:count] <= carried_out[:, None]
        paths = max(len(self.before), len(self.after))
        before, after = (side[np.arange(paths) % len(side)] for side in (self.before, self.after))
        step = np.where(renewed, after, before)
        flat = step.astype(np.int64) * width + np.arange(width)
        away = (step[:, :count] != np.arange(count)[:, None]) & (step[:, :count] < count)
        return renewed, step, flat, away

    def _spread_back(
        self, renewed: NDArray[np.bool_], step: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """bool[M, D]: cells that lead to a switch which spreads marked packets for it, to them too.

        It does so by an old row with the old tables, by a new one once all rows are new.
        """
        count, sent_back = len(self.level) - 1, np.zeros(self.changed.shape, np.bool_)
        fresh = bool(renewed[:count][self.sources].all())
        for spreading, new in ((self.spreads_before, False), (self.spreads_after, True)):
            if len(spreading) and (fresh or not new):
                column = np.arange(step.shape[2])
                sent_back |= (spreading & (renewed == new))[step[:, :count], column].any(axis=0)
        return sent_back

    def _follow(self, flat: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """uint8[M, D] and bool[M, D]: the most links that packets take, and which may be lost."""
        count, width = flat.shape[1] - 1, flat.shape[2]
        hops = np.full(flat.shape[1:], NOT_HOME, np.uint8)
        column = np.arange(width)
        delivers = (flat[:, self.home, column] == self.home * width + column).all(axis=0)
        hops[self.home[delivers], column[delivers]] = 0
        for _ in range(self.bound):
            most = hops.take(flat[0])
            for path in flat[1:]:
                np.maximum(most, hops.take(path), out=most)
            most += most < NOT_HOME
            most[self.home[delivers], column[delivers]] = 0
            hops = most
        return hops[:count], hops[:count] == NOT_HOME

    def faults(self, round: int, wrong: dict[str, NDArray[np.bool_]]) -> list[UpdateFault]:
        """Examples of what is wrong in a state."""
        n, examples = self.update.nodes, []
        names = self.update.new.wiring.names
        for what, where in wrong.items():
            for node, column in np.argwhere(where)[:UPDATE_EXAMPLES].tolist():
                ends = (names[n.after[node]], names[n.after[self.home[column]]])
                examples.append(UpdateFault(round, *ends, what))
        return examples


def hops_between(update: Update, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
    """int8[M, M]: links between switches of both builds in a state; LOST where no path leads there.

    Args:
        update: the move.
        carried_out: uint8[M], the last round that each switch has carried out.
    """
    d = update.difference
    common, count = d.nodes.destinations(d.old, d.new), len(carried_out)
    table = np.full((count, count), LOST, np.int8)
    for block in levels(d.new, d.fibs, d.compare):
        kept = np.isin(block.destinations, common)
        if kept.any():
            cells = Cells.of(update, block, kept)
            table[:, cells.home] = cells.hops(carried_out)
    np.fill_diagonal(table, 0)
    return table


def _spreading(
    build: Build, fib: Fib, destinations: NDArray[np.int64], vertex: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool[M + 1, D]: which switches get marked packets and spread them, by their places."""
    if not build.forwarding.marks:
        return np.zeros((0, len(destinations)), np.bool_)
    far, ends, program = build.wiring.far, build.topology.endpoints, program_of(build, 0)
    of_class = [spreads(program, c) for c in (*range(build.tables.classes.port.shape[1]), DROP)]
    spreading = np.array(of_class)[np.minimum(fib.egress(destinations), len(of_class) - 1)]
    spreading &= np.any(ends[far] & (far >= 0), axis=1, keepdims=True)  # not an OFT's leaves
    return np.append(
        (vertex >= 0)[:, None] & spreading[vertex], np.zeros((1, spreading.shape[1]), np.bool_), 0
    )


def _at_nodes(
    step: NDArray[np.int32], vertex: NDArray[np.int64], node: NDArray[np.int64], count: int
) -> NDArray[np.int32]:
    """int32[M + 1, D]: next switches of a build, int32[S, D], by their places in the matching."""
    places = np.append(node, np.int64(count))  # what is dropped goes to the last place
    places[places == NO_ROUND] = count
    result = np.full((count + 1, step.shape[1]), count, np.int32)
    present = vertex >= 0
    result[:count][present] = places[np.where(step >= 0, step, -1)][vertex[present]]
    return result
