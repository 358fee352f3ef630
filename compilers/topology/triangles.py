"""Triangles of a graph: the switch that is next to both ends of a link, its *apex*."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import table_of

NO_APEX, SEVERAL = -1, -2


def apex_links(far: NDArray[np.int32]) -> NDArray[np.int16]:
    """int16[S, K]: the link of a switch to the apex of each of its links.

    `NO_APEX` where there is none, or no such link; `SEVERAL` where there are two or more.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 where it has fewer.
    """
    table, (order, links) = table_of(far), far.shape
    result = np.full(far.shape, NO_APEX, np.int16)
    number = np.arange(links, dtype=np.int16)
    link_to = np.full(order + 1, NO_APEX, np.int16)
    # A switch at a time, what is looked up stays in the cache.
    for near, found in zip(table[:order], result, strict=True):
        link_to[near] = number
        link_to[order] = NO_APEX
        meets = link_to.take(table.take(near, axis=0))
        meets.max(axis=1, out=found)
        if np.count_nonzero(meets >= 0) > np.count_nonzero(found >= 0):
            found[np.count_nonzero(meets >= 0, axis=1) > 1] = SEVERAL
        link_to[near] = NO_APEX
    return result
