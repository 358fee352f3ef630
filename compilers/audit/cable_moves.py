"""The fewest moves of plugs that turn the cables that exist into the planned ones.

`wiring_audit` calls `components` and prints the `CableMove`s. A *socket* is the place of one cable
in a port (`socket_numbers`). Cables are pairs of sockets, so the planned cables are a matching of
sockets, and the existing ones are another. The symmetric difference of two matchings consists of
cycles and paths in which the edges of both, here planned and existing cables, alternate.

Exchanging the plugs in two sockets cuts two cables and joins their four ends anew, which adds at
most one cycle. So a cycle of m planned cables needs exactly m - 1 exchanges (as in sorting genomes
by double cut and join: Yancopoulos, Attie and Friedberg, Bioinformatics 21, 2005). A path with p
planned and a existing cables needs max(p, a) moves, as each move settles at most one cable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from compilers.audit.socket_numbers import CableSet, SocketNumbers, far_ends


@dataclass(frozen=True, slots=True)
class CableMove:
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
        sentences = {
            "swap": "swap the plugs in {0} and {1}",
            "move": "move the plug in {0} to {1}",
            "add": "add a cable from {0} to {1}",
            "remove": "remove the cable from {0} to {1}",
        }
        return sentences[self.kind].format(f"{u} {a}", f"{v} {b}")


@dataclass(frozen=True, slots=True)
class MoveComponent:
    """A path or a cycle in which planned and existing cables alternate."""

    sockets: tuple[int, ...]
    """Its sockets in order, each joined to the next."""
    begins_planned: bool
    """Whether a planned cable joins the first two sockets, and not an existing one."""
    is_cycle: bool
    """Whether an existing cable joins the last socket to the first."""

    def moves(self, node: Callable[[int], int]) -> Iterator[CableMove]:
        """The fewest moves, each at a single node if possible.

        Args:
            node: gives the node of a socket.
        """
        if self.is_cycle:
            return _swaps(list(self.sockets), node)
        return _moves_along(list(self.sockets), self.begins_planned)

    @property
    def cost(self) -> int:
        """The number of moves."""
        return len(self.sockets) // 2 - (1 if self.is_cycle else 0)


def components(planned: CableSet, existing: CableSet) -> list[MoveComponent]:
    """The cycles and paths of planned and existing cables, ordered by their smallest socket."""
    planned_far, existing_far = far_ends(planned - existing), far_ends(existing - planned)
    ends_of_paths = sorted(set(planned_far) ^ set(existing_far))
    inner_sockets = sorted(set(planned_far) & set(existing_far))
    walked: set[int] = set()
    result: list[MoveComponent] = []
    # Once all paths are walked from their ends, only sockets on cycles are left.
    for socket in (*ends_of_paths, *inner_sockets):
        if socket not in walked:
            component = _walk(socket, planned_far, existing_far)
            walked.update(component.sockets)
            result.append(component)
    return sorted(result, key=lambda component: min(component.sockets))


def _walk(start: int, planned_far: dict[int, int], existing_far: dict[int, int]) -> MoveComponent:
    """The component of a socket, which is the end of a path or on a cycle.

    Args:
        start: the socket. Its planned cable is followed first, if it has one.
        planned_far: by socket, the other end of its planned cable.
        existing_far: by socket, the other end of its existing cable.
    """
    begins_planned = start in planned_far
    sockets, follows_plan = [start], begins_planned
    while True:
        far_end = planned_far if follows_plan else existing_far
        socket = far_end.get(sockets[-1])
        if socket is None or socket == start:
            return MoveComponent(tuple(sockets), begins_planned, is_cycle=socket == start)
        sockets.append(socket)
        follows_plan = not follows_plan


def _swaps(sockets: list[int], node: Callable[[int], int]) -> Iterator[CableMove]:
    """Exchanges of plugs that split a cycle until every part is one planned cable.

    Of the sockets s0, s1, … of a cycle, the plan joins s0 - s1, s2 - s3 and so on, and existing
    cables join s1 - s2, s3 - s4 and so on, and the last socket to s0. An exchange splits the cycle
    if and only if both sockets have even or both have odd indices.
    """
    cycles = [sockets]
    while cycles:
        sockets = cycles.pop()
        indices = _indices_at_one_node(sockets, node)
        if indices is None:
            # One socket exchanges its plug with every other socket that has an odd index.
            yield from (CableMove("swap", sockets[1], socket) for socket in sockets[3::2])
            continue
        i, j = indices
        yield CableMove("swap", sockets[i], sockets[j])
        # The cycle is cut at the two existing cables. Those of sockets with odd indices are behind
        # them, those of sockets with even indices before them.
        if i % 2 == 0:
            i, j = i - 1, j - 1
        cycles += [sockets[: i + 1] + sockets[j + 1 :], sockets[i + 1 : j + 1]]


def _indices_at_one_node(sockets: list[int], node: Callable[[int], int]) -> tuple[int, int] | None:
    """Two even or two odd indices of sockets at the same node; None if there are none."""
    first_index: dict[tuple[int, int], int] = {}
    for index, socket in enumerate(sockets):
        first = first_index.setdefault((node(socket), index % 2), index)
        if first != index:
            return first, index
    return None


def _moves_along(sockets: list[int], begins_planned: bool) -> Iterator[CableMove]:
    """Moves that turn the existing cables of a path into the planned ones.

    They begin at an end that a planned cable should have and that is empty: the plug of the next
    existing cable moves there, which leaves another socket empty, and so on. A path that begins and
    ends with an existing cable loses the first one.

    Args:
        sockets: the sockets of the path, in order.
        begins_planned: whether a planned cable joins the first two.
    """
    if not begins_planned and len(sockets) % 2 == 1:  # it ends with a planned cable
        sockets, begins_planned = sockets[::-1], True
    if not begins_planned:
        yield CableMove("remove", sockets[0], sockets[1])
        sockets = sockets[1:]
    while len(sockets) > 2:
        yield CableMove("move", sockets[2], sockets[0])
        sockets = sockets[2:]  # the path without the cable that is now as planned
    if len(sockets) == 2:
        yield CableMove("add", sockets[0], sockets[1])
