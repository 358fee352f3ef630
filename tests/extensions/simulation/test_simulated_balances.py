"""Simulated packets over intermediates and shared at every hop: lengths, loads and saturation."""

from __future__ import annotations

import pytest

from compilers.tables.build import Build
from extensions.simulation.build_simulation import simulate_build
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from polarfab.fabric import Fabric

VALIANT = {"balance": "valiant", "protect": "link"}
SHARED = {"balance": "ecmp", "transit": "ecmp", "protect": "link"}
POLARFLY, GRID = {"family": "polarfly", "q": 5}, {"family": "hyperx", "sides": "3x3"}


def made(topology: dict, routing: dict) -> Build:
    return Fabric.from_spec({"name": "lab", "topology": topology, "routing": routing}).build


def point(build: Build, pattern: str, load: float, hosts: int, **more: object):
    flows = HostTraffic.of_pattern(pattern, build.topology, hosts, 0)
    settings = SimulationSettings(loads=(load,), scheme="single", routing="emitted", **more)
    (found,) = simulate(SimulatedNetwork.of(build, hosts), flows, settings).points
    return found


@pytest.mark.parametrize("level", ["packet", "flit"])
def test_two_legs_are_as_long_as_all_intermediates_say(level: str) -> None:
    """Two uniform legs, the switch itself among the ends: twice the mean distance of all pairs."""
    build = made(POLARFLY, VALIANT)
    found = point(build, "tornado", 0.02, 1, level=level)
    near = 31 * 6 - 6  # links, each way: six switches are quadrics, with a link less
    mean = 2 * (near + 2 * (31 * 30 - near)) / 31**2
    assert found.mean_hops == pytest.approx(mean, rel=0.03)


def test_every_permutation_gets_half() -> None:
    """51 % of what hosts can send (`throughput`), where minimal routes give a third or less."""
    build = made(POLARFLY, VALIANT)
    assert point(build, "tornado", 0.4, 3).sustained
    assert not point(build, "tornado", 0.7, 3).sustained
    plain = made(POLARFLY, {"balance": "minimal"})
    assert not point(plain, "tornado", 0.4, 3).sustained


@pytest.mark.parametrize("level", ["packet", "flit"])
def test_paths_at_every_hop_are_shortest(level: str) -> None:
    build = made(GRID, SHARED)
    found = point(build, "uniform", 0.05, 1, level=level)
    assert found.mean_hops == pytest.approx((4 * 1 + 4 * 2) / 8, rel=0.03)


def test_a_dead_link_loses_nothing_that_comes_after() -> None:
    for topology, routing in ((POLARFLY, VALIANT), (GRID, SHARED)):
        build = made(topology, routing)
        ends = f"{build.wiring.names[0]}-{build.wiring.names[int(build.wiring.far[0, 0])]}"
        settings = settings_for(build, (0.1,), 0, ((ends, 2_000),), {"scheme": "single"})
        (found,) = simulate_build(build, "uniform", 1, settings).points
        assert found.sustained


def test_channels_are_those_of_both_legs() -> None:
    build = made(POLARFLY, VALIANT)
    settings = settings_for(build, (0.1,), 0, (), {"scheme": "valley", "vcs": 8})
    (found,) = simulate_build(build, "tornado", 1, settings).points
    assert found.sustained
