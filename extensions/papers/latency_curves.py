"""Latency over load for the figures of papers: compile a network, and simulate it load by load.

The exhibits of the PolarFly and PolarStar papers call `simulated_curve` with a `PaperFabric`, which
names a network and the routes of its packets. The network is simulated at the paper's size
(`WholeRuns`) or quickly (`QuickRuns`). At the paper's size each point is cached as soon as it is
computed (`result_cache`), and loads near saturation are added by bisection.

A load is *sustained* if the network delivers all that is offered. The saturation of a curve is
between its largest sustained load and the next larger one.

The module has four parts: how curves are simulated, networks and their routes, lines of an exhibit
that say what was simulated, and the simulation. The last functions take from a curve the values
that statements of a paper compare, such as `largest_accepted_load`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import inf, isnan, nan
from typing import Any, NamedTuple

from compilers.drawing.plots import Panel
from compilers.evaluation.traffic import between_groups
from compilers.expansion.growth_report import GrowthReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from extensions.papers.exhibit import PaperClaim, as_not_computed
from extensions.papers.result_cache import PointKey, cached_result, is_missing
from extensions.simulation.build_simulation import network_for, settings_for, with_channels
from extensions.simulation.latency_curve import (
    LatencyCurve,
    SimulationTask,
    latency_panels,
    simulate,
)
from extensions.simulation.load_point import LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic
from inventory.problems import InputError

# How curves are simulated

LOADS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""The loads of whole sizes by packets, up to the last one that is simulated (`MOST_OVERLOADS`)."""
MOST_OVERLOADS = 2
"""A refined curve ends after so many loads that the network does not sustain."""
LEAST_BISECTIONS = 2
"""The least number of loads that are added to a refined curve. Each halves the interval between the
largest sustained load and the next one."""
LEAST_LOADS = 10
"""The least number of loads of a refined curve, added ones included."""


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """How a curve is simulated at the paper's size."""

    loads: tuple[float, ...]
    """The offered loads."""
    seeds: int
    """The runs of each load. A load is sustained if it is sustained in each run."""
    settings: Mapping[str, Any]
    """Fields of `SimulationSettings`."""
    refined: bool = False
    """Whether loads are left out far above saturation, and added near it."""
    in_part: bool = False
    """Whether a file of cached results may lack some of this curve; the curve is then drawn without
    them."""

    def point_key(self, fabric: PaperFabric, pattern: str, load: float, seed: int) -> PointKey:
        """The key of a run of a network under a pattern."""
        return PointKey(fabric.text(), pattern, load, seed, json.dumps(self.settings))

    def words(self) -> tuple[str, str]:
        """A sentence on the switches, and one on the loads and cycles."""
        settings = SimulationSettings(**self.settings)
        added_loads = (
            f", up to the second that is not sustained, and {LEAST_BISECTIONS} or more near"
            " saturation"
            if self.refined
            else ""
        )
        seeds = f"each of the seeds 0 to {self.seeds - 1}" if self.seeds > 1 else "seed 0"
        return _setup_sentences(settings, self.loads, added_loads, seeds)


BY_PACKETS = WholeRuns(LOADS, 5, {"drain": 2_000}, refined=True)
"""Runs of packets that move as one. At sustained loads all measured packets arrive within 800
cycles, so 2,000 cycles of `drain` are enough to tell a load that is not sustained."""
NO_POINTS = "Too few points of this size were simulated."
"""The reason of a claim that is not computed for lack of simulated points."""
BY_FLITS = WholeRuns(
    (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95),
    1,
    {"level": "flit", "warmup": 600, "period": 200, "periods": 3, "drain": 600},
    in_part=True,
)
"""Runs of flits, in a third of the cycles: flits take about three times as long to simulate."""
BY_FLITS_LONGER = replace(
    BY_FLITS,
    settings={"level": "flit", "warmup": 600, "period": 500, "periods": 3, "drain": 1_000},
)
"""Runs of flits on adaptive routes, unless traffic is uniform. There latencies differ much. So, at
any load, the mean latency of the packets that have arrived still grows during the 600 measured
cycles of `BY_FLITS`."""
GAP = 0.1
"""The largest interval between the largest sustained load and the next one at which a curve in part
supports a statement on its saturation."""

