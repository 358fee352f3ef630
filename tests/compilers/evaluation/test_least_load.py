"""The bound by distances against the linear program over edges, solved by scipy."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.optimum import DESTINATIONS_AT_ONCE, least_load
from compilers.evaluation.traffic import PATTERNS
from compilers.topology.families import BASELINES, FAMILIES
from compilers.topology.labelled_graph import Topology


def by_edges(topology: Topology, traffic: Traffic) -> float:
    """The least load of the hottest link: flows of each source on each arc, conserved."""
    graph = topology.graph
    far = graph.targets
    near = np.repeat(np.arange(graph.order), np.diff(graph.offsets))
    arcs, sources = len(far), np.unique(traffic.source)
    net = np.zeros((graph.order, arcs))
    np.add.at(net, (near, np.arange(arcs)), 1)
    np.add.at(net, (far, np.arange(arcs)), -1)
    given = np.zeros((len(sources), graph.order))
    place = np.searchsorted(sources, traffic.source)
    np.add.at(given, (place, traffic.source), traffic.amount)
    np.add.at(given, (place, traffic.destination), -traffic.amount)
    conserved = np.kron(np.eye(len(sources)), net)
    solved = linprog(
        c=[*np.zeros(conserved.shape[1]), 1],
        A_ub=np.column_stack((np.tile(np.eye(arcs), len(sources)), -np.ones(arcs))),
        b_ub=np.zeros(arcs),
        A_eq=np.column_stack((conserved, np.zeros(len(conserved)))),
        b_eq=given.ravel(),
    )
    return float(solved.fun)


@pytest.mark.parametrize("pattern", ["tornado", "perm1hop"])
@pytest.mark.parametrize(
    "topology",
    [
        FAMILIES["polarfly"].build({"q": 3}),
        BASELINES["jellyfish"].build({"nodes": 14, "degree": 4, "seed": 1}),
    ],
    ids=lambda topology: topology.family,
)
def test_no_routing_passes_the_bound(topology: Topology, pattern: str) -> None:
    traffic = PATTERNS[pattern](topology, 1, 0)
    least = by_edges(topology, traffic)
    assert 0.3 * least < least_load(topology.graph, traffic) <= least * (1 + 1e-6)


def test_every_flow_crosses_its_links() -> None:
    """With more destinations than are looked at at a time."""
    graph = FAMILIES["polarfly"].build({"q": 11}).graph
    assert graph.order > DESTINATIONS_AT_ONCE
    ends = np.arange(graph.order)
    amount = np.arange(1.0, graph.order + 1)
    traffic = Traffic(np.roll(ends, 1), ends, amount)
    away = dict(nx.all_pairs_shortest_path_length(nx.Graph(graph.edges().tolist())))
    flows = zip(np.roll(ends, 1).tolist(), ends.tolist(), amount.tolist(), strict=True)
    assert 2 * graph.size * least_load(graph, traffic) == pytest.approx(
        sum(away[u][v] * rate for u, v, rate in flows)
    )
