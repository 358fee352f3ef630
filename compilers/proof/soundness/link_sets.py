"""Sets of links as bits: for each class of each switch the links of its alternates.

A set has a bit for each link of its switch. All sets of a fabric are one array, `Sets`. The
soundness checks and the local proof make sets of the alternates of a build (`alternate_sets`), and
ask which links they contain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import FABRIC, PortUse
from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts

Bits = NDArray[np.bool_]
Numbers = NDArray[Any]
"""Integers of any width."""
Sets = NDArray[np.uint8]
"""uint8[S, C, ⌈K/8⌉], the highest bit of the first byte for the first of K links."""


def contain(sets: Sets, link: NDArray[np.integer]) -> Bits:
    """Whether the sets of classes contain links.

    Args:
        sets: uint8[S, C, ⌈K/8⌉].
        link: int[S, C, n], links; -1 is in no set.

    Returns:
        bool[S, C, n].

    >>> contain(np.array([[[0b10100000]]], np.uint8), np.array([[[0, 1, 2, -1]]])).tolist()
    [[[True, False, True, False]]]
    """
    number = np.maximum(link, 0)
    byte = np.take_along_axis(sets, number >> 3, axis=2)
    is_in_set: Bits = ((byte >> (7 - (number & 7))) & 1 > 0) & (link >= 0)
    return is_in_set


def byte_and_bit(link: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.uint8]]:
    """The index of the byte that has each link in a set, and the bit of the link in this byte.

    >>> byte, bit = byte_and_bit(np.array([0, 9]))
    >>> byte.tolist(), bit.tolist()
    ([0, 1], [128, 64])
    """
    return link >> 3, (128 >> (link & 7)).astype(np.uint8)


def packed_alternates(build: Build, port_use: PortUse) -> AlternateLinks | None:
    """The alternates of a build as sets of links, if it stores them so.

    None if it stores ports. None also if it is damaged: a link of some set has a port at which the
    switch has no cable, or the cable of another link.
    """
    alternate = build.tables.classes.alternate
    if not isinstance(alternate, AlternatePorts):
        return None
    packed = alternate.packed
    links_of_any_class = np.bitwise_or.reduce(packed.links, axis=1)
    link_count = packed.port.shape[1]
    switch, link = np.nonzero(np.unpackbits(links_of_any_class, axis=1, count=link_count))
    has_right_link = port_use.links(packed.port)[switch, link] == link
    is_cabled = port_use.purposes(packed.port)[switch, link] == FABRIC
    return packed if (has_right_link & is_cabled).all() else None


def alternate_sets(build: Build, port_use: PortUse) -> Sets:
    """The links of the alternates of each class, uint8[S, C, ⌈K/8⌉]."""
    if packed := packed_alternates(build, port_use):
        return packed.links
    ports = np.asarray(build.tables.classes.alternate)
    switches, classes, _ = ports.shape
    # One column more than there are links. A port without a link has link -1, and so marks the last
    # column of the row before, which belongs to no link.
    width = build.wiring.port.shape[1] + 1
    is_alternate = np.zeros(switches * classes * width, np.bool_)
    row_begins = np.arange(0, len(is_alternate), width).reshape(switches, classes, 1)
    is_alternate[row_begins + port_use.links(ports)] = True
    return np.packbits(is_alternate.reshape(switches, classes, width)[..., :-1], axis=2)
