"""Figure 11 of the PolarFly paper: uniform traffic on PolarFly that has grown (§VIII-C).

`expanded` simulates PolarFly before growth, with added clusters of quadrics, and with added
clusters of fans, and returns the paper's statements with our values. At the paper's size (q = 31)
the statements are also computed by the hottest link, without a simulation (`fluid_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed
from extensions.papers.fluid_shares import FLUID, READ_FLUID, minimal_share
from extensions.papers.latency_curves import (
    COMPARED_BY_ACCEPTED_LOAD,
    PaperFabric,
    by_flits,
    largest_accepted_load,
    largest_gap,
    setup_of_flits,
    simulated_curve,
    with_missing_points,
)
from extensions.papers.polarfly.polarfly_curves import deadlocks_by_name
from extensions.simulation.latency_curve import LatencyCurve, latency_panels

GROWN_ROUTINGS = ("MIN", "UGAL_PF")
"""The routings of figure 11."""
HOSTS_BY_MEAN_DEGREE = (
    "One endpoint for two links of the mean degree; the paper has the network radix."
)
"""How many hosts a switch of a grown network has here."""


class GrowthRouting(NamedTuple):
    """A growth of PolarFly with a routing."""

    grown: str
    """The growth, such as `fan:3` for three clusters of fans; "" before growth."""
    routing: str
    """The routing: MIN or UGAL_PF."""


def expanded(quick: bool) -> Evidence:
    """Figure 11: uniform traffic on grown PolarFly, one host for two links (§VIII-C).

    The paper has one host for two links of the "network radix". We read the mean degree. By the
    largest degree (28 hosts for quadric:12 at q = 31) MIN accepts .47 at most, half of the .93
    before growth; the paper has 31 % less. By the mean (22) it accepts .63 of .75 (seed 0), 32 %
    less. For fans both readings are alike.

    With virtual channels assigned by `--scheme valley`, the throughput of grown tables with
    alternates collapses. A test shows that the channels cause this, not the tables.
    """
    # By the number of added clusters, how many per cent more nodes the paper prints.
    q, percent = (9, {1: 10, 4: 39}) if quick else (31, {3: 10, 6: 19, 9: 29, 12: 39})
    fabrics = [*_grown_fabrics(q, percent)]
    # Curves of flits take long: at the paper's size they have only the points that are cached.
    curves = {
        GrowthRouting(fabric.grown, fabric.routes): simulated_curve(
            fabric, "uniform", quick, runs=by_flits("uniform", fabric.routes)
        )
        for fabric in fabrics
    }
    claims_by_formula = (
        () if quick else (*_size_claims(fabrics, percent), *_fluid_growth_claims(fabrics))
    )
    accepted = _accepted_by_growth(curves, largest_gap(quick))
    claims = (*claims_by_formula, *with_missing_points(_growth_claims(accepted, percent)))
    drawn = {key: curve for key, curve in curves.items() if curve.points}
    curve_by_title = {
        f"{_growth_in_words(key.grown, percent)}, {key.routing}": curve
        for key, curve in drawn.items()
    }
    title = f"Grown PolarFly q = {q}"
    panels = latency_panels([*curve_by_title.items()], title) if curve_by_title else ()
    simulated = [
        fabric for fabric in fabrics if GrowthRouting(fabric.grown, fabric.routes) in drawn
    ]
    setup = (
        *setup_of_flits(
            simulated, quick, (((name,), curve) for name, curve in curve_by_title.items())
        ),
        COMPARED_BY_ACCEPTED_LOAD,
        "Hosts: half of the mean degree, our reading.",
        *(() if quick else (FLUID,)),
        *deadlocks_by_name(curve_by_title),
    )
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _grown_fabrics(q: int, counts: Iterable[int]) -> Iterator[PaperFabric]:
    """Yield PolarFly before and after growth, with each routing of figure 11.

    Args:
        q: of PolarFly.
        counts: how many clusters are added, of quadrics or of fans.
    """
    growths = [f"{method}:{count}" for method in ("quadric", "fan") for count in counts]
    for grown in ("", *growths):
        fabric = PaperFabric({"family": "polarfly", "q": q}, 1, "MIN", grown=grown)
        hosts = round(fabric.build().topology.graph.degrees.mean() / 2)
        for routing in GROWN_ROUTINGS:
            yield replace(fabric, hosts=hosts, routes=routing)


def _accepted_by_growth(
    curves: Mapping[GrowthRouting, LatencyCurve], gap: float | None
) -> dict[str, float]:
    """The largest accepted load by growth, with the routing that accepts more.

    Args:
        curves: the curves of all growths and routings.
        gap: how far loads around saturation may be apart (`largest_gap`).
    """
    accepted = {key: largest_accepted_load(curve, gap) for key, curve in curves.items()}
    return {
        key.grown: float(
            np.max([accepted[GrowthRouting(key.grown, routing)] for routing in GROWN_ROUTINGS])
        )
        for key in curves
    }


def _growth_in_words(grown: str, percent: Mapping[int, int]) -> str:
    """A growth such as `fan:3`, "" for none, in words.

    Args:
        grown: the growth.
        percent: how many per cent more nodes the paper prints, by the number of clusters.
    """
    if not grown:
        return "as it was"
    method, _, count = grown.partition(":")
    return f"{method}, {percent[int(count)]} % more"


def _size_claims(
    fabrics: Iterable[PaperFabric], percent: Mapping[int, int]
) -> Iterator[PaperClaim]:
    """Yield the claims on how many nodes added clusters bring.

    Args:
        fabrics: PolarFly q = 31 before and after growth.
        percent: how many per cent more nodes the paper prints, by the number of clusters.
    """
    nodes = {fabric.grown: fabric.build().topology.graph.order for fabric in fabrics}
    for count, printed in percent.items():
        more_by_quadrics = nodes[f"quadric:{count}"] / nodes[""] - 1
        more_by_fans = nodes[f"fan:{count}"] / nodes[""] - 1
        yield PaperClaim(
            says=f"{count} clusters: about {printed} % more nodes",
            printed=printed / 100,
            computed=more_by_quadrics,
            rounding=0.005,
            interpretation=f"Read as of quadrics; by fans it is {100 * more_by_fans:.1f} %.",
        )


# Claims by the hottest link

NO_QUEUES = (
    "When the hottest link is full, only flows over that link are held back, and it has no queues: "
    "the mean load that a simulation accepts may be more or less."
)
"""Why the hottest link does not decide a statement on what a network accepts."""
FANS_BY_LARGEST_DEGREE = "With 18 hosts, half of the largest degree, it is .76."
"""The share with three clusters of fans, if hosts were counted by the largest degree, which is 36,
in place of the mean degree. `throughput` computes the .76 for that number of hosts."""
PEAK_BEFORE_GROWTH = (
    "A ratio of two such loads. Before growth the hottest link allows all of the peak; the"
    " paper's 67 % of it, 19 % less than before, are 83 % before growth."
)
"""Why the hottest link does not decide by how much throughput falls: the paper prints both 67 % of
the peak and 19 % less than before growth, so that before growth it had .67/.81 = 83 %."""


def _fluid_growth_claims(fabrics: Iterable[PaperFabric]) -> Iterator[PaperClaim]:
    """The paper's words on figure 11, by the hottest link of minimal routes.

    Args:
        fabrics: PolarFly q = 31 before and after growth, with hosts by the mean degree.
    """
    share = {
        fabric.grown: minimal_share(fabric.text(), "uniform")
        for fabric in fabrics
        if fabric.routes == "MIN" and fabric.grown in ("", "fan:3", "fan:12", "quadric:12")
    }
    few_fans, fans, quadrics = (
        share[grown] / share[""] for grown in ("fan:3", "fan:12", "quadric:12")
    )
    for says, printed, computed, why in (
        (
            "10 % more by fans: 73 % of peak bandwidth",
            0.73,
            few_fans,
            f"{NO_QUEUES} {FANS_BY_LARGEST_DEGREE}",
        ),
        ("39 % more by fans: 67 % of peak bandwidth", 0.67, fans, NO_QUEUES),
        ("39 % more by fans: 19 % less throughput", 0.81, fans, PEAK_BEFORE_GROWTH),
        ("39 % more by quadrics: 31 % less throughput", 0.69, quadrics, PEAK_BEFORE_GROWTH),
    ):
        claim = PaperClaim(
            says=f"{says}, by the hottest link", printed=printed, computed=computed, rounding=0.005
        )
        yield as_not_computed(claim, why)
    yield PaperClaim.of_order(
        says="fans keep more, by the hottest link",
        first=fans,
        relation=">",
        second=quadrics,
        interpretation=f"{READ_FLUID} {HOSTS_BY_MEAN_DEGREE}",
    )


# Claims by what was simulated


def _growth_claims(
    accepted: Mapping[str, float], percent: Mapping[int, int]
) -> tuple[PaperClaim, ...]:
    """The paper's words on figure 11.

    Args:
        accepted: the largest accepted load by growth, such as `fan:3`; "" is before growth.
        percent: how many per cent more nodes there are, by the number of clusters, ascending.
    """
    fewest, most = min(percent), max(percent)
    kept_by_quadrics = accepted[f"quadric:{most}"] / accepted[""]
    kept_by_fans = accepted[f"fan:{most}"] / accepted[""]
    return (
        _growth_claim("39 % more by quadrics: 31 % less throughput", 0.69, kept_by_quadrics),
        _growth_claim("39 % more by fans: 19 % less throughput", 0.81, kept_by_fans),
        *(
            _growth_claim(
                f"by fans, of peak bandwidth after {percent[count]} %",
                printed,
                accepted[f"fan:{count}"],
            )
            for count, printed in ((fewest, 0.73), (most, 0.67))
        ),
        PaperClaim.of_order(
            says="fans keep more",
            first=kept_by_fans,
            relation=">",
            second=kept_by_quadrics,
            interpretation=HOSTS_BY_MEAN_DEGREE,
        ),
    )


def _growth_claim(says: str, printed: float, computed: float) -> PaperClaim:
    """A per cent of figure 11 that the text prints, with no error but its last digit's."""
    return PaperClaim(
        says=says,
        printed=printed,
        computed=computed,
        rounding=0.005,
        interpretation=HOSTS_BY_MEAN_DEGREE,
    )
