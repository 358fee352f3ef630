"""Figure 8 of the PolarFly paper: PolarFly and other networks, latency over load (§VIII).

`comparison` simulates the networks of Table V, or quickly small ones of the same kinds, and returns
the paper's statements with our values. The statements are of three groups:

- on minimal routes, by the hottest link, without a simulation (`fluid_shares`);
- on PolarFly alone, with MIN, UGAL and UGAL_PF;
- on PolarFly against its *rivals*, the direct networks that the paper compares it with.

Texts that say how a statement is read, or why our values do not decide it, are above the function
that makes the claim. The loads in them are those of the kept points (`manual/points`), which are of
the networks of Table V. In a quick run `UNDECIDED_IN_SMALL` stands in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan

import numpy as np

from extensions.papers.curve_presentation import (
    CurveKey,
    deadlock_lines,
    flit_setup_lines,
    pattern_panels,
)
from extensions.papers.curve_runs import by_flits
from extensions.papers.curve_values import (
    COMPARED_BY_ACCEPTED_LOAD,
    LOAD_ERROR,
    UNDECIDED_IN_SMALL,
    largest_accepted_load,
    largest_sustained_load,
    located_accepted_load,
    located_sustained_load,
    undecided_if_near,
    with_missing_points,
)
from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed
from extensions.papers.fluid_shares import FLUID, READ_FLUID, minimal_share
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.polarfly.polarfly_curves import (
    ADAPTIVE,
    BELOW_THE_KNEE,
    COMPARABLE_ERROR,
    LOW_LOAD,
    PERMUTATIONS,
    SIMULATED_SMALL,
    WITHIN_TEN_PERCENT,
    NetworkRouting,
    PatternRouting,
    adaptation_claims,
    next_load,
    routed_fabrics,
    simulated_latency,
)
from extensions.papers.polarfly.polarfly_networks import TABLE_V
from extensions.simulation.latency_curve import LatencyCurve

RIVALS = ("SF", "DF1", "DF2", "JF")
"""The direct networks that PolarFly is compared with: the fat tree, FT, is indirect."""
RIVAL_ROUTES = {
    "SF": "Slim Fly takes one path of each pair, chosen by our tables.",
    "JF": "Jellyfish is another random graph, and takes one path of each pair, by our tables.",
    "DF1": "Dragonfly is routed by our tables, and not by BookSim's usual routes.",
    "DF2": "Dragonfly is routed by our tables, and not by BookSim's usual routes.",
}
"""How the simulated rivals are routed."""


def comparison(quick: bool) -> Evidence:
    """Figure 8: the networks of Table V, each with the routing that the paper gives it."""
    fabrics = routed_fabrics(SIMULATED_SMALL if quick else TABLE_V)
    # The paper has curves of minimal routes under permutations only of PolarFly and the fat tree.
    # Curves of flits take long: at the paper's size they have only the points that are cached.
    curves = {
        CurveKey(pattern, name, routing): simulated_curve(
            fabric, pattern, quick, runs=by_flits(pattern, routing)
        )
        for (name, routing), fabric in fabrics.items()
        for pattern in ("uniform", *PERMUTATIONS)
        if pattern == "uniform" or routing != "MIN" or name in ("PF", "FT")
    }
    hosts = fabrics[NetworkRouting("PF", "MIN")].hosts
    claims = (
        *(() if quick else _hottest_link_claims(fabrics)),
        *with_missing_points(_polarfly_claims(curves, hosts, quick)),
        *with_missing_points(_rival_claims(curves, quick)),
    )
    drawn = {key: curve for key, curve in curves.items() if curve.points}
    panels = pattern_panels(
        {(key.pattern, f"{key.network}-{key.routing}"): curve for key, curve in drawn.items()}
    )
    simulated = [fabrics[NetworkRouting(key.network, key.routing)] for key in drawn]
    lines = flit_setup_lines(simulated, quick, drawn.items())
    setup = (
        *lines,
        *((COMPARED_BY_ACCEPTED_LOAD,) if lines else ()),
        *(() if quick else (FLUID,)),
        *deadlock_lines(drawn.items()),
    )
    return Evidence(claims, panels=panels, setup=setup, is_quick=quick)


# Claims on minimal routes, by the hottest link

NO_FULL_LINK = (
    "By the usual routes of DF1 a link carries 145 pairs, so that six hosts fill it at 875/(6·145),"
    " which is more than 1: neither network has a full link."
)
"""Why the hottest link does not tell whether PolarFly outperforms DF1.

