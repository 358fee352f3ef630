"""Traffic patterns between hosts in which a host's destination follows from the bits of its number.

These are the patterns `shuffle`, `reverse`, `complement` and `transpose` of the simulations of
networks (Dally and Towles, Principles and Practices of Interconnection Networks, §3.2). `traffic`
takes the hosts of a switch together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology


def shuffled(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with its bits rotated left by one.

    >>> shuffled(np.arange(8), 3)
    array([0, 2, 4, 6, 1, 3, 5, 7])

    Args:
        number: int64[2^bits], all numbers of so many bits, ascending.
        bits: how many bits they have.
    """
    highest_bit = number >> max(0, bits - 1)
    return ((number << 1) & (len(number) - 1)) | highest_bit


def reversed_bits(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with its bits in reverse order; the arguments are those of `shuffled`.

    >>> reversed_bits(np.arange(8), 3)
    array([0, 4, 2, 6, 1, 5, 3, 7])
    """
    reverse = np.zeros_like(number)
    for bit in range(bits):
        reverse |= ((number >> bit) & 1) << (bits - 1 - bit)
    return reverse


def complement(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:  # noqa: ARG001
    """The number with every bit inverted; the arguments are those of `shuffled`.

    As `number` has all numbers in ascending order, these are all numbers in descending order.

    >>> complement(np.arange(4), 2)
    array([3, 2, 1, 0])
    """
    return number[::-1]


def transposed(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with the upper and the lower half of its bits exchanged.

    The arguments are those of `shuffled`.

    >>> transposed(np.arange(16), 4)
    array([ 0,  4,  8, 12,  1,  5,  9, 13,  2,  6, 10, 14,  3,  7, 11, 15])
    """
    half = bits // 2
    lower_half = number & ((1 << half) - 1)
    return (number >> half) | (lower_half << half)


HOST_PATTERNS = {
    "shuffle": shuffled,
    "reverse": reversed_bits,
    "complement": complement,
    "transpose": transposed,
}
"""Patterns between hosts by name: the number of every host to that of its destination."""
HALVES_BITS = ("transpose",)
"""The patterns that need an even number of bits."""


class HostPairs(NamedTuple):
    """Pairs of hosts, the first of which sends to the second."""

    source: NDArray[np.int64]
    """int64[n], the number of each host that sends."""
    destination: NDArray[np.int64]
    """int64[n], the number of the host that it sends to."""


def host_pairs(pattern: str, topology: Topology, hosts: int) -> HostPairs:
    """The pairs of hosts of a fabric by a pattern.

    The h-th host of switch s has the number s·`hosts` + h. So numbers s·`hosts` to (s + 1)·`hosts`
    - 1 stay unused if switch s has no hosts. The pattern itself is that of the hosts that exist,
    numbered without gaps (`pairs_of_hosts`).

    Args:
        pattern: of `HOST_PATTERNS`.
        topology: its switches with hosts.
        hosts: how many hosts each of these switches has.
    """
    switches = np.flatnonzero(topology.endpoints)
    pairs = pairs_of_hosts(pattern, len(switches) * hosts)

    def number_in_fabric(number: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of a host in the fabric, from its number among the hosts that exist."""
        return switches[number // hosts] * hosts + number % hosts

    return HostPairs(number_in_fabric(pairs.source), number_in_fabric(pairs.destination))


def pairs_of_hosts(pattern: str, hosts: int) -> HostPairs:
    """The pairs of n hosts by a pattern, with hosts numbered from 0 to n - 1.

    A pattern needs a power of two of hosts. So the first 2^b hosts send, as many as there can be.
    In a pattern that halves the bits, b is even.

    Args:
        pattern: of `HOST_PATTERNS`.
        hosts: how many there are.
    """
    bits = hosts.bit_length() - 1
    if pattern in HALVES_BITS:
        bits -= bits % 2
    number = np.arange(1 << max(0, bits))
    return HostPairs(number, HOST_PATTERNS[pattern](number, bits))
