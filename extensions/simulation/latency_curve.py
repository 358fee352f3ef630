"""Latency over load: a network is measured at several loads, in several processes if there are any.

`simulate` makes a `LatencyCurve` from a network, its traffic and the settings. `latency_panels`
draws curves. The simulation of builds and the papers' figures call them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from compilers.workers.shards import THIS_PROCESS, Workers
from extensions.simulation.flit_router import FlitRouter
from extensions.simulation.load_point import LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork

if TYPE_CHECKING:
    from compilers.drawing.plots import Panel


@dataclass(frozen=True, slots=True, repr=False)
class LatencyCurve:
    """What was measured of one network with one traffic and one setting."""

    points: tuple[LoadPoint, ...]
    """What was measured at each load."""
    valley_channels: int = 0
    """How many virtual channels keep its paths free of deadlock, if packets change channels where a
    path turns from down to up (the scheme `valley`). `simulate_build` adds it; 0 without."""
    router: FlitRouter | None = None
    """The router of flits, which `simulate_build` adds; None if packets were simulated."""

    def __repr__(self) -> str:
        """`<LatencyCurve: 9 loads, saturation 0.9>`."""
        return f"<LatencyCurve: {len(self.points)} loads, saturation {self.saturation}>"

    @property
    def saturation(self) -> float | None:
        """The highest load up to which all loads are sustained; None if the lowest one is not.

        Loads at which hosts made no packets do not count.
        """
        highest = None
        with_packets = (point for point in self.points if point.generated)
        for point in sorted(with_packets, key=lambda point: point.offered):
            if not point.sustained:
                break
            highest = point.offered
        return highest

    @property
    def deadlock(self) -> tuple[int, ...]:
        """The deadlock at the first load that has one, as in `LoadPoint`; () if there is none."""
        return next((point.deadlock for point in self.points if point.deadlock), ())

    def report(self) -> dict[str, Any]:
        """The curve as values for JSON.

        The keys are `points` (each with the fields of `LoadPoint`), `saturation`, `deadlock`,
        `channels` (`valley_channels`) and `router` (its fields and `pipeline`, or None).
        """
        router = self.router and {**self.router._asdict(), "pipeline": self.router.pipeline}
        return {
            "points": [asdict(point) for point in self.points],
            "saturation": self.saturation,
            "deadlock": self.deadlock,
            "channels": self.valley_channels,
            "router": router,
        }


class SimulationTask(NamedTuple):
    """What the workers of a simulation share."""

    network: SimulatedNetwork
    """The network that is simulated."""
    traffic: HostTraffic
    """Where the packets of each host go."""
    settings: SimulationSettings
    """The settings of the simulation."""


def simulate(
    network: SimulatedNetwork,
    traffic: HostTraffic,
    settings: SimulationSettings,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = THIS_PROCESS,
) -> LatencyCurve:
    """Offer each load to an empty network, and measure.

    Args:
        network: the network with its switches, tables and hosts.
        traffic: where packets go.
        settings: the offered loads, how switches work, and which cycles are measured. The same
            seed has the same result.
        progress: called with the number of runs that are done, and of all.
        workers: the processes that share the loads.
    """
    seeds = range(settings.seed, settings.seed + settings.runs)
    runs = [(load, seed) for load in settings.loads for seed in seeds]
    points = list[LoadPoint]()
    for point in workers.over(_measurer, SimulationTask(network, traffic, settings), runs):
        points.append(point)
        if progress:
            progress(len(points), len(runs))
    # The runs of a load follow each other.
    by_load = (points[first : first + len(seeds)] for first in range(0, len(runs), len(seeds)))
    return LatencyCurve(tuple(map(LoadPoint.of_runs, by_load)))


def _measurer(task: SimulationTask) -> Callable[[tuple[float, int]], LoadPoint]:
    """The function that measures a load with a seed, for one worker."""
    from extensions.simulation.measurement import Measurement

    # Any load compiles the loops; worker processes that are forked later inherit them.
    Measurement.of(*task, load=0.5).compile()

    def point(run: tuple[float, int]) -> LoadPoint:
        """Measure a load with a seed."""
        load, seed = run
        seeded = task._replace(settings=replace(task.settings, seed=seed))
        return Measurement.of(*seeded, load).point()

    return point


def latency_panels(curves: Sequence[tuple[str, LatencyCurve]], title: str) -> tuple[Panel, ...]:
    """Panels of the mean latency of sustained loads, and of accepted load, over offered load.

    Args:
        curves: the name of each curve, and what was simulated.
        title: the heading of the first panel.
    """
    from compilers.drawing.plots import Curve, Panel

    sustained, accepted = [], []
    for name, curve in curves:
        points = sorted(curve.points, key=lambda point: point.offered)
        measured = [point for point in points if point.sustained and point.mean_latency is not None]
        measured_loads = tuple(100 * point.offered for point in measured)
        latencies = tuple(point.mean_latency or 0.0 for point in measured)
        sustained.append(Curve(name, measured_loads, latencies))
        loads = tuple(100 * point.offered for point in points)
        accepted.append(Curve(name, loads, tuple(100 * point.accepted for point in points)))
    x_label = "offered, % of injection"
    return (
        Panel(title, x_label, "mean latency, cycles", tuple(sustained)),
        Panel("Accepted", x_label, "accepted, %", tuple(accepted)),
    )
