"""Figure 9 of the PolarFly paper: adaptive routing under permutations of near switches (§VIII).

`permutations` simulates two patterns, which pair neighbours, or switches at distance 2, and returns
the paper's statements with our values. Points are averaged over runs of several seeds
(`curve_runs.BY_PACKETS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from extensions.papers.curve_presentation import deadlock_lines, pattern_panels, setup_lines
from extensions.papers.curve_runs import BY_PACKETS
from extensions.papers.curve_values import largest_accepted_load, largest_sustained_load, latency_at
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.polarfly.polarfly_curves import (
    ADAPTIVE,
    COMPARABLE_ERROR,
    LOW_LOAD,
    PERMUTATIONS,
    SIMULATED_SMALL,
    WITHIN_TEN_PERCENT,
    PatternRouting,
    adaptation_claims,
    next_load,
    routed_fabrics,
)
from extensions.papers.polarfly.polarfly_networks import TABLE_V
from extensions.simulation.latency_curve import LatencyCurve

NEAR_PERMUTATIONS = ("perm2hop", "perm1hop")
"""The traffic patterns of figure 9: permutations that pair switches at distance 2, or neighbours.
"""


def permutations(quick: bool) -> Evidence:
    """Figure 9: adaptive routing when all neighbours, or all at distance 2, are paired."""
    networks = SIMULATED_SMALL if quick else TABLE_V
    polarfly = routed_fabrics({"PF": networks["PF"]})
    fabrics = {key.routing: fabric for key, fabric in polarfly.items()}
    curves = {
        PatternRouting(pattern, routing): simulated_curve(fabric, pattern, quick)
        for routing, fabric in fabrics.items()
        for pattern in NEAR_PERMUTATIONS
    }
    curves_of_figure_8 = {
        PatternRouting(pattern, routing): simulated_curve(fabrics[routing], pattern, quick)
        for routing in ADAPTIVE
        for pattern in PERMUTATIONS
    }
    claims = (
        *_similarity_claims(curves, curves_of_figure_8),
        *_saturation_claims(curves),
        *_minimal_routing_claims(curves, networks["PF"].hosts),
        *adaptation_claims({**curves, **curves_of_figure_8}),
        _slower_adaptation_claim(curves),
    )
    panels = pattern_panels(
        {(pattern, f"PF-{routing}"): curve for (pattern, routing), curve in curves.items()}
    )
    deadlocks = deadlock_lines((*curves.items(), *curves_of_figure_8.items()))
    setup = (*setup_lines(fabrics.values(), quick), *deadlocks)
    return Evidence(claims, panels=panels, setup=setup, is_quick=quick)


def _similarity_claims(
    curves: Mapping[PatternRouting, LatencyCurve],
    curves_of_figure_8: Mapping[PatternRouting, LatencyCurve],
) -> Iterator[PaperClaim]:
    """Yield the claims that the permutations of figure 8 are similar to perm2hop."""
    for (pattern, routing), curve in curves_of_figure_8.items():
        of_perm2hop = largest_accepted_load(curves[PatternRouting("perm2hop", routing)])
        yield PaperClaim(
            statement=f"{pattern} is similar to perm2hop, {routing}: ratio of the largest"
            " throughputs",
            printed=1,
            computed=largest_accepted_load(curve) / of_perm2hop,
            reading_error=COMPARABLE_ERROR,
            interpretation=WITHIN_TEN_PERCENT,
        )


LOAD_READING_ERROR = 0.05
"""The error of a load that the paper prints as "almost 50 %"."""


def _saturation_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that adaptive routing saturates at almost 50 %."""
    for pattern in NEAR_PERMUTATIONS:
        for routing in ADAPTIVE:
            curve = curves[PatternRouting(pattern, routing)]
            sustained = largest_sustained_load(curve)
            not_sustained = next_load(sustained, curve)
            middle = (sustained + not_sustained) / 2
            reading = f"It sustains {sustained:g} and not {not_sustained:g}; ours is the middle."
            if 0.5 <= middle <= 0.66:
                reading += " The introduction has 50 to 66 %."
            yield PaperClaim(
                statement=f"{pattern}: almost 50 % with {routing}",
                printed=0.5,
                computed=middle,
                reading_error=LOAD_READING_ERROR,
                interpretation=f"Read as within {LOAD_READING_ERROR:g}. {reading}",
                reason=reading,
            )


def load_without_steps(sustained: float, hosts: int) -> str:
    """How the 5 % are read that MIN withstands: as the largest of the paper's loads it sustains.

    All hosts of a switch send to those of one other switch, over one path.

    Args:
        sustained: the largest load that was sustained here.
        hosts: the hosts of a switch, 16 in PolarFly of q = 31 (Table V).
    """
    return (
        f"Of the loads .05, .1, … it sustains the first. Without steps it is {sustained:.3g}: a"
        f" link carries 1/{hosts} of what the {hosts} hosts of a switch can send."
    )


def two_pairs_share_a_link(hosts: int) -> str:
    """Why MIN may sustain less than 5 % under perm2hop: the hosts of two switches share a link."""
    return (
        "In the permutation that is drawn here, paths of two pairs share a link:"
        f" 1/{2 * hosts} for each."
    )


def _minimal_routing_claims(
    curves: Mapping[PatternRouting, LatencyCurve], hosts: int
) -> Iterator[PaperClaim]:
    """Yield the claims that MIN withstands a load of 5 %.

    Args:
        curves: the curves of figure 9.
        hosts: the hosts of a switch.
    """
    # The paper simulates loads in steps, so the sustained load is rounded down to one of ours.
    for pattern in NEAR_PERMUTATIONS:
        sustained = largest_sustained_load(curves[PatternRouting(pattern, "MIN")])
        load_in_steps = max(
            (load for load in BY_PACKETS.loads if load <= sustained), default=sustained
        )
        yield PaperClaim(
            statement=f"{pattern}: MIN withstands 5 %",
            printed=0.05,
            computed=load_in_steps,
            rounding=0.005,
            interpretation=load_without_steps(sustained, hosts),
            reason=two_pairs_share_a_link(hosts) if pattern == "perm2hop" else "",
        )


ADAPTATION_BY_LATENCY = (
    "By how many cycles more than UGAL's its mean latency is at .1, which is more than a link"
    " carries of minimal packets."
)
"""How "slower to adapt" is measured. `LOW_LOAD` is more than the 1/16 or 1/32 that MIN sustains at
q = 31, so that most packets have to take detours there."""


def _slower_adaptation_claim(curves: Mapping[PatternRouting, LatencyCurve]) -> PaperClaim:
    """The claim that UGAL_PF adapts more slowly when switches at distance 2 are paired."""
    # By how many cycles the mean latency of UGAL_PF is more than that of UGAL.
    added_latency = {
        pattern: latency_at(curves[PatternRouting(pattern, "UGAL_PF")], LOW_LOAD)
        - latency_at(curves[PatternRouting(pattern, "UGAL")], LOW_LOAD)
        for pattern in NEAR_PERMUTATIONS
    }
    return PaperClaim.of_order(
        says=f"UGAL_PF is slower to adapt under perm2hop than under perm1hop, load {LOW_LOAD}",
        first=added_latency["perm2hop"],
        relation=">",
        second=added_latency["perm1hop"],
        interpretation=ADAPTATION_BY_LATENCY,
    )
