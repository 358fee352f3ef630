"""Baselines against the papers' tables, shortest paths by scipy, and their own formulas."""

import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, diameter
from compilers.topology.families import BASELINES
from extensions.baselines.jellyfish import random_regular

# Family, parameters, then nodes, links, least and most ports, nodes with hosts, distance of hosts.
PAPERS = [
    # PolarFly paper, Table V
    ("slimfly", {"q": 23}, 1058, 18515, 35, 35, 1058, 2),
    ("dragonfly", {"h": 6}, 876, 7446, 17, 17, 876, 3),
    ("dragonfly", {"h": 27, "a": 6}, 978, 15648, 32, 32, 978, 3),
    ("jellyfish", {"nodes": 993, "degree": 32}, 993, 15888, 32, 32, 993, 3),
    ("fat-tree", {"k": 18}, 972, 11664, 18, 36, 324, 4),
    # PolarStar paper, Table 3
    ("bundlefly", {"q": 7, "degree": 4}, 882, 6615, 15, 15, 882, 3),
    ("hyperx", {"sides": "9x9x8"}, 648, 7452, 23, 23, 648, 3),
    ("spectralfly", {"p": 23, "q": 13}, 1092, 13104, 24, 24, 1092, 3),
    ("megafly", {"h": 8, "a": 16}, 1040, 6240, 8, 16, 520, 3),
    # Projective Networks paper, Tables IV to VI
    ("hyperx", {"sides": "22x22"}, 484, 10164, 42, 42, 484, 2),
    ("slimfly", {"q": 19}, 722, 10469, 29, 29, 722, 2),
    ("dragonfly", {"h": 7}, 1386, 13860, 20, 20, 1386, 3),
    ("hyperx", {"sides": "29x29"}, 841, 23548, 56, 56, 841, 2),
    ("slimfly", {"q": 27}, 1458, 29889, 41, 41, 1458, 2),
    ("mlfm", {"n": 22}, 693, 9702, 21, 42, 462, 2),
    ("mlfm", {"n": 30}, 1305, 25230, 29, 58, 870, 2),
]

SMALL = [
    *(("slimfly", {"q": q}) for q in (3, 4, 5, 7, 8, 9, 11, 13, 16)),
    *(("dragonfly", {"h": h}) for h in (1, 2, 3)),
    ("dragonfly", {"h": 3, "a": 2}),
    ("dragonfly", {"h": 2, "a": 3, "groups": 4}),
    ("dragonfly", {"h": 4, "a": 4, "groups": 9}),
    ("dragonfly", {"h": 4, "a": 4, "groups": 5}),
    *(("hyperx", {"sides": sides}) for sides in ("5", "4x4", "3x4x2", "2x2x2x2")),
    ("jellyfish", {"nodes": 50, "degree": 5, "seed": 2}),
    ("jellyfish", {"nodes": 12, "degree": 9}),
    ("jellyfish", {"nodes": 6, "degree": 5}),
    ("fat-tree", {"k": 2}),
    ("fat-tree", {"k": 3}),
    ("fat-tree", {"k": 3, "pods": 6}),
    ("fat-tree", {"k": 4, "pods": 2, "merged": 4}),
    ("fat-tree", {"k": 3, "pods": 2, "merged": 3}),
    *(("megafly", {"h": h, "a": a}) for a, h in ((2, 1), (4, 2), (6, 2), (8, 3))),
    *(("megafly", {"h": 2, "a": 8, "groups": g}) for g in (3, 5, 9)),
    *(("mlfm", {"n": n}) for n in (3, 4, 6)),
    *(("bundlefly", {"q": q, "degree": d}) for q, d in ((3, 2), (4, 2), (5, 4), (4, 6))),
    *(("spectralfly", {"p": p, "q": q}) for p, q in ((3, 5), (5, 7), (11, 7), (23, 11))),
]


def matrix(graph):
    return csr_matrix((np.ones(len(graph.targets)), graph.targets, graph.offsets))


def distance(topology):
    return shortest_path(matrix(topology.graph), unweighted=True)


def between_hosts(topology):
    found = distance(topology)[np.ix_(topology.endpoints, topology.endpoints)]
    return found, found.sum() / (len(found) * (len(found) - 1))


def build(name, given):
    family = BASELINES[name]
    assert family.check(given) == []
    return family, family.build(given)


