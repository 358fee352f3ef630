"""Adoption of the fabric as wired: its cables as inventory entries, instead of repairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from compilers.audit.resolve import Pair, PortFinder
from compilers.audit.wiring_audit import WiringAudit


@dataclass(frozen=True, slots=True)
class Adopted:
    """Inventory entries for the fabric as wired, as plain data.

    vertex: of the nodes that are elsewhere. cables: those of each link that exists. dead_links:
    the other links; a link exists if all its parallel cables run, socket to socket, between two
    ports. useless: cables between nodes that the fabric does not join, or the wrong number of
    cables for a link.
    """

    vertex: dict[str, int]
    cables: tuple[dict[str, str], ...]
    dead_links: tuple[dict[str, str], ...]
    useless: tuple[Pair, ...]


def adopted(found: WiringAudit, ports: PortFinder) -> Adopted:
    """The present cables that serve links of the fabric.

    Plugs exchanged at one node keep all links, and so do nodes in each other's place. Links that
    were not planned are useless, and the planned links are missing instead. Cables without
    neighbour data are taken to be as planned.
    """
    names = list(ports.wiring.names)
    moved = {}
    for cycle in found.rounds:
        for node, place in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            moved[ports.wiring.names[node]] = place
    for name, place in moved.items():
        names[place] = name
    planned = ports.planned()
    parallel = Counter(_link(pair, ports) for pair in planned)
    candidates: dict[tuple[Pair, Pair], list[Pair]] = defaultdict(list)
    for pair in sorted(found.wired.cables | found.unseen):
        candidates[_link(pair, ports), ports.between(pair)].append(pair)
    serving: dict[Pair, list[Pair]] = {}
    # Cables as planned win over others for the same link.
    for (link, _), cables in sorted(
        candidates.items(), key=lambda item: planned.isdisjoint(item[1])
    ):
        if link not in serving and len(cables) == parallel.get(link):
            serving[link] = cables
    served = {pair for cables in serving.values() for pair in cables}
    useless = (found.wired.cables | found.unseen) - served
    links = set(parallel)
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
