"""PolarStar: hierarchical rows against a graph search, the star product and the paper's count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.forwarding.walks import minimal_hops
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import (
    Classes,
    Routes,
    Tables,
    empty_egress,
    local,
    no_route,
)
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.families import FAMILIES, family_of
from compilers.topology.labelled_graph import Topology

IQ = [(2, 0), (2, 3), (3, 3), (4, 4), (5, 3), (3, 8)]
PALEY = [(2, 2), (3, 2), (4, 4), (3, 6)]
OTHERS = [
    *(("complete", q, degree) for q, degree in [(2, 1), (3, 2), (4, 3), (5, 4)]),
    *(("bdf", q, degree) for q, degree in [(2, 1), (2, 5), (3, 2), (3, 5), (4, 3), (4, 4)]),
    *(("cayley", q, degree) for q, degree in [(2, 1), (3, 2), (4, 4), (5, 6)]),
]
CASES = [
    *(("inductive-quad", q, degree) for q, degree in IQ),
    *(("paley", q, degree) for q, degree in PALEY),
    *OTHERS,
]


def polarstar(kind: str, q: int, degree: int) -> Topology:
    return FAMILIES["polarstar"].build({"q": q, "supernode": kind, "degree": degree})


def fib(topology: Topology, routes: Routes) -> Fib:
    """Class k leaves by port k + 1, to the k-th neighbour."""
    far = topology.graph.padded()
    port = np.where(far >= 0, np.arange(1, far.shape[1] + 1), 0).astype(np.int32)
    cables = np.concatenate((np.full((len(far), 1), -1, np.int32), far), axis=1)
    return Fib.of(Tables(routes, Classes.minimal(port)), cables)


def dense(topology: Topology, routes: Routes) -> Routes:
    """One exact row per destination, by a look-up row by row: no arrays of all rows."""
    order = topology.graph.order
    egress = empty_egress(order, order, int(topology.graph.degrees.max()))
    for s in range(order):
        row = dict(zip(routes.prefixes(s).tolist(), routes.egress[s].tolist(), strict=True))
        for d in range(order):
            own = row.get(d, no_route(egress))
            aggregate = row.get(int(routes.aggregate[d]), no_route(egress))
            egress[s, d] = own if own != no_route(egress) else aggregate
    prefix = np.arange(order, dtype=np.int32)[None]
    return Routes(prefix=prefix, egress=egress, aggregate=np.full(order, -1, np.int32))


def shortest(topology: Topology) -> np.ndarray:
    every = np.arange(topology.graph.order)
    return distances(neighbour_table(topology.graph), every).T


@pytest.mark.parametrize(("kind", "q", "degree"), CASES)
def test_every_pair_is_delivered_over_a_shortest_path(kind: str, q: int, degree: int) -> None:
    topology = polarstar(kind, q, degree)
    hops = minimal_hops(
        fib(topology, family_of("polarstar").routes(topology)), np.arange(topology.graph.order)
    )
    assert (hops == shortest(topology)).all()
    assert hops.max() <= 3


def test_the_papers_example_has_no_pair_that_is_not_minimal() -> None:
    topology = polarstar("inductive-quad", 11, 3)
    routes = family_of("polarstar").routes(topology)
    hops = minimal_hops(fib(topology, routes), np.arange(1064))
    assert np.count_nonzero(hops) == 1_131_032
    assert (hops == shortest(topology)).all()
    assert hops.max() == 3
    # 8 members, 8 in each of 12 neighbours (11 of a quadric), a row for each other supernode.
    quadric = np.repeat(topology.kind[::8] == 0, 8)
    assert (routes.rows() == np.where(quadric, 8 + 88 + 121, 8 + 96 + 120)).all()


@pytest.mark.parametrize("case", [("inductive-quad", 3, 3), ("paley", 4, 2), ("bdf", 2, 3)])
def test_walking_aggregates_is_walking_the_dense_table(case: tuple[str, int, int]) -> None:
    topology = polarstar(*case)
    routes = family_of("polarstar").routes(topology)
    flat = dense(topology, routes)
    assert not routes.exact
    assert flat.exact
    every = np.arange(topology.graph.order)
    sparse = fib(topology, routes)
    assert (sparse.egress(every) == flat.egress).all()
    assert (minimal_hops(sparse, every) == minimal_hops(fib(topology, flat), every)).all()
    some = np.array([1, 4, 5, topology.graph.order - 1])
    assert (sparse.egress(some) == flat.egress[:, some]).all()


@pytest.mark.parametrize("case", [("inductive-quad", 3, 3), ("paley", 3, 2), ("complete", 4, 3)])
def test_rows_are_those_of_the_hierarchy(case: tuple[str, int, int]) -> None:
    topology = polarstar(*case)
    routes, graph = family_of("polarstar").routes(topology), topology.graph
    order, k = graph.order, topology.hierarchy
    assert routes.prefix.shape[0] == order // k
    assert routes.aggregated
    for s in range(order):
        used = routes.egress[s] != no_route(routes.egress)
        prefix = routes.prefixes(s)[used]
        assert (np.diff(routes.prefixes(s)) >= 0).all()
        near = {s // k} | {int(v) // k for v in graph.neighbours(s)}
        exact = {x * k + member for x in near for member in range(k)}
        remote = {order + x for x in range(order // k) if x not in near}
        assert prefix.tolist() == sorted(exact | remote)
        here = routes.egress[s] == local(routes.egress)
        assert routes.prefixes(s)[here].tolist() == [s]


def test_an_aggregate_that_leads_astray_is_noticed() -> None:
    topology = polarstar("inductive-quad", 3, 3)
    routes = family_of("polarstar").routes(topology)
    egress = routes.egress.copy()
    row = int(np.flatnonzero(routes.prefixes(5) >= topology.graph.order)[0])
    egress[5, row] = (egress[5, row] + 1) % 4
    hops = minimal_hops(fib(topology, replace(routes, egress=egress)), np.arange(104))
    assert (hops != shortest(topology)).any()
