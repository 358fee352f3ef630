"""Figures of the PolarFly paper that are simulated: latency over load (§VIII)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compilers.drawing.plots import Panel
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import (
    Look,
    PaperFabric,
    accepted,
    polarfly_curve,
    simulated_curve,
)
from extensions.papers.polarfly.polarfly_measures import CONFIGURED, SMALL_SIZE, Network
from extensions.simulation.latency_curve import LatencyCurve
from extensions.simulation.latency_plot import latencies

SIMULATED_SMALL: dict[str, Network] = {
    "PF": ("polarfly", {"q": 7}, 4),
    "SF": ("slimfly", {"q": 5}, 4),
    "DF1": ("dragonfly", {"h": 2, "a": 4}, 2),
    "DF2": ("dragonfly", {"h": 6, "a": 3}, 3),
    "JF": ("jellyfish", {"nodes": 57, "degree": 8}, 4),
    "FT": ("fat-tree", {"k": 4, "pods": 4}, 4),
}
"""Networks of the kinds of Table V, of 36 to 57 routers."""
LOOK = Look((0.1, 0.5, 0.95), warmup=500, period=200, periods=4, drain=300)
GROWN = Look((0.1, 0.5, 0.7, 0.95), warmup=400, period=150, periods=2, drain=200)
OWN_ROUTES = (
    "All networks have tables of ours here, and UGAL_PF; the others have UGAL in the paper."
)
BALANCED = (
    "A grown fabric has half of its largest degree in hosts here, at every switch: copied quadrics"
    " make the largest degree grow twice as fast as that of most switches."
)


def _reason(quick: bool, reason: str = "") -> str:
    return " ".join(filter(None, (reason, SMALL_SIZE if quick else "")))


def _panels(title: str, curves: Mapping[str, LatencyCurve]) -> tuple[Panel, ...]:
    return latencies(list(curves.items()), title)


def comparison(quick: bool) -> Evidence:
    """Figure 8: the networks of Table V beside each other."""
    known = SIMULATED_SMALL if quick else CONFIGURED
    curves = _compared(quick, known)
    held = {key: accepted(curve) for key, curve in curves.items()}
    direct = ("SF", "DF1", "DF2", "JF")
    reason = _reason(quick, OWN_ROUTES)
    hosts = known["PF"][2]
    tornado = PaperFabric({"family": "polarfly", **known["PF"][1]}, hosts, "minimal")
    claims = (
        PaperClaim(
            "saturation around 90 % under uniform traffic",
            0.9,
            held["uniform", "minimal", "PF"],
            ">=",
            tolerance=0.05,
        ),
        PaperClaim(
            "UGAL_PF is comparable to min-path there",
            held["uniform", "minimal", "PF"],
            held["uniform", "adaptive", "PF"],
            tolerance=0.1,
        ),
        PaperClaim(
            "min-path carries at most 1/p of a permutation",
            1 / hosts,
            accepted(simulated_curve(tornado, "tornado", quick, LOOK)),
            "<=",
        ),
        *(
            PaperClaim(
                f"UGAL_PF sustains up to 50 %: {pattern}",
                0.5,
                held[pattern, "adaptive", "PF"],
                tolerance=0.1,
                reason=_reason(quick),
            )
            for pattern in ("permutation", "tornado")
        ),
        *(
            PaperClaim(
                f"outperforms {name}: {pattern}",
                held[pattern, "adaptive", name],
                held[pattern, "adaptive", "PF"],
                ">=",
                tolerance=0.05,
                reason=reason,
            )
            for pattern in ("uniform", "permutation", "tornado")
            for name in direct
        ),
        *(
            PaperClaim(
                f"lower latency than {name}, at a tenth of the load",
                _early(curves["uniform", "minimal", name]),
                _early(curves["uniform", "minimal", "PF"]),
                "<=",
                reason=reason,
            )
            for name in ("JF", "DF1", "DF2", "FT")
        ),
        PaperClaim(
            "DF1 outperforms DF2, uniform",
            held["uniform", "minimal", "DF2"],
            held["uniform", "minimal", "DF1"],
            ">=",
            reason=reason,
        ),
        PaperClaim(
            "PF's largest uniform load is comparable to FT's: ratio",
            1,
            held["uniform", "minimal", "PF"] / held["uniform", "minimal", "FT"],
            tolerance=0.1,
            reason=reason,
        ),
    )
    names = {f"{pattern}: {name}-{way}": key for key in curves for pattern, way, name in (key,)}
    panels: list[Panel] = []
    for pattern in ("uniform", "permutation", "tornado"):
        chosen = {
            words.partition(": ")[2]: curves[key]
            for words, key in names.items()
            if key[0] == pattern
        }
        panels += _panels(pattern, chosen)
    return Evidence(claims, panels=tuple(panels[0::2] + panels[1::2]))


def _compared(
    quick: bool, known: Mapping[str, Network]
) -> dict[tuple[str, str, str], LatencyCurve]:
    """By pattern, routes and network; minimal routes of uniform traffic alone."""
    found = {}
    for name, (family, parameters, hosts) in known.items():
        every = "all minimal" if name == "FT" else "minimal"
        for way, patterns in (
            ("minimal", ("uniform",)),
            ("adaptive", ("uniform", "permutation", "tornado")),
        ):
            routes = every if way == "minimal" else way
            fabric = PaperFabric({"family": family, **parameters}, hosts, routes)
            for pattern in patterns:
                found[pattern, way, name] = simulated_curve(fabric, pattern, quick, LOOK)
    return found


def _early(curve: LatencyCurve) -> float:
    """Mean latency at the lowest load."""
    return curve.points[0].mean_latency or 0.0


def permutations(quick: bool) -> Evidence:
    """Figure 9: adaptive routing when all neighbours, or all at distance 2, are paired."""
    q = 7 if quick else 31
    hosts, curves = (q + 1) // 2, {}
    for pattern in ("perm2hop", "perm1hop"):
        for ways in ("minimal", "adaptive"):
            curves[f"{ways}, {pattern}"] = polarfly_curve(q, pattern, ways, quick)
    held = {name: accepted(curve) for name, curve in curves.items()}
    claims = [
        *(
            PaperClaim(
                f"{pattern}: almost 50 % with adaptive routing",
                0.5,
                held[f"adaptive, {pattern}"],
                tolerance=0.1,
                reason=_reason(quick),
            )
            for pattern in ("perm2hop", "perm1hop")
        ),
        *(
            PaperClaim(
                f"{pattern}: min-path withstands 1/p, 5 % at q = 31",
                1 / hosts,
                held[f"minimal, {pattern}"],
                tolerance=0.02,
            )
            for pattern in ("perm2hop", "perm1hop")
        ),
    ]
    return Evidence(tuple(claims), panels=_panels(f"PolarFly q = {q}", curves))


def sizes(quick: bool) -> Evidence:
    """Figure 10: uniform traffic on PolarFly of several sizes."""
    orders = (5, 7, 9) if quick else (13, 19, 25, 31)
    curves = {
        f"PF{q}-{ways}": polarfly_curve(q, "uniform", ways, quick)
        for q in orders
        for ways in ("minimal", "adaptive")
    }
    held = [accepted(curve) for curve in curves.values()]
    early = [curve.points[0].mean_latency or 0.0 for curve in curves.values()]
    claims = (
        PaperClaim(
            "all sizes saturate alike: least over largest", 1, min(held) / max(held), tolerance=0.1
        ),
        PaperClaim(
            "their latency is alike: least over largest", 1, min(early) / max(early), tolerance=0.1
        ),
    )
    return Evidence(claims, panels=_panels("PolarFly, uniform", curves))


def expanded(quick: bool) -> Evidence:
    """Figure 11: uniform traffic on grown PolarFly, half of each one's radix in hosts."""
    q, steps = (9, (1, 4)) if quick else (31, (3, 6, 9, 12))
    few, many = steps[0], steps[-1]
    curves = {}
    for grown in ("", *(f"{method}:{n}" for method in ("quadric", "fan") for n in steps)):
        for routes in ("minimal", "adaptive"):
            fabric = PaperFabric({"family": "polarfly", "q": q}, 1, routes, grown=grown)
            radix = int(fabric.build().topology.graph.degrees.max())
            balanced = replace(fabric, hosts=radix // 2)
            curves[grown, routes] = simulated_curve(balanced, "uniform", quick, GROWN)
    held = {
        grown: max(accepted(curves[grown, routes]) for routes in ("minimal", "adaptive"))
        for grown, _ in curves
    }
    shares = (10, 39) if quick else (10, 19, 29, 39)
    whole, percent = held[""], dict(zip(steps, shares, strict=True))
    share = {grown: load / whole for grown, load in held.items()}
    claims = (
        PaperClaim(
            "39 % more by quadrics: 31 % less throughput",
            0.69,
            share[f"quadric:{many}"],
            tolerance=0.1,
            reason=f"{BALANCED} {SMALL_SIZE}" if quick else BALANCED,
        ),
        PaperClaim(
            "39 % more by fans: 19 % less throughput",
            0.81,
            share[f"fan:{many}"],
            tolerance=0.1,
            reason=BALANCED,
        ),
        *(
            PaperClaim(
                f"by fans, of the peak after {percent[count]} %",
                printed,
                held[f"fan:{count}"],
                tolerance=0.1,
                reason=BALANCED,
            )
            for count, printed in ((few, 0.73), (many, 0.67))
        ),
        PaperClaim("fans keep more", share[f"quadric:{many}"], share[f"fan:{many}"], ">="),
    )
    named = {}
    for (grown, routes), curve in curves.items():
        method, _, count = grown.partition(":")
        words = f"{method}, {percent[int(count)]} % more" if count else "as it was"
        named[f"{words}, {routes}"] = curve
    return Evidence(claims, panels=_panels(f"Grown PolarFly q = {q}", named))
