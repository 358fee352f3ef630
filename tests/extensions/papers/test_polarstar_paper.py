"""PolarStar's tables and figures: what they say, beside networkx, and data that break them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, combinations, permutations, product
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

import polarfab
from compilers.evaluation.analysis.resilience import resilience
from compilers.evaluation.traffic import between_groups
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.supernodes import cayley, exists, supernode
from extensions.papers.diagram import Diagram
from extensions.papers.exhibit import Evidence
from extensions.papers.graphs import (
    bijection_of_r1,
    involution_of_rstar,
    is_vertex_transitive,
)
from extensions.papers.polarstar import (
    polarstar_measures,
    polarstar_scale,
    polarstar_structure,
    polarstar_tables,
)
from extensions.papers.polarstar.polarstar_measures import least_cut_fraction_of_hyperx
from extensions.papers.polarstar.polarstar_simulation import networks
from tests.extensions.papers.quick_evidence import quick


def graph_of(found: Diagram | Topology) -> nx.Graph:
    graph: nx.Graph = nx.Graph()
    if isinstance(found, Diagram):
        graph.add_nodes_from(range(len(found.places)))
        graph.add_edges_from(np.asarray(found.links).tolist())
    else:
        graph.add_nodes_from(range(found.graph.order))
        graph.add_edges_from(found.graph.edges().tolist())
    return graph


def claim(evidence: Evidence, says: str) -> float:
    return next(each.computed for each in evidence.claims if each.statement == says)


def test_the_products_drawn_are_a_prism_and_petersens_graph():
    cartesian, star = map(graph_of, quick(polarstar_structure.products).diagrams)
    assert nx.is_isomorphic(cartesian, nx.circular_ladder_graph(5))
    assert nx.is_isomorphic(star, nx.petersen_graph())


@pytest.mark.parametrize("kind", ["inductive-quad", "paley", "bdf", "complete"])
def test_supernodes_are_symmetric_where_networkx_finds_automorphisms(kind: str):
    for degree in (2, 3, 4):
        if polarstar_tables.SUPERNODES[kind].order(degree) is None:
            continue
        node = supernode(kind, degree)
        graph = graph_of_node = nx.Graph(node.graph.edges().tolist())
        maps = nx.isomorphism.GraphMatcher(graph, graph_of_node).isomorphisms_iter()
        images = {each[0] for each in maps}
        assert is_vertex_transitive(node.adjacency()) == (len(images) == node.order)


def has_rstar(graph: nx.Graph, image: list[int]) -> bool:
    return all(image[image[y]] == y for y in range(len(image))) and all(
        other in (one, image[one])
        or graph.has_edge(one, other)
        or graph.has_edge(image[one], image[other])
        for one in range(len(image))
        for other in range(len(image))
    )


def test_property_r_star_is_found_where_an_involution_has_it():
    """Against every involution of six vertices, on random graphs."""
    every = [[*p] for p in permutations(range(6)) if all(p[p[v]] == v for v in range(6))]
    answers = set()
    for seed in range(40):
        graph = nx.gnp_random_graph(6, 0.5, seed=seed)
        image = involution_of_rstar(nx.to_numpy_array(graph, range(len(graph)), dtype=bool))
        answers.add(image is not None)
        assert (image is not None) == any(has_rstar(graph, other) for other in every)
        assert image is None or has_rstar(graph, image)
    assert answers == {True, False}


def test_some_paley_graphs_have_property_r_star_and_that_of_17_vertices_has_not():
    """The table says that Paley graphs do not have it, which is so of the family."""
    for order in (5, 13):
        graph = nx.Graph(nx.paley_graph(order))
        image = involution_of_rstar(nx.to_numpy_array(graph, range(len(graph)), dtype=bool))
        assert image
        assert has_rstar(graph, image)
    joined = nx.to_numpy_array(nx.Graph(nx.paley_graph(17)), range(17), dtype=bool)
    assert involution_of_rstar(joined) is None
    readings = {
        found.statement.partition(",")[0]: found.why
        for found in quick(polarstar_tables.supernodes).claims
        if "of every member" in found.why
    }
    assert readings.keys() == {"paley: R*", "cayley: R*"}
    assert "of 4, 5, 7, 8, 9, 11, 13 vertices it has it, of 17" in readings["cayley: R*"]
    assert "of 5, 9, 13 vertices it has it, of 17 it has not" in readings["paley: R*"]


def test_graphs_of_our_own_are_no_evidence_of_those_of_another_paper() -> None:
    """The orders were equal, of graphs that are built here with the printed orders."""
    verdicts = {
        found.statement.partition(", members")[0]: (found.verdict, found.why)
        for found in quick(polarstar_tables.supernodes).claims
        if found.statement.startswith("bdf")
    }
    properties = {name: verdicts.pop(f"bdf: {name}") for name in ("R1", "R*", "symmetric")}
    assert [verdict for verdict, _ in properties.values()] == ["not computed"] * 3
    assert properties["R1"][1].endswith("Those of 10 vertices have it.")
    assert len(verdicts) == 8
    assert {verdict for verdict, _ in verdicts.values()} == {"taken"}
    assert all("a construction of our own" in why for _, why in verdicts.values())


def test_marks_that_rank_leave_out_fat_tree_and_say_so() -> None:
    """Its steps decide the order by the power of the radix: 2, or its diameter, 4."""
    claims = {found.statement: found for found in quick(polarstar_tables.networks).claims}
    stable = claims["Fat-tree: stable, full mark"]
    assert stable.verdict == "not computed"
    assert "0.236 with the square" in stable.why
    assert "0.471 with the power 4" in stable.why
    ranked = [says for says in claims if "full marks" in says]
    assert len(ranked) == 2
    assert all("without Fat-tree's" in says for says in ranked)


def test_one_graph_of_eight_vertices_and_degree_3_has_r_star() -> None:
    """So Inductive-Quad of degree 3, whose drawing is lost, is known by its property.

    By R* two pairs of f are joined by two links or more, so with 12 links by two, that share a
    vertex.
    """
    quad = nx.from_numpy_array(supernode("inductive-quad", 3).adjacency())
    pairs = [(2 * i, 2 * i + 1) for i in range(4)]
    choices = [
        [[(hub, end) for end in there] for here, there in ((a, b), (b, a)) for hub in here]
        for a, b in combinations(pairs, 2)
    ]
    graphs = (nx.Graph([*chain.from_iterable(links)]) for links in product(*choices))
    regular = [graph for graph in graphs if {degree for _, degree in graph.degree()} == {3}]
    assert regular
    assert all(nx.is_isomorphic(graph, quad) for graph in regular)


@pytest.mark.parametrize("kind", ["inductive-quad", "paley", "bdf", "cayley"])
def test_property_r_one_is_found_where_a_bijection_has_it(kind: str):
    """By all bijections of up to six vertices. Only the supernode's own was tried before."""
    for degree in range(1, 5):
        if not exists(kind, degree) or (node := supernode(kind, degree)).order > 6:
            continue
        joined = node.adjacency() | np.eye(node.order, dtype=bool)
        images = (joined[np.ix_(p, p)] for p in map(list, permutations(range(node.order))))
        expected = any((joined | image).all() for image in images)
        found = bijection_of_r1(node.adjacency())
        assert (found is not None) == expected
        if found:
            goals = np.argsort(found)
            assert (joined | joined[np.ix_(goals, goals)]).all()


