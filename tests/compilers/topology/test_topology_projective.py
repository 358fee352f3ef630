"""PN, demi-PN and OFT against vectors.json and the incidence of points and lines."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from compilers.evaluation.comparison.designs import designs_near_radix
from compilers.topology.families import FAMILIES
from compilers.topology.polarity import lines

VECTORS = json.loads((Path(__file__).parents[2] / "data/vectors.json").read_text())["projective"]


def distances(graph):
    ones = np.ones(len(graph.targets))
    matrix = csr_matrix((ones, graph.targets, graph.offsets), shape=(graph.order, graph.order))
    return shortest_path(matrix, unweighted=True).astype(int)


@pytest.mark.parametrize("q", list(map(int, VECTORS["PN"])))
def test_pn_vectors(q):
    expected, topology = VECTORS["PN"][str(q)], FAMILIES["pn"].build({"q": q})
    graph, distance = topology.graph, distances(topology.graph)
    assert graph.order == expected["N"]
    assert (graph.degrees == expected["deg"]).all()
    assert distance.max() == expected["diam"] == topology.diameter
    mean = distance.sum() / (graph.order * (graph.order - 1))
    assert mean == pytest.approx(expected["kbar"])
    assert distance.sum() / len(graph.targets) == pytest.approx(expected["arc_load"])


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9])
def test_pn_joins_points_and_lines(q):
    topology, n = FAMILIES["pn"].build({"q": q}), q * q + q + 1
    u, v = topology.graph.edges().T
    assert (topology.kind[u] == 0).all()
    assert (topology.kind[v] == 1).all()
    assert [set(topology.graph.neighbours(n + x)) for x in range(n)] == list(map(set, lines(q)))
    same_side = distances(topology.graph)[:n, :n]
    assert (same_side[~np.eye(n, dtype=bool)] == 2).all()


@pytest.mark.parametrize("q", list(map(int, VECTORS["demiPN"])))
def test_demi_pn_is_polarfly(q):
    expected, topology = VECTORS["demiPN"][str(q)], FAMILIES["demi-pn"].build({"q": q})
    assert topology.family == "polarfly"
    distance = distances(topology.graph)
    assert distance.sum() / (distance.size - len(distance)) == pytest.approx(expected["kbar"])
    assert distance.shape == (expected["N"],) * 2


@pytest.mark.parametrize("q", list(map(int, VECTORS["OFT"])))
def test_oft_vectors(q):
    expected, topology = VECTORS["OFT"][str(q)], FAMILIES["oft"].build({"q": q})
    leaves, spines = topology.of_kind("leaf"), topology.of_kind("spine")
    distance, degrees = distances(topology.graph), topology.graph.degrees
    between = distance[np.ix_(leaves, leaves)]
    assert (len(topology.kind), len(leaves), len(spines)) == (
        *(expected["N"], expected["leaves"], expected["spines"]),
    )
    assert (degrees[leaves] == expected["leaf_deg"]).all()
    assert (degrees[spines] == expected["spine_deg"]).all()
    assert (between[~np.eye(len(leaves), dtype=bool)] == expected["leaf_dist"]).all()
    assert distance[np.ix_(leaves, spines)].max() == expected["max_leaf_spine"]
    assert distance[np.ix_(spines, spines)].max() == expected["max_spine_spine"]
    assert distance.max() == expected["diam_graph"] == topology.diameter
    assert topology.endpoints.sum() * (q + 1) == expected["T"]
    assert np.array_equal(np.flatnonzero(topology.endpoints), leaves)
    adjacent = np.zeros(distance.shape, int)
    adjacent[topology.graph.tails(), topology.graph.targets] = 1
    shared = (adjacent @ adjacent)[np.ix_(leaves, leaves)]
    counts = np.unique(shared[~np.eye(len(leaves), dtype=bool)], return_counts=True)
    got = {str(k): c for k, c in zip(counts[0].tolist(), counts[1].tolist(), strict=True)}
    assert got == expected["spines_between"]


@pytest.mark.parametrize("family", ["polarfly", "pn", "oft"])
@pytest.mark.parametrize("radix", [3, 4, 5, 6, 8, 9, 10, 14, 20])
def test_designs_are_what_is_built(family, radix):
    for design in FAMILIES[family].designs(radix):
        topology = FAMILIES[family].build({"q": design.q})
        assert (design.nodes, design.links) == (topology.graph.order, topology.graph.size)
        assert design.radix == topology.graph.degrees.max()
        assert design.nodes == FAMILIES[family].order({"q": design.q})
        assert design.diameter == distances(topology.graph).max()


def test_an_alias_is_not_a_design_of_its_own():
    assert [d.family for d in designs_near_radix(8)].count("polarfly") == 1
