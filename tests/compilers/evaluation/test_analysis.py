"""What `analyse` measures, against the definitions, networkx and the papers' formulas."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compilers.evaluation.analysis.analyses import ANALYSES, AnalysisOptions, analyse, applicable
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.growth import growth
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.path_diversity import diversity
from compilers.evaluation.analysis.resilience import resilience
from compilers.topology.adjacency import Graph
from compilers.topology.families import FAMILIES, build_topology
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors.json").read_text())
SOME = [
    ("polarfly", {"q": 4}),
    ("oft", {"q": 2}),
    ("pn", {"q": 3}),
    ("polarstar", {"q": 2, "supernode": "inductive-quad", "degree": 3}),
    ("fat-tree", {"k": 2}),
    ("jellyfish", {"nodes": 24, "degree": 3, "seed": 5}),
    ("dragonfly", {"h": 2}),
]


def polarfly(q: int) -> Topology:
    return FAMILIES["polarfly"].build({"q": q})


def of_edges(order: int, edges: list[tuple[int, int]]) -> Topology:
    return Topology(
        family="test",
        parameters={},
        graph=Graph.from_edges(order, np.array(edges)),
        kinds=("any",),
        kind=np.zeros(order, np.uint8),
        coordinates=np.zeros((order, 1), np.int32),
        endpoints=np.ones(order, np.bool_),
        diameter=0,
    )


@pytest.mark.parametrize(("family", "parameters"), SOME)
def test_distances_are_those_of_networkx(family, parameters):
    topology = build_topology(family, parameters)
    graph = nx.Graph(topology.graph.edges().tolist())
    hosts = set(np.flatnonzero(topology.endpoints).tolist())
    count: dict[int, int] = {}
    for source, reached in nx.all_pairs_shortest_path_length(graph):
        for target, hops in reached.items():
            if source in hosts and target in hosts and hops:
                count[hops] = count.get(hops, 0) + 1
    found = distribution(topology)
    assert {d: n for d, n in enumerate(found.pairs) if n} == count
    assert found.diameter == max(count)


def test_unreachable_pairs_have_no_mean():
    found = distribution(of_edges(5, [(0, 1), (2, 3), (3, 4)]))
    assert (found.diameter, found.mean, found.unreachable) == (None, None, 12)


@pytest.mark.parametrize(("family", "parameters"), SOME)
def test_load_is_betweenness(family, parameters):
    """Networkx counts a pair once, both ways together, where both ends are hosts."""
    topology = build_topology(family, parameters)
    graph = nx.Graph(topology.graph.edges().tolist())
    hosts = np.flatnonzero(topology.endpoints).tolist()
    wanted = nx.edge_betweenness_centrality_subset(graph, hosts, hosts, normalized=False)
    found = uniform(topology).arcs
    for arc, (u, v) in enumerate(zip(topology.graph.tails(), topology.graph.targets, strict=True)):
        u, v = int(u), int(v)
        both = wanted[u, v] if (u, v) in wanted else wanted[v, u]
        assert found[arc] == pytest.approx(both), (u, v)


@pytest.mark.parametrize("q", [3, 4, 7])
def test_load_of_polarfly(q):
    """Theorem 3.10 of the Projective Networks paper."""
    topology = polarfly(q)
    quadric = topology.kind == 0
    at_quadric = quadric[topology.graph.tails()] | quadric[topology.graph.targets]
    load = uniform(topology)
    assert np.allclose(load.arcs, np.where(at_quadric, 2 * q, 2 * q - 1))
    assert load.utilisation == pytest.approx((2 * q * q + q + 1) / (2 * q * (q + 1)))


@pytest.mark.parametrize("q", ["2", "3"])
def test_load_of_pn(q):
    expected = VECTORS["projective"]["PN"][q]
    load = uniform(FAMILIES["pn"].build({"q": int(q)}))
    assert load.arcs == pytest.approx(expected["arc_load"])
    assert load.mean_distance == pytest.approx(expected["kbar"])


@pytest.mark.parametrize("q", [3, 5])
def test_path_diversity_is_that_of_the_vectors(q):
    found = {
        f"{'adj' if each.adjacent else 'non'} {'-'.join(each.ends)} x={each.middle or '-'}": each
        for each in diversity(polarfly(q))
    }
    expected = VECTORS["path_diversity"]["values"][str(q)]
    assert set(found) == set(expected)
    for name, counts in expected.items():
        assert found[name].fewest == found[name].most == tuple(counts[n][0] for n in "1234")


def table_vi(q: int, adjacent: bool, ends: list[int], middle: int | None) -> tuple[int, ...]:
    """Table VI as corrected. A vertex is its number of quadric neighbours, -1 for a quadric."""
    quadrics = ends.count(-1)
    if adjacent:
        return (1, 0, 0, q * q - q) if quadrics else (1, 1, 0, (q - 1) ** 2)
    if quadrics == 2:
        return 0, 1, q - 1, (q - 1) ** 2
    if quadrics == 1:
        return 0, 1, q, q * q - q - max(ends)
    return 0, 1, q if middle == -1 else q + 1, q * q - sum(ends) + 2 * (middle == -1)


def test_path_diversity_is_table_vi():
    q, neighbours = 7, {"W": -1, "V1": 2, "V2": 0}
    found = diversity(polarfly(q))
    assert len(found) >= 12
    for each in found:
        ends = [neighbours[name] for name in each.ends]
        middle = neighbours[each.middle] if each.middle else None
        assert each.fewest == each.most == table_vi(q, each.adjacent, ends, middle), each


@pytest.mark.parametrize("seed", range(2))
def test_simple_paths_of_any_graph(seed):
    graph = nx.gnp_random_graph(11, 0.4, seed=seed)
    (found, *more) = sorted(
        diversity(of_edges(11, list(graph.edges))), key=lambda each: each.adjacent
    )
    for each in (found, *more):
        pairs = [
            (u, v)
            for u in graph
            for v in graph
            if u != v
            and graph.has_edge(u, v) == each.adjacent
            and (each.middle is not None) == (len(list(nx.common_neighbors(graph, u, v))) == 1)
        ]
        counts = [
            np.bincount([len(p) - 1 for p in nx.all_simple_paths(graph, u, v, 4)], minlength=5)[1:]
            for u, v in pairs
        ]
        assert each.pairs == len(pairs)
        assert each.fewest == tuple(np.min(counts, axis=0))
        assert each.most == tuple(np.max(counts, axis=0))


def test_bisection_of_known_graphs():
    ring = of_edges(12, [(i, (i + 1) % 12) for i in range(12)])
    assert bisection(ring).cut == 2
    complete = of_edges(8, [(i, j) for i in range(8) for j in range(i)])
    assert (bisection(complete).cut, bisection(complete).fraction) == (16, 16 / 28)


def test_bisection_counts_what_it_cuts():
    topology = build_topology("fat-tree", {"k": 4})
    found = bisection(topology)
    u, v = topology.graph.edges().T
    assert (found.one_side[u] != found.one_side[v]).sum() == found.cut
    assert (found.one_side & topology.endpoints).sum() == topology.endpoints.sum() // 2


def test_bisection_of_polarfly_is_above_40_percent():
    """PolarFly paper, §IX-A."""
    topology = polarfly(23)
    found = bisection(topology)
    assert 0.4 < found.fraction < 0.5
    assert abs(2 * found.one_side.sum() - topology.graph.order) <= 3


def test_bisection_of_polarstar_follows_the_involution():
    """Pairs {x', f(x')} can stand apart: only links inside supernodes are cut then."""
    topology = build_topology("polarstar", {"q": 7, "supernode": "inductive-quad", "degree": 3})
    assert bisection(topology).cut <= 57 * 8


def test_resilience_of_a_ring():
    """Two failures disconnect it, whichever."""
    found = resilience(of_edges(20, [(i, (i + 1) % 20) for i in range(20)]), runs=5)
    assert found.ratios == (0.1,) * 5
    assert [(p.failed, p.diameter) for p in found.curve] == [(0, 10), (1, 19)]


def test_resilience_protocol():
    topology = polarfly(7)
    found = resilience(topology, runs=10, seed=3)
    assert list(found.ratios) == sorted(found.ratios)
    assert found.median == found.ratios[4]
    assert found.curve[-1].fraction == pytest.approx(found.median - 1 / topology.graph.size)
    means = [point.mean_distance for point in found.curve]
    assert means == sorted(means)
    assert means[0] == pytest.approx(distribution(topology).mean)
    assert resilience(topology, runs=10, seed=3) == found
    assert resilience(topology, runs=10, seed=4) != found


def test_spines_may_be_cut_off():
    star = of_edges(4, [(0, 1), (1, 2), (2, 3)])
    endpoints = np.array([True, True, True, False])
    hosts = Topology(**{f: getattr(star, f) for f in star.__slots__} | {"endpoints": endpoints})
    assert max(resilience(hosts, runs=20).ratios) == 2 / 3
    assert max(resilience(star, runs=20).ratios) == 1 / 3


def test_one_failed_link_of_polarfly():
    """Diameter 3, or 4 if the link touches a quadric (PolarFly paper, §IX-B)."""
    topology = polarfly(5)
    edges = topology.graph.edges()
    for number in range(0, len(edges), 7):
        left = Graph.from_edges(topology.graph.order, np.delete(edges, number, axis=0))
        touches = (topology.kind[edges[number]] == 0).any()
        assert distribution(topology, graph=left).diameter == (4 if touches else 3)


def test_growth_of_odd_and_even_q():
    odd = {(each.method, each.racks): each for each in growth(polarfly(5), racks=2)}
    assert odd[None, 0].nodes == 31
    for n in (1, 2):
        quadric, fan = odd["quadric", n], odd["fan", n]
        assert (quadric.nodes, quadric.diameter, quadric.pairs_at_3) == (31 + 6 * n, 2, 0)
        assert (fan.nodes, fan.diameter, fan.pairs_at_3) == (31 + 5 * n, 3, 20 * n)
        assert fan.largest_degree == 6 + n + 1
    even = {(each.method, each.racks): each for each in growth(polarfly(4), racks=3)}
    assert {method for method, _ in even} == {None, "fan", "nucleus"}
    nucleus = even["nucleus", 1]
    assert (nucleus.nodes, nucleus.least_degree, nucleus.largest_degree) == (22, 5, 5)
    assert nucleus.diameter == 2
    for n in (1, 2, 3):
        fan = even["fan", n]
        assert (fan.nodes, fan.diameter, fan.largest_degree) == (21 + 5 * n, 3, 5 + n - (n == 3))


def test_every_analysis_by_name():
    topology = polarfly(3)
    options = AnalysisOptions(runs=3, racks=1)
    assert applicable(topology) == list(ANALYSES)
    for name in ANALYSES:
        shares = [0.0]
        found = analyse(topology, name, options, lambda done, of, to=shares: to.append(done / of))
        assert found.rows
        assert len({tuple(row) for row in found.rows}) == 1
        assert shares == sorted(shares)
        assert name == "bisection" or shares[-1] == 1
        json.dumps([found.facts, found.rows])


def test_what_does_not_apply():
    topology = FAMILIES["pn"].build({"q": 2})
    assert "expansion" not in applicable(topology)
    with pytest.raises(InputError, match="a PolarFly to grow"):
        analyse(topology, "expansion", AnalysisOptions())
    with pytest.raises(InputError, match="did you mean distances"):
        analyse(topology, "distance", AnalysisOptions())
