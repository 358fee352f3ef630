"""Simulated latencies beside BookSim's, as it printed them.

BookSim 2 of the PolarFly authors (IntelLabs/PolarFly, commit 015a80d, compiled with -O3) with their
`polarflyconfig`: 4 virtual channels of 32 flits, packets of 4 flits, separable_input_first
allocators, internal_speedup 2, credit_delay 2; sample_period 500, seed 1. Uniform traffic was
changed to leave a router's own hosts out, permutations were read from a file, as `PATTERNS` has
them. Routes `min`, `ugall4_pf`, which takes any neighbour (`disjoint: none`), and `ugall`, which
draws one switch, here with a threshold of 0.
"""

from __future__ import annotations

import pytest

from extensions.simulation.build_simulation import network_for
from extensions.simulation.latency_curve import simulate
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from polarfab.fabric import Fabric

Q7 = {"family": "polarfly", "q": 7}
Q13 = {"family": "polarfly", "q": 13}
STAR = {"family": "polarstar", "q": 5, "supernode": "inductive-quad", "degree": 3}
STATIC = {
    ("uniform", 0.1): 14.394,
    ("uniform", 0.5): 20.687,
    ("uniform", 0.7): 29.424,
    ("uniform", 0.9): 66.865,  # the mean of seeds 1, 2, 3
    ("tornado", 0.05): 13.993,
    ("tornado", 0.1): 15.435,
    ("permutation", 0.1): 16.175,
}
ADAPTIVE = {
    (7, "perm2hop", 0.1): 16.051,
    (7, "perm2hop", 0.2): 21.221,
    (7, "perm2hop", 0.3): 51.560,
    (7, "perm2hop", 0.4): 56.112,
    (7, "perm2hop", 0.5): 61.776,
    (7, "perm2hop", 0.55): 87.390,
    (7, "uniform", 0.5): 20.665,
    (7, "uniform", 0.8): 38.358,
    (13, "perm2hop", 0.1): 20.682,
    (13, "perm2hop", 0.3): 52.917,
    (13, "uniform", 0.6): 24.725,
}
UGAL = {
    ("tornado", 0.1): 16.864,
    ("tornado", 0.3): 22.679,
    ("tornado", 0.4): 33.614,
    ("uniform", 0.5): 23.326,
}
QUICK_ADAPTIVE = {(7, "perm2hop", 0.3), (7, "perm2hop", 0.4), (7, "uniform", 0.8)}
Q5 = {"family": "polarfly", "q": 5}
BY_LEGS = {
    (5, "minimal", "uniform", 0.5): 20.194,
    (5, "minimal", "uniform", 0.9): 61.680,
    (5, "ugal", "uniform", 0.5): 25.242,
    (5, "ugal", "tornado", 0.4): 25.306,
    (5, "valiant", "uniform", 0.3): 28.492,
    (5, "valiant", "tornado", 0.4): 41.354,
    (7, "ugal", "tornado", 0.4): 27.470,
    (7, "valiant", "uniform", 0.4): 44.595,
}
"""By `min`, `ugallnew`, which draws four switches, and `val`; seed 1."""
LARGER = {(13, 7, 0.3): 17.085, (13, 7, 0.6): 25.029, (9, 3, 0.3): 19.461, (9, 3, 0.6): 28.401}
ROUTING = {"balance": "compact-valiant", "disjoint": "none"}
SATURATION = {"uniform": 0.95, "tornado": 0.1, "permutation": 0.1}


def latency(topology: dict, hosts: int, pattern: str, load: float, **settings: object) -> float:
    spec = {"name": "lab", "topology": topology, "routing": ROUTING}
    build = Fabric.from_spec(spec).build
    asked = SimulationSettings(loads=(load,), **settings)
    network = network_for(build, hosts, asked)
    traffic = HostTraffic.of_pattern(pattern, build.topology, hosts, 0)
    (point,) = simulate(network, traffic, asked).points
    assert point.sustained
    return point.mean_latency


@pytest.mark.parametrize(("case", "theirs"), STATIC.items())
def test_packets_of_minimal_routes_take_as_long(case: tuple[str, float], theirs: float) -> None:
    assert latency(Q7, 4, *case, routing="minimal") == pytest.approx(theirs, rel=0.05)


def test_flits_take_as_long() -> None:
    case = "uniform", 0.5
    ours = latency(Q7, 4, *case, routing="minimal", level="flit")
    assert ours == pytest.approx(STATIC[case], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("case", "theirs"), STATIC.items())
def test_flits_of_minimal_routes_take_as_long(case: tuple[str, float], theirs: float) -> None:
    ours = latency(Q7, 4, *case, routing="minimal", level="flit")
    assert ours == pytest.approx(theirs, rel=0.03)


@pytest.mark.parametrize("case", sorted(QUICK_ADAPTIVE))
def test_adaptive_packets_take_as_long(case: tuple[int, str, float]) -> None:
    assert adaptive(case, "packet") == pytest.approx(ADAPTIVE[case], rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("level", ["packet", "flit"])
@pytest.mark.parametrize(("case", "theirs"), ADAPTIVE.items())
def test_all_adaptive_packets_take_as_long(
    case: tuple[int, str, float], theirs: float, level: str
) -> None:
    assert adaptive(case, level) == pytest.approx(theirs, rel=0.1)


def adaptive(case: tuple[int, str, float], level: str) -> float:
    q, pattern, load = case
    topology, hosts = (Q7, 4) if q == 7 else (Q13, 7)
    return latency(topology, hosts, pattern, load, routing="adaptive", level=level)


@pytest.mark.parametrize(("case", "theirs"), UGAL.items())
def test_packets_of_ugal_take_as_long(case: tuple[str, float], theirs: float) -> None:
    ours = latency(Q7, 4, *case, routing="ugal", samples=1)
    assert ours == pytest.approx(theirs, rel=0.1)


@pytest.mark.parametrize(("case", "theirs"), BY_LEGS.items())
def test_packets_by_default_channels_take_as_long(
    case: tuple[int, str, str, float], theirs: float
) -> None:
    q, routing, pattern, load = case
    topology, hosts = (Q5, 3) if q == 5 else (Q7, 4)
    ours = latency(topology, hosts, pattern, load, routing=routing, paths="table")
    assert ours == pytest.approx(theirs, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize(("case", "theirs"), UGAL.items())
def test_flits_of_ugal_take_as_long(case: tuple[str, float], theirs: float) -> None:
    ours = latency(Q7, 4, *case, routing="ugal", samples=1, level="flit")
    assert ours == pytest.approx(theirs, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize(("case", "theirs"), LARGER.items())
def test_larger_fabrics_take_as_long(case: tuple[int, int, float], theirs: float) -> None:
    radix, hosts, load = case
    topology = STAR if radix == 9 else Q13
    ours = latency(topology, hosts, "uniform", load, routing="minimal", level="flit")
    assert ours == pytest.approx(theirs, rel=0.05)


@pytest.mark.parametrize(("pattern", "theirs"), SATURATION.items())
def test_minimal_routes_saturate_where_theirs_do(pattern: str, theirs: float) -> None:
    build = Fabric.from_spec({"name": "lab", "topology": Q7}).build
    network = SimulatedNetwork.of(build, 4)
    traffic = HostTraffic.of_pattern(pattern, build.topology, 4, 0)
    loads = (theirs - 0.05, theirs, theirs + 0.05, theirs + 0.1)
    asked = SimulationSettings(loads=tuple(x for x in loads if x <= 1), scheme="single")
    assert simulate(network, traffic, asked).saturation == pytest.approx(theirs, abs=0.051)
