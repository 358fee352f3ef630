"""The figures by which docs/comparison.md compares fabrics are what comes out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np
import pytest

from benchmarks.carried_shares import COMPARISON, FABRICS, cell, hosts_of, shares, table
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from polarfab import Fabric


@cache
def graph_of(name: str) -> Topology:
    family, *parameters = FABRICS[name].items()
    return build_topology(family[1], dict(parameters))


def size(name: str) -> str:
    graph = graph_of(name)
    return f"{graph.graph.order}, {hosts_of(FABRICS[name]) * int(graph.endpoints.sum())}"


def links_of_a_host(name: str) -> str:
    graph = graph_of(name)
    return f"{graph.graph.size / (hosts_of(FABRICS[name]) * graph.endpoints.sum()):.2f}"


def lengths(name: str) -> str:
    graph = graph_of(name)
    ends = np.flatnonzero(graph.endpoints)
    found = distances(neighbour_table(graph.graph), ends)
    far = found[:, ends] if found.shape[0] == len(ends) else found[ends]
    return f"{far.sum() / (far.size - len(ends)):.2f}, {far.max()}"


def disjoint_paths(name: str) -> str:
    """By networkx, of 100 pairs by chance: the fewest, and the mean length of as many as can be."""
    graph = graph_of(name)
    ends, links = np.flatnonzero(graph.endpoints), graph.graph.edges()
    network = nx.DiGraph()
    both = np.concatenate((links, links[:, ::-1])).tolist()
    network.add_edges_from(both, capacity=1, weight=1)
    source, found = np.random.default_rng(1), []
    for _ in range(100):
        u, v = source.choice(ends, 2, replace=False).tolist()
        flow = nx.max_flow_min_cost(network, u, v)
        found.append((sum(flow[u].values()), nx.cost_of_flow(network, flow)))
    paths, length = np.array(found).T
    return f"{paths.min()}, {length.sum() / paths.sum():.1f}"


def rows(name: str) -> str:
    spec = {"name": "lab", "topology": FABRICS[name], "hosts_per_node": hosts_of(FABRICS[name])}
    build = Fabric.from_spec(spec | {"routing": {"balance": "spread"}}).build
    classes = int(np.count_nonzero(build.tables.classes.port, axis=1).max())
    return f"{build.tables.switches}, {classes}, {int(build.topology.graph.degrees.max())}"


FACTS: dict[str, Callable[[str], str]] = {
    "switches, hosts": size,
    "links between switches for each host": links_of_a_host,
    "links of a shortest path between hosts' switches: mean, most": lengths,
    "edge-disjoint paths of a pair: fewest, mean length": disjoint_paths,
    "routes, classes, sets for marked packets of a switch: spread": rows,
}


@pytest.mark.parametrize("row", table(COMPARISON)[1:], ids=lambda row: row[0])
def test_a_row_of_the_comparison(row: list[str]) -> None:
    what, *cells = row
    for heading, printed in zip(table(COMPARISON)[0][1:], cells, strict=True):
        name = next(name for name in FABRICS if heading.startswith(name))
        fact = FACTS.get(what)
        assert (fact(name) if fact else cell(shares(FABRICS[name], what))) == printed
