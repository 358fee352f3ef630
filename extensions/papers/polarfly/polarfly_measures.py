"""Figures 12, 14 and 15 of the PolarFly paper, about bisection, failures and cost (§IX).

Each function with the parameter `_quick` reproduces a figure and returns its claims as `Evidence`;
`polarfly_paper` lists them. ER_q is PolarFly's graph; a quadric is a vertex with a loop in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt

import numpy as np

from compilers.drawing.plots import Curve, Panel, failures
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.resilience import Point as FailurePoint
from compilers.evaluation.analysis.resilience import Resilience, resilience
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import order
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.failure_medians import disconnects_later
from extensions.papers.graphs import diameter_of, matrix_of

TABLE_V = {
    "PF": ComparedNetwork("polarfly", {"q": 31}, 16),
    "SF": ComparedNetwork("slimfly", {"q": 23}, 18),
    "DF1": ComparedNetwork("dragonfly", {"h": 6, "a": 12}, 6),
    "DF2": ComparedNetwork("dragonfly", {"h": 27, "a": 6, "groups": 163}, 10),
    "JF": ComparedNetwork("jellyfish", {"nodes": 993, "degree": 32}, 16),
    "FT": ComparedNetwork("fat-tree", {"k": 18, "pods": 18}, 18),
}
"""The networks of Table V, by the paper's abbreviations."""
TITLES = {
    "polarfly": "PolarFly",
    "slimfly": "Slim Fly",
    "hyperx": "HyperX",
    "dragonfly": "Dragonfly",
    "jellyfish": "Jellyfish",
    "fat-tree": "Fat tree",
}
"""The paper's names of the families, by ours."""
RADIXES = range(6, 37)
"""The radixes of figure 12."""
MOST_NODES = 1_400
"""The most switches of a network of figure 12."""
LEAST_RADIX = 18
"""The radix from which on the paper compares bisections."""
CUT_BELOW_40 = (
    "1,092 of the 2,754 links of ER_17, radix 18, join 154 of its switches to the other 153, which"
    " is 39.7 %. From radix 24 on every cut has more than 40 %, by the eigenvalues."
)
"""The mistake in the claim that every bisection of PolarFly has more than 40 % of the links."""
OF_TABLE_V = "The endpoints of Table V, which are put in, over the mean degree."
"""How the ratios of injection to bandwidth are computed."""
NODES = 1024
"""The nodes of figure 15."""
NODES_PER_SWITCH = 2
"""The nodes of a switch of figure 15's fat tree."""
FAT_TREE_LEVELS = int(log2(NODES // NODES_PER_SWITCH)) + 1
"""The levels of figure 15's fat tree; the topmost has half as many switches as each other one."""
INJECTION_PORTS = 16
"""The optical ports of a node of figure 15."""
LARGE_PRIME = 1_000_000_007
"""A q at which the smallest cut is near its limit."""
FRACTION_ERROR = 0.01
"""How far the fraction of failed links of a point may be from that of a claim."""
DISCONNECTED = 99
"""Stands for the diameter of a disconnected network."""


def _smallest_cuts() -> dict[str, dict[float, float]]:
    """The part of the links that is in the cut that METIS finds, by family and then by radix.

    Jellyfish has PolarFly's switches and radix, less one port where their product is odd.
    """
    compared = ("polarfly", "slimfly", "dragonfly")
    cuts_of: dict[str, dict[float, float]] = {
        name: {} for name in (*compared, "jellyfish", "fat-tree")
    }
    for design in designs_of_radixes(RADIXES, among=families(compared, baselines=True)):
        cut_by_radix = cuts_of[design.family]
        is_balanced = design.family != "dragonfly" or (
            design.parameters["a"] == 2 * int(design.parameters["h"] or 0)
        )
        if is_balanced and design.nodes <= MOST_NODES and design.radix not in cut_by_radix:
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


def least_cut_fraction(q: int) -> float:
    """The part of ER_q's links that every cut in halves has at least.

    The matrix of ER_q with its loops has the eigenvalues q + 1 and ±√q. So a cut that separates n
    of N vertices has (q + 1 - √q)·n·(N - n)/N links or more.
    """
    size = order(q)
    half = size // 2
    return (q + 1 - sqrt(q)) * half * (size - half) / size / (q * (q + 1) ** 2 / 2)


def dragonfly_cut_fraction(h: int) -> float:
    """The part of a balanced Dragonfly's links that join two halves of its groups.

    It has 2h² + 1 groups of 2h switches; one link joins two groups. With an odd number of groups
    one of them is halved: half of its global links count, and h² of its own.
    """
    groups, inside = 2 * h * h + 1, h * (2 * h - 1)
    half = groups // 2
    across = half * half + (groups - 1) // 2 + h * h
    return across / (groups * (groups - 1) / 2 + groups * inside)


def bisections(_quick: bool) -> Evidence:
    """Figure 12: links in the cut that METIS finds, over the network radix."""
    cuts_of = _smallest_cuts()
    curves = tuple(
        Curve(TITLES[name], tuple(sorted(cut)), tuple(100 * cut[radix] for radix in sorted(cut)))
        for name, cut in cuts_of.items()
    )
    setup = (
        f"Up to {MOST_NODES:,} switches. Jellyfish has PolarFly's switches and radix. Where both"
        " are odd, it has one port less, such as 32 at radix 33. Dragonfly is balanced, a = 2h."
        " Each cut is METIS's.",
        "Fat tree: its radix is 2k; a cut has a quarter of all links, which is half of one of its"
        " two levels, as drawn.",
    )
    panel = Panel("Bisection", "radix", "links in the cut, %", curves)
    return Evidence(_bisection_claims(cuts_of), panels=(panel,), setup=setup)


def _bisection_claims(cuts_of: Mapping[str, Mapping[float, float]]) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 12.

    Args:
        cuts_of: the result of `_smallest_cuts`.
    """
    compared = {
        name: {radix: part for radix, part in cut_by_radix.items() if radix >= LEAST_RADIX}
        for name, cut_by_radix in cuts_of.items()
    }
    tree_cuts = cuts_of["fat-tree"].values()
    slimfly_percents = sorted(100 * part for part in compared["slimfly"].values())
    radix = 3 * int(TABLE_V["DF1"].parameters["h"] or 0) - 1
    dragonfly_cut = cuts_of["dragonfly"][radix]
    return (
        *_polarfly_bisection_claims(compared),
        PaperClaim(
            "Fat tree: 50 %, at each: that which is farthest from it",
            0.5,
            max(tree_cuts, key=lambda part: abs(part - 0.5)),
            rounding=0.005,
            interpretation="Of the links of one of its two levels; of all links it is 25 %.",
        ),
        PaperClaim(
            "Slim Fly: 33 %, at the radix of Table V",
            0.33,
            cuts_of["slimfly"][35],
            rounding=0.005,
            interpretation="Read as of Table V's. METIS's cuts from radix 18 on have"
            f" {slimfly_percents[0]:.1f} to {slimfly_percents[-1]:.1f} %.",
        ),
        PaperClaim(
            f"Dragonfly: 17 %, at the radix of Table V's balanced one, {radix}",
            0.17,
            dragonfly_cut,
            rounding=0.005,
            reason=f"METIS's cut has {100 * dragonfly_cut:.1f} %, and at the largest radix here"
            f" {100 * cuts_of['dragonfly'][max(cuts_of['dragonfly'])]:.1f} %. It is 17 % of larger"
            " ones.",
        ),
        PaperClaim(
            "Dragonfly: 17 %, halves of its groups with h = 1,000",
            0.17,
            dragonfly_cut_fraction(1_000),
            rounding=0.005,
            interpretation="Read as of large ones: a sixth in the limit. At the radix of Table V's"
            f" balanced one METIS's cut has {100 * dragonfly_cut:.1f} %.",
        ),
    )


def _polarfly_bisection_claims(
    compared: Mapping[str, Mapping[float, float]],
) -> tuple[PaperClaim, ...]:
    """The claims of figure 12 on PolarFly.

    Args:
        compared: the cuts of `_smallest_cuts`, of radixes from `LEAST_RADIX` on.
    """
    polarfly = compared["polarfly"]
    bound_by_radix = {radix: least_cut_fraction(int(radix) - 1) for radix in polarfly}
    ratios_to_jellyfish = [
        part / compared["jellyfish"][radix] for radix, part in bound_by_radix.items()
    ]
    return (
        PaperClaim(
            "PolarFly of radix 18 and more: above 40 % at each",
            0.4,
            min(polarfly.values()),
            ">",
            mistake=CUT_BELOW_40,
        ),
        PaperClaim(
            "above METIS's cut of Jellyfish of the same size, at each, by the eigenvalues: least"
            " ratio",
            1,
            min(ratios_to_jellyfish),
            ">",
        ),
        *(
            PaperClaim(
                f"above all of METIS's cuts of {TITLES[name]} there, by the eigenvalues",
                max(compared[name].values()),
                min(bound_by_radix.values()),
                ">",
            )
            for name in ("slimfly", "dragonfly")
        ),
        PaperClaim(
            f"reaching 50 % asymptotically: at q = {LARGE_PRIME:,} at least, by the eigenvalues",
            0.5,
            least_cut_fraction(LARGE_PRIME),
            reading_error=0.001,
        ),
    )


def broken_links(_quick: bool) -> Evidence:
    """Figure 14: diameter and mean distance while links fail, of 100 runs the median one."""
    names = ("PF", "SF", "DF1", "JF", "FT")
    runs = {name: resilience(TABLE_V[name].topology(), 100) for name in names}
    rows = {
        name: [
            {"fraction": p.fraction, "diameter": p.diameter, "mean_distance": p.mean_distance}
            for p in run.curve
        ]
        for name, run in runs.items()
    }
    networks = "; ".join(f"{name} {TABLE_V[name].title()}" for name in names)
    setup = (
        f"Networks of Table V, without DF2, of which the text says nothing here: {networks}.",
        "Of 100 runs that end when switches with hosts are disconnected, the one with the median"
        " part of failed links.",
    )
    return Evidence(_failure_claims(runs), panels=failures(list(rows.items())), setup=setup)


def _failure_claims(runs: Mapping[str, Resilience]) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 14.

    Args:
        runs: the runs with failing links, by the abbreviation of the network.
    """
    curve, medians = runs["PF"].curve, {name: run.median for name, run in runs.items()}
    diameter_growth = {
        name: _largest_diameter(run.curve, 0.05) - _largest_diameter(run.curve, 0)
        for name, run in runs.items()
    }
    return (
        PaperClaim(
            "PolarFly: diameter 4 with 5 % of links failed, in the median run",
            4,
            _largest_diameter(curve, 0.05),
        ),
        PaperClaim(
            "PolarFly: still 4 with 55 % failed, in the median run",
            4,
            _largest_diameter(curve, 0.55),
        ),
        *(
            PaperClaim(f"ER_7: diameter with {failed.what} failed, {end}", failed.printed, diameter)
            for failed in diameters_without_one(7)
            for end, diameter in (
                ("least", failed.least_diameter),
                ("most", failed.most_diameter),
            )
        ),
        *(
            PaperClaim(
                f"{name} disconnects at a similar part of links: over PolarFly's",
                1,
                medians[name] / medians["PF"],
                reading_error=0.05,
                interpretation="Read as 5 % apart at most.",
            )
            for name in ("SF", "JF")
        ),
        disconnects_later("Slim Fly marginally later", runs["PF"], runs["SF"]),
        *(
            disconnects_later(f"{direct} later than {name}", runs[name], runs[direct])
            for direct in ("PF", "SF")
            for name in ("FT", "DF1")
        ),
        *(
            PaperClaim(
                f"{name}'s diameter grows more rapidly than JF's: by how much with 5 % failed",
                diameter_growth["JF"],
                diameter_growth[name],
                ">",
            )
            for name in ("PF", "SF")
        ),
    )


QUADRIC = 0
"""The kind of vertex of a quadric in `polarfly` (`Topology.kind`)."""


@dataclass(frozen=True, slots=True)
class FailedElement:
    """The diameters of ER_q after one element of a kind has failed."""

    what: str
    """The kind of element that fails, in words."""
    printed: int
    """The diameter that the paper prints."""
    least_diameter: int
    """The smallest diameter over all elements of the kind."""
    most_diameter: int
    """The largest diameter over all elements of the kind."""


def diameters_without_one(q: int) -> tuple[FailedElement, ...]:
    """The diameters of ER_q without one link of a quadric, another link, or a switch."""
    topology = build_topology("polarfly", {"q": q})
    adjacent = matrix_of(topology.graph)
    diameters_of_quadric_links, diameters_of_other_links = list[int](), list[int]()
    for u, v in topology.graph.edges().tolist():
        without_link = adjacent.copy()
        without_link[u, v] = without_link[v, u] = False
        has_quadric = (topology.kind[[u, v]] == QUADRIC).any()
        diameters = diameters_of_quadric_links if has_quadric else diameters_of_other_links
        diameters.append(diameter_of(without_link))
    diameters_of_switches = []
    for switch in range(topology.graph.order):
        without_switch = np.delete(np.delete(adjacent, switch, 0), switch, 1)
        diameters_of_switches.append(diameter_of(without_switch))
    return (
        _failed_element("a link of a quadric", 4, diameters_of_quadric_links),
        _failed_element("another link", 3, diameters_of_other_links),
        _failed_element("a switch", 3, diameters_of_switches),
    )


def _failed_element(what: str, printed: int, diameters: Sequence[int]) -> FailedElement:
    """The diameters of one kind of element, given those without each element."""
    return FailedElement(what, printed, min(diameters), max(diameters))


def _largest_diameter(curve: Sequence[FailurePoint], fraction: float) -> int:
    """The largest diameter near a fraction of failed links; DISCONNECTED without a diameter."""
    near = (point for point in curve if abs(point.fraction - fraction) < FRACTION_ERROR)
    return max(point.diameter or DISCONNECTED for point in near)


def port_costs(_quick: bool) -> Evidence:
    """Figure 15: optical ports for each of 1,024 nodes at the load that it sustains.

    A switch of PolarFly and of Slim Fly has as many hosts as fill its fullest link under uniform
    traffic. Our tables do not take Dragonfly's usual routes, so it has the hosts of Table V.
    """
    price = prices()
    topologies = {name: TABLE_V[name].topology() for name in ("PF", "SF", "DF1")}
    degree = {
        name: 2 * topology.graph.size / topology.graph.order
        for name, topology in topologies.items()
    }
    ports = _ports_per_node(topologies, degree)
    uniform_cost = {name: count / ports["PolarFly"] for name, count in ports.items()}
    permutation_cost = {
        **uniform_cost,
        "Fat tree": uniform_cost["Fat tree"]
        * price.saturation_permutation_direct
        / price.saturation_permutation_indirect,
    }
    hosts_per_port = {name: TABLE_V[name].hosts / degree[name] for name in topologies}
    claims = (
        *_injection_claims(hosts_per_port, price.links_per_module),
        *_cost_claims(uniform_cost, permutation_cost),
    )
    rows = tuple(
        (name, count, uniform_cost[name], permutation_cost[name]) for name, count in ports.items()
    )
    panels = tuple(
        Panel(f"Cost per node, {title}", "", "times PolarFly", _bars(costs), steps=True)
        for title, costs in (
            ("uniform traffic", uniform_cost),
            ("permutations", permutation_cost),
        )
    )
    heads = ("network", "optical ports a node", "uniform", "permutations")
    setup = (
        "Endpoints of a router: in PolarFly and Slim Fly as many as fill the fullest link under"
        " uniform traffic, in Dragonfly Table V's six. Under permutations a fat tree is taken to"
        " saturate at 90 %, and the others at 50 %, as the paper says.",
    )
    return Evidence(claims, heads, rows, panels, setup=setup)


def _cost_claims(
    uniform_cost: Mapping[str, float], permutation_cost: Mapping[str, float]
) -> tuple[PaperClaim, ...]:
    """The claims on what a node costs, by network, in multiples of a node of PolarFly.

    Args:
        uniform_cost: the costs at the load of uniform traffic that each network sustains.
        permutation_cost: the costs at the load of permutations.
    """
    return (
        PaperClaim(
            f"Fat tree of {NODES:,} nodes, {NODES_PER_SWITCH} a switch, by formula: levels",
            10,
            FAT_TREE_LEVELS,
        ),
        PaperClaim(
            "Fat tree, uniform traffic: 5.19 times PolarFly",
            5.19,
            uniform_cost["Fat tree"],
            rounding=0.005,
            reason="The paper prints no formula. A node of the fat tree has 168 ports, one of"
            " PolarFly 32. The loads that the paper divides by are not printed exactly.",
        ),
        PaperClaim(
            "Fat tree, permutations: 2.68 times",
            2.68,
            permutation_cost["Fat tree"],
            rounding=0.005,
            reason="The saturations, 50 and 90 %, are the paper's. Their quotient is 1.8; that of"
            " the two printed ratios is 1.94.",
        ),
        PaperClaim(
            "Slim Fly: about 20 % more",
            1.2,
            uniform_cost["Slim Fly"],
            reading_error=0.05,
            reason="The paper prints no formula. Ours divides ports by the hosts that fill the"
            " fullest link. In §XII PolarFly is cost-effective by up to 10 % beside Slim Fly.",
        ),
    )


def _ports_per_node(
    topologies: Mapping[str, Topology], degree: Mapping[str, float]
) -> dict[str, float]:
    """The optical ports for each node, by network.

    Args:
        topologies: the direct networks, by their abbreviations.
        degree: the mean degree of each.
    """
    hosts = {name: uniform(topologies[name]).full_throughput_hosts for name in ("PF", "SF")}
    hosts["DF1"] = TABLE_V["DF1"].hosts
    edge_switches = NODES // NODES_PER_SWITCH
    switches = (FAT_TREE_LEVELS - 1) * NODES // NODES_PER_SWITCH + edge_switches // 2
    ports_per_host = {name: INJECTION_PORTS * degree[name] / hosts[name] for name in hosts}
    return {
        "PolarFly": ports_per_host["PF"],
        "Slim Fly": ports_per_host["SF"],
        "Dragonfly": ports_per_host["DF1"],
        "Fat tree": (switches * 2 * INJECTION_PORTS + NODES * INJECTION_PORTS) / NODES,
    }


def _injection_claims(
    hosts_per_port: Mapping[str, float], links_per_module: float
) -> tuple[PaperClaim, ...]:
    """The claims of figure 15 about the ports of injection.

    Args:
        hosts_per_port: the hosts of a switch over its degree, by the abbreviation of the network.
        links_per_module: the optical ports of a module.
    """
    return (
        PaperClaim(
            "PolarFly: injection over all bandwidth, 1:2",
            1 / 2,
            hosts_per_port["PF"],
            taken=True,
            reason=OF_TABLE_V,
        ),
        PaperClaim("Slim Fly: 1:2", 1 / 2, hosts_per_port["SF"], taken=True, reason=OF_TABLE_V),
        PaperClaim("Dragonfly: 1:3", 1 / 3, hosts_per_port["DF1"], taken=True, reason=OF_TABLE_V),
        *(
            PaperClaim(
                f"{name}: {printed} modules of 8 ports a node",
                printed,
                ceil(INJECTION_PORTS / hosts_per_port[short] / links_per_module),
                interpretation="With as many endpoints for a link as in Table V, and"
                f" {INJECTION_PORTS} ports of injection.",
            )
            for name, short, printed in (
                ("PolarFly", "PF", 4),
                ("Slim Fly", "SF", 4),
                ("Dragonfly", "DF1", 6),
            )
        ),
    )


def _bars(values: Mapping[str, float]) -> tuple[Curve, ...]:
    """A bar for each value, as curves with steps."""
    return tuple(
        Curve(name, (n - 0.4, n + 0.4), (value,)) for n, (name, value) in enumerate(values.items())
    )
