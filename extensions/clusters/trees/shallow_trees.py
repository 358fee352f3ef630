"""Low-depth trees: few links from root to leaf, and at most two trees on a link."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.polarity import cross, lines, order
from extensions.clusters.trees.spanning_tree import SpanningTree

CONGESTION = 2
"""Trees that may share a link."""


def polarfly_trees(q: int) -> Iterator[SpanningTree]:
    """As many trees as q, of depth 3, at most two on a link (SPAA'23, §6; here for even q, too).

    w is a quadric, its neighbours are the roots r, and the cluster of r is the rest of r's
    neighbours. Every vertex but w is in w^⊥ or in one cluster. From r each vertex is reached by the
    only path of two links, so a link between clusters serves the trees of both, one at a root its
    own. But each tree would need all links of w to reach the other roots; so it reaches another
    root from a vertex of that one's cluster, for each tree another vertex.
    """
    n, around = order(q), lines(q)
    everything = np.arange(n, dtype=np.int32)
    w = int(np.flatnonzero((around == everything[:, None]).any(axis=1))[0])
    roots = around[w][around[w] != w]
    clusters = [around[r][(around[r] != w) & (around[r] != r)] for r in roots]
    for i, root in enumerate(roots.tolist()):
        near = around[root][around[root] != root]
        far = np.setdiff1d(everything, [*near.tolist(), root])
        parent = np.full(n, -1, np.int32)
        parent[near] = root
        parent[far] = cross(q, np.full(len(far), root, np.int32), far)
        for j, other in enumerate(roots.tolist()):
            if j != i:
                parent[other] = clusters[j][(i - j - 1) % q]
        yield SpanningTree(root, parent)


def balanced_trees(graph: Graph, present: NDArray[np.bool_]) -> list[SpanningTree]:
    """As many trees of any connected graph as could be found with two on a link.

    Each is grown level by level. A vertex keeps a link for each tree that is still to come and
    serves children with the rest; a child takes the link that carries least.

    Args:
        graph: connected but for vertices that are not there.
        present: bool[S], the vertices to reach.
    """
    links, vertices = graph.size, int(present.sum())
    for count in range(CONGESTION * links // max(vertices - 1, 1), 0, -1):
        if trees := _grove(graph, present, count):
            return trees
    return []


def _grove(graph: Graph, present: NDArray[np.bool_], count: int) -> list[SpanningTree]:
    """`count` trees, or none."""
    around = [graph.neighbours(v).tolist() for v in range(graph.order)]
    spare = np.where(present, CONGESTION * graph.degrees - count, -count).tolist()
    load: dict[tuple[int, int], int] = {}
    trees = []
    for _ in range(count):
        root = max(range(graph.order), key=spare.__getitem__)
        spare[root] += 1
        parent = _grown(around, load, spare, root, int(present.sum()))
        if parent is None:
            return []
        trees.append(SpanningTree(root, np.array(parent, np.int32)))
    return trees


def _grown(
    around: list[list[int]],
    load: dict[tuple[int, int], int],
    spare: list[int],
    root: int,
    count: int,
) -> list[int] | None:
    """The parents of a tree of `count` vertices, None where full links disconnect some.

    Args:
        around: the neighbours of each vertex.
        load: trees on each link, in both directions; this one is added.
        spare: children that each vertex may still have, in all trees; this one's are taken.
        root: where to begin.
        count: of vertices.
    """
    parent, reached, last = [-1] * len(around), {root}, [root]
    waiting: dict[int, list[int]] = {}
    while len(reached) < count:
        for vertex in last:
            for other in around[vertex]:
                if other not in reached:
                    waiting.setdefault(other, []).append(vertex)
        last = []
        for child in sorted(waiting, key=lambda v: len(waiting[v])):
            parents = [
                (load.get((above, child), 0), -spare[above], above)
                for above in waiting[child]
                if spare[above] > 0 and load.get((above, child), 0) < CONGESTION
            ]
            if parents:
                used, _, above = min(parents)
                load[above, child] = load[child, above] = used + 1
                spare[above] -= 1
                parent[child] = above
                last.append(child)
        if not last:
            return None
        reached.update(last)
        for child in last:
            del waiting[child]
    return parent
