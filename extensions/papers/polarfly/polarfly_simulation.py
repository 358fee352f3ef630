"""Figures 8 to 11 of the PolarFly paper, which are simulated: latency over load (§VIII).

`comparison`, `permutations`, `sizes` and `expanded` simulate the figures at the paper's size, or
quickly with small networks, and return the paper's statements with our values as `Evidence`.
`polarfly_paper` lists them. MIN, UGAL and UGAL_PF are the paper's routings: minimal, adaptive, and
adaptive with Compact Valiant's detours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import NamedTuple

import numpy as np

from compilers.topology.families import build_topology
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed
from extensions.papers.fluid_shares import FLUID, READ_FLUID, minimal_share
from extensions.papers.latency_curves import (
    BY_PACKETS,
    COMPARED_BY_ACCEPTED_LOAD,
    LOAD_ERROR,
    LOADS,
    CurveKey,
    PaperFabric,
    by_flits,
    deadlocks_of,
    largest_accepted_load,
    largest_gap,
    largest_sustained_load,
    latency_at,
    panels_of,
    setup_of,
    setup_of_flits,
    simulated_curve,
    undecided_if_near,
    with_missing_points,
)
from extensions.papers.polarfly.polarfly_measures import TABLE_V
from extensions.simulation.latency_curve import LatencyCurve, latency_panels

SIMULATED_SMALL = {
    "PF": ComparedNetwork("polarfly", {"q": 7}, 4),
    "SF": ComparedNetwork("slimfly", {"q": 5}, 4),
    "DF1": ComparedNetwork("dragonfly", {"h": 2, "a": 4}, 2),
    "DF2": ComparedNetwork("dragonfly", {"h": 6, "a": 3}, 3),
    "JF": ComparedNetwork("jellyfish", {"nodes": 57, "degree": 8}, 4),
    "FT": ComparedNetwork("fat-tree", {"k": 4, "pods": 4}, 4),
}
"""Networks of the kinds of Table V, of 36 to 57 routers."""
LOW_LOAD = 0.1
"""The load at which latencies are compared far below saturation."""
PERMUTATION_LOAD = 0.4
"""The load of a permutation at which minimal routes of every compared network are full."""
BELOW_THE_KNEE, ABOVE_THE_KNEE = 0.8, 0.9
"""Loads of uniform traffic, below and above that at which latency rises steeply."""
LOAD_READING_ERROR = 0.05
"""The error of a load that the paper prints as "almost 50 %"."""
RATIO_ERROR = 0.1
"""By how much "comparable" and "similar" values may differ."""
WITHIN_TEN_PERCENT = "Read as 10 % apart at most."
"""How these words are read."""
PERMUTED = ("permutation", "tornado")
"""The permutations of figure 8."""
NEIGHBOURS = ("perm2hop", "perm1hop")
"""The permutations of figure 9, which pair switches at distance 2, and neighbours."""
ADAPTIVE = ("UGAL", "UGAL_PF")
"""The adaptive routings."""
GROWN_ROUTINGS = ("MIN", "UGAL_PF")
"""The routings of figure 11."""
RIVALS = ("SF", "DF1", "DF2", "JF")
"""The direct networks that PolarFly is compared with."""
# Readings of claims, and reasons of claims that differ or are not computed.
READ_AS_SUSTAINED = "Ours is the largest sustained load, of the routing that sustains less."
READ_AS_NEXT_LOAD = "Ours is the next load that was tried, which is not sustained."
BOUNCING_ROUTING = "UGAL_PF, bounces"
"""A routing of our own, which is drawn in figure 10 and not judged."""
BOUNCING = (
    f"{BOUNCING_ROUTING} is no routing of the paper, and not judged: between adjacent switches our"
    " tables bounce, where the authors' UGAL_PF takes random paths of four links."
)
MEAN_DEGREE = "One endpoint for two links of the mean degree; the paper has the network radix."
EIGHTEEN = "With 18 hosts, half of the largest degree, it is .76."
BEFORE_GROWTH = (
    "A ratio of two such loads. Before growth the hottest link allows all of the peak; the"
    " paper's 67 % of it, 19 % less than before, are 83 % before growth."
)
NO_QUEUES = (
    "When the hottest link is full, only flows over that link are held back, and it has no queues: "
    "the mean load that a simulation accepts may be more or less."
)
OVER_THE_KNEE = (
    "With one seed. At q = 31 both sustain .85 and not .9. No load between was simulated, and the"
    " most that UGAL_PF accepts may lie there. Behind saturation nearly all its packets take a"
    " detour, and it accepts .65 at .95. UGAL accepts .89 there."
)
BY_TABLES = {
    "SF": "Slim Fly takes one path of each pair, chosen by our tables.",
    "JF": "Jellyfish is another random graph, and takes one path of each pair, by our tables.",
    "DF1": "Dragonfly is routed by our tables, and not by BookSim's usual routes.",
    "DF2": "Dragonfly is routed by our tables, and not by BookSim's usual routes.",
}
"""How the simulated networks are routed that PolarFly is compared with."""
USUAL_ROUTES = (
    "DF1 is routed by our tables, whose hottest link is full at .654. By BookSim's usual routes,"
    " which were not simulated, it is full at 875/(6·145), which is more than 1."
)
BOTH_ALL = (
    "By the usual routes of DF1 a link carries 145 pairs, so that six hosts fill it at 875/(6·145),"
    " which is more than 1: neither network has a full link."
)
HALVED_USUAL = (
    "DF1 is routed by our tables, whose hottest link is full at .654, and random detours halve"
    " that. By BookSim's usual routes, which were not simulated, it is half of 875/(6·145), more"
    " than PolarFly's load."
)
OTHERWISE_ROUTED = {
    ("uniform", "DF1"): USUAL_ROUTES,
    ("permutation", "DF1"): HALVED_USUAL,
    ("tornado", "DF1"): HALVED_USUAL,
}
"""By pattern and network, why the simulation does not decide an order: the network's usual routes,
which our tables do not take, may carry more."""
ONE_SIXTEENTH = (
    "Of the loads .05, .1, … it sustains the first. Without steps it is {:.3g}: a link carries 1/16"
    " of what the 16 hosts of a switch can send."
)
SHARED = "In the permutation that is drawn here, paths of two pairs share a link: 1/32 for each."
BY_LATENCY = (
    "By how many cycles more than UGAL's its mean latency is at .1, which is more than a link"
    " carries of minimal packets."
)
NOT_AT_THIS_LOAD = "With seed 0 {} does not sustain this load."


class NetworkRouting(NamedTuple):
    """A network with a routing."""

    network: str
    """The short name of the network."""
    routing: str
    """The routing: MIN, UGAL or UGAL_PF."""


class GrowthRouting(NamedTuple):
    """A growth of PolarFly with a routing."""

    grown: str
    """The growth, such as `fan:3` for three clusters of fans; "" before growth."""
    routing: str
    """The routing: MIN or UGAL_PF."""


PatternRouting = tuple[str, str]
"""A traffic pattern and a routing, of PolarFly."""


def _fabrics(networks: Mapping[str, ComparedNetwork]) -> dict[NetworkRouting, PaperFabric]:
    """The networks, each with the routings that the paper gives it.

    The authors' program has one path a pair for PolarFly, Slim Fly and Jellyfish. It has BookSim's
    own Dragonfly, with one path too, and BookSim's fat tree, whose packets go up by any link
    (`nca`).
    """
    routes_of = {"PF": ("MIN", "UGAL", "UGAL_PF"), "FT": ("MIN, all shortest paths",)}
    return {
        NetworkRouting(name, routes.partition(",")[0]): network.fabric(routes)
        for name, network in networks.items()
        for routes in routes_of.get(name, ("MIN", "UGAL"))
    }


def comparison(quick: bool) -> Evidence:
    """Figure 8: the networks of Table V, each with the routing that the paper gives it."""
    fabrics = _fabrics(SIMULATED_SMALL if quick else TABLE_V)
    curves = {
        CurveKey(pattern, name, routing): simulated_curve(
            fabric, pattern, quick, runs=by_flits(pattern, routing)
        )
        for (name, routing), fabric in fabrics.items()
        for pattern in ("uniform", *PERMUTED)
        if pattern == "uniform" or routing != "MIN" or name in ("PF", "FT")
    }
    claims = (
        *(() if quick else _fluid_claims(fabrics)),
        *with_missing_points(
            _polarfly_claims(curves, fabrics[NetworkRouting("PF", "MIN")].hosts, largest_gap(quick))
        ),
        *with_missing_points(_rival_claims(curves, largest_gap(quick))),
    )
    drawn = {key: curve for key, curve in curves.items() if curve.points}
    panels = panels_of(
        {(key.pattern, f"{key.network}-{key.routing}"): curve for key, curve in drawn.items()}
    )
    simulated = [fabrics[NetworkRouting(key.network, key.routing)] for key in drawn]
    fluid = () if quick else (FLUID,)
    lines = setup_of_flits(simulated, quick, drawn.items())
    measure = (COMPARED_BY_ACCEPTED_LOAD,) if lines else ()
    setup = (*lines, *measure, *fluid, *deadlocks_of(drawn.items()))
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _fluid_claims(fabrics: Mapping[NetworkRouting, PaperFabric]) -> Iterator[PaperClaim]:
    """The paper's words on minimal routes in figure 8, by the hottest link."""
    texts = {key.network: fabric.text() for key, fabric in fabrics.items() if key.routing == "MIN"}
    hosts = fabrics[NetworkRouting("PF", "MIN")].hosts
    shares = {name: minimal_share(texts[name], "uniform") for name in ("PF", *RIVALS)}
    for pattern in PERMUTED:
        says = f"MIN carries at most 1/p: {pattern}, by the hottest link"
        share = minimal_share(texts["PF"], pattern)
        yield PaperClaim(says, 1 / hosts, share, "<=", interpretation=READ_FLUID)
    for name in RIVALS:
        says = f"outperforms {name}, MIN against MIN: uniform, by the hottest link"
        read_as = f"{READ_FLUID} {BY_TABLES[name]}" if name in ("SF", "JF") else READ_FLUID
        claim = PaperClaim(says, shares[name], shares["PF"], ">", interpretation=read_as)
        yield as_not_computed(claim, BOTH_ALL) if shares[name] == shares["PF"] == 1 else claim
    says = "DF1 outperforms DF2, uniform, by the hottest link"
    yield PaperClaim(says, shares["DF2"], shares["DF1"], ">", interpretation=READ_FLUID)


