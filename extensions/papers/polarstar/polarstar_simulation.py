"""Figures of the PolarStar paper with latency over load (§9).

`synthetic` and `adversarial` simulate the networks of Table 3, or quickly small ones of the same
kinds, and return the paper's statements with our values as `Evidence`. `polarstar_paper` lists
them. MIN and UGAL are the paper's routings: minimal and adaptive. Claims on minimal routes are also
computed without simulation, from the hottest link (`fluid_shares`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import isnan, nan

import numpy as np

from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.curve_presentation import (
    CurveKey,
    deadlock_lines,
    flit_setup_lines,
    pattern_panels,
)
from extensions.papers.curve_runs import by_flits
from extensions.papers.curve_values import (
    BY_ACCEPTED_LOAD,
    COMPARED_BY_ACCEPTED_LOAD,
    LOAD_ERROR,
    UNDECIDED_IN_SMALL,
    largest_accepted_load,
    located_accepted_load,
    undecided_if_near,
    with_missing_points,
)
from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed, or_nan
from extensions.papers.fluid_shares import FLUID, READ_FLUID, minimal_share
from extensions.papers.latency_curves import simulated_curve
from extensions.papers.paper_fabric import PaperFabric
from extensions.simulation.latency_curve import LatencyCurve


def networks(quick: bool) -> dict[str, ComparedNetwork]:
    """The networks by their short names, PolarStar's first.

    Args:
        quick: whether small networks of the same kinds are simulated.
    """
    return SMALL_NETWORKS if quick else TABLE_3


def _polarstar(q: int, supernode: str, degree: int, hosts: int, group: int) -> ComparedNetwork:
    """A PolarStar.

    Args:
        q: the parameter of its structure graph ER_q.
        supernode: the kind of its supernodes.
        degree: the degree of its supernodes.
        hosts: the hosts of a switch.
        group: the switches of a supernode.
    """
    parameters: dict[str, int | str | None] = {"q": q, "supernode": supernode, "degree": degree}
    return ComparedNetwork("polarstar", parameters, hosts=hosts, group=group)


TABLE_3 = {
    "PS-IQ": _polarstar(11, "inductive-quad", degree=3, hosts=5, group=8),
    "PS-Pal": _polarstar(8, "paley", degree=6, hosts=5, group=13),
    "BF": ComparedNetwork("bundlefly", {"q": 7, "degree": 4}, hosts=5, group=9),
    "HX": ComparedNetwork("hyperx", {"sides": "9x9x8"}, hosts=8),
    "DF": ComparedNetwork("dragonfly", {"h": 6, "a": 12}, hosts=6, group=12),
    "SF": ComparedNetwork("spectralfly", {"p": 23, "q": 13}, hosts=8),
    "MF": ComparedNetwork("megafly", {"h": 8, "a": 16}, hosts=8, group=16),
    "FT": ComparedNetwork("fat-tree", {"k": 18, "pods": 18}, hosts=18),
}
"""The networks of Table 3. The table prints 993 routers of PS-Pal, which is the order of ER_31. The
largest Paley PolarStar of this radix, which is here, has 949."""
SMALL_NETWORKS = {
    "PS-IQ": _polarstar(3, "inductive-quad", degree=3, hosts=2, group=8),
    "PS-Pal": _polarstar(4, "paley", degree=2, hosts=2, group=5),
    "BF": ComparedNetwork("bundlefly", {"q": 3, "degree": 2}, hosts=2, group=5),
    "HX": ComparedNetwork("hyperx", {"sides": "4x4x4"}, hosts=3),
    "DF": ComparedNetwork("dragonfly", {"h": 3, "a": 6}, hosts=3, group=6),
    "SF": ComparedNetwork("spectralfly", {"p": 11, "q": 7}, hosts=4),
    "MF": ComparedNetwork("megafly", {"h": 3, "a": 6}, hosts=3, group=6),
    "FT": ComparedNetwork("fat-tree", {"k": 6, "pods": 6}, hosts=6),
}
"""Networks of the same kinds with about a tenth of the routers."""


PATTERNS = ("uniform", "permutation", "shuffle", "reverse")
"""The traffic patterns of figure 9."""
ROUTINGS = ("MIN", "UGAL")
"""The paper's routings: minimal and adaptive."""
ALL_PATHS = ("BF", "HX", "SF", "MF", "FT")
"""Networks whose packets take any shortest path (§9.3). In the others each pair of switches has one
path."""
STARS = ("PS-IQ", "PS-Pal")
"""The PolarStars of figures 9 and 10."""
MARGINALLY_BETTER = ("SF", "BF")
"""The networks that are said to be marginally better than PolarStars in figure 9: their minimal
routing takes all shortest paths."""
MIN_BY_HOTTEST_LINK = "MIN, by the hottest link"
"""Minimal routing in words, where a load is computed (`minimal_share`) and not simulated."""
LOST_NUMBERS = (
    "The text of the paper has lost its numbers of flits and virtual channels; these are"
    " PolarFly's."
)
"""A line below both figures."""
BY_OUR_TABLES = (
    "PolarStar and Dragonfly are routed by our tables, not by the paper's rule and BookSim's usual"
    " routes."
)
"""How claims on simulated PolarStars and Dragonflies are read."""
COMPARABLE_ERROR = 0.1
"""How far from 1 the ratio of two "comparable" or "similar" values may be: the paper prints no
number."""
WITHIN_TEN_PERCENT = "Read as 10 % apart at most."
"""How "comparable" and "similar" are read (`COMPARABLE_ERROR`)."""
Curves = Mapping[CurveKey, LatencyCurve]
"""What was simulated, by pattern, network and routing."""


