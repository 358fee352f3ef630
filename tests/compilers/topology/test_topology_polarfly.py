"""ER_q against vectors.json, brute force and the theorems of the PolarFly paper, §IV."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from compilers.families.polarfly import PolarFly
from compilers.topology.adjacency import Graph
from compilers.topology.field import field
from compilers.topology.polarity import cross, lines, numbers_of, points

VECTORS = json.loads((Path(__file__).parents[2] / "data/vectors.json").read_text())
ER = {int(q): v for q, v in VECTORS["ER_q"].items()}
SIZES = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19]


def build(q):
    return PolarFly().build({"q": q})


def adjacency(graph):
    matrix = np.zeros((graph.order, graph.order), np.int64)
    matrix[graph.tails(), graph.targets] = 1
    return matrix


@pytest.mark.parametrize("q", ER)
def test_vectors(q):
    topology, expected = build(q), ER[q]
    graph, matrix = topology.graph, adjacency(topology.graph)
    distance = shortest_path(csr_matrix(matrix), unweighted=True)
    assert graph.order == expected["N"] == PolarFly().order({"q": q})
    assert graph.size == expected["edges"]
    assert int(distance.max()) == expected["diameter"] == topology.diameter
    assert distance.sum() / (graph.order * (graph.order - 1)) == pytest.approx(expected["aspl"])
    assert np.trace(matrix @ matrix @ matrix) // 6 == expected["triangles"]
    degrees, counts = np.unique(graph.degrees, return_counts=True)
    got = {str(d): c for d, c in zip(degrees.tolist(), counts.tolist(), strict=True)}
    assert got == expected["degrees"]
    assert [len(topology.of_kind(k)) for k in ("W", "V1", "V2")] == [
        expected[k] for k in ("W", "V1", "V2")
    ]


@pytest.mark.parametrize("q", [q for q in ER if "edge_sha256" in ER[q]])
def test_canonical_edges(q):
    text = "".join(f"{u} {v}\n" for u, v in build(q).graph.edges())
    assert hashlib.sha256(text.encode()).hexdigest() == ER[q]["edge_sha256"]


@pytest.mark.parametrize("q", SIZES)
def test_edges_are_the_orthogonal_pairs(q):
    f, table = field(q), points(q)
    dot = np.zeros((len(table), len(table)), np.int64)
    for x in table.T:
        dot = f.add[dot, f.mul[x[:, None], x]]
    orthogonal = dot == 0
    topology = build(q)
    assert np.array_equal(np.flatnonzero(np.diag(orthogonal)), topology.of_kind("W"))
    np.fill_diagonal(orthogonal, False)
    assert np.array_equal(orthogonal, adjacency(topology.graph) == 1)
    assert (np.lexsort(table.T[::-1]) == np.arange(len(table))).all()
    assert (numbers_of(q, table) == np.arange(len(table))).all()


@pytest.mark.parametrize("q", SIZES)
def test_one_path_of_length_two_where_a_quadric_may_step_to_itself(q):
    topology = build(q)
    matrix = adjacency(topology.graph)
    matrix[topology.of_kind("W"), topology.of_kind("W")] = 1
    paths = matrix @ matrix
    np.fill_diagonal(paths, 1)
    assert (paths == 1).all()


@pytest.mark.parametrize("q", SIZES)
def test_an_edge_is_in_one_triangle_unless_a_quadric_is_on_it(q):
    topology = build(q)
    matrix = adjacency(topology.graph)
    u, v = topology.graph.edges().T
    quadric = topology.kind == 0
    assert np.array_equal((matrix @ matrix)[u, v], 1 - (quadric[u] | quadric[v]))


@pytest.mark.parametrize("q", [q for q in SIZES if q % 2])
def test_neighbours_by_kind_odd(q):
    topology = build(q)
    table = neighbours_by_kind(topology)
    half = (q - 1) // 2
    for kind, expected in enumerate([(0, q, 0), (2, half, half), (0, half + 1, half + 1)]):
        assert (table[topology.kind == kind] == expected).all()


@pytest.mark.parametrize("q", [2, 4, 8, 16])
def test_neighbours_by_kind_even(q):
    topology = build(q)
    table = neighbours_by_kind(topology)
    nucleus = int(numbers_of(q, np.array([1, 1, 1], np.int32)))
    assert table[nucleus].tolist() == [q + 1, 0, 0]
    ordinary = np.delete(topology.of_kind("V1"), np.searchsorted(topology.of_kind("V1"), nucleus))
    assert (table[ordinary] == [1, q, 0]).all()
    f = field(q)
    x, y, z = topology.coordinates.T
    assert np.array_equal(f.add[f.add[x, y], z] == 0, topology.kind == 0)


def neighbours_by_kind(topology):
    graph = topology.graph
    table = np.zeros((graph.order, 3), np.int64)
    np.add.at(table, (graph.tails(), topology.kind[graph.targets]), 1)
    return table


@given(st.sampled_from([2, 3, 4, 7, 8, 9, 16, 25, 27, 32, 49, 64]), st.data())
def test_the_cross_product_is_the_common_neighbour(q, data):
    n = q * q + q + 1
    s = data.draw(st.integers(0, n - 1))
    d = data.draw(st.integers(0, n - 1).filter(lambda v: v != s))
    table = lines(q)
    between = int(cross(q, np.int32(s), np.int32(d)))
    assert np.intersect1d(table[s], table[d]).tolist() == [between]
    assert int(cross(q, np.int32(d), np.int32(s))) == between


def test_graph_refuses_what_is_not_simple():
    for edges, message in [([[0, 0]], "loop"), ([[0, 1], [1, 0]], "repeated"), ([[0, 3]], "range")]:
        with pytest.raises(ValueError, match=message):
            Graph.from_edges(3, np.array(edges))


@given(st.integers(2, 30), st.data())
def test_graph_round_trips(order, data):
    pairs = st.tuples(st.integers(0, order - 1), st.integers(0, order - 1))
    chosen = data.draw(st.lists(pairs.filter(lambda e: e[0] < e[1]), unique=True))
    graph = Graph.from_edges(order, np.array(chosen, np.int64).reshape(-1, 2))
    assert graph.edges().tolist() == sorted(map(list, chosen))
    assert np.array_equal(Graph.from_padded(graph.padded()).targets, graph.targets)
    assert (graph.degrees == adjacency(graph).sum(axis=1)).all()


@pytest.mark.parametrize("q", [1, 0, -5, 6, "x", 2.5, True, 10**12])
def test_impossible_q(q):
    (problem,) = PolarFly().check({"q": q})
    assert problem.key == "q"
    assert "prime power" in problem.required
    assert problem.todo


def test_designs():
    assert [d.nodes for d in PolarFly().designs(32)] == [993]
    assert list(PolarFly().designs(7)) == []
    (design,) = PolarFly().designs(8)
    assert (design.links, design.q, design.diameter) == (224, 7, 2)
    assert design.moore_efficiency == pytest.approx(57 / 65)
