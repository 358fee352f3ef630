"""Prove by walks that every state in which a fabric is during a move delivers all packets.

A *state* is the end of a round, or a mixture within a round: some switches have carried it out, and
the others have not. `prove` walks in every state every packet between switches that both builds
have. On the way it looks at two things from which all other mixtures follow (docs/how-to/move.md):
a *cell* (a switch and a destination) with a new row leads to a cell with a new row, and no packet
is sent back over its ingress link.

Packets get an intermediate only while all rows are old, or all are new. So what is walked in such a
build are the legs of their paths.

A marked packet may be spread to a switch whose next hop is the switch that spread it. It bounces
there, as `compilers.forwarding.rule.transit` says, and is followed over every bounce until it goes
on by next hops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
"""Called with how many destinations are done, and how many there are."""
UPDATE_EXAMPLES = 10
"""The most faults that a proof names."""
NOT_HOME = 2 * MOST_HOPS
"""In place of the links of packets that have not arrived when the walk ends."""
NEVER_ARRIVES = 255
"""The level of cells that keep their old row: those of switches that the new build does not
have.
"""


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
    d = update.difference
    common = d.nodes.destinations(d.old, d.new)
    states = list(_move_states(update, mixtures, seed))
    pairs = longest = bound = done = 0
    faults: list[UpdateFault] = []
    for block in levels(d.new, d.fibs, d.compare):
        kept = np.isin(block.destinations, common)
        if kept.any():
            cells = Cells.of(update, block, kept)
            bound = max(bound, cells.bound)
            pairs += int(cells.sources.sum())
            for state in states:
                walked = cells.walk(state.carried_out)
                longest = max(longest, walked.longest)
                if len(faults) < UPDATE_EXAMPLES:
                    in_state = cells.faults(state.round, walked.faulty)
                    faults += in_state[: UPDATE_EXAMPLES - len(faults)]
        done += len(block.destinations)
        if progress:
            progress(done, d.new.tables.switches)
    return Proof(len(states), pairs, longest, bound, tuple(faults))


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


class WalkedState(NamedTuple):
    """The result of walking all packets in a state."""

    longest: int
    """The links of the longest path."""
    faulty: dict[str, NDArray[np.bool_]]
    """By fault in words bool[M, D], the cells whose packets have it."""


class FollowedTransit(NamedTuple):
    """What becomes of packets in transit from each cell."""

    hops: NDArray[np.uint8]
    """uint8[M, D], the most links that packets take."""
    lost: NDArray[np.bool_]
    """bool[M, D], whether they may be lost."""


@dataclass(frozen=True, slots=True, eq=False)
class NodePlaces:
    """The vertices of a build as places among the M switches of a move."""

    vertex: NDArray[np.int64]
    """int64[M], the vertex of each place; negative: the build does not have this switch."""
    node: NDArray[np.int64]
    """int64[S], the place of each vertex; negative or `NO_ROUND`: none."""
    count: int
    """M."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of M switches and some D destinations that both builds have.

    A switch is its place in `Update.nodes`. The place M stands for no switch.
    """

    update: Update
    """The rounds of the move."""
    before: NDArray[np.int32]
    """int32[W, M + 1, D], the next switch on W paths by the old tables; the switch itself where it
    delivers, M where it drops packets."""
    after: NDArray[np.int32]
    """int32[W, M + 1, D], the next switch on W paths by the new tables."""
    level: NDArray[np.uint8]
    """uint8[M + 1, D], the level of each cell, as in `Levels`."""
    changed: NDArray[np.bool_]
    """bool[M, D], cells whose next hops change."""
    home: NDArray[np.int64]
    """int64[D], the place of each destination among the M switches."""
    bounces_before: NDArray[np.int32]
    """int32[B, M + 1, D], where old rows send a packet that came in by the link of its next hop, in
    the order in which they try; M where there is no such port. Empty if neither build marks
    packets.
    """
    bounces_after: NDArray[np.int32]
    """int32[B', M + 1, D], where new rows send such a packet."""
    spreads_before: NDArray[np.bool_]
    """bool[M + 1, D], whether the old row of each switch spreads marked packets; empty if the old
    build marks none."""
    spreads_after: NDArray[np.bool_]
    """bool[M + 1, D], whether the new row of each switch spreads marked packets; empty if the new
    build marks none."""
    sources: NDArray[np.bool_]
    """bool[M, D], pairs that have a path both before and after."""
    bound: int
    """The links of the longest old and the longest new path together."""

    @classmethod
    def of(cls, update: Update, block: Levels, kept: NDArray[np.bool_]) -> Cells:
        """The cells of some destinations.

        Args:
            update: the move.
            block: the levels of a block of destinations.
            kept: bool, which of these destinations both builds have.
        """
        d, n = update.difference, update.nodes
        new, count = block.destinations[kept], len(n.datapath_id)
        old = n.prefix[new]  # the destinations as vertices of the old build
        places_before = NodePlaces(n.before, n.node_before, count)
        places_after = NodePlaces(n.after, n.node_after, count)
        before = _next_nodes(d.fibs_before, old, places_before)
        after = _next_nodes(d.fibs, new, places_after)
        level = np.full(before.shape[1:], NEVER_ARRIVES, np.uint8)
        level[:count][n.after >= 0] = block.cells[:, kept][n.after[n.after >= 0]]
        changed = block.changed[:, kept][n.after] & (n.after >= 0)[:, None]
        sources, bound = n.both[:, None] & np.ones(len(new), np.bool_), 0
        for fib, ends, vertex in ((d.fib_before, old, n.before), (d.fib, new, n.after)):
            hops = minimal_hops(fib, ends)[np.maximum(vertex, 0)]
            sources &= hops > 0
            bound += int(hops[n.both].max(initial=0))
        return cls(
            update=update,
            before=before,
            after=after,
            level=level,
            changed=changed,
            home=n.node_after[new],
            bounces_before=_next_nodes(d.bounces_before, old, places_before),
            bounces_after=_next_nodes(d.bounces, new, places_after),
            spreads_before=_spreading(d.old, d.fib_before, old, n.before),
            spreads_after=_spreading(d.new, d.fib, new, n.after),
            sources=sources,
            bound=bound,
        )

    def walk(self, carried_out: NDArray[np.uint8]) -> WalkedState:
        """Walk all packets in a state.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        count = len(carried_out)
        state = self._state(carried_out)
        switch, ahead = np.arange(count)[:, None], state.flat[:, :count]
        meets_old = (state.away & ~state.renewed.take(ahead)).any(axis=0)
        returned = np.zeros(self.changed.shape, np.bool_)
        for next_switch in state.step:
            returned |= (state.away & (next_switch.take(ahead) == switch)).any(axis=0)
        hops, lost = self._follow(state.flat)
        arrived = self.sources & ~lost
        wrong = {
            "is not delivered": lost,
            "is sent back to where it came from": returned,
            "meets an old row behind a new one": self.changed & state.renewed[:count] & meets_old,
            "is lost on a way that it is spread over": self._spread_and_lost(
                carried_out, state, lost
            ),
        }
        longest = int(hops[arrived].max(initial=0))
        return WalkedState(longest, {fault: self.sources & cells for fault, cells in wrong.items()})

    def hops(self, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
        """The links of each pair's path in a state, int8[M, D]; LOST where there is none.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
        """
        hops, lost = self._follow(self._state(carried_out).flat)
        return np.where(self.sources & ~lost, hops, LOST).astype(np.int8)

    def _state(self, carried_out: NDArray[np.uint8]) -> _State:
        """The state in which each switch has carried out its rounds up to one, uint8[M]."""
        count, width = len(carried_out), len(self.home)
        renewed = np.zeros(self.level.shape, np.bool_)
        renewed[:count] = self.level[:count] <= carried_out[:, None]
        paths = max(len(self.before), len(self.after))
        before, after = (side[np.arange(paths) % len(side)] for side in (self.before, self.after))
        step = np.where(renewed, after, before)
        flat = step.astype(np.int64) * width + np.arange(width)
        away = (step[:, :count] != np.arange(count)[:, None]) & (step[:, :count] < count)
        return _State(renewed, step, flat, away)

    def _spread_and_lost(
        self, carried_out: NDArray[np.uint8], state: _State, lost: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The cells whose hosts' packets are marked, and may be lost after they are spread.

        Old rows mark packets, and old rows spread these. New rows do so once all switches have
        learnt to spread them. At a row of the other build a marked packet is forwarded like others
        in transit.

        Args:
            carried_out: uint8[M], the last round that each switch has carried out.
            state: the state.
            lost: bool[M, D], the cells from which packets in transit are lost.

        Returns:
            bool[M, D].
        """
        u, places, count = self.update, self.update.nodes, len(carried_out)
        column, fails = np.arange(lost.shape[1]), np.zeros(lost.shape, np.bool_)
        learnt = u.in_place or bool((carried_out >= u.spreading).all())
        if not len(self.spreads_before) and not (learnt and len(self.spreads_after)):
            return fails
        turned_lost = self._turned_and_lost(state, lost)
        # `of_build`: bool[M + 1, D], the cells whose row is of this build, and may mark packets.
        for build, vertex, node, spreading, of_build in (
            (u.old, places.before, places.node_before, self.spreads_before, ~state.renewed),
            (u.new, places.after, places.node_after, self.spreads_after, state.renewed & learnt),
        ):
            if not len(spreading) or not of_build[:count].any():
                continue
            neighbours = _neighbours(build, vertex, node)
            sent_back = state.away & of_build[state.step[:, :count], column]
            arrives_lost = lost | (turned_lost & sent_back).any(axis=0)
            spread_lost = (spreading & of_build)[:count] & _any_at(arrives_lost, neighbours)
            fails |= of_build[:count] & _any_at(arrives_lost | spread_lost, neighbours)
        return fails

    def _turned_and_lost(self, state: _State, lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether a packet is lost that enters a switch from the switch's own next hop.

        The switch sends it to the first bounce port that leads to another switch, else to the
        minimal next hop, which may lead back. If the packet comes from a next hop of the switch
        again, the switch bounces it again.

        Args:
            state: the state.
            lost: bool[M, D], the cells from which packets in transit are lost.

        Returns:
            bool[W, M, D], for the next switch on each of W paths.
        """
        step, renewed = state.step, state.renewed
        count, column = len(lost), np.arange(step.shape[2])
        switch, came_from = np.arange(count)[:, None], step[:, :count]
        towards = np.broadcast_to(step[0, :count], came_from.shape)
        bounces = self.bounces_before, self.bounces_after
        for place in reversed(range(max(map(len, bounces)))):
            old, new = (
                side[place, :count] if place < len(side) else np.int32(count) for side in bounces
            )
            bounce = np.where(renewed[:count], new, old)
            towards = np.where((bounce < count) & (bounce != came_from), bounce, towards)
        leads_back = step[:, towards, column] == switch
        again = leads_back.any(axis=0)
        path = leads_back.argmax(axis=0)
        dropped = np.append(lost, np.ones((1, len(column)), np.bool_), axis=0)
        turned = np.ones((len(step), count + 1, len(column)), np.bool_)
        for _ in range(MOST_HOPS):
            after = np.where(again, turned[path, towards, column], dropped[towards, column])
            if np.array_equal(after, turned[:, :count]):
                break
            turned[:, :count] = after
        return turned[:, :count]

    def _follow(self, flat: NDArray[np.int64]) -> FollowedTransit:
        """Follow packets in transit by next hops.

        Args:
            flat: int64[W, M + 1, D], of `_State`.
        """
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
        return FollowedTransit(hops[:count], hops[:count] == NOT_HOME)

    def faults(self, round: int, faulty: dict[str, NDArray[np.bool_]]) -> list[UpdateFault]:
        """The first faults in a state after or within a round.

        Args:
            round: of the state.
            faulty: of `walk`.
        """
        n, examples = self.update.nodes, []
        names = self.update.new.wiring.names
        for fault, cells in faulty.items():
            for node, column in np.argwhere(cells)[:UPDATE_EXAMPLES].tolist():
                source, destination = names[n.after[node]], names[n.after[self.home[column]]]
                examples.append(UpdateFault(round, source, destination, fault))
        return examples


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """The rows that the cells of `Cells` have in a state."""

    renewed: NDArray[np.bool_]
    """bool[M + 1, D], whether a cell has its new row."""
    step: NDArray[np.int32]
    """int32[W, M + 1, D], the next switch on W paths."""
    flat: NDArray[np.int64]
    """int64[W, M + 1, D], the flat index of the cell that a packet comes to next."""
    away: NDArray[np.bool_]
    """bool[W, M, D], whether the next switch is another one."""


def hops_between(update: Update, carried_out: NDArray[np.uint8]) -> NDArray[np.int8]:
    """The links between switches of both builds in a state of a move.

    Args:
        update: the move.
        carried_out: uint8[M], the last round that each switch has carried out.

    Returns:
        int8[M, M], by source and destination; LOST where no path leads there.
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
    """Which switches get marked packets and spread them, bool[M + 1, D].

    Args:
        build: one of the two builds.
        fib: its next hops.
        destinations: int64[D], its vertices.
        vertex: int64[M], its vertex of each switch; negative: none.
    """
    if not build.forwarding.marks:
        return np.zeros((0, len(destinations)), np.bool_)
    far, ends, program = build.wiring.far, build.topology.endpoints, program_of(build, 0)
    of_class = [spreads(program, c) for c in (*range(build.tables.classes.port.shape[1]), DROP)]
    spreading = np.array(of_class)[np.minimum(fib.egress(destinations), len(of_class) - 1)]
    # Switches without a neighbour that has hosts get no marked packets, such as an OFT's leaves.
    spreading &= np.any(ends[far] & (far >= 0), axis=1, keepdims=True)
    at_places = (vertex >= 0)[:, None] & spreading[vertex]
    return np.append(at_places, np.zeros((1, spreading.shape[1]), np.bool_), 0)


def _neighbours(
    build: Build, vertex: NDArray[np.int64], node: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The places of all neighbours of switches, int64[M, K]; -1 where there is none.

    Args:
        build: one of the two builds.
        vertex: int64[M], its vertex at each place; -1: none.
        node: int64[S], the place of each of its vertices.
    """
    far = build.wiring.far[vertex]
    cabled = (far >= 0) & (vertex >= 0)[:, None]
    neighbours: NDArray[np.int64] = np.where(cabled, node[far], -1)
    return neighbours


def _any_at(cells: NDArray[np.bool_], neighbours: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether any neighbour of a switch is among some cells.

    Args:
        cells: bool[M, D].
        neighbours: int64[M, K], places; -1: none.

    Returns:
        bool[M, D].
    """
    any_neighbour = np.zeros(cells.shape, np.bool_)
    if cells.any():
        for neighbour in neighbours.T:
            any_neighbour |= cells[neighbour] & (neighbour >= 0)[:, None]
    return any_neighbour


def _next_nodes(
    fibs: tuple[Fib, ...], ends: NDArray[np.int64], places: NodePlaces
) -> NDArray[np.int32]:
    """The next switches as places among the switches of the move, int32[W, M + 1, D].

    Args:
        fibs: the next hops of a build on W paths.
        ends: int64[D], destinations, its vertices.
        places: of the build's vertices.
    """
    if not fibs:
        return np.zeros((0, places.count + 1, len(ends)), np.int32)
    return np.stack([_at_places(fib.next_switch(ends), places) for fib in fibs])


def _at_places(step: NDArray[np.int32], places: NodePlaces) -> NDArray[np.int32]:
    """The next switches as places among the switches of the move, int32[M + 1, D].

    Args:
        step: int32[S, D], the next switches as vertices of a build.
        places: of these vertices.
    """
    count = places.count
    place_of = np.append(places.node, np.int64(count))  # dropped packets go to the last place
    place_of[place_of == NO_ROUND] = count
    at_places = np.full((count + 1, step.shape[1]), count, np.int32)
    present = places.vertex >= 0
    at_places[:count][present] = place_of[np.where(step >= 0, step, -1)][places.vertex[present]]
    return at_places
