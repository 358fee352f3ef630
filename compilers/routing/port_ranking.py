"""Ranked ports: sets of links in an order that spreads traffic over a switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring

RANKED_ENTRIES_AT_ONCE = 1 << 22


def ranked(
    usable: NDArray[np.bool_],
    minimal: NDArray[np.int32],
    wiring: Wiring,
    count: int,
    turn: bool = True,
) -> NDArray[np.uint16]:
    """uint16[S, C, count]: the first usable ports of each class, 0 beyond the last.

    Args:
        usable: bool[S, C, K], by link.
        minimal: int32[S, C], each class's minimal port. The link after it comes first, then the
            others round the switch, so that classes begin with different ports.
        wiring: the ports of links.
        count: the number of ports.
        turn: False to begin with the switch's first link instead.
    """
    order, classes, links = usable.shape
    result = np.zeros((order, classes, count), np.uint16)
    step = max(1, RANKED_ENTRIES_AT_ONCE // (classes * links))
    for first in range(0, order, step):
        part = slice(first, first + step)
        port = wiring.port[part]
        own = (port[:, None, :] == minimal[part, :, None]).argmax(axis=2)
        place = np.arange(links, dtype=np.int32) - (own[..., None] + 1 if turn else 0)
        place = np.where(usable[part], place % links, links)
        link = np.argsort(place, axis=2, kind="stable")[..., :count]
        chosen = np.take_along_axis(usable[part], link, axis=2)
        found = np.take_along_axis(port[:, None, :], link, axis=2)
        result[part, :, : link.shape[2]] = np.where(chosen, found, 0)
    return result


def in_turn(first: NDArray[np.uint16], then: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """uint16[S, C, n]: the ports of `first`, with its empty places filled from `then`."""
    both = np.concatenate((first, then), axis=2)
    place = np.argsort(both == 0, axis=2, kind="stable")[..., : first.shape[2]]
    return np.take_along_axis(both, place, axis=2)
