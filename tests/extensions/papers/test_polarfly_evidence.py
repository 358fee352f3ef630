"""PolarFly's tables and costs beside networkx, and what breaks them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import pytest

from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from extensions.papers.latency_curves import PaperFabric
from extensions.papers.polarfly import polarfly_measures, polarfly_structure, polarfly_tables


@pytest.mark.parametrize("q", [5, 7])
def test_triangles_of_table_three_are_those_of_networkx(q: int):
    topology = build_topology("polarfly", {"q": q})
    graph: nx.Graph = nx.Graph(topology.graph.edges().tolist())
    names = [topology.kinds[kind] for kind in topology.kind]
    counts: dict[tuple[str, str], set[str]] = {}
    found = 0
    for corners in (each for each in nx.enumerate_all_cliques(graph) if len(each) == 3):
        found += 1
        for third in corners:
            one, other = sorted(names[v] for v in corners if v != third)
            counts.setdefault((one, other), set()).add(names[third])
    assert found == (q + 1) * q * (q - 1) // 6
    assert counts == {ends: {third} for ends, third in polarfly_tables.BETWEEN[q % 4].items()}


def test_a_wrong_intermediate_kind_is_told(monkeypatch: pytest.MonkeyPatch):
    assert polarfly_tables.intermediate_kinds(True).verdict == "exact"
    wrong = {**polarfly_tables.BETWEEN[1], ("V1", "V2"): "V1"}
    monkeypatch.setitem(polarfly_tables.BETWEEN, 1, wrong)
    assert polarfly_tables.intermediate_kinds(True).verdict == "differs"


def test_costs_follow_from_the_graphs(monkeypatch: pytest.MonkeyPatch):
    """With a smaller Slim Fly, whose share of the Moore bound is less, its cost is another one."""
    small = {**polarfly_measures.CONFIGURED, "SF": ("slimfly", {"q": 4}, 3)}
    before = {row[0]: row[2] for row in polarfly_measures.port_costs(True).rows}
    monkeypatch.setattr(polarfly_measures, "CONFIGURED", small)
    after = {row[0]: row[2] for row in polarfly_measures.port_costs(True).rows}
    assert before["Slim Fly"] != pytest.approx(after["Slim Fly"], rel=0.01)
    assert before["Fat tree"] == after["Fat tree"]


def test_a_grown_fabric_is_simulated_with_all_its_switches():
    fabric = PaperFabric({"family": "polarfly", "q": 3}, 2, "MIN", grown="fan:1")
    assert fabric.build().topology.graph.order == 13 + 3
    assert fabric.title() == "polarfly q=3 fan:1 2 hosts a switch"


def test_a_missing_link_breaks_the_figure_of_lines(monkeypatch: pytest.MonkeyPatch):
    assert polarfly_structure.geometry(True).verdict == "exact"
    build = polarfly_structure.build_topology

    def damaged(family: str, parameters: dict[str, int]):
        whole = build(family, parameters)
        edges = whole.graph.edges()[1:]
        return replace(whole, graph=Graph.from_edges(whole.graph.order, edges))

    monkeypatch.setattr(polarfly_structure, "build_topology", damaged)
    assert polarfly_structure.geometry(True).verdict == "differs"


def test_the_cut_that_corrects_is_the_one_found(monkeypatch: pytest.MonkeyPatch):
    found = SimpleNamespace(fraction=0.25)
    monkeypatch.setattr(polarfly_measures, "bisection", lambda _topology: found)
    claim = polarfly_measures.bisections(True).claims[0]
    assert (claim.verdict, claim.why[:25]) == ("corrected", "METIS finds a cut of 25.0")