def test_orders_of_the_bound_are_those_of_graphs():
    evidence = quick(polarstar_scale.feasible_orders)
    curves = {
        curve.name: {*zip(curve.x, curve.y, strict=True)} for curve in evidence.panels[0].curves
    }
    orders = []
    for q in (2, 3, 4, 5, 7):
        degree = 8 - q
        if degree % 4 in (0, 3):
            parameters = {"q": q, "supernode": "inductive-quad", "degree": degree}
            graph = graph_of(build_topology("polarstar", parameters))
            assert nx.diameter(graph) == 3
            assert max(dict(graph.degree).values()) == 9
            orders.append(len(graph))
    assert {n for radix, n in curves["Inductive-Quad"] if radix == 9} == {*orders}


def test_the_geometric_means_are_those_of_the_abstract():
    evidence = quick(polarstar_scale.moore_efficiency)
    verdicts = {each.statement.split()[4].rstrip(","): each.verdict for each in evidence.claims[:3]}
    assert verdicts == {"Bundlefly": "equal", "Dragonfly": "equal", "HyperX": "equal"}
    first = evidence.claims[0]
    assert replace(first, computed=first.computed * 1.05).verdict == "differs"


def test_figure_one_says_which_orders_are_counted() -> None:
    """All were those of formulas, and nothing said so."""
    (line,) = quick(polarstar_scale.moore_efficiency).setup
    assert "of radix 8 to 15 are built: 8 of 8 have this order and radix" in line


