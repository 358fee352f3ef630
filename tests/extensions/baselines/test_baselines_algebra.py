"""What the theorems say of MMS, LPS and star product graphs."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from compilers.topology.families import BASELINES
from compilers.topology.field import field
from extensions.baselines.slimfly import generator_sets, residue
from extensions.baselines.spectralfly import (
    DIAMETER_THREE,
    four_squares,
    is_odd_prime,
    is_residue,
)


def adjacency(graph):
    return csr_matrix((np.ones(len(graph.targets)), graph.targets, graph.offsets))


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27])
def test_generator_sets(q):
    """§IV-B: sizes, closed under negation, and what they share."""
    f = field(q)
    first, second = (set(found.tolist()) for found in generator_sets(q))
    shared = {1: set(), -1: {1, int(f.neg[1])}, 0: {1}}[residue(q)]
    assert len(first) == len(second) == (q - residue(q)) // 2
    assert first | second == set(range(1, q))
    assert first & second == shared
    for found in (first, second):
        assert {int(f.neg[x]) for x in found} == found


@pytest.mark.parametrize("q", [4, 5, 7, 9])
def test_edges_of_mms_are_the_definition(q):
    f, sets = field(q), [set(found.tolist()) for found in generator_sets(q)]
    topology = BASELINES["slimfly"].build({"q": q})
    expected = set()
    vertices = list(enumerate(product(range(2), range(q), range(q))))
    for (u, (s, x, y)), (v, (t, a, b)) in product(vertices, vertices):
        difference = int(f.add[y, f.neg[b]])
        local = s == t and x == a and difference in sets[s]
        if u < v and (local or (s < t and difference == f.mul[x, a])):
            expected.add((u, v))
    assert set(map(tuple, topology.graph.edges().tolist())) == expected
    assert topology.coordinates.tolist() == [list(c) for _, c in vertices]


def test_mms_5_is_the_hoffman_singleton_graph():
    a = adjacency(BASELINES["slimfly"].build({"q": 5}).graph).toarray()
    assert np.array_equal(a @ a + a - 6 * np.eye(50), np.ones((50, 50)))


@pytest.mark.parametrize("p", [3, 5, 7, 11, 13, 17, 19, 23, 29, 31])
def test_four_squares(p):
    """Jacobi: 8(p+1) ways to write p as a sum of four squares, so p+1 classes."""
    found = four_squares(p)
    assert len(found) == len(set(found)) == p + 1
    negated = {(a, -b, -c, -d) for a, b, c, d in found if a}
    assert negated == {s for s in found if s[0]}


LPS = [(3, 5), (3, 7), (5, 11), (11, 7), (23, 13)]


@pytest.mark.parametrize(("p", "q"), LPS)
def test_lps_is_a_ramanujan_graph(p, q):
    """Regular of degree p+1, connected, bipartite for PGL only, other eigenvalues ≤ 2√p."""
    graph = BASELINES["spectralfly"].build({"p": p, "q": q}).graph
    matrix = adjacency(graph)
    square = any(x * x % q == p % q for x in range(1, q))
    assert is_residue(p, q) == square
    assert graph.order == q * (q * q - 1) // (2 if square else 1)
    assert (graph.degrees == p + 1).all()
    assert connected_components(matrix)[0] == 1
    values = np.sort(
        np.abs(
            eigsh(matrix, k=4, which="LM", v0=np.ones(graph.order) + np.arange(graph.order) % 7)[0]
        )
    )
    trivial = 1 if square else 2
    assert values[-trivial:] == pytest.approx([p + 1] * trivial)
    assert values[: 4 - trivial].max() <= 2 * p**0.5 + 1e-9


def test_lps_vertices_are_the_group_in_canonical_order():
    for p, q in ((3, 5), (11, 7)):
        topology = BASELINES["spectralfly"].build({"p": p, "q": q})
        squares = {x * x % q for x in range(1, q)}
        wanted = squares if is_residue(p, q) else set(range(1, q))
        expected = [
            [a, b, c, d]
            for a, b, c, d in product(range(q), repeat=4)
            if next((x for x in (a, b, c, d) if x), 0) == 1 and (a * d - b * c) % q in wanted
        ]
        assert topology.coordinates.tolist() == expected


def test_table_of_lps_graphs_with_diameter_three():
    family = BASELINES["spectralfly"]
    for p in (11, 23, 29, 41):
        near = [q for q in range(3, 2 * p) if is_odd_prime(q) and q <= 23]
        fit = [q for q in near if not family.check({"p": p, "q": q})]
        built = {q: family.build({"p": p, "q": q}).diameter for q in fit}
        assert tuple(q for q in fit if built[q] == 3) == DIAMETER_THREE[p]
        assert min(built.values()) >= 3


def test_bundlefly_supernodes_are_paley_graphs_over_mms():
    topology = BASELINES["bundlefly"].build({"q": 4, "degree": 6})
    structure, size = BASELINES["slimfly"].build({"q": 4}).graph, 13
    edges = topology.graph.edges()
    squares = {x * x % size for x in range(1, size)}
    inside = edges[edges[:, 0] // size == edges[:, 1] // size]
    assert len(inside) == 32 * size * 6 // 2
    assert {(v - u) % size for u, v in inside.tolist()} == squares
    between = edges[edges[:, 0] // size != edges[:, 1] // size]
    bundles, links = np.unique(between // size, axis=0, return_counts=True)
    assert np.array_equal(bundles, structure.edges())
    assert (links == size).all()
    assert all(v % size == 2 * u % size for u, v in between.tolist())
