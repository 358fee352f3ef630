"""Simulated packets: times by formula, queues by theory, nothing lost, deadlock found."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np
import pytest

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from extensions.simulation import simulate as simulate_fabric
from extensions.simulation.build_simulation import network_for
from extensions.simulation.latency_curve import LatencyCurve, simulate
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import HostTraffic
from polarfab.fabric import Fabric

MINIMAL = {"family": "polarfly", "q": 7}


def made(topology: dict, **more: object) -> Build:
    return Fabric.from_spec({"name": "lab", "topology": topology, **more}).build


@pytest.fixture(scope="module")
def q7() -> Build:
    return made(MINIMAL)


@pytest.fixture(scope="module")
def spread() -> Build:
    return made(MINIMAL, routing={"balance": "compact-valiant", "protect": "link"})


def curve(build: Build, hosts: int, traffic: str | Traffic, **settings: object) -> LatencyCurve:
    if isinstance(traffic, str):
        flows = HostTraffic.of_pattern(traffic, build.topology, hosts, 0)
    else:
        flows = HostTraffic.of(traffic, build.tables.switches, hosts)
    given = SimulationSettings(**settings)
    return simulate(network_for(build, hosts, given), flows, given)


@pytest.mark.parametrize(("pattern", "hops"), [("perm1hop", 1), ("perm2hop", 2)])
@pytest.mark.parametrize("length", [1, 4])
def test_an_idle_network_takes_eight_cycles_and_three_a_link(
    q7: Build, pattern: str, hops: int, length: int
) -> None:
    # BookSim: 8 + 3 · links for packets of 4 flits; each flit less is a cycle less.
    (point,) = curve(q7, 1, pattern, loads=(0.002,), packet=length).points
    assert point.packets > 20
    assert point.median_latency == 8 + 3 * hops - (4 - length)
    assert point.mean_hops == hops
    assert point.mean_latency == pytest.approx(point.median_latency, abs=0.02)


@pytest.mark.parametrize("length", [1, 3])
def test_packets_of_any_length_wait_as_flits_do(q7: Build, length: int) -> None:
    """The crossbar passes two flits a cycle, also where a packet is one or is odd."""
    packets, flits = (
        curve(q7, 4, "uniform", loads=(0.8,), packet=length, routing="minimal", level=level).points[
            0
        ]
        for level in ("packet", "flit")
    )
    assert packets.mean_latency == pytest.approx(flits.mean_latency, rel=0.05)


@pytest.mark.parametrize("level", ["packet", "flit"])
@pytest.mark.parametrize(("pattern", "hops"), [("perm1hop", 1), ("perm2hop", 2)])
def test_every_cycle_of_a_link_is_one_more(q7: Build, pattern: str, hops: int, level: str) -> None:
    settings = {"loads": (0.002,), "link": 12, "level": level}
    (point,) = curve(q7, 1, pattern, **settings).points
    assert point.median_latency == 8 + (2 + 12) * hops


@pytest.mark.parametrize("level", ["packet", "flit"])
def test_credits_come_back_over_the_link(q7: Build, level: str) -> None:
    """A buffer of 16 flits is free again a round trip later: that is what a long link carries."""
    settings = {"vcs": 1, "buffer": 16, "link": 30, "level": level, "loads": (1.0,)}
    (point,) = curve(q7, 1, "perm1hop", **settings).points
    assert point.accepted == pytest.approx(16 / (2 * 30 + 4), abs=0.04)


def test_links_are_as_long_as_their_cables(q7: Build) -> None:
    net = network_for(q7, 2, SimulationSettings(metres=0.3))
    cables = cables_of(q7.wiring, hardware_of(q7))
    assert len({*cables.length.tolist()}) > 2
    known = {}
    for arc in np.flatnonzero(net.far_arc >= 0):
        known[arc // net.ports, net.far_arc[arc] // net.ports] = net.delay[arc]
    assert len(known) == 2 * len(cables)
    for (u, v), length in zip(cables.ends.tolist(), cables.length.tolist(), strict=True):
        assert known[u, v] == known[v, u] == ceil(length / 0.3)
    assert (net.delay[net.far_arc < 0] == 1).all()


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_one_host_on_one_link_waits_as_theory_says(q7: Build, load: float) -> None:
    # Geo/D/1: a packet a cycle with probability p, D cycles each: the mean wait is
    # (D - 1) p D / (2 (1 - p D)); all queueing is in the host, as all links are alike.
    source = np.arange(57)
    match = PATTERNS["perm1hop"](q7.topology, 1, 0)
    assert sorted(match.source) == sorted(source)
    (point,) = curve(q7, 1, match, loads=(load,), warmup=4_000, period=10_000).points
    assert point.sustained
    assert point.mean_latency - 11 == pytest.approx(3 * load / (2 * (1 - load)), rel=0.06)


def test_many_hosts_on_one_link_wait_as_in_a_queue_of_fixed_service(q7: Build) -> None:
    # M/D/1 with service D = 4: the mean wait is D ρ / (2 (1 - ρ)), in whichever queue.
    hosts, busy = 64, 0.8
    one = Traffic.of(np.array([0]), np.array([int(q7.wiring.far[0, 0])]))
    settings = {"loads": (busy / hosts,), "warmup": 4_000, "period": 20_000, "scheme": "single"}
    (point,) = curve(q7, hosts, one, **settings).points
    assert point.sustained
    assert point.mean_latency - 11 == pytest.approx(4 * busy / (2 * (1 - busy)), rel=0.1)


def test_a_load_that_one_link_cannot_carry_is_not_sustained(q7: Build) -> None:
    # A fifth over the rate of one link, of 57: nearly all arrives, and soon, but latency grows.
    match = PATTERNS["perm1hop"](q7.topology, 2, 0)
    busiest = Traffic(match.source, match.destination, np.where(match.source == 0, 1.0, 0.5))
    for load, carried in ((0.4, True), (0.6, False)):
        (point,) = curve(q7, 2, busiest, loads=(load,)).points
        assert point.accepted > 0.98 * point.generated
        assert (point.lost, point.deadlock) == (0, ())
        assert point.sustained == carried


@pytest.mark.parametrize(("pattern", "hops"), [("perm1hop", 1), ("perm2hop", 2)])
def test_a_packet_is_in_a_buffer_for_a_cycle_a_switch_where_none_wait(
    q7: Build, pattern: str, hops: int
) -> None:
    (point,) = curve(q7, 1, pattern, loads=(0.1,)).points
    buffers = np.count_nonzero(q7.wiring.far >= 0) + 57
    flits = point.generated * 57 * (1 + hops)
    assert point.buffer_use * buffers * 128 == pytest.approx(flits, rel=0.02)


def test_buffers_hold_as_much_flit_by_flit(q7: Build) -> None:
    """Counted in each cycle there, here by when a packet comes and leaves."""
    used = [
        curve(q7, 4, "uniform", loads=(0.9,), level=level).points[0].buffer_use
        for level in ("packet", "flit")
    ]
    assert used[0] == pytest.approx(used[1], rel=0.3)


def test_a_load_without_a_packet_says_nothing(q7: Build) -> None:
    found = curve(q7, 1, "uniform", loads=(1e-9, 0.1))
    assert [point.sustained for point in found.points] == [False, True]
    assert found.saturation == 0.1
    assert curve(q7, 1, "uniform", loads=(1e-9,)).saturation is None


PATTERN_OF_EACH_KIND = ["uniform", "shuffle", "hotspot"]


@pytest.mark.parametrize("pattern", PATTERN_OF_EACH_KIND)
def test_every_packet_arrives_once(spread: Build, pattern: str) -> None:
    (point,) = curve(spread, 4, pattern, loads=(0.15,)).points
    assert (point.lost, point.deadlock) == (0, ())
    expected = point.generated * 2_000 / 4 * 57 * 4
    assert point.packets == pytest.approx(expected * _volume(spread, pattern))
    assert point.accepted == pytest.approx(point.generated, rel=0.02)


def _volume(build: Build, pattern: str) -> float:
    traffic = PATTERNS[pattern](build.topology, 4, 0)
    return float(traffic.amount.sum() / build.tables.switches)


def test_the_seed_is_all_that_chance_has(spread: Build) -> None:
    first, same, other = (
        curve(spread, 2, "uniform", loads=(0.4,), seed=seed).points for seed in (1, 1, 2)
    )
    assert first == same
    assert first != other


def test_alternates_carry_what_their_weights_say(spread: Build) -> None:
    loads = {"loads": (0.25,)}
    (minimal,) = curve(spread, 4, "perm2hop", routing="minimal", **loads).points
    (emitted,) = curve(spread, 4, "perm2hop", routing="emitted", **loads).points
    (adaptive,) = curve(spread, 4, "perm2hop", routing="adaptive", **loads).points
    assert minimal.mean_hops == 2
    assert not minimal.sustained  # throughput says 12.5 %
    weight = spread.tables.classes.weight.astype(float)
    share = weight[..., 0] / weight.sum(axis=2)
    assert emitted.sustained
    assert emitted.mean_hops == pytest.approx(3 - share[share < 1].mean(), abs=0.05)
    assert adaptive.sustained
    assert 2 < adaptive.mean_hops < emitted.mean_hops


@pytest.fixture(scope="module")
def bounced() -> Build:
    return made(MINIMAL, routing={"balance": "compact-valiant", "adjacent": "bounce"})


def test_a_longer_path_has_to_be_that_much_emptier(bounced: Build) -> None:
    """A path of 4 links in the place of one: by the packets that wait alone, too many take it."""
    settings = {"loads": (0.55,), "routing": "adaptive", "scheme": "single", "level": "flit"}
    (point,) = curve(bounced, 4, "perm1hop", **settings).points
    assert point.accepted > 0.45  # .21 unless weighed


def test_flows_stay_on_one_path_each(spread: Build) -> None:
    settings = {"loads": (0.05,), "routing": "emitted"}
    (packets,) = curve(spread, 1, "perm2hop", **settings).points
    (flows,) = curve(spread, 1, "perm2hop", flows=1, **settings).points
    assert packets.worst_latency > 14
    # A flow a host, so every path of a switch carries whole flows: more of it than of packets.
    assert flows.hottest_use > packets.hottest_use


def test_one_channel_stops_where_two_are_needed(q7: Build) -> None:
    settings = {"loads": (1.0,), "vcs": 1, "buffer": 8}
    found = curve(q7, 4, "uniform", scheme="single", **settings)
    cycle = found.deadlock
    assert len(cycle) > 2
    assert cycle[0] == cycle[-1]
    far = q7.wiring.far
    assert all(b in far[a] for a, b in pairwise(cycle))
    assert found.saturation is None
    apart = curve(q7, 4, "uniform", loads=(1.0,), vcs=2, buffer=16, channels=2)
    assert apart.deadlock == ()
    assert apart.points[0].accepted > 0.4


def test_links_that_go_down_lose_only_what_is_on_them() -> None:
    spec = {"name": "lab", "topology": MINIMAL, "routing": {"protect": "link"}}
    fabric = Fabric.from_spec(spec)
    given = {"pattern": "uniform", "loads": [0.8], "hosts": 4, "routing": "minimal"}
    (whole,) = simulate_fabric(fabric, **given).points
    (broken,) = simulate_fabric(fabric, **given, fail=[("3-8", 2_001)]).points
    assert whole.lost == 0
    assert 0 < broken.lost <= 8  # what two directions hold: no more than their wires and queues
    assert broken.mean_hops > whole.mean_hops
    (dead,) = simulate_fabric(fabric, **given, fail=[("5", 2_000)]).points
    assert dead.lost > 50  # all that goes to its hosts
