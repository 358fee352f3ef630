"""Racks against the propositions of the PolarFly paper, §V, as facts and vectors correct them."""

import json
from collections import defaultdict
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest

from compilers.families.polarfly import triangles
from compilers.topology.families import FAMILIES, build_topology
from compilers.topology.layout import layout, layouts, links_between
from inventory.problems import InputError


def blocks(topology, layout):
    """Triangles that join three racks, int32[B, 3], and those racks, int32[B, 3] ascending.

    They are the blocks of a design: with odd q, every three fans are joined by exactly one triangle
    (PolarFly paper, Theorem V.7).
    """
    found = triangles(topology)
    racks = layout.rack[found]
    by_rack = np.argsort(racks, axis=1)
    racks = np.take_along_axis(racks, by_rack, axis=1)
    distinct = (np.diff(racks, axis=1) > 0).all(axis=1)
    return np.take_along_axis(found, by_rack, axis=1)[distinct], racks[distinct]


VECTORS = json.loads((Path(__file__).parents[2] / "data/vectors.json").read_text())
ODD = [3, 5, 7, 9, 11, 13]
EVEN = [2, 4, 8, 16]


def polarfly(q):
    return FAMILIES["polarfly"].build({"q": q})


def inside(graph, racks, rack):
    """The links within a rack, by position."""
    edges = graph.edges()
    own = (racks.rack[edges] == rack).all(axis=1)
    return sorted(map(tuple, np.sort(racks.position[edges[own]], axis=1).tolist()))


def assert_a_placement(racks):
    for rack in range(len(racks.names)):
        members = racks.members(rack)
        assert racks.position[members].tolist() == list(range(len(members)))
        if racks.centre[rack] >= 0:
            assert members[0] == racks.centre[rack]
    assert len(racks.kind) == len(racks.centre) == len(racks.names) == racks.rack.max() + 1


