"""Addresses: a prefix a vertex, a gateway and hosts in each, taken in order from the pools.

Vertex v owns the v-th block of the pool. In an IPv4 block address 1 is the gateway (the switch)
and hosts follow from 2; a block is the smallest power of two that also holds the network and
broadcast addresses. In IPv6 a block is a /64, the gateway ::1, hosts from ::2.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import numpy as np
from numpy.typing import NDArray

FIRST_HOST = 2


@dataclass(frozen=True, slots=True)
class Addressing:
    """The plan of a fabric of S switches with up to P hosts each.

    ipv4: the pool; ipv4_length: prefix length of a vertex's block. ipv6: the pool or None; its
    blocks are /64. gateway_mac: 48-bit number, the same on every switch. host_mac: uint64[S, P].
    """

    ipv4: IPv4Network
    ipv4_length: int
    ipv6: IPv6Network | None
    gateway_mac: int
    host_mac: NDArray[np.uint64]

    def ipv4_blocks(self) -> NDArray[np.uint32]:
        """uint32[S], the network address of each vertex."""
        step = 1 << (32 - self.ipv4_length)
        first = int(self.ipv4.network_address)
        return (first + np.arange(len(self.host_mac), dtype=np.int64) * step).astype(np.uint32)

    def ipv6_blocks(self) -> NDArray[np.uint64]:
        """uint64[S], the upper 64 bits of each vertex's block. Needs an IPv6 pool."""
        if self.ipv6 is None:
            raise ValueError("the fabric has no IPv6 pool")
        first = np.uint64(int(self.ipv6.network_address) >> 64)
        return first + np.arange(len(self.host_mac), dtype=np.uint64)

    def network(self, vertex: int) -> IPv4Network:
        """The IPv4 block of a vertex."""
        return IPv4Network((int(self.ipv4_blocks()[vertex]), self.ipv4_length))

    def gateway(self, vertex: int) -> IPv4Address:
        """The address at which the switch answers ARP."""
        return self.network(vertex)[1]

    def host(self, vertex: int, host: int) -> IPv4Address:
        """The IPv4 address of the host-th host (from 0) of a vertex."""
        return self.network(vertex)[FIRST_HOST + host]

    def network6(self, vertex: int) -> IPv6Network:
        """The IPv6 block of a vertex."""
        return IPv6Network((int(self.ipv6_blocks()[vertex]) << 64, 64))

    def host6(self, vertex: int, host: int) -> IPv6Address:
        """The IPv6 address of the host-th host (from 0) of a vertex."""
        return self.network6(vertex)[FIRST_HOST + host]

    def mac(self, vertex: int, host: int) -> str:
        """The MAC address of a host, as text."""
        return format_mac(int(self.host_mac[vertex, host]))


def ipv4_block_length(hosts: int) -> int:
    """The prefix length whose block holds `hosts` hosts, a gateway, network and broadcast."""
    return 32 - (hosts + FIRST_HOST).bit_length()


def default_host_macs(switches: int, hosts: int) -> NDArray[np.uint64]:
    """uint64[S, P]: locally administered, vertex in the middle 24 bits, host in the low 16."""
    vertex = np.arange(switches, dtype=np.uint64)[:, None] << np.uint64(16)
    return np.uint64(0x02 << 40) + vertex + np.arange(1, hosts + 1, dtype=np.uint64)


def format_mac(mac: int) -> str:
    """`02:50:46:00:00:01` for a 48-bit number."""
    return mac.to_bytes(6, "big").hex(":")


def parse_mac(text: str) -> int:
    """The 48-bit number of `02:50:46:00:00:01`."""
    return int(text.replace(":", ""), 16)
