"""Patterns where speeds and numbers of hosts differ, against hosts that are counted one by one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.optimum import DirectedLinks, concurrent_flow, optimum
from compilers.evaluation.pattern_traffic import pattern_traffic
from compilers.evaluation.saturation import LinkLoads, saturations, throughput
from compilers.evaluation.traffic import PATTERNS
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from tests.compilers.evaluation.test_guarantee import compiled, explained, uneven
from tests.compilers.evaluation.test_least_load import by_edges

COUNTS = {0: 4, 5: 3, 6: 2, 7: 0}
CrossingPairs = dict[tuple[int, int], float]


def hosts_of(counts: dict[int, int]) -> NDArray[np.int64]:
    """The switch of each host."""
    return np.repeat(np.arange(13), [counts.get(v, 1) for v in range(13)])


def flows(traffic: Traffic, unit: float) -> CrossingPairs:
    ends = zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True)
    return dict(zip(ends, (traffic.amount * unit).tolist(), strict=True))


@pytest.mark.parametrize(("speed", "share"), [(25, 1.0), (100, 0.25)])
def test_hosts_of_a_quarter_of_the_speed_get_four_times_as_much(speed: int, share: float) -> None:
    """Minimal paths of a permutation whose pairs share a link, with four hosts a switch."""
    build = uneven(dict.fromkeys(range(13), 4), (100, speed))
    (found,) = saturations(build, ("tornado",))
    (even,) = saturations(build, ("tornado",), hosts=4)
    assert found.minimal.share == pytest.approx(min(1.0, even.minimal.share * 100 / speed))
    uniform = saturations(build, ("perm1hop",))[0].minimal
    assert uniform.share == pytest.approx(share)


def test_a_slow_link_is_full_before_others() -> None:
    build = uneven({}, (100, 100))
    loads = LinkLoads.of(build, "uniform")
    hops, rates = loads.fluid.forwarding, HostRates.of(build)
    hot = int(loads.minimal.argmin() if loads.minimal.min() > 0 else loads.minimal.nonzero()[0][0])
    capacity = loads.capacity.copy()
    capacity[hot] = loads.minimal[hot] / 2
    slow = replace(loads, capacity=capacity).saturation(loads.minimal)
    assert slow.share == pytest.approx(0.5)
    assert slow.hottest == (hot // hops.arcs_a_switch, hops.far_arc[hot] // hops.arcs_a_switch)
    assert rates.largest_host_rate_sum == 100


def test_the_cables_of_a_bond_carry_their_speeds_together() -> None:
    bond = {"name": "bond{}", "count": 3, "role": "fabric", "speed": 100, "parallel": 2}
    host = {"name": "h{}", "count": 1, "role": "host", "speed": 100}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 2},
        "inventory": {
            "node_types": {"leaf": {"ports": [bond, host]}},
            "generate": {"type": "leaf"},
        },
    }
    rates = HostRates.of(compile_fabric(load_fabric(spec)))
    assert set(rates.link_rate[rates.link_rate > 0].tolist()) == {200}
    assert rates.largest_host_rate_sum == 100


def test_each_host_sends_to_all_of_other_switches_alike() -> None:
    build, switch = uneven(COUNTS), hosts_of(COUNTS)
    expected: CrossingPairs = defaultdict(float)
    for one in switch.tolist():
        others = switch[switch != one].tolist()
        for other in others:
            expected[one, other] += 1 / len(others)
    rates = HostRates.of(build)
    found = flows(pattern_traffic(build, "uniform", rates, 0), rates.largest_host_rate_sum)
    assert found == pytest.approx(dict(expected))


@pytest.mark.parametrize("pattern", ["hosts", "reverse", "tornado", "perm2hop", "longest"])
def test_no_host_of_a_permutation_sends_or_takes_more_than_it_can(pattern: str) -> None:
    build, rates = uneven(COUNTS), HostRates.of(uneven(COUNTS))
    found = flows(pattern_traffic(build, pattern, rates, 1), rates.largest_host_rate_sum)
    counts = np.bincount(hosts_of(COUNTS), minlength=13)
    for end in (0, 1):
        used = np.zeros(13)
        for pair, rate in found.items():
            used[pair[end]] += rate
        assert (used <= counts + 1e-9).all()
        assert not used[7]
    if pattern in ("tornado", "perm2hop", "longest"):
        assert all(rate == min(counts[list(pair)]) for pair, rate in found.items())


def test_the_share_is_that_of_every_path_of_every_host() -> None:
    build = uneven(COUNTS)
    rates, by_hand = HostRates.of(build), explained(build)
    for pattern in ("uniform", "hosts", "tornado"):
        sent = flows(pattern_traffic(build, pattern, rates, 0), rates.largest_host_rate_sum)
        loads = (sum(rate * load[pair] for pair, rate in sent.items()) for load in by_hand.values())
        taken = np.zeros(13)
        for (_, destination), rate in sent.items():
            taken[destination] += rate
        full = (taken / np.maximum(1, np.bincount(hosts_of(COUNTS), minlength=13))).max()
        found = throughput(build, pattern).emitted
        assert found.share == pytest.approx(1 / max(1.0, full, *loads))


def test_all_hosts_alike_have_the_traffic_of_the_pattern() -> None:
    build = uneven(dict.fromkeys(range(13), 2), (100, 50))
    for pattern in ("uniform", "hosts", "shuffle", "hotspot"):
        found = pattern_traffic(build, pattern, HostRates.of(build), 3)
        expected = PATTERNS[pattern](build.topology, 2, 3)
        assert flows(found, 1.0) == pytest.approx(flows(expected, 1.0))


@pytest.mark.parametrize("pattern", ["tornado", "perm1hop"])
@pytest.mark.parametrize("fabric", ["polarfly q=3", "polarstar q=2 supernode=complete degree=2"])
def test_the_optimum_is_the_linear_program_over_edges(fabric: str, pattern: str) -> None:
    build = compiled(fabric, "balance: minimal", 4)
    found = throughput(build, pattern)
    traffic = PATTERNS[pattern](build.topology, 1, 0)
    assert found.optimum_exact
    assert found.optimum == pytest.approx(min(1, 1 / (4 * by_edges(build.topology, traffic))))


def test_without_time_the_optimum_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    build = compiled("polarfly q=3", "balance: minimal", 4)
    exact = throughput(build, "tornado")
    monkeypatch.setattr("compilers.evaluation.optimum.MOST_SWITCHES", 12)
    bound = throughput(build, "tornado")
    assert not bound.optimum_exact
    assert exact.optimum_exact
    assert bound.optimum is not None
    assert exact.optimum is not None
    assert bound.optimum > exact.optimum >= exact.minimal.share


def test_a_slower_link_leaves_less_for_the_best_routing() -> None:
    """Two switches with a link of half the speed between them, and a way round."""
    ring = DirectedLinks(np.array([0, 1, 1, 2, 2, 0]), np.array([1, 0, 2, 1, 0, 2]), np.ones(6))
    traffic = Traffic.of(np.array([0]), np.array([1]), 2.0)
    assert concurrent_flow(3, traffic, ring, 1.0) == pytest.approx(1.0)
    slow = replace(ring, capacity=np.array([0.5, 1, 1, 1, 1, 1]))
    assert concurrent_flow(3, traffic, slow, 1.0) == pytest.approx(0.75)
    graph = compiled("polarfly q=2").topology.graph
    assert optimum(graph, traffic, slow, 0.5, 0.5).share == 0.5