def _polarfly_claims(
    curves: Mapping[CurveKey, LatencyCurve], hosts: int, gap: float | None
) -> Iterator[PaperClaim]:
    """The paper's words on PolarFly's own curves of figure 8.

    Args:
        curves: the curves of all networks.
        hosts: the hosts of a switch of PolarFly.
        gap: how far loads around saturation may be apart (`largest_gap`).
    """
    polarfly = {
        (key.pattern, key.routing): curve for key, curve in curves.items() if key.network == "PF"
    }
    accepted = {key: largest_accepted_load(curve, gap) for key, curve in polarfly.items()}
    sustained = {key: largest_sustained_load(curve, gap) for key, curve in polarfly.items()}
    yield from _polarfly_uniform_claims(polarfly, accepted, sustained)
    yield from _polarfly_permutation_claims(polarfly, accepted, sustained, hosts)
    yield from _adaptation_claims(polarfly)


def _polarfly_uniform_claims(
    polarfly: Mapping[tuple[str, str], LatencyCurve],
    accepted: Mapping[tuple[str, str], float],
    sustained: Mapping[tuple[str, str], float],
) -> Iterator[PaperClaim]:
    """The claims of figure 8 on uniform traffic in PolarFly.

    Args:
        polarfly: the curve of each pattern and routing.
        accepted: the largest accepted load of each curve.
        sustained: the largest sustained load of each curve.
    """
    says = "saturates around 90 %, which §X says of most networks: uniform, MIN"
    yield _claim_of_simulated_loads(
        says, 0.9, sustained["uniform", "MIN"], polarfly["uniform", "MIN"]
    )
    yield PaperClaim(
        "UGAL_PF is comparable to MIN there: ratio of the largest throughputs",
        1,
        accepted["uniform", "UGAL_PF"] / accepted["uniform", "MIN"],
        reading_error=RATIO_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )
    ugal, ugal_pf = (accepted["uniform", routes] for routes in ADAPTIVE)
    says = "and outperforms UGAL on PolarFly: largest throughputs"
    yield as_not_computed(PaperClaim(says, ugal, ugal_pf, ">"), OVER_THE_KNEE)
    latency = {
        routes: _latency(polarfly["uniform", routes], BELOW_THE_KNEE)
        for routes in ("MIN", *ADAPTIVE)
    }
    yield PaperClaim(
        f"UGAL_PF's latency is comparable to MIN's, load {BELOW_THE_KNEE}: ratio",
        1,
        latency["UGAL_PF"] / latency["MIN"],
        reading_error=RATIO_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )
    yield PaperClaim(
        f"and lower than UGAL's, load {BELOW_THE_KNEE}",
        latency["UGAL"],
        latency["UGAL_PF"],
        "<",
    )


