"""Builds with any family and routing policy, made without files."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Network

from compilers.routing.policy_passes import choices
from compilers.routing.routes_by_family import minimal
from compilers.spec.address_blocks import ipv4_block_length
from compilers.spec.policy import Policy
from compilers.tables.build import Build
from compilers.topology.families import FAMILIES
from compilers.wiring.addressing import Addressing, default_host_macs
from compilers.wiring.wiring import generated_inventory, wire


@cache
def routed(
    family: str = "polarfly",
    *,
    spread: bool = False,
    protect: str = "none",
    hosts: int = 1,
    **parameters: int | str,
) -> Build:
    """A build of a family; `spread` asks for alternates, `protect` for repair in the switch."""
    topology = FAMILIES[family].build(parameters)
    wiring = wire(topology, generated_inventory(topology, hosts), hosts)
    policy = Policy(balances=spread, protects=protect != "none", edge_disjoint=False)
    return Build(
        name=family,
        balance="compact-valiant" if spread else "minimal",
        protect=protect,
        inputs={},
        policy={"minimal_share": "equal-cost", "disjoint": "none"} if spread else {},
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
        tables=choices(minimal(topology, wiring), topology, wiring, policy),
    )