DF1 has a = 12 switches in a group, h = 6 links of a switch to other groups, and so a·h + 1 = 73
groups and 876 switches. A link from s to t, in one group, carries packets of 1 + 2·a·h = 145 pairs
of switches: from s to t, from s to the a·h switches of groups that t has links to, and from the a·h
switches of groups that s has links to, to t. Each of the 6 hosts of a switch sends 1/875 of its
packets to each other switch, so the link gets 6·145/875 of what one host sends."""


def _hottest_link_claims(fabrics: Mapping[NetworkRouting, PaperFabric]) -> Iterator[PaperClaim]:
    """The paper's words on minimal routes in figure 8, by the hottest link."""
    texts = {key.network: fabric.text() for key, fabric in fabrics.items() if key.routing == "MIN"}
    hosts = fabrics[NetworkRouting("PF", "MIN")].hosts
    shares = {name: minimal_share(texts[name], "uniform") for name in ("PF", *RIVALS)}
    for pattern in PERMUTATIONS:
        yield PaperClaim(
            statement=f"MIN carries at most 1/p: {pattern}, by the hottest link",
            printed=1 / hosts,
            computed=minimal_share(texts["PF"], pattern),
            relation="<=",
            interpretation=READ_FLUID,
        )
    for name in RIVALS:
        # `minimal_share` takes Dragonfly's usual routes, and our tables for these two.
        routes = f" {RIVAL_ROUTES[name]}" if name in ("SF", "JF") else ""
        claim = PaperClaim.of_order(
            says=f"outperforms {name}, MIN against MIN: uniform, by the hottest link",
            first=shares["PF"],
            relation=">",
            second=shares[name],
            interpretation=READ_FLUID + routes,
        )
        # A share is at most 1. Of the rivals in Table V, DF1 alone has 1, as PolarFly has.
        yield as_not_computed(claim, NO_FULL_LINK) if shares[name] == shares["PF"] == 1 else claim
    yield PaperClaim.of_order(
        says="DF1 outperforms DF2, uniform, by the hottest link",
        first=shares["DF1"],
        relation=">",
        second=shares["DF2"],
        interpretation=READ_FLUID,
    )


# Claims on PolarFly alone


def _polarfly_claims(
    curves: Mapping[CurveKey, LatencyCurve], hosts: int, quick: bool
) -> Iterator[PaperClaim]:
    """The paper's words on PolarFly's own curves of figure 8.

    Args:
        curves: the curves of all networks.
        hosts: the hosts of a switch of PolarFly.
        quick: whether the curves are of small networks, at few loads. They are taken as they are;
            those of the paper's size have to locate their saturation.
    """
    polarfly = {
        PatternRouting(key.pattern, key.routing): curve
        for key, curve in curves.items()
        if key.network == "PF"
    }
    accepted_load = largest_accepted_load if quick else located_accepted_load
    sustained_load = largest_sustained_load if quick else located_sustained_load
    accepted = {key: accepted_load(curve) for key, curve in polarfly.items()}
    sustained = {key: sustained_load(curve) for key, curve in polarfly.items()}
    why_undecided = UNDECIDED_IN_SMALL if quick else PEAK_BEHIND_THE_KNEE
    yield from _uniform_claims(polarfly, accepted, sustained, why_undecided)
    yield from _permutation_claims(polarfly, accepted, sustained, hosts)
    yield from adaptation_claims(polarfly)


PEAK_BEHIND_THE_KNEE = (
    "With one seed. At q = 31 both sustain .85 and not .9. No load between was simulated, and the"
    " most that UGAL_PF accepts may lie there. Behind saturation nearly all its packets take a"
    " detour, and it accepts .65 at .95. UGAL accepts .89 there."
)
"""Why the largest accepted loads of UGAL_PF and UGAL at q = 31 do not decide an order."""