def _polarfly_permutation_claims(
    polarfly: Mapping[tuple[str, str], LatencyCurve],
    accepted: Mapping[tuple[str, str], float],
    sustained: Mapping[tuple[str, str], float],
    hosts: int,
) -> Iterator[PaperClaim]:
    """The claims of figure 8 on permutations in PolarFly.

    Args:
        polarfly: the curve of each pattern and routing.
        accepted: the largest accepted load of each curve.
        sustained: the largest sustained load of each curve.
        hosts: the hosts of a switch.
    """
    for pattern in PERMUTED:
        yield PaperClaim(
            f"MIN carries at most 1/p: {pattern}",
            1 / hosts,
            accepted[pattern, "MIN"],
            "<=",
        )
    for pattern in PERMUTED:
        for routes in ADAPTIVE:
            says = f"{routes} sustains up to 50 %: {pattern}"
            yield _claim_of_simulated_loads(
                says, 0.5, sustained[pattern, routes], polarfly[pattern, routes]
            )
    for pattern in PERMUTED:
        loads_and_curves = [
            (sustained[pattern, routes], polarfly[pattern, routes]) for routes in ADAPTIVE
        ]
        least_load = float(np.min([load for load, _ in loads_and_curves]))
        next_load = float(np.max([_next_load(load, curve) for load, curve in loads_and_curves]))
        says = f"saturates between 50 and 66 %, UGAL and UGAL_PF: {pattern}"
        claim = PaperClaim(says, 0.5, least_load, ">=", interpretation=READ_AS_SUSTAINED)
        for load, curve in loads_and_curves:
            claim = _undecided_if_overloaded_below(claim, load, curve)
        yield claim
        yield PaperClaim(says, 0.66, next_load, "<=", interpretation=READ_AS_NEXT_LOAD)


