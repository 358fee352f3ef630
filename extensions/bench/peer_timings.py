"""Timings of polarfab and its peers: the same fabric, the same machine, one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from compilers.forwarding.walks import minimal_hops
from compilers.routing.minimal_routes import minimal
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Tables
from compilers.topology.families import FAMILIES
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring, generated_inventory, wire

REPEATS = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """A time in seconds, and its ratio to the first of its table."""

    what: str
    seconds: float
    ratio: float


def tables(q: int, peers: bool = True) -> Iterator[Timing]:
    """Minimal routes for all pairs of ER_q: ours, a bare memory write, and other libraries.

    networkx runs once, the others a few times; scipy is left out if it is not installed.
    """
    topology = FAMILIES["polarfly"].build({"q": q})
    wiring = wire(topology, generated_inventory(topology, 1), 1)
    ours = best(lambda: minimal(topology, wiring))
    yield Timing("polarfab: minimal routes, all pairs", ours, 1.0)
    for what, seconds in _others(topology, wiring, minimal(topology, wiring), peers):
        yield Timing(what, seconds, seconds / ours)


def _others(
    topology: Topology, wiring: Wiring, compiled: Tables, peers: bool
) -> Iterator[tuple[str, float]]:
    order = topology.graph.order
    yield "memset of the same table", best(lambda: np.full((order, order), 1, np.uint8))
    fib = Fib.of(compiled, wiring.cables())
    every = np.arange(order)
    yield "polarfab: walk all pairs through the tables", best(lambda: minimal_hops(fib, every))
    yield from _scipy(topology)
    if peers:
        import networkx

        graph: networkx.Graph[int] = networkx.Graph(topology.graph.edges().tolist())
        yield (
            "networkx: all-pairs shortest paths",
            best(lambda: dict(networkx.all_pairs_shortest_path_length(graph)), 1),
        )


def _scipy(topology: Topology) -> Iterator[tuple[str, float]]:
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path
    except ImportError:
        return
    graph = topology.graph
    matrix = csr_array(
        (np.ones(len(graph.targets), np.int8), graph.targets, graph.offsets),
        shape=(graph.order, graph.order),
    )
    yield (
        "scipy: shortest_path with predecessors",
        best(lambda: shortest_path(matrix, unweighted=True, return_predecessors=True)),
    )


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)
