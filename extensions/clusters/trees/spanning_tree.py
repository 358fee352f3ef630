"""A spanning tree as a parent per vertex, and what is derived from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

Neighbours = list[list[int]]


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A tree over vertices of a graph.

    root: a vertex. parent: int32[S], -1 for the root and for vertices that the tree leaves out.
    """

    root: int
    parent: NDArray[np.int32]

    @classmethod
    def of_edges(
        cls, order: int, edges: Iterable[Sequence[int]], root: int | None = None
    ) -> SpanningTree:
        """The tree of these edges; without a root it begins at its centre, which is least deep.

        Of two centres it is the one of the smaller number.
        """
        around: Neighbours = [[] for _ in range(order)]
        for u, v in edges:
            around[u].append(v)
            around[v].append(u)
        if root is None:
            root = _centre(around)
        return cls(root, np.array(_parents(around, root)[0], np.int32))

    @cached_property
    def level(self) -> NDArray[np.int32]:
        """int32[S]: links to the root, -1 for vertices that the tree leaves out."""
        below = self.parent >= 0
        above = np.where(below, self.parent, np.arange(len(self.parent)))
        level = below.astype(np.int32)
        while (further := level[above]).any():  # ancestors twice as far each time
            level, above = level + further, above[above]
        return np.where(below | (np.arange(len(level)) == self.root), level, -1).astype(np.int32)

    @property
    def depth(self) -> int:
        """Links between the root and the vertex farthest from it."""
        return int(self.level.max())

    @cached_property
    def edges(self) -> NDArray[np.int32]:
        """int32[n, 2]: parent and child, from the root down."""
        child = np.flatnonzero(self.parent >= 0)
        child = child[np.argsort(self.level[child], kind="stable")]
        return np.column_stack((self.parent[child], child)).astype(np.int32)

    @property
    def links(self) -> NDArray[np.int64]:
        """int64[n]: the links as numbers, u·S + v for u < v."""
        ends = np.sort(self.edges, axis=1).astype(np.int64)
        return ends[:, 0] * len(self.parent) + ends[:, 1]

    def rooted_at(self, root: int) -> SpanningTree:
        """The same edges from another root."""
        return SpanningTree.of_edges(len(self.parent), self.edges.tolist(), root)

    def pruned(self, kept: NDArray[np.bool_]) -> SpanningTree:
        """The branches from the root to these vertices, bool[S]."""
        needed = kept.copy()
        for above, below in self.edges[::-1].tolist():
            needed[above] |= needed[below]
        return SpanningTree(self.root, np.where(needed, self.parent, -1).astype(np.int32))

    def neighbours(self) -> Neighbours:
        """For each vertex those that it is joined to, ascending."""
        around: Neighbours = [[] for _ in range(len(self.parent))]
        for u, v in self.edges.tolist():
            around[u].append(v)
            around[v].append(u)
        return [sorted(these) for these in around]


def shortest_tree(graph: Graph) -> SpanningTree | None:
    """A tree of shortest paths from a vertex that is far from none; None: it is not connected."""
    around = [graph.neighbours(v).tolist() for v in range(graph.order)]
    trees = []
    for root in range(graph.order):
        parent, found = [-1] * graph.order, [root]
        for vertex in found:
            for other in around[vertex]:
                if other != root and parent[other] < 0:
                    parent[other] = vertex
                    found.append(other)
        if len(found) < graph.order:
            return None
        trees.append(SpanningTree(root, np.array(parent, np.int32)))
    return min(trees, key=lambda tree: tree.depth)


def _parents(around: Neighbours, root: int) -> tuple[list[int], list[int]]:
    """The parent of each vertex, -1 for none, and the vertices by their distance."""
    parent, found = [-1] * len(around), [root]
    for vertex in found:
        for other in around[vertex]:
            if other != parent[vertex]:
                parent[other] = vertex
                found.append(other)
    return parent, found


def _centre(around: Neighbours) -> int:
    """The middle of a longest path."""
    start = next((v for v, these in enumerate(around) if these), 0)
    end = _parents(around, start)[1][-1]
    parent, found = _parents(around, end)
    path = [found[-1]]
    while path[-1] != end:
        path.append(parent[path[-1]])
    return min(path[(len(path) - 1) // 2], path[len(path) // 2])
