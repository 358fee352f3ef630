"""The most edge-disjoint spanning trees of any graph, by matroid partition (Edmonds 1965).

Forests take edges one by one. An edge that closes a cycle in every forest may take the place of one
that moves on to another forest, and so on; a shortest such sequence keeps all of them forests. The
labels are those of Roskind and Tarjan (Math. Oper. Res. 10, 1985): an edge that finds no sequence
lies in a clump of vertices that cannot take another edge, now or later.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int32]


def disjoint_trees(
    order: int, vertices: int, edges: Edges, count: int, given: Iterable[Edges] = ()
) -> list[Edges]:
    """The edges of `count` spanning trees, or of as many as there are, int32[n, 2] each.

    Args:
        order: S; vertices are numbered below.
        vertices: how many of them the edges join.
        edges: int32[E, 2], u < v.
        count: most trees.
        given: forests without a common edge to begin with, as edges; else they are grown here.
    """
    numbers = {(u, v): e for e, (u, v) in enumerate(edges.tolist())}
    owner = np.full(len(edges), -1, np.int64)
    forests = [
        [e for u, v in forest.tolist() if (e := numbers.get((min(u, v), max(u, v)))) is not None]
        for forest in given
    ]
    forests = sorted(forests, key=len, reverse=True)[:count]
    for number, forest in enumerate(forests):
        owner[forest] = number
    for k in range(count, 0, -1):
        owner[owner >= k] = -1
        packing = _Packing(order, edges.tolist(), k, owner.tolist())
        if packing.complete(vertices - 1):
            return [edges[packing.owner == number] for number in range(k)]
        owner = packing.by_size()
    return []


class _Packing:
    """k forests, and the edges that none of them has.

    owner: int[E], the forest of each edge, -1: none.
    """

    def __init__(self, order: int, ends: list[list[int]], k: int, owner: list[int]) -> None:
        self.order, self.ends, self.k = order, ends, k
        self._owner = owner
        self._around: list[list[dict[int, int]]] = [[{} for _ in range(order)] for _ in range(k)]
        self._rooted: list[tuple[list[int], list[int], list[int]] | None] = [None] * k
        self._clump = list(range(order))
        self._size = [0] * k
        for edge, forest in enumerate(owner):
            if forest >= 0:
                owner[edge] = -1
                self._move(edge, forest)

    @property
    def owner(self) -> NDArray[np.int64]:
        """int64[E]."""
        return np.array(self._owner, np.int64)

    def by_size(self) -> NDArray[np.int64]:
        """The owners, with forests numbered by how many edges they have, most first."""
        rank = np.argsort(np.argsort([-size for size in self._size], kind="stable"))
        return np.where(self.owner >= 0, rank[self.owner], -1)

    def complete(self, size: int) -> bool:
        """Give the forests all edges that they can take, until each has `size`; whether they do."""
        self._grow()
        for edge, (u, v) in enumerate(self.ends):
            if min(self._size) == size:
                return True
            if self._owner[edge] < 0 and top_of(self._clump, u) != top_of(self._clump, v):
                self._augment(edge)
        return min(self._size) == size

    def _grow(self) -> None:
        """Breadth first from a vertex each, in turns, over edges that no forest has."""
        free: list[list[tuple[int, int]]] = [[] for _ in range(self.order)]
        for edge, (u, v) in enumerate(self.ends):
            free[u].append((v, edge))
            free[v].append((u, edge))
        if any(self._size):
            return
        there = [v for v in range(self.order) if free[v]]
        roots = [there[len(there) * f // self.k] for f in range(self.k)]
        reached = [{root} for root in roots]
        queues = [[root] for root in roots]
        growing = set(range(self.k))
        places = [[0, 0] for _ in roots]
        while growing:
            for forest in sorted(growing):
                found = self._next(free, queues[forest], places[forest], reached[forest])
                if found is None:
                    growing.discard(forest)
                else:
                    self._move(found, forest)

    def _next(
        self,
        free: list[list[tuple[int, int]]],
        queue: list[int],
        place: list[int],
        reached: set[int],
    ) -> int | None:
        """The next edge of a forest that grows; place: in its queue, and in a list of edges."""
        while place[0] < len(queue):
            around = free[queue[place[0]]]
            while place[1] < len(around):
                other, edge = around[place[1]]
                place[1] += 1
                if self._owner[edge] < 0 and other not in reached:
                    reached.add(other)
                    queue.append(other)
                    return edge
            place[:] = place[0] + 1, 0
        return None

    def _augment(self, first: int) -> None:
        """Give an edge to a forest, moving others on; or find the clump that it lies in."""
        before: dict[int, int] = {first: -1}
        queue = [first]
        tops = [list(range(self.order)) for _ in range(self.k)]
        for edge in queue:
            u, v = self.ends[edge]
            for forest in range(self.k):
                if forest == self._owner[edge]:
                    continue
                found = self._cycle(forest, u, v, tops[forest])
                if found is None:
                    self._shift(edge, forest, before)
                    return
                for other in found:
                    if other not in before:
                        before[other] = edge
                        queue.append(other)
        for edge in queue:
            u, v = (top_of(self._clump, end) for end in self.ends[edge])
            self._clump[u] = v

    def _cycle(self, forest: int, u: int, v: int, top: list[int]) -> list[int] | None:
        """Edges between u and v in a forest that were not seen before; None: it joins them not."""
        parent, level, tree = self._roots(forest)
        if tree[u] != tree[v]:
            return None
        found = []
        u, v = top_of(top, u), top_of(top, v)
        while u != v:
            if level[u] < level[v]:
                u, v = v, u
            found.append(self._around[forest][u][parent[u]])
            top[u] = parent[u]
            u = top_of(top, u)
        return found

    def _roots(self, forest: int) -> tuple[list[int], list[int], list[int]]:
        """The parent, the level and the root of each vertex in a forest."""
        if (known := self._rooted[forest]) is not None:
            return known
        around = self._around[forest]
        parent, level, tree = [-1] * self.order, [0] * self.order, [-1] * self.order
        for root in range(self.order):
            if tree[root] >= 0:
                continue
            tree[root] = root
            queue = [root]
            for vertex in queue:
                for other in around[vertex]:
                    if tree[other] < 0:
                        tree[other], parent[other] = root, vertex
                        level[other] = level[vertex] + 1
                        queue.append(other)
        self._rooted[forest] = parent, level, tree
        return parent, level, tree

    def _shift(self, edge: int, forest: int, before: dict[int, int]) -> None:
        """Move an edge into a forest, the one before it into that one's place, and so on."""
        while edge >= 0:
            left = self._owner[edge]
            self._move(edge, forest)
            edge, forest = before[edge], left

    def _move(self, edge: int, forest: int) -> None:
        (u, v), left = self.ends[edge], self._owner[edge]
        if left >= 0:
            del self._around[left][u][v], self._around[left][v][u]
            self._size[left] -= 1
            self._rooted[left] = None
        self._around[forest][u][v] = self._around[forest][v][u] = edge
        self._size[forest] += 1
        self._rooted[forest] = None
        self._owner[edge] = forest


def top_of(above: list[int], vertex: int) -> int:
    """The one vertex that represents the set of another; `above` leads there, and is shortened."""
    while above[vertex] != vertex:
        above[vertex] = above[above[vertex]]
        vertex = above[vertex]
    return vertex