def synthetic(quick: bool) -> Evidence:
    """Figure 9: eight networks under four patterns, minimally and adaptively routed."""
    compared = networks(quick)
    curves = _curves(quick, compared, PATTERNS)
    accepted = _accepted_loads(curves, quick)
    simulated_claims = (
        *map(_read_by_our_tables, _uniform_claims(accepted)),
        *_marginal_claims(accepted, quick),
        *_adaptive_claims(accepted, quick),
        *_bit_pattern_claims(accepted, ROUTINGS),
        PaperClaim(
            statement="HX or SF sustains the most, UGAL: patterns of four, most of them",
            printed=3,
            computed=_count_patterns_won(accepted, ("HX", "SF")),
            relation=">=",
            interpretation=BY_OUR_TABLES,
        ),
    )
    claims = (
        *(() if quick else _hottest_link_claims(compared)),
        *with_missing_points(simulated_claims),
    )
    panels = pattern_panels(_curves_by_title(curves))
    fluid = () if quick else (FLUID,)
    setup = (*_setup(quick, compared, curves), *fluid, *deadlock_lines(curves.items()))
    return Evidence(claims, panels=panels, setup=setup, is_quick=quick)


def _accepted_loads(curves: Curves, quick: bool) -> dict[CurveKey, float]:
    """The largest accepted load of each curve; nan where the curve does not show it.

    Curves of a quick run are at few loads. They are taken as they are; those of the paper's size
    have to locate their saturation.
    """
    accepted_load = largest_accepted_load if quick else located_accepted_load
    return {key: accepted_load(curve) for key, curve in curves.items()}


PALEY_RULE = (
    "They are as near as simulated saturations are to those of BookSim, .02; and of Paley"
    " supernodes §9.2 only says that the rule is similar."
)
"""Why the hottest links of two networks, which differ by `LOAD_ERROR` at most, decide no order."""


def _hottest_link_claims(compared: Mapping[str, ComparedNetwork]) -> Iterator[PaperClaim]:
    """The paper's words on minimal routes in figure 9, by the hottest link."""
    cases = [
        *(("uniform", name) for name in (*STARS, "SF", "BF")),
        *(("shuffle", name) for name in (*STARS, "BF", "DF", "MF")),
        ("reverse", "MF"),
    ]
    shares = {
        CurveKey(pattern, name, "MIN"): _hottest_link_share(name, compared[name], pattern)
        for pattern, name in cases
    }
    for claim in map(_read_by_hottest_link, _uniform_claims(shares, MIN_BY_HOTTEST_LINK)):
        are_near = abs(or_nan(claim.computed) - or_nan(claim.printed)) <= LOAD_ERROR
        yield as_not_computed(claim, PALEY_RULE) if are_near else claim
    yield from map(
        _read_by_hottest_link, _bit_pattern_claims(shares, ("MIN",), MIN_BY_HOTTEST_LINK)
    )


def _read_by_our_tables(claim: PaperClaim) -> PaperClaim:
    """A claim on PolarStars simulated under uniform traffic, read as of routes by our tables."""
    return undecided_if_near(replace(claim, interpretation=BY_OUR_TABLES))


