"""Simulated packets that are marked: their paths and loads as by hand, saturation as by theorem."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from compilers.demand.traffic_matrix import Traffic
from compilers.tables.build import Build
from extensions.simulation.build_simulation import simulate_build
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError
from tests.compilers.routing.makers import loads_by_hand, marked, paths_by_hand

LONG = {"period": 5_000}
ROOM = {"vcs": 9, "buffer": 288, "scheme": "valley"}
"""Three virtual channels in each of the three channels that marks need."""


@cache
def half_hosts(q: int, protect: str) -> Build:
    """A fabric of q + 1 links a switch and half as many hosts, made once for all tests."""
    return marked(q, protect, hosts=(q + 1) // 2)


def measured(
    q: int, traffic: Traffic, family: str = "polarfly", protect: str = "none", **settings: object
) -> Measurement:
    network = SimulatedNetwork.of(marked(q, protect, family=family), 1)
    given = SimulationSettings(**settings)  # type: ignore[arg-type]
    found = Measurement.of(network, HostTraffic.of(traffic, network.switches, 1), given, 0.2)
    found.point()
    return found


@pytest.mark.parametrize(
    ("family", "q", "protect", "level"),
    [
        ("polarfly", 4, "none", "packet"),
        ("polarfly", 4, "none", "flit"),
        ("oft", 3, "node", "packet"),
    ],
)
def test_every_link_gets_what_it_gets_by_hand(
    family: str, q: int, protect: str, level: str
) -> None:
    """In an OFT with repair, in which a search has split classes, too."""
    ends = np.flatnonzero(marked(q, family=family).topology.endpoints)
    order = np.random.default_rng(7).permutation(ends)
    traffic = Traffic.of(ends, order)
    found = measured(q, traffic, family, protect, level=level, scheme="single", **LONG)
    by_hand, net = loads_by_hand(family, q), found.network
    packets = found.state.carried_flits / 4
    sent = 0.2 / 4 * (found.settings.last - found.settings.warmup)
    for arc in np.flatnonzero(net.far_arc >= 0).tolist():
        link = arc // net.ports, int(net.far_arc[arc]) // net.ports
        mean = sent * by_hand[link][ends, order].sum()
        assert abs(packets[arc] - mean) < 5 * mean**0.5 + 2


@pytest.mark.parametrize("level", ["packet", "flit"])
@pytest.mark.parametrize("pair", [(5, 9), (5, 0)])
def test_lengths_come_as_often_as_their_shares(pair: tuple[int, int], level: str) -> None:
    paths = paths_by_hand("polarfly", 4)[pair]
    expected: Counter[int] = Counter()
    for path, share in paths.items():
        expected[len(path) - 1] += share  # type: ignore[assignment]
    hops = measured(4, Traffic.of(*np.array(pair)[:, None]), level=level, **LONG).state.hops
    for length, count in enumerate(hops.tolist()):
        share = float(expected[length] or Fraction(0))
        assert abs(count / hops.sum() - share) <= 5 * (share / hops.sum()) ** 0.5


@pytest.mark.parametrize("level", ["packet", "flit"])
def test_a_flow_keeps_its_path_behind_the_next_switch(level: str) -> None:
    seen = set()
    for d in (0, 1, 2, 3, 4, 10, 11):
        found = measured(4, Traffic.of(np.array([5]), np.array([d])), level=level, flows=1)
        (length,) = np.flatnonzero(found.state.hops)
        assert np.count_nonzero(found.state.carried_flits[found.network.far_arc >= 0]) == length
        seen.add(length)
    assert len(seen) > 1


LATE = pytest.mark.long


@pytest.mark.parametrize(
    ("q", "below", "above", "pattern"),
    [
        (7, 0.45, 0.49, "tornado"),
        pytest.param(7, 0.45, 0.49, "permutation", marks=LATE),
        pytest.param(13, 0.46, 0.51, "tornado", marks=LATE),
    ],
)
def test_it_saturates_where_throughput_says(
    q: int, below: float, above: float, pattern: str
) -> None:
    """.462 at q = 7, .480 at q = 13."""
    build = half_hosts(q, "none")
    settings = settings_for(build, [below, above], options=ROOM | {"drain": 1_000})
    held, lost = simulate_build(build, pattern, 0, settings).points
    assert held.sustained
    assert not lost.sustained
    assert lost.accepted < above * 0.975


def test_adaptive_packets_leave_the_minimal_path_only_where_others_wait() -> None:
    build = half_hosts(5, "none")
    settings = settings_for(build, [0.02, 0.4], options={"routing": "adaptive"} | ROOM)
    idle, busy = simulate_build(build, "perm1hop", 0, settings).points
    assert idle.mean_hops == 1
    assert busy.sustained  # minimal paths carry .33
    assert 1 < busy.mean_hops < 3


@pytest.mark.parametrize(("protect", "least", "most"), [("link", 0, 8), ("none", 50, 5_000)])
def test_dead_links_lose_what_is_on_them_and_others_go_round(
    protect: str, least: int, most: int
) -> None:
    build = half_hosts(5, protect)
    fail = [(f"3-{build.wiring.far[3, 0]}", 2_001)]
    settings = settings_for(build, [0.3], fail=fail, options={"scheme": "single"})
    (point,) = simulate_build(build, "uniform", 0, settings).points
    assert least <= point.lost <= most
    assert point.deadlock == ()


def test_as_many_channels_as_were_proved() -> None:
    """With a link down one more than the three without failures."""
    build = half_hosts(5, "link")
    broken = [(f"3-{build.wiring.far[3, 0]}", 2_001)]
    few = settings_for(
        build, [0.1], fail=broken, options={"vcs": 2, "buffer": 64, "scheme": "valley"}
    )
    with pytest.raises(InputError, match="required 4 virtual channels for scheme valley"):
        simulate_build(build, "uniform", 0, few)
