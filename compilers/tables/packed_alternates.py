"""Alternates and their weights, packed into one bit for each link and two weights for each class.

Unless weights are fitted to a demand, all alternates of a class have the same weight, and they come
in the order of the switch's links. So a class is described by a bit for each link of its switch (is
the link's port an alternate?), the weight of the minimal port, and the weight of every alternate.
This takes a thirtieth of the memory of the arrays of ports and weights, `Classes.alternate` and
`Classes.weight`, which are computed from it when they are read.
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
"""How many bytes of bits are counted at once: few enough to stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class AlternateLinks:
    """The alternates of S switches with C classes and K links."""

    links: Annotated[NDArray[np.uint8], "S C spread"]
    """uint8[S, C, ⌈K/8⌉], one bit for each link: 1 where its port is an alternate of the class.

    The first link has the highest bit of the first byte.
    """
    port: Annotated[NDArray[np.uint16], "S K", "0..ports+1"]
    """uint16[S, K], the port of each link."""
    weight: Annotated[NDArray[np.uint16], "S C 2"]
    """uint16[S, C, 2], the weight of the minimal port, and the weight of every alternate."""

    @cached_property
    def most_alternates(self) -> int:
        """The largest number of alternates of a class, A; 1 where no class has any."""
        step = max(1, BYTES_COUNTED_AT_ONCE // max(1, prod(self.links.shape[1:])))
        most = 0
        for first in range(0, len(self.links), step):
            count = count_set_bits(self.links[first : first + step])
            most = max(most, int(count.max(initial=0)))
        return most or 1

    def part(self, switches: slice) -> AlternateLinks:
        """Return the alternates of a range of switches."""
        return AlternateLinks(self.links[switches], self.port[switches], self.weight[switches])

    def is_alternate(self, *index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which links are alternates: bool[n, C, K], or bool[n, K] for one class of each.

        Args:
            index: int64[n], switches; with a second int64[n], one class of each.
        """
        return _bits(self.links[index], self.port.shape[1])


def _bits(packed: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    """Unpack the first `count` bits of the last axis, bool[…, count]."""
    return np.unpackbits(packed, axis=-1, count=count).view(np.bool_)


def count_set_bits(links: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Count the bits that are set along the last axis, uint16[…], of uint8[…, n].

    The bits of a word are added pairwise, then the pairs, and the fours (the classic "population
    count" of Hacker's Delight, §5-1), as NumPy 1 has no function for it.

    >>> count_set_bits(np.array([[0b10100000], [0b11111111]], np.uint8))
    array([2, 8], dtype=uint16)
    """
    words = np.ascontiguousarray(links).view(_widest_word(links.shape[-1]))
    lowest_bits, odd_bits, low_pairs, low_fours = (
        _repeated_byte(byte, words.dtype) for byte in (0x01, 0x55, 0x33, 0x0F)
    )
    pairs = words - (words >> 1 & odd_bits)
    fours = (pairs & low_pairs) + (pairs >> 2 & low_pairs)
    eights = fours + (fours >> 4) & low_fours
    # The product adds all bytes of a word up in its highest byte.
    in_word = eights * lowest_bits >> 8 * (words.itemsize - 1)
    total = np.zeros(links.shape[:-1], np.uint16)
    for word in range(words.shape[-1]):
        total += in_word[..., word].astype(np.uint16)
    return total


def _widest_word(length: int) -> np.dtype[Any]:
    """Return the widest unsigned integer, up to eight bytes, that divides `length` bytes."""
    return np.dtype(f"u{gcd(length, 8) or 1}")


def _repeated_byte(byte: int, word: np.dtype[Any]) -> Any:
    """Return a word whose bytes are all the same."""
    return word.type(int.from_bytes(bytes([byte]) * word.itemsize, "little"))


class AlternateArray(ComputedArray):
    """An array of alternates, uint16[S, C, …], computed from their packed form."""

    packed: AlternateLinks
    """The links that the values are computed from."""
    other_values = 0
    """The number of values of a class besides those of its A alternates."""

    def __init__(self, packed: AlternateLinks, most_alternates: int = 0) -> None:
        """Compute the array from `packed`.

        Args:
            packed: the alternates of the switches.
            most_alternates: A, where these are some switches of a fabric whose classes have up to
                A alternates; 0 to count them.
        """
        width = (most_alternates or packed.most_alternates) + self.other_values
        shape = *packed.links.shape[:2], width
        super().__init__(packed, shape, np.uint16)

    def part(self, switches: slice) -> Self:
        """Return the array of a range of switches, as wide as that of all."""
        return type(self)(self.packed.part(switches), self.shape[2] - self.other_values)


class AlternatePorts(AlternateArray):
    """`Classes.alternate`, uint16[S, C, A], computed from its packed form."""

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Return the alternate ports of switches, uint16[n, C, A], in the order of their links."""
        return self._ports(self.packed.is_alternate(number), self.packed.port[number][:, None])

    def _cells(self, index: Any) -> NDArray[np.uint16]:
        """Return the alternate ports of single classes: of arrays of switches and of classes."""
        if len(index) != 2:
            return super()._cells(index)
        return self._ports(self.packed.is_alternate(*index), self.packed.port[index[0]])

    def _ports(
        self, is_alternate: NDArray[np.bool_], port: NDArray[np.uint16]
    ) -> NDArray[np.uint16]:
        """Return the ports of the links that are alternates, then zeros, uint16[…, A].

        Args:
            is_alternate: bool[…, K].
            port: uint16[…, K], the port of each link.
        """
        ports = np.zeros((*is_alternate.shape[:-1], self.shape[2]), np.uint16)
        # Both masks select, class by class, as many values: the alternates in the order of their
        # links, and the first places of the row.
        count = np.count_nonzero(is_alternate, axis=-1)[..., None]
        first_places = np.arange(self.shape[2]) < count
        ports[first_places] = np.broadcast_to(port, is_alternate.shape)[is_alternate]
        return ports


class AlternateWeights(AlternateArray):
    """`Classes.weight`, uint16[S, C, A + 1], computed from its packed form."""

    other_values = 1
    """The weight of the minimal port."""

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Return the weights of the minimal ports and alternates of switches, uint16[n, C, A+1]."""
        return self._weights(number)

    def _cells(self, index: Any) -> NDArray[np.uint16]:
        """Return the weights of single classes: of arrays of switches and of classes."""
        return self._weights(*index) if len(index) == 2 else super()._cells(index)

    def _weights(self, *index: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Return the weights of classes, uint16[…, A + 1].

        Args:
            index: int64[n], switches; with a second int64[n], one class of each.
        """
        weight, count = self.packed.weight[index], count_set_bits(self.packed.links[index])
        of_minimal_port, of_each_alternate = weight[..., :1], weight[..., 1:]
        has_alternate = np.arange(self.shape[2] - 1) < count[..., None]
        of_alternates = np.where(has_alternate, of_each_alternate, np.uint16(0))
        return np.concatenate((of_minimal_port, of_alternates), axis=-1)
