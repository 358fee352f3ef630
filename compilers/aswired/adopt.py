"""The fabric as it is wired, where it still is the fabric that was planned: take it as it is."""

from __future__ import annotations

from typing import Any

from compilers.aswired.check import Check
from compilers.aswired.resolve import Pairs, Ports


def still_a_fabric(found: Check, ports: Ports) -> bool:
    """Whether every planned link is there, be it between other ports, and no other.

    Plugs that were exchanged at one node leave all links, and so do nodes in each other's place.
    """
    return _links(_cables(found), ports) == _links(ports.planned(), ports)


def adopted(found: Check, ports: Ports) -> dict[str, Any]:
    """`cables` of an inventory, and `vertex` of the nodes that stand elsewhere, as plain data.

    Cables that nobody can see are taken as planned.
    """
    names = list(ports.wiring.names)
    moved = {}
    for cycle in found.rounds:
        for node, place in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            moved[ports.wiring.names[node]] = place
    for name, place in moved.items():
        names[place] = name
    cables = [
        {
            "a": names[ports.vertex(a)],
            "a_port": ports.name(a),
            "b": names[ports.vertex(b)],
            "b_port": ports.name(b),
        }
        for a, b in sorted(_cables(found))
    ]
    return {"vertex": moved, "cables": cables}


def _cables(found: Check) -> Pairs:
    return found.wired.cables | found.unseen


def _links(cables: Pairs, ports: Ports) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(map(ports.vertex, pair))) for pair in cables)
