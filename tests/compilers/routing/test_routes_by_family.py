"""Minimal routes against the definition of ER_q, and the walker against a graph search."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from compilers.routing.minimal_routes import minimal_tables
from compilers.tables.intermediate_form import local, no_route
from compilers.topology.families import FAMILIES
from compilers.topology.polarity import cross
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.wire import wire

Q = [2, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize("q", Q)
def test_next_hop_is_the_cross_product_or_the_neighbour(q: int) -> None:
    topology = FAMILIES["polarfly"].build({"q": q})
    tables = minimal_tables(topology, wire(topology, generated_inventory(topology, 1), 1))
    neighbours, egress = topology.graph.padded(), tables.routes.egress
    order = topology.graph.order
    assert (np.diag(egress) == local(egress)).all()
    s, d = np.nonzero(~np.eye(order, dtype=bool))
    assert (egress[s, d] != no_route(egress)).all()
    hop = neighbours[s, egress[s, d]]
    adjacent = (neighbours[s] == d[:, None]).any(axis=1)
    assert (hop[adjacent] == d[adjacent]).all()
    assert (hop[~adjacent] == cross(q, s, d)[~adjacent]).all()


@pytest.mark.parametrize("q", [3, 4, 7])
def test_rows_reach_in_as_many_links_as_networkx_finds(q: int) -> None:
    topology = FAMILIES["polarfly"].build({"q": q})
    tables = minimal_tables(topology, wire(topology, generated_inventory(topology, 1), 1))
    graph = networkx.Graph(topology.graph.edges().tolist())
    neighbours, egress = topology.graph.padded(), tables.routes.egress
    for s, reached in networkx.all_pairs_shortest_path_length(graph):
        for d, shortest in reached.items():
            at, hops = s, 0
            while at != d:
                at, hops = int(neighbours[at, egress[at, d]]), hops + 1
                assert hops <= shortest
            assert hops == shortest