def _read_by_hottest_link(claim: PaperClaim) -> PaperClaim:
    """The claim, read as of the hottest link."""
    reading = " ".join(filter(None, (READ_FLUID, claim.interpretation)))
    return replace(claim, interpretation=reading)


def _hottest_link_share(name: str, network: ComparedNetwork, pattern: str) -> float:
    """The load at which the hottest link of minimal routes is full."""
    return minimal_share(fabric_of(name, network, "MIN").text(), pattern)


def _uniform_claims(
    accepted: Mapping[CurveKey, float], routing_text: str = "MIN"
) -> Iterator[PaperClaim]:
    """The paper's words on figure 9's uniform traffic.

    Args:
        accepted: the largest accepted loads, or those at which the hottest link is full.
        routing_text: the routing in words, for the statements.
    """
    for name in MARGINALLY_BETTER:
        for star in STARS:
            yield PaperClaim.of_order(
                says=f"{name} is better than {star}: uniform, {routing_text}, all minimal paths",
                first=accepted[CurveKey("uniform", name, "MIN")],
                relation=">",
                second=accepted[CurveKey("uniform", star, "MIN")],
            )


BY_TEN_PERCENT = "Marginally is read as by 10 % at most."
"""How the paper's word "marginally" is read, for which it prints no number."""
READ_AS_MARGINAL = f"{BY_TEN_PERCENT} {BY_OUR_TABLES}"
"""How claims with that word are read."""
NOT_BETTER = "It is not better here, so that nothing tells by how much it is."
"""Why "but marginally" is not computed where the network is no better at all."""
IQ_FULL = "The hottest link of PS-IQ is full at .785, by our tables as by §9.2's rule."
"""Why a network may be better than PS-IQ by more than 10 % here."""


def _marginal_claims(accepted: Mapping[CurveKey, float], quick: bool) -> Iterator[PaperClaim]:
    """The paper's words that networks with all minimal paths are only a little better.

    Args:
        accepted: the largest accepted loads.
        quick: whether they are of small networks, to which `IQ_FULL` does not apply.
    """
    for name in MARGINALLY_BETTER:
        for star in STARS:
            star_load, rival_load = (
                accepted[CurveKey("uniform", network, "MIN")] for network in (star, name)
            )
            claim = ratio_claim(
                f"but marginally: {name} to {star}, uniform, MIN", star_load, rival_load
            )
            if rival_load < star_load:
                yield as_not_computed(claim, NOT_BETTER)
                continue
            has_full_link = star == "PS-IQ" and not quick
            reason = f"{BY_TEN_PERCENT} {IQ_FULL}" if has_full_link else BY_TEN_PERCENT
            yield replace(claim, interpretation=READ_AS_MARGINAL, reason=reason)


USUAL_ROUTES = (
    "Dragonfly is routed by our tables, whose hottest link is full at .654. By BookSim's usual"
    " routes, which were not simulated, none is full."
)
"""Why the simulation does not decide whether PolarStar carries more uniform traffic than Dragonfly.
"""


def _adaptive_claims(accepted: Mapping[CurveKey, float], quick: bool) -> Iterator[PaperClaim]:
    """The paper's words on figure 9's adaptive routing.

    Args:
        accepted: the largest accepted loads.
        quick: whether they are of small networks, to which `USUAL_ROUTES` does not apply.
    """
    why_undecided = UNDECIDED_IN_SMALL if quick else USUAL_ROUTES
    adaptive = {
        (key.pattern, key.network): load for key, load in accepted.items() if key.routing == "UGAL"
    }
    cases = [(star, pattern) for star in STARS for pattern in PATTERNS]
    for star, pattern in cases:
        says = f"{star} carries more than DF: {pattern}, UGAL"
        dragonfly, star_load = adaptive[pattern, "DF"], adaptive[pattern, star]
        claim = undecided_if_near(
            PaperClaim.of_order(
                says=says,
                first=star_load,
                relation=">",
                second=dragonfly,
                interpretation=BY_OUR_TABLES,
            )
        )
        yield as_not_computed(claim, why_undecided) if pattern == "uniform" else claim
    for star, pattern in cases:
        says = f"{star} is comparable to BF: {pattern}, UGAL"
        ratio = adaptive[pattern, star] / adaptive[pattern, "BF"]
        reading = f"{WITHIN_TEN_PERCENT} {BY_OUR_TABLES}"
        yield PaperClaim(
            statement=says,
            printed=1,
            computed=ratio,
            reading_error=COMPARABLE_ERROR,
            interpretation=reading,
        )


