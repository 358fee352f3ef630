"""Figure 12 of the PolarFly paper: the links in cuts in halves, over the radix (§IX).

`bisections` reproduces the figure and returns its claims as `Evidence`; `polarfly_paper` lists it.
METIS finds a small cut, whose links are an upper bound of the smallest one. Eigenvalues give a
lower bound for PolarFly. ER_q is PolarFly's graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from compilers.drawing.plots import Curve, Panel
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.topology.families import build_topology
from compilers.topology.family import Design
from compilers.topology.polarity import order
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.polarfly.polarfly_networks import TABLE_V, TITLES

RADIXES = range(6, 37)
"""The radixes of figure 12."""
MOST_NODES = 1_400
"""The most switches of a network of figure 12."""
LEAST_COMPARED_RADIX = 18
"""The radix from which on the paper compares bisections."""
CUT_BELOW_40 = (
    "1,092 of the 2,754 links of ER_17, radix 18, join 154 of its switches to the other 153, which"
    " is 39.7 %. From radix 24 on every cut has more than 40 %, by the eigenvalues."
)
"""The correction of the claim that every bisection of PolarFly has more than 40 % of the links: a
cut of ER_17 that METIS finds."""
LARGE_PRIME = 1_000_000_007
"""A q at which the smallest cut is near its limit."""


def _smallest_cuts() -> dict[str, dict[float, float]]:
    """The fraction of the links that is in the cut that METIS finds, by family and then by radix.

    Of each radix it is that of the largest network with `MOST_NODES` switches or fewer. A fat tree
    has two levels of links, and the fraction is of the links of one level.
    """
    direct = ("polarfly", "slimfly", "dragonfly")
    cuts_of: dict[str, dict[float, float]] = {
        family: {} for family in (*direct, "jellyfish", "fat-tree")
    }
    for design in designs_of_radixes(RADIXES, among=families(direct, baselines=True)):
        cut_by_radix = cuts_of[design.family]
        is_too_large = design.nodes > MOST_NODES
        if is_too_large or design.radix in cut_by_radix or not _is_balanced(design):
            continue
        topology = build_topology(design.family, dict(design.parameters))
        cut_by_radix[design.radix] = bisection(topology).fraction
        if design.family == "polarfly":
            cuts_of["jellyfish"][design.radix] = _cut_of_jellyfish(design)
    for k in range(4, max(RADIXES) // 2, 2):
        tree = bisection(build_topology("fat-tree", {"k": k, "pods": k}))
        cuts_of["fat-tree"][2 * k] = 2 * tree.fraction
    return cuts_of


def _is_balanced(design: Design) -> bool:
    """Whether a Dragonfly has a = 2h; other networks are always balanced."""
    if design.family != "dragonfly":
        return True
    return design.parameters["a"] == 2 * int(design.parameters["h"] or 0)


def _cut_of_jellyfish(polarfly: Design) -> float:
    """The fraction of the links in METIS's cut of the Jellyfish with a PolarFly's switches.

    It has the radix of that PolarFly, less one port where the number of ports would be odd.
    """
    degree = polarfly.radix - polarfly.nodes * polarfly.radix % 2
    jellyfish = build_topology("jellyfish", {"nodes": polarfly.nodes, "degree": degree})
    return bisection(jellyfish).fraction


def least_cut_fraction(q: int) -> float:
    """The fraction of ER_q's links that every cut in halves has at least.

    The matrix of ER_q with its loops has the eigenvalues q + 1 and ±√q. So a cut that separates n
    of N vertices has (q + 1 - √q)·n·(N - n)/N links or more.
    """
    size = order(q)
    half = size // 2
    least_links = (q + 1 - sqrt(q)) * half * (size - half) / size
    all_links = q * (q + 1) ** 2 / 2
    return least_links / all_links


def dragonfly_cut_fraction(h: int) -> float:
    """The fraction of a balanced Dragonfly's links that join two halves of its groups.

    It has 2h² + 1 groups of 2h switches; one link joins two groups. With an odd number of groups
    one of them is halved: half of its global links count, and h² of its own.
    """
    groups, links_of_group = 2 * h * h + 1, h * (2 * h - 1)
    half = groups // 2
    links_across = half * half + (groups - 1) // 2 + h * h
    all_links = groups * (groups - 1) / 2 + groups * links_of_group
    return links_across / all_links


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
        family: {
            radix: fraction
            for radix, fraction in cut_by_radix.items()
            if radix >= LEAST_COMPARED_RADIX
        }
        for family, cut_by_radix in cuts_of.items()
    }
    tree_cuts = cuts_of["fat-tree"].values()
    slimfly_percents = sorted(100 * fraction for fraction in compared["slimfly"].values())
    dragonfly_radix = 3 * int(TABLE_V["DF1"].parameters["h"] or 0) - 1
    dragonfly_cut = cuts_of["dragonfly"][dragonfly_radix]
    return (
        *_polarfly_bisection_claims(compared),
        PaperClaim(
            statement="Fat tree: 50 %, at each: that which is farthest from it",
            printed=0.5,
            computed=max(tree_cuts, key=lambda fraction: abs(fraction - 0.5)),
            rounding=0.005,
            interpretation="Of the links of one of its two levels; of all links it is 25 %.",
        ),
        PaperClaim(
            statement="Slim Fly: 33 %, at the radix of Table V",
            printed=0.33,
            computed=cuts_of["slimfly"][35],
            rounding=0.005,
            interpretation="Read as of Table V's. METIS's cuts from radix 18 on have"
            f" {slimfly_percents[0]:.1f} to {slimfly_percents[-1]:.1f} %.",
        ),
        PaperClaim(
            statement=f"Dragonfly: 17 %, at the radix of Table V's balanced one, {dragonfly_radix}",
            printed=0.17,
            computed=dragonfly_cut,
            rounding=0.005,
            reason=f"METIS's cut has {100 * dragonfly_cut:.1f} %, and at the largest radix here"
            f" {100 * cuts_of['dragonfly'][max(cuts_of['dragonfly'])]:.1f} %. It is 17 % of larger"
            " ones.",
        ),
        PaperClaim(
            statement="Dragonfly: 17 %, halves of its groups with h = 1,000",
            printed=0.17,
            computed=dragonfly_cut_fraction(1_000),
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
        compared: the cuts of `_smallest_cuts`, of radixes from `LEAST_COMPARED_RADIX` on.
    """
    polarfly = compared["polarfly"]
    bound_by_radix = {radix: least_cut_fraction(int(radix) - 1) for radix in polarfly}
    ratios_to_jellyfish = [
        bound / compared["jellyfish"][radix] for radix, bound in bound_by_radix.items()
    ]
    return (
        PaperClaim(
            statement="PolarFly of radix 18 and more: above 40 % at each",
            printed=0.4,
            computed=min(polarfly.values()),
            relation=">",
            correction=CUT_BELOW_40,
        ),
        PaperClaim(
            statement="above METIS's cut of Jellyfish of the same size, at each, by the"
            " eigenvalues: least ratio",
            printed=1,
            computed=min(ratios_to_jellyfish),
            relation=">",
        ),
        *(
            PaperClaim.of_order(
                says=f"above all of METIS's cuts of {TITLES[name]} there, by the eigenvalues",
                first=min(bound_by_radix.values()),
                relation=">",
                second=max(compared[name].values()),
            )
            for name in ("slimfly", "dragonfly")
        ),
        PaperClaim(
            statement=f"reaching 50 % asymptotically: at q = {LARGE_PRIME:,} at least, by the"
            " eigenvalues",
            printed=0.5,
            computed=least_cut_fraction(LARGE_PRIME),
            reading_error=0.001,
        ),
    )
