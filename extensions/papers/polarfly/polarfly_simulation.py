"""Figures of the PolarFly paper that are simulated: latency over load (§VIII)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import (
    PaperFabric,
    deadlocks_of,
    latency_at,
    most_accepted,
    panels_of,
    setup_of,
    simulated_curve,
    sustained,
)
from extensions.papers.polarfly.polarfly_measures import CONFIGURED, Network
from extensions.simulation.latency_curve import LatencyCurve, latencies

SIMULATED_SMALL: dict[str, Network] = {
    "PF": ("polarfly", {"q": 7}, 4),
    "SF": ("slimfly", {"q": 5}, 4),
    "DF1": ("dragonfly", {"h": 2, "a": 4}, 2),
    "DF2": ("dragonfly", {"h": 6, "a": 3}, 3),
    "JF": ("jellyfish", {"nodes": 57, "degree": 8}, 4),
    "FT": ("fat-tree", {"k": 4, "pods": 4}, 4),
}
"""Networks of the kinds of Table V, of 36 to 57 routers."""
LOADED = 0.4
"""Of a permutation, at which minimal routes of every network compared here are full."""
BELOW_THE_KNEE, BEHIND_IT = 0.8, 0.9
"""Loads of uniform traffic."""
OFF = 0.05
"""By which "around 90 %", "up to 50 %" and "almost 50 %" may be off."""
ALIKE = 0.1
"""By which "comparable" and "similar" values may differ."""
PERMUTED = ("permutation", "tornado")
ADAPTIVE = ("UGAL", "UGAL_PF")
BY_TABLES = ("MIN", "UGAL_PF, bounces")
"""Of figure 10, where few pairs are adjacent: between these the authors' UGAL_PF draws paths of
four links, and tables bounce."""
BOUNCING = (
    "With the bounces of our tables between adjacent switches; the authors' program takes random"
    " paths of four links there."
)
MEAN_DEGREE = "One endpoint for two links of the mean degree; the paper has the network radix."
Fabrics = Mapping[tuple[str, str], PaperFabric]
Curves = Mapping[tuple[str, str, str], LatencyCurve]


def _fabrics(configured: Mapping[str, Network]) -> dict[tuple[str, str], PaperFabric]:
    """By network and routing, each with what the paper gives it.

    Its program has one path a pair for PolarFly, Slim Fly and Jellyfish, and BookSim's own
    Dragonfly, with one path too, and fat tree, whose packets go up by any link (`nca`).
    """
    return {
        (name, routes.split(",")[0]): PaperFabric({"family": family, **parameters}, hosts, routes)
        for name, (family, parameters, hosts) in configured.items()
        for routes in {
            "PF": ("MIN", "UGAL", "UGAL_PF"),
            "FT": ("MIN, all shortest paths",),
        }.get(name, ("MIN", "UGAL"))
    }


def comparison(quick: bool) -> Evidence:
    """Figure 8: the networks of Table V, each with the routing that the paper gives it."""
    fabrics = _fabrics(SIMULATED_SMALL if quick else CONFIGURED)
    curves: dict[tuple[str, str, str], LatencyCurve] = {
        (pattern, *key): simulated_curve(fabric, pattern, quick)
        for key, fabric in fabrics.items()
        for pattern in ("uniform", *PERMUTED)
        if pattern == "uniform" or key[1] != "MIN" or key[0] in ("PF", "FT")
    }
    claims = _comparison_claims(curves, fabrics["PF", "MIN"].hosts)
    panels = panels_of({(p, f"{n}-{rule}"): curve for (p, n, rule), curve in curves.items()})
    setup = (*setup_of(fabrics.values(), quick), *deadlocks_of(curves.items()))
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _comparison_claims(
    curves: Mapping[tuple[str, str, str], LatencyCurve], hosts: int
) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 8.

    Args:
        curves: by pattern, network and routing.
        hosts: a switch of PolarFly.
    """
    held = {key: sustained(curve) for key, curve in curves.items()}
    most = {key: most_accepted(curve) for key, curve in curves.items()}
    flow = most["uniform", "PF", "MIN"]
    early = {name: latency_at(curves["uniform", name, "MIN"], 0.1) for _, name, _ in curves}
    return (
        _about("saturation around 90 % under uniform traffic", 0.9, held["uniform", "PF", "MIN"]),
        PaperClaim(
            "UGAL_PF is comparable to MIN there: ratio of the largest throughputs",
            1,
            most["uniform", "PF", "UGAL_PF"] / flow,
            reading_error=ALIKE,
        ),
        PaperClaim(
            "and outperforms UGAL on PolarFly",
            most["uniform", "PF", "UGAL"],
            most["uniform", "PF", "UGAL_PF"],
            ">=",
        ),
        *(
            PaperClaim(
                f"MIN carries at most 1/p: {pattern}",
                1 / hosts,
                most[pattern, "PF", "MIN"],
                "<=",
                rounding=0.002,  # a packet more may end in the window than began in it
            )
            for pattern in PERMUTED
        ),
        *(
            _about(f"{routes} sustains up to 50 %: {pattern}", 0.5, held[pattern, "PF", routes])
            for pattern in PERMUTED
            for routes in ADAPTIVE
        ),
        *_between(
            "saturates between 50 and 66 %, the better routing",
            (0.5, 0.66),
            {pattern: max(most[pattern, "PF", rule] for rule in ADAPTIVE) for pattern in PERMUTED},
        ),
        *_slower_to_adapt(
            {(pattern, rule): c for (pattern, n, rule), c in curves.items() if n == "PF"}
        ),
        *(
            PaperClaim(
                f"outperforms {name}, UGAL_PF against UGAL: {pattern}",
                most[pattern, name, "UGAL"],
                most[pattern, "PF", "UGAL_PF"],
                ">=",
            )
            for pattern in ("uniform", *PERMUTED)
            for name in ("SF", "DF1", "DF2", "JF")
        ),
        *(
            PaperClaim(
                f"outperforms {name}, MIN against MIN: uniform",
                most["uniform", name, "MIN"],
                flow,
                ">=",
            )
            for name in ("SF", "DF1", "DF2", "JF")
        ),
        *(
            PaperClaim(
                f"lower latency than {name}, at a tenth of the load",
                early[name],
                early["PF"],
                "<=",
            )
            for name in ("JF", "DF1", "DF2", "FT")
        ),
        PaperClaim(
            "DF1 outperforms DF2, uniform",
            most["uniform", "DF2", "MIN"],
            most["uniform", "DF1", "MIN"],
            ">=",
        ),
        PaperClaim(
            "the largest uniform throughput is comparable to FT's: ratio",
            1,
            flow / most["uniform", "FT", "MIN"],
            reading_error=ALIKE,
        ),
    )


