"""Sets of links by another link of the same switch, some switches at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.topology.triangles import apex_links
from compilers.wiring.wiring import Wiring

LINK_PAIRS_AT_ONCE = 1 << 20


@lru_cache(maxsize=1)
def apex_of(wiring: Wiring) -> NDArray[np.int16]:
    """int16[S, K]: `compilers.topology.triangles.apex_links` of a fabric."""
    return apex_links(wiring.far)


def link_blocks(wiring: Wiring) -> Iterator[slice]:
    """Ranges of switches that have about a million pairs of links."""
    order, links = wiring.far.shape
    step = max(1, LINK_PAIRS_AT_ONCE // max(1, links * links))
    for first in range(0, order, step):
        yield slice(first, first + step)


def other_links(far: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[n, K, K]: whether links k and j of a switch both exist and differ."""
    present = far >= 0
    found: NDArray[np.bool_] = present[:, :, None] & present[:, None, :]
    number = np.arange(far.shape[1])
    found[:, number, number] = False
    return found


def apexes(apex: NDArray[np.int16]) -> NDArray[np.bool_]:
    """bool[n, K, K]: whether the j-th and the k-th neighbour are cabled to each other.

    In ER_q that is at most one j for each k, the apex of the triangle on link k.

    Args:
        apex: int16[n, K], `compilers.topology.triangles.apex_links` of some switches.
    """
    result = np.zeros((*apex.shape, apex.shape[1]), np.bool_)
    s, k = np.nonzero(apex >= 0)
    result[s, k, apex[s, k]] = True
    return result
