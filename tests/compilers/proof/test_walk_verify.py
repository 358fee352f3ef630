"""Minimal paths and the verifier, on good tables and on tables broken in every way they name."""

from __future__ import annotations

from dataclasses import replace

import networkx
import numpy as np
import pytest

from compilers.forwarding.single_packets import SinglePackets
from compilers.forwarding.walks import minimal_hops
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, MOST_HOPS, UNCABLED, Fib
from compilers.tables.intermediate_form import Classes, Routes, local, no_route
from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, distances, neighbour_table
from tests.compilers.fabrics import polarfly_build


def fib(build: Build) -> Fib:
    return Fib.of(build.tables, build.wiring.far_by_port())


def with_egress(build: Build, changes: dict[tuple[int, int], int]) -> Build:
    egress = build.tables.routes.egress.copy()
    for where, value in changes.items():
        egress[where] = value
    routes = replace(build.tables.routes, egress=egress)
    return replace(build, tables=replace(build.tables, routes=routes))


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9])
def test_every_pair_is_delivered_minimally(q: int) -> None:
    report = verify(polarfly_build(q))
    order, links = q * q + q + 1, q * (q + 1) ** 2 // 2
    assert report.passed
    assert report.pairs == report.delivered == report.minimal == order * (order - 1)
    assert report.hop_counts == (0, 2 * links, order * (order - 1) - 2 * links)
    assert (report.max_hops, report.loops, report.faults) == (2, 0, ())


def test_one_path_is_that_of_all_packets() -> None:
    build = polarfly_build(3)
    hops = minimal_hops(fib(build), np.arange(13))
    for (source, destination), links in np.ndenumerate(hops):
        path, outcome = SinglePackets(build, destination).minimal_path(source)
        assert (path[0], path[-1], len(path) - 1, outcome) == (source, destination, links, links)


def test_a_missing_row_loses_the_pairs_behind_it() -> None:
    build = polarfly_build(3)
    none = no_route(build.tables.routes.egress)
    report = verify(with_egress(build, {(0, 5): none}))
    lost = 156 - report.delivered
    assert lost >= 1
    assert not report.passed
    assert SinglePackets(with_egress(build, {(0, 5): none}), 5).minimal_path(0) == ([0], LOST)
    assert any(
        f.source == 0 and f.destination == 5 and f.fault == "no route" for f in report.faults
    )


def test_two_switches_that_send_to_each_other_loop() -> None:
    build = polarfly_build(3)
    far, egress = build.wiring.far, build.tables.routes.egress
    u = 5
    v = int(far[u, 0])
    back = int(np.flatnonzero(far[v] == u)[0])
    d = next(d for d in range(13) if d not in (u, v) and egress[u, d] != 0)
    broken = with_egress(build, {(u, d): 0, (v, d): back})
    report = verify(broken)
    assert report.loops >= 2
    assert all(fault.fault.startswith("looped") for fault in report.faults)
    assert SinglePackets(broken, d).minimal_path(u).links_or_fault == LOOPED
    assert len(SinglePackets(broken, d).minimal_path(u).switches) == MOST_HOPS + 1


def test_a_detour_is_delivered_but_not_minimal() -> None:
    build = polarfly_build(5)
    far, egress = build.wiring.far, build.tables.routes.egress
    s, d = 7, 20
    minimal_class = int(egress[s, d])
    other = next(
        k
        for k in range(int((far[s] >= 0).sum()))
        if k != minimal_class and egress[far[s, k], d] != np.flatnonzero(far[far[s, k]] == s)[0]
    )
    report = verify(with_egress(build, {(s, d): other}))
    assert report.delivered == report.pairs
    assert report.minimal < report.pairs
    assert not report.passed
    assert report.max_hops == 3
    assert "3 hops, 2 are enough" in {fault.fault for fault in report.faults}


@pytest.mark.parametrize("beyond", [0, 1, 7])
def test_a_class_on_a_port_without_a_cable_is_found(beyond: int) -> None:
    """A host's port, and numbers after the last port."""
    build = polarfly_build(3)
    port = build.tables.classes.port.copy()
    last = build.wiring.far_by_port().shape[1] - 1
    port[4, 1] = last + beyond if beyond else build.wiring.host_port[4, 0]
    broken = replace(build, tables=replace(build.tables, classes=Classes.minimal(port)))
    if not beyond:
        report = verify(broken)
        assert not report.passed
        assert "sent to a port without a cable" in {fault.fault for fault in report.faults}
    d = int(np.flatnonzero(build.tables.routes.egress[4] == 1)[0])
    assert SinglePackets(broken, d).minimal_path(4) == ([4], UNCABLED)


def test_delivery_at_another_switch_is_a_fault() -> None:
    build = polarfly_build(3)
    here = local(build.tables.routes.egress)
    broken = with_egress(build, {(2, 9): here})
    assert SinglePackets(broken, 9).minimal_path(2) == ([2], MISDELIVERED)
    assert minimal_hops(fib(broken), np.array([9]))[2, 0] == MISDELIVERED
    report = verify(broken)
    assert not report.passed
    assert {fault.fault for fault in report.faults} == {"delivered at another switch"}


def test_a_switch_that_does_not_deliver_its_own_prefix_is_found() -> None:
    build = polarfly_build(3)
    none = no_route(build.tables.routes.egress)
    report = verify(with_egress(build, {(6, 6): none}))
    assert report.delivered == 156 - 12


def test_aggregates_stand_in_where_no_exact_row_does() -> None:
    """Three switches in a line; 0 reaches 2 by an aggregate over 1 and 2."""
    nothing, here = 254, 255
    routes = Routes(
        prefix=np.array([[0, 1, 3], [0, 1, 2], [0, 2, 3]], np.int32),
        egress=np.array([[here, nothing, 0], [0, here, 1], [0, here, 0]], np.uint8),
        aggregate=np.array([-1, 3, 3], np.int32),
    )
    build = polarfly_build(3)
    tables = replace(
        build.tables,
        routes=routes,
        classes=Classes.minimal(np.array([[1, 0], [1, 2], [1, 0]], np.int32)),
    )
    cables = np.array([[-1, 1, -1], [-1, 0, 2], [-1, 1, -1]], np.int32)
    hops = minimal_hops(Fib.of(tables, cables), np.arange(3))
    assert hops.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize("seed", range(2))
def test_distances_are_those_of_networkx(seed: int) -> None:
    graph = networkx.gnm_random_graph(40, 60, seed=seed)
    ours = Graph.from_edges(40, np.array(graph.edges))
    found = distances(neighbour_table(ours), np.arange(40))
    shallow = distances(neighbour_table(ours), np.arange(40), depth=2)
    for s in range(40):
        reached = networkx.single_source_shortest_path_length(graph, s)
        assert found[s].tolist() == [reached.get(d, BEYOND) for d in range(40)]
        assert (shallow[s][found[s] <= 2] == found[s][found[s] <= 2]).all()
        assert (shallow[s][found[s] > 2] == BEYOND).all()


@pytest.mark.parametrize("value", [8, 100, 253])
def test_a_value_that_is_no_class_is_found(value: int) -> None:
    build = polarfly_build(7)
    broken = with_egress(build, {(9, 18): value})
    assert SinglePackets(broken, 18).minimal_path(9) == ([9], UNCABLED)
    assert not verify(broken).passed
