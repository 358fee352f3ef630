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
Peer = Callable[["Graph", bool], object]


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

    made: networkx.Graph[int] = networkx.Graph(graph.edges().tolist())
    if every:
        return sum(len(found) for _, found in networkx.all_pairs_shortest_path_length(made))
    return networkx.shortest_path(made, 0, graph.order - 1)


def _igraph(graph: Graph, every: bool) -> object:
    import igraph

    made = igraph.Graph(graph.order, graph.edges())
    return made.distances() if every else made.get_shortest_path(0, graph.order - 1)


def _rustworkx(graph: Graph, every: bool) -> object:
    import rustworkx

    made = rustworkx.PyGraph(multigraph=False)
    made.add_nodes_from(range(graph.order))
    made.extend_from_edge_list(list(map(tuple, graph.edges().tolist())))
    if every:
        return rustworkx.distance_matrix(made)
    return rustworkx.dijkstra_shortest_paths(made, 0, target=graph.order - 1)


PEERS: dict[str, Peer] = {
    "scipy": _scipy,
    "networkx": _networkx,
    "igraph": _igraph,
    "rustworkx": _rustworkx,
}


def main(name: str, work: str, topology: str) -> None:
    """Time a piece of a peer's work, and print the seconds."""
    from compilers.topology.families import build_topology

    family, given = (values := json.loads(topology)).pop("family"), values
    graph = build_topology(family, given).graph
    start = process_time()
    PEERS[name](graph, work == DISTANCES)
    print(process_time() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
