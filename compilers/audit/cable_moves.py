"""The fewest moves of plugs that turn the cables that exist into the planned ones.

`wiring_audit` calls `components` and prints the `Move`s. A *socket* is the place of one cable in a
port (`socket_numbers`). Cables are pairs of sockets, and each set of cables is a matching. Their
symmetric difference consists of cycles and paths in which planned and existing cables alternate.
Exchanging the plugs in two sockets cuts two cables and joins their four ends anew, which adds at
most one cycle. So a cycle of m planned cables needs exactly m - 1 exchanges (as in sorting genomes
by double cut and join: Yancopoulos, Attie and Friedberg, Bioinformatics 21, 2005). A path with p
planned and a existing cables needs max(p, a) moves, as each move settles at most one cable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from compilers.audit.socket_numbers import Pairs, SocketNumbers, mates


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the repair, at two sockets."""

    kind: Literal["swap", "move", "add", "remove"]
    """swap: exchange the plugs in a and b. move: the plug in a goes to b, which is empty. add: a
    new cable from a to b, both empty. remove: the cable between a and b."""
    a: int
    """The number of the first socket."""
    b: int
    """The number of the second socket."""

    def sentence(self, sockets: SocketNumbers) -> str:
        """The move as a sentence: `swap the plugs in A7 and A9 at node n12`."""
        a, b = sockets.name(self.a), sockets.name(self.b)
        u, v = sockets.node(self.a), sockets.node(self.b)
        if self.kind == "swap" and u == v:
            return f"swap the plugs in {a} and {b} at node {u}"
        if self.kind == "move" and u == v:
            return f"move the plug in {a} to {b} at node {u}"
        words = {
            "swap": "swap the plugs in {0} and {1}",
            "move": "move the plug in {0} to {1}",
            "add": "add a cable from {0} to {1}",
            "remove": "remove the cable from {0} to {1}",
        }
        return words[self.kind].format(f"{u} {a}", f"{v} {b}")


@dataclass(frozen=True, slots=True)
class Component:
    """A path or a cycle in which planned and existing cables alternate."""

    sockets: tuple[int, ...]
    """Its sockets in order, each joined to the next."""
    begins_planned: bool
    """Whether a planned cable joins the first two sockets, and not an existing one."""
    is_cycle: bool
    """Whether an existing cable joins the last socket to the first."""

    def moves(self, node: Callable[[int], int]) -> Iterator[Move]:
        """The fewest moves, each at a single node if possible.

        Args:
            node: the node of a socket.
        """
        if self.is_cycle:
            return _swaps(list(self.sockets), node)
        return _moves_along(list(self.sockets), self.begins_planned)

    @property
    def cost(self) -> int:
        """The number of moves."""
        return len(self.sockets) // 2 - (1 if self.is_cycle else 0)


def components(planned: Pairs, existing: Pairs) -> list[Component]:
    """The cycles and paths of planned and existing cables, ordered by their smallest socket."""
    planned_mate, existing_mate = mates(planned - existing), mates(existing - planned)
    ends_of_paths = sorted(set(planned_mate) ^ set(existing_mate))
    on_cycles = sorted(set(planned_mate) & set(existing_mate))
    walked_ports: set[int] = set()
    result: list[Component] = []
    for socket in (*ends_of_paths, *on_cycles):
        if socket not in walked_ports:
            component = _walk(socket, planned_mate, existing_mate)
            walked_ports.update(component.sockets)
            result.append(component)
    return sorted(result, key=lambda component: min(component.sockets))


def _walk(start: int, planned_mate: dict[int, int], existing_mate: dict[int, int]) -> Component:
    """The component of a socket, which is the end of a path or on a cycle.

    Args:
        start: the socket. Its planned cable is followed first, if it has one.
        planned_mate: the other end of each planned cable.
        existing_mate: the other end of each existing cable.
    """
    begins_planned = start in planned_mate
    sockets, follows_plan = [start], begins_planned
    while True:
        mate = planned_mate if follows_plan else existing_mate
        socket = mate.get(sockets[-1])
        if socket is None or socket == start:
            return Component(tuple(sockets), begins_planned, is_cycle=socket == start)
        sockets.append(socket)
        follows_plan = not follows_plan


def _swaps(sockets: list[int], node: Callable[[int], int]) -> Iterator[Move]:
    """Exchanges that split a cycle until every part is one cable.

    The plan joins sockets 2i and 2i + 1, an existing cable joins 2i + 1 and 2i + 2.
    An exchange splits the cycle if and only if both sockets are at even or both at odd places.
    """
    cycles = [sockets]
    while cycles:
        sockets = cycles.pop()
        places = _places_at_one_node(sockets, node)
        if places is None:
            # One socket exchanges its plug with every other socket at an odd place.
            yield from (Move("swap", sockets[1], socket) for socket in sockets[3::2])
            continue
        i, j = places
        yield Move("swap", sockets[i], sockets[j])
        if i % 2 == 0:  # an even place has its existing cable before it, an odd one behind it
            i, j = i - 1, j - 1
        cycles += [sockets[: i + 1] + sockets[j + 1 :], sockets[i + 1 : j + 1]]


def _places_at_one_node(sockets: list[int], node: Callable[[int], int]) -> tuple[int, int] | None:
    """Two even or two odd places with sockets of the same node; None if there are none."""
    first_place: dict[tuple[int, int], int] = {}
    for place, socket in enumerate(sockets):
        first = first_place.setdefault((node(socket), place % 2), place)
        if first != place:
            return first, place
    return None


def _moves_along(sockets: list[int], begins_planned: bool) -> Iterator[Move]:
    """Moves that make the cables of a path right, from an end whose planned socket is empty.

    Args:
        sockets: the sockets of the path, in order.
        begins_planned: whether a planned cable joins the first two.
    """
    if not begins_planned and len(sockets) % 2 == 1:  # it ends with a planned cable
        sockets, begins_planned = sockets[::-1], True
    if not begins_planned:
        yield Move("remove", sockets[0], sockets[1])
        sockets = sockets[1:]
    while len(sockets) > 2:
        yield Move("move", sockets[2], sockets[0])
        sockets = sockets[2:]  # the path without the cable that is right now
    if len(sockets) == 2:
        yield Move("add", sockets[0], sockets[1])
