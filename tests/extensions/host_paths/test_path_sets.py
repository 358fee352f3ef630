"""Path sets from coordinates: the graph, disjointness, load, repair."""

import random
from collections import Counter
from functools import partial
from itertools import pairwise, permutations

import networkx as nx
import pytest

from compilers.topology.conway import CONWAY
from compilers.topology.polarity import cross, structure
from extensions.host_paths.path_sets import (
    HostPath,
    PolarityGraph,
    carrier,
    crosses,
    every_path,
    links_of,
    path_set,
    repaired,
    usids,
)


def chance(seed):
    """The same chance in every run."""
    return random.Random(seed)  # noqa: S311 - nothing secret


def graph(q):
    """ER_q by the arrays of the product, as networkx has it."""
    arrays, _ = structure(q)
    return nx.Graph(list(zip(arrays.tails().tolist(), arrays.targets.tolist(), strict=True)))


def pairs(q, count):
    order = q * q + q + 1
    everyone = list(permutations(range(order), 2)) if order < 60 else []
    return everyone or [tuple(chance(q).sample(range(order), 2)) for _ in range(count)]


@pytest.mark.parametrize("q", [2, 3, 4, 9, 25, 31, 32])
def test_its_graph_and_minimal_paths_are_polarfly_s(q):
    fabric, arrays = PolarityGraph(q), structure(q)[0]
    near = [
        arrays.targets[arrays.offsets[v] : arrays.offsets[v + 1]].tolist()
        for v in range(arrays.order)
    ]
    assert [fabric.neighbours(v) for v in range(arrays.order)] == near
    for s, d in chance(q).sample(pairs(q, 200), 40):
        middle = int(cross(q, s, d))
        assert fabric.shortest(s, d) == ((d,) if d in near[s] else (middle, d))


@pytest.mark.parametrize("q", [q for q in CONWAY if q > 32])
def test_larger_fields_give_lines_of_a_polarity(q):
    """Each switch has q or q + 1 neighbours, and is theirs."""
    fabric, last = PolarityGraph(q), q * q + q
    for v in (0, 1, q, q + 1, q + 2, chance(q).randrange(last), last):
        near = fabric.neighbours(v)
        assert (near, len(near) in (q, q + 1)) == (sorted(set(near)), True)
        assert all(v in fabric.neighbours(u) for u in chance(q).sample(near, 3))


@pytest.mark.parametrize("q", [0, 6, 1031])
def test_no_field_of_that_order(q):
    with pytest.raises(ValueError, match="prime power"):
        PolarityGraph(q)


def test_no_such_switch():
    with pytest.raises(ValueError, match=r"57 is not a switch of q = 7: they are 0\.\.56"):
        PolarityGraph(7).neighbours(57)
    with pytest.raises(ValueError, match="hosts of one switch need none"):
        path_set([PolarityGraph(3)], 4, 4, 1)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 13])
def test_as_many_disjoint_paths_as_any_set_has(q):
    """The lower degree of both ends, which bounds every set; at most four links each."""
    fabric, known = PolarityGraph(q), graph(q)
    for s, d in chance(q).sample(pairs(q, 60), 42):
        found = path_set([fabric], s, d, 3 * q)
        disjoint = [path.nodes for path in found if path.disjoint]
        assert len(disjoint) == min(known.degree(s), known.degree(d))
        assert len({path.nodes for path in found}) == len(found) == 3 * q or q < 5
        assert [len(path.nodes) for path in found[:1]] == [nx.shortest_path_length(known, s, d) + 1]
        used = [link for path in disjoint for link in links_of(path)]
        assert len(used) == len(set(used))
        for _, nodes, _ in found:
            assert nx.is_simple_path(known, nodes)
            assert (nodes[0], nodes[-1], len(nodes) <= 5) == (s, d, True)
        assert [path.disjoint for path in found] == sorted(
            (path.disjoint for path in found), reverse=True
        )


