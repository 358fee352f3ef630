"""Cuts a graph into parts of given sizes with few links between them.

`partition` puts vertices into racks where the family has no layout. Parts grow one after the other:
each time the vertex with most links into the part is added. Then vertices of two parts change
places as long as that saves links (Kernighan and Lin, 1970, one pair at a time). Only integers are
compared, so the parts are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

PASSES = 20
"""How often all vertices are tried for an exchange, at most."""
OUTSIDE = -1
"""The part of a vertex that is in none yet."""


def partition(
    graph: Graph, sizes: Sequence[int], fixed: NDArray[np.integer] | None = None
) -> NDArray[np.int32]:
    """Return the part of each vertex, int32[N].

    Exchanges start once from vertices in their order and once from parts that grow; the better
    result is taken.

    Args:
        graph: any graph.
        sizes: how many vertices each part takes besides fixed ones, all others together.
        fixed: int[N], the parts of vertices that stay where they are, -1 for the others.
    """
    start = np.full(graph.order, OUTSIDE) if fixed is None else np.asarray(fixed)
    free = start < 0
    in_order = start.astype(np.int32)
    in_order[free] = np.repeat(np.arange(len(sizes)), sizes)
    candidates = [
        _exchange_vertices(graph, part, free, len(sizes))
        for part in (in_order, _grow_parts(graph, sizes, start))
    ]
    return min(candidates, key=lambda part: links_cut(graph, part))


def links_cut(graph: Graph, part: NDArray[np.integer]) -> int:
    """Count the links between different parts.

    Args:
        graph: any graph.
        part: int[N], the part of each vertex.
    """
    u, v = part[graph.edges()].T
    return int(np.count_nonzero(u != v))


def _grow_parts(
    graph: Graph, sizes: Sequence[int], start: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Grow parts one after the other, int32[N].

    The next vertex of a part is the one with most links into it; of several, the one with fewest
    links to vertices that are in no part.

    Args:
        graph: any graph.
        sizes: how many vertices each part takes.
        start: int[N], the parts of vertices that are fixed, -1 for the others.
    """
    part = start.astype(np.int32)
    more_than_any = int(graph.degrees.max(initial=0)) + 1
    free = start < 0
    # int64[N], the links of each vertex to vertices that are in no part.
    to_free = np.array([np.count_nonzero(free[graph.neighbours(v)]) for v in range(graph.order)])
    for number, size in enumerate(sizes):
        # int64[N], the links of each vertex into this part.
        inside = np.zeros(graph.order, np.int64)
        for v in np.flatnonzero(start == number).tolist():
            inside[graph.neighbours(v)] += 1
        for _ in range(size):
            # `inside` decides; `to_free` is less than the factor, and decides between equals.
            rank = np.where(free, inside * more_than_any - to_free, -more_than_any)
            v = int(rank.argmax())
            part[v], free[v] = number, False
            near = graph.neighbours(v)
            inside[near] += 1
            to_free[near] -= 1
    return part


def _exchange_vertices(
    graph: Graph, part: NDArray[np.int32], free: NDArray[np.bool_], parts: int
) -> NDArray[np.int32]:
    """Exchange pairs of vertices while that saves links, and return the parts, int32[N].

    Args:
        graph: any graph.
        part: int32[N], the part of each vertex before.
        free: bool[N], the vertices that may move.
        parts: the number of parts.
    """
    part, tails = part.copy(), graph.tails()
    # int32[N, parts], the links of each vertex into each part, and into its own, int32[N].
    links = np.zeros((graph.order, parts), np.int32)
    np.add.at(links, (tails, part[graph.targets]), 1)
    inside = links[np.arange(graph.order), part]
    for _ in range(PASSES):
        before = links_cut(graph, part)
        for u in np.flatnonzero(free).tolist():
            part_of_u = int(part[u])
            # int32[N], how many links an exchange of u with each vertex v saves: those of u into
            # the part of v, and those of v into the part of u, less those into their own parts. A
            # link u–v is counted twice, and stays cut.
            saved = links[u, part] - inside[u] + links[:, part_of_u] - inside
            saved[graph.neighbours(u)] -= 2
            saved[~free | (part == part_of_u)] = 0
            v = int(saved.argmax())
            if saved[v] <= 0:
                continue
            part_of_v = int(part[v])
            for vertex, old, new in ((u, part_of_u, part_of_v), (v, part_of_v, part_of_u)):
                part[vertex] = new
                near = graph.neighbours(vertex)
                links[near, old] -= 1
                links[near, new] += 1
            changed = np.concatenate((graph.neighbours(u), graph.neighbours(v), (u, v)))
            inside[changed] = links[changed, part[changed]]
        if links_cut(graph, part) == before:
            break
    return part
