"""Swapped nodes: nodes in each other's place, found by what their neighbours see."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from compilers.audit.cable_moves import components
from compilers.audit.resolve import Pairs, Wired

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