def _rival_claims(
    curves: Mapping[CurveKey, LatencyCurve], gap: float | None
) -> Iterator[PaperClaim]:
    """The paper's words on PolarFly and other networks in figure 8.

    Args:
        curves: the curves of all networks.
        gap: how far loads around saturation may be apart (`largest_gap`).
    """
    accepted = {key: largest_accepted_load(curve, gap) for key, curve in curves.items()}
    polarfly_load = accepted[CurveKey("uniform", "PF", "MIN")]
    for pattern in ("uniform", *PERMUTED):
        for name in RIVALS:
            claim = _order_claim(
                f"outperforms {name}, UGAL_PF against UGAL: {pattern}",
                accepted[CurveKey(pattern, name, "UGAL")],
                accepted[CurveKey(pattern, "PF", "UGAL_PF")],
                BY_TABLES[name],
            )
            claim = _undecided_if_peak_may_be_higher(claim, curves[CurveKey(pattern, name, "UGAL")])
            reason = OTHERWISE_ROUTED.get((pattern, name), "")
            yield as_not_computed(claim, reason) if reason else claim
    for name in RIVALS:
        claim = _order_claim(
            f"outperforms {name}, MIN against MIN: uniform",
            accepted[CurveKey("uniform", name, "MIN")],
            polarfly_load,
            BY_TABLES[name],
        )
        yield as_not_computed(claim, USUAL_ROUTES) if name == "DF1" else claim
    latency = {
        name: _latency(curves[CurveKey("uniform", name, "MIN")], LOW_LOAD)
        for name in ("PF", "JF", "DF1", "DF2", "FT")
    }
    for name in ("JF", "DF1", "DF2", "FT"):
        says = f"lower latency than {name}, at a tenth of the load"
        reading = BY_TABLES.get(name, "")
        yield PaperClaim(says, latency[name], latency["PF"], "<", interpretation=reading)
    yield _order_claim(
        "DF1 outperforms DF2, uniform",
        accepted[CurveKey("uniform", "DF2", "MIN")],
        accepted[CurveKey("uniform", "DF1", "MIN")],
        BY_TABLES["DF1"],
    )
    yield PaperClaim(
        "the largest uniform throughput is comparable to FT's: ratio",
        1,
        polarfly_load / accepted[CurveKey("uniform", "FT", "MIN")],
        reading_error=RATIO_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )


