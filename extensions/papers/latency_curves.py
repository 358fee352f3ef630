"""Latency over load for the figures of papers: compile a network, and simulate it load by load.

The exhibits of the PolarFly and PolarStar papers call `simulated_curve` with a `PaperFabric`. The
network is simulated at the paper's size (`WholeRuns`) or quickly (`QuickRuns`). At the paper's size
each point is cached as soon as it is computed (`result_cache`), and loads near saturation are added
by bisection.

`curve_values` has the values of a curve that statements compare, and `curve_presentation` what
exhibits show of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from compilers.evaluation.traffic import between_groups
from extensions.papers.curve_runs import (
    BY_PACKETS,
    LEAST_BISECTIONS,
    QUICK_RUNS,
    QuickRuns,
    WholeRuns,
)
from extensions.papers.paper_fabric import FARTHEST, PaperFabric
from extensions.papers.result_cache import PointKey, cached_result, is_missing
from extensions.simulation.build_simulation import network_for
from extensions.simulation.channel_counts import with_channels
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.latency_curve import LatencyCurve, SimulationTask, simulate
from extensions.simulation.load_point import LoadPoint
from extensions.simulation.simulated_network import HostTraffic
from inventory.problems import InputError

MOST_OVERLOADS = 2
"""A refined curve ends after so many loads that the network does not sustain."""
LEAST_LOADS = 10
"""The least number of loads of a refined curve, added ones included."""


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
        runs: the loads and cycles at the paper's size. If `runs.may_lack_points`, the curve has
            only the loads of which the cache has points.
    """
    if quick:
        task = _task_of(fabric, pattern, quick_runs.loads, quick_runs.cycle_settings())
        return simulate(*task)
    measure = partial(_mean_of_runs, fabric, pattern, runs)
    points = _points_at(runs, measure)
    return LatencyCurve(_refined(points, measure) if runs.refines_loads else tuple(points))


def _mean_of_runs(
    fabric: PaperFabric, pattern: str, runs: WholeRuns, load: float
) -> LoadPoint | None:
    """The mean of the runs of a load; None if the cache may lack points, and lacks all of these."""
    keys = [runs.point_key(fabric, pattern, load, seed) for seed in range(runs.seeds)]
    if runs.may_lack_points:
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
        if runs.refines_loads and overloads == MOST_OVERLOADS:
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
    network, traffic, settings = _whole_task(key.fabric, key.pattern, key.settings)
    one_run = replace(settings, loads=(key.load,), seed=key.seed)
    return simulate(network, traffic, one_run).points[0]


@lru_cache(maxsize=1)
def _whole_task(fabric: str, pattern: str, settings: str) -> SimulationTask:
    """The network, traffic and settings of a point at the paper's size; the last ones are cached.

    Raises:
        InputError: the texts are not as a `PointKey` has them: a file of results was edited.
    """
    try:
        return _task_of(PaperFabric.of_text(fabric), pattern, (), json.loads(settings))
    except (KeyError, TypeError, ValueError) as error:
        given = f"{pattern}, {settings} of {fabric}: {type(error).__name__}: {error}"
        todo = "remove the lines of these points"
        raise InputError.of("a point as `reproduce` writes it", given, todo) from error


def _task_of(
    fabric: PaperFabric, pattern: str, loads: tuple[float, ...], fields: Mapping[str, Any]
) -> SimulationTask:
    """The network, traffic and settings of a simulation.

    Args:
        fabric: the network.
        pattern: the traffic pattern.
        loads: the offered loads.
        fields: fields of `SimulationSettings`, besides those of the routes of the network.
    """
    build = fabric.build()
    topology, hosts = build.topology, fabric.hosts
    if pattern == "adversarial" and fabric.group:
        groups = between_groups(topology, fabric.group, FARTHEST, seed=0)
        traffic = HostTraffic.of(groups, topology.graph.order, hosts)
    else:
        traffic = HostTraffic.of_pattern(pattern, topology, hosts, 0)
    settings = settings_for(build, loads, 0, (), {**fabric.simulated_routing(), **fields})
    network = network_for(build, hosts, settings)
    settings = with_channels(build, network, settings)
    return SimulationTask(network, traffic, settings)
