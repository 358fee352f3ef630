"""Sets of a switch's links, a bit a link, as in `AlternateLinks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import FABRIC, PortUse
from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts

Numbers = NDArray[Any]
Bits = NDArray[np.bool_]
Sets = NDArray[np.uint8]
"""uint8[S, C, ⌈K/8⌉], the highest bit of the first byte for the first of K links."""


def has(sets: Sets, link: NDArray[np.integer]) -> Bits:
    """bool[S, C, n]: whether the sets have these links, int[S, C, n]; -1 is none."""
    place = np.maximum(link, 0)
    byte = np.take_along_axis(sets, place >> 3, axis=2)
    found: Bits = ((byte >> (7 - (place & 7))) & 1 > 0) & (link >= 0)
    return found


def bits(link: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.uint8]]:
    """The byte of each link in its set, and its bit there."""
    return link >> 3, (128 >> (link & 7)).astype(np.uint8)


def first_two(links: NDArray[Any], minimal: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """[S, C] twice: of links of classes, [S, C, n], the first two but the minimal one, -1: none."""
    first = np.full(minimal.shape, -1, links.dtype)
    second = first.copy()
    for link in np.moveaxis(links, 2, 0):
        there = (link >= 0) & (link != minimal) & (link != first)
        second = np.where(there & (first >= 0) & (second < 0), link, second)
        first = np.where(there & (first < 0), link, first)
    return first, second


def packed_alternates(build: Build, use: PortUse) -> AlternateLinks | None:
    """The alternates of a build, where they are packed as sets of its own, cabled links."""
    alternate = build.tables.classes.alternate
    if not isinstance(alternate, AlternatePorts):
        return None
    spread = alternate.packed
    some = np.bitwise_or.reduce(spread.links, axis=1)
    s, k = np.nonzero(np.unpackbits(some, axis=1, count=spread.port.shape[1]))
    own = (use.links(spread.port)[s, k] == k) & (use.at(spread.port)[s, k] == FABRIC)
    return spread if own.all() else None