def _uniform_claims(
    polarfly: Mapping[PatternRouting, LatencyCurve],
    accepted: Mapping[PatternRouting, float],
    sustained: Mapping[PatternRouting, float],
    why_undecided: str,
) -> Iterator[PaperClaim]:
    """The claims of figure 8 on uniform traffic in PolarFly, in the order of the paper.

    1. The largest load that MIN sustains is around .9.
    2. The largest load that UGAL_PF accepts, divided by the largest that MIN accepts, is about 1.
    3. The largest load that UGAL_PF accepts is larger than the largest that UGAL accepts. Both are
       printed, and the verdict is always "not computed".
    4. The latency of UGAL_PF, divided by that of MIN, is about 1 at the load `BELOW_THE_KNEE`.
    5. The latency of UGAL_PF is lower than that of UGAL at this load.

    Args:
        polarfly: the curve of each pattern and routing.
        accepted: the largest accepted load of each curve.
        sustained: the largest sustained load of each curve.
        why_undecided: why the accepted loads of UGAL_PF and UGAL do not decide the third claim.
    """
    minimal, ugal, ugal_pf = (
        PatternRouting("uniform", routing) for routing in ("MIN", "UGAL", "UGAL_PF")
    )
    yield _claim_of_simulated_loads(
        says="saturates around 90 %, which §X says of most networks: uniform, MIN",
        printed=0.9,
        sustained_load=sustained[minimal],
        curve=polarfly[minimal],
    )
    yield PaperClaim(
        statement="UGAL_PF is comparable to MIN there: ratio of the largest throughputs",
        printed=1,
        computed=accepted[ugal_pf] / accepted[minimal],
        reading_error=COMPARABLE_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )
    ugal_pf_above_ugal = PaperClaim.of_order(
        says="and outperforms UGAL on PolarFly: largest throughputs",
        first=accepted[ugal_pf],
        relation=">",
        second=accepted[ugal],
    )
    yield as_not_computed(ugal_pf_above_ugal, why_undecided)
    latency = {
        key: simulated_latency(polarfly[key], BELOW_THE_KNEE) for key in (minimal, ugal, ugal_pf)
    }
    yield PaperClaim(
        statement=f"UGAL_PF's latency is comparable to MIN's, load {BELOW_THE_KNEE}: ratio",
        printed=1,
        computed=latency[ugal_pf] / latency[minimal],
        reading_error=COMPARABLE_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )
    yield PaperClaim.of_order(
        says=f"and lower than UGAL's, load {BELOW_THE_KNEE}",
        first=latency[ugal_pf],
        relation="<",
        second=latency[ugal],
    )


READ_AS_SUSTAINED = "Ours is the largest sustained load, of the routing that sustains less."
"""How the lower bound of a saturation is read."""
READ_AS_NEXT_LOAD = "Ours is the next load that was tried, which is not sustained."
"""How the upper bound of a saturation is read."""


def _permutation_claims(
    polarfly: Mapping[PatternRouting, LatencyCurve],
    accepted: Mapping[PatternRouting, float],
    sustained: Mapping[PatternRouting, float],
    hosts: int,
) -> Iterator[PaperClaim]:
    """The claims of figure 8 on permutations in PolarFly, each for all patterns in turn.

    1. The largest load that MIN accepts is at most 1/p, for p hosts of a switch.
    2. The largest load that UGAL sustains is around .5, and so is that of UGAL_PF.
    3. Both saturate between .5 and .66. For the lower bound, the smaller of their largest sustained
       loads is at least .5. For the upper one, the larger of the loads that were simulated next is
       at most .66.

    Args:
        polarfly: the curve of each pattern and routing.
        accepted: the largest accepted load of each curve.
        sustained: the largest sustained load of each curve.
        hosts: the hosts of a switch.
    """
    for pattern in PERMUTATIONS:
        yield PaperClaim(
            statement=f"MIN carries at most 1/p: {pattern}",
            printed=1 / hosts,
            computed=accepted[PatternRouting(pattern, "MIN")],
            relation="<=",
        )
    for pattern in PERMUTATIONS:
        for routing in ADAPTIVE:
            key = PatternRouting(pattern, routing)
            yield _claim_of_simulated_loads(
                says=f"{routing} sustains up to 50 %: {pattern}",
                printed=0.5,
                sustained_load=sustained[key],
                curve=polarfly[key],
            )
    for pattern in PERMUTATIONS:
        keys = [PatternRouting(pattern, routing) for routing in ADAPTIVE]
        next_loads = [next_load(sustained[key], polarfly[key]) for key in keys]
        says = f"saturates between 50 and 66 %, UGAL and UGAL_PF: {pattern}"
        at_least = PaperClaim(
            statement=says,
            printed=0.5,
            computed=float(np.min([sustained[key] for key in keys])),
            relation=">=",
            interpretation=READ_AS_SUSTAINED,
        )
        for key in keys:
            at_least = _undecided_if_overloaded_below(at_least, sustained[key], polarfly[key])
        yield at_least
        yield PaperClaim(
            statement=says,
            printed=0.66,
            computed=float(np.max(next_loads)),
            relation="<=",
            interpretation=READ_AS_NEXT_LOAD,
        )


