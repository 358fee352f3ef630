"""Routes on PolarFly, those of others among them, under one simulator: figures of no paper."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from extensions.baselines.fatpaths import KEPT, LAYERS
from extensions.papers.exhibit import Evidence, Exhibit, PaperClaim
from extensions.papers.latency_curves import (
    PaperFabric,
    deadlocks_of,
    latency_at,
    panels_of,
    setup_of,
    simulated_curve,
    sustained,
)
from extensions.simulation.latency_curve import LatencyCurve

RIVALS = ("MIN", "UGAL_PF, bounces", "VAL", "spread", "WMP", "WMP, bounces", "FatPaths")
SENT = ("uniform", "tornado", "permutation")
ORDERS = {
    "uniform": ("FatPaths", "spread", "WMP", "UGAL_PF, bounces"),
    "tornado": ("MIN", "WMP", "WMP, bounces", "spread", "UGAL_PF, bounces"),
    "permutation": ("MIN", "WMP", "WMP, bounces", "spread", "UGAL_PF, bounces"),
}
"""Routes by the load that they sustain, the least first; written down after it was simulated."""
DEFINED = (
    "WMP (Cisco's WMP-PolarFly): the minimal path with 2.5/(q + 1.5) of the traffic, and all paths"
    " of three links that share none with it; with bounces also between adjacent switches.",
    f"FatPaths: a packet takes one of {LAYERS} layers and a shortest path in it; the first has all"
    f" links, each other one {100 * KEPT:.0f} % of them.",
)
"""Routes of others."""
LOADED = 0.4
"""An adversarial load at which `spread` has the lower latency, UGAL_PF the larger throughput."""


def compared(q: int, quick: bool) -> Evidence:
    """Latency over load of all routes under three patterns; half as many hosts as links."""
    size = 5 if quick else q
    fabrics = [
        PaperFabric({"family": "polarfly", "q": size}, (size + 1) // 2, routes) for routes in RIVALS
    ]
    curves = {
        (pattern, each.routes): simulated_curve(each, pattern, quick)
        for pattern in SENT
        for each in fabrics
    }
    held = {key: sustained(curve) for key, curve in curves.items()}
    claims = [
        PaperClaim(
            f"{pattern}: {more} sustains no less than {less}",
            held[pattern, less],
            held[pattern, more],
            ">=",
            own=True,
        )
        for pattern, order in ORDERS.items()
        for less, more in pairwise(order)
    ]
    for pattern in SENT[1:]:
        late, early = (
            latency_at(curves[pattern, each], LOADED) for each in ("UGAL_PF, bounces", "spread")
        )
        says = f"{pattern}: spread takes no longer than UGAL_PF at {LOADED}"
        claims.append(PaperClaim(says, late, early, "<=", own=True))
    rows = [(name, *(_cell(curves[pattern, name]) for pattern in SENT)) for name in RIVALS]
    orders = "; ".join(f"{pattern}: {' ≤ '.join(order)}" for pattern, order in ORDERS.items())
    setup = (
        *setup_of(fabrics, quick),
        *deadlocks_of(curves.items()),
        *DEFINED,
        f"Stated, of sustained loads: {orders}. At {LOADED} of an"
        " adversarial pattern spread takes no longer than UGAL_PF.",
    )
    columns = ("load that is sustained; most that is accepted", *SENT)
    return Evidence(
        tuple(claims), columns, tuple(rows), panels_of(curves), setup=setup, quick=quick
    )


def _cell(curve: LatencyCurve) -> str:
    """The sustained load; the most that is accepted, with half of its 95 % interval."""
    most = max(curve.points, key=lambda point: point.accepted)
    interval = "" if most.accepted_error is None else f" ± {most.accepted_error:.3f}"
    return f"{sustained(curve):.3f}; {most.accepted:.3f}{interval}"


EXHIBITS = [
    Exhibit(
        "rivals", "fig", number, f"PolarFly q = {q}: our routes and others", partial(compared, q)
    )
    for number, q in enumerate((7, 13), 1)
]
