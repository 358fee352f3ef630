"""Minimal routes for all pairs of PolarFly, and the walk through them, beside other libraries."""

from __future__ import annotations

from collections.abc import Iterator

import click
import networkx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from benchmarks.timing import Timing, best, print_timings, q_option, require_order
from compilers.forwarding.walks import minimal_hops
from compilers.routing.minimal_routes import minimal_tables
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Tables
from compilers.topology.families import FAMILIES
from compilers.topology.labelled_graph import Topology
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.wire import wire
from compilers.wiring.wiring import Wiring
from polarfab.output.verb_output import json_option


@click.command("tables")
@q_option(31)
@click.option("--no-peers", is_flag=True, help="Leave out networkx, which is slow.")
@json_option
def command(q: int, no_peers: bool, as_json: bool) -> None:
    """Minimal routes for all pairs of PolarFly, and the walk through them."""
    require_order(q)
    timings = list(table_timings(q, peers=not no_peers))
    print_timings(as_json, f"PolarFly q={q}", "times ours", timings)


def table_timings(q: int, peers: bool = True) -> Iterator[Timing]:
    """Minimal routes for all pairs of ER_q: ours, a bare memory write, and other libraries.

    networkx runs once, the others a few times.
    """
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, 1), 1)
    ours = best(lambda: minimal_tables(topology, wiring))
    yield Timing("polarfab: minimal routes, all pairs", ours, 1.0)
    for what, seconds in _others(topology, wiring, minimal_tables(topology, wiring), peers):
        yield Timing(what, seconds, seconds / ours)


def _others(
    topology: Topology, wiring: Wiring, tables: Tables, peers: bool
) -> Iterator[tuple[str, float]]:
    """What else is timed of a fabric: the work in words, and its seconds."""
    graph, order = topology.graph, topology.graph.order
    yield "memset of the same table", best(lambda: np.full((order, order), 1, np.uint8))
    fib = Fib.of(tables, wiring.far_by_port())
    targets = np.arange(order)
    yield "polarfab: walk all pairs through the tables", best(lambda: minimal_hops(fib, targets))
    ends = np.ones(len(graph.targets), np.int8), graph.targets, graph.offsets
    matrix = csr_array(ends, shape=(order, order))
    yield (
        "scipy: shortest_path with predecessors",
        best(lambda: shortest_path(matrix, unweighted=True, return_predecessors=True)),
    )
    if peers:
        theirs: networkx.Graph[int] = networkx.Graph(graph.edges().tolist())
        yield (
            "networkx: all-pairs shortest paths",
            best(lambda: dict(networkx.all_pairs_shortest_path_length(theirs)), 1),
        )
