"""Distances in a graph, a block of sources at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

BEYOND = 255
UNREACHED_AT_ONCE = 1 << 16
SOURCES_AT_ONCE = 1024
"""Of `pairs_within`."""
LOOKED_AT_FIRST = 4
"""Neighbours of a vertex that are tried before all others: one of them is mostly near enough."""


def neighbour_table(graph: Graph) -> NDArray[np.int64]:
    """int64[N + 1, K]: neighbour lists padded with N, and a last row that is all N."""
    degrees = graph.degrees
    table = np.full((graph.order + 1, int(degrees.max(initial=0))), graph.order)
    table[:-1][np.arange(table.shape[1]) < degrees[:, None]] = graph.targets
    return table


def table_of(padded: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[N + 1, K]: the same of neighbour lists int32[N, K], padded with -1."""
    order = len(padded)
    table = np.full((order + 1, padded.shape[1]), order)
    np.copyto(table[:-1], padded, where=padded >= 0)
    return table


def distances(
    table: NDArray[np.int64], sources: NDArray[np.int64], depth: int = BEYOND - 1
) -> NDArray[np.uint8]:
    """uint8[B, N]: links on a shortest path from each source to every vertex.

    Args:
        table: `neighbour_table(graph)`, made once for all blocks.
        sources: int64[B].
        depth: the largest distance to look for; farther and unreachable vertices get BEYOND.

    The first two levels come from the neighbour lists. Each further level looks at the vertices not
    reached yet and at the distances of their neighbours.
    """
    order = len(table) - 1
    found = np.full((len(sources), order + 1), BEYOND, np.uint8)
    rows = np.arange(len(sources))[:, None]
    near = table[sources]
    if depth >= 2:
        found[rows, table[near].reshape(len(sources), table.shape[1] ** 2)] = 2
    if depth >= 1:
        found[rows, near] = 1
    found[rows[:, 0], sources] = 0
    found[:, order] = BEYOND

    # Vertices of a damaged fabric that have no links are never reached.
    joined = table[:-1].min(axis=1, initial=order) < order
    for level in range(2, depth):
        row, vertex = np.nonzero((found[:, :order] == BEYOND) & joined)
        next_to = _has_neighbour(found, level, row, vertex, table[:, :LOOKED_AT_FIRST])
        left = np.flatnonzero(~next_to)
        others = table[:, LOOKED_AT_FIRST:]
        next_to[left] = _has_neighbour(found, level, row[left], vertex[left], others)
        if not next_to.any():
            break
        found[row[next_to], vertex[next_to]] = level + 1
    return found[:, :order]


def _has_neighbour(
    found: NDArray[np.uint8],
    level: int,
    row: NDArray[np.int64],
    vertex: NDArray[np.int64],
    table: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """bool[n]: whether one of these neighbours of a vertex is at this distance in its row."""
    near = np.empty(len(row), np.bool_)
    for first in range(0, len(row), UNREACHED_AT_ONCE):
        some = slice(first, first + UNREACHED_AT_ONCE)
        places = row[some, None] * found.shape[1] + table[vertex[some]]
        near[some] = (found.ravel().take(places) == level).any(axis=1)
    return near


def components(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[N]: the least vertex of each vertex's component; an isolated vertex is its own.

    Args:
        table: `neighbour_table(graph)`, possibly with edges removed in both directions.
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
    """How many pairs of a source and a target are at most 0, 1, … links from each other.

    The last number is of all pairs, or of those that have a path of less than BEYOND links.

    Args:
        table: `neighbour_table(graph)`.
        sources: int64[B], each once.
        targets: bool[N].

    Each vertex has a bit for each source that is near enough, and gets those of its neighbours.
    """
    order, number = len(table) - 1, np.arange(len(sources))
    near = np.zeros((order + 1, -(-len(sources) // 64)), np.uint64)
    near[sources, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    pairs: list[int] = []
    while len(pairs) < BEYOND:
        words = np.ascontiguousarray(near[:order][targets].T)  # one after the other: less memory
        bits = (np.unpackbits(word.view(np.uint8)).view(np.bool_) for word in words)
        pairs.append(sum(map(np.count_nonzero, bits)))
        nearer, near = near, near.copy()
        if pairs[-1] == len(sources) * np.count_nonzero(targets):
            break
        for slot in table.T:
            near |= nearer[slot]
        if np.array_equal(near, nearer):
            break
    return pairs


def diameter(graph: Graph) -> int:
    """The longest distance of two vertices, by search from every one; BEYOND if disconnected."""
    table, worst, every = neighbour_table(graph), 0, np.ones(graph.order, np.bool_)
    for first in range(0, graph.order, SOURCES_AT_ONCE):
        sources = np.arange(first, min(first + SOURCES_AT_ONCE, graph.order))
        pairs = pairs_within(table, sources, every)
        worst = max(worst, len(pairs) - 1 if pairs[-1] == len(sources) * graph.order else BEYOND)
    return worst
