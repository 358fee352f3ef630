"""Distances between the vertices of a graph, by breadth-first search from many sources at once.

What comes in is a table of neighbours (`neighbour_table`) and some sources. What goes out are the
distances from each source (`distances`), or only how many pairs are how far apart (`pairs_within`).
Routing, repairs and the analyses of topologies call these functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

BEYOND = 255
"""The distance of vertices that no path joins, or none of a length that is looked for."""
UNREACHED_AT_ONCE = 1 << 16
"""The most vertices whose neighbours are looked at together."""
SOURCES_AT_ONCE = 1024
"""The most sources from which `diameter` searches together."""
LOOKED_AT_FIRST = 4
"""How many neighbours of a vertex are tried before all others: mostly one is near enough."""


def neighbour_table(graph: Graph) -> NDArray[np.int64]:
    """Return the neighbour lists of a graph in the form that searches take, int64[N + 1, K].

    Lists are padded with N, which is no vertex. The last row stands for this N, and is all N.
    """
    degrees = graph.degrees
    table = np.full((graph.order + 1, int(degrees.max(initial=0))), graph.order)
    table[:-1][np.arange(table.shape[1]) < degrees[:, None]] = graph.targets
    return table


def table_of(padded: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the table of `neighbour_table` from neighbour lists instead of a graph.

    Args:
        padded: int32[N, K], the neighbour lists, padded with -1.
    """
    order = len(padded)
    table = np.full((order + 1, padded.shape[1]), order)
    np.copyto(table[:-1], padded, where=padded >= 0)
    return table


def distances(
    table: NDArray[np.int64], sources: NDArray[np.int64], depth: int = BEYOND - 1
) -> NDArray[np.uint8]:
    """Return the links on a shortest path from each source to every vertex, uint8[B, N].

    The first two levels come from the neighbour lists. Each further level looks at the vertices
    that are not reached yet, and at the distances of their neighbours.

    Args:
        table: `neighbour_table(graph)`, made once for all blocks of sources.
        sources: int64[B].
        depth: the largest distance to look for; farther and unreachable vertices get BEYOND.

    >>> path = neighbour_table(Graph.from_edges(4, np.array([[0, 1], [1, 2], [2, 3]])))
    >>> distances(path, np.array([0]))
    array([[0, 1, 2, 3]], dtype=uint8)
    """
    order = len(table) - 1
    # One more column stands for the padding of neighbour lists.
    distance = np.full((len(sources), order + 1), BEYOND, np.uint8)
    rows = np.arange(len(sources))[:, None]
    near = table[sources]
    # The farther level first, as nearer ones overwrite it.
    if depth >= 2:
        distance[rows, table[near].reshape(len(sources), table.shape[1] ** 2)] = 2
    if depth >= 1:
        distance[rows, near] = 1
    distance[rows[:, 0], sources] = 0
    distance[:, order] = BEYOND

    # Vertices of a damaged fabric that have no links are never reached.
    has_links = table[:-1].min(axis=1, initial=order) < order
    for level in range(2, depth):
        row, vertex = np.nonzero((distance[:, :order] == BEYOND) & has_links)
        reached = _has_neighbour_at(distance, level, row, vertex, table[:, :LOOKED_AT_FIRST])
        unreached = np.flatnonzero(~reached)
        reached[unreached] = _has_neighbour_at(
            distance, level, row[unreached], vertex[unreached], table[:, LOOKED_AT_FIRST:]
        )
        if not reached.any():
            break
        distance[row[reached], vertex[reached]] = level + 1
    return distance[:, :order]


def _has_neighbour_at(
    distance: NDArray[np.uint8],
    level: int,
    row: NDArray[np.int64],
    vertex: NDArray[np.int64],
    table: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether vertices have a neighbour at a distance from their source, bool[n].

    Args:
        distance: uint8[B, N + 1], by source.
        level: the distance.
        row: int64[n], the row of each vertex's source.
        vertex: int64[n], the vertices.
        table: int64[N + 1, k], the neighbours to look at.
    """
    has_neighbour = np.empty(len(row), np.bool_)
    for first in range(0, len(row), UNREACHED_AT_ONCE):
        block = slice(first, first + UNREACHED_AT_ONCE)
        cells = row[block, None] * distance.shape[1] + table[vertex[block]]
        has_neighbour[block] = (distance.ravel().take(cells) == level).any(axis=1)
    return has_neighbour


def components(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least vertex of each vertex's component, int64[N].

    Args:
        table: `neighbour_table(graph)`, possibly with edges removed in both directions.

    >>> components(neighbour_table(Graph.from_edges(4, np.array([[0, 2]]))))
    array([0, 1, 0, 3])
    """
    order = len(table) - 1
    least = np.arange(order + 1)
    while True:
        lower = np.minimum(least, least[table].min(axis=1, initial=order))
        if (lower == least).all():
            return least[:order]
        least = lower


def pairs_within(
    table: NDArray[np.int64], sources: NDArray[np.int64], targets: NDArray[np.bool_]
) -> list[int]:
    """Count the pairs of a source and a target that are at most 0, 1, … links from each other.

    The last count is the number of all pairs that have a path of less than BEYOND links. Each
    vertex has a bit for each source that is near enough, and with every step it gets the bits of
    its neighbours.

    Args:
        table: `neighbour_table(graph)`.
        sources: int64[B], each once.
        targets: bool[N], which vertices are targets.
    """
    order, number = len(table) - 1, np.arange(len(sources))
    # uint64[N + 1, ⌈B/64⌉], a bit for each source.
    near = np.zeros((order + 1, -(-len(sources) // 64)), np.uint64)
    near[sources, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    pairs: list[int] = []
    while len(pairs) < BEYOND:
        # Words of all targets are counted one after the other, which takes less memory.
        words = np.ascontiguousarray(near[:order][targets].T)
        pairs.append(sum(map(_count_bits, words)))
        nearer, near = near, near.copy()
        if pairs[-1] == len(sources) * np.count_nonzero(targets):
            break
        for neighbour in table.T:  # int64[N + 1], the k-th neighbour of each vertex
            near |= nearer[neighbour]
        if np.array_equal(near, nearer):
            break
    return pairs


def _count_bits(words: NDArray[np.uint64]) -> int:
    """Count the bits that are set in all words together."""
    return int(np.count_nonzero(np.unpackbits(words.view(np.uint8)).view(np.bool_)))


def diameter(graph: Graph) -> int:
    """Return the largest distance of two vertices, by search from all; BEYOND if disconnected.

    >>> diameter(Graph.from_edges(4, np.array([[0, 1], [1, 2], [2, 3]])))
    3
    """
    table, longest, all_vertices = neighbour_table(graph), 0, np.ones(graph.order, np.bool_)
    for first in range(0, graph.order, SOURCES_AT_ONCE):
        sources = np.arange(first, min(first + SOURCES_AT_ONCE, graph.order))
        pairs = pairs_within(table, sources, all_vertices)
        all_reached = pairs[-1] == len(sources) * graph.order
        longest = max(longest, len(pairs) - 1 if all_reached else BEYOND)
    return longest