@pytest.mark.parametrize(("name", "given", "nodes", "links", "low", "high", "hosts", "far"), PAPERS)
def test_configurations_of_the_papers(name, given, nodes, links, low, high, hosts, far):
    family, topology = build(name, given)
    degrees = topology.graph.degrees
    assert family.order(given) == topology.graph.order == nodes
    assert (topology.graph.size, degrees.min(), degrees.max()) == (links, low, high)
    assert topology.endpoints.sum() == hosts
    assert between_hosts(topology)[0].max() == far


@pytest.mark.parametrize(("name", "given"), SMALL)
def test_order_and_diameter(name, given):
    family, topology = build(name, given)
    assert topology.graph.order == family.order(given) == len(topology.coordinates)
    assert topology.diameter == distance(topology).max()
    assert len(np.unique(np.column_stack((topology.kind, topology.coordinates)), axis=0)) == len(
        topology.kind
    )
    assert topology.kind.max() == len(topology.kinds) - 1
    assert set(topology.parameters) <= set(family.parameters)
    again = family.build(topology.parameters).graph
    assert np.array_equal(again.targets, topology.graph.targets)


@pytest.mark.parametrize(("name", "given"), SMALL)
def test_mean_distance(name, given):
    family, topology = build(name, given)
    expected = family.mean_distance(given)
    if expected is None:
        assert name in ("jellyfish", "bundlefly", "spectralfly") or "groups" in given
    elif name == "dragonfly":
        a, h = topology.parameters["a"], given["h"]
        shortcuts = (a - 2) / a * 2 * (h - 1) / (topology.graph.order - 1)
        assert between_hosts(topology)[1] == pytest.approx(expected - shortcuts)
    else:
        assert between_hosts(topology)[1] == pytest.approx(expected)


def arc_loads(topology):
    """Pairs of nodes with hosts over each arc, shared evenly among all shortest paths."""
    adjacency, far = matrix(topology.graph).toarray(), distance(topology)
    paths = step = np.eye(len(far))
    for length in range(1, int(far.max()) + 1):
        step = (step @ adjacency) * (far == length)
        paths = paths + step
    hosts = np.flatnonzero(topology.endpoints)
    loads = []
    for u, v in zip(topology.graph.tails(), topology.graph.targets, strict=True):
        on = far[hosts, u][:, None] + 1 + far[v, hosts] == far[np.ix_(hosts, hosts)]
        share = np.outer(paths[hosts, u], paths[v, hosts]) / paths[np.ix_(hosts, hosts)]
        loads.append(share[on].sum())
    return np.array(loads)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("slimfly", {"q": q}) for q in (5, 7, 8)),
        ("hyperx", {"sides": "4x4"}),
        ("hyperx", {"sides": "3x4x2"}),
        ("fat-tree", {"k": 3}),
        ("fat-tree", {"k": 2, "pods": 4}),
        ("fat-tree", {"k": 4, "pods": 4, "merged": 2}),
        ("mlfm", {"n": 5}),
        *(("megafly", {"h": 2, "a": 8, "groups": g}) for g in (3, 5, 9)),
        ("megafly", {"h": 5, "a": 6, "groups": 6}),
    ],
)
def test_utilisation(name, given):
    family, topology = build(name, given)
    loads = arc_loads(topology)
    assert family.utilisation(given) == pytest.approx(loads.mean() / loads.max())


@pytest.mark.parametrize("given", [{"h": 1}, {"h": 2}, {"h": 2, "a": 3}, {"h": 3, "a": 2}])
def test_dragonfly_by_its_routes(given):
    """Mean hops and utilisation by walking every local–global–local route."""
    family, topology = build("dragonfly", given)
    group = topology.coordinates[:, 0]
    gateways = {}
    for u, v in topology.graph.edges().tolist():
        if group[u] != group[v]:
            gateways[group[u], group[v]] = (u, v)
            gateways[group[v], group[u]] = (v, u)
    loads = dict.fromkeys(
        zip(topology.graph.tails().tolist(), topology.graph.targets.tolist(), strict=True), 0
    )
    for s in range(len(group)):
        for d in range(len(group)):
            via = () if group[s] == group[d] else gateways[group[s], group[d]]
            route = list(dict.fromkeys([s, *via, d]))
            for hop in pairwise(route):
                loads[hop] += 1
    pairs = len(group) * (len(group) - 1)
    assert family.mean_distance(given) == pytest.approx(sum(loads.values()) / pairs)
    mean = sum(loads.values()) / len(loads)
    assert family.utilisation(given) == pytest.approx(mean / max(loads.values()))