def _between(
    says: str, ends: tuple[float, float], values: Mapping[str, float]
) -> Iterable[PaperClaim]:
    """Values by pattern, neither below nor above the ends."""
    for pattern, value in values.items():
        yield PaperClaim(f"{says}: {pattern}", ends[0], value, ">=")
        yield PaperClaim(f"{says}: {pattern}", ends[1], value, "<=")


def _about(says: str, printed: float, computed: float) -> PaperClaim:
    return PaperClaim(says, printed, computed, reading_error=OFF)


def _in_print(says: str, printed: float, computed: float) -> PaperClaim:
    """Per cent of figure 11 that the text prints, with no reading error but its last digit's."""
    return PaperClaim(says, printed, computed, rounding=0.005, interpretation=MEAN_DEGREE)


def _slower_to_adapt(curves: Mapping[tuple[str, str], LatencyCurve]) -> Iterable[PaperClaim]:
    """UGAL_PF has considerably higher latency than UGAL; by pattern and routing."""
    for pattern in dict.fromkeys(
        pattern for pattern, _ in curves if pattern not in ("uniform", "perm1hop")
    ):
        plain, ours = (latency_at(curves[pattern, rule], LOADED) for rule in ("UGAL", "UGAL_PF"))
        says = f"UGAL_PF takes longer than UGAL, load {LOADED}: {pattern}"
        yield PaperClaim(says, plain, ours, ">=")


SHARED = "in the permutation that is drawn here, paths of two pairs share a link: 1/32 for each"