def _order_claim(says: str, smaller: float, larger: float, reading: str) -> PaperClaim:
    """A claim of the order of two largest accepted loads.

    Args:
        says: what the paper says.
        smaller: the load that the paper says is smaller.
        larger: the load that it says is larger.
        reading: how the networks are routed here.
    """
    return undecided_if_near(
        PaperClaim(says, smaller, larger, ">", interpretation=reading, reason=reading)
    )


def _undecided_if_peak_may_be_higher(claim: PaperClaim, rival: LatencyCurve) -> PaperClaim:
    """The claim; not computed if the other network may accept as much between simulated loads.

    At the load above its largest sustained one it may accept less than at that, as packets take
    detours. Then it accepts the most somewhere between, at most the load that is offered.

    Args:
        claim: the claim that one network accepts more than another.
        rival: the curve of the network that is to accept less.
    """
    sustained = max((point.offered for point in rival.points if point.sustained), default=nan)
    accepted = {point.offered: point.accepted for point in rival.points}
    next_load = _next_load(sustained, rival)
    if claim.computed is None or not accepted.get(next_load, inf) < accepted.get(sustained, nan):
        return claim
    if claim.computed - next_load > LOAD_ERROR:
        return claim
    why = (
        f"It sustains {sustained:g} and not {next_load:g}, and between them it may accept nearly"
        f" {next_load:g}."
    )
    return as_not_computed(claim, why)


def _claim_of_simulated_loads(
    says: str, printed: float, sustained_load: float, curve: LatencyCurve
) -> PaperClaim:
    """A claim whose number the paper prints with "around" or "up to", as far as loads tell it.

    Args:
        says: what the paper says.
        printed: the number that the paper prints.
        sustained_load: the largest sustained load of the curve.
        curve: the simulated loads.
    """
    next_load = _next_load(sustained_load, curve)
    claim = PaperClaim(
        says,
        printed,
        sustained_load,
        interpretation=f"Read as of the loads that were simulated: with seed 0 it sustains"
        f" {sustained_load:g} and not {next_load:g}. Between them it may saturate anywhere.",
    )
    return _undecided_if_overloaded_below(claim, sustained_load, curve)


def _undecided_if_overloaded_below(
    claim: PaperClaim, sustained_load: float, curve: LatencyCurve
) -> PaperClaim:
    """The claim; "not computed" if a load below the largest sustained one is not sustained."""
    overloads = [p.offered for p in curve.points if not p.sustained and p.offered < sustained_load]
    overloads_text = ", ".join(f"{load:g}" for load in overloads)
    reason = f"With one seed it sustains {sustained_load:g}, and not {overloads_text}."
    return as_not_computed(claim, reason) if overloads else claim


