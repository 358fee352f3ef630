"""Figures of the PolarFly paper about bisection, failures and cost (§IX)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, sqrt

import numpy as np

from compilers.drawing.plots import Curve, Panel, failures
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.resilience import Point as FailurePoint
from compilers.evaluation.analysis.resilience import resilience
from compilers.evaluation.comparison.designs import families, within
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import order
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import diameter_of

Network = tuple[str, Mapping[str, int | str | None], int]
CONFIGURED: dict[str, Network] = {
    "PF": ("polarfly", {"q": 31}, 16),
    "SF": ("slimfly", {"q": 23}, 18),
    "DF1": ("dragonfly", {"h": 6, "a": 12}, 6),
    "DF2": ("dragonfly", {"h": 27, "a": 6, "groups": 163}, 10),
    "JF": ("jellyfish", {"nodes": 993, "degree": 32}, 16),
    "FT": ("fat-tree", {"k": 18, "pods": 18}, 18),
}
"""Table V."""
TITLES = {
    "polarfly": "PolarFly",
    "slimfly": "Slim Fly",
    "hyperx": "HyperX",
    "dragonfly": "Dragonfly",
    "jellyfish": "Jellyfish",
    "fat-tree": "Fat tree",
}
"""Names of the families as the paper has them."""
RADIXES, MOST_NODES = range(6, 37), 1_400
"""Of figure 12."""
OF_TABLE_V = "The endpoints of Table V, which are put in, over the mean degree."
NODES, NODES_PER_SWITCH = 1024, 2
"""Of figure 15, and of a switch of its fat tree."""


def _networks(*names: str) -> dict[str, tuple[Topology, int]]:
    return {
        name: (build_topology(family, parameters), hosts)
        for name, (family, parameters, hosts) in CONFIGURED.items()
        if name in names
    }


def _smallest_cuts() -> dict[str, dict[float, float]]:
    """By family and radix, the part of the links that is in the cut that METIS finds."""
    compared = ("polarfly", "slimfly", "dragonfly")
    cuts_of: dict[str, dict[float, float]] = {
        name: {} for name in (*compared, "jellyfish", "fat-tree")
    }
    for design in within(RADIXES, among=families(compared, baselines=True)):
        cut_by_radix, balanced = cuts_of[design.family], design.family != "dragonfly"
        balanced = balanced or design.parameters["a"] == 2 * int(design.parameters["h"] or 0)
        if balanced and design.nodes <= MOST_NODES and design.radix not in cut_by_radix:
            topology = build_topology(design.family, dict(design.parameters))
            cut_by_radix[design.radix] = bisection(topology).fraction
            if design.family == "polarfly":
                degree = design.radix - design.nodes * design.radix % 2
                size = {"nodes": design.nodes, "degree": degree}
                cut = bisection(build_topology("jellyfish", size)).fraction
                cuts_of["jellyfish"][design.radix] = cut
    for k in range(4, max(RADIXES) // 2, 2):
        tree = bisection(build_topology("fat-tree", {"k": k, "pods": k}))
        cuts_of["fat-tree"][2 * k] = 2 * tree.fraction  # of a level, of which it has two
    return cuts_of


def least_part(q: int) -> float:
    """The part of ER_q's links that every cut in halves has at least.

    The matrix of ER_q with its loops has the eigenvalues q + 1 and ±√q. So a cut that separates n
    of N vertices has (q + 1 - √q)·n·(N - n)/N links or more.
    """
    size = order(q)
    half = size // 2
    return (q + 1 - sqrt(q)) * half * (size - half) / size / (q * (q + 1) ** 2 / 2)


def bisections(_quick: bool) -> Evidence:
    """Figure 12: links in the cut that METIS finds, over the network radix."""
    cuts_of = _smallest_cuts()
    ours = cuts_of["polarfly"]
    below = {radix: part for radix, part in ours.items() if radix >= 18 and part <= 0.4}
    cuts = ", ".join(f"{100 * part:.1f} % at radix {radix:g}" for radix, part in below.items())
    random = [part / cuts_of["jellyfish"][radix] for radix, part in ours.items() if radix >= 18]
    claims = (
        PaperClaim(
            "PolarFly of radix 18 and more: above 40 % at each",
            0.4,
            min(part for radix, part in ours.items() if radix >= 18),
            ">=",
            mistake=f"METIS finds a cut of {cuts}, which bounds the smallest one. From radix 24 on"
            " every cut has more than 40 %, by the eigenvalues.",
        ),
        PaperClaim("above Jellyfish of the same size, at each: least ratio", 1, min(random), ">="),
        *(
            PaperClaim(
                f"above all of {TITLES[name]}'s there",
                max(part for radix, part in cuts_of[name].items() if radix >= 18),
                min(part for radix, part in ours.items() if radix >= 18),
                ">=",
            )
            for name in ("slimfly", "dragonfly")
        ),
        PaperClaim(
            "reaching 50 % asymptotically: at q = 65,537 at least, by the eigenvalues",
            0.5,
            least_part(65_537),
            reading_error=0.01,
        ),
        PaperClaim(
            "Fat tree: 50 %, at each",
            0.5,
            min(cuts_of["fat-tree"].values()),
            rounding=0.005,
            interpretation="Of the links of one of its two levels; of all links it is 25 %.",
        ),
        *(
            PaperClaim(
                f"{TITLES[name]}: {100 * printed:.0f} %, at its largest radix here",
                printed,
                cuts_of[name][max(cuts_of[name])],
                reading_error=0.01,
            )
            for name, printed in (("slimfly", 0.33), ("dragonfly", 0.17))
        ),
    )
    curves = tuple(
        Curve(TITLES[name], tuple(sorted(cut)), tuple(100 * cut[radix] for radix in sorted(cut)))
        for name, cut in cuts_of.items()
    )
    setup = (
        f"Up to {MOST_NODES:,} switches. Jellyfish has PolarFly's switches and radix. Dragonfly is"
        " balanced, a = 2h. Each cut is METIS's.",
        "Fat tree: its radix is 2k; a cut has a quarter of all links, which is half of one of its"
        " two levels, as drawn.",
    )
    panel = Panel("Bisection", "radix", "links in the cut, %", curves)
    return Evidence(claims, panels=(panel,), setup=setup)


def broken_links(_quick: bool) -> Evidence:
    """Figure 14: diameter and mean distance while links fail, of 100 runs the median one."""
    names = ("PF", "SF", "DF1", "JF", "FT")
    runs = {n: resilience(run, 100) for n, (run, _) in _networks(*names).items()}
    curve, ratio = runs["PF"].curve, {name: run.median for name, run in runs.items()}
    grown = {name: _widest(run.curve, 0.05) - _widest(run.curve, 0) for name, run in runs.items()}
    claims = (
        PaperClaim("PolarFly: diameter 4 with 5 % of links failed", 4, _widest(curve, 0.05)),
        PaperClaim("PolarFly: still 4 with 55 % failed", 4, _widest(curve, 0.55)),
        *(
            PaperClaim(f"ER_7: diameter with {what} failed, {end}", printed, diameter)
            for what, printed, diameters in without_one(7)
            for end, diameter in zip(("least", "most"), diameters, strict=True)
        ),
        *(
            PaperClaim(
                f"{name} disconnects at a similar part of links: over PolarFly's",
                1,
                ratio[name] / ratio["PF"],
                reading_error=0.05,
            )
            for name in ("SF", "JF")
        ),
        PaperClaim("Slim Fly marginally later", ratio["PF"], ratio["SF"], ">="),
        *(
            PaperClaim(f"{direct} later than {name}", ratio[name], ratio[direct], ">=")
            for direct in ("PF", "SF")
            for name in ("FT", "DF1")
        ),
        *(
            PaperClaim(
                f"{name}'s diameter grows more rapidly than JF's: links more with 5 % failed",
                1,
                grown[name] - grown["JF"],
                ">=",
            )
            for name in ("PF", "SF")
        ),
    )
    rows = {
        name: [
            {"fraction": p.fraction, "diameter": p.diameter, "mean_distance": p.mean_distance}
            for p in run.curve
        ]
        for name, run in runs.items()
    }
    networks = "; ".join(f"{name} {_words(*CONFIGURED[name][:2])}" for name in names)
    setup = (
        f"Networks of Table V: {networks}.",
        "Of 100 runs that end when switches with hosts are disconnected, the one with the median"
        " part of failed links.",
    )
    return Evidence(claims, panels=failures(list(rows.items())), setup=setup)


def _words(family: str, parameters: Mapping[str, int | str | None]) -> str:
    return " ".join((family, *(f"{name}={value}" for name, value in parameters.items())))


def without_one(q: int) -> tuple[tuple[str, int, tuple[int, int]], ...]:
    """What fails, its diameter in print, and the least and largest over all cases of ER_q."""
    topology = build_topology("polarfly", {"q": q})
    whole = np.zeros((topology.graph.order,) * 2, np.bool_)
    whole[topology.graph.tails(), topology.graph.targets] = True
    of_quadrics, others = list[int](), list[int]()
    for one, other in topology.graph.edges().tolist():
        cut = whole.copy()
        cut[one, other] = cut[other, one] = False
        at_quadric = (topology.kind[[one, other]] == 0).any()
        (of_quadrics if at_quadric else others).append(diameter_of(cut))
    switches = []
    for switch in range(topology.graph.order):
        left = np.delete(np.delete(whole, switch, 0), switch, 1)
        switches.append(diameter_of(left))
    return (
        ("a link of a quadric", 4, (min(of_quadrics), max(of_quadrics))),
        ("another link", 3, (min(others), max(others))),
        ("a switch", 3, (min(switches), max(switches))),
    )


def _widest(curve: Sequence[FailurePoint], fraction: float) -> int:
    """The largest diameter about a fraction of failed links; a disconnected network has 99."""
    near = (point for point in curve if abs(point.fraction - fraction) < 0.01)
    return max(point.diameter or 99 for point in near)


def port_costs(_quick: bool) -> Evidence:
    """Figure 15: optical ports for each of 1,024 nodes at the load that it sustains.

    A direct network has as many ports for a host as fill its fullest link under uniform traffic; a
    Dragonfly, whose tables here do not take its usual routes, as Table V has.
    """
    price = prices()
    direct, tree = price.saturation_permutation_direct, price.saturation_permutation_indirect
    networks = _networks("PF", "SF", "DF1")
    degree = {name: 2 * t.graph.size / t.graph.order for name, (t, _) in networks.items()}
    full = {name: uniform(networks[name][0]).full_throughput_hosts for name in ("PF", "SF")}
    full["DF1"] = networks["DF1"][1]
    levels = int(log2(NODES // NODES_PER_SWITCH)) + 1
    switches = (levels - 1) * NODES // NODES_PER_SWITCH + NODES // NODES_PER_SWITCH // 2
    injection = 16
    a_host = {name: injection * degree[name] / full[name] for name in full}
    ports = {
        "PolarFly": a_host["PF"],
        "Slim Fly": a_host["SF"],
        "Dragonfly": a_host["DF1"],
        "Fat tree": (switches * 2 * injection + NODES * injection) / NODES,
    }
    uniform_cost = {name: count / ports["PolarFly"] for name, count in ports.items()}
    loaded = uniform_cost["Fat tree"] * direct / tree
    ratio = {name: hosts / degree[name] for name, (_, hosts) in networks.items()}
    claims = (
        PaperClaim(
            "PolarFly: injection over all bandwidth, 1:2",
            1 / 2,
            ratio["PF"],
            taken=True,
            reason=OF_TABLE_V,
        ),
        PaperClaim("Slim Fly: 1:2", 1 / 2, ratio["SF"], taken=True, reason=OF_TABLE_V),
        PaperClaim("Dragonfly: 1:3", 1 / 3, ratio["DF1"], taken=True, reason=OF_TABLE_V),
        PaperClaim("Fat tree: levels", 10, levels),
        PaperClaim(
            "Fat tree, uniform traffic: 5.19 times PolarFly",
            5.19,
            uniform_cost["Fat tree"],
            rounding=0.005,
        ),
        PaperClaim("Fat tree, permutations: 2.68 times", 2.68, loaded, rounding=0.005),
        PaperClaim("Slim Fly: about 20 % more", 1.2, uniform_cost["Slim Fly"], reading_error=0.05),
        PaperClaim(
            "Dragonfly: 6 modules, not 4", 1.5, uniform_cost["Dragonfly"], reading_error=0.05
        ),
    )
    rows = tuple(
        (name, count, uniform_cost[name], loaded if name == "Fat tree" else uniform_cost[name])
        for name, count in ports.items()
    )
    panels = tuple(
        Panel(f"Cost per node, {title}", "", "times PolarFly", _bars(costs), steps=True)
        for title, costs in (
            ("uniform traffic", {row[0]: row[2] for row in rows}),
            ("permutations", {row[0]: row[3] for row in rows}),
        )
    )
    heads = ("network", "optical ports a node", "uniform", "permutations")
    setup = (
        "Endpoints of a router: in PolarFly and Slim Fly as many as fill the fullest link under"
        " uniform traffic, in Dragonfly Table V's six.",
    )
    return Evidence(claims, heads, rows, panels, setup=setup)


def _bars(values: Mapping[str, float]) -> tuple[Curve, ...]:
    return tuple(
        Curve(name, (n - 0.4, n + 0.4), (value,)) for n, (name, value) in enumerate(values.items())
    )
