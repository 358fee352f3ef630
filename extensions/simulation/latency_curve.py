"""Latency over load: a network measured at one load after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from compilers.workers.shards import THIS_PROCESS, Workers
from extensions.simulation.load_point import LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork


@dataclass(frozen=True, slots=True, repr=False)
class LatencyCurve:
    """The points of one network, traffic and setting."""

    points: tuple[LoadPoint, ...]

    def __repr__(self) -> str:
        """`<LatencyCurve: 9 loads, saturation 0.9>`."""
        return f"<LatencyCurve: {len(self.points)} loads, saturation {self.saturation}>"

    @property
    def saturation(self) -> float | None:
        """The highest sustained load below which all that had packets are sustained, too."""
        highest = None
        some = (point for point in self.points if point.generated)
        for point in sorted(some, key=lambda point: point.offered):
            if not point.sustained:
                break
            highest = point.offered
        return highest

    @property
    def deadlock(self) -> tuple[int, ...]:
        """The first deadlock that was found, as in `LoadPoint`."""
        return next((point.deadlock for point in self.points if point.deadlock), ())

    def report(self) -> dict[str, Any]:
        """For JSON: `points`, `saturation`, `deadlock`."""
        points = [asdict(point) for point in self.points]
        return {"points": points, "saturation": self.saturation, "deadlock": self.deadlock}


class Simulated(NamedTuple):
    """What is simulated: a network, the traffic of its hosts, and the settings."""

    network: SimulatedNetwork
    traffic: HostTraffic
    settings: SimulationSettings


def simulate(
    network: SimulatedNetwork,
    traffic: HostTraffic,
    settings: SimulationSettings,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = THIS_PROCESS,
) -> LatencyCurve:
    """Offer each load to a network that is empty, and measure.

    Args:
        network: its switches, tables and hosts.
        traffic: where packets go.
        settings: loads, switches, windows; the same seed has the same result.
        progress: called with (loads done, all loads).
        workers: that share the loads.
    """
    points = []
    for point in workers.over(_measurer, Simulated(network, traffic, settings), settings.loads):
        points.append(point)
        if progress:
            progress(len(points), len(settings.loads))
    return LatencyCurve(tuple(points))


def _measurer(given: Simulated) -> Callable[[float], LoadPoint]:
    from extensions.simulation.measurement import Measurement

    Measurement.of(*given, load=0.5).compile()  # before processes are forked
    return lambda load: Measurement.of(*given, load).point()
