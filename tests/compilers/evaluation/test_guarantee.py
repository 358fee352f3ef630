"""The guaranteed throughput: against `explain`, every permutation, and traffic that is sent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from compilers.evaluation.crossings import IntermediateCrossings, TableCrossings
from compilers.evaluation.guarantee import guarantee
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.saturation import saturations
from compilers.evaluation.worst_traffic import (
    best_transport,
    dual_prices,
    unit_assignment,
    worst_traffic,
)
from compilers.forwarding.link_crossings import CrossingPairs, LinkCrossings, add_pair, merge_pairs
from compilers.forwarding.link_orbits import orbit_representatives
from compilers.forwarding.returning_packets import bounds_by_symmetry, split_where_packets_return
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from polarfab.output.guarantee_output import traffic_csv

Reals = NDArray[np.float64]
FLY, STAR = "polarfly q=3", "polarstar q=2 supernode=complete degree=2"
CASES = [
    (FLY, "balance: minimal"),
    (FLY, "balance: compact-valiant, adjacent: bounce, minimal_share: .25"),
    (FLY, "balance: spread"),
    (FLY, "balance: valiant"),
    ("pn q=2", "balance: ecmp"),
    ("oft q=2", "balance: spread"),
    (STAR, "balance: compact-valiant"),
    ("fat-tree k=4", "balance: ecmp, transit: ecmp"),
    ("jellyfish nodes=8 degree=3", "balance: ecmp, transit: ecmp"),
]


@cache
def compiled(fabric: str, policy: str = "balance: minimal", hosts: int = 1) -> Build:
    family, *words = fabric.split()
    parameters = dict(word.split("=") for word in words)
    topology = {"family": family} | {k: int(v) if v.isdigit() else v for k, v in parameters.items()}
    routing = dict(word.split(": ") for word in policy.split(", "))
    spec = {"name": "lab", "topology": topology, "routing": routing, "hosts_per_node": hosts}
    return compile_fabric(load_fabric(spec))


def explained(build: Build) -> dict[tuple[int, int], Reals]:
    """By link, float64[S, S]: the share of what s sends to d that crosses it, by all its paths."""
    order = build.tables.switches
    ends = np.flatnonzero(build.topology.endpoints).tolist()
    load: dict[tuple[int, int], Reals] = defaultdict(lambda: np.zeros((order, order)))
    for s, d in product(ends, ends):
        if s != d:
            found = explain(build, s, d)
            paths = zip((found.minimal, *found.alternates), found.weights, strict=True)
            for path, weight in paths:
                for link in pairwise(path):
                    load[link][s, d] += weight / sum(found.weights)
    return load


def peak(loads: list[Reals]) -> float:
    """The most that a permutation loads a link with."""
    return max(load[linear_sum_assignment(load, maximize=True)].sum() for load in loads)


@pytest.mark.parametrize(("fabric", "policy"), CASES)
def test_it_is_what_the_explained_paths_give(fabric: str, policy: str) -> None:
    build = compiled(fabric, policy)
    by_hand = explained(build)
    found = guarantee(build)
    assert found.share == pytest.approx(min(1, 1 / peak([*by_hand.values()])))
    assert found.link is not None
    sent = sum(
        flow.rate * by_hand[found.link][flow.source, flow.destination] for flow in found.traffic
    )
    assert found.share == pytest.approx(min(1, 1 / sent))
    for end in ("source", "destination"):
        switches = [getattr(flow, end) for flow in found.traffic]
        assert len(set(switches)) == len(switches)


@pytest.mark.parametrize(("fabric", "policy"), [CASES[i] for i in (1, 2, 3, 5, 8)])
def test_bounds_are_no_less_than_any_traffic_loads(fabric: str, policy: str) -> None:
    build = compiled(fabric, policy)
    crossings = (
        IntermediateCrossings(build)
        if build.forwarding.intermediates
        else TableCrossings(LinkCrossings.of(build))
    )
    ends = np.flatnonzero(build.topology.endpoints)
    arcs, rate = crossings.arcs, np.arange(len(ends)) % 3 + 1.0
    for hosts in (np.ones(len(ends)), rate):
        sends = np.zeros(crossings.size[0])
        sends[ends] = hosts
        most = crossings.bounds(arcs, sends, hosts).upper
        copies = np.repeat(np.arange(len(ends)), hosts.astype(np.int64))
        for bound, load in zip(most, crossings.shares(arcs)[:, ends], strict=True):
            assert peak([load[np.ix_(copies, copies)]]) <= bound + 1e-9


@pytest.mark.parametrize(("fabric", "policy"), CASES[3:5] + CASES[-4:-1])
def test_a_large_fabric_whose_links_have_bounds_gets_the_same(
    fabric: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = compiled(fabric, policy)
    exact = guarantee(build)
    monkeypatch.setattr("compilers.evaluation.guarantee.MOST_UNBOUNDED", 0)
    monkeypatch.setattr("compilers.evaluation.guarantee.SAMPLE_STEP", 5)
    bounded = guarantee(build)
    assert bounded.share == pytest.approx(exact.share)
    assert len(bounded.traffic) == len(exact.traffic)


def test_a_fabric_whose_repair_ports_break_its_symmetry_gets_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bounds before and after a packet returns are added; they are no less than the load."""
    build = compiled(STAR, "balance: spread, protect: node")
    crossings = LinkCrossings.of(build)
    parts = split_where_packets_return(crossings)
    unlike, unlike_outward = (
        len(orbit_representatives(build.topology, part)) for part in (crossings, parts[0])
    )
    assert unlike_outward < unlike == len(crossings.arcs)
    outward, returned = (part.loads(part.arcs) for part in parts)
    loads, ends = crossings.loads(crossings.arcs), np.ones(len(build.topology.endpoints))
    assert returned.any()
    assert np.allclose(outward + returned, loads, rtol=0, atol=1e-12)
    most = bounds_by_symmetry(build.topology, crossings, ends, ends)
    peaks = np.array([peak([load]) for load in loads])
    assert (peaks <= most + 1e-9).all()
    for name, value in (("MOST_UNBOUNDED", 0), ("LEAST_ORBIT_SIZE", len(loads))):
        monkeypatch.setattr(f"compilers.evaluation.guarantee.{name}", value)
    assert guarantee(build).share == pytest.approx(1 / peaks.max())


