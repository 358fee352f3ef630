"""Latency over load for exhibits: fabrics simulated by their emitted tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import inf
from typing import Any, NamedTuple

from compilers.drawing.plots import Panel
from compilers.evaluation.traffic import between_groups
from compilers.expansion.growth_report import GrowthReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.papers.kept_points import PointOf, kept_point
from extensions.simulation.build_simulation import network_for, settings_for, with_channels
from extensions.simulation.latency_curve import LatencyCurve, Simulated, latencies, simulate
from extensions.simulation.load_point import LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic

LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Of whole sizes, up to `BEYOND` that are not sustained."""
BEYOND, NEAR, ENOUGH = 2, 2, 10
"""Of whole sizes: at least so many more loads lie between the last sustained one and the next, each
halving the gap, and at least so many are simulated in all."""
DRAIN = 2_000
"""Most cycles that whole sizes wait for what was measured: no sustained load waits for 800."""
SEEDS = 5
"""Runs of each load of whole sizes; a load is sustained if it is in each of them."""


class Look(NamedTuple):
    """Loads and windows of a curve that is simulated quickly, for a look."""

    loads: tuple[float, ...] = (0.1, 0.4, 0.95)
    """The offered loads."""
    warmup: int = 200
    """Cycles before anything is measured."""
    period: int = 100
    """Cycles of a measured period."""
    periods: int = 2
    """How many periods are measured."""
    drain: int = 150
    """The most cycles to wait for packets that were measured."""

    def windows(self) -> dict[str, Any]:
        """For `SimulationSettings`."""
        return {name: value for name, value in self._asdict().items() if name != "loads"}


A_LOOK = Look()


FARTHEST = 3
"""Links between switches of an adversarial pattern: the diameter of the networks that it is for."""
BY_TABLE, BY_ANY = {"paths": "table"}, {"paths": "shortest"}
ROUTES: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "MIN": ({}, {"routing": "minimal"}),
    "MIN, all shortest paths": ({}, {"routing": "shortest", **BY_ANY}),
    "UGAL": ({}, {"routing": "ugal", **BY_TABLE}),
    "UGAL, all shortest paths": ({}, {"routing": "ugal", **BY_ANY}),
    "UGAL_PF": ({}, {"routing": "ugal-pf", **BY_TABLE}),
    "UGAL_PF, bounces": (
        {"balance": "compact-valiant", "adjacent": "bounce", "disjoint": "none"},
        {"routing": "adaptive"},
    ),
}
"""By name: the routing of a fabric, and the simulated routing of its packets."""
SPLIT = ("dragonfly", "megafly")
"""Families whose packets do not take any free channel in the papers: those of BookSim's
`dragonflynew` change theirs behind a global link, PolarStar's §9.4 counts theirs. Here `valley`."""


@dataclass(frozen=True, slots=True)
class PaperFabric:
    """A network with hosts, and the routes of its packets."""

    topology: Mapping[str, int | str | None]
    """The family and its parameters, as in a spec."""
    hosts: int
    """Hosts at each switch that has some."""
    routes: str
    """How packets are routed, one of `ROUTES`."""
    group: int = 0
    """Switches of a supernode, group or pod; 0 where there is none."""
    grown: str = ""
    """The clusters that were added, as for `expand`; "" for none."""

    def build(self) -> Build:
        """Compiled; the last one is held."""
        routing = ROUTES[self.routes][0]
        spec = {"name": "simulated", "topology": dict(self.topology), "routing": dict(routing)}
        build = _compiled(json.dumps(spec))
        return GrowthReport.of_clusters(build, self.grown).build if self.grown else build

    def text(self) -> str:
        """As JSON: `PaperFabric(**json.loads(text))` is it again."""
        return json.dumps(asdict(self))

    def title(self) -> str:
        """`polarfly q=31 16 hosts a switch`."""
        family, *values = (
            f"{value}" if name == "family" else f"{name}={value}"
            for name, value in self.topology.items()
        )
        words = " ".join(filter(None, (family, *values, self.grown)))
        return f"{words} {self.hosts} hosts a switch"

    def simulated_routing(self) -> dict[str, str]:
        """Of packets, for `SimulationSettings`."""
        split = {"scheme": "valley"} if self.topology["family"] in SPLIT else {}
        return {**ROUTES[self.routes][1], **split}


@lru_cache(maxsize=1)
def _compiled(spec: str) -> Build:
    return compile_fabric(load_fabric(json.loads(spec)))


