"""A graph in parts of given sizes with few links between them, for graphs without racks of theirs.

Parts grow one after the other by the vertex with most links into them, then vertices of two parts
change places while that saves links (Kernighan and Lin, 1970, one pair at a time). Only integers
are compared, so the parts are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

PASSES = 20
OUTSIDE = -1


def partition(
    graph: Graph, sizes: Sequence[int], fixed: NDArray[np.integer] | None = None
) -> NDArray[np.int32]:
    """int32[N]: the part of each vertex, the best of those in order and those that are grown.

    Args:
        graph: any.
        sizes: how many vertices each part takes, besides those that are fixed; all of them
            together.
        fixed: int[N], the parts of vertices that stay where they are, -1 for the others.
    """
    given = np.full(graph.order, OUTSIDE) if fixed is None else np.asarray(fixed)
    listed = given.astype(np.int32)
    listed[given < 0] = np.repeat(np.arange(len(sizes)), sizes)
    found = [
        _exchanged(graph, part, given < 0, len(sizes))
        for part in (listed, _grown(graph, sizes, given))
    ]
    return min(found, key=lambda part: links_cut(graph, part))


def links_cut(graph: Graph, part: NDArray[np.integer]) -> int:
    """How many links join two parts."""
    u, v = part[graph.edges()].T
    return int(np.count_nonzero(u != v))


def _grown(graph: Graph, sizes: Sequence[int], given: NDArray[np.integer]) -> NDArray[np.int32]:
    part = given.astype(np.int32)
    beyond = int(graph.degrees.max(initial=0)) + 1
    waits = given < 0
    outside = np.array([np.count_nonzero(waits[graph.neighbours(v)]) for v in range(graph.order)])
    for number, size in enumerate(sizes):
        inside = np.zeros(graph.order, np.int64)
        for v in np.flatnonzero(given == number).tolist():
            inside[graph.neighbours(v)] += 1
        for _ in range(size):
            v = int(np.where(waits, inside * beyond - outside, -beyond).argmax())
            part[v], waits[v] = number, False
            near = graph.neighbours(v)
            inside[near] += 1
            outside[near] -= 1
    return part


def _exchanged(
    graph: Graph, part: NDArray[np.int32], free: NDArray[np.bool_], parts: int
) -> NDArray[np.int32]:
    """The parts after exchanges of two vertices, each of which saves links."""
    part, tails = part.copy(), graph.tails()
    links = np.zeros((graph.order, parts), np.int32)
    np.add.at(links, (tails, part[graph.targets]), 1)
    own = links[np.arange(graph.order), part]
    for _ in range(PASSES):
        before = links_cut(graph, part)
        for u in np.flatnonzero(free).tolist():
            here = int(part[u])
            saved = links[u, part] - own[u] + links[:, here] - own
            saved[graph.neighbours(u)] -= 2
            saved[~free | (part == here)] = 0
            v = int(saved.argmax())
            if saved[v] <= 0:
                continue
            there = int(part[v])
            for one, old, new in ((u, here, there), (v, there, here)):
                part[one] = new
                near = graph.neighbours(one)
                links[near, old] -= 1
                links[near, new] += 1
            changed = np.concatenate((graph.neighbours(u), graph.neighbours(v), (u, v)))
            own[changed] = links[changed, part[changed]]
        if links_cut(graph, part) == before:
            break
    return part
