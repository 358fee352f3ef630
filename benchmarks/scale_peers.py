"""What other libraries do of our work: distances of all pairs, or the path of one.

    python -m benchmarks.scale_peers NAME WORK TOPOLOGY

prints the processor seconds that it took, the library's import and its own form of the graph
included, the making of the graph not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who starts these processes stays small: a child counts its parent's memory
    from compilers.topology.adjacency import Graph

DISTANCES, PATH = "all distances", "one path"
"""Pieces of work."""
Peer = Callable[["Graph", bool], object]
"""Computes all distances of a graph, or one path."""


def _scipy(graph: Graph, every: bool) -> object:
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    ends = (np.ones(len(graph.targets), np.int8), graph.targets, graph.offsets)
    matrix = csr_array(ends, shape=(graph.order, graph.order))
    sources = None if every else 0
    return shortest_path(matrix, unweighted=True, return_predecessors=True, indices=sources)


def _networkx(graph: Graph, every: bool) -> object:
    import networkx

    theirs: networkx.Graph[int] = networkx.Graph(graph.edges().tolist())
    if every:
        lengths = networkx.all_pairs_shortest_path_length(theirs)
        return sum(len(from_one) for _, from_one in lengths)
    return networkx.shortest_path(theirs, 0, graph.order - 1)


def _igraph(graph: Graph, every: bool) -> object:
    import igraph

    theirs = igraph.Graph(graph.order, graph.edges())
    return theirs.distances() if every else theirs.get_shortest_path(0, graph.order - 1)


def _rustworkx(graph: Graph, every: bool) -> object:
    import rustworkx

    theirs = rustworkx.PyGraph(multigraph=False)
    theirs.add_nodes_from(range(graph.order))
    theirs.extend_from_edge_list(list(map(tuple, graph.edges().tolist())))
    if every:
        return rustworkx.distance_matrix(theirs)
    return rustworkx.dijkstra_shortest_paths(theirs, 0, target=graph.order - 1)


PEERS: dict[str, Peer] = {
    "scipy": _scipy,
    "networkx": _networkx,
    "igraph": _igraph,
    "rustworkx": _rustworkx,
}
"""The libraries, by name."""


def main(name: str, work: str, topology: str) -> None:
    """Time a piece of a peer's work, and print the seconds."""
    from compilers.topology.families import build_topology

    parameters = json.loads(topology)
    family = parameters.pop("family")
    graph = build_topology(family, parameters).graph
    start = process_time()
    PEERS[name](graph, work == DISTANCES)
    print(process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