@pytest.mark.parametrize("q", ODD)
def test_algorithm_1_from_every_quadric(q):
    topology = polarfly(q)
    fan = sorted([(0, i) for i in range(1, q)] + [(i, i + 1) for i in range(1, q, 2)])
    for start in topology.of_kind("W").tolist():
        racks = layout(topology, "fans", start)
        assert_a_placement(racks)
        assert sorted(racks.members(0)) == topology.of_kind("W").tolist()
        between = links_between(topology.graph, racks)
        expected = np.full((q + 1, q + 1), q - 2)
        expected[0] = expected[:, 0] = q + 1
        np.fill_diagonal(expected, 3 * (q - 1) // 2)
        expected[0, 0] = 0
        assert np.array_equal(between, expected)
        assert start in topology.graph.neighbours(int(racks.centre[1]))
        assert all(inside(topology.graph, racks, r) == fan for r in range(1, q + 1))


def patterns(graph, racks):
    """For each ordered pair of clusters but the first, the positions that are joined."""
    found = defaultdict(set)
    for u, v in graph.edges().tolist():
        for a, b in ((u, v), (v, u)):
            i, j = racks.rack[[a, b]].tolist()
            if i and j and i != j:
                found[i, j].add((int(racks.position[a]), int(racks.position[b])))
    return found


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9, 11, 13, 16, 17])
def test_fans_are_alike_inside_and_seen_from_each_other(q):
    topology = polarfly(q)
    racks = layout(topology, "fans")
    assert len({str(inside(topology.graph, racks, r)) for r in range(1, len(racks.names))}) == 1
    found = patterns(topology.graph, racks)
    kinds = {frozenset(pairs) for pairs in found.values()}
    assert len(kinds) == ((q - 1) // 2 if q % 2 else q - 2)
    turned = all(frozenset((b, a) for a, b in pairs) == pairs for pairs in kinds)
    assert turned == (q % 2 == 1 or q == 2)
    fans = range(1, len(racks.names))
    seen = {frozenset(frozenset(p) for (i, _), p in found.items() if i == r) for r in fans}
    assert len(seen) == 1


@pytest.mark.parametrize("q", [4, 8, 16])
def test_links_between_two_stars_are_the_same_from_either_end(q):
    topology = polarfly(q)
    racks = layout(topology, "stars")
    alike = [str(inside(topology.graph, racks, r)) for r in range(1, q + 2)]
    assert len(set(alike)) == 1
    found = patterns(topology.graph, racks)
    kinds = {frozenset(pairs) for pairs in found.values()}
    assert all({(b, a) for a, b in pairs} == pairs for pairs in kinds)
    assert len(kinds) == q


@pytest.mark.parametrize("q", ODD)
def test_links_between_two_fans_are_independent_and_two_vertices_have_none(q):
    topology = polarfly(q)
    racks, edges = layout(topology), topology.graph.edges()
    for i, j in combinations(range(1, q + 1), 2):
        ends = edges[(np.sort(racks.rack[edges], axis=1) == [i, j]).all(axis=1)].ravel()
        assert len(np.unique(ends)) == 2 * (q - 2)
        assert racks.centre[i] not in ends
        assert len(np.setdiff1d(racks.members(i), ends)) == 2


@pytest.mark.parametrize("q", ODD)
def test_three_fans_are_joined_by_one_triangle(q):
    found, racks = blocks(topology := polarfly(q), layout(topology))
    assert sorted(map(tuple, racks.tolist())) == list(combinations(range(1, q + 1), 3))
    assert np.array_equal(layout(topology).rack[found], racks)


@pytest.mark.parametrize("q", [3, 5, 7])
def test_types_of_triangles(q):
    topology = polarfly(q)
    expected = VECTORS["layout_odd"][str(q)]
    all_found, (apart, _) = triangles(topology), blocks(topology, layout(topology))
    assert count_types(topology, apart) == expected["inter_types"]
    within = {tuple(t) for t in all_found.tolist()} - {tuple(sorted(t)) for t in apart.tolist()}
    assert count_types(topology, np.array(sorted(within))) == expected["intra_types"]


def count_types(topology, found):
    types, counts = np.unique(np.sort(topology.kind[found], axis=1), axis=0, return_counts=True)
    return {"".join(map(str, t)): c for t, c in zip(types.tolist(), counts.tolist(), strict=True)}


@pytest.mark.parametrize("q", ODD + EVEN)
def test_triangles(q):
    topology = polarfly(q)
    found, edges = triangles(topology), set(map(tuple, topology.graph.edges().tolist()))
    assert len(np.unique(found, axis=0)) == len(found) == comb(q + 1, 3)
    assert all({(a, b), (a, c), (b, c)} <= edges for a, b, c in found.tolist())


@pytest.mark.parametrize("q", EVEN)
def test_even_layout_a(q):
    topology = polarfly(q)
    fan = sorted([(0, i) for i in range(1, q + 1)] + [(i, i + 1) for i in range(1, q, 2)])
    for start in topology.of_kind("W").tolist():
        racks = layout(topology, "fans", start)
        assert_a_placement(racks)
        between = links_between(topology.graph, racks)
        expected = np.full((q, q), q)
        expected[0] = expected[:, 0] = q + 1
        np.fill_diagonal(expected, q + q // 2)
        expected[0, 0] = q + 1
        assert np.array_equal(between, expected)
        assert inside(topology.graph, racks, 0) == [(0, i) for i in range(1, q + 2)]
        assert all(inside(topology.graph, racks, r) == fan for r in range(1, q))


@pytest.mark.parametrize("q", [2, 4])
def test_even_vectors(q):
    topology, expected = polarfly(q), VECTORS["layout_even"][str(q)]
    racks = layout(topology)
    found, by_rack = blocks(topology, racks)
    assert np.bincount(racks.kind)[1] == expected["fan_racks"]
    assert len(racks.members(1)) == expected["fan_size"]
    assert comb(q + 1, 3) - len(found) == expected["fan_intra_tri"]
    _, times = np.unique(by_rack, axis=0, return_counts=True)
    multiplicity = {str(k): int((times == k).sum()) for k in set(times.tolist())}
    assert multiplicity == expected["fan_triplet_multiplicity"]


@pytest.mark.parametrize("q", EVEN)
def test_even_layout_b(q):
    topology = polarfly(q)
    racks = layout(topology, "stars")
    assert_a_placement(racks)
    expected = np.full((q + 2, q + 2), q - 1)
    expected[0] = expected[:, 0] = 1
    expected[0, 0] = 0
    assert np.array_equal(links_between(topology.graph, racks), expected)
    assert np.array_equal(racks.centre[1:], topology.of_kind("W"))
    star = [(0, i) for i in range(1, q)]
    assert all(inside(topology.graph, racks, r) == star for r in range(1, q + 2))
    _, by_rack = blocks(topology, racks)
    assert sorted(map(tuple, by_rack.tolist())) == list(combinations(range(1, q + 2), 3))


@pytest.mark.parametrize(("kind", "degree"), [("inductive-quad", 3), ("paley", 4), ("complete", 2)])
@pytest.mark.parametrize("q", [3, 4, 5])
def test_supernodes_are_racks_joined_by_bundles(q, kind, degree):
    topology = FAMILIES["polarstar"].build({"q": q, "supernode": kind, "degree": degree})
    racks = layout(topology)
    assert_a_placement(racks)
    size = topology.graph.order // (q * q + q + 1)
    ends = np.sort(racks.rack[topology.graph.edges()], axis=1)
    pairs, links = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0, return_counts=True)
    assert np.array_equal(pairs, polarfly(q).graph.edges())
    assert (links == size).all()
    for rack_kind in (0, 1):
        same = [inside(topology.graph, racks, r) for r in np.flatnonzero(racks.kind == rack_kind)]
        assert all(links == same[0] for links in same)


def test_supernode_clusters():
    topology = FAMILIES["polarstar"].build({"q": 5, "supernode": "inductive-quad", "degree": 3})
    racks, structure = layout(topology, "clusters"), layout(polarfly(5))
    assert_a_placement(racks)
    assert np.array_equal(racks.rack, np.repeat(structure.rack, 8))
    between = links_between(topology.graph, racks)
    of_structure = links_between(polarfly(5).graph, structure)
    off = ~np.eye(6, dtype=bool)
    assert np.array_equal(between[off], 8 * of_structure[off])


@pytest.mark.parametrize("q", [4, 9, 16])
def test_subplanes_are_smaller_networks(q):
    p = round(q**0.5)
    topology, small = (FAMILIES["pn"].build({"q": order}) for order in (q, p))
    racks = layout(topology)
    assert_a_placement(racks)
    assert len(racks.names) == q - p + 1
    first = inside(topology.graph, racks, 0)
    assert len(first) == small.graph.size
    assert all(inside(topology.graph, racks, r) == first for r in range(1, len(racks.names)))
    matrix = np.zeros((small.graph.order,) * 2, int)
    matrix[tuple(np.array(first).T)] = 1
    matrix += matrix.T
    n = small.graph.order // 2
    assert (matrix.sum(axis=0) == p + 1).all()
    common = (matrix @ matrix)[:n, :n]
    assert (common == 1 + p * np.eye(n, dtype=int)).all()


def test_layouts_by_family():
    assert layouts(polarfly(7)) == ("fans",)
    assert layouts(polarfly(8)) == ("fans", "stars")
    assert layouts(FAMILIES["pn"].build({"q": 3})) == ()
    assert layouts(FAMILIES["oft"].build({"q": 3})) == ()


def test_layouts_that_are_not_there():
    with pytest.raises(InputError, match="required fans, given stars"):
        layout(polarfly(7), "stars")
    with pytest.raises(InputError, match="a family with racks"):
        layout(build_topology("hyperx", {"sides": "3x3"}))
    with pytest.raises(InputError, match="required parallels, given pn q=3"):
        layout(FAMILIES["pn"].build({"q": 3}))
    with pytest.raises(InputError, match="a quadric: 25, 26"):
        layout(polarfly(7), "fans", 0)
