"""Blocks of addresses: the length of a vertex's prefix, and the number of blocks in a pool."""

from __future__ import annotations

FIRST_HOST = 2


def ipv4_block_length(hosts: int) -> int:
    """The prefix length whose block holds `hosts` hosts, a gateway, network and broadcast."""
    return 32 - (hosts + FIRST_HOST).bit_length()


def member_bits(hierarchy: int) -> int:
    """The bits of a block's number that distinguish the members of a supernode."""
    return (hierarchy - 1).bit_length()


def block_count(order: int, hierarchy: int) -> int:
    """How many blocks a pool has to hold, those between supernodes included."""
    return order // hierarchy << member_bits(hierarchy)