@pytest.mark.parametrize(
    ("h", "per_cabinet", "electrical", "optical"), [(7, 5, 9205, 4655), (9, 3, 25101, 13041)]
)
def test_dragonfly_cables(h, per_cabinet, electrical, optical):
    """Tables IV (corrected) and V: cables inside and between electrical groups."""
    topology = build("dragonfly", {"h": h})[1]
    cabinet = topology.coordinates[:, 0] // per_cabinet
    assert cables(topology, cabinet) == (electrical, optical)


@pytest.mark.parametrize(("q", "electrical", "optical"), [(19, 3971, 6498), (27, 10206, 19683)])
def test_slim_fly_cables(q, electrical, optical):
    """Tables IV and V (corrected): an electrical group is one x, of both s or of one s."""
    topology = build("slimfly", {"q": q})[1]
    s, x, _ = topology.coordinates.T
    assert cables(topology, x if q == 19 else s * q + x) == (electrical, optical)


def cables(topology, cabinet):
    near = (cabinet[topology.graph.edges()] == cabinet[topology.graph.edges()][:, ::-1]).all(axis=1)
    return near.sum(), (~near).sum()


@pytest.mark.parametrize("radix", [3, 4, 6, 11])
@pytest.mark.parametrize("name", BASELINES)
def test_designs_are_what_is_built(name, radix):
    family = BASELINES[name]
    for design in family.designs(radix):
        assert design.radix == radix
        assert family.check(design.parameters) == []
        assert family.order(design.parameters) == design.nodes
        if design.nodes > 500:
            continue
        topology = family.build(design.parameters)
        graph = topology.graph
        assert (graph.order, graph.size) == (design.nodes, design.links)
        assert (graph.degrees.max(), topology.endpoints.sum()) == (radix, design.endpoints)
        assert topology.diameter == design.diameter == distance(topology).max()
        assert between_hosts(topology)[0].max() == design.host_diameter


def test_megaflies_of_every_number_of_groups():
    family, radix = BASELINES["megafly"], 6
    designs = list(family.sized_designs(radix))
    shapes = [tuple(design.parameters.values()) for design in designs]
    assert sorted(shapes) == [
        (h, 2 * (radix - h), groups)
        for h in range(1, radix)
        for groups in range(2, h * (radix - h) + 2)
        if not family.check({"h": h, "a": 2 * (radix - h), "groups": groups})
    ]
    for design in designs:
        topology = family.build(design.parameters)
        assert (topology.graph.order, topology.graph.size) == (design.nodes, design.links)
        assert (topology.graph.degrees.max(), topology.endpoints.sum()) == (radix, design.endpoints)
        assert design.diameter in (None, topology.diameter)
        assert topology.diameter == distance(topology).max()
    small = [design for design in designs if design.nodes <= 40]
    assert [d.parameters for d in family.sized_designs(radix, 40)] == [d.parameters for d in small]


def test_designs_of_the_papers_radixes():
    def found(name, radix):
        return {tuple(d.parameters.values()) for d in BASELINES[name].designs(radix)}

    assert found("slimfly", 35) == {(23,)}
    assert found("slimfly", 24) == {(16,)}
    assert found("slimfly", 7) == {(5,)}
    assert (6, 12, 73) in found("dragonfly", 17)
    assert (7, 4) in found("bundlefly", 15)
    assert ("9x9x8",) in found("hyperx", 23)
    assert found("spectralfly", 24) == {(23, 11), (23, 13)}
    assert (8, 16, 65) in found("megafly", 16)
    assert found("mlfm", 42) == {(22,)}
    assert (18, 18) in found("fat-tree", 36)
    assert not found("jellyfish", 32)


