"""The as-wired check: differences from the plan, swapped nodes, and the moves that repair them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compilers.audit.cable_moves import Move, components
from compilers.audit.resolve import Pairs, PortFinder, Wired
from compilers.wiring.hardware import PortFacts
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class WiringAudit:
    """The present cables compared with the plan, with ports numbered as if `rounds` were undone.

    rounds: cycles of swapped nodes, each in the place of the next. right: cables as planned.
    missing: planned cables with both ports empty. extra: present cables at ports that the plan
    leaves empty. misplaced: present cables at planned ports, but not as planned. absent: vertices
    that report nothing and that no neighbour sees. unseen: planned cables between two nodes that
    report nothing, and those of which tables do not tell the ports. moves: the fewest that restore
    the plan. foreign: of a port that sees a device of no plan, the port that its cable should lead
    to.
    """

    planned: int
    rounds: tuple[Cycle, ...]
    right: Pairs
    missing: Pairs
    extra: Pairs
    misplaced: Pairs
    absent: tuple[int, ...]
    unseen: Pairs
    moves: tuple[Move, ...]
    foreign: Mapping[int, int]
    wired: Wired

    @property
    def good(self) -> bool:
        """Whether all cables with neighbour data are as planned."""
        as_planned = not self.moves and not self.rounds and not self.foreign
        return as_planned and not self.wired.unknown_ports


def check(wiring: Wiring, wired: Wired, types: tuple[PortFacts, ...] = ()) -> WiringAudit:
    """Compare the present cables with the plan; `types` are for parallel cables.

    A planned cable is checked if one of its nodes was read: that node sees it, or it is missing.
    """
    ports = PortFinder(wiring, types)
    planned, width = ports.planned(), ports.width
    visible = _visible(planned, wired, width)
    rounds = relabelling(visible, wired, width, wiring.node_type.tolist())
    wired = renamed(wired, rounds, width)
    visible = _visible(planned, wired, width)
    parts = components(visible, wired.cables)
    right = visible & wired.cables
    lacking = {p for pair in visible - wired.cables for p in pair}
    surplus = {p for pair in wired.cables - visible for p in pair}
    linked = np.flatnonzero((wiring.far >= 0).any(axis=1))
    present = {a // width for pair in wired.cables for a in pair} | wired.reporters
    ends = {end: other for a, b in planned - right for end, other in ((a, b), (b, a))}
    foreign = {port: ends[port] for port, _ in wired.strangers if port in ends}
    return WiringAudit(
        planned=len(planned),
        rounds=rounds,
        right=right,
        missing=frozenset(p for p in visible - wired.cables if surplus.isdisjoint(p)),
        extra=frozenset(p for p in wired.cables - visible if lacking.isdisjoint(p)),
        misplaced=frozenset(p for p in wired.cables - visible if not lacking.isdisjoint(p)),
        absent=tuple(v for v in linked.tolist() if v not in present),
        unseen=planned - visible - wired.cables,
        moves=tuple(move for part in parts for move in part.moves(ports.vertex)),
        foreign=foreign,
        wired=wired,
    )


def _visible(planned: Pairs, wired: Wired, width: int) -> Pairs:
    """The planned cables with a node that was read, and those that were seen.

    A node that was read and has no neighbour at a port says that nothing is there. A device of no
    plan at a port takes the place of a cable to a node of which nothing is known: `foreign` has it.
    """
    read = wired.reporters
    known = {a // width for pair in wired.cables for a in pair} | read
    taken = {port for port, _ in wired.strangers}
    checked = {p for p in planned if p[0] // width in read or p[1] // width in read}
    foreign = {
        pair
        for pair in checked
        for near, far in (pair, pair[::-1])
        if near in taken and far // width not in known
    }
    return frozenset(checked - foreign - wired.unclear) | (planned & wired.cables)


Cycle = tuple[int, ...]


def relabelling(
    planned: Pairs, wired: Wired, width: int, node_type: Sequence[int]
) -> tuple[Cycle, ...]:
    """Cycles of vertices: each is in the place of the next, the last in that of the first.

    A neighbour's port that should see port p of y, but sees port p of x, is a vote for x in the
    place of y. A cycle is kept if undoing it saves more moves than it takes.

    Args:
        planned: the planned cables.
        wired: the present cables.
        width: W, ports per node (`compilers.audit.resolve`).
        node_type: of each vertex; only nodes of the same type can be swapped.
    """
    rounds: list[Cycle] = []
    moves = cost(planned, wired.cables)
    for cycle in _rounds(_votes(planned, wired.cables, width), node_type):
        trial = renamed(wired, (*rounds, cycle), width)
        left = cost(planned, trial.cables)
        if left + len(cycle) - 1 < moves:
            rounds.append(cycle)
            moves = left
    return tuple(rounds)


def cost(planned: Pairs, present: Pairs) -> int:
    """The number of moves between two sets of cables."""
    return sum(part.cost for part in components(planned, present))


def _votes(planned: Pairs, present: Pairs, width: int) -> dict[int, int]:
    """The place of each misplaced vertex, by most of its votes; `relabelling` judges the cycles."""
    mate = {end: other for a, b in planned for end, other in ((a, b), (b, a))}
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for pair in present:
        for port, seen_by in (pair, pair[::-1]):
            expected = mate.get(seen_by)
            if expected is not None and expected % width == port % width:
                votes[port // width][expected // width] += 1
    places = {}
    for vertex, counted in votes.items():
        place = min(counted, key=lambda place: (-counted[place], place))
        if place != vertex:
            places[vertex] = place
    cabled = {port // width for pair in present for port in pair}
    return places | {y: x for x, y in places.items() if y not in cabled and x not in places}


def _rounds(places: dict[int, int], node_type: Sequence[int]) -> list[Cycle]:
    """The cycles of the map among nodes of one type, each from its smallest vertex."""
    found = set()
    for start in places:
        cycle = [start]
        while (after := places.get(cycle[-1], start)) not in cycle:
            cycle.append(after)
        closed = places.get(cycle[-1]) == start
        if closed and len({node_type[v] for v in cycle}) == 1:
            first = cycle.index(min(cycle))
            found.add((*cycle[first:], *cycle[:first]))
    return sorted(found)


def renamed(wired: Wired, rounds: Sequence[Cycle], width: int) -> Wired:
    """The present cables, with every node numbered by the place that it is in."""
    place = {x: y for cycle in rounds for x, y in zip(cycle, cycle[1:] + cycle[:1], strict=True)}

    def placed(port: int) -> int:
        vertex, number = divmod(port, width)
        return place.get(vertex, vertex) * width + number

    pairs = [sorted((placed(a), placed(b))) for a, b in wired.cables]
    return replace(
        wired,
        cables=frozenset((a, b) for a, b in pairs),
        reporters=frozenset(place.get(v, v) for v in wired.reporters),
        strangers=tuple((placed(port), name) for port, name in wired.strangers),
    )
