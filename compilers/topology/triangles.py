"""Triangles of a graph: the vertex that is a neighbour of both ends of a link, its *apex*.

Routing calls `apex_links`. In ER_q a link has at most one apex: the path over the apex joins the
ends of the link while the link is down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import table_of

NO_APEX = -1
"""In place of the index of a link: there is no apex."""
SEVERAL = -2
"""In place of the index of a link: there are several apexes."""


def apex_links(far: NDArray[np.int32]) -> NDArray[np.int16]:
    """For link k of switch s: the index of the link of s that leads to the apex of k.

    `NO_APEX` where link k is in no triangle or does not exist, `SEVERAL` where it is in two or more
    triangles.

    Args:
        far: int32[S, K], the neighbour at each link of each switch, -1 where a switch has fewer.

    Returns:
        int16[S, K], by switch and link.

    >>> apex_links(np.array([[1, 2], [0, 2], [0, 1]], np.int32)).tolist()
    [[1, 0], [1, 0], [1, 0]]
    """
    switches, most_links = far.shape
    neighbours = table_of(far)  # int64[S + 1, K], padded with S, which is no switch
    links = np.arange(most_links, dtype=np.int16)
    apex_link = np.full(far.shape, NO_APEX, np.int16)
    # int16[S + 1], the link of the current switch to each other switch; NO_APEX to all others.
    link_to = np.full(switches + 1, NO_APEX, np.int16)
    # One switch at a time, so that what is looked up stays in the processor's cache.
    for own_neighbours, own_apex_link in zip(neighbours[:switches], apex_link, strict=True):
        link_to[own_neighbours] = links
        link_to[switches] = NO_APEX  # undoes what the padding wrote
        # int16[K, K], by link the neighbours of the neighbour: the link to each one that is an
        # apex, as it is a neighbour of the current switch, too.
        common_links = link_to.take(neighbours.take(own_neighbours, axis=0))
        common_links.max(axis=1, out=own_apex_link)
        # With more apexes than links that have one, some link has several. To ask for the whole
        # switch first saves time, as few switches have such a link.
        is_apex = common_links >= 0
        if np.count_nonzero(is_apex) > np.count_nonzero(own_apex_link >= 0):
            own_apex_link[np.count_nonzero(is_apex, axis=1) > 1] = SEVERAL
        link_to[own_neighbours] = NO_APEX
    return apex_link
