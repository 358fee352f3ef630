"""Trees: they span, share no link or few, are as many as can be; roots, branches, repair."""

from collections import Counter
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

import polarfab
from compilers.topology.families import build_topology
from extensions.clusters.trees import trees as trees_of
from extensions.clusters.trees.allreduce_time import AllreduceTime
from extensions.clusters.trees.forest_packing import disjoint_trees
from extensions.clusters.trees.published_trees import hamiltonian_paths, published_trees
from extensions.clusters.trees.shallow_trees import polarfly_trees
from extensions.clusters.trees.tree_set import _of_kind
from inventory.problems import InputError

POLARSTARS = (
    (2, "complete", 2),
    (3, "inductive-quad", 3),
    (3, "complete", 3),
    (3, "bdf", 3),
    (4, "paley", 2),
    (5, "inductive-quad", 3),
    (5, "cayley", 4),
    (7, "paley", 2),
)
FABRICS = [
    *(("polarfly", {"q": q}) for q in (2, 3, 4, 5, 7, 8, 9, 11, 13)),
    *(("pn", {"q": q}) for q in (2, 3, 7)),
    ("oft", {"q": 3}),
    *(
        ("polarstar", {"q": q, "supernode": kind, "degree": degree})
        for q, kind, degree in POLARSTARS
    ),
]


@pytest.fixture(scope="module")
def lab():
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 4}, "hosts_per_node": 2}
    return polarfab.Fabric.from_spec(spec).compile()


def most_on_a_link(graph, trees):
    """The most trees on a link; every one spans what is there."""
    links, used = set(map(tuple, graph.edges().tolist())), Counter()
    there = set(np.flatnonzero(graph.degrees).tolist())
    for edges in trees:
        own = [(min(u, v), max(u, v)) for u, v in edges]
        assert links.issuperset(own)
        assert len(own) == len(there) - 1
        tree = nx.Graph(own)
        assert set(tree) == there
        assert nx.is_connected(tree)
        used.update(own)
    return max(used.values())


def edges_of(trees):
    return [tree.edges.tolist() for tree in trees]


@pytest.mark.parametrize(("family", "parameters"), FABRICS)
def test_trees_are_as_many_as_links_allow_and_short_ones_two_on_a_link(family, parameters):
    topology = build_topology(family, parameters)
    graph = topology.graph
    disjoint, bound = _of_kind(topology, "disjoint")
    assert len(disjoint) == bound == graph.size // (graph.order - 1)
    assert most_on_a_link(graph, edges_of(disjoint)) == 1
    short, _ = _of_kind(topology, "low-depth")
    assert most_on_a_link(graph, edges_of(short)) <= 2
    if family == "polarfly":
        q = parameters["q"]
        assert len(disjoint) == (q + 1) // 2
        assert len(short) == q
        assert max(tree.depth for tree in short) == 3
    elif family == "polarstar":
        assert len(short) == parameters["q"]
        assert max(tree.depth for tree in short) <= 5
    else:
        assert len(short) >= 3
        assert max(tree.depth for tree in short[:3]) <= 5


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11, 16])
def test_published_trees_of_polarfly(q):
    graph = build_topology("polarfly", {"q": q}).graph
    paths = [list(pairwise(path.tolist())) for path in hamiltonian_paths(q)]
    assert len(paths) == (q + 1) // 2
    assert most_on_a_link(graph, paths) == 1
    short = list(polarfly_trees(q))
    assert (len(short), most_on_a_link(graph, edges_of(short))) == (q, 2)
    assert {tree.depth for tree in short} == {3}


@pytest.mark.parametrize(("q", "kind", "degree"), POLARSTARS)
def test_trees_of_polarfly_lifted_to_polarstar(q, kind, degree):
    topology = build_topology("polarstar", {"q": q, "supernode": kind, "degree": degree})
    trees = published_trees(topology, low_depth=False)
    assert len(trees) == (q + 1) // 2
    assert most_on_a_link(topology.graph, edges_of(trees)) == 1


def test_a_large_polarfly_has_singers_paths():
    trees, bound = _of_kind(build_topology("polarfly", {"q": 31}), "disjoint")
    assert len(trees) == bound == 16
    assert {tree.depth for tree in trees} == {496}


