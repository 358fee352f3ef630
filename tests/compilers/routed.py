"""Builds with any family and routing policy, made without files."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network

from compilers.addressing import Addressing, default_host_macs, ipv4_block_length
from compilers.build import Build
from compilers.routing import protection
from compilers.routing.alternates import compact_valiant
from compilers.routing.classes import split_direct
from compilers.routing.minimal import minimal
from compilers.topologies import FAMILIES
from compilers.wiring import generated_inventory, wire


@cache
def routed(
    family: str = "polarfly",
    *,
    spread: bool = False,
    protect: str = "none",
    hosts: int = 1,
    **parameters: int | str,
) -> Build:
    """A build of a family; `spread` asks for Compact Valiant (PolarFly), `protect` for repair."""
    topology = FAMILIES[family].build(parameters)
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    tables = minimal(topology, wiring)
    if spread or protect != "none":
        tables = split_direct(tables, wiring)
    if spread:
        tables = compact_valiant(tables, wiring, False, None)
    if protect != "none":
        tables = protection.polarfly(tables, wiring)
    return Build(
        name=family,
        balance="compact-valiant" if spread else "minimal",
        protect=protect,
        inputs={},
        topology=topology,
        wiring=wiring,
        addressing=Addressing(
            ipv4=IPv4Network("10.0.0.0/8"),
            ipv4_length=ipv4_block_length(hosts),
            ipv6=None,
            gateway_mac=0x025046000001,
            host_mac=default_host_macs(topology.graph.order, hosts),
        ),
        tables=tables,
    )
