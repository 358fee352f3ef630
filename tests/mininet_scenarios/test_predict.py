"""Predicted hops and link loads against a packet that is walked step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.walk import LOOPED, TTL
from mininet_scenarios.predict import Prediction


def walk(build, source, destination):
    """Ports a packet leaves by, one switch after the other, and whether it arrives."""
    routes, port, cables = build.tables.routes, build.tables.classes.port, build.wiring.cables()
    at, used = source, []
    while at != destination and len(used) < TTL:
        leaves = int(port[at, routes.egress[at, destination]])
        used.append((at, leaves))
        at = int(cables[at, leaves])
    return used, at == destination


def brute_force(build, packets):
    loads = np.zeros((len(packets), build.wiring.cables().shape[1]), np.int64)
    for source, destination in np.argwhere(packets):
        for switch, port in walk(build, source, destination)[0]:
            loads[switch, port] += packets[source, destination]
    return loads


def spoiled(build, switch, destination, egress):
    table = build.tables.routes.egress.copy()
    table[switch, destination] = egress
    routes = replace(build.tables.routes, egress=table)
    return replace(build, tables=replace(build.tables, routes=routes))


@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_loads_of_all_pairs(compiled, q):
    build = compiled(q)
    packets = 2 * (1 - np.eye(build.tables.switches, dtype=np.int64))
    assert (Prediction.of(build).loads(packets) == brute_force(build, packets)).all()


@settings(max_examples=60, deadline=None)
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
            assert predicted.hops[source, end] == (len(used) if arrives else LOOPED)


def test_nothing_is_carried_where_nothing_is_sent(compiled):
    assert not Prediction.of(compiled(3)).loads(np.zeros((13, 13), np.int64)).any()