def _latency(curve: LatencyCurve, load: float) -> float:
    """The mean latency at a load; nan if that was not simulated."""
    return latency_at(curve, load) if load in {point.offered for point in curve.points} else nan


def _sustains(curve: LatencyCurve, load: float) -> bool:
    """Whether all points of this load are sustained; also where there is none."""
    return all(point.sustained for point in curve.points if point.offered == load)


def _adaptation_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that UGAL_PF has higher latency than UGAL, in all patterns but two."""
    patterns = dict.fromkeys(pattern for pattern, _ in curves)
    for pattern in patterns:
        if pattern not in ("uniform", "perm1hop"):
            ugal = _latency(curves[pattern, "UGAL"], PERMUTATION_LOAD)
            ugal_pf = _latency(curves[pattern, "UGAL_PF"], PERMUTATION_LOAD)
            says = f"UGAL_PF takes longer than UGAL, load {PERMUTATION_LOAD}: {pattern}"
            notes = " ".join(
                NOT_AT_THIS_LOAD.format(routes)
                for routes in ADAPTIVE
                if not _sustains(curves[pattern, routes], PERMUTATION_LOAD)
            )
            yield PaperClaim(says, ugal, ugal_pf, ">", interpretation=notes)


def permutations(quick: bool) -> Evidence:
    """Figure 9: adaptive routing when all neighbours, or all at distance 2, are paired."""
    networks = SIMULATED_SMALL if quick else TABLE_V
    fabrics = {key.routing: fabric for key, fabric in _fabrics({"PF": networks["PF"]}).items()}
    curves = {
        (pattern, routing): simulated_curve(fabric, pattern, quick)
        for routing, fabric in fabrics.items()
        for pattern in NEIGHBOURS
    }
    of_figure_8 = {
        (pattern, routing): simulated_curve(fabrics[routing], pattern, quick)
        for routing in ADAPTIVE
        for pattern in PERMUTED
    }
    claims = tuple(_permutation_claims(curves, of_figure_8))
    panels = panels_of(
        {(pattern, f"PF-{routing}"): curve for (pattern, routing), curve in curves.items()}
    )
    deadlocks = deadlocks_of((*curves.items(), *of_figure_8.items()))
    setup = (*setup_of(fabrics.values(), quick), *deadlocks)
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _permutation_claims(
    curves: Mapping[PatternRouting, LatencyCurve],
    of_figure_8: Mapping[PatternRouting, LatencyCurve],
) -> Iterator[PaperClaim]:
    """The paper's words on figure 9, and on the permutations of figure 8 beside it."""
    for (pattern, routing), curve in of_figure_8.items():
        yield PaperClaim(
            f"{pattern} is similar to perm2hop, {routing}: ratio of the largest throughputs",
            1,
            largest_accepted_load(curve) / largest_accepted_load(curves["perm2hop", routing]),
            reading_error=RATIO_ERROR,
            interpretation=WITHIN_TEN_PERCENT,
        )
    for pattern in NEIGHBOURS:
        for routing in ADAPTIVE:
            sustained_load, next_load = _saturation(curves[pattern, routing])
            middle = (sustained_load + next_load) / 2
            within = " The introduction has 50 to 66 %." if 0.5 <= middle <= 0.66 else ""
            reading = (
                f"It sustains {sustained_load:g} and not {next_load:g}; ours is the middle.{within}"
            )
            yield PaperClaim(
                f"{pattern}: almost 50 % with {routing}",
                0.5,
                middle,
                reading_error=LOAD_READING_ERROR,
                interpretation=f"Read as within {LOAD_READING_ERROR:g}. {reading}",
                reason=reading,
            )
    for pattern in NEIGHBOURS:
        sustained_load = largest_sustained_load(curves[pattern, "MIN"])
        load_in_steps = max(
            (load for load in LOADS if load <= sustained_load), default=sustained_load
        )
        yield PaperClaim(
            f"{pattern}: MIN withstands 5 %",
            0.05,
            load_in_steps,
            rounding=0.005,
            interpretation=ONE_SIXTEENTH.format(sustained_load),
            reason=SHARED if pattern == "perm2hop" else "",
        )
    yield from _adaptation_claims({**curves, **of_figure_8})
    added_latency = {
        pattern: latency_at(curves[pattern, "UGAL_PF"], LOW_LOAD)
        - latency_at(curves[pattern, "UGAL"], LOW_LOAD)
        for pattern in NEIGHBOURS
    }
    yield PaperClaim(
        f"UGAL_PF is slower to adapt under perm2hop than under perm1hop, load {LOW_LOAD}",
        added_latency["perm1hop"],
        added_latency["perm2hop"],
        ">",
        interpretation=BY_LATENCY,
    )