def _bit_pattern_claims(
    accepted: Mapping[CurveKey, float], routings: Iterable[str], routing_text: str = ""
) -> Iterator[PaperClaim]:
    """The paper's words on figure 9's bit shuffle and reverse.

    Args:
        accepted: the largest accepted loads, or what the hottest link allows.
        routings: the routings.
        routing_text: the routing in words, for the statements; "": its name.
    """
    for name in ("DF", "MF"):
        for routing in routings:
            least_load = _min_or_nan(
                accepted[CurveKey("shuffle", rival, routing)] for rival in (*STARS, "BF")
            )
            says = f"{name} is poor under bit shuffle, {routing_text or routing}: below PS and BF"
            load = accepted[CurveKey("shuffle", name, routing)]
            reading = "" if routing_text else BY_OUR_TABLES
            yield PaperClaim.of_order(
                says=says,
                first=load,
                relation="<",
                second=least_load,
                interpretation=reading,
            )
    for routing in routings:
        yield PaperClaim.of_order(
            says=f"MF is better under bit reverse, {routing_text or routing}",
            first=accepted[CurveKey("reverse", "MF", routing)],
            relation=">",
            second=accepted[CurveKey("shuffle", "MF", routing)],
        )


def _min_or_nan(values: Iterable[float]) -> float:
    """The least value; nan if one is."""
    return float(np.min(list(values)))


def _count_patterns_won(accepted: Mapping[CurveKey, float], names: Iterable[str]) -> float:
    """Under how many patterns one of these networks accepts the most with UGAL.

    It is nan if the load that some network accepts is unknown.
    """
    count = 0
    for pattern in PATTERNS:
        loads = {
            key.network: load
            for key, load in accepted.items()
            if (key.pattern, key.routing) == (pattern, "UGAL")
        }
        if any(map(isnan, loads.values())):
            return nan
        count += max(loads, key=lambda name: loads[name]) in names
    return count


def _setup(quick: bool, compared: Mapping[str, ComparedNetwork], curves: Curves) -> tuple[str, ...]:
    """Lines that say what was simulated of curves by flits."""
    drawn = {key: curve for key, curve in curves.items() if curve.points}
    fabrics = (fabric_of(key.network, compared[key.network], key.routing) for key in drawn)
    lines = flit_setup_lines(fabrics, quick, drawn.items())
    return (*lines, COMPARED_BY_ACCEPTED_LOAD, LOST_NUMBERS) if lines else ()


def adversarial(quick: bool) -> Evidence:
    """Figure 10: all endpoints of a supernode or group send to those of one other."""
    grouped = {name: network for name, network in networks(quick).items() if network.group}
    trees = {"FT": networks(quick)["FT"]}
    curves_of_groups = _curves(quick, grouped, ("adversarial",))
    curves_of_trees = _curves(quick, trees, ("longest",))
    curves = curves_of_groups | curves_of_trees
    accepted = {
        (key.routing, key.network): load for key, load in _accepted_loads(curves, quick).items()
    }
    claims = (
        *(() if quick else _adversarial_hottest_link_claims(grouped)),
        *with_missing_points(_adversarial_claims(accepted)),
    )
    # The tree has its own adversarial pattern. It is drawn with the others.
    drawn_trees = {
        key._replace(pattern="adversarial"): curve for key, curve in curves_of_trees.items()
    }
    panels = pattern_panels(_curves_by_title(curves_of_groups | drawn_trees))
    fluid = () if quick else (FLUID,)
    setup = (*_setup(quick, grouped | trees, curves), *fluid, *deadlock_lines(curves.items()))
    return Evidence(claims, panels=panels, setup=setup, is_quick=quick)


ONE_DRAWN = "Of one drawing of the supernodes that send to each other."
"""How claims on adversarial traffic are read."""
BY_CHANCE = (
    "The hottest link does not decide it: of star products it has three or four pairs of switches,"
    " by the chance of the drawing. In five drawings it allows .05 or .067 of PS-IQ and of PS-Pal,"
    " by §9.2's rule as by our tables."
)
"""Why the hottest link does not decide the order of two star products."""
ONE_DRAWING = (
    "This is of one drawing of the supernodes that send to each other, with seed 0. By chance"
    " another one may have another order."
)
"""Why the simulation does not decide the order of two star products."""


