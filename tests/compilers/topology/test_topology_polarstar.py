"""Supernodes and star products against their defining properties and vectors.json."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from compilers.families.polarfly import PolarFly
from compilers.families.polarstar import DESIGNED_KINDS, PolarStar
from compilers.topology.adjacency import Graph
from compilers.topology.supernodes import SUPERNODE_KINDS, Supernode, exists, shape, supernode

VECTORS = json.loads((Path(__file__).parents[2] / "data/vectors.json").read_text())["polarstar"]
NAMES = {"iq": "inductive-quad", "paley": "paley"}
FAMILY = PolarStar()
SUPERNODES = [(name, d) for name in SUPERNODE_KINDS for d in range(25) if exists(name, d)]


def build(q, kind, degree):
    return FAMILY.build({"q": q, "supernode": kind, "degree": degree})


def distances(graph):
    ones = np.ones(len(graph.targets))
    matrix = csr_matrix((ones, graph.targets, graph.offsets), shape=(graph.order, graph.order))
    return shortest_path(matrix, unweighted=True)


def by_distance(graph):
    values, counts = np.unique(distances(graph), return_counts=True)
    return {str(int(v)): int(c) for v, c in zip(values, counts, strict=True) if v > 0}


def arcs(graph):
    return set(zip(graph.tails().tolist(), graph.targets.tolist(), strict=True))


@pytest.mark.parametrize(("name", "degree"), SUPERNODES)
def test_property(name, degree):
    made = supernode(name, degree)
    edges, f = arcs(made.graph), made.forward.tolist()
    assert sorted(f) == list(range(made.order))
    assert (made.backward[made.forward] == np.arange(made.order)).all()
    image = {(f[x], f[y]) for x, y in edges}
    for x, y in product(range(made.order), repeat=2):
        held = [y == x, (x, y) in edges, (x, y) in image]
        if made.involution:
            held[1:1] = [y == f[x]]
            held[3] = (f[x], f[y]) in edges
        assert any(held)
        if name == "inductive-quad":
            assert sum(held) == 1


@pytest.mark.parametrize(("name", "degree"), SUPERNODES)
def test_shape(name, degree):
    made = supernode(name, degree)
    assert shape(name, degree) == (made.order, made.graph.size, len(made.loops()) // 2)
    assert made.degree == degree
    if name != "bdf":
        assert (made.graph.degrees == degree).all()


def test_orders_of_table_2():
    degrees = range(41)
    assert [d for d in degrees if exists("inductive-quad", d)] == [
        d for d in degrees if d % 4 in (0, 3)
    ]
    assert [d for d in degrees if exists("paley", d)] == [
        *(2, 4, 6, 8, 12, 14, 18, 20, 24, 26, 30, 36, 40),
    ]
    orders = {"inductive-quad": 2, "paley": 1, "bdf": 0}
    for name, extra in orders.items():
        assert all(shape(name, d).order == 2 * d + extra for d in degrees if exists(name, d))
    assert all(abs(shape("cayley", d).order - 2 * d) <= 1 for d in degrees if exists("cayley", d))
    assert [d for d in range(12) if exists("cayley", d)] == [1, 2, 4, 6, 8, 10]


def test_a_graph_without_the_property_is_refused():
    path = Graph.from_edges(4, np.array([[0, 1], [1, 2], [2, 3]]))
    swap = np.array([1, 0, 3, 2], np.int32)
    with pytest.raises(ValueError, match=r"lacks Property R\*"):
        Supernode("path", path, swap, swap)
    turn = np.array([1, 2, 3, 0], np.int32)
    with pytest.raises(ValueError, match="lacks Property R1"):
        Supernode("path", path, turn, np.argsort(turn).astype(np.int32))


@pytest.mark.parametrize(
    "v", VECTORS["routing"], ids=lambda v: f"{v['kind']}-{v['q']}-{v['d']}" if v else ""
)
def test_distances(v):
    topology = build(v["q"], NAMES[v["kind"]], v["d"])
    assert topology.graph.order == v["N"] == FAMILY.order(topology.parameters)
    assert by_distance(topology.graph) == v["dist_hist"]


@pytest.mark.parametrize(
    "v",
    [
        v
        for v in VECTORS["instances"]
        if (v["kind"], v["loops"]) in {("iq", "full"), ("paley", "none")}
    ],
    ids=lambda v: f"{v['kind']}-{v['q']}-{v['d']}",
)
def test_instances(v):
    graph = build(v["q"], NAMES[v["kind"]], v["d"]).graph
    distance = distances(graph)
    assert (graph.order, graph.size) == (v["N"], v["edges"])
    assert (graph.degrees.min(), graph.degrees.max()) == (v["dmin"], v["dmax"])
    assert int(distance.max()) == v["diam"] == 3
    assert distance.sum() / (v["N"] * (v["N"] - 1)) == pytest.approx(v["aspl"], abs=1e-6)


def test_the_design_of_table_3():
    graph = build(11, "inductive-quad", 3).graph
    assert (graph.order, graph.size) == (1064, 7980)
    assert (graph.degrees == 15).all()
    assert by_distance(graph) == {"1": 15960, "2": 220640, "3": 894432}


@pytest.mark.parametrize(
    ("kind", "q", "degree"),
    [
        (kind, q, d)
        for kind, q, d in product(DESIGNED_KINDS, (2, 3, 4, 5), range(1, 8))
        if exists(kind, d)
    ],
)
def test_designs_are_what_is_built(kind, q, degree):
    designs = list(FAMILY.designs(q + 1 + degree))
    (design,) = [d for d in designs if (d.supernode, d.q) == (kind, q)]
    topology = build(q, kind, degree)
    assert (design.nodes, design.links) == (topology.graph.order, topology.graph.size)
    assert int(topology.graph.degrees.max()) == design.radix == q + 1 + degree
    assert int(distances(topology.graph).max()) == design.diameter == topology.diameter


def test_the_star_product_by_its_definition():
    """An independent, literal construction: arcs along x < y, f against the arc inverted."""
    for kind, degree in [("paley", 4), ("inductive-quad", 3), ("cayley", 6)]:
        structure, made = PolarFly().build({"q": 4}), supernode(kind, degree)
        k, f, edges = made.order, made.forward.tolist(), set()
        for x in range(structure.graph.order):
            edges |= {(x * k + a, x * k + b) for a, b in made.graph.edges().tolist()}
            if structure.kind[x] == 0 and made.involution:
                edges |= {(x * k + a, x * k + f[a]) for a in range(k) if a < f[a]}
        for x, y in structure.graph.edges().tolist():
            edges |= {(x * k + a, y * k + f[a]) for a in range(k)}
        assert sorted(edges) == list(map(tuple, build(4, kind, degree).graph.edges().tolist()))


def test_pn_is_the_supernode_of_degree_0():
    graph = build(4, "inductive-quad", 0).graph
    assert (graph.order, graph.size) == (42, 105)
    assert (graph.degrees == 5).all()
    assert distances(graph).mean() * 42 / 41 == pytest.approx(2.268292683)


def test_kinds_and_coordinates_are_those_of_the_structure_vertex():
    topology, structure = build(5, "paley", 2), PolarFly().build({"q": 5})
    assert (topology.kind == np.repeat(structure.kind, 5)).all()
    assert (topology.coordinates[::5, :3] == structure.coordinates).all()
    assert topology.coordinates[:7, 3].tolist() == [0, 1, 2, 3, 4, 0, 1]


@pytest.mark.parametrize("radix", VECTORS["best_per_radix"])
def test_best_and_number_per_radix(radix):
    expected, designs = VECTORS["best_per_radix"][radix], list(FAMILY.designs(int(radix)))
    for short, kind in NAMES.items():
        found = [d for d in designs if d.supernode == kind]
        best = max(found, key=lambda d: d.nodes)
        assert [best.nodes, best.q, best.supernode_degree] == expected[short]
        assert len(found) == expected[f"n_{short}"]


def test_paley_is_largest_at_four_radixes_only():
    largest = {r: max(FAMILY.designs(r), key=lambda d: d.nodes).supernode for r in range(8, 129)}
    assert [r for r, s in largest.items() if s != "inductive-quad"] == VECTORS["paley_beats_iq_at"]
    assert {largest[r] for r in VECTORS["paley_beats_iq_at"]} == {"paley"}


@pytest.mark.parametrize(
    ("kind", "degree"), [k for k in SUPERNODES if k[0] not in DESIGNED_KINDS][::3]
)
def test_other_supernodes_are_built_but_not_designed(kind, degree):
    topology = build(3, kind, degree)
    graph, made = topology.graph, supernode(kind, degree)
    assert int(distances(graph).max()) == topology.diameter
    assert int(graph.degrees.max()) == 4 + degree
    assert graph.size == 24 * made.order + 13 * made.graph.size + 4 * shape(kind, degree).loops
    assert kind not in {d.supernode for d in FAMILY.designs(4 + degree)}


def test_the_largest_of_radix_64():
    best = max(FAMILY.designs(64), key=lambda d: d.nodes)
    graph = build(best.q, best.supernode, best.supernode_degree).graph
    assert (graph.order, graph.size) == (79506, 2544192) == (best.nodes, best.links)
    assert (graph.degrees == 64).all()
    assert (graph.reverse_values(graph.targets) == graph.tails()).all()


@pytest.mark.parametrize(
    ("parameters", "key", "words"),
    [
        ((6, "paley", 4), "q", "5 and 7"),
        ((7, "paly", 4), "supernode", "did you mean paley"),
        ((7, "paley", 5), "degree", "4 and 6"),
        ((7, "inductive-quad", 5), "degree", "4 and 7"),
        ((7, "paley", 10**30), "degree", "at most 255"),
    ],
)
def test_what_cannot_be_built(parameters, key, words):
    given = dict(zip(("q", "supernode", "degree"), parameters, strict=True))
    (problem,) = FAMILY.check(given)
    assert problem.key == key
    assert words in str(problem)
