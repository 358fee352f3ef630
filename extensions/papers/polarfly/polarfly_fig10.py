"""Figure 10 of the PolarFly paper: uniform traffic on PolarFly of several sizes (§VIII).

`sizes` simulates them and returns the paper's statements with our values: that all sizes saturate
alike, and have similar latencies. Points are averaged over runs of several seeds
(`curve_runs.BY_PACKETS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from compilers.topology.families import build_topology
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.curve_presentation import setup_lines
from extensions.papers.curve_runs import BY_PACKETS
from extensions.papers.curve_values import largest_accepted_load, with_missing_points
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.polarfly.polarfly_curves import (
    ABOVE_THE_KNEE,
    BELOW_THE_KNEE,
    COMPARABLE_ERROR,
    LOW_LOAD,
    WITHIN_TEN_PERCENT,
    deadlock_lines_by_name,
    simulated_latency,
)
from extensions.simulation.latency_curve import LatencyCurve, latency_panels

PRINTED_ROUTERS = {13: 183, 19: 381, 25: 651, 31: 993}
"""The routers that the paper prints for each q."""
SMALL_SIZES = (5, 7, 9)
"""The q that are simulated quickly."""
QUICK_LOADS = (LOW_LOAD, 0.4)
"""The loads of a quick run at which latencies are compared. The third, .95, is above saturation."""
WHOLE_LOADS = (LOW_LOAD, BELOW_THE_KNEE, ABOVE_THE_KNEE)
"""The loads at the paper's size at which latencies are compared."""
JUDGED_ROUTINGS = ("MIN", "UGAL_PF")
"""The routings of the paper's figure."""
BOUNCING_ROUTING = "UGAL_PF, bounces"
"""A routing of our own, which is drawn in figure 10 and not judged."""
BOUNCING_IS_NOT_JUDGED = (
    f"{BOUNCING_ROUTING} is no routing of the paper, and not judged: between adjacent switches our"
    " tables bounce, where the authors' UGAL_PF takes random paths of four links."
)
"""The remark on this routing."""
RUNS_OF_ROUTING = {"UGAL_PF": replace(BY_PACKETS, may_lack_points=True)}
"""The runs of a routing, where they are not `BY_PACKETS`. Few points of UGAL_PF are kept, so its
curves are drawn with these."""


def sizes(quick: bool) -> Evidence:
    """Figure 10: uniform traffic on PolarFly of several sizes, with a host for two links."""
    fabrics = {
        f"PF{q}-{routing}": ComparedNetwork("polarfly", {"q": q}, hosts=(q + 1) // 2).fabric(
            routing
        )
        for q in (SMALL_SIZES if quick else PRINTED_ROUTERS)
        for routing in (*JUDGED_ROUTINGS, BOUNCING_ROUTING)
    }
    curves = {
        name: simulated_curve(
            fabric, "uniform", quick, runs=RUNS_OF_ROUTING.get(fabric.routes, BY_PACKETS)
        )
        for name, fabric in fabrics.items()
    }
    claims = (*(() if quick else _router_claims()), *_size_claims(curves, quick))
    drawn = {name: curve for name, curve in curves.items() if curve.points}
    panels = latency_panels([*drawn.items()], "PolarFly, uniform")
    simulated = [fabrics[name] for name in drawn]
    setup = (
        *setup_lines(simulated, quick),
        BOUNCING_IS_NOT_JUDGED,
        *deadlock_lines_by_name(drawn),
    )
    return Evidence(tuple(with_missing_points(claims)), panels=panels, setup=setup, is_quick=quick)


def _router_claims() -> Iterator[PaperClaim]:
    """Yield the claims on how many routers each size has."""
    for q, routers in PRINTED_ROUTERS.items():
        yield PaperClaim(
            statement=f"q = {q}: routers",
            printed=routers,
            computed=build_topology("polarfly", {"q": q}).graph.order,
        )


def _size_claims(curves: Mapping[str, LatencyCurve], quick: bool) -> Iterator[PaperClaim]:
    """Yield the claims that all sizes are alike, of each routing.

    Args:
        curves: the curves by names such as `PF13-MIN`.
        quick: whether they are of small networks, which have points at fewer loads.
    """
    for routing in JUDGED_ROUTINGS:
        of_routing = [curve for name, curve in curves.items() if name.endswith(f"-{routing}")]
        yield _equality_claim(
            f"{routing}: they saturate alike, by the largest accepted load",
            [largest_accepted_load(curve) for curve in of_routing],
        )
        for load in QUICK_LOADS if quick else WHOLE_LOADS:
            yield _equality_claim(
                f"{routing}: their latency at {load} is alike",
                [simulated_latency(curve, load) for curve in of_routing],
            )


def _equality_claim(says: str, values: Sequence[float]) -> PaperClaim:
    """A claim that values are nearly equal: the smallest of them over the largest."""
    smallest, largest = float(np.min(values)), float(np.max(values))
    return PaperClaim(
        statement=f"{says}: least over largest",
        printed=1,
        computed=smallest / largest,
        reading_error=COMPARABLE_ERROR,
        interpretation=f"{WITHIN_TEN_PERCENT} From {smallest:.3g} to {largest:.3g}.",
        reason=f"From {smallest:.3g} to {largest:.3g}.",
    )
