"""SRv6 uSIDs of a fabric: the numbers of switches, links and hosts, and the block that they are in.

A carrier is an IPv6 address: a block of 32 bits, then up to six uSIDs of 16 bits, the first one
active (format F3216, RFC 9800, section 4). The numbers are:

- 0x1000 + i for switch i, counted from 1 in canonical order, as in the WMP-PolarFly white paper
  (v4.0, section 3.3). Up to 4,095 switches have numbers 0x1NNN; further ones go on with 0x2000.
- 0xa000 + h for host h of a switch, at every switch alike.
- 0xf000 + k for link k of a switch (uA).
- 0xe000 to take the outer header off (uDT6).

The last three mean something at one switch or host only. Each plane of a fabric has a block of its
own, as the block decides to which plane a host sends a carrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Network

from compilers.targets.options import Chosen
from extensions.host_paths.carrier_parts import BLOCK_BITS, USID_BITS
from extensions.host_paths.path_sets import ADJACENCY, DECAPSULATE, HOST, SWITCH, carrier
from inventory.problems import InputError, Problem

ADDRESS_BITS = 128
"""The bits of an IPv6 address."""
MOST_SWITCHES = HOST - SWITCH - 1
"""The most switches of a fabric: their uSIDs end before those of hosts begin."""
MOST_HOSTS = DECAPSULATE - HOST
"""The most hosts of a switch: their uSIDs end before that of decapsulation."""


@dataclass(frozen=True, slots=True)
class UsidBlock:
    """The block of one plane's uSIDs, with its carriers and prefixes as text.

    The numbers of uSIDs are the same in every block.
    """

    network: IPv6Network
    """The block: an IPv6 network of 32 bits."""

    def carrier(self, *usids: int) -> str:
        """The address that takes a packet along these uSIDs, at most six, none of them 0."""
        return carrier(usids, int(self.network.network_address) >> (ADDRESS_BITS - BLOCK_BITS))

    def prefix(self, *usids: int) -> str:
        """The prefix of the route for a packet whose next uSIDs are these."""
        return f"{self.carrier(*usids)}/{BLOCK_BITS + USID_BITS * len(usids)}"

    @staticmethod
    def switch(vertex: int) -> int:
        """The uSID of a switch."""
        return SWITCH + vertex + 1

    @staticmethod
    def host(number: int) -> int:
        """The uSID of a host by its number at its switch, from 0."""
        return HOST + number

    @staticmethod
    def link(rank: int) -> int:
        """The uSID of a link by its rank among the links of its switch, from 0."""
        return ADJACENCY + rank


def options_with_block(options: Chosen | None, default: str, plane: int) -> Chosen | None:
    """The options for a plane: those that were chosen for all planes, with the block of this one.

    The host's kernel looks a carrier up again after the encapsulation, whatever interface the
    nexthop names. So the block has to differ between planes.

    Args:
        options: the options that were chosen for all planes. They are returned as they are for
            the first plane, and if their block is no block: then the target refuses it.
        default: the default of the option `block`.
        plane: the number of the plane, from 0.
    """
    chosen = dict(options or {})
    first_block = parse_block(chosen.get("block", default))
    if first_block is None or not plane:
        return options
    return chosen | {"block": str(block_of_plane(first_block, plane))}


def block_of_plane(first_block: IPv6Network, plane: int) -> IPv6Network:
    """The block of a plane, from 0: the blocks of planes are consecutive."""
    return IPv6Network(
        (int(first_block.network_address) + (plane << ADDRESS_BITS - BLOCK_BITS), BLOCK_BITS)
    )


def parse_block(text: str) -> IPv6Network | None:
    """The block that a text names; None if it is no IPv6 network of 32 bits."""
    try:
        block = IPv6Network(text)
    except ValueError:
        return None
    return block if block.prefixlen == BLOCK_BITS else None


def required_block(text: str) -> IPv6Network:
    """The block that a text names.

    Raises:
        InputError: it is no IPv6 network of 32 bits.
    """
    block = parse_block(text)
    if block is None:
        raise InputError.of(f"an IPv6 network of {BLOCK_BITS} bits", text, key="block")
    return block


def require_numbers(switches: int, hosts: int) -> None:
    """Require uSIDs for so many switches, and for so many hosts of a switch.

    Raises:
        InputError: there are too few.
    """
    problems = [
        Problem(
            key=key,
            required=f"at most {limit:,} {noun}: uSIDs have 16 bits",
            given=f"{count:,}",
            todo="choose a smaller fabric or another target",
        )
        for key, noun, count, limit in (
            ("topology.q", "switches for target srv6", switches, MOST_SWITCHES),
            ("hosts_per_node", "hosts per switch for target srv6", hosts, MOST_HOSTS),
        )
        if count > limit
    ]
    if problems:
        raise InputError(problems)