def setup_of(fabrics: Iterable[PaperFabric], quick: bool) -> tuple[str, ...]:
    """What was simulated, a line each: switches and windows, then the networks and their routes."""
    settings = SimulationSettings(**A_LOOK.windows()) if quick else SimulationSettings()
    loads = A_LOOK.loads if quick else LOADS
    seeds = f"each of the seeds 0 to {SEEDS - 1}"
    near = (
        ""
        if quick
        else f", up to the second that is not sustained, and {NEAR} or more near saturation"
    )
    lines = [
        f"Switches: {settings.vcs} virtual channels, any free one is taken; {settings.buffer} flits"
        f" a port; packets of {settings.packet} flits, made at random (Bernoulli).",
        f"Loads {', '.join(f'{load:g}' for load in loads)}{near}; {settings.warmup:,} cycles of"
        f" warm-up, {settings.periods} × {settings.period} measured; sustained means: for these"
        f" {settings.periods * settings.period:,} cycles, with {'seed 0' if quick else seeds}.",
    ]
    routes: dict[str, dict[str, None]] = {}
    for fabric in fabrics:
        split = " channels split by valley" if "scheme" in fabric.simulated_routing() else ""
        routes.setdefault(fabric.title() + split, {})[fabric.routes] = None
    return (*lines, *(f"{network}: {'; '.join(names)}." for network, names in routes.items()))


def deadlocks_of(curves: Iterable[tuple[tuple[str, ...], LatencyCurve]]) -> tuple[str, ...]:
    """A line that names the curves with a deadlock, and from which load on; none without one."""
    first = {
        " ".join(key): next(point.offered for point in curve.points if point.deadlock)
        for key, curve in curves
        if curve.deadlock
    }
    listed = "; ".join(f"{name} from {load:g}" for name, load in first.items())
    return (f"Deadlocks, loads offered: {listed}.",) if listed else ()


def panels_of(curves: Mapping[tuple[str, str], LatencyCurve]) -> tuple[Panel, ...]:
    """Of curves by pattern and name: the latency of each pattern, then what was accepted."""
    drawn = {
        pattern: latencies([(name, c) for (p, name), c in curves.items() if p == pattern], pattern)
        for pattern, _ in curves
    }
    taken = (replace(panels[1], title=f"{pattern}: accepted") for pattern, panels in drawn.items())
    return (*(panels[0] for panels in drawn.values()), *taken)


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
        prepared = _prepared(fabric, pattern, look.loads, look.windows())
        return simulate(*prepared)

    def point(load: float) -> LoadPoint:
        runs = (PointOf(fabric.text(), pattern, load, seed) for seed in range(SEEDS))
        return LoadPoint.of_runs([kept_point(run, partial(simulated_point, run)) for run in runs])

    points = list[LoadPoint]()
    for load in LOADS:
        points.append(point(load))
        if sum(not measured.sustained for measured in points) == BEYOND:
            break
    curve = LatencyCurve(tuple(points))
    for _ in range(max(NEAR, ENOUGH - len(points))):
        low = curve.saturation or 0.0
        above = [measured.offered for measured in curve.points if measured.offered > low]
        if not above:
            break
        more = point(round((low + min(above)) / 2, 4))
        points = sorted((*points, more), key=lambda measured: measured.offered)
        curve = LatencyCurve(tuple(points))
    return curve


def simulated_point(what: PointOf) -> LoadPoint:
    """One run of the whole size."""
    network, traffic, settings = _whole(what.fabric, what.pattern)
    one_run = replace(settings, loads=(what.load,), seed=what.seed)
    return simulate(network, traffic, one_run).points[0]


@lru_cache(maxsize=1)
def _whole(fabric: str, pattern: str) -> Simulated:
    return _prepared(PaperFabric(**json.loads(fabric)), pattern, LOADS, {"drain": DRAIN})


def _prepared(
    fabric: PaperFabric, pattern: str, loads: tuple[float, ...], windows: Mapping[str, int]
) -> Simulated:
    build = fabric.build()
    topology, hosts = build.topology, fabric.hosts
    if pattern == "adversarial" and fabric.group:
        groups = between_groups(topology, fabric.group, FARTHEST, seed=0)
        traffic = HostTraffic.of(groups, topology.graph.order, hosts)
    else:
        traffic = HostTraffic.of_pattern(pattern, topology, hosts, 0)
    settings = settings_for(build, loads, 0, (), {**fabric.simulated_routing(), **windows})
    network = network_for(build, hosts, settings)
    settings = with_channels(build, network, settings)
    return Simulated(network, traffic, settings)


def most_accepted(curve: LatencyCurve) -> float:
    """The largest throughput of the loads that were simulated, also above saturation."""
    return max(point.accepted for point in curve.points)


def sustained(curve: LatencyCurve) -> float:
    """The largest load that is sustained; 0 for none."""
    return curve.saturation or 0.0


def latency_at(curve: LatencyCurve, load: float) -> float:
    """The mean latency at an offered load; endless where no packet came, or the curve has ended."""
    latency_by_load = {measured.offered: measured.mean_latency for measured in curve.points}
    latency = None if load > max(latency_by_load) else latency_by_load[load]
    return inf if latency is None else latency
