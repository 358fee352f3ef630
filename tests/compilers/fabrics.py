"""Builds for tests, made without files."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network

from compilers.routing.minimal_routes import minimal
from compilers.spec.address_blocks import ipv4_block_length
from compilers.tables.build import Build
from compilers.topology.families import FAMILIES
from compilers.wiring.addressing import Addressing, default_host_macs
from compilers.wiring.wiring import generated_inventory, wire


@cache
def polarfly_build(q: int, hosts: int = 1) -> Build:
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    return Build(
        name=f"q{q}",
        balance="minimal",
        protect="none",
        inputs={},
        topology=topology,
        wiring=wiring,
        addressing=Addressing(
            ipv4=IPv4Network("10.0.0.0/8"),
            ipv4_length=ipv4_block_length(hosts),
            ipv6=None,
            gateway_mac=0x025046000001,
            host_mac=default_host_macs(topology.graph.order, hosts),
            hierarchy=topology.hierarchy,
        ),
        tables=minimal(topology, wiring),
    )
