"""Latency over load for exhibits: fabrics simulated by their emitted tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from compilers.evaluation.traffic import PATTERNS, between_groups
from compilers.expansion.growth_report import GrowthReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.papers.kept_points import kept_point
from extensions.simulation.build_simulation import settings_for, with_channels
from extensions.simulation.latency_curve import LatencyCurve, Simulated, simulate
from extensions.simulation.load_point import LoadPoint
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork

LOADS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)


class Look(NamedTuple):
    """Loads and windows of a curve for a look."""

    loads: tuple[float, ...] = (0.1, 0.5, 0.9)
    warmup: int = 500
    period: int = 200
    periods: int = 4
    drain: int = 300

    def windows(self) -> dict[str, int]:
        """For `SimulationSettings`."""
        return {name: value for name, value in self._asdict().items() if name != "loads"}


A_LOOK = Look()


FARTHEST = 3
"""Links between switches of an adversarial pattern: the diameter of the networks that it is for."""
ROUTES: dict[str, tuple[Mapping[str, str], str]] = {
    "minimal": ({}, "minimal"),
    "all minimal": ({"balance": "ecmp"}, "emitted"),
    "adaptive": ({"balance": "ugal-pf", "adjacent": "bounce"}, "adaptive"),
}
"""By name: the routing of a fabric, and the ways that its packets take."""


@dataclass(frozen=True, slots=True)
class PaperFabric:
    """A network with hosts, and the routes of its packets.

    topology: family and parameters, as in a spec. hosts: of a switch. routes: of `ROUTES`. group:
    switches of a supernode, group or pod, 0 without. grown: clusters added, as for `expand`.
    """

    topology: Mapping[str, int | str | None]
    hosts: int
    routes: str
    group: int = 0
    grown: str = ""

    def build(self) -> Build:
        """Compiled; the last one is held."""
        routing = ROUTES[self.routes][0]
        spec = {"name": "simulated", "topology": dict(self.topology), "routing": dict(routing)}
        build = _compiled(json.dumps(spec))
        return GrowthReport.of_clusters(build, self.grown).build if self.grown else build

    def title(self, pattern: str) -> str:
        """All that a point depends on but its load, for the name of a file."""
        parts = [*map(str, self.topology.values()), self.grown.replace(":", ""), str(self.hosts)]
        return "-".join([*filter(None, parts), self.routes.replace(" ", "-"), pattern])

    def ways(self) -> str:
        """Of packets, for `SimulationSettings`."""
        return ROUTES[self.routes][1]


@lru_cache(maxsize=1)
def _compiled(spec: str) -> Build:
    return compile_fabric(load_fabric(json.loads(spec)), None)


def polarfly_curve(q: int, pattern: str, routes: str, quick: bool) -> LatencyCurve:
    """The curve of ER_q with (q + 1)/2 hosts a switch, adaptively with four links to neighbours.

    Args:
        q: its order.
        pattern: of traffic.
        routes: of `ROUTES`.
        quick: fewer loads and shorter windows.
    """
    fabric = PaperFabric({"family": "polarfly", "q": q}, (q + 1) // 2, routes)
    return simulated_curve(fabric, pattern, quick)


def simulated_curve(
    fabric: PaperFabric,
    pattern: str,
    quick: bool,
    look: Look = A_LOOK,
) -> LatencyCurve:
    """The curve of a network; of the whole size, each point is kept as soon as it is there.

    Args:
        fabric: what is simulated.
        pattern: of traffic; `adversarial` is between groups.
        quick: with the loads and windows of `look`.
        look: fewer loads, shorter windows.
    """
    if quick:
        found = _prepared(fabric, pattern, look.loads, look.windows())
        return simulate(*found)
    prepared = cache(lambda: _prepared(fabric, pattern, LOADS, {}))

    def point(load: float) -> LoadPoint:
        network, traffic, settings = prepared()
        return simulate(network, traffic, replace(settings, loads=(load,))).points[0]

    name = fabric.title(pattern)
    return LatencyCurve(tuple(kept_point(name, load, point) for load in LOADS))


def _prepared(
    fabric: PaperFabric, pattern: str, loads: tuple[float, ...], windows: Mapping[str, int]
) -> Simulated:
    build = fabric.build()
    topology, hosts = build.topology, fabric.hosts
    if pattern == "adversarial" and fabric.group:
        traffic = between_groups(topology, fabric.group, FARTHEST, seed=0)
    else:
        traffic = PATTERNS[pattern](topology, hosts, 0)
    network = SimulatedNetwork.of(build, hosts)
    settings = settings_for(build, loads, 0, (), {"ways": fabric.ways(), **windows})
    flows = HostTraffic.of(traffic, network.switches)
    return Simulated(network, flows, with_channels(build, network, settings))


def accepted(curve: LatencyCurve) -> float:
    """The largest accepted load."""
    return max(point.accepted for point in curve.points)
