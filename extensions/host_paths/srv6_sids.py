"""SRv6 uSIDs of a fabric: who has which number in the F3216 format (RFC 9800, section 4).

A carrier is an IPv6 address: a block of 32 bits, then up to six uSIDs of 16 bits, the first one
active. The numbers are:

- 0x1000 + i for switch i, counted from 1 in canonical order, as in the WMP-PolarFly white paper
  (v4.0, section 3.3). Up to 4,095 switches have numbers 0x1NNN; further ones go on with 0x2000.
- 0xa000 + h for host h of a switch, at every switch alike.
- 0xf000 + k for link k of a switch (uA).
- 0xe000 to take the outer header off (uDT6).

The last three mean something at one switch or host only.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Network

from compilers.targets.options import Chosen
from extensions.host_paths.path_sets import DECAPSULATE, HOST, SWITCH, carrier
from inventory.problems import InputError, Problem

BLOCK_BITS, USID_BITS = 32, 16
"""The bits of the block of a carrier, and of a uSID."""
ADDRESS_BITS = 128
"""The bits of an IPv6 address."""
MOST_SWITCHES, MOST_HOSTS = HOST - SWITCH - 1, DECAPSULATE - HOST
"""The most switches of a fabric, and the most hosts of a switch, that have numbers."""


@dataclass(frozen=True, slots=True)
class Usids:
    """The uSIDs of one fabric, as numbers, and the carriers and prefixes with them, as text."""

    block: IPv6Network
    """The IPv6 network of 32 bits that all of them are in."""

    def carrier(self, *usids: int) -> str:
        """The address that takes a packet along these uSIDs, at most six, none of them 0."""
        return carrier(usids, int(self.block.network_address) >> (ADDRESS_BITS - BLOCK_BITS))

    def prefix(self, *usids: int) -> str:
        """The prefix of the route for a packet whose next uSIDs are these."""
        return f"{self.carrier(*usids)}/{BLOCK_BITS + USID_BITS * len(usids)}"

    @staticmethod
    def switch(vertex: int) -> int:
        """The uSID of a switch, as a number."""
        return SWITCH + vertex + 1


def options_with_block(options: Chosen | None, default: str, plane: int) -> Chosen | None:
    """The options of a plane, with its block in them: the blocks of planes are consecutive.

    The block of a carrier decides which plane a host sends it to: the host's kernel looks the
    carrier up again after the encapsulation, whatever interface the nexthop names.

    Args:
        options: the options that were chosen for all planes. If their block is none, they are
            returned as they are: the target refuses it when it checks its options.
        default: the default of the option `block`.
        plane: the number of the plane, from 0.
    """
    chosen = dict(options or {})
    block = parse_block(chosen.get("block", default))
    if block is None or not plane:
        return options
    return chosen | {"block": str(own_block(block, plane))}


def own_block(block: IPv6Network, plane: int) -> IPv6Network:
    """The block of a plane, from 0."""
    return IPv6Network(
        (int(block.network_address) + (plane << ADDRESS_BITS - BLOCK_BITS), BLOCK_BITS)
    )


def parse_block(text: str) -> IPv6Network | None:
    """The block that a text names; None where it names none."""
    try:
        block = IPv6Network(text)
    except ValueError:
        return None
    return block if block.prefixlen == BLOCK_BITS else None


def required_block(text: str) -> IPv6Network:
    """The block that a text names.

    Raises:
        InputError: it names none.
    """
    block = parse_block(text)
    if block is None:
        raise InputError.of(f"an IPv6 network of {BLOCK_BITS} bits", text, key="block")
    return block


def require_numbers(switches: int, hosts: int) -> None:
    """Pass when there are uSIDs for so many switches, and hosts per switch.

    Raises:
        InputError: there are not.
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
