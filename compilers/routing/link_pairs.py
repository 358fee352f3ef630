"""Sets of links for each link of a switch, as bool[n, K, K] over n switches with K links.

Entry [s, k, j] says whether switch s may use link j for some packets: for alternates, those whose
minimal link is k; for bounces and marked packets, those that came in by link k. All switches at
once would take too much memory, so callers go through blocks of switches (`link_blocks`).

In a triangle of switches, the *apex* of a link is the switch opposite it: the common neighbour of
both ends. Arrays called `apex` have the link that leads from the switch to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.topology.triangles import apex_links
from compilers.wiring.wiring import Wiring

LINK_PAIRS_AT_ONCE = 1 << 20
"""About how many pairs of links the switches of a block have: a byte each."""


@lru_cache(maxsize=1)
def apex_links_of(wiring: Wiring) -> NDArray[np.int16]:
    """Return the link to the apex of each link (`compilers.topology.triangles`), int16[S, K]."""
    return apex_links(wiring.far)


def link_blocks(wiring: Wiring) -> Iterator[slice]:
    """Yield ranges of switches that together cover all, each with about a million link pairs."""
    switches, most_links = wiring.far.shape
    step = max(1, LINK_PAIRS_AT_ONCE // max(1, most_links * most_links))
    for first in range(0, switches, step):
        yield slice(first, first + step)


def other_links(far: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether links k and j of a switch both exist and differ, bool[n, K, K].

    Args:
        far: int32[n, K], the neighbour at each link, -1 where there is no link.

    >>> other_links(np.array([[5, 8, -1]], np.int32))[0].astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    exists = far >= 0
    others: NDArray[np.bool_] = exists[:, :, None] & exists[:, None, :]
    number = np.arange(far.shape[1])
    others[:, number, number] = False
    return others


def in_one_triangle(apex: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return whether the j-th and the k-th neighbour are cabled to each other, bool[n, K, K].

    In ER_q there is at most one such j for each k: the link to the apex of link k.

    Args:
        apex: int16[n, K], `compilers.topology.triangles.apex_links` of some switches.
    """
    cabled = np.zeros((*apex.shape, apex.shape[1]), np.bool_)
    s, k = np.nonzero(apex >= 0)
    cabled[s, k, apex[s, k]] = True
    return cabled


def links_back(far: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the number of each link at its other end, int[S, K], 0 where there is no link."""
    switch, link = np.nonzero(far >= 0)
    back = np.zeros(far.shape, np.intp)
    # The links of a switch are in the order of its neighbours, so both ends of the links, sorted by
    # the other end, come in the same order.
    by_far_end = np.lexsort((switch, far[switch, link]))
    back[switch[by_far_end], link[by_far_end]] = link
    return back
