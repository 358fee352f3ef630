"""Latency over offered load as a plot."""

from __future__ import annotations

from collections.abc import Sequence

from compilers.drawing.plots import Curve, Panel
from extensions.simulation.latency_curve import LatencyCurve


def latencies(curves: Sequence[tuple[str, LatencyCurve]], title: str) -> tuple[Panel, ...]:
    """Mean latency of sustained loads, and accepted load, over offered load, in per cent.

    Args:
        curves: a name and what was simulated.
        title: of the first panel.
    """
    sustained, accepted = [], []
    for name, curve in curves:
        points = sorted(curve.points, key=lambda point: point.offered)
        held = [each for each in points if each.sustained and each.mean_latency is not None]
        x = tuple(100 * each.offered for each in held)
        sustained.append(Curve(name, x, tuple(each.mean_latency or 0.0 for each in held)))
        x = tuple(100 * each.offered for each in points)
        accepted.append(Curve(name, x, tuple(100 * each.accepted for each in points)))
    across = "offered, % of injection"
    return (
        Panel(title, across, "mean latency, cycles", tuple(sustained)),
        Panel("Accepted", across, "accepted, %", tuple(accepted)),
    )