def _claim_of_simulated_loads(
    says: str, printed: float, sustained_load: float, curve: LatencyCurve
) -> PaperClaim:
    """A claim whose number the paper prints with "around" or "up to".

    It is compared with the largest sustained load, though the network may saturate anywhere up to
    the next load that was simulated.

    Args:
        says: what the paper says.
        printed: the number that the paper prints.
        sustained_load: the largest sustained load of the curve.
        curve: what was simulated.
    """
    not_sustained = next_load(sustained_load, curve)
    claim = PaperClaim(
        statement=says,
        printed=printed,
        computed=sustained_load,
        interpretation=f"Read as of the loads that were simulated: with seed 0 it sustains"
        f" {sustained_load:g} and not {not_sustained:g}. Between them it may saturate anywhere.",
    )
    return _undecided_if_overloaded_below(claim, sustained_load, curve)


def _undecided_if_overloaded_below(
    claim: PaperClaim, sustained_load: float, curve: LatencyCurve
) -> PaperClaim:
    """The claim; "not computed" if a load below the largest sustained one is not sustained."""
    overloads = [
        f"{point.offered:g}"
        for point in curve.points
        if not point.sustained and point.offered < sustained_load
    ]
    if not overloads:
        return claim
    reason = f"With one seed it sustains {sustained_load:g}, and not {', '.join(overloads)}."
    return as_not_computed(claim, reason)


# Claims on PolarFly and its rivals

DF1_BY_OUR_TABLES = (
    "DF1 is routed by our tables, whose hottest link is full at .654. By BookSim's usual routes,"
    " which were not simulated, it is full at 875/(6·145), which is more than 1."
)
"""Why a simulation does not tell whether PolarFly outperforms DF1 under uniform traffic.

The .654 is what `polarfab throughput` computes of DF1 with our tables; `NO_FULL_LINK` says where
875, 6 and 145 come from."""
DF1_DETOURS_BY_OUR_TABLES = (
    "DF1 is routed by our tables, whose hottest link is full at .654, and random detours halve"
    " that. By BookSim's usual routes, which were not simulated, it is half of 875/(6·145), more"
    " than PolarFly's load."
)
"""The same under permutations, whose packets take detours. A detour is two minimal paths, so a link
carries twice as much: half of 875/(6·145) is .503."""


