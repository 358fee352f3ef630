"""Neighbour lists as arrays: their entries the other way, the order of large numbers, distances."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from compilers.topology.adjacency import Graph, stable_order
from compilers.topology.distance import (
    BEYOND,
    diameter,
    distances,
    neighbour_table,
    pairs_within,
    table_of,
)
from compilers.topology.families import build_topology


@pytest.mark.parametrize("below", [1, 1 << 16, 1 << 17, 1 << 31])
@pytest.mark.parametrize("count", [0, 5_000])
def test_equal_numbers_keep_their_order(below: int, count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, below, count, dtype=np.int64)
    for kind in (np.int32, np.int64):
        expected = np.argsort(numbers.astype(kind), kind="stable")
        np.testing.assert_array_equal(stable_order(numbers.astype(kind)), expected)


GRAPHS = [
    Graph.from_edges(5, np.empty((0, 2), int)),
    Graph.from_edges(70_000, np.array([[0, 69_999], [65_536, 1], [65_537, 65_536]])),
    build_topology("polarfly", {"q": 5}).graph,
]


@pytest.mark.parametrize("graph", GRAPHS)
def test_tables_of_neighbours_end_in_a_row_for_nobody(graph: Graph) -> None:
    np.testing.assert_array_equal(neighbour_table(graph), table_of(graph.padded()))


@pytest.mark.parametrize("graph", GRAPHS)
def test_an_entry_is_mirrored_by_the_entry_the_other_way(graph: Graph) -> None:
    tails = graph.tails()
    np.testing.assert_array_equal(graph.reverse_values(graph.targets), tails)
    np.testing.assert_array_equal(graph.reverse_values(tails), graph.targets)
    blocks = [(tails, back) for _, tails, back in graph.reverse_blocks()]
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), tails)
    back = np.concatenate([block[1] for block in blocks])
    np.testing.assert_array_equal(back[back], np.arange(len(back)))


def graphs() -> Iterator[tuple[Graph, NDArray[np.bool_]]]:
    """Sparse, damaged, long and large ones, each with vertices that are targets."""
    for order, links, seed in ((1, 0, 0), (40, 60, 1), (130, 120, 2), (200, 900, 3)):
        source = np.random.default_rng(seed)
        ends = np.sort(source.integers(0, order, (links, 2)), axis=1)
        graph = Graph.from_edges(order, np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0))
        yield graph, source.random(order) < 0.7
    steps = np.arange(300)
    yield Graph.from_edges(301, np.stack((steps, steps + 1), axis=1)), np.arange(301) % 2 == 0


@pytest.mark.parametrize(("graph", "targets"), [*graphs()])
def test_pairs_within_are_those_of_distances(graph: Graph, targets: NDArray[np.bool_]) -> None:
    table = neighbour_table(graph)
    for sources in (np.flatnonzero(targets), np.arange(graph.order)[::-1]):
        found = distances(table, sources)[:, targets]
        within = [np.count_nonzero(found <= links) for links in range(BEYOND)]
        pairs = pairs_within(table, sources, targets)
        assert pairs == within[: len(pairs)]
        assert {*within[len(pairs) :]} <= {pairs[-1]}


def test_a_diameter_is_that_of_scipy_or_beyond() -> None:
    for order, links in ((1100, 3), (7, 3)):
        graph = nx.random_regular_graph(links, order + order * links % 2, seed=1)
        expected = shortest_path(nx.to_scipy_sparse_array(graph), unweighted=True).max()
        assert diameter(Graph.from_edges(len(graph), np.array(graph.edges))) == expected
    apart = nx.disjoint_union(graph, graph)
    assert diameter(Graph.from_edges(len(apart), np.array(apart.edges))) == BEYOND
