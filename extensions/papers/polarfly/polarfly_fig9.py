"""Figure 9 of the PolarFly paper: adaptive routing under permutations of near switches (§VIII).

`permutations` simulates two patterns, which pair neighbours, or switches at distance 2, and returns
the paper's statements with our values. Points are averaged over runs of several seeds
(`latency_curves.BY_PACKETS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import (
    LOADS,
    deadlocks_of,
    largest_accepted_load,
    largest_sustained_load,
    latency_at,
    panels_of,
    setup_of,
    simulated_curve,
)
from extensions.papers.polarfly.polarfly_curves import (
    ADAPTIVE,
    LOW_LOAD,
    PERMUTED,
    RATIO_ERROR,
    SIMULATED_SMALL,
    WITHIN_TEN_PERCENT,
    PatternRouting,
    adaptation_claims,
    next_load,
    routed_fabrics,
)
from extensions.papers.polarfly.polarfly_measures import TABLE_V
from extensions.simulation.latency_curve import LatencyCurve

NEIGHBOURS = ("perm2hop", "perm1hop")
"""The permutations of figure 9, which pair switches at distance 2, and neighbours."""


def permutations(quick: bool) -> Evidence:
    """Figure 9: adaptive routing when all neighbours, or all at distance 2, are paired."""
    networks = SIMULATED_SMALL if quick else TABLE_V
    polarfly = routed_fabrics({"PF": networks["PF"]})
    fabrics = {key.routing: fabric for key, fabric in polarfly.items()}
    curves = {
        PatternRouting(pattern, routing): simulated_curve(fabric, pattern, quick)
        for routing, fabric in fabrics.items()
        for pattern in NEIGHBOURS
    }
    curves_of_figure_8 = {
        PatternRouting(pattern, routing): simulated_curve(fabrics[routing], pattern, quick)
        for routing in ADAPTIVE
        for pattern in PERMUTED
    }
    claims = (
        *_similarity_claims(curves, curves_of_figure_8),
        *_saturation_claims(curves),
        *_minimal_routing_claims(curves),
        *adaptation_claims({**curves, **curves_of_figure_8}),
        _slower_adaptation_claim(curves),
    )
    panels = panels_of(
        {(pattern, f"PF-{routing}"): curve for (pattern, routing), curve in curves.items()}
    )
    deadlocks = deadlocks_of((*curves.items(), *curves_of_figure_8.items()))
    setup = (*setup_of(fabrics.values(), quick), *deadlocks)
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _similarity_claims(
    curves: Mapping[PatternRouting, LatencyCurve],
    curves_of_figure_8: Mapping[PatternRouting, LatencyCurve],
) -> Iterator[PaperClaim]:
    """Yield the claims that the permutations of figure 8 are similar to perm2hop."""
    for (pattern, routing), curve in curves_of_figure_8.items():
        of_perm2hop = largest_accepted_load(curves[PatternRouting("perm2hop", routing)])
        yield PaperClaim(
            says=f"{pattern} is similar to perm2hop, {routing}: ratio of the largest throughputs",
            printed=1,
            computed=largest_accepted_load(curve) / of_perm2hop,
            reading_error=RATIO_ERROR,
            interpretation=WITHIN_TEN_PERCENT,
        )


LOAD_READING_ERROR = 0.05
"""The error of a load that the paper prints as "almost 50 %"."""


def _saturation_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that adaptive routing saturates at almost 50 %."""
    for pattern in NEIGHBOURS:
        for routing in ADAPTIVE:
            curve = curves[PatternRouting(pattern, routing)]
            sustained = largest_sustained_load(curve)
            not_sustained = next_load(sustained, curve)
            middle = (sustained + not_sustained) / 2
            within = " The introduction has 50 to 66 %." if 0.5 <= middle <= 0.66 else ""
            reading = (
                f"It sustains {sustained:g} and not {not_sustained:g}; ours is the middle.{within}"
            )
            yield PaperClaim(
                says=f"{pattern}: almost 50 % with {routing}",
                printed=0.5,
                computed=middle,
                reading_error=LOAD_READING_ERROR,
                interpretation=f"Read as within {LOAD_READING_ERROR:g}. {reading}",
                reason=reading,
            )


LOAD_WITHOUT_STEPS = (
    "Of the loads .05, .1, … it sustains the first. Without steps it is {:.3g}: a link carries 1/16"
    " of what the 16 hosts of a switch can send."
)
"""How the 5 % are read with which MIN copes: as the largest of the paper's loads that it sustains.
PolarFly q = 31 has 16 hosts a switch (Table V), which all send to one switch over one path."""
TWO_PAIRS_SHARE_A_LINK = (
    "In the permutation that is drawn here, paths of two pairs share a link: 1/32 for each."
)
"""Why MIN may sustain less than 5 % under perm2hop: 2 · 16 hosts send over one link."""


def _minimal_routing_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that MIN withstands a load of 5 %."""
    for pattern in NEIGHBOURS:
        sustained = largest_sustained_load(curves[PatternRouting(pattern, "MIN")])
        load_in_steps = max((load for load in LOADS if load <= sustained), default=sustained)
        yield PaperClaim(
            says=f"{pattern}: MIN withstands 5 %",
            printed=0.05,
            computed=load_in_steps,
            rounding=0.005,
            interpretation=LOAD_WITHOUT_STEPS.format(sustained),
            reason=TWO_PAIRS_SHARE_A_LINK if pattern == "perm2hop" else "",
        )


ADAPTATION_BY_LATENCY = (
    "By how many cycles more than UGAL's its mean latency is at .1, which is more than a link"
    " carries of minimal packets."
)
"""How "slower to adapt" is measured: at `LOW_LOAD`, which is more than the 1/16 or 1/32 that MIN
sustains, so that most packets have to take detours."""


def _slower_adaptation_claim(curves: Mapping[PatternRouting, LatencyCurve]) -> PaperClaim:
    """The claim that UGAL_PF adapts more slowly when switches at distance 2 are paired."""
    added_latency = {
        pattern: latency_at(curves[PatternRouting(pattern, "UGAL_PF")], LOW_LOAD)
        - latency_at(curves[PatternRouting(pattern, "UGAL")], LOW_LOAD)
        for pattern in NEIGHBOURS
    }
    return PaperClaim.of_order(
        says=f"UGAL_PF is slower to adapt under perm2hop than under perm1hop, load {LOW_LOAD}",
        first=added_latency["perm2hop"],
        relation=">",
        second=added_latency["perm1hop"],
        interpretation=ADAPTATION_BY_LATENCY,
    )
