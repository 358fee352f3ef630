"""The trees that are known for a family by construction, without a search.

Those of a star product come from trees of its structure graph (arXiv 2403.12231, universal
solution). Over a tree of the structure graph the star product falls into k copies of it, each with
one member of every supernode: f is a bijection along each link, and a tree has no cycle on which
bijections could mix the copies. A tree of the supernode, at the root, joins the copies. So there
are as many trees, with as many on a link, and they are as deep as a tree of the structure and one
of the supernode together. Trees with different roots share no link within a supernode.

Those of ER_q are edge-disjoint Hamiltonian paths from a Singer difference set (SPAA'23, §7). A
Singer cycle that is symmetric as a matrix, M = Mᵀ, numbers the points so that the dot product of
Mⁱx and Mʲx depends on i + j alone: i and j are joined when i + j mod N is in the difference set D.
Two elements d, e of D alternate along a path that moves on by d - e every second step; it visits
all N points, from the quadric d/2 to the quadric e/2, if d - e and N have no common divisor. Pairs
of elements without one in common give paths without a common edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.field import field
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import index, lines, order, points
from compilers.topology.supernodes import Supernode, supernode
from extensions.clusters.trees.shallow_trees import polarfly_trees
from extensions.clusters.trees.spanning_tree import SpanningTree, shortest_tree


def published_trees(topology: Topology, low_depth: bool) -> list[SpanningTree]:
    """Those of PolarFly and PolarStar; none of other families, or where a link is missing.

    Args:
        topology: the fabric's, damaged or not.
        low_depth: short ones, two on a link; else those that share none.
    """
    if topology.family not in ("polarfly", "polarstar"):
        return []
    trees = _of_polarfly(int(topology.parameters["q"]), low_depth)
    if topology.family == "polarstar":
        kind, degree = (topology.parameters[name] for name in ("supernode", "degree"))
        trees = list(lifted_trees(trees, supernode(str(kind), int(degree))))
    return trees if _there(topology.graph, trees) else []


def lifted_trees(trees: Iterable[SpanningTree], supernode: Supernode) -> Iterator[SpanningTree]:
    """The trees of the star product, one over each of these, in the numbers of `star_product`.

    A tree whose root is taken begins at the next vertex that is free. None if the supernode
    is not connected.
    """
    k, taken = supernode.order, set[int]()
    inner = shortest_tree(supernode.graph)
    if inner is None:
        return
    for given in trees:
        near = np.argsort(given.level, kind="stable").tolist()
        tree = given.rooted_at(next(v for v in near if v not in taken))
        taken.add(tree.root)
        child = np.flatnonzero(tree.parent >= 0)
        above = tree.parent[child]
        images = np.where((above < child)[:, None], supernode.backward, supernode.forward)
        parent = np.full((len(tree.parent), k), -1, np.int32)
        parent[child] = above[:, None] * k + images
        first = tree.root * k
        parent[tree.root] = np.where(inner.parent >= 0, first + inner.parent, -1)
        yield SpanningTree(first + inner.root, parent.ravel())


def _of_polarfly(q: int, low_depth: bool) -> list[SpanningTree]:
    if low_depth:
        return list(polarfly_trees(q))
    paths = hamiltonian_paths(q)
    ends = [np.column_stack((path[:-1], path[1:])).tolist() for path in paths]
    return [SpanningTree.of_edges(len(paths[0]), each) for each in ends]


def _there(graph: Graph, trees: list[SpanningTree]) -> bool:
    """Whether the trees are of all vertices of a graph, and it has all their links."""
    links = graph.edges().astype(np.int64) @ [graph.order, 1]  # ascending, as the edges are
    for tree in trees:
        place = np.searchsorted(links, tree.links)
        whole = len(tree.parent) == graph.order and place.max() < len(links)
        if not whole or (links[place] != tree.links).any():
            return False
    return True


def hamiltonian_paths(q: int) -> list[NDArray[np.int32]]:
    """int32[N] each: the vertices along ⌊(q + 1)/2⌋ Hamiltonian paths without a common edge.

    There were as many for every q up to 128 (SPAA'23, §7.3; tests check those up to 32); there
    would be fewer if too many differences shared a divisor with N.
    """
    from networkx import Graph, max_weight_matching

    n, cycle = order(q), symmetric_cycle(q)
    differences = np.flatnonzero(np.isin(cycle, lines(q)[cycle[0]])).tolist()
    pairs: Graph[int] = Graph()
    pairs.add_edges_from(
        (d, e) for d, e in product(differences, repeat=2) if d < e and gcd(e - d, n) == 1
    )
    matched = max_weight_matching(pairs, maxcardinality=True)
    return [cycle[_places(d, e, n)] for d, e in sorted(map(sorted, matched))]


def symmetric_cycle(q: int) -> NDArray[np.int32]:
    """int32[N]: the points in the order in which a symmetric collineation visits them all.

    The first one, in the order of (a, b, c, d), of the matrices a 1 0, 1 b d, 0 d c.
    """
    for d, a, b, c in product(range(1, q), range(q), range(q), range(q)):
        step = _images(q, a, b, c, d)
        orbit = [0]
        while (following := step[orbit[-1]]) != 0 and len(orbit) <= len(step):
            orbit.append(following)
        if len(orbit) == len(step):
            return np.array(orbit, np.int32)
    raise AssertionError("PG(2, q) has a symmetric Singer cycle")


def _images(q: int, a: int, b: int, c: int, d: int) -> list[int]:
    """The image of each point; of those of a matrix that is not regular some are wrong."""
    f = field(q)
    x, y, z = points(q).T
    u = f.add[f.mul[a, x], y]
    v = f.add[f.add[x, f.mul[b, y]], f.mul[d, z]]
    w = f.add[f.mul[d, y], f.mul[c, z]]
    scale = f.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    found: list[int] = index(q, np.stack([f.mul[p, scale] for p in (u, v, w)], axis=-1)).tolist()
    return found


def _places(d: int, e: int, n: int) -> NDArray[np.int64]:
    """int64[n]: the places along the path of d and e; its first edge is of e."""
    half = np.arange((n + 1) // 2, dtype=np.int64)
    even = (d * (n + 1) // 2 + half * (d - e)) % n
    path = np.empty(n, np.int64)
    path[::2] = even
    path[1::2] = (e - even[:-1]) % n
    return path
