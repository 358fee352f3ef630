"""Neighbour lists as arrays: their entries the other way, and the order of large numbers."""

import numpy as np
import pytest

from compilers.topology import adjacency as module
from compilers.topology.adjacency import Graph, stable_order
from compilers.topology.distance import neighbour_table, table_of
from compilers.topology.families import _meant, build_topology


@pytest.mark.parametrize("below", [1, 7, 1 << 16, 1 << 17, 1 << 31])
@pytest.mark.parametrize("count", [0, 1, 5_000])
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
@pytest.mark.parametrize("at_once", [1, 3, 1 << 17])
def test_an_entry_is_mirrored_by_the_entry_the_other_way(
    graph: Graph, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENDS_AT_ONCE", at_once)
    tails = graph.tails()
    np.testing.assert_array_equal(graph.mirrored(graph.targets), tails)
    np.testing.assert_array_equal(graph.mirrored(tails), graph.targets)
    blocks = [(tails, back) for _, tails, back in graph.reverse_blocks()]
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), tails)
    back = np.concatenate([block[1] for block in blocks])
    np.testing.assert_array_equal(back[back], np.arange(len(back)))


def test_a_misspelt_family_is_the_one_of_a_similar_name() -> None:
    assert _meant("oftt", {"q": 2}) == "oft"
    assert _meant("xyzzz", {"q": 2}) == "polarfly"  # the first with these parameters
