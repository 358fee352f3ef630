"""Sizes of address blocks: the prefix length of a vertex's block, and how many a pool must hold.

A *vertex* is a switch, by its number in the graph. It has one block, a prefix, in each pool of
addresses, for itself and its hosts. Families such as PolarStar join vertices into *supernodes* of
equal size. The blocks of a supernode begin at a multiple of a power of two, so that one prefix
covers all of them. `compilers.wiring.addressing` plans addresses with these sizes, and checks of
fabric.yaml refuse pools that are too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_network

FIRST_HOST = 2
"""The address of the first host, counted from the block's: those of the network and the gateway
come before it."""
IPV6_BLOCK_LENGTH = 64
"""The prefix length of a block of IPv6 addresses."""


def ipv4_block_length(hosts: int) -> int:
    """Return the prefix length of a block of IPv4 addresses for a switch and its hosts.

    The block also holds the network, the gateway and the broadcast address.

    >>> ipv4_block_length(4)
    29
    """
    return 32 - (hosts + FIRST_HOST).bit_length()


def member_bits(supernode_size: int) -> int:
    """Return the bits of a block's number that distinguish the vertices of a supernode.

    >>> member_bits(6)
    3
    """
    return (supernode_size - 1).bit_length()


def block_count(vertices: int, supernode_size: int) -> int:
    """Return how many blocks a pool has to hold, unused ones between supernodes included.

    Args:
        vertices: how many there are.
        supernode_size: the vertices of a supernode; 1 without supernodes.

    >>> block_count(12, 6)
    16
    """
    return (vertices // supernode_size) << member_bits(supernode_size)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of all vertices of a fabric (or of a plane, one of several alike) in one pool."""

    version: int
    """4 or 6: the kind of addresses."""
    first: int
    """The first address of block 0, as a number."""
    length: int
    """The prefix length of a block."""
    count: int
    """How many blocks there are, unused ones between supernodes included."""

    def block_of(self, address: IPv4Address | IPv6Address) -> str:
        """Return the block that an address is in, as text; "" if it is in none.

        >>> Blocks(4, int(IPv4Address("10.0.0.0")), 30, 7).block_of(IPv4Address("10.0.0.6"))
        '10.0.0.4/30'
        """
        if address.version != self.version:
            return ""
        number = (int(address) - self.first) >> (address.max_prefixlen - self.length)
        if not 0 <= number < self.count:
            return ""
        return str(ip_network(f"{address}/{self.length}", strict=False))
