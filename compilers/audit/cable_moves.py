"""The fewest moves of plugs that turn the cables that exist into the planned ones.

`wiring_audit` calls `components` and prints the `Move`s. Cables are pairs of ports (sockets, see
`port_finder`), and each set of cables is a matching. Their symmetric difference consists of cycles
and paths in which planned and existing cables alternate. Exchanging the plugs of two ports cuts two
cables and joins their four ends anew, which adds at most one cycle. So a cycle of m planned cables
needs exactly m - 1 exchanges (as in sorting genomes by double cut and join: Yancopoulos, Attie and
Friedberg, Bioinformatics 21, 2005). A path with p planned and a existing cables needs max(p, a)
moves, as each move settles at most one cable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from compilers.audit.port_finder import Pairs, PortFinder, mates


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the repair, at two ports."""

    kind: Literal["swap", "move", "add", "remove"]
    """swap: exchange the plugs in a and b. move: the plug in a goes to b, which is empty. add: a
    new cable from a to b, both empty. remove: the cable between a and b."""
    a: int
    """The number of the first port."""
    b: int
    """The number of the second port."""

    def sentence(self, ports: PortFinder) -> str:
        """The move as a sentence: `swap the plugs in A7 and A9 at node n12`."""
        a, b = ports.name(self.a), ports.name(self.b)
        u, v = ports.node(self.a), ports.node(self.b)
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

    ports: tuple[int, ...]
    """Its ports in order, each joined to the next."""
    begins_planned: bool
    """Whether a planned cable joins the first two ports, and not an existing one."""
    is_cycle: bool
    """Whether an existing cable joins the last port to the first."""

    def moves(self, node: Callable[[int], int]) -> Iterator[Move]:
        """The fewest moves, each at a single node if possible.

        Args:
            node: the node of a port.
        """
        if self.is_cycle:
            return _swaps(list(self.ports), node)
        return _moves_along(list(self.ports), self.begins_planned)

    @property
    def cost(self) -> int:
        """The number of moves."""
        return len(self.ports) // 2 - (1 if self.is_cycle else 0)


def components(planned: Pairs, present: Pairs) -> list[Component]:
    """The cycles and paths of planned and existing cables, ordered by their smallest port."""
    planned_mate, present_mate = mates(planned - present), mates(present - planned)
    ends_of_paths = sorted(set(planned_mate) ^ set(present_mate))
    on_cycles = sorted(set(planned_mate) & set(present_mate))
    walked_ports: set[int] = set()
    result: list[Component] = []
    for port in (*ends_of_paths, *on_cycles):
        if port not in walked_ports:
            component = _walk(port, planned_mate, present_mate)
            walked_ports.update(component.ports)
            result.append(component)
    return sorted(result, key=lambda component: min(component.ports))


def _walk(start: int, planned_mate: dict[int, int], present_mate: dict[int, int]) -> Component:
    """The component of a port, which is the end of a path or on a cycle.

    Args:
        start: the port. Its planned cable is followed first, if it has one.
        planned_mate: the other end of each planned cable.
        present_mate: the other end of each existing cable.
    """
    begins_planned = start in planned_mate
    ports, follows_plan = [start], begins_planned
    while True:
        mate = planned_mate if follows_plan else present_mate
        port = mate.get(ports[-1])
        if port is None or port == start:
            return Component(tuple(ports), begins_planned, is_cycle=port == start)
        ports.append(port)
        follows_plan = not follows_plan


def _swaps(ports: list[int], node: Callable[[int], int]) -> Iterator[Move]:
    """Exchanges that split a cycle until every part is one cable.

    The plan joins ports 2i and 2i + 1, a present cable 2i + 1 and 2i + 2. An exchange splits the
    cycle if and only if both ports are at even or both at odd places.
    """
    cycles = [ports]
    while cycles:
        ports = cycles.pop()
        places = _places_at_one_node(ports, node)
        if places is None:
            # One port exchanges its plug with every other port at an odd place.
            yield from (Move("swap", ports[1], port) for port in ports[3::2])
            continue
        i, j = places
        yield Move("swap", ports[i], ports[j])
        if i % 2 == 0:  # an even place has its present cable before it, an odd one behind it
            i, j = i - 1, j - 1
        cycles += [ports[: i + 1] + ports[j + 1 :], ports[i + 1 : j + 1]]


def _places_at_one_node(ports: list[int], node: Callable[[int], int]) -> tuple[int, int] | None:
    """Two even or two odd places with ports of the same node; None if there are none."""
    first_place: dict[tuple[int, int], int] = {}
    for place, port in enumerate(ports):
        first = first_place.setdefault((node(port), place % 2), place)
        if first != place:
            return first, place
    return None


def _moves_along(ports: list[int], begins_planned: bool) -> Iterator[Move]:
    """Moves that make the cables of a path right, from an end whose planned port is empty.

    Args:
        ports: the ports of the path, in order.
        begins_planned: whether a planned cable joins the first two.
    """
    if not begins_planned and len(ports) % 2 == 1:  # it ends with a planned cable
        ports, begins_planned = ports[::-1], True
    if not begins_planned:
        yield Move("remove", ports[0], ports[1])
        ports = ports[1:]
    while len(ports) > 2:
        yield Move("move", ports[2], ports[0])
        ports = ports[2:]  # the path without the cable that is right now
    if len(ports) == 2:
        yield Move("add", ports[0], ports[1])
