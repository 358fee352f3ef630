"""Junos: packets from hosts looked up in a table of their own (filter-based forwarding).

A filter at the port of the hosts sends packets for the fabric to a forwarding instance, whose
routes have a next hop for every port that shares the entering traffic of a class. Packets in
transit meet the main table alone, as `compilers.tables.intermediate_form.Classes` wants it.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.targets.routed.p2p_links import P2pFabric
from compilers.targets.routed.static_routes import RoutedFabric

IngressRoutes = list[tuple[str, list[str]]]
"""Prefixes, and the gateways that share what enters the fabric for them."""


def ingress_routes(fabric: P2pFabric, vertex: int) -> tuple[IngressRoutes, IngressRoutes]:
    """The routes of packets from hosts, IPv4 and IPv6.

    Both are empty where no class of the switch shares its traffic, or no host is there.
    """
    shares = {share.egress: share.port for share in fabric.routed.shares(vertex)}
    if not shares or not fabric.router(vertex).hosts:
        return [], []
    ipv4, ipv6 = _families(fabric, vertex, shares)
    return ipv4, ipv6


def _families(
    fabric: P2pFabric, vertex: int, shares: dict[int, tuple[int, ...]]
) -> Iterator[IngressRoutes]:
    routed, links = fabric.routed, fabric.links(vertex)
    ports = _ports(routed, vertex, shares)
    for family in range(2):
        texts = routed.prefixes[family] if family < len(routed.prefixes) else None
        yield [
            (texts[prefix], [(links[p].gateway4, links[p].gateway6)[family] for p in way])
            for prefix, way in ports
            if texts
        ]


def _ports(
    routed: RoutedFabric, vertex: int, shares: dict[int, tuple[int, ...]]
) -> list[tuple[int, tuple[int, ...]]]:
    minimal = routed.build.tables.classes.port[vertex].tolist()
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    return [(p, shares.get(k, (minimal[k],))) for p, k in zip(prefix, egress, strict=True)]
