"""What exhibits show of simulated curves: lines that say what was simulated, and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from compilers.drawing.plots import Panel
from extensions.papers.curve_runs import (
    BY_FLITS,
    BY_FLITS_LONGER,
    BY_PACKETS,
    QUICK_RUNS,
    WholeRuns,
)
from extensions.papers.curve_values import last_sustained_load
from extensions.papers.paper_fabric import PaperFabric
from extensions.simulation.latency_curve import LatencyCurve, latency_panels
from extensions.simulation.load_point import SimulationSettings


class CurveKey(NamedTuple):
    """A network that is simulated with a routing, under a traffic pattern."""

    pattern: str
    """The traffic pattern."""
    network: str
    """The short name of the network."""
    routing: str
    """How packets are routed, in a paper's words."""


def setup_lines(
    fabrics: Iterable[PaperFabric], quick: bool, runs: WholeRuns = BY_PACKETS
) -> tuple[str, ...]:
    """Lines that say what was simulated: switches, loads and cycles, and the networks.

    There are no lines if there are no networks.

    Args:
        fabrics: the networks.
        quick: whether they were simulated quickly.
        runs: how they were simulated otherwise.
    """
    lines = network_lines(fabrics)
    if not lines:
        return ()
    return (*(QUICK_RUNS.sentences() if quick else runs.sentences()), *lines)


def network_lines(fabrics: Iterable[PaperFabric]) -> tuple[str, ...]:
    """A line for each network that names its routes."""
    # By the title of a network its routes, each once and in order: a dict as an ordered set.
    routes: dict[str, dict[str, None]] = {}
    for fabric in fabrics:
        channels = " channels split by valley" if "scheme" in fabric.simulated_routing() else ""
        routes.setdefault(fabric.title() + channels, {})[fabric.routes] = None
    return tuple(f"{network}: {'; '.join(names)}." for network, names in routes.items())


def flit_setup_lines(
    fabrics: Iterable[PaperFabric],
    quick: bool,
    curves: Iterable[tuple[tuple[str, ...], LatencyCurve]],
) -> tuple[str, ...]:
    """The lines of `setup_lines` for curves of flits, and the loads of curves that lack some.

    Args:
        fabrics: the networks.
        quick: whether they were simulated quickly.
        curves: the curves, each with the words that name it.
    """
    lines = setup_lines(fabrics, quick, BY_FLITS)
    if quick or not lines:
        return lines
    longer = SimulationSettings(**BY_FLITS_LONGER.settings)
    curve_by_name = {" ".join(key): curve for key, curve in curves}
    loads_of_partial_curves = {
        name: [point.offered for point in curve.points]
        for name, curve in curve_by_name.items()
        if len(curve.points) < len(BY_FLITS.loads)
    }
    overloads_below_saturation = {
        name: [
            point.offered
            for point in curve.points
            if not point.sustained and point.offered < last_sustained_load(curve)
        ]
        for name, curve in curve_by_name.items()
    }
    return (
        *lines,
        "Adaptive routes, unless traffic is uniform:"
        f" {longer.periods} × {longer.period} cycles measured.",
        *_line_of_loads("Simulated in part, at these loads", loads_of_partial_curves),
        *_line_of_loads("Not sustained, where a larger load is", overloads_below_saturation),
    )


def _line_of_loads(
    heading: str, loads_by_curve: Mapping[str, Sequence[float]]
) -> tuple[str] | tuple[()]:
    """A line with the loads of each curve that has some; no line if none has."""
    listed = "; ".join(
        f"{name} {', '.join(f'{load:g}' for load in loads)}"
        for name, loads in loads_by_curve.items()
        if loads
    )
    return (f"{heading}: {listed}.",) if listed else ()


def deadlock_lines(
    curves: Iterable[tuple[tuple[str, ...], LatencyCurve]],
) -> tuple[str] | tuple[()]:
    """A line that names the curves with a deadlock, and the first load of each.

    There is no line if no curve has a deadlock.

    Args:
        curves: the curves, each with the words that name it.
    """
    first_load = {
        " ".join(key): next(point.offered for point in curve.points if point.deadlock)
        for key, curve in curves
        if curve.deadlock
    }
    listed = "; ".join(f"{name} from {load:g}" for name, load in first_load.items())
    line = f"Deadlocks, loads offered: {listed}. What is accepted there does not count."
    return (line,) if listed else ()


def pattern_panels(curves: Mapping[tuple[str, str], LatencyCurve]) -> tuple[Panel, ...]:
    """Panels of the latency of each pattern, and then of the accepted load of each pattern.

    Args:
        curves: the curves by traffic pattern and name.
    """
    curves_of_pattern: dict[str, list[tuple[str, LatencyCurve]]] = {}
    for (pattern, name), curve in curves.items():
        curves_of_pattern.setdefault(pattern, []).append((name, curve))
    of_latency, of_accepted_load = list[Panel](), list[Panel]()
    for pattern, named_curves in curves_of_pattern.items():
        latency, accepted = latency_panels(named_curves, pattern)
        of_latency.append(latency)
        of_accepted_load.append(replace(accepted, title=f"{pattern}: accepted"))
    return (*of_latency, *of_accepted_load)
