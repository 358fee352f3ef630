"""Distances in a graph, a block of sources at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topologies.graph import Graph

UNREACHED = np.uint8(255)


def distances(graph: Graph, padded: NDArray[np.int32], sources: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[B, N]: links on a shortest path from each source to every vertex; 255 where none.

    Args:
        graph: the graph.
        padded: `graph.padded()`, made once for all blocks.
        sources: int64[B].

    The first two levels are written from the neighbour lists; further ones are found from below,
    by asking the neighbours of the vertices not reached yet.
    """
    order = graph.order
    result = np.full((len(sources), order + 1), UNREACHED, np.uint8)
    row = np.arange(len(sources))[:, None]
    near = np.where(padded[sources] < 0, order, padded[sources])
    beyond = padded[np.minimum(near, order - 1)]
    beyond = np.where((near == order)[..., None] | (beyond < 0), order, beyond)
    result[row, beyond.reshape(len(sources), -1)] = 2
    result[row, near] = 1
    result[row[:, 0], sources] = 0
    result[:, order] = UNREACHED

    level = 2
    block, vertex = np.nonzero(result[:, :order] == UNREACHED)
    while len(vertex):
        reached = (result[block[:, None], padded[vertex]] == level).any(axis=1)
        if not reached.any():
            break
        level += 1
        result[block[reached], vertex[reached]] = level
        block, vertex = block[~reached], vertex[~reached]
    return result[:, :order]
