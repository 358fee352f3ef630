"""Alternates and their weights, packed: a set of links a class, and two weights.

All alternates of a class have one weight, and come in the order of the switch's links. So a bit a
link tells of each whether its port is one, in a thirtieth of the memory of ports and weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedArray

BYTES_COUNTED_AT_ONCE = 1 << 16
"""Few, so that what is counted stays in the cache, and the memory for it with the process."""


@dataclass(frozen=True, eq=False)
class AlternateLinks:
    """The alternates of S switches with C classes and K links.

    links: uint8[S, C, ⌈K/8⌉], a bit a link, the highest of the first byte for the first. port:
    uint16[S, K], the ports of the links. weight: uint16[S, C, 2], of the minimal port and of each
    alternate.
    """

    links: Annotated[NDArray[np.uint8], "S C spread"]
    port: Annotated[NDArray[np.uint16], "S K", "0..ports+1"]
    weight: Annotated[NDArray[np.uint16], "S C 2"]

    @cached_property
    def most(self) -> int:
        """A, the most alternates of a class, or 1."""
        step = max(1, BYTES_COUNTED_AT_ONCE // max(1, prod(self.links.shape[1:])))
        some = range(0, len(self.links), step)
        parts = (self.links[first : first + step] for first in some)
        return max((int(counts(part).max(initial=0)) for part in parts), default=1) or 1

    def part(self, some: slice) -> AlternateLinks:
        """The alternates of some switches."""
        return AlternateLinks(self.links[some], self.port[some], self.weight[some])

    def usable(self, *index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[…, K]: the links of the alternates of these switches, or of a class of each."""
        bits = np.unpackbits(self.links[index], axis=-1, count=self.port.shape[1])
        return bits.view(np.bool_)


def counts(links: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """uint16[…]: how many links the bits of the last axis name."""
    words = np.ascontiguousarray(links).view(f"u{gcd(links.shape[-1], 8) or 1}")
    ones, odd, low_two, low_four = (
        words.dtype.type(int.from_bytes(bytes([byte]) * words.itemsize, "little"))
        for byte in (0x01, 0x55, 0x33, 0x0F)
    )
    pairs = words - (words >> 1 & odd)
    fours = (pairs & low_two) + (pairs >> 2 & low_two)
    eights = fours + (fours >> 4) & low_four
    each = eights * ones >> 8 * (words.itemsize - 1)  # the highest byte of the product has the sum
    found = np.zeros(links.shape[:-1], np.uint16)
    for word in range(words.shape[-1]):
        found += each[..., word].astype(np.uint16)
    return found


class AlternateArray(ComputedArray):
    """Ports or weights of a spread, uint16[S, C, …]."""

    packed: AlternateLinks
    extra = 0
    """Values of a class besides those of its alternates."""

    def __init__(self, packed: AlternateLinks, most: int = 0) -> None:
        """All of a spread; most: A, where it is a part of one that has so many alternates."""
        shape = *packed.links.shape[:2], (most or packed.most) + self.extra
        super().__init__(packed, shape, np.uint16)

    def part(self, some: slice) -> Self:
        """The array of some switches."""
        return type(self)(self.packed.part(some), self.shape[2] - self.extra)


class AlternatePorts(AlternateArray):
    """`Classes.alternate` of a spread, uint16[S, C, A]."""

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.uint16]:
        """uint16[n, C, A]: the ports of these switches, in the order of their links."""
        return self._ports(self.packed.usable(number), self.packed.port[number][:, None])

    def _cells(self, index: Any) -> NDArray[np.uint16]:
        """The ports of single classes."""
        if len(index) != 2:
            return super()._cells(index)
        return self._ports(self.packed.usable(*index), self.packed.port[index[0]])

    def _ports(self, usable: NDArray[np.bool_], port: NDArray[np.uint16]) -> NDArray[np.uint16]:
        found = np.zeros((*usable.shape[:-1], self.shape[2]), np.uint16)
        places = np.arange(self.shape[2]) < np.count_nonzero(usable, axis=-1)[..., None]
        found[places] = np.broadcast_to(port, usable.shape)[usable]
        return found


class AlternateWeights(AlternateArray):
    """`Classes.weight` of a spread, uint16[S, C, A + 1]."""

    extra = 1

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.uint16]:
        """uint16[n, C, A + 1]: the weight of the minimal port, then that of each alternate."""
        return self._weights(number)

    def _cells(self, index: Any) -> NDArray[np.uint16]:
        """The weights of single classes."""
        return self._weights(*index) if len(index) == 2 else super()._cells(index)

    def _weights(self, *index: NDArray[np.int64]) -> NDArray[np.uint16]:
        weight, count = self.packed.weight[index], counts(self.packed.links[index])
        there = np.arange(self.shape[2] - 1) < count[..., None]
        return np.concatenate((weight[..., :1], there * weight[..., 1:]), axis=-1)