def _rival_claims(curves: Mapping[CurveKey, LatencyCurve], quick: bool) -> Iterator[PaperClaim]:
    """The paper's words on PolarFly and other networks in figure 8.

    1. PolarFly with UGAL_PF accepts a larger load than each rival with UGAL, for each pattern.
    2. So it does with MIN under uniform traffic, against MIN.
    3. With MIN its latency is lower at a tenth of the load.
    4. DF1 accepts a larger uniform load than DF2, both with MIN.
    5. The largest uniform load that PolarFly accepts, divided by that of the fat tree, is about 1.

    In 1 and 2 the order of PolarFly and DF1 is never decided: both loads are printed, and the
    verdict is "not computed". DF1's usual routes, which our tables do not take, may carry more.

    Args:
        curves: the curves of all networks.
        quick: as for `_polarfly_claims`.
    """
    accepted_load = largest_accepted_load if quick else located_accepted_load
    accepted = {key: accepted_load(curve) for key, curve in curves.items()}
    polarfly_load = accepted[CurveKey("uniform", "PF", "MIN")]
    why_df1_undecided = UNDECIDED_IN_SMALL if quick else DF1_BY_OUR_TABLES
    why_df1_detours_undecided = UNDECIDED_IN_SMALL if quick else DF1_DETOURS_BY_OUR_TABLES
    for pattern in ("uniform", *PERMUTATIONS):
        for name in RIVALS:
            rival = CurveKey(pattern, name, "UGAL")
            claim = _larger_load_claim(
                f"outperforms {name}, UGAL_PF against UGAL: {pattern}",
                larger=accepted[CurveKey(pattern, "PF", "UGAL_PF")],
                smaller=accepted[rival],
                routes=RIVAL_ROUTES[name],
            )
            claim = _undecided_if_peak_may_be_higher(claim, curves[rival])
            if name == "DF1":
                takes_detours = pattern in PERMUTATIONS
                why = why_df1_detours_undecided if takes_detours else why_df1_undecided
                claim = as_not_computed(claim, why)
            yield claim
    for name in RIVALS:
        claim = _larger_load_claim(
            f"outperforms {name}, MIN against MIN: uniform",
            larger=polarfly_load,
            smaller=accepted[CurveKey("uniform", name, "MIN")],
            routes=RIVAL_ROUTES[name],
        )
        yield as_not_computed(claim, why_df1_undecided) if name == "DF1" else claim
    latency = {
        name: simulated_latency(curves[CurveKey("uniform", name, "MIN")], LOW_LOAD)
        for name in ("PF", "JF", "DF1", "DF2", "FT")
    }
    for name in ("JF", "DF1", "DF2", "FT"):
        yield PaperClaim.of_order(
            says=f"lower latency than {name}, at a tenth of the load",
            first=latency["PF"],
            relation="<",
            second=latency[name],
            interpretation=RIVAL_ROUTES.get(name, ""),
        )
    yield _larger_load_claim(
        "DF1 outperforms DF2, uniform",
        larger=accepted[CurveKey("uniform", "DF1", "MIN")],
        smaller=accepted[CurveKey("uniform", "DF2", "MIN")],
        routes=RIVAL_ROUTES["DF1"],
    )
    yield PaperClaim(
        statement="the largest uniform throughput is comparable to FT's: ratio",
        printed=1,
        computed=polarfly_load / accepted[CurveKey("uniform", "FT", "MIN")],
        reading_error=COMPARABLE_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )


def _larger_load_claim(says: str, larger: float, smaller: float, routes: str) -> PaperClaim:
    """A claim of the order of two largest accepted loads; "not computed" if they are near.

    Args:
        says: what the paper says.
        larger: the load that the paper says is larger.
        smaller: the load that it says is smaller.
        routes: how the networks are routed here.
    """
    claim = PaperClaim.of_order(says, larger, ">", smaller, interpretation=routes, reason=routes)
    return undecided_if_near(claim)


def _undecided_if_peak_may_be_higher(claim: PaperClaim, rival: LatencyCurve) -> PaperClaim:
    """The claim; "not computed" if the rival may accept as much between two simulated loads.

    Take a rival that sustains .4 and not .5, and accepts .38 at .5, less than at .4, as its packets
    take detours there. It accepts the most at some load between .4 and .5, so nearly .5 at most.

    Args:
        claim: the claim that one network accepts more than another.
        rival: the curve of the network that is to accept less.
    """
    sustained = max((point.offered for point in rival.points if point.sustained), default=nan)
    not_sustained = next_load(sustained, rival)
    accepted = {point.offered: point.accepted for point in rival.points}
    accepts_less = accepted.get(not_sustained, inf) < accepted.get(sustained, nan)
    if claim.computed is None or not accepts_less:
        return claim
    if claim.computed - not_sustained > LOAD_ERROR:
        return claim
    why = (
        f"It sustains {sustained:g} and not {not_sustained:g}, and between them it may accept"
        f" nearly {not_sustained:g}."
    )
    return as_not_computed(claim, why)
