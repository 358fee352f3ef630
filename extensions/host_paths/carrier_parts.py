"""The parts of a carrier, the IPv6 address that names a path by micro-SIDs.

A *carrier* (a uSID carrier, RFC 9800) has a block of 32 bits, and then micro-SIDs (uSIDs) of 16
bits up to the first that is 0. So it has room for six of them (format F3216):

    fc00:0:1001:1006:a000:e000::
    ^^^^^^ ^^^^^^^^^^^^^^^^^^^
    block  uSIDs 0x1001, 0x1006, 0xa000 and 0xe000

The readers of rendered files take carriers and the prefixes of routes apart here. `usid_blocks`
writes them, and says what the numbers mean.
"""

from __future__ import annotations

from functools import lru_cache
from socket import AF_INET6, inet_pton
from struct import unpack
from typing import NamedTuple

BLOCK_BITS = 32
"""The bits of the block of a carrier."""
USID_BITS = 16
"""The bits of a uSID."""
MOST_USIDS = 6
"""How many uSIDs fit into an address behind the block."""
Usids = tuple[int, ...]
"""Some uSIDs in the order of a carrier."""


class Carrier(NamedTuple):
    """The parts of a carrier."""

    block: bytes
    """The first 32 bits."""
    usids: Usids
    """The uSIDs up to the first that is 0."""


@lru_cache(1 << 18)
def read_carrier(address: str) -> Carrier:
    """The parts of an address.

    Raises:
        OSError: it is no IPv6 address.
        ValueError: a uSID follows one that is 0.

    >>> read_carrier("fc00:0:1001:a000::").usids == (0x1001, 0xA000)
    True
    """
    packed = inet_pton(AF_INET6, address)
    usids: Usids = unpack("!6H", packed[4:])
    end = usids.index(0) if 0 in usids else len(usids)
    if any(usids[end:]):
        raise ValueError(address)
    return Carrier(packed[:4], usids[:end])


def prefix_length(usids: Usids) -> str:
    """The length of the prefix that matches carriers beginning with these uSIDs."""
    return str(BLOCK_BITS + USID_BITS * len(usids))
