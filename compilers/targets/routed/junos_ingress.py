"""Junos: packets from hosts looked up in a table of their own (filter-based forwarding).

A filter at the port of the hosts sends packets for the fabric to a forwarding instance, whose
routes have a next hop for every port that shares the entering traffic of a class. Packets in
transit meet the main table alone, as `compilers.tables.intermediate_form.Classes` wants it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.targets.routed.p2p_links import Numbered
from compilers.targets.routed.static_routes import Routed

Entering = list[tuple[str, list[str]]]
"""Prefixes, and the gateways that share what enters the fabric for them."""


def entering(numbered: Numbered, vertex: int) -> dict[str, Any]:
    """The variables of the templates for packets from hosts: `entering4` and `entering6`.

    Both are empty where no class of the switch shares its traffic, or no host is there.
    """
    routed = numbered.routed
    shares = {share.egress: share.port for share in routed.shares(vertex)}
    families: list[Entering] = [[], []]
    if shares and numbered.router(vertex).hosts:
        families = list(_families(numbered, vertex, shares))
    return {"entering4": families[0], "entering6": families[1]}


def _families(
    numbered: Numbered, vertex: int, shares: dict[int, tuple[int, ...]]
) -> Iterator[Entering]:
    routed, links = numbered.routed, numbered.links(vertex)
    ports = _ports(routed, vertex, shares)
    for family in range(2):
        texts = routed.prefixes[family] if family < len(routed.prefixes) else None
        yield [
            (texts[prefix], [(links[p].gateway4, links[p].gateway6)[family] for p in way])
            for prefix, way in ports
            if texts
        ]


def _ports(
    routed: Routed, vertex: int, shares: dict[int, tuple[int, ...]]
) -> list[tuple[int, tuple[int, ...]]]:
    minimal = routed.build.tables.classes.port[vertex].tolist()
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    return [(p, shares.get(k, (minimal[k],))) for p, k in zip(prefix, egress, strict=True)]