def _saturation(curve: LatencyCurve) -> tuple[float, float]:
    """The largest load up to which all are sustained, and the next larger load of the curve."""
    sustained_load = largest_sustained_load(curve)
    return sustained_load, _next_load(sustained_load, curve)


def _next_load(load: float, curve: LatencyCurve) -> float:
    """The next larger load of the curve; nan if there is none, or `load` is nan."""
    return min((point.offered for point in curve.points if point.offered > load), default=nan)


def sizes(quick: bool) -> Evidence:
    """Figure 10: uniform traffic on PolarFly of several sizes."""
    fabrics = {
        f"PF{q}-{routes}": ComparedNetwork("polarfly", {"q": q}, (q + 1) // 2).fabric(routes)
        for q in ((5, 7, 9) if quick else (13, 19, 25, 31))
        for routes in ("MIN", "UGAL_PF", BOUNCING_ROUTING)
    }
    runs = {"UGAL_PF": replace(BY_PACKETS, in_part=True)}
    curves = {
        name: simulated_curve(fabric, "uniform", quick, runs=runs.get(fabric.routes, BY_PACKETS))
        for name, fabric in fabrics.items()
    }
    routers = zip((13, 19, 25, 31), (183, 381, 651, 993), strict=True)
    claims = [
        PaperClaim(f"q = {q}: routers", count, build_topology("polarfly", {"q": q}).graph.order)
        for q, count in (() if quick else routers)
    ]
    for routes in ("MIN", "UGAL_PF"):
        curves_of_routing = [curve for name, curve in curves.items() if name.endswith(f"-{routes}")]
        throughputs = [largest_accepted_load(curve) for curve in curves_of_routing]
        claims.append(
            _equality_claim(
                f"{routes}: they saturate alike, by the largest accepted load", throughputs
            )
        )
        loads = (
            (LOW_LOAD, PERMUTATION_LOAD) if quick else (LOW_LOAD, BELOW_THE_KNEE, ABOVE_THE_KNEE)
        )
        for load in loads:
            latency = [_latency(curve, load) for curve in curves_of_routing]
            claims.append(_equality_claim(f"{routes}: their latency at {load} is alike", latency))
    curves_with_points = {name: curve for name, curve in curves.items() if curve.points}
    panels = latency_panels([*curves_with_points.items()], "PolarFly, uniform")
    simulated = [fabrics[name] for name in curves_with_points]
    setup = (*setup_of(simulated, quick), BOUNCING, *_deadlocks(curves_with_points))
    return Evidence(tuple(with_missing_points(claims)), panels=panels, setup=setup, quick=quick)


def _deadlocks(curves: Mapping[str, LatencyCurve]) -> tuple[str, ...]:
    """A line that names the curves with a deadlock; () without any."""
    return deadlocks_of(((name,), curve) for name, curve in curves.items())


def _equality_claim(says: str, values: Sequence[float]) -> PaperClaim:
    """A claim that values are nearly equal: the smallest of them over the largest."""
    smallest, largest = float(np.min(values)), float(np.max(values))
    return PaperClaim(
        f"{says}: least over largest",
        1,
        smallest / largest,
        reading_error=RATIO_ERROR,
        interpretation=f"{WITHIN_TEN_PERCENT} From {smallest:.3g} to {largest:.3g}.",
        reason=f"From {smallest:.3g} to {largest:.3g}.",
    )


def expanded(quick: bool) -> Evidence:
    """Figure 11: uniform traffic on grown PolarFly, one host for two links (§VIII-C).

    The paper has one host for two links of the "network radix". We read the mean degree. By the
    largest degree (28 hosts for quadric:12 at q = 31) MIN accepts .47 at most, half of the .93
    before growth; the paper has 31 % less. By the mean (22) it accepts .63 of .75 (seed 0), 32 %
    less. For fans both readings are alike.

    With virtual channels assigned by `--scheme valley`, the throughput of grown tables with
    alternates collapses. A test shows that the channels cause this, not the tables.
    """
    q, percent = (9, {1: 10, 4: 39}) if quick else (31, {3: 10, 6: 19, 9: 29, 12: 39})
    fabrics = [*_grown_fabrics(q, percent)]
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
        *_deadlocks(curve_by_title),
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
        quadrics, fans = (
            nodes[f"{method}:{count}"] / nodes[""] - 1 for method in ("quadric", "fan")
        )
        yield PaperClaim(
            f"{count} clusters: about {printed} % more nodes",
            printed / 100,
            quadrics,
            rounding=0.005,
            interpretation=f"Read as of quadrics; by fans it is {100 * fans:.1f} %.",
        )


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
    few, fans, quadrics = (share[grown] / share[""] for grown in ("fan:3", "fan:12", "quadric:12"))
    for says, printed, computed, why in (
        ("10 % more by fans: 73 % of peak bandwidth", 0.73, few, f"{NO_QUEUES} {EIGHTEEN}"),
        ("39 % more by fans: 67 % of peak bandwidth", 0.67, fans, NO_QUEUES),
        ("39 % more by fans: 19 % less throughput", 0.81, fans, BEFORE_GROWTH),
        ("39 % more by quadrics: 31 % less throughput", 0.69, quadrics, BEFORE_GROWTH),
    ):
        claim = PaperClaim(f"{says}, by the hottest link", printed, computed, rounding=0.005)
        yield as_not_computed(claim, why)
    says, read = "fans keep more, by the hottest link", f"{READ_FLUID} {MEAN_DEGREE}"
    yield PaperClaim(says, quadrics, fans, ">", interpretation=read)


def _growth_claims(
    accepted: Mapping[str, float], percent: Mapping[int, int]
) -> tuple[PaperClaim, ...]:
    """The paper's words on figure 11.

    Args:
        accepted: the largest accepted load by growth, such as `fan:3`; "" is before growth.
        percent: how many per cent more nodes there are, by the number of clusters, ascending.
    """
    fewest, most = min(percent), max(percent)
    of_quadrics, of_fans = (
        accepted[f"quadric:{most}"] / accepted[""],
        accepted[f"fan:{most}"] / accepted[""],
    )
    of_peak: Iterable[PaperClaim] = (
        _growth_claim(
            f"by fans, of peak bandwidth after {percent[count]} %",
            printed,
            accepted[f"fan:{count}"],
        )
        for count, printed in ((fewest, 0.73), (most, 0.67))
    )
    return (
        _growth_claim("39 % more by quadrics: 31 % less throughput", 0.69, of_quadrics),
        _growth_claim("39 % more by fans: 19 % less throughput", 0.81, of_fans),
        *of_peak,
        PaperClaim("fans keep more", of_quadrics, of_fans, ">", interpretation=MEAN_DEGREE),
    )


def _growth_claim(says: str, printed: float, computed: float) -> PaperClaim:
    """A per cent of figure 11 that the text prints, with no error but its last digit's."""
    return PaperClaim(says, printed, computed, rounding=0.005, interpretation=MEAN_DEGREE)
