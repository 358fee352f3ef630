"""Figures of the PolarStar paper that are simulated: latency over load, and motifs (§9, §10).

The networks are those of Table 3, and small ones of the same kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from compilers.drawing.plots import Curve, Panel
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.latency_curves import (
    PaperFabric,
    deadlocks_of,
    most_accepted,
    panels_of,
    setup_of,
    simulated_curve,
)
from extensions.simulation.build_simulation import settings_for
from extensions.simulation.collective_completion import completion_time
from extensions.simulation.latency_curve import LatencyCurve


@dataclass(frozen=True, slots=True)
class ComparedNetwork:
    """A network of Table 3."""

    family: str
    """The family of the topology."""
    parameters: Mapping[str, int | str | None]
    """The parameters of the topology, as in a spec."""
    hosts: int
    """Hosts at each switch that has some."""
    group: int = 0
    """Switches of a supernode, group or pod, in the order of their numbers; 0 in a network that has
    none."""


def networks(quick: bool) -> dict[str, ComparedNetwork]:
    """By their short names, PolarStar's first."""
    return SMALLER if quick else CONFIGURED


def _star(q: int, supernode: str, degree: int, hosts: int, group: int) -> ComparedNetwork:
    parameters: dict[str, int | str | None] = {"q": q, "supernode": supernode, "degree": degree}
    return ComparedNetwork("polarstar", parameters, hosts, group)


CONFIGURED = {
    "PS-IQ": _star(11, "inductive-quad", 3, 5, 8),
    "PS-Pal": _star(8, "paley", 6, 5, 13),
    "BF": ComparedNetwork("bundlefly", {"q": 7, "degree": 4}, 5, 9),
    "HX": ComparedNetwork("hyperx", {"sides": "9x9x8"}, 8),
    "DF": ComparedNetwork("dragonfly", {"h": 6, "a": 12}, 6, 12),
    "SF": ComparedNetwork("spectralfly", {"p": 23, "q": 13}, 8),
    "MF": ComparedNetwork("megafly", {"h": 8, "a": 16}, 8, 16),
    "FT": ComparedNetwork("fat-tree", {"k": 18, "pods": 18}, 18),
}
"""Table 3, the Paley PolarStar corrected."""
SMALLER = {
    "PS-IQ": _star(3, "inductive-quad", 3, 2, 8),
    "PS-Pal": _star(4, "paley", 2, 2, 5),
    "BF": ComparedNetwork("bundlefly", {"q": 3, "degree": 2}, 2, 5),
    "HX": ComparedNetwork("hyperx", {"sides": "4x4x4"}, 3),
    "DF": ComparedNetwork("dragonfly", {"h": 3, "a": 6}, 3, 6),
    "SF": ComparedNetwork("spectralfly", {"p": 11, "q": 7}, 4),
    "MF": ComparedNetwork("megafly", {"h": 3, "a": 6}, 3, 6),
    "FT": ComparedNetwork("fat-tree", {"k": 6, "pods": 6}, 6),
}
"""Of about a tenth of the routers."""


PATTERNS = ("uniform", "permutation", "shuffle", "reverse")
ROUTINGS = ("MIN", "UGAL")
ALL_PATHS = ("BF", "HX", "SF", "MF", "FT")
"""Networks whose packets take any shortest path (§9.3); the others have one for each pair."""
MOTIFS = {"Allreduce": "tree-allreduce", "Sweep3D": "sweep3d"}
MESSAGES = {"Allreduce": (16 << 10, 64 << 10), "Sweep3D": (1 << 10, 1 << 10)}
"""Bytes for a look and in full; the paper's are not legible."""
ALIKE = 0.1
"""By which "comparable" and "similar" values may differ: no figure is printed."""
Curves = Mapping[tuple[str, str, str], LatencyCurve]


def synthetic(quick: bool) -> Evidence:
    """Figure 9: eight networks under four patterns, minimally and adaptively routed."""
    among = networks(quick)
    curves = _curves(quick, among, PATTERNS)
    held = {key: most_accepted(curve) for key, curve in curves.items()}
    claims = _synthetic_claims(held)
    panels = panels_of(_named(curves))
    setup = (*_setup(quick, among), *deadlocks_of(curves.items()))
    return Evidence(claims, panels=panels, setup=setup, quick=quick)


