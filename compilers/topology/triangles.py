"""Triangles of a graph: the vertex that is a neighbour of both ends of a link, its *apex*.

What comes in are the neighbours of each switch. What goes out are links to apexes. Routing calls
`apex_links`: in ER_q the apex of a link is a repair for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import table_of

NO_APEX = -1
"""In the place of a link: there is no apex."""
SEVERAL = -2
"""In the place of a link: there are several apexes."""


def apex_links(far: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the number of a switch's link to the apex of each of its links, int16[S, K].

    `NO_APEX` where a link is in no triangle or does not exist, `SEVERAL` where it is in two or
    more.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 where it has fewer.

    >>> apex_links(np.array([[1, 2], [0, 2], [0, 1]], np.int32)).tolist()
    [[1, 0], [1, 0], [1, 0]]
    """
    table, (order, most_links) = table_of(far), far.shape
    apexes = np.full(far.shape, NO_APEX, np.int16)
    number = np.arange(most_links, dtype=np.int16)
    # int16[S + 1], the link of the current switch to each other one.
    link_to = np.full(order + 1, NO_APEX, np.int16)
    # One switch at a time, so that what is looked up stays in the processor's cache.
    for near, apex in zip(table[:order], apexes, strict=True):
        link_to[near] = number
        link_to[order] = NO_APEX  # `near` is padded with `order`, which is no switch
        common = link_to.take(table.take(near, axis=0))
        common.max(axis=1, out=apex)
        if np.count_nonzero(common >= 0) > np.count_nonzero(apex >= 0):
            apex[np.count_nonzero(common >= 0, axis=1) > 1] = SEVERAL
        link_to[near] = NO_APEX
    return apexes