BAD = [
    ("slimfly", {"q": 2}, "q", "the smallest is 3"),
    ("slimfly", {"q": 15}, "q", "the nearest are 13 and 16"),
    ("dragonfly", {"h": 0}, "h", "the smallest is 1"),
    ("dragonfly", {"h": 2, "a": 1}, "a", "the smallest is 2"),
    ("dragonfly", {"h": 3, "a": 4, "groups": 6}, "groups", "the nearest are 4, 5, 7"),
    (
        "dragonfly",  # its divisors were searched up to a trillion
        {"h": 10**6, "a": 10**6, "groups": 10**6},
        "groups",
        "the nearest are 1000001, 1250001, 1280001",
    ),
    ("megafly", {"h": 3, "a": 7}, "a", "the nearest are 6 and 8"),
    ("megafly", {"h": 2, "a": 8, "groups": 4}, "groups", "the nearest are 3, 5, 9"),
    ("hyperx", {"sides": "9x1"}, "sides", "for example 9x9x8"),
    ("jellyfish", {"nodes": 5, "degree": 3}, "degree", "the nearest are 2 and 4"),
    ("jellyfish", {"nodes": 5, "degree": 6}, "degree", "the largest is 4"),
    ("jellyfish", {"nodes": 8, "degree": 3, "seed": -1}, "seed", "the smallest is 0"),
    ("fat-tree", {"k": 4, "pods": 9}, "pods", "the nearest is 8"),
    ("fat-tree", {"k": 4, "pods": 4, "merged": 4}, "merged", "the most is 2"),
    ("mlfm", {"n": 2}, "n", "the smallest is 3"),
    ("bundlefly", {"q": 6, "degree": 4}, "q", "the nearest are 5 and 7"),
    ("bundlefly", {"q": 5, "degree": 5}, "degree", "the nearest that work: 4 and 6"),
    ("spectralfly", {"p": 9, "q": 13}, "p", "the nearest are 7 and 11"),
    ("spectralfly", {"p": 23, "q": 7}, "q", "the next that fits p=23 is 11"),
    ("spectralfly", {"p": 23, "q": 23}, "q", "the next that fits p=23 is 29"),
]


@pytest.mark.parametrize(("name", "given", "key", "todo"), BAD)
def test_bad_parameters_are_named_with_the_nearest_that_work(name, given, key, todo):
    (problem,) = BASELINES[name].check(given)
    assert (problem.key, problem.todo) == (key, todo)


WORD = st.one_of(st.integers(-3, 12), st.sampled_from(["", "x", "3x3", "0x2", "4"]))


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(BASELINES)), data=st.data())
def test_check_finds_no_fault_exactly_with_what_builds(name, data):
    family = BASELINES[name]
    given = {key: data.draw(WORD, key) for key in family.parameters if data.draw(st.booleans())}
    if problems := family.check(given):
        assert all(p.key in family.parameters and p.required and p.todo for p in problems)
        return
    if family.order(given) < 3000:
        topology = family.build(given)
        assert topology.graph.order == family.order(given)


def digest(family, **given):
    edges = BASELINES[family].build(given).graph.edges()
    return hashlib.sha256(edges.astype("<i4").tobytes()).hexdigest()[:16]


JELLYFISH = {
    (50, 5, 0): "bf6336e223ce5641",
    (20, 13, 7): "8628b2df663e58e4",
    (993, 32, 0): "a4784f4dbe575030",
}


@pytest.mark.parametrize(("given", "expected"), JELLYFISH.items())
def test_jellyfish_is_the_same_everywhere(given, expected):
    nodes, degree, seed = given
    assert digest("jellyfish", nodes=nodes, degree=degree, seed=seed) == expected


def test_jellyfish_passes_over_a_graph_in_two_pieces():
    first = Graph.from_edges(8, random_regular(8, 3, np.random.PCG64(2968)))
    assert diameter(first) == BEYOND
    assert build("jellyfish", {"nodes": 8, "degree": 3, "seed": 2968})[1].diameter < 8


@settings(max_examples=60)
@given(nodes=st.integers(4, 24), degree=st.integers(3, 23), seed=st.integers(0, 2**70))
def test_jellyfish_is_regular_and_connected(nodes, degree, seed):
    given = {"nodes": nodes, "degree": degree, "seed": seed}
    if BASELINES["jellyfish"].check(given) == []:
        graph = BASELINES["jellyfish"].build(given).graph
        assert (graph.degrees == degree).all()
        assert np.isfinite(shortest_path(matrix(graph), unweighted=True)).all()


def test_import_is_cheap():
    """Neither scipy nor networkx nor galois is loaded."""
    code = (
        "import sys; from compilers.topology.families import BASELINES; [*BASELINES];"
        "sys.exit(any(m in sys.modules for m in ('scipy', 'networkx', 'galois', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
