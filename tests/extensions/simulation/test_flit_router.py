"""The router of flits: stages by formula, the crossbar by theory, mistakes by their key."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.demand.traffic_matrix import Traffic
from extensions.simulation.build_simulation import network_for
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.flit_router import USUAL_ROUTER, FlitRouter
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic
from inventory.problems import InputError
from polarfab.fabric import Fabric

ROUTERS = {
    "": 2,
    "speedup=1": 4,
    "speedup=4": 1,
    "routing=0,speedup=1": 3,
    "routing=2,crossbar=5,credit=0,speedup=1,islip=2": 9,
}
"""Cycles of a head; the stages that take a step each are four."""


def measured(fabric: Fabric, traffic: HostTraffic, hosts: int, **given: object) -> Measurement:
    """Before its first cycle."""
    router = FlitRouter.read(str(given.pop("router", "")))
    load = float(given.pop("load", 0.01))  # type: ignore[arg-type]
    settings = SimulationSettings(level="flit", router=router, **given)  # type: ignore[arg-type]
    return Measurement.of(network_for(fabric.build, hosts, settings), traffic, settings, load)


@pytest.fixture(scope="module")
def q5() -> Fabric:
    return Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 5}}).compile()


@pytest.mark.parametrize(("router", "cycles"), ROUTERS.items())
@pytest.mark.parametrize(("length", "link"), [(1, 1), (4, 7)])
def test_an_idle_network_takes_a_router_and_a_link_a_hop(
    q5: Fabric, router: str, cycles: int, length: int, link: int
) -> None:
    """The packets of one host, few of which wait: two cycles into the network, one out of it."""
    assert FlitRouter.read(router).pipeline == cycles
    far = int(q5.build.wiring.far[0, 0])
    for goal in (far, next(s for s in range(1, 31) if s not in q5.build.wiring.far[0])):
        traffic = HostTraffic.of(Traffic.of(np.array([0]), np.array([goal])), 31, 1)
        run = measured(q5, traffic, 1, router=router, packet=length, link=link, load=0.004 * length)
        point = run.point()
        hops = 1 if goal == far else 2
        assert (point.packets > 2, point.mean_hops) == (True, hops)
        least = hops * (cycles + link) + 2 + cycles + 1 + length - 1
        assert (np.flatnonzero(run.state.latency)[0], point.median_latency) == (least, least)


@pytest.mark.parametrize(("end", "cycles"), [(0, 2 * 60 + 4), (1, 2 * 60 + 4 + 30)])
def test_credits_of_hosts_take_their_links_both_ways(q5: Fabric, end: int, cycles: int) -> None:
    """A router delays what it gets, a host does not: BookSim's round trips, of 16 flits each."""
    pair = 0, int(q5.build.wiring.far[0, 0])
    traffic = HostTraffic.of(Traffic.of(*np.array(pair)[:, None]), 31, 1)
    settings = SimulationSettings(level="flit", vcs=1, buffer=16, drain=0)
    settings = replace(settings, router=FlitRouter(credit=30))
    network = network_for(q5.build, 1, settings)
    network.delay[pair[end] * network.ports + network.links_a_switch] = 60
    point = Measurement.of(network, traffic, settings, 1.0).point()
    assert point.accepted == pytest.approx(16 / cycles, rel=0.03)


def test_a_crossbar_twice_as_fast_ends_head_of_line_blocking(tmp_path: Path) -> None:
    """Karol, Hluchyj and Morgan (1987): with one queue an input a switch carries .586."""
    leaves = range(1, 13)
    lines = [" ".join(f"router {each}" for each in (0, *leaves))]
    lines += [f"router {each} node {each - 1}" for each in leaves]
    (tmp_path / "star").write_text("\n".join(lines) + "\n")
    topology = {"family": "graph", "file": str(tmp_path / "star")}
    star = Fabric.from_spec({"name": "star", "topology": topology}).compile()
    traffic = HostTraffic.of_pattern("uniform", star.topology, 1, 0)
    given = {"vcs": 1, "packet": 32, "buffer": 256, "load": 1.0, "routing": "minimal"}
    one, two = (
        measured(star, traffic, 1, router=f"speedup={speedup}", drain=0, **given).point().accepted
        for speedup in (1, 2)
    )
    assert 0.5 < one < 0.66
    assert two > 0.85


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("speedups=2", "router: required one of routing, crossbar, credit, speedup, islip"),
        ("speedup=0", "router: required speedup= and 1 to 1,000, given speedup=0"),
        ("speedup=1,islip=1,speedup=2", "router: required speedup once, given speedup=1,islip"),
    ],
)
def test_mistakes_name_the_key(given: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        FlitRouter.read(given)


def test_packets_have_no_router(q5: Fabric) -> None:
    usual = settings_for(q5.build, options={"router": USUAL_ROUTER.text(whole=True)})
    assert usual.router == USUAL_ROUTER
    with pytest.raises(InputError, match="`level flit`, to choose a router"):
        settings_for(q5.build, options={"router": "speedup=1"})