def test_no_polarstar_is_larger_than_the_bounds_of_its_factors_allow():
    curves = {
        curve.name: curve.y for curve in quick(polarstar_scale.moore_efficiency).panels[0].curves
    }
    pairs = zip(curves["PolarStar"], curves["star product, bound"], strict=True)
    assert all(found < bound for found, bound in pairs)


def test_cuts_over_a_few_radixes_refute_no_average_of_the_paper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The paper's text has lost its radixes. At radix 55 the halved pairs cut 21.8 % of the links,
    and HyperX tends to 16.7 %: "HyperX has more" was called the paper's mistake.
    """
    parts = {"polarstar": 0.18, "hyperx": 0.21, "dragonfly": 0.17, "megafly": 0.1}

    def cut(family: str) -> SimpleNamespace:
        """A cut that METIS might find."""
        return SimpleNamespace(fraction=parts.get(family, 0.3))

    monkeypatch.setattr(polarstar_measures, "build_topology", lambda family, _: family)
    monkeypatch.setattr(polarstar_measures, "bisection", cut)
    monkeypatch.setattr(
        polarstar_measures, "least_cut_fraction", lambda family: 0.9 * cut(family).fraction
    )
    claims = {each.statement: each for each in polarstar_measures.cuts(True).claims}
    verdicts = {
        name: claims[f"PolarStar has more than {name}, on average"].verdict
        for name in ("HyperX", "Bundlefly", "Dragonfly", "Megafly")
    }
    assert verdicts.pop("Megafly") == "reading"
    assert {*verdicts.values()} == {"not computed"}
    assert Evidence((*claims.values(),)).verdict == "not computed"
    more = claims["PolarStar has more than HyperX, on average"].why
    assert "of these radixes the order is reversed" in more
    assert "Over other radixes the order may be another." in more


def test_marks_that_rank_are_a_reading_and_bundles_are_of_one_member():
    claims = {each.statement: each for each in quick(polarstar_tables.networks).claims}
    says = "links between adjacent modules"
    assert claims[f"Dragonfly h=2: {says}, half mark, most"].computed == 1
    assert claims[f"Slim Fly q=5: {says}, full mark, fewest"].computed == 5
    ranked = [each for each in claims.values() if " marks above " in each.statement]
    assert {(each.verdict, each.relation) for each in ranked} == {("reading", ">")}


@pytest.mark.parametrize("name", ["PS-IQ", "BF", "DF", "MF"])
def test_adversarial_traffic_goes_between_two_groups_over_three_links(name: str):
    network = networks(True)[name]
    topology = build_topology(network.family, network.parameters)
    traffic = between_groups(topology, network.group, 3, 0)
    graph = graph_of(topology)
    facing: dict[int, set[int]] = {}
    for one, other in zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True):
        assert topology.endpoints[one]
        assert topology.endpoints[other]
        assert nx.shortest_path_length(graph, one, other) == 3
        facing.setdefault(one // network.group, set()).add(other // network.group)
    assert all(len(others) == 1 for others in facing.values())
    assert len(traffic.source) > topology.endpoints.sum() / 2


@pytest.mark.parametrize("order", [4, 7, 8, 11])
def test_cayley_supernodes_are_tried_that_are_no_paley_graphs(order: int) -> None:
    """Those of table 2 were Paley's: δ is 1 for the largest of each degree from 2 to 8."""
    node = cayley(order)
    assert 2 * node.degree == order + (order % 2)
    assert node.has_property()
    says = [found.statement for found in quick(polarstar_tables.supernodes).claims]
    of_members = [text for text in says if re.match(r"cayley: .* members of", text)]
    assert len(of_members) == 3
    assert all(str(order) in re.findall(r"\d+", text) for text in of_members)


def test_a_property_whose_definition_the_text_has_lost_is_a_reading() -> None:
    found = [
        each
        for exhibit in (
            polarstar_tables.supernodes,
            polarstar_structure.paths,
            polarstar_structure.inductive_quads,
        )
        for each in quick(exhibit).claims
        if "R1," in each.statement or "R*," in each.statement or "case holds" in each.statement
        if not each.statement.startswith("bdf")
    ]
    assert len(found) == 4 + 4 + 1 + 6
    assert {(each.verdict, each.why.startswith("The text has lost")) for each in found} == {
        ("reading", True)
    }


