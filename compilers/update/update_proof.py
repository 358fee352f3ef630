"""The proof of an update by walking: every state that the fabric passes through delivers.

A state is one of the borders between rounds, or a mixture inside a round in which each switch has
carried it out or has not. In every state every packet between switches that both builds have is
walked, and two things are looked at on the way, from which the rest follows (docs/how-to/move.md):
a new cell leads to a new one, and no packet is sent back to where it came from. Packets that carry
an intermediate are drawn only while all rows are old, or all are new, so that what is walked there
are their legs.

A marked packet may be spread to a switch whose next hop is the one that spread it. It bounces
there, as `compilers.forwarding.rule.transit` says, and is followed over every bounce until it goes
on by next hops.
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
    bounces_before: NDArray[np.int32]
    """int32[B, M + 1, D], where old rows send a packet that came in by its next hop, in the order
    in which they try; M where there is no such port. Empty where neither build marks packets."""
    bounces_after: NDArray[np.int32]
    """int32[B', M + 1, D], the same of new rows."""
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
        earlier, later = (n.before, n.node_before), (n.after, n.node_after)
        before = _next_nodes(d.fibs_before, old, earlier, count)
        after = _next_nodes(d.fibs, new, later, count)
        bounces = (
            _next_nodes(d.bounces_before, old, earlier, count),
            _next_nodes(d.bounces, new, later, count),
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
        return cls(update, before, after, level, changed, home, *bounces, *spreads, sources, bound)

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
            "is lost on a way that it is spread over": self._spread_and_lost(
                carried_out, renewed, step, away, lost
            ),
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

    def _spread_and_lost(
        self,
        carried_out: NDArray[np.uint8],
        renewed: NDArray[np.bool_],
        step: NDArray[np.int32],
        away: NDArray[np.bool_],
        lost: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """bool[M, D]: cells whose hosts' packets are marked, and some of these may be lost.

        Old rows mark packets, and old rows spread those. New ones do once all switches have learnt
        to. A row of another build has a marked packet go on as others in transit do.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
            renewed: bool[M + 1, D], cells that are new.
            step: int32[W, M + 1, D], where each leads.
            away: bool[W, M, D], whether to another switch.
            lost: bool[M, D], cells from which packets in transit are lost.
        """
        u, places, count = self.update, self.update.nodes, len(carried_out)
        column, fails = np.arange(step.shape[2]), np.zeros(lost.shape, np.bool_)
        learnt = u.in_place or bool((carried_out >= u.spreading).all())
        if not len(self.spreads_before) and not (learnt and len(self.spreads_after)):
            return fails
        turned_lost = self._turned_and_lost(renewed, step, lost)
        for build, vertex, node, spreading, here in (
            (u.old, places.before, places.node_before, self.spreads_before, ~renewed),
            (u.new, places.after, places.node_after, self.spreads_after, renewed & learnt),
        ):
            if not len(spreading) or not here[:count].any():
                continue
            near = _neighbours(build, vertex, node)
            sent_back = away & here[step[:, :count], column]
            arrives_lost = lost | (turned_lost & sent_back).any(axis=0)
            spread_lost = (spreading & here)[:count] & _any_at(arrives_lost, near)
            fails |= here[:count] & _any_at(arrives_lost | spread_lost, near)
        return fails

    def _turned_and_lost(
        self, renewed: NDArray[np.bool_], step: NDArray[np.int32], lost: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool[W, M, D]: whether a packet is lost that comes in from where the path W leads.

        It takes the first bounce that is another switch, else the minimal path, which may lead
        back. Where it comes in by a next hop again, it is turned again.
        """
        count, column = len(lost), np.arange(step.shape[2])
        here, came = np.arange(count)[:, None], step[:, :count]
        towards = np.broadcast_to(step[0, :count], came.shape)
        before, after = self.bounces_before, self.bounces_after
        for place in reversed(range(max(len(before), len(after)))):
            old, new = (
                side[place, :count] if place < len(side) else np.int32(count)
                for side in (before, after)
            )
            bounce = np.where(renewed[:count], new, old)
            towards = np.where((bounce < count) & (bounce != came), bounce, towards)
        leads_here = step[:, towards, column] == here
        again = leads_here.any(axis=0)
        path = leads_here.argmax(axis=0)
        dropped = np.append(lost, np.ones((1, len(column)), np.bool_), axis=0)
        turned = np.ones((len(step), count + 1, len(column)), np.bool_)
        for _ in range(MOST_HOPS):
            now = np.where(again, turned[path, towards, column], dropped[towards, column])
            if np.array_equal(now, turned[:, :count]):
                break
            turned[:, :count] = now
        return turned[:, :count]

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


def _neighbours(
    build: Build, vertex: NDArray[np.int64], node: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64[M, K]: the far ends of the links of a build's switches, by their places in the
    matching; -1 where there is none.

    Args:
        build: one of the two.
        vertex: int64[M], the vertex of each place; -1 for none.
        node: int64[S], the place of each vertex.
    """
    far = build.wiring.far[vertex]
    there = (far >= 0) & (vertex >= 0)[:, None]
    neighbours: NDArray[np.int64] = np.where(there, node[far], -1)
    return neighbours


def _any_at(cells: NDArray[np.bool_], near: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[M, D]: whether any neighbour of each switch is one of these cells, bool[M, D]."""
    result = np.zeros(cells.shape, np.bool_)
    if cells.any():
        for neighbour in near.T:
            result |= cells[neighbour] & (neighbour >= 0)[:, None]
    return result


def _next_nodes(
    fibs: tuple[Fib, ...],
    ends: NDArray[np.int64],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    count: int,
) -> NDArray[np.int32]:
    """int32[n, M + 1, D]: the next switches of n tables by their places in the matching."""
    if not fibs:
        return np.zeros((0, count + 1, len(ends)), np.int32)
    return np.stack([_at_nodes(fib.next_switch(ends), *places, count) for fib in fibs])


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