def permutations(quick: bool) -> Evidence:
    """Figure 9: adaptive routing when all neighbours, or all at distance 2, are paired."""
    fabrics = _fabrics({"PF": SIMULATED_SMALL["PF"] if quick else CONFIGURED["PF"]})
    patterns = ("perm2hop", "perm1hop")
    curves = {
        (pattern, rule): simulated_curve(fabric, pattern, quick)
        for (_, rule), fabric in fabrics.items()
        for pattern in patterns
    }
    held = {key: sustained(curve) for key, curve in curves.items()}
    likened = {
        (pattern, rule): simulated_curve(fabrics["PF", rule], pattern, quick)
        for rule in ADAPTIVE
        for pattern in PERMUTED
    }
    claims = (
        *(
            PaperClaim(
                f"{pattern} is similar to perm2hop, {rule}: ratio of the largest throughputs",
                1,
                most_accepted(curve) / most_accepted(curves["perm2hop", rule]),
                reading_error=ALIKE,
            )
            for (pattern, rule), curve in likened.items()
        ),
        *(
            _about(f"{pattern}: almost 50 % with {rule}", 0.5, held[pattern, rule])
            for pattern in patterns
            for rule in ADAPTIVE
        ),
        *(
            PaperClaim(
                f"{pattern}: MIN withstands 5 %",
                0.05,
                held[pattern, "MIN"],
                reading_error=0.0125,  # 1/16 is printed as 5 %
                reason=SHARED if pattern == "perm2hop" else "",
            )
            for pattern in patterns
        ),
        *_slower_to_adapt({**curves, **likened}),
        PaperClaim(
            "UGAL_PF is slower to adapt under perm2hop than under perm1hop: latency at 0.1",
            latency_at(curves["perm1hop", "UGAL_PF"], 0.1),
            latency_at(curves["perm2hop", "UGAL_PF"], 0.1),
            ">=",
        ),
    )
    panels = panels_of({(pattern, f"PF-{rule}"): c for (pattern, rule), c in curves.items()})
    setup = (*setup_of(fabrics.values(), quick), *deadlocks_of(curves.items()))
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def sizes(quick: bool) -> Evidence:
    """Figure 10: uniform traffic on PolarFly of several sizes."""
    fabrics = [
        PaperFabric({"family": "polarfly", "q": q}, (q + 1) // 2, routes)
        for q in ((5, 7, 9) if quick else (13, 19, 25, 31))
        for routes in BY_TABLES
    ]
    curves = {
        f"PF{fabric.topology['q']}-{fabric.routes}": simulated_curve(fabric, "uniform", quick)
        for fabric in fabrics
    }
    claims = [
        _alike(
            "they saturate alike, by the largest accepted load",
            [most_accepted(c) for c in curves.values()],
            BOUNCING,
        )
    ]
    for routes in BY_TABLES:
        same = [curve for name, curve in curves.items() if name.endswith(f"-{routes}")]
        for load in (0.1, LOADED) if quick else (0.1, BELOW_THE_KNEE, BEHIND_IT):
            latency_there = [latency_at(curve, load) for curve in same]
            words = "" if routes == "MIN" else BOUNCING
            says = f"{routes}: their latency at {load} is alike"
            claims.append(_alike(says, latency_there, words))
    panels = latencies([*curves.items()], "PolarFly, uniform")
    deadlocks = deadlocks_of(((name,), curve) for name, curve in curves.items())
    setup = (*setup_of(fabrics, quick), *deadlocks)
    return Evidence(tuple(claims), panels=panels, setup=setup, quick=quick)


def _alike(says: str, values: Sequence[float], interpretation: str) -> PaperClaim:
    return PaperClaim(
        f"{says}: least over largest",
        1,
        min(values) / max(values),
        reading_error=ALIKE,
        interpretation=interpretation,
        reason=f"From {min(values):.3g} to {max(values):.3g}. {interpretation}".strip(),
    )


def expanded(quick: bool) -> Evidence:
    """Figure 11: uniform traffic on grown PolarFly, one host for two links (§VIII-C).

    The paper has one for two of the "network radix". We read the mean degree: by the largest one
    (28 hosts for quadric:12 at q = 31) MIN accepts .47 at most, half of the .93 before growth; the
    paper has 31 % less. By the mean (22) it accepts .63 of .75 (seed 0), 32 % less. For fans both
    are alike.

    With virtual channels assigned by `--scheme valley`, the throughput of grown tables with
    alternates collapses. A test shows that the channels cause this, not the tables.
    """
    q, steps = (9, (1, 4)) if quick else (31, (3, 6, 9, 12))
    few, many = steps[0], steps[-1]
    rules, curves, fabrics = ("MIN", "UGAL_PF"), {}, []
    for grown in ("", *(f"{method}:{n}" for method in ("quadric", "fan") for n in steps)):
        for routes in rules:
            fabric = PaperFabric({"family": "polarfly", "q": q}, 1, routes, grown=grown)
            degrees = fabric.build().topology.graph.degrees
            fabrics.append(replace(fabric, hosts=round(degrees.mean() / 2)))
            curves[grown, routes] = simulated_curve(fabrics[-1], "uniform", quick)
    held = {
        grown: max(most_accepted(curves[grown, routes]) for routes in rules) for grown, _ in curves
    }
    percent = dict(zip(steps, (10, 39) if quick else (10, 19, 29, 39), strict=True))
    share = {grown: load / held[""] for grown, load in held.items()}
    claims = (
        _in_print("39 % more by quadrics: 31 % less throughput", 0.69, share[f"quadric:{many}"]),
        _in_print("39 % more by fans: 19 % less throughput", 0.81, share[f"fan:{many}"]),
        *(
            _in_print(
                f"by fans, of peak bandwidth after {percent[count]} %",
                printed,
                held[f"fan:{count}"],
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
    panels = latencies([*named.items()], f"Grown PolarFly q = {q}")
    deadlocks = deadlocks_of(((name,), curve) for name, curve in named.items())
    setup = (*setup_of(fabrics, quick), "Hosts: half of the mean degree, our reading.", *deadlocks)
    return Evidence(claims, panels=panels, setup=setup, quick=quick)