LOAD_ERROR = 0.02
"""The difference of two simulated loads up to which their order is not decided: saturations of
flits differ as much from BookSim's (the evidence of `simulate`)."""
BY_ACCEPTED_LOAD = "by the largest accepted load"
"""The measure of a statement, in words."""
COMPARED_BY_ACCEPTED_LOAD = (
    "Unless a statement names another measure, networks are compared by the largest load that they"
    " accept, whether it is sustained or not."
)
"""A remark on statements of simulated figures."""
SAME_LOADS = "With one seed they are as near as saturations are to those of BookSim, .02."
"""The reason of a claim whose two loads differ by `LOAD_ERROR` at most."""


class QuickRuns(NamedTuple):
    """How a curve of a small network is simulated in seconds: few loads, few measured cycles."""

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
        """The measured cycles, as fields of `SimulationSettings`."""
        return {name: value for name, value in self._asdict().items() if name != "loads"}


QUICK_RUNS = QuickRuns()


# Networks and their routes


class CurveKey(NamedTuple):
    """A network that is simulated with a routing, under a traffic pattern."""

    pattern: str
    """The traffic pattern."""
    network: str
    """The short name of the network."""
    routing: str
    """How packets are routed, in a paper's words."""


FARTHEST = 3
"""The distance of switches in the adversarial pattern: the diameter of the networks it is for."""
BY_TABLE, BY_ANY = {"paths": "table"}, {"paths": "shortest"}
"""Settings of the simulation: packets take the one path of the tables, or any shortest path."""
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
"""By the name of the routes: the `routing` of the spec with which the network is compiled, and
settings of the simulation."""
VALLEY_FAMILIES = ("dragonfly", "megafly")
"""Families whose packets change channels in the papers: in BookSim's `dragonflynew` after a global
link; PolarStar's §9.4 counts the channels. Here the scheme `valley` is used."""