def test_pairs_that_fill_their_room_are_merged() -> None:
    pairs = CrossingPairs.buffer(3, 2, 1)
    entries = [(s, d, 1 / (1 + s + d + n)) for n in range(9) for s in range(3) for d in range(2)]
    for s, d, share in entries:
        add_pair(pairs, s, d, share)
    merge_pairs(pairs)
    begins, destination, share, *_ = pairs.merged
    assert [sorted(destination[b:e].tolist()) for b, e in pairwise(begins)] == [[0, 1]] * 3
    for s, (begin, end) in enumerate(pairwise(begins)):
        for d, merged in zip(destination[begin:end], share[begin:end], strict=True):
            assert merged == pytest.approx(sum(x for a, b, x in entries if (a, b) == (s, d)))


@pytest.mark.parametrize("seed", range(3))
def test_units_are_assigned_as_the_linear_program_says(seed: int) -> None:
    random = np.random.default_rng(seed)
    share, units = random.random((6, 6)) * (random.random((6, 6)) > 0.5), random.integers(1, 5, 6)
    loads = [
        float((share[flows[0], flows[1]] * flows[2]).sum())
        for flows in (unit_assignment(share, units), best_transport(share, units / 1.0))
    ]
    assert loads[0] == pytest.approx(loads[1])


@pytest.mark.parametrize(
    ("fabric", "policy"),
    [
        ("polarfly q=2", "compact-valiant"),
        ("polarfly q=2", "valiant"),
        ("hyperx sides=2x2x2", "spread"),
    ],
)
def test_no_permutation_of_seven_or_eight_switches_gets_less(fabric: str, policy: str) -> None:
    build = compiled(fabric, f"balance: {policy}")
    ends = np.flatnonzero(build.topology.endpoints)
    every = np.array([*permutations(ends)])
    most = max(load[ends, every].sum(axis=1).max() for load in explained(build).values())
    assert guarantee(build, 3).share == pytest.approx(1 / (3 * most))


@pytest.mark.parametrize(
    ("policy", "share"),
    [
        ("balance: minimal", 0.1667),
        ("balance: compact-valiant", 0.1852),
        ("balance: compact-valiant, disjoint: none", 0.1923),
        ("balance: compact-valiant, adjacent: bounce, minimal_share: .25", 0.1778),
        ("balance: spread", 0.4454),
    ],
)
def test_known_guarantees_at_q_5(policy: str, share: float) -> None:
    assert guarantee(compiled("polarfly q=5", policy), 3).share == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize("policy", ["balance: compact-valiant", "balance: valiant"])
def test_the_traffic_gets_just_that_as_a_pattern(policy: str, tmp_path: Any) -> None:
    build = compiled(FLY, policy, hosts=2)
    found, file = guarantee(build), tmp_path / "worst.csv"
    file.write_text(traffic_csv(build, found))
    (seen,) = saturations(build, (str(file),))
    assert seen.emitted.share == pytest.approx(found.share)
    assert seen.emitted.hottest in (found.link, seen.emitted.hottest)


