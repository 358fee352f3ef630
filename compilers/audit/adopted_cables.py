"""The cables that exist as entries of the inventory, in the place of the planned ones.

`WiringReport.adopted` calls `adopted` with the result of an audit.
A *socket* is the place of one cable in a port, as a number (`socket_numbers`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from compilers.audit.socket_numbers import Cable, CableSet, SocketNumbers
from compilers.audit.wiring_audit import WiringAudit

Link = tuple[int, int]
"""The two vertices of a link, the smaller first."""


@dataclass(frozen=True, slots=True)
class AdoptedCabling:
    """Entries of the inventory for the cables that exist, as plain data."""

    vertex: dict[str, int]
    """The vertices of nodes that are in another place than planned."""
    cables: tuple[dict[str, str], ...]
    """The cables of each link that exists. A link exists if all its parallel cables run between the
    same two ports, socket to socket."""
    dead_links: tuple[dict[str, str], ...]
    """The links that do not exist."""
    useless: tuple[Cable, ...]
    """Cables that serve no link: between nodes that the fabric does not join, or too few or too
    many for a link."""


def adopted(audit: WiringAudit, sockets: SocketNumbers) -> AdoptedCabling:
    """The entries of the inventory for the cables that exist.

    Links survive where plugs are exchanged at one node, or nodes are exchanged. Cables between
    nodes that no link joins are useless. Cables of which tables say nothing count as planned.
    """
    names = list(sockets.wiring.names)
    vertex_of_moved = {}
    for cycle in audit.swapped:
        # Each node of a cycle is in the place of the next.
        for node, place in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            vertex_of_moved[sockets.wiring.names[node]] = place
    for name, place in vertex_of_moved.items():
        names[place] = name
    planned = sockets.planned()
    existing = audit.wired.cables | audit.unseen
    cables_of_link = _cables_of_links(existing, planned, sockets)
    useful = {cable for cables in cables_of_link.values() for cable in cables}
    links = {_link(cable, sockets) for cable in planned}
    return AdoptedCabling(
        vertex=vertex_of_moved,
        cables=tuple(_cable_entry(cable, sockets, names) for cable in sorted(useful)),
        dead_links=tuple(
            {"a": names[u], "b": names[v]} for u, v in sorted(links - set(cables_of_link))
        ),
        useless=tuple(sorted(existing - useful)),
    )


def _cables_of_links(
    existing: CableSet, planned: CableSet, sockets: SocketNumbers
) -> dict[Link, list[Cable]]:
    """The cables that serve each link; planned ones are preferred."""
    cables_per_link = Counter(_link(cable, sockets) for cable in planned)
    # Cables that join the same two ports serve one link together.
    candidates: dict[tuple[Link, Cable], list[Cable]] = defaultdict(list)
    for cable in sorted(existing):
        candidates[_link(cable, sockets), sockets.first_cable(cable)].append(cable)
    cables_of_link: dict[Link, list[Cable]] = {}
    planned_first = sorted(candidates.items(), key=lambda item: planned.isdisjoint(item[1]))
    for (link, _), cables in planned_first:
        if link not in cables_of_link and len(cables) == cables_per_link.get(link):
            cables_of_link[link] = cables
    return cables_of_link


def _link(cable: Cable, sockets: SocketNumbers) -> Link:
    """The two vertices that a cable joins."""
    u, v = sorted(map(sockets.vertex, cable))
    return u, v


def _cable_entry(cable: Cable, sockets: SocketNumbers, names: list[str]) -> dict[str, str]:
    """The entry of the inventory for a cable.

    Args:
        cable: the cable.
        sockets: the sockets of the plan.
        names: the name of the node at each vertex.
    """
    a, b = cable
    return {
        "a": names[sockets.vertex(a)],
        "a_port": sockets.name(a),
        "b": names[sockets.vertex(b)],
        "b_port": sockets.name(b),
    }
