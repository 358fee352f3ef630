"""Figure 11 of the PolarFly paper: uniform traffic on PolarFly that has grown (§VIII-C).

`expanded` simulates PolarFly before growth, with added clusters of quadrics, and with added
clusters of fans, and returns the paper's statements with our values. At the paper's size (q = 31)
the statements are also computed by the hottest link, without a simulation (`fluid_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from extensions.papers.curve_presentation import flit_setup_lines
from extensions.papers.curve_runs import by_flits
from extensions.papers.curve_values import (
    COMPARED_BY_ACCEPTED_LOAD,
    largest_accepted_load,
    located_accepted_load,
    with_missing_points,
)
from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed
from extensions.papers.fluid_shares import FLUID, READ_FLUID, minimal_share
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.polarfly.polarfly_curves import deadlock_lines_by_name
from extensions.simulation.latency_curve import LatencyCurve, latency_panels

GROWN_ROUTINGS = ("MIN", "UGAL_PF")
"""The routings of figure 11."""
HOSTS_BY_MEAN_DEGREE = (
    "One endpoint for two links of the mean degree; the paper has the network radix."
)
"""How many hosts a switch of a grown network has here.

The paper has one host for two links of the "network radix". By the largest degree a switch of
quadric:12 at q = 31 would have 28 hosts. MIN accepts .47 at most with these, half of the .93 before
growth, where the paper has 31 % less. By the mean degree it has 22 hosts. MIN accepts .63 of .75
with these (seed 0), 32 % less. For fans both readings give the same."""
LESS_BY_QUADRICS = "39 % more by quadrics: 31 % less throughput"
LESS_BY_FANS = "39 % more by fans: 19 % less throughput"
"""Two statements of the text, which are computed by the hottest link and by simulation."""


class GrowthRouting(NamedTuple):
    """A growth of PolarFly with a routing."""

    grown: str
    """The growth, such as `fan:3` for three clusters of fans; "" before growth."""
    routing: str
    """The routing: MIN or UGAL_PF."""


def expanded(quick: bool) -> Evidence:
    """Figure 11: uniform traffic on grown PolarFly, one host for two links (§VIII-C)."""
    # By the number of added clusters, how many per cent more nodes the paper prints.
    q, percent = (9, {1: 10, 4: 39}) if quick else (31, {3: 10, 6: 19, 9: 29, 12: 39})
    fabrics = [*_grown_fabrics(q, cluster_counts=[*percent])]
    # Curves of flits take long: at the paper's size they have only the points that are cached.
    curves = {
        GrowthRouting(fabric.grown, fabric.routes): simulated_curve(
            fabric, "uniform", quick, runs=by_flits("uniform", fabric.routes)
        )
        for fabric in fabrics
    }
    claims_by_formula = (
        () if quick else (*_size_claims(fabrics, percent), *_hottest_link_claims(fabrics))
    )
    accepted = _accepted_by_growth(curves, quick)
    claims = (*claims_by_formula, *with_missing_points(_simulated_claims(accepted, percent)))
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
        *flit_setup_lines(
            simulated, quick, (((name,), curve) for name, curve in curve_by_title.items())
        ),
        COMPARED_BY_ACCEPTED_LOAD,
        "Hosts: half of the mean degree, our reading.",
        *(() if quick else (FLUID,)),
        *deadlock_lines_by_name(curve_by_title),
    )
    return Evidence(claims, panels=panels, setup=setup, is_quick=quick)


def _grown_fabrics(q: int, cluster_counts: Sequence[int]) -> Iterator[PaperFabric]:
    """Yield PolarFly before and after growth, with each routing of figure 11.

    Args:
        q: the parameter of PolarFly.
        cluster_counts: how many clusters are added, of quadrics or of fans.
    """
    growths = [f"{method}:{count}" for method in ("quadric", "fan") for count in cluster_counts]
    for grown in ("", *growths):
        fabric = PaperFabric({"family": "polarfly", "q": q}, hosts=1, routes="MIN", grown=grown)
        hosts = round(fabric.build().topology.graph.degrees.mean() / 2)
        for routing in GROWN_ROUTINGS:
            yield replace(fabric, hosts=hosts, routes=routing)


def _accepted_by_growth(
    curves: Mapping[GrowthRouting, LatencyCurve], quick: bool
) -> dict[str, float]:
    """The largest accepted load by growth, with the routing that accepts more; nan if one is nan.

    Args:
        curves: the curves of all growths and routings.
        quick: whether the curves are of small networks, at few loads. They are taken as they are;
            those of the paper's size have to locate their saturation.
    """
    accepted_load = largest_accepted_load if quick else located_accepted_load
    accepted = {key: accepted_load(curve) for key, curve in curves.items()}
    return {
        key.grown: float(
            np.max([accepted[GrowthRouting(key.grown, routing)] for routing in GROWN_ROUTINGS])
        )
        for key in curves
    }


def _growth_in_words(grown: str, percent: Mapping[int, int]) -> str:
    """A growth in words, such as `fan, 10 % more`.

    Args:
        grown: the growth, such as `fan:3`; "" for none.
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
            statement=f"{count} clusters: about {printed} % more nodes",
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
"""What the claim on three clusters of fans would be with another reading of "network radix".

The largest degree there is 36. `polarfab throughput` computes .76 for 18 hosts."""
PEAK_BEFORE_GROWTH = (
    "A ratio of two such loads. Before growth the hottest link allows all of the peak; the"
    " paper's 67 % of it, 19 % less than before, are 83 % before growth."
)
"""Why the hottest link does not decide by how much throughput falls.

The paper prints 67 % of the peak, and 19 % less than before growth. So before growth it had
.67/.81 = 83 % of the peak. The hottest link gives 100 % there. The two ratios to the state before
growth are therefore not comparable."""


