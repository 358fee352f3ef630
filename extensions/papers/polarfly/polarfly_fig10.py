"""Figure 10 of the PolarFly paper: uniform traffic on PolarFly of several sizes (§VIII).

`sizes` simulates them and returns the paper's statements with our values: that all sizes saturate
alike, and have similar latencies. Points are averaged over runs of several seeds
(`latency_curves.BY_PACKETS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from compilers.topology.families import build_topology
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import (
    BY_PACKETS,
    largest_accepted_load,
    setup_of,
    simulated_curve,
    with_missing_points,
)
from extensions.papers.polarfly.polarfly_curves import (
    ABOVE_THE_KNEE,
    BELOW_THE_KNEE,
    LOW_LOAD,
    PERMUTATION_LOAD,
    RATIO_ERROR,
    WITHIN_TEN_PERCENT,
    deadlocks_by_name,
    simulated_latency,
)
from extensions.simulation.latency_curve import LatencyCurve, latency_panels

PRINTED_ROUTERS = {13: 183, 19: 381, 25: 651, 31: 993}
"""The routers that the paper prints for each q."""
SMALL_SIZES = (5, 7, 9)
"""The q that are simulated quickly."""
JUDGED_ROUTINGS = ("MIN", "UGAL_PF")
"""The routings of the paper's figure."""
BOUNCING_ROUTING = "UGAL_PF, bounces"
"""A routing of our own, which is drawn in figure 10 and not judged."""
BOUNCING_IS_NOT_JUDGED = (
    f"{BOUNCING_ROUTING} is no routing of the paper, and not judged: between adjacent switches our"
    " tables bounce, where the authors' UGAL_PF takes random paths of four links."
)
"""The remark on this routing."""
RUNS_IN_PART = {"UGAL_PF": replace(BY_PACKETS, in_part=True)}
"""The runs of routings of which a file of cached results may lack some points. The curve then has
only the points in the file, and none is simulated. Curves of other routings have all points."""


def sizes(quick: bool) -> Evidence:
    """Figure 10: uniform traffic on PolarFly of several sizes."""
    fabrics = {
        f"PF{q}-{routing}": ComparedNetwork("polarfly", {"q": q}, (q + 1) // 2).fabric(routing)
        for q in (SMALL_SIZES if quick else PRINTED_ROUTERS)
        for routing in (*JUDGED_ROUTINGS, BOUNCING_ROUTING)
    }
    curves = {
        name: simulated_curve(
            fabric, "uniform", quick, runs=RUNS_IN_PART.get(fabric.routes, BY_PACKETS)
        )
        for name, fabric in fabrics.items()
    }
    claims = (*(() if quick else _router_claims()), *_size_claims(curves, quick))
    curves_with_points = {name: curve for name, curve in curves.items() if curve.points}
    panels = latency_panels([*curves_with_points.items()], "PolarFly, uniform")
    simulated = [fabrics[name] for name in curves_with_points]
    setup = (
        *setup_of(simulated, quick),
        BOUNCING_IS_NOT_JUDGED,
        *deadlocks_by_name(curves_with_points),
    )
    return Evidence(tuple(with_missing_points(claims)), panels=panels, setup=setup, quick=quick)


def _router_claims() -> Iterator[PaperClaim]:
    """Yield the claims on how many routers each size has."""
    for q, routers in PRINTED_ROUTERS.items():
        yield PaperClaim(
            says=f"q = {q}: routers",
            printed=routers,
            computed=build_topology("polarfly", {"q": q}).graph.order,
        )


def _size_claims(curves: Mapping[str, LatencyCurve], quick: bool) -> Iterator[PaperClaim]:
    """Yield the claims that all sizes are alike, of each routing.

    Args:
        curves: the curves by names such as `PF13-MIN`.
        quick: whether they are of small networks, which have points at fewer loads.
    """
    loads = (LOW_LOAD, PERMUTATION_LOAD) if quick else (LOW_LOAD, BELOW_THE_KNEE, ABOVE_THE_KNEE)
    for routing in JUDGED_ROUTINGS:
        of_routing = [curve for name, curve in curves.items() if name.endswith(f"-{routing}")]
        yield _equality_claim(
            f"{routing}: they saturate alike, by the largest accepted load",
            [largest_accepted_load(curve) for curve in of_routing],
        )
        for load in loads:
            yield _equality_claim(
                f"{routing}: their latency at {load} is alike",
                [simulated_latency(curve, load) for curve in of_routing],
            )


def _equality_claim(says: str, values: Sequence[float]) -> PaperClaim:
    """A claim that values are nearly equal: the smallest of them over the largest."""
    smallest, largest = float(np.min(values)), float(np.max(values))
    return PaperClaim(
        says=f"{says}: least over largest",
        printed=1,
        computed=smallest / largest,
        reading_error=RATIO_ERROR,
        interpretation=f"{WITHIN_TEN_PERCENT} From {smallest:.3g} to {largest:.3g}.",
        reason=f"From {smallest:.3g} to {largest:.3g}.",
    )