def _synthetic_claims(held: Mapping[tuple[str, str, str], float]) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 9. held: the accepted load by pattern, routing and network."""
    best = [_best(held, pattern) for pattern in PATTERNS]
    stars = ("PS-IQ", "PS-Pal")
    return (
        *(
            PaperClaim(
                f"{name} is better than {star}: uniform, MIN, all minimal paths",
                held["uniform", "MIN", star],
                held["uniform", "MIN", name],
                ">=",
            )
            for name in ("SF", "BF")
            for star in stars
        ),
        *(
            _alike(
                f"but marginally: {name} to {star}, uniform, MIN",
                held["uniform", "MIN", star],
                held["uniform", "MIN", name],
            )
            for name in ("SF", "BF")
            for star in stars
        ),
        *(
            PaperClaim(
                f"{star} carries more than DF: {pattern}, UGAL",
                held[pattern, "UGAL", "DF"],
                held[pattern, "UGAL", star],
                ">=",
            )
            for star in stars
            for pattern in PATTERNS
        ),
        *(
            PaperClaim(
                f"{star} is comparable to BF: {pattern}, UGAL",
                1,
                held[pattern, "UGAL", star] / held[pattern, "UGAL", "BF"],
                reading_error=ALIKE,
            )
            for star in stars
            for pattern in PATTERNS
        ),
        *(
            PaperClaim(
                f"{name} is poor under bit shuffle, {rule}: below PS and BF",
                min(held["shuffle", rule, rival] for rival in (*stars, "BF")),
                held["shuffle", rule, name],
                "<=",
            )
            for name in ("DF", "MF")
            for rule in ROUTINGS
        ),
        *(
            PaperClaim(
                f"MF is better under bit reverse, {rule}",
                held["shuffle", rule, "MF"],
                held["reverse", rule, "MF"],
                ">=",
            )
            for rule in ROUTINGS
        ),
        PaperClaim(
            "HX or SF sustains the most, UGAL: patterns of four, most of them",
            3,
            sum(name in ("HX", "SF") for name in best),
            ">=",
        ),
    )


def _setup(quick: bool, among: Mapping[str, ComparedNetwork]) -> tuple[str, ...]:
    fabrics = (_fabric(name, network, rule) for name, network in among.items() for rule in ROUTINGS)
    return setup_of(fabrics, quick)


def _best(held: Mapping[tuple[str, str, str], float], pattern: str) -> str:
    """The network that accepts the most under a pattern, adaptively routed."""
    accepted = {
        name: load for (p, rule, name), load in held.items() if (p, rule) == (pattern, "UGAL")
    }
    return max(accepted, key=lambda name: accepted[name])


def adversarial(quick: bool) -> Evidence:
    """Figure 10: all endpoints of a supernode or group to those of one other."""
    among = {n: rival for n, rival in networks(quick).items() if rival.group}
    curves = _curves(quick, among, ("adversarial",))
    trees = {"FT": networks(quick)["FT"]}
    tree = _curves(quick, trees, ("longest",))
    held = {
        (rule, name): most_accepted(curve) for (_, rule, name), curve in (curves | tree).items()
    }
    claims = [
        *(
            PaperClaim(
                f"{name} saturates below the star products, {rule}",
                min(held[rule, rival] for rival in ("PS-IQ", "PS-Pal", "BF")),
                held[rule, name],
                "<=",
            )
            for name in ("DF", "MF")
            for rule in ROUTINGS
        ),
        *(
            PaperClaim(
                f"PS-IQ is better than {name}, {rule}",
                held[rule, name],
                held[rule, "PS-IQ"],
                ">=",
            )
            for name in ("BF", "PS-Pal")
            for rule in ROUTINGS
        ),
    ]
    renamed = {("adversarial", rule, name): curve for (_, rule, name), curve in tree.items()}
    panels = panels_of(_named(curves | renamed))
    setup = (*_setup(quick, among | trees), *deadlocks_of((curves | tree).items()))
    return Evidence(tuple(claims), panels=panels, setup=setup, quick=quick)


def _curves(
    quick: bool, among: Mapping[str, ComparedNetwork], patterns: Iterable[str]
) -> dict[tuple[str, str, str], LatencyCurve]:
    """By pattern, routing and network; a network is compiled once for all patterns."""
    curves = {
        (pattern, rule, name): simulated_curve(fabric, pattern, quick)
        for name, network in among.items()
        for rule in ROUTINGS
        for fabric in (_fabric(name, network, rule),)
        for pattern in patterns
    }
    return {
        (pattern, rule, name): curves[pattern, rule, name]
        for pattern in patterns
        for rule in ROUTINGS
        for name in among
    }


def _named(curves: Curves) -> dict[tuple[str, str], LatencyCurve]:
    return {(p, f"{name}-{rule}"): curve for (p, rule, name), curve in curves.items()}


def _fabric(name: str, network: ComparedNetwork, rule: str) -> PaperFabric:
    routes = f"{rule}, all shortest paths" if name in ALL_PATHS else rule
    topology = {"family": network.family, **network.parameters}
    return PaperFabric(topology, network.hosts, routes, network.group)


def motifs(quick: bool) -> Evidence:
    """Figure 11: how long Allreduce and Sweep3D take, on four networks."""
    compared = networks(quick)
    time = {
        (motif, rule, name): _cycles(motif, _fabric(name, compared[name], rule), quick)
        for motif in MOTIFS
        for rule in ROUTINGS
        for name in ("PS-IQ", "DF", "HX", "FT")
    }
    reduce = {key[1:]: cycles for key, cycles in time.items() if key[0] == "Allreduce"}
    sweep = {key[1:]: cycles for key, cycles in time.items() if key[0] == "Sweep3D"}
    star = reduce["UGAL", "PS-IQ"]
    others = [cycles for (_, name), cycles in reduce.items() if name != "FT"]
    claims = [
        _slower("Allreduce is fastest on FT, MIN", reduce["MIN", "FT"], min(others)),
        _alike("FT is alike with MIN and UGAL", reduce["MIN", "FT"], reduce["UGAL", "FT"]),
        *(
            _slower(f"Allreduce, {name}: MIN is slower than UGAL", reduce["UGAL", name], slow)
            for (rule, name), slow in reduce.items()
            if rule == "MIN" and name != "FT"
        ),
        _alike("Allreduce, UGAL: PS-IQ is comparable to FT", reduce["UGAL", "FT"], star),
        _slower("Allreduce, UGAL: HX is slower than PS-IQ", star, reduce["UGAL", "HX"]),
        *(
            _slower(f"Allreduce, {rule}: DF is slower", reduce[rule, "PS-IQ"], reduce[rule, "DF"])
            for rule in ROUTINGS
        ),
        _slower("Sweep3D, MIN: DF is slower", sweep["MIN", "PS-IQ"], sweep["MIN", "DF"]),
        _alike("but marginally: DF to PS-IQ", sweep["MIN", "PS-IQ"], sweep["MIN", "DF"]),
        *(
            _alike(f"Sweep3D, UGAL: alike {name}", sweep["UGAL", name], sweep["UGAL", "PS-IQ"])
            for name in ("HX", "FT")
        ),
        _slower("Sweep3D, UGAL: DF is slower", sweep["UGAL", "PS-IQ"], sweep["UGAL", "DF"]),
        _slower(
            "PS-IQ gains less by UGAL with Sweep3D: MIN over UGAL, against Allreduce's",
            sweep["MIN", "PS-IQ"] / sweep["UGAL", "PS-IQ"],
            reduce["MIN", "PS-IQ"] / star,
        ),
    ]
    names = [f"{name}-{rule}" for rule in ROUTINGS for name in ("PS-IQ", "DF", "HX", "FT")]
    panels = []
    for motif, cycles in (("Allreduce", reduce), ("Sweep3D", sweep)):
        bars = tuple(
            Curve(name, (n - 0.4, n + 0.4), (value,))
            for n, (name, value) in enumerate(zip(names, cycles.values(), strict=True))
        )
        panels.append(Panel(motif, "", "cycles", bars, steps=True))
    setup = (
        "A cycle is a flit of 64 bytes; 4 virtual channels, any free one is taken; 128 flits"
        " a port; packets of 4 flits; a motif once, with seed 0, in a network that is empty.",
        *(f"{motif}: {MOTIFS[motif]}, {MESSAGES[motif][not quick]:,} bytes." for motif in MOTIFS),
        *_setup(quick, {name: compared[name] for name in ("PS-IQ", "DF", "HX", "FT")})[2:],
    )
    return Evidence(tuple(claims), panels=tuple(panels), setup=setup, quick=quick)


def _cycles(motif: str, fabric: PaperFabric, quick: bool) -> float:
    """Endless where a motif does not end, in a deadlock."""
    build = fabric.build()
    settings = settings_for(build, (), 0, (), fabric.simulated_routing())
    small, large = MESSAGES[motif]
    size = small if quick else large
    completion = completion_time(build, MOTIFS[motif], size, fabric.hosts, settings)
    return inf if completion.cycles is None else float(completion.cycles)


def _slower(says: str, fast: float, slow: float) -> PaperClaim:
    return PaperClaim(says, fast, slow, ">=")


def _alike(says: str, one: float, other: float) -> PaperClaim:
    return PaperClaim(f"{says}: ratio", 1, other / one, reading_error=ALIKE)