def partitions(items):
    """All partitions of a list into sets."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for i, part in enumerate(smaller):
            yield [*smaller[:i], [first, *part], *smaller[i + 1 :]]


def test_the_search_finds_what_tutte_and_nash_williams_promise():
    """k trees, if and only if every partition into r parts is crossed by k(r - 1) edges."""
    chance = np.random.default_rng(7)
    everywhere = [part for part in partitions(list(range(6))) if len(part) > 1]
    seen = set()
    for density in np.linspace(0.3, 1, 50):
        edges = [e for e in combinations(range(6), 2) if chance.random() < density]
        crossing = []
        for parts in everywhere:
            of = {v: i for i, part in enumerate(parts) for v in part}
            crossing.append(sum(of[u] != of[v] for u, v in edges) // (len(parts) - 1))
        found = disjoint_trees(6, 6, np.array(edges, np.int32), len(edges) // 5)
        assert len(found) == min(crossing)
        assert len({tuple(e) for tree in found for e in tree.tolist()}) == 5 * len(found)
        seen.add(min(crossing))
    assert seen == {0, 1, 2, 3}


def test_a_root_and_branches_to_some(lab):
    for kind in ("disjoint", "low-depth"):
        found = trees_of(lab, kind, root="5", members=["3", "9"])
        for tree, whole in zip(found.trees, trees_of(lab, kind, root="5").trees, strict=True):
            assert tree.root == whole.root == 5
            paths = nx.Graph(whole.edges.tolist())
            wanted = {frozenset(e) for d in (3, 9) for e in pairwise(nx.shortest_path(paths, 5, d))}
            assert {frozenset(e) for e in tree.edges.tolist()} == wanted
        assert not found.whole


def test_a_tree_that_lost_a_link_is_joined_again_and_others_stay(lab):
    whole = trees_of(lab)
    u, v = whole.trees[1].edges[3].tolist()
    found = trees_of(lab, fail=[f"{u}-{v}"])
    assert found.remade == (1,)
    assert found.trees[0].edges.tolist() == whole.trees[0].edges.tolist()
    assert [u, v] not in found.graph.edges().tolist()
    assert most_on_a_link(found.graph, edges_of(found.trees)) == found.congestion == 1
    before, after = ({frozenset(e) for e in s.trees[1].edges.tolist()} for s in (whole, found))
    assert len(before - after) == 1


def test_every_link_and_every_switch_down(lab):
    edges = lab.build.topology.graph.edges().tolist()
    for kind in ("disjoint", "low-depth"):
        for word in [*(f"{u}-{v}" for u, v in edges[::5]), *map(str, range(0, 21, 4))]:
            found = trees_of(lab, kind, fail=[word])
            assert most_on_a_link(found.graph, edges_of(found.trees)) == found.congestion <= 3
            assert found.remade or "-" in word


def test_a_damaged_fabric_has_trees_of_what_is_there():
    nodes = [{"name": f"n{v}", "type": "leaf", "vertex": v} for v in range(13)]
    nodes[4]["state"] = "planned"
    inventory = {
        "node_types": {"leaf": {"ports": [{"name": "e{}", "count": 6}]}},
        "nodes": nodes,
        "dead_links": [{"a": "n0", "b": "n1"}],
    }
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    build = polarfab.Fabric.from_spec(spec, inventory).compile()
    for kind in ("disjoint", "low-depth"):
        found = trees_of(build, kind)
        assert found.switches == 12
        assert most_on_a_link(found.graph, edges_of(found.trees)) <= 2
        assert found.trees


def test_what_is_cut_off_is_refused(lab):
    near = lab.build.topology.graph.neighbours(7).tolist()
    for cut in ([f"7-{v}" for v in near], list(map(str, near))):
        with pytest.raises(InputError, match=r"required a connected fabric .* given 2 parts"):
            trees_of(lab, fail=cut)
    assert trees_of(lab, fail=["7", *map(str, near)]).switches == 21 - 1 - len(near)
    with pytest.raises(InputError, match="root: required a switch that is up, given 7"):
        trees_of(lab, root="7", fail=["7"])
    with pytest.raises(InputError, match="member: required a switch that is up, given 7"):
        trees_of(lab, root="3", members=["4", "7"], fail=["7"])


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("polarfly", {"q": 3}),
        ("polarfly", {"q": 4}),
        ("polarstar", {"q": 2, "supernode": "complete", "degree": 2}),
    ],
)
def test_forestcolls_worst_cut_is_the_switch_of_fewest_links(family, parameters):
    """Its condition (arXiv 2402.06787, §4): the flow from all to each is as large as needed."""
    graph = build_topology(family, parameters).graph
    network = nx.DiGraph()
    for u, v in zip(graph.tails().tolist(), graph.targets.tolist(), strict=True):
        network.add_edge(u, v, capacity=graph.order - 1)
    fewest = int(graph.degrees.min())
    network.add_edges_from((("all", v) for v in range(graph.order)), capacity=fewest)
    for vertex in range(graph.order):
        assert nx.maximum_flow_value(network, "all", vertex) == fewest * graph.order


def test_allreduce_times(lab):
    found = trees_of(lab, "low-depth")
    small, large = (AllreduceTime.of(found, size) for size in (1, 1 << 40))
    assert small.trees == pytest.approx(5e-6, rel=1e-2)  # 2·3 - 1 hops
    assert small.ring == pytest.approx(40e-6, rel=1e-2)
    rate = 400e9 / 8
    assert large.trees == pytest.approx((1 << 40) / (rate * found.bandwidth), rel=1e-2)
    assert large.ring == pytest.approx(2 * 20 / 21 * (1 << 40) / rate, rel=1e-2)
    assert large.forestcoll == pytest.approx(large.ring / 4, rel=1e-2)
