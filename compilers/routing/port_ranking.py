"""Ranked ports: sets of links in an order that spreads traffic over a switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring

RANKED_ENTRIES_AT_ONCE = 1 << 20
Words = NDArray[np.uint64]


def ranked(
    usable: NDArray[np.bool_],
    minimal: NDArray[np.int32],
    wiring: Wiring,
    count: int,
    before: NDArray[np.bool_] | None = None,
) -> NDArray[np.uint16]:
    """uint16[S, C, count]: the first usable ports of each class, 0 beyond the last.

    Args:
        usable: bool[S, C, K], by link.
        minimal: int32[S, C], each class's minimal port. The link after it comes first, then the
            others round the switch, so that classes begin with different ports.
        wiring: the ports of links.
        count: the number of ports.
        before: bool[S, C, K], links that come before all others; None: none do.
    """
    order, classes, links = usable.shape
    result = np.zeros((order, classes, count), np.uint16)
    beyond = _words(np.arange(links) > np.arange(links)[:, None])
    step = max(1, RANKED_ENTRIES_AT_ONCE // (classes * links))
    for first in range(0, order, step):
        part = slice(first, first + step)
        port, after = wiring.port[part], _links_of(wiring.port[part], minimal[part])
        sets = [usable[part]] if before is None else [usable[part] & before[part], usable[part]]
        left = [_words(some) for some in sets]
        for rank in range(min(count, links)):
            link = _first(left, beyond[after])
            found = np.take_along_axis(port, np.maximum(link, 0).reshape(len(port), -1), axis=1)
            result[part, :, rank] = np.where(link >= 0, found.reshape(link.shape), 0)
    return result


def _links_of(port: NDArray[np.int32], minimal: NDArray[np.int32]) -> NDArray[np.int16]:
    """int16[n, C]: the first link on each minimal port, 0 where there is none."""
    most = int(max(port.max(initial=0), minimal.max(initial=0)))
    link = np.zeros((len(port), most + 1), np.int16)
    row = np.arange(len(port))
    for number in reversed(range(port.shape[1])):
        link[row, port[:, number]] = number
    return np.take_along_axis(link, minimal, axis=1)


def _words(usable: NDArray[np.bool_]) -> Words:
    """uint64[…, ⌈K/64⌉]: links as bits, the lowest of the first word for the first."""
    packed = np.packbits(usable, axis=-1, bitorder="little")
    room = np.zeros((*packed.shape[:-1], -(-packed.shape[-1] // 8) * 8), np.uint8)
    room[..., : packed.shape[-1]] = packed
    return room.view("<u8")


def _first(sets: list[Words], beyond: Words) -> NDArray[np.int64]:
    """int64[n, C]: the first link, in turn, of the first set that has one, and -1 where none has.

    It is taken out of all sets.

    Args:
        sets: uint64[n, C, W] each, one within the next.
        beyond: uint64[n, C, W], the links at which turns begin; those before come after them.
    """
    chosen = sets[-1]
    for some in reversed(sets[:-1]):
        chosen = np.where(some.any(axis=2, keepdims=True), some, chosen)
    later = chosen & beyond
    chosen = np.where(later.any(axis=2, keepdims=True), later, chosen)
    word = (chosen != 0).argmax(axis=2)[..., None]
    bits = np.take_along_axis(chosen, word, axis=2)
    lowest = bits & (~bits + np.uint64(1))
    for some in sets:
        rest = np.take_along_axis(some, word, axis=2) & ~lowest
        np.put_along_axis(some, word, rest, axis=2)
    # A power of two is exact as a float, and its exponent is the place of the bit.
    place = np.frexp(lowest.astype(np.float64))[1] - 1
    link: NDArray[np.int64] = np.where(lowest > 0, word * 64 + place, -1)[..., 0]
    return link


def in_turn(first: NDArray[np.uint16], then: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """uint16[S, C, n]: the ports of `first`, with its empty places filled from `then`."""
    both = np.concatenate((first, then), axis=2)
    place = np.argsort(both == 0, axis=2, kind="stable")[..., : first.shape[2]]
    return np.take_along_axis(both, place, axis=2)