@pytest.mark.parametrize("family", ["jellyfish", "polarstar", "hyperx"])
def test_the_least_cut_is_that_of_the_second_eigenvalue(family: str) -> None:
    parameters: dict[str, dict[str, int | str | None]] = {
        "jellyfish": {"nodes": 150, "degree": 7},
        "polarstar": {"q": 4, "supernode": "inductive-quad", "degree": 3},
        "hyperx": {"sides": "5x5x5"},
    }
    topology = build_topology(family, parameters[family])
    graph = topology.graph
    laplacian = np.diag(graph.degrees.astype(float))
    laplacian[graph.tails(), graph.targets] = -1
    half = graph.order // 2
    links = np.linalg.eigvalsh(laplacian)[1] * half * (graph.order - half) / graph.order
    found = polarstar_measures.least_cut_fraction(topology)
    assert found == pytest.approx(links / graph.size, rel=1e-3)
    assert found <= links / graph.size + 1e-9


def test_an_order_of_cuts_is_told_by_bounds_only() -> None:
    """METIS's cuts, upper bounds, confirmed an order and never denied it."""
    few, many = (
        polarstar_measures.CutBounds(0.1, 0.12),
        polarstar_measures.CutBounds(0.15, 0.2),
    )
    near = polarstar_measures.CutBounds(0.14, 0.18)
    found = [
        polarstar_measures.has_more("more", one, other, "why").verdict
        for one, other in ((many, few), (many, near), (near, many), (few, many))
    ]
    assert found == ["reading", "not computed", "not computed", "not computed"]


def test_a_figure_in_the_library():
    found = polarfab.reproduce("polarstar-fig5")
    assert repr(found) == "<Evidence equal: 5 claims>"
    with pytest.raises(polarfab.InputError, match="polarstar-fig1"):
        polarfab.reproduce("polarstar-fig15")


@pytest.mark.parametrize(("name", "routers", "links"), [("PS-IQ", 1064, 15), ("FT", 324, 18)])
def test_networks_disconnect_where_a_router_loses_all_its_links(name, routers, links):
    """As figure 14's correction says: N·pᵈ is about 0.7, of routers with hosts."""
    paper = networks(False)[name]
    topology = build_topology(paper.family, paper.parameters)
    assert topology.endpoints.sum() == routers
    assert {*topology.graph.degrees[topology.endpoints].tolist()} == {links}
    assert resilience(topology).median == pytest.approx((0.7 / routers) ** (1 / links), abs=0.012)
    assert f"{100 * (0.7 / routers) ** (1 / links):.0f} %" in polarstar_measures.ROUTERS_ARE_CUT_OFF


@pytest.mark.parametrize(
    ("family", "parameters", "per_cent", "text"),
    [
        ("bundlefly", {"q": 7, "degree": 4}, "14.6", polarstar_measures.BUNDLEFLY_KEEPS_MORE),
        ("hyperx", {"sides": "6x6x6"}, "20.0", f" {100 * least_cut_fraction_of_hyperx(15):.1f} %"),
        ("hyperx", {"sides": "5x5x5"}, "20.8", f" {100 * least_cut_fraction_of_hyperx(12):.1f} %"),
        (
            "polarstar",
            {"q": 8, "supernode": "paley", "degree": 6},
            "20.7",
            polarstar_measures.PALEY_KEEPS_MORE,
        ),
    ],
)
def test_no_cut_of_the_others_has_as_few_links_as_polarstars(
    family: str, parameters: dict[str, int | str | None], per_cent: str, text: str
) -> None:
    """METIS alone bounds them from above only, which refutes nothing. At radix 15 they have more
    than the 4/30 of Inductive-Quad."""
    topology = build_topology(family, parameters)
    graph = topology.graph
    laplacian = np.diag(graph.degrees.astype(float))
    laplacian[graph.tails(), graph.targets] = -1
    half = graph.order // 2
    links = np.linalg.eigvalsh(laplacian)[1] * half * (graph.order - half) / graph.order
    least = 100 * links / graph.size
    assert least >= float(per_cent) - 1e-9
    assert least < float(per_cent) + 0.1
    assert f" {per_cent} %" in text
    assert least > 100 * 4 / 30