def test_the_paths_of_the_white_paper():
    """WMP-PolarFly v4.0, Table 2: switch 10 to 19 of q = 7, counted from 1."""
    found = {tuple(v + 1 for v in path.nodes) for path in path_set([PolarityGraph(7)], 9, 18, 7)}
    assert found == {
        (10, 29, 19),
        (10, 2, 11, 19),
        (10, 15, 31, 19),
        (10, 22, 51, 19),
        (10, 36, 20, 19),
        (10, 43, 40, 19),
        (10, 50, 49, 19),
    }


def test_planes_take_turns_and_minimal_paths_come_first():
    fabric = PolarityGraph(5)
    found = path_set([fabric] * 3, 4, 20, 18)
    assert Counter(path.plane for path in found) == {0: 6, 1: 6, 2: 6}
    assert {path.nodes for path in found[:3]} == {found[0].nodes}
    assert {path.plane for path in found[:3]} == {0, 1, 2}
    firsts = Counter(
        path_set([fabric] * 3, s, d, 1)[0].plane for s, d in permutations(range(31), 2)
    )
    assert max(firsts.values()) < 1.05 * min(firsts.values())


@pytest.mark.parametrize(("count", "most"), [(1, 1.08), (6, 1.15), (24, 1.1)])
def test_sets_of_any_size_load_links_evenly(count, most):
    """Over all pairs of q = 5, the most loaded link in a direction beside the average."""
    fabric, load = PolarityGraph(5), Counter()
    for s, d in permutations(range(31), 2):
        for path in path_set([fabric], s, d, count):
            load.update(pairwise(path.nodes))
    assert len(load) == 180
    assert max(load.values()) < most * sum(load.values()) / len(load)


def _lost(dead, path):
    return crosses(path, *dead)


def test_a_repair_changes_only_paths_that_are_lost():
    fabric = PolarityGraph(5)
    planes, ends = [fabric] * 2, (3, 22)
    paths = path_set(planes, *ends, 12)
    for dead in {(0, element) for path in paths for element in links_of(path.nodes)} | {
        (1, (node,)) for path in paths for node in path.nodes[1:-1]
    }:
        lost = partial(_lost, dead)
        now = repaired(paths, every_path(planes, *ends), lost)
        assert len(now) == len(set(now)) == len(paths)
        assert not any(crosses(path, *dead) for path in now)
        assert all(a == b for a, b in zip(paths, now, strict=True) if not crosses(a, *dead))
        assert now != paths or not any(crosses(path, *dead) for path in paths)


def test_living_paths_take_the_places_where_no_other_is_left():
    own = [(0, (0, 1, 2)), (0, (0, 3, 2)), (1, (0, 1, 2))]
    paths = [HostPath(plane, nodes, True) for plane, nodes in own]
    now = repaired(paths, paths, lambda path: crosses(path, 0, (1, 0)))
    assert now == [paths[1], paths[1], paths[2]]
    assert repaired(paths, paths, lambda path: path.nodes[0] == 0) == []


def test_carriers():
    assert usids((9, 28, 18), host=0) == [0x101D, 0x1013, 0xA000, 0xE000]
    assert carrier(usids((9, 28, 18), host=0)) == "fc00:0:101d:1013:a000:e000::"
    assert carrier(usids((0, 1, 2, 3, 4), host=1)) == "fc00:0:1002:1003:1004:1005:a001:e000"
    with pytest.raises(ValueError, match="7 uSIDs, of which a carrier has room for 6"):
        carrier(usids((0, 1, 2, 3, 4, 5), host=1))
    assert carrier(usids((0, 1)), 0x20010DB8) == "2001:db8:1002:e000::"
    assert carrier(usids((0, 36862), host=0)) == "fc00:0:9fff:a000:e000::"
    with pytest.raises(ValueError, match="switch 36863 has no uSID: the last with one is 36862"):
        usids((0, 36863, 2), host=0)
