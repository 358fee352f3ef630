"""Compare the cables that exist with the plan: differences, swapped nodes, moves that repair.

`check wiring` and the controller's discovery call `check`. A *socket* is the place of one cable in
a port. The socket with local number s of vertex v is v·W + s, and W is the *width*
(`socket_numbers`).

*Existing* cables are those that neighbour tables show. *Checked* cables are the planned cables of
which the tables say whether they exist.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compilers.audit.cable_moves import CableMove, components
from compilers.audit.resolve import ObservedCables
from compilers.audit.socket_numbers import CableSet, SocketNumbers, far_ends
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring

Cycle = tuple[int, ...]
"""Vertices, each in the place of the next, the last in that of the first."""


@dataclass(frozen=True, slots=True)
class WiringAudit:
    """The existing cables compared with the plan.

    Nodes that are *swapped* stand in each other's place. Here such a node has the vertex of the
    place that it is in.
    """

    planned: int
    """How many cables are planned."""
    swapped: tuple[Cycle, ...]
    """The cycles of swapped nodes."""
    right: CableSet
    """Existing cables that are as planned."""
    missing: CableSet
    """Planned cables with both sockets empty."""
    extra: CableSet
    """Existing cables at sockets that the plan leaves empty."""
    misplaced: CableSet
    """Existing cables at planned sockets, but not as planned."""
    absent: tuple[int, ...]
    """Vertices whose tables were not read, and that no neighbour sees."""
    unseen: CableSet
    """Planned cables of which tables say nothing, or not enough."""
    moves: tuple[CableMove, ...]
    """The fewest moves that restore the plan."""
    planned_for_strangers: Mapping[int, int]
    """By each socket that sees a stranger (a device outside the plan), the socket to which its
    cable should lead."""
    wired: ObservedCables
    """The cables that neighbour tables show."""

    @property
    def good(self) -> bool:
        """Whether all cables that neighbour tables show are as planned."""
        as_planned = not self.moves and not self.swapped and not self.planned_for_strangers
        return as_planned and not self.wired.unknown_ports


def check(
    wiring: Wiring, wired: ObservedCables, types: tuple[NodeTypeFacts, ...] = ()
) -> WiringAudit:
    """Compare the existing cables with the plan.

    A planned cable is checked if the table of one of its nodes was read: that node sees it, or it
    is missing.

    Args:
        wiring: the plan.
        wired: the existing cables.
        types: the node types, for parallel cables.
    """
    sockets = SocketNumbers(wiring, types)
    planned, width = sockets.planned(), sockets.width
    checked = _checked_cables(planned, wired, width)
    swapped = swapped_cycles(checked, wired, width, wiring.node_type.tolist())
    # From here on a swapped node has the vertex of the place that it is in.
    wired = renumber_swapped(wired, swapped, width)
    checked = _checked_cables(planned, wired, width)
    right = checked & wired.cables
    lacking, surplus = checked - wired.cables, wired.cables - checked
    lacking_sockets = {socket for cable in lacking for socket in cable}
    surplus_sockets = {socket for cable in surplus for socket in cable}
    linked = np.flatnonzero((wiring.far >= 0).any(axis=1))
    known = _known_vertices(wired, width)
    planned_far = far_ends(planned - right)
    return WiringAudit(
        planned=len(planned),
        swapped=swapped,
        right=right,
        missing=frozenset(cable for cable in lacking if surplus_sockets.isdisjoint(cable)),
        extra=frozenset(cable for cable in surplus if lacking_sockets.isdisjoint(cable)),
        misplaced=frozenset(cable for cable in surplus if not lacking_sockets.isdisjoint(cable)),
        absent=tuple(v for v in linked.tolist() if v not in known),
        unseen=planned - checked - wired.cables,
        moves=tuple(
            move
            for component in components(checked, wired.cables)
            for move in component.moves(sockets.vertex)
        ),
        planned_for_strangers={
            socket: planned_far[socket] for socket, _ in wired.strangers if socket in planned_far
        },
        wired=wired,
    )


def _known_vertices(wired: ObservedCables, width: int) -> set[int]:
    """The vertices whose tables were read, and those that a neighbour sees."""
    seen = {socket // width for cable in wired.cables for socket in cable}
    return seen | wired.reporters


def _checked_cables(planned: CableSet, wired: ObservedCables, width: int) -> CableSet:
    """The planned cables of which the tables say whether they exist.

    A node whose table was read, and has no neighbour at a socket, shows that nothing is there. A
    socket may see a *stranger*, a device outside the plan, while nothing is known of the node
    planned there. That node may be the stranger under an unknown name. So the planned cable is not
    checked: it counts in `WiringAudit.planned_for_strangers`, not as missing.
    """
    reporters = wired.reporters
    known = _known_vertices(wired, width)
    with_stranger = {socket for socket, _ in wired.strangers}
    checked = {(a, b) for a, b in planned if a // width in reporters or b // width in reporters}
    leads_to_stranger = {
        cable
        for cable in checked
        for near, far in (cable, cable[::-1])
        if near in with_stranger and far // width not in known
    }
    return frozenset(checked - leads_to_stranger - wired.unclear) | (planned & wired.cables)


def swapped_cycles(
    checked: CableSet, wired: ObservedCables, width: int, node_type: Sequence[int]
) -> tuple[Cycle, ...]:
    """The cycles of swapped nodes.

    A neighbour that should see local socket s of y, but sees local socket s of x, is a vote that x
    stands in the place of y. Votes give each vertex a place; where places form a cycle, its nodes
    may be swapped. A cycle is kept if undoing it saves more moves than it takes.

    Args:
        checked: the planned cables that are checked.
        wired: the existing cables.
        width: W, see `socket_numbers`.
        node_type: of each vertex; only nodes of one type can be swapped.
    """
    swapped: list[Cycle] = []
    moves = cost(checked, wired.cables)
    for cycle in _closed_cycles(_places(checked, wired.cables, width), node_type):
        trial = renumber_swapped(wired, (*swapped, cycle), width)
        moves_left = cost(checked, trial.cables)
        # A cycle of n nodes is undone by n - 1 exchanges of two nodes.
        if moves_left + len(cycle) - 1 < moves:
            swapped.append(cycle)
            moves = moves_left
    return tuple(swapped)


def cost(checked: CableSet, existing: CableSet) -> int:
    """The number of moves that turn the existing cables into the checked ones."""
    return sum(component.cost for component in components(checked, existing))


def _places(checked: CableSet, existing: CableSet, width: int) -> dict[int, int]:
    """The place of each misplaced vertex, by most of its votes; see `swapped_cycles`."""
    far_end = far_ends(checked)
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for cable in existing:
        for socket, far_socket in (cable, cable[::-1]):
            expected = far_end.get(far_socket)
            # Only a socket with the same local number is a vote.
            if expected is not None and expected % width == socket % width:
                votes[socket // width][expected // width] += 1
    places = {}
    for vertex, votes_of_vertex in votes.items():
        most_votes = max(votes_of_vertex.values())
        place = min(place for place, count in votes_of_vertex.items() if count == most_votes)
        if place != vertex:
            places[vertex] = place
    return places


def _closed_cycles(places: dict[int, int], node_type: Sequence[int]) -> list[Cycle]:
    """The cycles of a map of vertices to places among nodes of one type.

    Each cycle begins with its smallest vertex.
    """
    cycles = set()
    for start in places:
        cycle = [start]
        # A vertex without a place ends the walk, as if it led back to the start.
        while (place := places.get(cycle[-1], start)) not in cycle:
            cycle.append(place)
        closed = places.get(cycle[-1]) == start
        if closed and len({node_type[v] for v in cycle}) == 1:
            first = cycle.index(min(cycle))
            cycles.add((*cycle[first:], *cycle[:first]))
    return sorted(cycles)


def renumber_swapped(wired: ObservedCables, swapped: Sequence[Cycle], width: int) -> ObservedCables:
    """The existing cables, with every node numbered by the place that it is in."""
    # Each vertex of a cycle is in the place of the next.
    place = {x: y for cycle in swapped for x, y in zip(cycle, cycle[1:] + cycle[:1], strict=True)}

    def renumbered(socket: int) -> int:
        """The number of a socket, once its node is counted in the place where it stands."""
        vertex, local_number = divmod(socket, width)
        return place.get(vertex, vertex) * width + local_number

    cables = [sorted((renumbered(a), renumbered(b))) for a, b in wired.cables]
    return replace(
        wired,
        cables=frozenset((a, b) for a, b in cables),
        reporters=frozenset(place.get(v, v) for v in wired.reporters),
        strangers=tuple((renumbered(socket), name) for socket, name in wired.strangers),
    )
