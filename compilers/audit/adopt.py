"""The fabric as it is wired in place of the fabric that was planned: take it as it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from compilers.audit.resolve import Pair, PortFinder
from compilers.audit.wiring_audit import WiringAudit


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an inventory says of the fabric as it is wired, as plain data.

    vertex: of the nodes that stand elsewhere; cables: those of each link that is there; dead_links:
    the links that are not, or not with all of their parallel cables, socket to socket, between two
    ports. useless: cables that join nodes which the fabric does not join, or are too many or too
    few for a link.
    """

    vertex: dict[str, int]
    cables: tuple[dict[str, str], ...]
    dead_links: tuple[dict[str, str], ...]
    useless: tuple[Pair, ...]


def adopted(found: WiringAudit, ports: PortFinder) -> Adopted:
    """What is cabled, as far as it serves the fabric.

    Plugs that were exchanged at one node leave all links, and so do nodes in each other's place.
    Other links than planned ones have no use, and the planned ones are missing. Cables that nobody
    can see are taken as planned.
    """
    names = list(ports.wiring.names)
    moved = {}
    for cycle in found.rounds:
        for node, place in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            moved[ports.wiring.names[node]] = place
    for name, place in moved.items():
        names[place] = name
    planned = ports.planned()
    whole = Counter(_link(pair, ports) for pair in planned)
    ways: dict[tuple[Pair, Pair], list[Pair]] = defaultdict(list)
    for pair in sorted(found.wired.cables | found.unseen):
        ways[_link(pair, ports), ports.between(pair)].append(pair)
    serving: dict[Pair, list[Pair]] = {}
    # Cables as planned come before others for the same link.
    for (link, _), cables in sorted(ways.items(), key=lambda way: planned.isdisjoint(way[1])):
        if link not in serving and len(cables) == whole.get(link):
            serving[link] = cables
    served = {pair for cables in serving.values() for pair in cables}
    useless = (found.wired.cables | found.unseen) - served
    links = set(whole)
    return Adopted(
        vertex=moved,
        cables=tuple(_cable(pair, ports, names) for pair in sorted(served)),
        dead_links=tuple({"a": names[u], "b": names[v]} for u, v in sorted(links - set(serving))),
        useless=tuple(sorted(useless)),
    )


def _link(pair: Pair, ports: PortFinder) -> Pair:
    u, v = sorted(map(ports.vertex, pair))
    return u, v


def _cable(pair: Pair, ports: PortFinder, names: list[str]) -> dict[str, Any]:
    (a, b) = pair
    return {
        "a": names[ports.vertex(a)],
        "a_port": ports.name(a),
        "b": names[ports.vertex(b)],
        "b_port": ports.name(b),
    }
