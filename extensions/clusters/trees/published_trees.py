"""The trees that are known for a family by construction, without a search.

Those of a star product come from trees of its structure graph (arXiv 2403.12231, universal
solution). Over a tree of the structure graph the star product falls into k copies of it, each with
one member of every supernode: f is a bijection along each link, and a tree has no cycle on which
bijections could mix the copies. A tree of the supernode, at the root, joins the copies. So there
are as many trees, with as many on a link, and they are as deep as a tree of the structure and one
of the supernode together. Trees with different roots share no link within a supernode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Topology
from compilers.topology.supernodes import Supernode, supernode
from extensions.clusters.trees.shallow_trees import polarfly_trees
from extensions.clusters.trees.singer_paths import hamiltonian_paths
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
