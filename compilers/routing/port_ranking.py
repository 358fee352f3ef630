"""Orders of ports: the usable ports of each class, beginning after its minimal port.

Every class has its own beginning: the link after its minimal one comes first, then the others round
the switch. So the traffic of several classes that lost their links at once spreads over many ports.
The links of a class are bits in words of 64. The first bit is taken until enough ports are chosen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring

ORDER = 2
"""The most ports in an order of protection or bounce."""
RANKED_ENTRIES_AT_ONCE = 1 << 20
"""About how many pairs of a class and a link are ranked at once."""
Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]


def ranked(
    usable: Bits,
    minimal: NDArray[np.int32],
    wiring: Wiring,
    count: int,
    before: Bits | None = None,
) -> NDArray[np.uint16]:
    """Return the first usable ports of each class, uint16[S, C, count], 0 beyond the last.

    Args:
        usable: bool[S, C, K], which links of a switch are usable for a class.
        minimal: int32[S, C], the minimal port of each class. The link after it comes first, then
            the others round the switch, so that classes begin with different ports.
        wiring: the ports of links.
        count: the number of ports.
        before: bool[S, C, K], usable links that come before all others; None for no such links.
    """
    order, classes, links = usable.shape
    ports = np.zeros((order, classes, count), np.uint16)
    # For each link, the links with higher numbers: where a turn that starts there begins.
    beyond = _words(np.arange(links) > np.arange(links)[:, None])
    step = max(1, RANKED_ENTRIES_AT_ONCE // (classes * links))
    for first in range(0, order, step):
        block = slice(first, first + step)
        port, minimal_link = wiring.port[block], _links_of(wiring.port[block], minimal[block])
        sets = [usable[block]]
        if before is not None:
            sets.insert(0, usable[block] & before[block])
        left = [_words(links_of_class) for links_of_class in sets]
        for rank in range(min(count, links)):
            link = _take_first(left, beyond[minimal_link])
            flat = np.maximum(link, 0).reshape(len(port), -1)
            of_link = np.take_along_axis(port, flat, axis=1).reshape(link.shape)
            ports[block, :, rank] = np.where(link >= 0, of_link, 0)
    return ports


def _links_of(port: NDArray[np.int32], minimal: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the first link on each minimal port, int16[n, C], 0 where there is none."""
    most = int(max(port.max(initial=0), minimal.max(initial=0)))
    link = np.zeros((len(port), most + 1), np.int16)
    row = np.arange(len(port))
    for number in reversed(range(port.shape[1])):
        link[row, port[:, number]] = number
    return np.take_along_axis(link, minimal, axis=1)


def _words(usable: Bits) -> Words:
    """Pack links into bits, uint64[…, ⌈K/64⌉]; the first one is the lowest of the first word."""
    packed = np.packbits(usable, axis=-1, bitorder="little")
    whole_words = np.zeros((*packed.shape[:-1], -(-packed.shape[-1] // 8) * 8), np.uint8)
    whole_words[..., : packed.shape[-1]] = packed
    return whole_words.view("<u8")


def _take_first(sets: list[Words], beyond: Words) -> NDArray[np.int64]:
    """Take the first link, in turn, of the first set that has one, int64[n, C]; -1 if none has.

    The link is removed from all sets.

    Args:
        sets: uint64[n, C, W] each, every set a part of the next one.
        beyond: uint64[n, C, W], the links that come first in turn; all others follow them.
    """
    chosen = sets[-1]
    for links in reversed(sets[:-1]):
        chosen = np.where(links.any(axis=2, keepdims=True), links, chosen)
    later = chosen & beyond
    chosen = np.where(later.any(axis=2, keepdims=True), later, chosen)
    word = (chosen != 0).argmax(axis=2)[..., None]
    bits = np.take_along_axis(chosen, word, axis=2)
    lowest = bits & (~bits + np.uint64(1))
    for links in sets:
        others = np.take_along_axis(links, word, axis=2) & ~lowest
        np.put_along_axis(links, word, others, axis=2)
    # A power of two is exact as a float, and its exponent is the place of the bit.
    place = np.frexp(lowest.astype(np.float64))[1] - 1
    link: NDArray[np.int64] = np.where(lowest > 0, word * 64 + place, -1)[..., 0]
    return link


def in_turn(first: NDArray[np.uint16], then: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the ports of `first`, uint16[S, C, n], with its empty places filled from `then`.

    >>> in_turn(np.array([[[5, 0]]], np.uint16), np.array([[[7, 8]]], np.uint16)).tolist()
    [[[5, 7]]]
    """
    both = np.concatenate((first, then), axis=2)
    place = np.argsort(both == 0, axis=2, kind="stable")[..., : first.shape[2]]
    return np.take_along_axis(both, place, axis=2)
