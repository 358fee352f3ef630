"""Rank the usable ports of each class in cyclic order, beginning after its minimal port.

What comes in is a set of usable links for each egress class. What goes out is the order in which a
switch tries their ports, for the lists `protection` and `bounce` of `Classes`. The link after the
minimal one comes first, then links with higher numbers, then links from 0 on. So classes that lose
their links at once use different ports.

The links of a class are bits in words of 64. In each step the first bit in cyclic order is taken
and cleared, until enough ports are ranked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_REPAIR_PORTS = 2
"""The most ports in a list of `protection` or `bounce`."""
RANKED_ENTRIES_AT_ONCE = 1 << 20
"""About how many pairs of a class and a link are ranked at once."""
Bits = NDArray[np.bool_]
Words = NDArray[np.uint64]


def ranked_ports(
    usable: Bits,
    minimal: NDArray[np.int32],
    port: NDArray[np.int32],
    count: int,
    before: Bits | None = None,
) -> NDArray[np.uint16]:
    """Return the first usable ports of each class, uint16[S, C, count], 0 beyond the last.

    Args:
        usable: bool[S, C, K], which links of a switch are usable for a class.
        minimal: int32[S, C], the minimal port of each class. The cyclic order begins after it.
        port: int32[S, K], the port of each link, 0 beyond the last.
        count: the number of ports.
        before: bool[S, C, K], usable links that come before all others; None for no such links.

    A switch has ports 1 to 4, and the minimal port of its class is port 2. Of its other ports, all
    but port 3 are usable:

    >>> usable, port = np.array([[[True, False, False, True]]]), np.array([[1, 2, 3, 4]], np.int32)
    >>> ranked_ports(usable, np.array([[2]], np.int32), port, count=2).tolist()
    [[[4, 1]]]
    """
    switches, classes, most_links = usable.shape
    ports = np.zeros((switches, classes, count), np.uint16)
    # By link, the links with higher numbers, as words: with these the cyclic order after it begins.
    beyond = _words(np.arange(most_links) > np.arange(most_links)[:, None])
    step = max(1, RANKED_ENTRIES_AT_ONCE // (classes * most_links))
    for first in range(0, switches, step):
        block = slice(first, first + step)
        block_port = port[block]
        minimal_link = _links_of(block_port, minimal[block])
        # The links that are not ranked yet, as words: those that come before all others, then all.
        unranked = [_words(usable[block])]
        if before is not None:
            unranked.insert(0, _words(usable[block] & before[block]))
        for rank in range(min(count, most_links)):
            link = _take_first(unranked, beyond[minimal_link])
            existing = np.maximum(link, 0).reshape(len(block_port), -1)
            port_of_link = np.take_along_axis(block_port, existing, axis=1).reshape(link.shape)
            ports[block, :, rank] = np.where(link >= 0, port_of_link, 0)
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
    """Take the first link, in cyclic order, of the first set that is not empty, int64[n, C].

    -1 if all sets are empty. The link is removed from all sets.

    Args:
        sets: uint64[n, C, W] each, every set a subset of the next one.
        beyond: uint64[n, C, W], the links with which the cyclic order begins; all others follow.
    """
    nonempty = sets[-1]
    for links in reversed(sets[:-1]):
        nonempty = np.where(links.any(axis=2, keepdims=True), links, nonempty)
    later = nonempty & beyond
    candidates = np.where(later.any(axis=2, keepdims=True), later, nonempty)
    word = (candidates != 0).argmax(axis=2)[..., None]
    bits = np.take_along_axis(candidates, word, axis=2)
    lowest = bits & (~bits + np.uint64(1))  # in two's complement this leaves the lowest bit
    for links in sets:
        others = np.take_along_axis(links, word, axis=2) & ~lowest
        np.put_along_axis(links, word, others, axis=2)
    # A power of two is exact as a float, and its exponent is the index of the bit.
    bit_index = np.frexp(lowest.astype(np.float64))[1] - 1
    link: NDArray[np.int64] = np.where(lowest > 0, word * 64 + bit_index, -1)[..., 0]
    return link


def filled_from(first: NDArray[np.uint16], more: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the ports of `first`, uint16[S, C, n], with its zeros, no ports, filled from `more`.

    >>> filled_from(np.array([[[5, 0]]], np.uint16), np.array([[[7, 8]]], np.uint16)).tolist()
    [[[5, 7]]]
    """
    ports = np.concatenate((first, more), axis=2)
    ports_first = np.argsort(ports == 0, axis=2, kind="stable")[..., : first.shape[2]]
    return np.take_along_axis(ports, ports_first, axis=2)
