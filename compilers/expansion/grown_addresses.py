"""The addresses of a larger fabric: blocks for its new switches, which nobody else has.

`grow` calls these functions. A *block* is the prefix of one switch and its hosts. A *spare* is a
node of the inventory without a vertex, which becomes a new switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address

from compilers.expansion.spare_nodes import SpareNodes, hosts_of_spares
from compilers.spec.address_blocks import IPV6_BLOCK_LENGTH
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing
from compilers.wiring.hardware import Hardware
from compilers.wiring.mac_addresses import default_host_macs, parse_mac
from inventory.problems import InputError


def grown_addressing(
    old: Addressing, larger: Topology, plane: int, spare_nodes: SpareNodes
) -> Addressing:
    """The addresses of a larger fabric: old addresses stay, and spares keep their hosts' addresses.

    Args:
        old: the addresses of the smaller fabric.
        larger: the larger topology.
        plane: the plane, from 1; 0 for a fabric of one plane.
        spare_nodes: the spare nodes that are used, by their vertices.

    Raises:
        InputError: a pool of addresses is too small.
    """
    vertices = larger.graph.order
    first_addresses = old.first_addresses()
    pools = ((old.ipv4, old.ipv4_length), (old.ipv6, IPV6_BLOCK_LENGTH))
    for pool, block_length in pools:
        if pool is None:
            continue
        first = first_addresses[f"ipv{pool.version}"]
        last = first + (vertices << (pool.max_prefixlen - block_length)) - 1
        if last > int(pool.broadcast_address):
            # The longest prefix that has both addresses.
            length_needed = pool.max_prefixlen - (first ^ last).bit_length()
            required = f"a pool of /{length_needed} or larger for {vertices:,} vertices"
            todo = "a larger pool that contains this one keeps all addresses"
            if plane:  # a larger pool would not change the part of this plane
                todo = f"compile fabric.yaml with `{_as_yaml(larger)}` and all its nodes instead; "
                todo += "this renumbers all planes but the first"
            raise InputError.of(required, str(pool), todo, key="addressing")
    macs = default_host_macs(vertices, old.host_mac.shape[1], plane)
    macs[: len(old.host_mac)] = old.host_mac
    for vertex_and_number, host in hosts_of_spares(spare_nodes, macs.shape[1]):
        if host.mac:
            macs[vertex_and_number] = parse_mac(host.mac)
    return replace(old, host_mac=macs)


def named_addresses(build: Build, hardware: Hardware) -> dict[str, str]:
    """The addresses of management and servers that a build names, each with its use in words.

    "" is among them if the build names no gateway, or some node has no management address.
    """
    management = build.base.get("management") or {}
    return {
        **dict.fromkeys(build.base.get("ntp", ()), "a time server (base.ntp)"),
        **dict.fromkeys(build.base.get("syslog", ()), "a server of logs (base.syslog)"),
        **{management.get("gateway") or "": "the gateway of management (base.management)"},
        **management_addresses((build,)),
        **{spare.management: f"the management of {spare.name}" for spare in hardware.spares},
    }


def management_addresses(builds: Sequence[Build]) -> dict[str, str]:
    """The management addresses of the nodes of builds, each with its use in words."""
    return {
        address: f"the management of {name}"
        for build in builds
        for name, address in zip(build.wiring.names, build.wiring.management, strict=True)
    }


def require_outside(larger: Addressing, addresses: Mapping[str, str]) -> None:
    """Require that no block of a larger fabric holds an address of management or of a server.

    Args:
        larger: the addresses of the larger fabric.
        addresses: by address, its use in words (`named_addresses`). "" is left out.

    Raises:
        InputError: a block holds such an address.
    """
    for text, use in addresses.items():
        if not text:
            continue
        for blocks in larger.blocks():  # of IPv4, and of IPv6
            if block := blocks.block_of(ip_address(text)):
                raise InputError.of(
                    key="addressing",
                    required=f"blocks of new switches without {use}",
                    given=f"{text} in {block}",
                    todo="give it another address, compile, and expand that build",
                )


def _as_yaml(topology: Topology) -> str:
    """A topology as the key `topology` of fabric.yaml."""
    values = ", ".join(f"{word}: {value}" for word, value in topology.parameters.items())
    return f"topology: {{family: {topology.family}, {values}}}"
