"""Packets to a switch that is down, against a walker in plain Python, a packet at a time."""

import re
from itertools import combinations, permutations

import numpy as np
import pytest

from compilers.proof.explanation import explain, find_failure
from compilers.proof.failures import dead_switches
from compilers.proof.failures.dead_switches import dead_switch_traffic
from compilers.proof.walks.delivery import verify
from tests.compilers.proof.oracle import Oracle
from tests.compilers.routed import routed


def links_taken(oracle, source, first, destination):
    """Links that a packet with a TTL of 64 takes from its source, by this port first."""
    at, came, out, ttl = source, 0, first, 64
    for links in range(64):
        if links:
            out = oracle.transit(at, came, destination)
        if ttl <= 1 or out is None:
            return links
        ttl -= 1
        minimal = oracle.port[at][oracle.number(at, destination)]
        if oracle.cable[at, minimal][0] == destination and out != minimal:
            ttl //= 2
        at, came = oracle.cable[at, out]
    raise AssertionError("more than 63 links")


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(
    ("family", "parameters", "most"),
    [
        ("polarfly", {"q": 3}, 11),
        ("polarfly", {"q": 4}, 11),
        ("polarstar", {"q": 2, "supernode": "inductive-quad", "degree": 0}, 14),
        ("oft", {"q": 2}, 14),
    ],
)
def test_each_repair_halves_what_is_left(family, parameters, most, spread):
    build = routed(family, spread=spread, protect="node", **parameters)
    taken = []
    for dead in Oracle(build, set(), set()).ends:
        oracle = Oracle(build, set(), {dead})
        for source in set(oracle.ends) - {dead}:
            shares = oracle.shares(source, oracle.number(source, dead))
            live = [port for port in shares if oracle.is_up(source, port)]
            alternates = live or [oracle.transit(source, 0, dead)]
            taken += [links_taken(oracle, source, first, dead) for first in alternates]
    found = dead_switch_traffic(build)
    assert (found.most, found.mean) == (max(taken), pytest.approx(np.mean(taken)))
    assert found.most <= most + spread


def test_a_ttl_of_64_arrives_whatever_two_links_are_down():
    """docs/concepts/failures.md says as 9 or more, without bounces and marks."""
    oracle = Oracle(routed(q=3, protect="link"))
    cables = sorted({tuple(sorted((s, far))) for (s, _), (far, _) in oracle.cable.items()})
    left = []
    for dead in combinations(cables, 2):
        oracle.fail(map(frozenset, dead))
        for s, d in permutations(oracle.ends, 2):
            at, came, ttl = s, 0, 64
            while at != d:
                port = oracle.transit(at, came, d)
                assert port is not None
                minimal = oracle.port[at][oracle.number(at, d)]
                ttl = (ttl - 1) >> (oracle.cable[at, minimal][0] == d and port != minimal)
                assert ttl > 0
                at, came = oracle.cable[at, port]
            left.append(ttl)
    assert min(left) >= 9


def test_of_many_packets_some_are_followed(monkeypatch):
    build = routed(q=5, spread=True, protect="node")
    every = dead_switch_traffic(build)
    monkeypatch.setattr(dead_switches, "FOLLOWED_UP_TO", 500)
    some = dead_switch_traffic(build)
    assert (every.switches, some.switches) == (31, 2 * 3)
    assert 2 < some.mean <= some.most <= every.most
    assert dead_switch_traffic(build) == some != dead_switch_traffic(build, seed=2)


def test_the_report_on_dead_nodes_says_it():
    build = routed(q=3, protect="node")
    assert verify(build, failures=["node"]).to_dead_switch == dead_switch_traffic(build)
    assert verify(build, failures=["link"]).to_dead_switch is None
    assert verify(routed(q=3), failures=["node"]).to_dead_switch is None


def test_explain_tells_how_far_packets_to_a_dead_switch_go():
    build = routed(q=3, protect="node")
    taken = []
    for source in range(1, build.tables.switches):
        (path,) = explain(build, source, 0, [find_failure(build, "0")]).failing
        said = re.fullmatch(
            r"switch 0 is down; packets to it take up to (\d+) links .*", path.fault
        )
        taken.append(int(said[1]))
    oracle = Oracle(build, set(), {0})
    first = [oracle.transit(source, 0, 0) for source in range(1, build.tables.switches)]
    assert taken == [links_taken(oracle, s, port, 0) for s, port in enumerate(first, 1)]
