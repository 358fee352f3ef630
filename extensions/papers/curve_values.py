"""Values of simulated curves that statements of a paper compare, such as the largest accepted load.

A load is *sustained* if the network delivers all that is offered. The saturation of a curve is
between its largest sustained load and the next larger one. Curves of flits may lack points. They
support a statement on saturation only if they locate it closely enough (`located_accepted_load`,
`located_sustained_load`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf, isnan, nan

from extensions.papers.curve_runs import BY_FLITS
from extensions.papers.exhibit import PaperClaim, as_not_computed
from extensions.simulation.latency_curve import LatencyCurve

LARGEST_INTERVAL = 0.1
"""The largest interval between the largest sustained load and the next one with which a curve
locates its saturation."""
INTERVAL_ERROR = 1e-9
"""The rounding error of an interval of loads."""
LOAD_ERROR = 0.02
"""The difference of two simulated loads up to which their order is not decided: saturations of
flits differ as much from BookSim's (the evidence of `simulate`)."""
NO_POINTS = "Too few points of this size were simulated."
"""The reason of a claim that is not computed for lack of simulated points."""
UNDECIDED_IN_SMALL = "Small networks, at few loads and with one seed, do not decide it."
"""Why an order is not computed in a quick run, where it is not computed at the paper's size."""
SAME_LOADS = "With one seed they are as near as saturations are to those of BookSim, .02."
"""The reason of a claim whose two loads differ by `LOAD_ERROR` at most."""
BY_ACCEPTED_LOAD = "by the largest accepted load"
"""The measure of a statement, in words."""
COMPARED_BY_ACCEPTED_LOAD = (
    "Unless a statement names another measure, networks are compared by the largest load that they"
    " accept, whether it is sustained or not."
)
"""A line below simulated figures on how their statements are read."""


def largest_accepted_load(curve: LatencyCurve) -> float:
    """The largest accepted load of a curve; nan if no point is without a deadlock.

    Points above saturation count, points with a deadlock do not.
    """
    return max((point.accepted for point in curve.points if not point.deadlock), default=nan)


def located_accepted_load(curve: LatencyCurve) -> float:
    """The largest accepted load of a curve that locates its saturation, and reaches its peak.

    It is nan for any other curve. A curve reaches its peak if it has the largest load of
    `BY_FLITS`, or if less is accepted at its last load than at an earlier one.
    """
    if not _locates_saturation(curve):
        return nan
    largest, last = largest_accepted_load(curve), curve.points[-1]
    reaches_peak = last.offered >= BY_FLITS.loads[-1] or last.accepted < largest
    return largest if reaches_peak else nan


def largest_sustained_load(curve: LatencyCurve) -> float:
    """The largest load up to which all loads are sustained.

    It is 0 if not even the first load is sustained, and nan without points.
    """
    return (curve.saturation or 0.0) if curve.points else nan


def located_sustained_load(curve: LatencyCurve) -> float:
    """The largest sustained load of a curve that locates its saturation; nan for any other curve.

    Smaller loads need not be sustained.
    """
    return last_sustained_load(curve) if _locates_saturation(curve) else nan


def last_sustained_load(curve: LatencyCurve) -> float:
    """The largest of the sustained loads, whether smaller ones are sustained or not; 0 for none."""
    return max((point.offered for point in curve.points if point.sustained), default=0.0)


def _locates_saturation(curve: LatencyCurve) -> bool:
    """Whether the last sustained load (or 0) is near enough to the next load (or 1)."""
    low = last_sustained_load(curve)
    high = min((point.offered for point in curve.points if point.offered > low), default=1.0)
    return bool(curve.points) and high - low <= LARGEST_INTERVAL + INTERVAL_ERROR


def latency_at(curve: LatencyCurve, load: float) -> float:
    """The mean latency at an offered load.

    It is infinite if no packet came, or the curve ends before, and nan if it has no points.

    Raises:
        KeyError: the load is not one of the curve, which has larger ones.
    """
    latency_by_load = {point.offered: point.mean_latency for point in curve.points}
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