@dataclass(frozen=True, slots=True)
class PaperFabric:
    """A network with hosts, and the routes of its packets."""

    topology: Mapping[str, int | str | None]
    """The family and its parameters, as in a spec."""
    hosts: int
    """How many hosts each switch with hosts has."""
    routes: str
    """How packets are routed, one of `ROUTES`."""
    group: int = 0
    """How many switches a supernode, group or pod has; 0 if there are none."""
    grown: str = ""
    """The clusters that were added, as for `expand`; "" for none."""

    def build(self) -> Build:
        """The compiled network; the last one is kept in memory."""
        routing, _ = ROUTES[self.routes]
        spec = {"name": "simulated", "topology": dict(self.topology), "routing": dict(routing)}
        build = _compiled(json.dumps(spec))
        return GrowthReport.of_clusters(build, self.grown).build if self.grown else build

    def text(self) -> str:
        """The network as JSON, which `of_text` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> PaperFabric:
        """The network of `text`."""
        return cls(**json.loads(text))

    def title(self) -> str:
        """The network in words, such as `polarfly q=31 16 hosts a switch`."""
        family, *values = (
            f"{value}" if name == "family" else f"{name}={value}"
            for name, value in self.topology.items()
        )
        words = " ".join(filter(None, (family, *values, self.grown)))
        return f"{words} {self.hosts} hosts a switch"

    def simulated_routing(self) -> dict[str, str]:
        """How packets are routed, as fields of `SimulationSettings`."""
        _, settings = ROUTES[self.routes]
        changes_channels = self.topology["family"] in VALLEY_FAMILIES
        return {**settings, "scheme": "valley"} if changes_channels else dict(settings)


def by_flits(pattern: str, routes: str) -> WholeRuns:
    """How a curve of flits is simulated.

    Args:
        pattern: the traffic pattern.
        routes: how packets are routed, one of `ROUTES`.
    """
    adaptive = not routes.startswith("MIN")
    return BY_FLITS_LONGER if adaptive and pattern != "uniform" else BY_FLITS


@lru_cache(maxsize=1)
def _compiled(spec: str) -> Build:
    """The build of a spec, which is JSON."""
    return compile_fabric(load_fabric(json.loads(spec)))


# Lines that say what was simulated


def setup_of(
    fabrics: Iterable[PaperFabric], quick: bool, runs: WholeRuns = BY_PACKETS
) -> tuple[str, ...]:
    """Lines that say what was simulated: switches, loads and cycles, and networks with their
    routes; () if that is nothing.

    Args:
        fabrics: the networks.
        quick: whether they were simulated quickly.
        runs: how they were simulated otherwise.
    """
    settings = SimulationSettings(**QUICK_RUNS.windows())
    lines = _setup_sentences(settings, QUICK_RUNS.loads, "", "seed 0") if quick else runs.words()
    # By the title of a network its routes, each once and in order.
    routes: dict[str, dict[str, None]] = {}
    for fabric in fabrics:
        channels = " channels split by valley" if "scheme" in fabric.simulated_routing() else ""
        routes.setdefault(fabric.title() + channels, {})[fabric.routes] = None
    if not routes:
        return ()
    return (*lines, *(f"{network}: {'; '.join(names)}." for network, names in routes.items()))


def _setup_sentences(
    settings: SimulationSettings, loads: Sequence[float], added_loads: str, seeds: str
) -> tuple[str, str]:
    """A sentence on the switches, and one on the loads and cycles."""
    cycles = settings.periods * settings.period
    return (
        f"Switches: {settings.vcs} virtual channels, any free one is taken; {settings.buffer} flits"
        f" a port; packets of {settings.packet} flits, made at random (Bernoulli)"
        + ("; flits move one by one." if settings.level == "flit" else "."),
        f"Loads {', '.join(f'{load:g}' for load in loads)}{added_loads}; {settings.warmup:,}"
        f" cycles of warm-up, {settings.periods} × {settings.period} measured; sustained means: for"
        f" these {cycles:,} cycles, with {seeds}.",
    )


def setup_of_flits(
    fabrics: Iterable[PaperFabric],
    quick: bool,
    curves: Iterable[tuple[tuple[str, ...], LatencyCurve]],
) -> tuple[str, ...]:
    """The lines of `setup_of` for curves of flits, and the loads of curves that lack some.

    Args:
        fabrics: the networks.
        quick: whether they were simulated quickly.
        curves: the curves, each with the words that name it.
    """
    lines = setup_of(fabrics, quick, BY_FLITS)
    if quick or not lines:
        return lines
    longer = SimulationSettings(**BY_FLITS_LONGER.settings)
    curve_by_name = {" ".join(key): curve for key, curve in curves}
    loads_in_part = {
        name: [point.offered for point in curve.points]
        for name, curve in curve_by_name.items()
        if len(curve.points) < len(BY_FLITS.loads)
    }
    gaps_below_saturation = {
        name: [
            point.offered
            for point in curve.points
            if not point.sustained and point.offered < _largest_sustained(curve)
        ]
        for name, curve in curve_by_name.items()
    }
    return (
        *lines,
        "Adaptive routes, unless traffic is uniform:"
        f" {longer.periods} × {longer.period} cycles measured.",
        *_listed("Simulated in part, at these loads", loads_in_part),
        *_listed("Not sustained, where a larger load is", gaps_below_saturation),
    )


def _listed(text: str, loads: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """A line with the loads of curves that have some; () if none has."""
    items = (
        f"{name} {', '.join(f'{load:g}' for load in loads_of_curve)}"
        for name, loads_of_curve in loads.items()
        if loads_of_curve
    )
    listed = "; ".join(items)
    return (f"{text}: {listed}.",) if listed else ()


def deadlocks_of(curves: Iterable[tuple[tuple[str, ...], LatencyCurve]]) -> tuple[str, ...]:
    """A line that names the curves with a deadlock, and the first load of each; () without any."""
    first = {
        " ".join(key): next(point.offered for point in curve.points if point.deadlock)
        for key, curve in curves
        if curve.deadlock
    }
    listed = "; ".join(f"{name} from {load:g}" for name, load in first.items())
    line = f"Deadlocks, loads offered: {listed}. What is accepted there does not count."
    return (line,) if listed else ()


def panels_of(curves: Mapping[tuple[str, str], LatencyCurve]) -> tuple[Panel, ...]:
    """Panels of the latency of each pattern, and then of the accepted load of each pattern.

    Args:
        curves: the curves by traffic pattern and name.
    """
    drawn = {
        pattern: latency_panels(
            [(name, c) for (p, name), c in curves.items() if p == pattern], pattern
        )
        for pattern, _ in curves
    }
    latencies = (latency for latency, _ in drawn.values())
    accepted_loads = (
        replace(accepted, title=f"{pattern}: accepted") for pattern, (_, accepted) in drawn.items()
    )
    return (*latencies, *accepted_loads)


# The simulation


def simulated_curve(
    fabric: PaperFabric,
    pattern: str,
    quick: bool,
    quick_runs: QuickRuns = QUICK_RUNS,
    runs: WholeRuns = BY_PACKETS,
) -> LatencyCurve:
    """Simulate a network at several loads; at the whole size, each point is kept when it is done.

    Args:
        fabric: the network.
        pattern: the traffic pattern; `adversarial` is between groups.
        quick: whether the network is simulated as `quick_runs` says, else as `runs` says.
        quick_runs: few loads and cycles.
        runs: the loads and cycles at the paper's size. If `runs.in_part`, the curve has only the
            loads of which the cache has points.
    """
    if quick:
        prepared = _prepared(fabric, pattern, quick_runs.loads, quick_runs.windows())
        return simulate(*prepared)
    measure = partial(_mean_of_runs, fabric, pattern, runs)
    points = _points_at(runs, measure)
    return LatencyCurve(_refined(points, measure) if runs.refined else tuple(points))


def _mean_of_runs(
    fabric: PaperFabric, pattern: str, runs: WholeRuns, load: float
) -> LoadPoint | None:
    """The mean of the runs of a load; None if the curve is in part and the cache lacks them all."""
    keys = [runs.point_key(fabric, pattern, load, seed) for seed in range(runs.seeds)]
    if runs.in_part:
        keys = [key for key in keys if not is_missing(key)]
    points = [cached_result(key, partial(simulated_point, key)) for key in keys]
    return LoadPoint.of_runs(points) if points else None


def _points_at(runs: WholeRuns, measure: Callable[[float], LoadPoint | None]) -> list[LoadPoint]:
    """The points at the loads of `runs`; a refined curve ends after some loads above saturation."""
    points = list[LoadPoint]()
    for load in runs.loads:
        if point := measure(load):
            points.append(point)
        overloads = sum(not point.sustained for point in points)
        if runs.refined and overloads == MOST_OVERLOADS:
            break
    return points


def _refined(
    points: Sequence[LoadPoint], measure: Callable[[float], LoadPoint | None]
) -> tuple[LoadPoint, ...]:
    """The points of a curve, and points that are added near its saturation, in order of load."""
    curve = LatencyCurve(tuple(points))
    for _ in range(max(LEAST_BISECTIONS, LEAST_LOADS - len(points))):
        sustained_load = curve.saturation or 0.0
        larger_loads = [point.offered for point in curve.points if point.offered > sustained_load]
        if not larger_loads:
            break
        added = measure(round((sustained_load + min(larger_loads)) / 2, 4))
        if added:
            in_order = sorted((*curve.points, added), key=lambda point: point.offered)
            curve = LatencyCurve(tuple(in_order))
    return curve.points


def simulated_point(key: PointKey) -> LoadPoint:
    """Simulate one load of a network at its whole size, with one seed."""
    network, traffic, settings = _cached_task(key.fabric, key.pattern, key.settings)
    one_run = replace(settings, loads=(key.load,), seed=key.seed)
    return simulate(network, traffic, one_run).points[0]


@lru_cache(maxsize=1)
def _cached_task(fabric: str, pattern: str, settings: str) -> SimulationTask:
    """The network, traffic and settings of a point at the paper's size; the last ones are cached.

    Raises:
        InputError: the texts are not as a `PointKey` has them: a file of results was edited.
    """
    try:
        return _prepared(PaperFabric.of_text(fabric), pattern, (), json.loads(settings))
    except (KeyError, TypeError, ValueError) as error:
        given = f"{pattern}, {settings} of {fabric}: {type(error).__name__}: {error}"
        todo = "remove the lines of these points"
        raise InputError.of("a point as reproduce -o writes it", given, todo) from error


def _prepared(
    fabric: PaperFabric, pattern: str, loads: tuple[float, ...], windows: Mapping[str, Any]
) -> SimulationTask:
    """The network, traffic and settings of a simulation.

    Args:
        fabric: the network.
        pattern: the traffic pattern.
        loads: the offered loads.
        windows: fields of `SimulationSettings`.
    """
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
    return SimulationTask(network, traffic, settings)


# Values of a curve that statements compare


def largest_accepted_load(curve: LatencyCurve, gap: float | None = None) -> float:
    """The largest accepted load of a curve, points above saturation included, deadlocks excluded.

    It is nan if all points are deadlocks.

    Args:
        curve: what was simulated.
        gap: None for a curve that is taken as it is. Otherwise the result is nan unless the curve
            locates its saturation within this gap (`_locates_saturation`) and reaches its peak
            (`_reaches_peak`).
    """
    accepted = [point.accepted for point in curve.points if not point.deadlock]
    if not accepted:
        return nan
    largest = max(accepted)
    if gap is None:
        return largest
    return largest if _locates_saturation(curve, gap) and _reaches_peak(curve, largest) else nan


def largest_gap(quick: bool) -> float | None:
    """The largest interval around saturation for a statement on it, in curves of flits.

    Args:
        quick: whether the curves are simulated quickly, at few loads. Such a curve is taken as it
            is, whatever its interval: None.
    """
    return None if quick else GAP


def largest_sustained_load(curve: LatencyCurve, gap: float | None = None) -> float:
    """The largest load up to which all loads are sustained; 0 if there is none, nan without points.

    Args:
        curve: what was simulated.
        gap: None for a curve that is taken as it is. Otherwise smaller loads need not be sustained,
            and the result is nan unless the curve locates its saturation within this gap
            (`_locates_saturation`).
    """
    if gap is None:
        return (curve.saturation or 0.0) if curve.points else nan
    return _largest_sustained(curve) if _locates_saturation(curve, gap) else nan


def _locates_saturation(curve: LatencyCurve, gap: float) -> bool:
    """Whether the largest sustained load (or 0) and the next load (or 1) are within `gap`."""
    low = _largest_sustained(curve)
    high = min((point.offered for point in curve.points if point.offered > low), default=1.0)
    return bool(curve.points) and high - low <= gap + 1e-9


def _reaches_peak(curve: LatencyCurve, largest_accepted: float) -> bool:
    """Whether a curve has the largest load of `BY_FLITS`, or ends where less is accepted."""
    last = curve.points[-1]
    return last.offered >= BY_FLITS.loads[-1] or last.accepted < largest_accepted


def _largest_sustained(curve: LatencyCurve) -> float:
    """The largest sustained load, or 0."""
    return max((point.offered for point in curve.points if point.sustained), default=0.0)


def latency_at(curve: LatencyCurve, load: float) -> float:
    """The mean latency at an offered load.

    It is infinite if no packet came, or the curve ends before, and nan if it has no points.
    """
    latency_by_load = {measured.offered: measured.mean_latency for measured in curve.points}
    if not latency_by_load:
        return nan
    latency = None if load > max(latency_by_load) else latency_by_load[load]
    return inf if latency is None else latency


def undecided_if_near(claim: PaperClaim) -> PaperClaim:
    """A claim of the order of two simulated loads; "not computed" if these are nearly equal."""
    if claim.computed is None or claim.printed is None:
        return claim
    are_near = abs(claim.computed - claim.printed) <= LOAD_ERROR
    return as_not_computed(claim, SAME_LOADS) if are_near else claim


def with_missing_points(claims: Iterable[PaperClaim]) -> Iterator[PaperClaim]:
    """Yield claims; one with a value of nan, which means no simulated points, is "not computed"."""
    for claim in claims:
        values = claim.printed, claim.computed
        if any(value is not None and isnan(value) for value in values):
            printed = None if claim.printed is None or isnan(claim.printed) else claim.printed
            yield replace(claim, printed=printed, computed=None, reason=NO_POINTS)
        else:
            yield claim
