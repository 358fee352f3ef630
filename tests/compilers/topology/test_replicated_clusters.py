"""Expansions against vectors.json and PolarFly paper, §VI; no link of the old fabric is touched."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from compilers.topology.families import FAMILIES
from compilers.topology.layout import layout, links_between
from compilers.topology.replicated_clusters import expand
from inventory.problems import InputError

DATA = json.loads((Path(__file__).parents[2] / "data/vectors.json").read_text())
VECTORS = DATA["expansion"]
CASES = [
    *(("quadric", v["q"], v["n"], v) for v in VECTORS["quadric"]),
    *(("fan", v["q"], v["n"], v["paper"]) for v in VECTORS["nonquadric"]),
    *(("nucleus", v["q"], 1, v) for v in VECTORS["even_nucleus_twin"]),
]
SIZES = [("quadric", 7, 3), ("quadric", 9, 2), ("fan", 7, 7), ("fan", 9, 4), ("nucleus", 8, 1)]


def polarfly(q):
    return FAMILIES["polarfly"].build({"q": q})


def distances(graph):
    ones = np.ones(len(graph.targets))
    matrix = csr_matrix((ones, graph.targets, graph.offsets), shape=(graph.order, graph.order))
    return shortest_path(matrix, unweighted=True)


@pytest.mark.parametrize(("method", "q", "n", "expected"), CASES)
def test_vectors(method, q, n, expected):
    topology = expand(polarfly(q), method, n).topology
    graph, distance = topology.graph, distances(topology.graph)
    assert (graph.order, graph.size) == (expected["N"], expected["edges"])
    assert (graph.degrees.min(), graph.degrees.max()) == (expected["dmin"], expected["dmax"])
    assert distance.max() == expected["diam"] == topology.diameter
    mean = distance.sum() / (graph.order * (graph.order - 1))
    assert mean == pytest.approx(expected["aspl"], abs=1e-6)
    assert (distance == 3).sum() // 2 == expected.get("d3_pairs", 0)
    assert (distance == 3).sum(axis=0).max() == expected.get("max_d3_per_vertex", 0)
    for kind, key in [("W", "deg_quadric"), ("V1", "deg_V1"), ("V2", "deg_V2")]:
        if key in expected:
            assert (graph.degrees[topology.of_kind(kind)] == expected[key]).all()


@pytest.mark.parametrize(("method", "q", "n"), SIZES)
def test_no_link_is_touched(method, q, n):
    old = polarfly(q)
    grown = expand(old, method, n)
    before, after, added = (
        set(map(tuple, edges.tolist()))
        for edges in (old.graph.edges(), grown.topology.graph.edges(), grown.added)
    )
    assert before | added == after
    assert not before & added
    assert all(v >= old.graph.order for _, v in added)
    assert grown.added.tolist() == sorted(grown.added.tolist())
    assert (grown.origin[: old.graph.order] == np.arange(old.graph.order)).all()
    assert (grown.topology.coordinates[:, :3] == old.coordinates[grown.origin]).all()


@pytest.mark.parametrize(("q", "n"), [(5, 3), (7, 1), (7, 7), (9, 5), (11, 6)])
def test_fan_racks(q, n):
    topology = expand(polarfly(q), "fan", n).topology
    graph, distance = topology.graph, distances(topology.graph)
    assert graph.order == q * q + q + 1 + n * q
    assert graph.degrees.max() == q + 1 + n + 1
    assert (distance == 3).sum() // 2 == n * q * (q - 1)
    assert distance.max() == 3


@pytest.mark.parametrize("q", [2, 4, 8, 16])
def test_the_nucleus_twin_makes_even_q_regular(q):
    graph = expand(polarfly(q), "nucleus").topology.graph
    assert graph.order == q * q + q + 2
    assert (graph.degrees == q + 1).all()
    assert distances(graph).max() == 2


@pytest.mark.parametrize(("method", "q", "n"), SIZES)
def test_the_racks_of_the_larger_fabric(method, q, n):
    old = polarfly(q)
    grown, racks = expand(old, method, n), layout(old)
    larger = grown.layout
    assert len(larger.names) == len(racks.names) + n
    assert (larger.rack[: old.graph.order] == racks.rack).all()
    for rack in range(len(racks.names), len(larger.names)):
        members = larger.members(rack)
        originals = racks.members(racks.rack[grown.origin[members[0]]])
        if method != "nucleus":
            assert grown.origin[members].tolist() == originals.tolist()
    if method == "quadric":
        between = links_between(grown.topology.graph, larger)
        assert (between[q + 1 :, 1 : q + 1] == q + 1).all()
    if method == "fan":
        near = grown.topology.graph.neighbours(int(larger.centre[-1]))
        assert set(larger.members(len(larger.names) - 1)[1:]) <= set(near)


def test_a_start_of_ones_own():
    topology = polarfly(7)
    start = int(topology.of_kind("W")[3])
    grown = expand(topology, "fan", 2, start)
    assert (grown.layout.rack[:57] == layout(topology, "fans", start).rack).all()


@pytest.mark.parametrize(
    ("q", "method", "n", "words"),
    [
        (8, "quadric", 1, "odd q for quadric, given 8; use fan or nucleus: a copy of the quadrics"),
        (7, "nucleus", 1, "even q for nucleus, given 7; use quadric or fan"),
        (7, "fan", 8, "1 to 7 for fan, given 8"),
        (8, "fan", 8, "1 to 7 for fan, given 8"),
    ],
)
def test_what_does_not_grow(q, method, n, words):
    with pytest.raises(InputError, match=words):
        expand(polarfly(q), method, n)


@pytest.mark.parametrize(("q", "n"), [(4, 1), (4, 3), (8, 1), (8, 4), (8, 7)])
def test_fans_of_even_q_are_copied_by_the_definition(q: int, n: int) -> None:
    """Definition VI.1 of the PolarFly paper, link by link; no balancing link is added."""
    topology = polarfly(q)
    racks = layout(topology, "fans")
    grown = expand(topology, "fan", n)
    old = {frozenset(link) for link in topology.graph.edges().tolist()}
    origin, rack = grown.origin.tolist(), grown.layout.rack.tolist()
    expected = {
        (u, v)
        for u in range(len(origin))
        for v in range(u + 1, len(origin))
        if frozenset((origin[u], origin[v])) in old
        and (rack[u] == rack[v] or racks.rack[origin[u]] != racks.rack[origin[v]])
    }
    assert {tuple(link) for link in grown.topology.graph.edges().tolist()} == expected
    graph = nx.Graph(sorted(expected))
    assert len(graph) == q * q + q + 1 + n * (q + 1)
    assert nx.diameter(graph) == 3
    far = [length for _, to in nx.all_pairs_shortest_path_length(graph) for length in to.values()]
    assert far.count(3) == 2 * n * q * (q + 1)
    # A fan has no links to its own copy, so where all are copied the largest degree is less.
    assert max(dict(graph.degree).values()) == q + 1 + n - (n == q - 1)