def uneven(counts: dict[int, int], speeds: tuple[int, int] | None = None) -> Build:
    """PolarFly q = 3 with compact-valiant and so many hosts at some switches, one at the others."""
    fabric, host = ({"speed": speed} for speed in speeds) if speeds else ({}, {})
    leaf = {
        "ports": [
            {"name": "a{}", "count": 4, "role": "fabric", **fabric},
            {"name": "h{}", "count": 4, "role": "host", **host},
        ]
    }
    nodes = [{"name": f"n{v}", "type": "leaf", "host_count": counts.get(v, 1)} for v in range(13)]
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "routing": {"balance": "compact-valiant"},
        "hosts_per_node": 4,
        "inventory": {"node_types": {"leaf": leaf}, "nodes": nodes},
    }
    return compile_fabric(load_fabric(spec))


def test_hosts_that_are_not_alike_get_what_an_assignment_of_hosts_says(tmp_path: Any) -> None:
    build = uneven({0: 4, 5: 3, 6: 2})
    found, hosts = guarantee(build), HostRates.of(build).host_rate_sum.astype(np.int64)
    assert hosts.tolist() == [4, 1, 1, 1, 1, 3, 2, *[1] * 6]
    copies = np.repeat(np.arange(13), hosts)
    loads = [load[np.ix_(copies, copies)] for load in explained(build).values()]
    assert found.share == pytest.approx(1 / peak(loads))
    (tmp_path / "worst.csv").write_text(traffic_csv(build, found))
    (seen,) = saturations(build, (str(tmp_path / "worst.csv"),))
    assert seen.emitted.share == pytest.approx(found.share)


def test_switches_without_hosts_send_nothing(tmp_path: Any) -> None:
    """What the others send is as it is, not one host each."""
    build = uneven({0: 0, 6: 0} | {v: 3 for v in range(13) if v not in (0, 6)})
    found, ends = guarantee(build), [v for v in range(13) if v not in (0, 6)]
    loads = [load[np.ix_(ends, ends)] for load in explained(build).values()]
    assert found.share == pytest.approx(1 / (3 * peak(loads)))
    assert {flow.rate for flow in found.traffic} == {3.0}
    (tmp_path / "worst.csv").write_text(traffic_csv(build, found))
    (seen,) = saturations(build, (str(tmp_path / "worst.csv"),))
    assert seen.emitted.share == pytest.approx(found.share)


def test_links_of_four_times_the_hosts_speed_let_them_send_four_times_as_much() -> None:
    slow, fast = (guarantee(uneven({}, (speed, 25))) for speed in (25, 100))
    assert slow.share == pytest.approx(guarantee(uneven({})).share)
    assert fast.share == pytest.approx(min(1, 4 * slow.share))
    assert {flow.rate for flow in fast.traffic} == {25.0}


@pytest.mark.parametrize("q", [2, 3])
def test_one_free_hop_without_a_mark_guarantees_no_more_than_the_theorem(q: int) -> None:
    """Whatever the shares: q/((q - 1)·p), as neighbours of u may send to neighbours of v."""
    build = compiled(
        f"polarfly q={q}", "balance: compact-valiant, adjacent: bounce, disjoint: none"
    )
    classes, random = build.tables.classes, np.random.default_rng(q)
    for most in (2, 5, 200):
        there = np.array(classes.weight) > 0
        weight = random.integers(1, most, there.shape) * there
        weighted = replace(classes, weight=weight.astype(np.uint16))
        some = replace(build, tables=replace(build.tables, classes=weighted))
        assert guarantee(some, 2).share <= q / ((q - 1) * 2)


@pytest.mark.parametrize("m", [0.1, 0.5, 1])
def test_minimal_paths_cost_what_the_theorem_says(m: float) -> None:
    """No more than one over p·((1 - m)·(q - 1)/q + 2·m), and just that where all are minimal."""
    free = "adjacent: bounce, disjoint: none"
    build = compiled("polarfly q=3", f"balance: compact-valiant, {free}, minimal_share: {m}")
    most = 1 / (2 * ((1 - m) * 2 / 3 + 2 * m))
    assert guarantee(build, 2).share <= most * 1.001
    if m == 1:
        assert guarantee(build, 2).share == pytest.approx(most)


@pytest.mark.parametrize(
    "hosts", [[2, 2, 2, 2, 2, 2], [1, 2, 3, 1, 2, 4], [1.5, 2.25, 0.1, 3, 1, 2]], ids=str
)
def test_prices_pay_for_every_pair_and_add_up_to_the_worst_load(hosts: list[float]) -> None:
    ends, count = np.arange(6), np.ones(6, np.int64)
    rates = HostRates(ends, ends, np.array(hosts) / 1.0, np.ones((6, 1)), count)
    random = np.random.default_rng(6)
    for _ in range(20):
        share = random.integers(0, 9, (6, 6)) * (random.random((6, 6)) < 0.4) / 8
        worst = worst_traffic(share, rates)
        paid = dual_prices(share, worst, rates)
        assert (paid.source[:, None] + paid.destination >= share - 1e-12).all()
        total = paid.source @ rates.host_rate_sum + paid.destination @ rates.host_rate_sum
        assert total == pytest.approx(worst.load)
