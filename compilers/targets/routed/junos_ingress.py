"""Junos: packets from hosts looked up in a table of their own (filter-based forwarding).

A filter at the port of the hosts sends packets for the fabric to a forwarding instance, whose
routes have a next hop for every port that shares the entering traffic of a class. Packets in
transit meet the main table alone, as `compilers.tables.intermediate_form.Classes` wants it.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilers.targets.routed.p2p_links import P2pFabric
from compilers.targets.routed.static_routes import RoutedFabric
from inventory.route_tables.held_routes import DISCARD, Choices, RouteTables, hops_of

INSTANCE = "polarfab"
"""The forwarding instance of packets from hosts."""
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


def entering_table(fabric: P2pFabric, vertex: int) -> RouteTables:
    """The routes of packets from hosts as the instance holds them; none where there are none."""
    interface = {
        gateway: link.interface
        for link in fabric.links(vertex).values()
        for gateway in (link.gateway4, link.gateway6)
    }
    found = [routes for routes in ingress_routes(fabric, vertex) if routes]
    table: dict[str, Choices] = {
        prefix: (hops_of((gateway, interface[gateway], 1) for gateway in gateways),)
        for routes in found
        for prefix, gateways in routes
    }
    pools = fabric.routed.pools()[: len(found)]
    return {INSTANCE: table | dict.fromkeys(pools, (DISCARD,))} if found else {}


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
