"""Predicted hops and link loads against a packet that is walked step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.routing.plane_choices import with_plane_alternates
from compilers.routing.split_classes import split_direct
from compilers.tables.fib import LOOPED, MOST_HOPS
from mininet_scenarios.verdict.predict import Prediction
from tests.compilers.routed import routed, with_alternates


def walk(build, source, destination):
    """Ports a packet leaves by, one switch after the other, and whether it arrives."""
    routes, port, cables = (
        build.tables.routes,
        build.tables.classes.port,
        build.wiring.far_by_port(),
    )
    at, used = source, []
    while at != destination and len(used) < MOST_HOPS:
        leaves = int(port[at, routes.egress[at, destination]])
        used.append((at, leaves))
        at = int(cables[at, leaves])
    return used, at == destination


def brute_force(build, packets):
    loads = np.zeros((len(packets), build.wiring.far_by_port().shape[1]), np.int64)
    for source, destination in np.argwhere(packets):
        for switch, port in walk(build, source, destination)[0]:
            loads[switch, port] += packets[source, destination]
    return loads


def spoiled(build, switch, destination, egress):
    table = build.tables.routes.egress.copy()
    table[switch, destination] = egress
    routes = replace(build.tables.routes, egress=table)
    return replace(build, tables=replace(build.tables, routes=routes))


@pytest.mark.parametrize("q", [2, 5])
def test_loads_of_all_pairs(compiled, q):
    build = compiled(q)
    packets = 2 * (1 - np.eye(build.tables.switches, dtype=np.int64))
    assert (Prediction.of(build).loads(packets) == brute_force(build, packets)).all()


@settings(max_examples=30)
@given(data=st.data())
def test_any_traffic_and_one_wrong_route(compiled, data):
    switch, destination = data.draw(st.permutations(range(13)))[:2]
    build = compiled(3)
    classes = np.flatnonzero(build.tables.classes.port[switch]).tolist()
    build = spoiled(build, switch, destination, data.draw(st.sampled_from(classes)))
    packets = np.zeros((13, 13), np.int64)
    for _ in range(data.draw(st.integers(0, 8))):
        pair = tuple(data.draw(st.permutations(range(13)))[:2])
        packets[pair] = data.draw(st.integers(1, 2**40))
    predicted = Prediction.of(build)
    assert (predicted.loads(packets) == brute_force(build, packets)).all()
    for source in range(13):
        for end in range(13):
            used, arrives = walk(build, source, end)
            assert predicted.first_path_hops[source, end] == (len(used) if arrives else LOOPED)


def spread(build):
    forwarding = with_alternates()
    tables = with_plane_alternates(
        split_direct(build.tables, build.wiring), build.wiring, forwarding
    )
    return replace(build, balance="compact-valiant", forwarding=forwarding, tables=tables)


def paths(build, source, destination):
    """The links of every path that a packet from a host may take."""
    classes, cables = build.tables.classes, build.wiring.far_by_port()
    egress = int(build.tables.routes.egress[source, destination])
    ports = [classes.port[source, egress], *classes.alternate[source, egress]]
    for port in map(int, ports):
        if port:
            yield {(source, port), *walk(build, int(cables[source, port]), destination)[0]}


@pytest.mark.parametrize("q", [2, 4])
def test_alternates_bound_hops_and_loads(compiled, q):
    build = spread(compiled(q))
    order = build.tables.switches
    packets = np.random.default_rng(q).integers(0, 4, (order, order))
    np.fill_diagonal(packets, 0)
    predicted = Prediction.of(build)
    fewest, most = predicted.fewest_hops, predicted.most_hops
    bounds = np.zeros((2, order, build.wiring.far_by_port().shape[1]), np.int64)
    for s, d in np.argwhere(1 - np.eye(order, dtype=int)):
        links = list(paths(build, s, d))
        assert (fewest[s, d], most[s, d]) == (min(map(len, links)), max(map(len, links)))
        for link in set.union(*links):
            bounds[1][link] += packets[s, d]
            bounds[0][link] += packets[s, d] * all(link in taken for taken in links)
    least, limit = predicted.load_bounds(packets)
    assert (least == bounds[0]).all()
    assert (limit == bounds[1]).all()


def test_without_alternates_the_bounds_meet(compiled):
    predicted = Prediction.of(compiled(3))
    packets = 1 - np.eye(13, dtype=np.int64)
    least, limit = predicted.load_bounds(packets)
    assert (least == limit).all()
    assert (limit == predicted.loads(packets)).all()
    assert (predicted.fewest_hops == predicted.most_hops).all()
    assert (predicted.fewest_hops == predicted.first_path_hops).all()


@pytest.mark.parametrize("marks", [False, True])
def test_one_wrong_port_is_as_in_tables_that_have_it(marks):
    """Only the states of its switch are asked for again."""
    build = routed(q=3, spread=True, marks=marks, protect="link")
    right = Prediction.of(build)
    for switch, port in ((5, 1), (5, 4), (9, build.wiring.host_port[9].max())):
        wrong = right.with_port(switch, 2, int(port))
        whole = Prediction.of(wrong.build)
        for word in ("first_path_hops", "fewest_hops", "most_hops"):
            assert (getattr(wrong, word) == getattr(whole, word)).all(), word
        given_up = (one.tabulated.given_up_intermediate for one in (wrong, whole))
        assert np.array_equal(*given_up)
        for word in ("count", "link", "is_marked", "share"):
            hops = getattr(wrong.tabulated.next_hops, word)
            assert np.array_equal(hops, getattr(whole.tabulated.next_hops, word))
        assert not np.array_equal(wrong.first_path_hops, right.first_path_hops)
