"""The addresses of switches and hosts, taken in order from the pools of fabric.yaml.

A compile calls `plan_addresses`. Targets read the addresses from the `Addressing` that it returns.

Vertex v has the v-th *block* of a pool, which is a prefix. In an IPv4 block, address 1 is the
gateway (the switch) and hosts follow from 2; a block is the smallest power of two that also holds
the network and broadcast addresses. An IPv6 block is a /64, with gateway ::1 and hosts from ::2.

Where vertices are members of supernodes, the blocks of a supernode begin at a multiple of a power
of two, so that one prefix, the *aggregate*, covers all of them. Prefixes are numbered as in
`Routes`: S blocks of vertices, then the aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import (
    FIRST_HOST,
    IPV6_BLOCK_LENGTH,
    Blocks,
    block_count,
    ipv4_block_length,
    member_bits,
)
from compilers.spec.allocations import POOL
from compilers.spec.installed import InstalledPlane
from compilers.topology.labelled_graph import Topology
from compilers.wiring.mac_addresses import format_mac, host_macs, macs_of_inventory, parse_mac
from compilers.wiring.vertex_nodes import node_indexes
from compilers.wiring.wiring_checks import PlacedNodes

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import AddressingSpec, FabricSpec
    from inventory.model import Inventory

VERSIONS = MappingProxyType({"ipv4": 4, "ipv6": 6})
"""The version of the addresses of each pool."""
UNLESS_DEFAULT = MappingProxyType({"stored": "unless default"})
"""Metadata of a field that a build stores only if it has another value than by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Addressing:
    """The addresses of a fabric of S switches with up to P hosts each."""

    ipv4: IPv4Network
    """The pool of IPv4 addresses."""
    ipv4_length: int
    """The prefix length of a vertex's block."""
    ipv6: IPv6Network | None
    """The pool of IPv6 addresses; None without one."""
    gateway_mac: int
    """The MAC address of the gateway, the same on every switch, as a number of 48 bits."""
    host_mac: Annotated[NDArray[np.uint64], "S P", "0..macs"]
    """uint64[S, P]: the MAC address of each host."""
    hierarchy: int = 1
    """The supernode size: how many vertices a supernode has. It is 1 in a fabric without
    supernodes, which has no aggregates."""
    first: tuple[str, ...] = ()
    """The first address of block 0 in each pool, IPv4 then IPv6; () if it is the pool's first."""
    source_checks: bool = field(default=True, metadata=UNLESS_DEFAULT)
    """Whether OpenFlow switches drop a host's packets with another source address than its own."""

    def _first_address(self, pool: IPv4Network | IPv6Network) -> int:
        """Return the first address of block 0 in a pool, as a number."""
        if not self.first:
            return int(pool.network_address)
        return int(ip_address(self.first[0 if pool.version == 4 else 1]))

    def first_addresses(self) -> dict[str, int]:
        """Return the first address of block 0 of each pool, as a number, by `ipv4` and `ipv6`."""
        pools = {"ipv4": self.ipv4, "ipv6": self.ipv6}
        return {name: self._first_address(pool) for name, pool in pools.items() if pool}

    def blocks(self) -> tuple[Blocks, ...]:
        """Return the blocks in each pool."""
        lengths = {"ipv4": self.ipv4_length, "ipv6": IPV6_BLOCK_LENGTH}
        count = block_count(len(self.host_mac), self.hierarchy)
        return tuple(
            Blocks(VERSIONS[name], first, lengths[name], count)
            for name, first in self.first_addresses().items()
        )

    def ipv4_blocks(self) -> NDArray[np.uint32]:
        """Return the network address of each vertex's block, uint32[S]."""
        return self.ipv4_prefixes()[0][: len(self.host_mac)]

    def ipv6_blocks(self) -> NDArray[np.uint64]:
        """Return the upper 64 bits of each vertex's block, uint64[S].

        Raises:
            ValueError: there is no IPv6 pool.
        """
        return self.ipv6_prefixes()[0][: len(self.host_mac)]

    def ipv4_prefixes(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Return the network address, uint32[n], and the length, uint8[n], of all n prefixes."""
        block, bits_shorter = self._first_blocks(self._prefix_numbers())
        first = self._first_address(self.ipv4)
        network = (first + (block << (32 - self.ipv4_length))).astype(np.uint32)
        return network, (self.ipv4_length - bits_shorter).astype(np.uint8)

    def ipv6_prefixes(self) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Return the upper 64 bits, uint64[n], and the length, uint8[n], of all n prefixes.

        Raises:
            ValueError: there is no IPv6 pool.
        """
        if self.ipv6 is None:
            raise ValueError("the fabric has no IPv6 pool")
        block, bits_shorter = self._first_blocks(self._prefix_numbers())
        first = np.uint64(self._first_address(self.ipv6) >> 64)
        return first + block.astype(np.uint64), (IPV6_BLOCK_LENGTH - bits_shorter).astype(np.uint8)

    def prefix_texts(self) -> tuple[list[str], ...]:
        """Return all prefixes as text: a list of IPv4, and one of IPv6 if there is a pool."""
        numbers = range(len(self.ipv4_prefixes()[0]))
        ipv4 = [str(self.network(prefix)) for prefix in numbers]
        if self.ipv6 is None:
            return (ipv4,)
        return ipv4, [str(self.network6(prefix)) for prefix in numbers]

    def vertex(self, address: IPv4Address | IPv6Address) -> int | None:
        """Return the vertex whose block an address is in; None if it is in no block."""
        if isinstance(address, IPv4Address):
            block = (int(address) - self._first_address(self.ipv4)) >> (32 - self.ipv4_length)
        elif self.ipv6 is not None:
            block = (int(address) - self._first_address(self.ipv6)) >> (128 - IPV6_BLOCK_LENGTH)
        else:
            return None
        supernode, member = divmod(block, 1 << member_bits(self.hierarchy))
        vertex = supernode * self.hierarchy + member
        in_block = 0 <= vertex < len(self.host_mac) and member < self.hierarchy
        return vertex if in_block else None

    def _prefix_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of all n prefixes, int64[n]: S blocks, then the aggregates."""
        blocks = len(self.host_mac)
        aggregates = 0 if self.hierarchy == 1 else blocks // self.hierarchy
        return np.arange(blocks + aggregates)

    def _first_blocks(
        self, prefix: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first block of prefixes, and how long they are.

        Returns:
            The first block of each prefix, int64[n], and how many bits the prefix is shorter than
            that of a block, int64[n]: 0 for a block, more for an aggregate.
        """
        vertices, bits = len(self.host_mac), member_bits(self.hierarchy)
        supernode, member = np.divmod(prefix, self.hierarchy)
        is_aggregate = prefix >= vertices
        # A supernode has 2^bits blocks, of which its members take the first.
        first_of_aggregate = prefix - vertices << bits
        block = np.where(is_aggregate, first_of_aggregate, (supernode << bits) + member)
        return block, np.where(is_aggregate, bits, 0)

    def network(self, prefix: int) -> IPv4Network:
        """Return the IPv4 network of a prefix: a vertex's block, or an aggregate."""
        block, bits_shorter = (int(part) for part in self._first_blocks(np.array(prefix)))
        address = self._first_address(self.ipv4) + (block << (32 - self.ipv4_length))
        return IPv4Network((address, self.ipv4_length - bits_shorter))

    def gateway(self, vertex: int) -> IPv4Address:
        """Return the address at which a vertex's switch answers ARP."""
        return self.network(vertex)[1]

    def host(self, vertex: int, host: int) -> IPv4Address:
        """Return the IPv4 address of a vertex's host, counted from 0."""
        return self.network(vertex)[FIRST_HOST + host]

    def network6(self, prefix: int) -> IPv6Network:
        """Return the IPv6 network of a prefix: a vertex's block, or an aggregate.

        Raises:
            ValueError: there is no IPv6 pool.
        """
        if self.ipv6 is None:
            raise ValueError("the fabric has no IPv6 pool")
        block, bits_shorter = (int(part) for part in self._first_blocks(np.array(prefix)))
        address = self._first_address(self.ipv6) + (block << (128 - IPV6_BLOCK_LENGTH))
        return IPv6Network((address, IPV6_BLOCK_LENGTH - bits_shorter))

    def host6(self, vertex: int, host: int) -> IPv6Address:
        """Return the IPv6 address of a vertex's host, counted from 0."""
        return self.network6(vertex)[FIRST_HOST + host]

    def mac(self, vertex: int, host: int) -> str:
        """Return the MAC address of a host as text."""
        return format_mac(int(self.host_mac[vertex, host]))


def plan_addresses(
    spec: FabricSpec,
    inventory: Inventory,
    topology: Topology,
    plane: int = 0,
    installed: InstalledPlane | None = None,
) -> Addressing:
    """Plan the addresses of a fabric.

    Blocks stay where they are if the pools still contain them, and hosts still fit in.

    Args:
        spec: its pools are large enough (`compilers.spec.cross_checks`).
        inventory: hosts keep the MAC addresses that it gives.
        topology: the fabric graph.
        plane: from 1, where there are several.
        installed: what was there before; None for a new fabric.
    """
    site = PlacedNodes.of(inventory, node_indexes(topology.graph.order, inventory))
    blocks = planned_blocks(
        spec.addressing,
        spec.hosts_per_node,
        block_count(topology.graph.order, topology.hierarchy),
        topology.hierarchy,
        installed,
    )
    return Addressing(
        ipv4=spec.addressing.ipv4,
        ipv4_length=blocks[0].length,  # the first pool is that of IPv4
        first=_moved_first_addresses(spec.addressing, blocks),
        ipv6=spec.addressing.ipv6,
        gateway_mac=parse_mac(spec.addressing.gateway_mac),
        host_mac=host_macs(site, spec.hosts_per_node, plane, macs_of_inventory(site, spec)),
        hierarchy=topology.hierarchy,
        source_checks=spec.addressing.source_checks,
    )


def planned_blocks(
    pools: AddressingSpec,
    hosts: int,
    count: int,
    supernode_size: int,
    installed: InstalledPlane | None,
) -> tuple[Blocks, ...]:
    """Return the blocks in each pool.

    They stay where they were in the previous build if the pool still contains them.

    Args:
        pools: they are large enough.
        hosts: the number of hosts of a switch.
        count: the number of blocks (`block_count`).
        supernode_size: the number of vertices in a supernode; 1 without supernodes.
        installed: what was there before; None for a new fabric.
    """
    length = ipv4_block_length(hosts)
    before = installed.allocations.of(POOL).used if installed else {}

    def kept_first(name: str, pool: IPv4Network | IPv6Network, block_length: int) -> int | None:
        """The first address of the previous build; None if blocks cannot begin there any more.

        The pool needs room for all blocks from there on. Aggregates need a multiple of their size,
        which the address is no longer if supernodes have grown.
        """
        first = before.get(name)
        if first is None:
            return None
        last = first + (count << (pool.max_prefixlen - block_length)) - 1
        inside = int(pool.network_address) <= first and last <= int(pool.broadcast_address)
        aggregate = block_length - member_bits(supernode_size)
        is_aligned = first % (1 << (pool.max_prefixlen - aggregate)) == 0
        return first if inside and is_aligned else None

    # Blocks that were larger keep their length, as a shorter block would move all later ones.
    length_before = installed.block_length if installed else 0
    if 0 < length_before <= length and kept_first("ipv4", pools.ipv4, length_before) is not None:
        length = length_before
    lengths = {"ipv4": (pools.ipv4, length), "ipv6": (pools.ipv6, IPV6_BLOCK_LENGTH)}
    blocks = []
    for name, (pool, block_length) in lengths.items():
        if pool is None:
            continue
        first = kept_first(name, pool, block_length)
        if first is None:
            first = int(pool.network_address)
        blocks.append(Blocks(pool.version, first, block_length, count))
    return tuple(blocks)


def _moved_first_addresses(pools: AddressingSpec, blocks: Sequence[Blocks]) -> tuple[str, ...]:
    """Return the first address of block 0 in each pool; () if block 0 is the first of each pool.

    Args:
        pools: the pools of IPv4 and IPv6.
        blocks: the blocks in each of them.
    """
    used_pools = (pool for pool in (pools.ipv4, pools.ipv6) if pool)
    pairs = zip(used_pools, blocks, strict=True)
    if all(int(pool[0]) == pool_blocks.first for pool, pool_blocks in pairs):
        return ()
    kinds = {4: IPv4Address, 6: IPv6Address}
    return tuple(str(kinds[pool_blocks.version](pool_blocks.first)) for pool_blocks in blocks)