def _hottest_link_claims(fabrics: Iterable[PaperFabric]) -> Iterator[PaperClaim]:
    """The paper's words on figure 11, by the hottest link of minimal routes.

    Args:
        fabrics: PolarFly q = 31 before and after growth, with hosts by the mean degree.
    """
    share = {
        fabric.grown: minimal_share(fabric.text(), "uniform")
        for fabric in fabrics
        if fabric.routes == "MIN" and fabric.grown in ("", "fan:3", "fan:12", "quadric:12")
    }
    kept_by_few_fans, kept_by_fans, kept_by_quadrics = (
        share[grown] / share[""] for grown in ("fan:3", "fan:12", "quadric:12")
    )
    yield _undecided_by_hottest_link(
        "10 % more by fans: 73 % of peak bandwidth",
        printed=0.73,
        computed=kept_by_few_fans,
        why=f"{NO_QUEUES} {FANS_BY_LARGEST_DEGREE}",
    )
    yield _undecided_by_hottest_link(
        "39 % more by fans: 67 % of peak bandwidth",
        printed=0.67,
        computed=kept_by_fans,
        why=NO_QUEUES,
    )
    yield _undecided_by_hottest_link(
        LESS_BY_FANS, printed=0.81, computed=kept_by_fans, why=PEAK_BEFORE_GROWTH
    )
    yield _undecided_by_hottest_link(
        LESS_BY_QUADRICS, printed=0.69, computed=kept_by_quadrics, why=PEAK_BEFORE_GROWTH
    )
    yield PaperClaim.of_order(
        says="fans keep more, by the hottest link",
        first=kept_by_fans,
        relation=">",
        second=kept_by_quadrics,
        interpretation=f"{READ_FLUID} {HOSTS_BY_MEAN_DEGREE}",
    )


def _undecided_by_hottest_link(says: str, printed: float, computed: float, why: str) -> PaperClaim:
    """A printed fraction beside that of the hottest link, which does not decide it.

    Args:
        says: what the paper says.
        printed: the fraction that the paper prints.
        computed: the fraction that the hottest link allows.
        why: why this does not decide the statement.
    """
    claim = PaperClaim(
        statement=f"{says}, by the hottest link", printed=printed, computed=computed, rounding=0.005
    )
    return as_not_computed(claim, why)


# Claims by what was simulated


def _simulated_claims(
    accepted: Mapping[str, float], percent: Mapping[int, int]
) -> tuple[PaperClaim, ...]:
    """The paper's words on figure 11, by the loads that were simulated.

    Args:
        accepted: the largest accepted load by growth, such as `fan:3`; "" is before growth.
        percent: how many per cent more nodes the paper prints, by the number of clusters.
    """
    fewest, most = min(percent), max(percent)
    kept_by_quadrics = accepted[f"quadric:{most}"] / accepted[""]
    kept_by_fans = accepted[f"fan:{most}"] / accepted[""]
    return (
        _fraction_claim(LESS_BY_QUADRICS, printed=0.69, computed=kept_by_quadrics),
        _fraction_claim(LESS_BY_FANS, printed=0.81, computed=kept_by_fans),
        *(
            _fraction_claim(
                f"by fans, of peak bandwidth after {percent[count]} %",
                printed=printed,
                computed=accepted[f"fan:{count}"],
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


def _fraction_claim(says: str, printed: float, computed: float) -> PaperClaim:
    """A percentage of figure 11 that the text prints in whole per cent, as a fraction."""
    return PaperClaim(
        statement=says,
        printed=printed,
        computed=computed,
        rounding=0.005,
        interpretation=HOSTS_BY_MEAN_DEGREE,
    )