def _adversarial_hottest_link_claims(
    grouped: Mapping[str, ComparedNetwork],
) -> Iterator[PaperClaim]:
    """The paper's words on minimal routes in figure 10, by the hottest link."""
    shares = {
        name: _hottest_link_share(name, network, "adversarial") for name, network in grouped.items()
    }
    least_share = _min_or_nan(shares[name] for name in (*STARS, "BF"))
    for name in ("DF", "MF"):
        says = f"{name} saturates below the star products, {MIN_BY_HOTTEST_LINK}"
        yield _read_by_hottest_link(
            PaperClaim.of_order(
                says=says,
                first=shares[name],
                relation="<",
                second=least_share,
                interpretation=ONE_DRAWN,
            )
        )
    for name in ("BF", "PS-Pal"):
        says = f"PS-IQ is better than {name}, {MIN_BY_HOTTEST_LINK}"
        yield PaperClaim.of_order(
            says=says,
            first=None,
            relation=">",
            second=shares[name],
            reason=BY_CHANCE,
        )


def _adversarial_claims(accepted: Mapping[tuple[str, str], float]) -> Iterator[PaperClaim]:
    """The paper's words on figure 10.

    Args:
        accepted: the largest accepted loads, by routing and network.
    """
    for routing in ROUTINGS:
        for name in ("DF", "MF"):
            least_load = _min_or_nan(accepted[routing, rival] for rival in (*STARS, "BF"))
            says = f"{name} saturates below the star products, {routing}, {BY_ACCEPTED_LOAD}"
            reading = f"{ONE_DRAWN} {BY_OUR_TABLES}"
            yield PaperClaim.of_order(
                says=says,
                first=accepted[routing, name],
                relation="<",
                second=least_load,
                interpretation=reading,
            )
        for name in ("BF", "PS-Pal"):
            says = f"PS-IQ is better than {name}, {routing}, {BY_ACCEPTED_LOAD}"
            rival_load, star_load = accepted[routing, name], accepted[routing, "PS-IQ"]
            yield as_not_computed(
                PaperClaim.of_order(
                    says=says,
                    first=star_load,
                    relation=">",
                    second=rival_load,
                ),
                ONE_DRAWING,
            )


def _curves(
    quick: bool, compared: Mapping[str, ComparedNetwork], patterns: Iterable[str]
) -> dict[CurveKey, LatencyCurve]:
    """The curves by pattern, routing and network; a network is compiled once for all patterns."""
    curves = {}
    for name, network in compared.items():
        for routing in ROUTINGS:
            fabric = fabric_of(name, network, routing)
            for pattern in patterns:
                curves[CurveKey(pattern, name, routing)] = simulated_curve(
                    fabric, pattern, quick, runs=by_flits(pattern, routing)
                )
    keys = (
        CurveKey(pattern, name, routing)
        for pattern in patterns
        for routing in ROUTINGS
        for name in compared
    )
    return {key: curves[key] for key in keys}


def _curves_by_title(curves: Curves) -> dict[tuple[str, str], LatencyCurve]:
    """The curves by pattern, and by network and routing in words."""
    return {
        (key.pattern, f"{key.network}-{key.routing}"): curve
        for key, curve in curves.items()
        if curve.points
    }


def fabrics_of(compared: Mapping[str, ComparedNetwork]) -> Iterator[PaperFabric]:
    """The networks with all routings."""
    for name, network in compared.items():
        for routing in ROUTINGS:
            yield fabric_of(name, network, routing)


def fabric_of(name: str, network: ComparedNetwork, routing: str) -> PaperFabric:
    """A network with the routes that the paper gives it."""
    return network.fabric(f"{routing}, all shortest paths" if name in ALL_PATHS else routing)


def ratio_claim(says: str, reference: float, value: float) -> PaperClaim:
    """The claim that a value is comparable to a reference: within 10 % of it."""
    ratio = value / reference
    return PaperClaim(
        statement=f"{says}: ratio",
        printed=1,
        computed=ratio,
        reading_error=COMPARABLE_ERROR,
        interpretation=WITHIN_TEN_PERCENT,
    )
