"""Figures of the PolarFly paper about bisection, failures and cost (§IX)."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from compilers.drawing.plots import Curve, Panel, failures
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.resilience import resilience
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from extensions.papers.exhibit import Evidence, PaperClaim

Network = tuple[str, Mapping[str, int | str | None], int]
CONFIGURED: dict[str, Network] = {
    "PF": ("polarfly", {"q": 31}, 16),
    "SF": ("slimfly", {"q": 23}, 18),
    "DF1": ("dragonfly", {"h": 6, "a": 12}, 6),
    "DF2": ("dragonfly", {"h": 27, "a": 6, "groups": 163}, 10),
    "JF": ("jellyfish", {"nodes": 993, "degree": 32}, 16),
    "FT": ("fat-tree", {"k": 18, "pods": 18}, 18),
}
SMALLER: dict[str, Network] = {
    "PF": ("polarfly", {"q": 17}, 9),
    "SF": ("slimfly", {"q": 9}, 7),
    "DF1": ("dragonfly", {"h": 3, "a": 6}, 3),
    "DF2": ("dragonfly", {"h": 9, "a": 4}, 4),
    "JF": ("jellyfish", {"nodes": 307, "degree": 18}, 9),
    "FT": ("fat-tree", {"k": 6, "pods": 6}, 6),
}
"""Table V, and smaller networks of the same kinds."""
NODES, NODES_PER_SWITCH = 1024, 2
"""Of figure 15, and of a switch of its fat tree."""
PARTITIONS = "METIS finds the best of 50 random partitions here; the paper had others."
SMALL_SIZE = "Of the small size that --quick takes; the paper's own is computed without it."


def _networks(quick: bool, *names: str) -> dict[str, tuple[Topology, int]]:
    known = SMALLER if quick else CONFIGURED
    return {
        name: (build_topology(family, parameters), hosts)
        for name, (family, parameters, hosts) in known.items()
        if not names or name in names
    }


def bisections(_quick: bool) -> Evidence:
    """Figure 12: links in the cut that METIS finds."""
    networks = {name: each for name, (each, _) in _networks(False).items()}
    networks["PF, q = 17"] = build_topology("polarfly", {"q": 17})
    found = {name: bisection(each).fraction for name, each in networks.items()}
    small = found["PF, q = 17"]
    cut = f"METIS finds a cut of {100 * small:.1f} % at radix 18, which bounds the smallest one."
    claims = (
        PaperClaim("PolarFly of radix 18 and more: above 40 %, at 32", 0.4, found["PF"], ">="),
        PaperClaim("and at 18", 0.4, small, ">=", mistake=cut),
        PaperClaim(
            "above Jellyfish of the same size", found["JF"], found["PF"], ">=", reason=PARTITIONS
        ),
        PaperClaim(
            "Fat tree: 50 % of the links of a level, of which it has two", 0.5, 2 * found["FT"]
        ),
        PaperClaim("Slim Fly: 33 %", 0.33, found["SF"], tolerance=0.05, reason=PARTITIONS),
        PaperClaim("Dragonfly: 17 %", 0.17, found["DF1"], tolerance=0.05, reason=PARTITIONS),
    )
    rows = tuple((name, networks[name].graph.order, part) for name, part in found.items())
    bars = tuple(
        Curve(name, (n - 0.4, n + 0.4), (100 * fraction,))
        for n, (name, fraction) in enumerate(found.items())
    )
    panel = Panel("Bisection", "", "links in the cut, %", bars, steps=True)
    return Evidence(claims, ("network", "nodes", "links in the cut"), rows, (panel,))


def broken_links(quick: bool) -> Evidence:
    """Figure 14: diameter and mean distance while links fail."""
    names, runs = (("PF",), 1) if quick else (("PF", "SF", "DF1", "JF"), 100)
    found = {n: resilience(each, runs) for n, (each, _) in _networks(False, *names).items()}
    curve = found["PF"].curve
    early = [point.diameter or 9 for point in curve if 0.04 < point.fraction < 0.06]
    late = [point.diameter or 9 for point in curve if 0.54 < point.fraction < 0.56]
    claims = (
        PaperClaim("PolarFly: diameter 4 with 5 % of links failed", 4, max(early)),
        PaperClaim("PolarFly: still 4 with 55 % failed", 4, max(late)),
        *(
            PaperClaim(
                f"{name} disconnects with about as many links failed, over PolarFly's",
                1,
                each.median / found["PF"].median,
                tolerance=0.15,
            )
            for name, each in found.items()
            if name in ("SF", "JF")
        ),
    )
    rows = {
        name: [
            {"fraction": p.fraction, "diameter": p.diameter, "mean_distance": p.mean_distance}
            for p in each.curve
        ]
        for name, each in found.items()
    }
    return Evidence(claims, panels=failures(list(rows.items())))


def port_costs(_quick: bool) -> Evidence:
    """Figure 15: optical ports for each of 1,024 nodes at the load that it sustains.

    A direct network has as many ports for a host as fill its fullest link under uniform traffic; a
    Dragonfly, whose tables here do not take its usual routes, as Table V has.
    """
    known = prices()
    direct, tree = known.saturation_permutation_direct, known.saturation_permutation_indirect
    networks = _networks(False, "PF", "SF", "DF1")
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
            "PolarFly: injection over all bandwidth, 1:2", 1 / 2, ratio["PF"], tolerance=0.01
        ),
        PaperClaim("Slim Fly: 1:2", 1 / 2, ratio["SF"], tolerance=0.02),
        PaperClaim("Dragonfly: 1:3", 1 / 3, ratio["DF1"], tolerance=0.03),
        PaperClaim("Fat tree: levels", 10, levels),
        PaperClaim(
            "Fat tree, uniform traffic: 5.19 times PolarFly",
            5.19,
            uniform_cost["Fat tree"],
            tolerance=0.1,
        ),
        PaperClaim("Fat tree, permutations: 2.68 times", 2.68, loaded, tolerance=0.3),
        PaperClaim("Slim Fly: about 20 % more", 1.2, uniform_cost["Slim Fly"], tolerance=0.1),
        PaperClaim("Dragonfly: 6 modules, not 4", 1.5, uniform_cost["Dragonfly"], tolerance=0.1),
    )
    rows = tuple(
        (name, count, uniform_cost[name], loaded if name == "Fat tree" else uniform_cost[name])
        for name, count in ports.items()
    )
    bars = tuple(
        Curve(name, (n - 0.4, n + 0.4), (uniform_cost[name],)) for n, name in enumerate(ports)
    )
    panel = Panel("Cost per node, uniform traffic", "", "times PolarFly", bars, steps=True)
    heads = ("network", "optical ports a node", "uniform", "permutations")
    return Evidence(claims, heads, rows, (panel,))
