"""Addresses: a prefix per vertex, a gateway and hosts in each, taken in order from the pools.

Vertex v owns the v-th block of the pool. Where vertices are the members of supernodes, each of
these starts at the next power of two of blocks, so that its blocks are one prefix, the aggregate.
In an IPv4 block address 1 is the gateway (the switch) and hosts follow from 2; a block is the
smallest power of two that also holds the network and broadcast addresses. In IPv6 a block is a
/64, the gateway ::1, hosts from ::2.

Prefixes are numbered as in `Routes`: S blocks of vertices, then the aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST, ipv4_block_length, member_bits
from compilers.spec.balances import balance_named
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import place
from compilers.wiring.wiring_checks import Site
from inventory.problems import Finding

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import FabricSpec
    from inventory.model import Inventory
from collections.abc import Sequence
from typing import Any

from inventory.asn_range import PRIVATE_AS

MARK_IN_MAC = 1 << 23
"""Other than in the gateway's MAC address in the one that marked packets are sent to."""
CARRIED_BITS = 16
"""The last bits of a MAC address, where packets carry the number of their intermediate."""


@dataclass(frozen=True, slots=True, eq=False)
class Addressing:
    """The addresses of a fabric of S switches with up to P hosts each."""

    ipv4: IPv4Network
    """The pool of IPv4."""
    ipv4_length: int
    """The prefix length of a vertex's block."""
    ipv6: IPv6Network | None
    """The pool of IPv6, whose blocks are /64; None without one."""
    gateway_mac: int
    """A number of 48 bits, the same on every switch."""
    host_mac: Annotated[NDArray[np.uint64], "S P", "0..macs"]
    """uint64[S, P]: the MAC address of each host."""
    hierarchy: int = 1
    """Vertices per supernode; 1 where there are none, and so no aggregates."""

    def ipv4_blocks(self) -> NDArray[np.uint32]:
        """uint32[S], the network address of each vertex."""
        return self.ipv4_prefixes()[0][: len(self.host_mac)]

    def ipv6_blocks(self) -> NDArray[np.uint64]:
        """uint64[S], the upper 64 bits of each vertex's block. Needs an IPv6 pool."""
        return self.ipv6_prefixes()[0][: len(self.host_mac)]

    def ipv4_prefixes(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """uint32[P], uint8[P]: the network address and length of each prefix."""
        block, shorter = self._places(self._prefixes())
        first = int(self.ipv4.network_address)
        network = (first + (block << (32 - self.ipv4_length))).astype(np.uint32)
        return network, (self.ipv4_length - shorter).astype(np.uint8)

    def ipv6_prefixes(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """uint64[P], uint8[P]: the upper 64 bits and the length of each prefix.

        Raises:
            ValueError: there is no IPv6 pool.
        """
        if self.ipv6 is None:
            raise ValueError("the fabric has no IPv6 pool")
        block, shorter = self._places(self._prefixes())
        first = np.uint64(int(self.ipv6.network_address) >> 64)
        return first + block.astype(np.uint64), (64 - shorter).astype(np.uint8)

    def prefix_texts(self) -> tuple[list[str], ...]:
        """Every prefix as text, of IPv4 and then of IPv6 where there is a pool."""
        numbers = range(len(self.ipv4_prefixes()[0]))
        networks = (self.network, self.network6)[: 1 + (self.ipv6 is not None)]
        return tuple([str(network(p)) for p in numbers] for network in networks)

    def vertex(self, address: IPv4Address | IPv6Address) -> int | None:
        """The vertex whose block an address is in; None where there is none."""
        if isinstance(address, IPv4Address):
            block = (int(address) - int(self.ipv4.network_address)) >> (32 - self.ipv4_length)
        elif self.ipv6 is not None:
            block = (int(address) - int(self.ipv6.network_address)) >> 64
        else:
            return None
        supernode, member = divmod(block, 1 << member_bits(self.hierarchy))
        vertex = supernode * self.hierarchy + member
        known = 0 <= vertex < len(self.host_mac) and member < self.hierarchy
        return vertex if known else None

    def _prefixes(self) -> NDArray[np.int64]:
        """int64[P]: all prefix numbers."""
        order = len(self.host_mac)
        return np.arange(order if self.hierarchy == 1 else order + order // self.hierarchy)

    def _places(self, prefix: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[n], int64[n]: each prefix's first block, and by how many bits it is shorter."""
        order, bits = len(self.host_mac), member_bits(self.hierarchy)
        supernode, member = np.divmod(prefix, self.hierarchy)
        whole = prefix >= order
        block = np.where(whole, prefix - order << bits, (supernode << bits) + member)
        return block, whole * bits

    def network(self, prefix: int) -> IPv4Network:
        """The IPv4 network of a prefix: a vertex's block, or an aggregate."""
        block, shorter = (int(part) for part in self._places(np.array(prefix)))
        length = 32 - self.ipv4_length
        return IPv4Network(
            (int(self.ipv4.network_address) + (block << length), self.ipv4_length - shorter)
        )

    def gateway(self, vertex: int) -> IPv4Address:
        """The address at which the switch answers ARP."""
        return self.network(vertex)[1]

    def host(self, vertex: int, host: int) -> IPv4Address:
        """The IPv4 address of the host-th host (from 0) of a vertex."""
        return self.network(vertex)[FIRST_HOST + host]

    def network6(self, prefix: int) -> IPv6Network:
        """The IPv6 network of a prefix: a vertex's block, or an aggregate."""
        if self.ipv6 is None:
            raise ValueError("the fabric has no IPv6 pool")
        block, shorter = (int(part) for part in self._places(np.array(prefix)))
        return IPv6Network((int(self.ipv6.network_address) + (block << 64), 64 - shorter))

    def host6(self, vertex: int, host: int) -> IPv6Address:
        """The IPv6 address of the host-th host (from 0) of a vertex."""
        return self.network6(vertex)[FIRST_HOST + host]

    def mac(self, vertex: int, host: int) -> str:
        """The MAC address of a host, as text."""
        return format_mac(int(self.host_mac[vertex, host]))


def plan(spec: FabricSpec, inventory: Inventory, topology: Topology, plane: int = 0) -> Addressing:
    """The addresses of a fabric: the spec's pools, the inventory's MAC addresses where it has any.

    Args:
        spec: pools that are large enough (`compilers.spec.cross_checks`).
        inventory: host h of the node at vertex v takes the MAC address of the node's h-th entry.
        topology: the fabric graph.
        plane: from 1, where there are several.
    """
    site = Site.of(inventory, place(topology.graph.order, inventory))
    return Addressing(
        ipv4=spec.addressing.ipv4,
        ipv4_length=ipv4_block_length(spec.hosts_per_node),
        ipv6=spec.addressing.ipv6,
        gateway_mac=parse_mac(spec.addressing.gateway_mac),
        host_mac=_host_macs(site, spec.hosts_per_node, plane, _given_macs(site, spec)),
        hierarchy=topology.hierarchy,
    )


def _given_macs(site: Site, spec: FabricSpec) -> dict[tuple[int, int], int]:
    """The MAC addresses of the inventory, by vertex and host."""
    return {
        (v, h): parse_mac(host.mac)
        for v, node in enumerate(site.nodes)
        for h, host in enumerate(node.hosts[: spec.hosts_per_node])
        if host.mac
    }


def _host_macs(
    site: Site, hosts: int, plane: int, given: Mapping[tuple[int, int], int]
) -> NDArray[np.uint64]:
    """uint64[S, P]: those that are given, else the usual ones."""
    macs = default_host_macs(len(site.nodes), hosts, plane)
    for where, mac in given.items():
        macs[where] = mac
    return macs


def clashing_macs(
    spec: FabricSpec, inventory: Inventory, topology: Topology, plane: int = 0
) -> Iterator[Finding]:
    """MAC addresses that are also the gateway's, or the usual one of a host without any."""
    site = Site.of(inventory, place(topology.graph.order, inventory))
    given, gateway = _given_macs(site, spec), parse_mac(spec.addressing.gateway_mac)
    forwarding = balance_named(spec.routing.balance).forwarding
    gateways = [gateway, gateway ^ MARK_IN_MAC] if forwarding.marks else [gateway]
    host_mac = _host_macs(site, spec.hosts_per_node, plane, given)
    if forwarding.intermediates:
        carried = host_mac >> np.uint64(CARRIED_BITS) == carried_mac(gateway) >> CARRIED_BITS
        gateways += host_mac[carried].tolist()
    macs, uses = np.unique(host_mac, return_counts=True)
    shared = set(macs[uses > 1].tolist())
    for (v, h), mac in given.items():
        if mac in shared or mac in gateways:
            yield site.finding(
                v,
                ("hosts", h, "mac"),
                "a MAC address that no other host has, nor the gateway",
                format_mac(mac),
                "choose another: addresses 02:VV:VV:VV:HH:HH of vertex V belong to hosts without "
                "one",
            )
    for mac in gateways:
        if mac not in macs or mac in given.values():
            continue
        marked = "" if mac == gateway else f", as marked packets go to {format_mac(mac)}"
        yield Finding(
            ("addressing", "gateway_mac"),
            "a MAC address that no host has",
            f"{format_mac(gateway)}{marked}",
            "hosts have 02:VV:VV:VV:HH:HH, V their vertex; choose one outside these",
        )


def carried_mac(gateway: int) -> int:
    """The MAC address of packets that go by intermediate 0; that of number n is n higher."""
    return (gateway ^ MARK_IN_MAC) >> CARRIED_BITS << CARRIED_BITS


def default_host_macs(switches: int, hosts: int, plane: int = 0) -> NDArray[np.uint64]:
    """uint64[S, P]: locally administered, vertex in the middle 24 bits, host in the low 16.

    The first byte is 02, and in planes 2, 3, … 06, 0a, ….
    """
    vertex = np.arange(switches, dtype=np.uint64)[:, None] << np.uint64(16)
    host = np.arange(1, hosts + 1, dtype=np.uint64)
    return (np.uint64(0x02 + 4 * max(plane - 1, 0) << 40) + vertex + host).astype(
        np.uint64, copy=False
    )


def format_mac(mac: int) -> str:
    """`02:50:46:00:00:01` for a 48-bit number."""
    return mac.to_bytes(6, "big").hex(":")


def parse_mac(text: str) -> int:
    """The 48-bit number of `02:50:46:00:00:01`."""
    return int(text.replace(":", ""), 16)


FIRST, OWN = "asn", "node_asn"
"""Keys of a build's `base`: the number of vertex 0, and those of nodes by name."""


def as_numbers(base: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.int64]:
    """int64[S]: the AS number of every vertex.

    Args:
        base: of the build.
        names: of the nodes.
    """
    own: dict[str, int] = base.get(OWN, {})
    usual = range(base.get(FIRST, PRIVATE_AS), base.get(FIRST, PRIVATE_AS) + len(names))
    return np.array([own.get(*each) for each in zip(names, usual, strict=True)], np.int64)
