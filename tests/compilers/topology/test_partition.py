"""Parts of graphs: exact sizes, few links between them, what is fixed stays."""

from __future__ import annotations

import numpy as np
import pymetis
import pytest

from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.partition import links_cut, partition

GRAPHS = [
    ("jellyfish", {"nodes": 200, "degree": 8, "seed": 1}, 20),
    ("slimfly", {"q": 7}, 14),
    ("polarfly", {"q": 7}, 8),
]


def sizes_of(order: int, size: int) -> list[int]:
    return [size] * (order // size) + [order % size] * (order % size > 0)


@pytest.mark.parametrize(("family", "parameters", "size"), GRAPHS)
def test_about_as_few_links_as_metis_cuts(family, parameters, size) -> None:
    """METIS may make parts uneven for that; these are exact."""
    graph = build_topology(family, parameters).graph
    sizes = sizes_of(graph.order, size)
    part = partition(graph, sizes)
    assert np.bincount(part).tolist() == sizes
    between = sum(part[u] != part[v] for u, v in graph.edges().tolist())
    assert between == links_cut(graph, part)
    adjacency = pymetis.CSRAdjacency(graph.offsets.tolist(), graph.targets.tolist())
    peer = pymetis.part_graph(len(sizes), adjacency=adjacency)
    assert between <= 1.2 * peer.edge_cuts
    listed = np.repeat(np.arange(len(sizes)), sizes)
    assert between < links_cut(graph, listed)


def test_groups_that_are_there_are_found_whatever_their_numbers() -> None:
    graph = build_topology("dragonfly", {"h": 2}).graph
    names = np.random.default_rng(5).permutation(graph.order)
    shuffled = Graph.from_edges(graph.order, names[graph.edges()])
    part = partition(shuffled, [4] * 9)
    assert links_cut(shuffled, part) == 9 * 8 // 2


def test_what_is_fixed_stays_beside_its_neighbours() -> None:
    graph = build_topology("jellyfish", {"nodes": 30, "degree": 4, "seed": 0}).graph
    fixed = np.full(30, -1)
    fixed[[7, 9, 11]] = [2, 2, 0]
    sizes = [9, 10, 8]
    part = partition(graph, sizes, fixed)
    assert part[[7, 9, 11]].tolist() == [2, 2, 0]
    assert np.bincount(part).tolist() == [10, 10, 10]
    assert links_cut(graph, part) < 45


def test_a_part_for_all() -> None:
    graph = build_topology("slimfly", {"q": 4}).graph
    assert not partition(graph, [graph.order, 0]).any()
