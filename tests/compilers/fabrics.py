"""Builds for tests, made without files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from ipaddress import IPv4Network

from compilers.pipeline import compile_placed
from compilers.routing.minimal_routes import minimal_tables
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.fabric_file import LoadedFabric
from compilers.spec.forwarding import PLAIN
from compilers.tables.build import Build
from compilers.topology.families import FAMILIES
from compilers.wiring.addressing import Addressing
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.mac_addresses import default_host_macs
from compilers.wiring.placed_fabric import place_fabric
from compilers.wiring.wire import wire


@cache
def polarfly_build(q: int, hosts: int = 1) -> Build:
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    return Build(
        name=f"q{q}",
        balance="minimal",
        forwarding=PLAIN,
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
        tables=minimal_tables(topology, wiring),
    )


def partly_installed(loaded: LoadedFabric, racks: Collection[int]) -> Build:
    """The build of a fabric of which the nodes in all other racks than these are planned."""
    placed = place_fabric(loaded)
    rack = placed.hardware().rack
    later = {name for v, name in enumerate(placed.wiring.names) if rack[v] not in racks}
    nodes = tuple(
        node.model_copy(update={"state": "planned"}) if node.name in later else node
        for node in placed.inventory.nodes
    )
    inventory = placed.inventory.model_copy(update={"nodes": nodes})
    return compile_placed(replace(placed, inventory=inventory))
