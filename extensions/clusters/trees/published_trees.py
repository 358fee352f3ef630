"""The trees that are known for a family by construction, without a search."""

from __future__ import annotations

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Topology
from compilers.topology.supernodes import supernode
from extensions.clusters.trees.lifted_trees import lifted_trees
from extensions.clusters.trees.shallow_trees import polarfly_trees
from extensions.clusters.trees.singer_paths import hamiltonian_paths
from extensions.clusters.trees.spanning_tree import SpanningTree


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
