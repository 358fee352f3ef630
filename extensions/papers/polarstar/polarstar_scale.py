"""Figures 1, 4 and 7 of the PolarStar paper, about size: Moore bound, structure graphs, orders.

Each function with the parameter `_quick` reproduces a figure and returns its claims as `Evidence`;
`polarstar_paper` lists these functions. All exhibits take `_quick`, for small sizes; the figures of
this module are quickly computed in full, and ignore it.

PolarStar is the star product of a *structure graph*, the polarity graph ER_q, and a small graph,
the *supernode*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import pstdev

import numpy as np

from compilers.drawing.plots import Curve, Panel
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.topology.families import build_topology
from compilers.topology.family import Design, moore_bound
from compilers.topology.field import prime_power
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import GraphCounts, counts_of, matrix_of

RADIXES = range(8, 129)
"""The radixes of figures 1 and 7."""
RADIX_RANGE = f"{RADIXES[0]} to {RADIXES[-1]}"
"""The radixes in words."""
NAMES = {
    "polarstar": "PolarStar",
    "bundlefly": "Bundlefly",
    "dragonfly": "Dragonfly",
    "hyperx": "HyperX",
    "megafly": "Megafly",
    "spectralfly": "Spectralfly",
    "jellyfish": "Jellyfish",
}
"""The families of the paper's figures, with their names there."""
COMPARED = ("bundlefly", "dragonfly", "hyperx", "spectralfly")
"""The families that figure 1 compares PolarStar with."""
FIGURE_1 = ("polarstar", *COMPARED)
"""The families of figure 1."""
ABSTRACT_RATIOS = {"bundlefly": 1.3, "dragonfly": 1.9, "hyperx": 6.7}
"""How many times as large as each family PolarStar is, as the abstract prints it
(arXiv:2302.07217v2): the geometric mean over radixes of PolarStar's order divided by the family's.
"""
LARGE_RADIX = 1024
"""A radix at which PolarStar is near its limit."""
KAUTZ_LIMIT = 1 / 8
"""The limit of the order of `kautz` divided by the radix cubed, for large radixes.

The Moore bound of diameter 3 divided by the radix cubed tends to 1. So this is also the limit of
the fraction of the Moore bound, as which figure 1 draws it."""
BUILT_RADIXES = range(8, 16)
"""The radixes at which the largest PolarStar is built as a graph, to check the formulas."""
MOST_BUILT_DEGREE = 33
"""The largest degree for which an ER graph is built, to check the formulas."""
POLARSTAR_LIMIT = 8 / 27
"""The fraction of the Moore bound that PolarStar reaches for large radixes, by formula (2): twice
the maximum of x²(1 - x), which is at x = 2/3."""


def moore_efficiency(_quick: bool) -> Evidence:
    """Figure 1: the fraction of the Moore bound that direct networks of diameter 3 reach."""
    best = _largest_orders(designs_of_radixes(RADIXES, among=families(FIGURE_1, baselines=True)))
    products = {radix: _largest_product(radix) for radix in RADIXES}
    curves = tuple(
        _curve(name, orders, lambda radix: moore_bound(radix, 3))
        for name, orders in (
            *((NAMES[name], best[name]) for name in FIGURE_1),
            ("star product, bound", products),
        )
    )
    limit = Curve("Kautz, limit", (8.0, 128.0), (100 * KAUTZ_LIMIT, 100 * KAUTZ_LIMIT))
    panel = Panel(
        "Direct networks of diameter 3", "radix", "% of the Moore bound", (*curves, limit)
    )
    setup = (_built_orders(best["polarstar"]),)
    return Evidence(tuple(_scale_claims(best, products)), panels=(panel,), setup=setup)


def _built_orders(largest: Mapping[int, int]) -> str:
    """A line that says how many of the largest PolarStars have the size of the formulas if built.

    Args:
        largest: the orders of the largest PolarStars, by radix.
    """
    as_by_formula = 0
    for design in designs_of_radixes(BUILT_RADIXES, among=families(("polarstar",))):
        if design.nodes == largest[design.radix]:
            graph = build_topology(design.family, dict(design.parameters)).graph
            expected = GraphCounts(order=design.nodes, degree=design.radix, diameter=3)
            as_by_formula += counts_of(matrix_of(graph)) == expected
    return (
        f"Orders are by formulas. The largest PolarStars of radix {BUILT_RADIXES[0]} to"
        f" {BUILT_RADIXES[-1]} are built: {as_by_formula} of {len(BUILT_RADIXES)} have this order"
        " and radix, and the diameter 3."
    )


def _scale_claims(
    best: Mapping[str, Mapping[int, int]], products: Mapping[int, int]
) -> list[PaperClaim]:
    """What the paper says of figure 1.

    Args:
        best: the largest order of each family, by radix.
        products: the largest order of a star product by the bounds of its factors, by radix.
    """
    return [*_order_claims(best), *_moore_claims(best, products)]


def _order_claims(best: Mapping[str, Mapping[int, int]]) -> tuple[PaperClaim, ...]:
    """The claims of figure 1 on PolarStar's order beside those of other families.

    Args:
        best: the largest order of each family, by radix.
    """
    polarstar = best["polarstar"]
    not_largest = sorted(
        {
            radix
            for name in COMPARED
            for radix, order in best[name].items()
            if order > polarstar[radix]
        }
    )
    return (
        *(
            PaperClaim(
                statement=f"times as large as {NAMES[name]}, geometric mean over"
                f" {_which_radixes(best[name])}",
                printed=printed,
                computed=_geometric_mean(
                    polarstar[radix] / order for radix, order in best[name].items()
                ),
                rounding=0.05,
            )
            for name, printed in ABSTRACT_RATIOS.items()
        ),
        PaperClaim(
            statement=f"radixes with a construction, of {RADIX_RANGE}",
            printed=len(RADIXES),
            computed=len(polarstar),
        ),
        PaperClaim(
            statement="PolarStar is the largest: fraction of radixes",
            printed=1,
            computed=1 - len(not_largest) / len(RADIXES),
            reading_error=0.05,
            interpretation="Read as 95 % or more, beside the families that are drawn here: all but"
            f" radix {', '.join(map(str, not_largest))}.",
        ),
    )


def _which_radixes(orders: Mapping[int, int]) -> str:
    """Over which radixes a mean is taken, in words: all, or those at which a family has a network.

    Args:
        orders: the orders of the family, by radix.
    """
    of_all = f"radixes {RADIX_RANGE}"
    return of_all if len(orders) == len(RADIXES) else f"the {len(orders)} that it has of {of_all}"


def _moore_claims(
    best: Mapping[str, Mapping[int, int]], products: Mapping[int, int]
) -> tuple[PaperClaim, ...]:
    """The claims of figure 1 on bounds and limits.

    Args:
        best: the largest order of each family, by radix.
        products: the largest order of a star product by the bounds of its factors, by radix.
    """
    polarstar = best["polarstar"]
    fraction_of_bound = {
        name: {radix: order / moore_bound(radix, 3) for radix, order in orders.items()}
        for name, orders in best.items()
    }
    large_designs = designs_of_radixes([LARGE_RADIX], among=families(("polarstar",)))
    largest_order = _largest_orders(large_designs)["polarstar"][LARGE_RADIX]
    fractions_of_products = [polarstar[radix] / order for radix, order in products.items()]
    mean_fraction = _geometric_mean(fractions_of_products)
    return (
        PaperClaim(
            statement=f"asymptotically 8/27 of the Moore bound, at radix {LARGE_RADIX:,}",
            printed=POLARSTAR_LIMIT,
            computed=largest_order / moore_bound(LARGE_RADIX, 3),
            reading_error=0.001,
            interpretation=f"A limit, {POLARSTAR_LIMIT:.4f}: read as .001 or less from it at radix"
            f" {LARGE_RADIX:,}.",
        ),
        PaperClaim(
            statement="PolarStar's order divided by the star-product bound, geometric mean",
            printed=1,
            computed=mean_fraction,
            reading_error=0.05,
            interpretation=f"Read as 95 % or more on average. It is {100 * mean_fraction:.1f} %,"
            f" and at the worst radix {100 * min(fractions_of_products):.0f} %.",
        ),
        PaperClaim.of_order(
            says="more consistent than Bundlefly: standard deviation of the fraction of the Moore"
            " bound",
            first=pstdev(fraction_of_bound["polarstar"].values()),
            relation="<",
            second=pstdev(fraction_of_bound["bundlefly"].values()),
            interpretation="Consistent is read as of a small standard deviation over the radixes"
            f" that each has: of {RADIX_RANGE}, Bundlefly {len(best['bundlefly'])}.",
        ),
        PaperClaim.of_order(
            says="Spectralfly has diameter 3 for very few radixes: fewer than any other",
            first=len(best["spectralfly"]),
            relation="<",
            second=min(len(best[name]) for name in FIGURE_1 if name != "spectralfly"),
            interpretation="Very few are read as fewer than any other of figure 1 has.",
        ),
        PaperClaim(
            statement="smallest ratio to the bidirectional Kautz graph, even radixes"
            f" {RADIX_RANGE}",
            printed=1,
            computed=min(polarstar[radix] / kautz(radix) for radix in RADIXES[::2]),
            relation=">",
        ),
    )


def kautz(radix: int) -> int:
    """The order of the bidirectional Kautz graph of a radix, of diameter 3.

    It is a directed Kautz graph whose arcs are links. Half of the links of a vertex are arcs to it,
    and half are arcs from it.
    """
    out_degree = radix // 2
    return out_degree**3 + out_degree**2


def structure_graphs(_quick: bool) -> Evidence:
    """Figure 4: the fraction of the Moore bound that structure graphs of diameter 2 reach."""
    designs = designs_of_radixes(
        range(3, 129), among=families(("polarfly", "slimfly", "hyperx"), baselines=True)
    )
    best = _largest_orders((design for design in designs if design.diameter == 2), diameter=2)
    polarity, other_families = best["polarfly"], (best["slimfly"], best["hyperx"])
    compared_degrees = [d for d in polarity if any(d in orders for orders in other_families)]
    # The degrees at which another family has a larger graph.
    exceeded = [
        d
        for d in compared_degrees
        if any(orders.get(d, 0) > polarity[d] for orders in other_families)
    ]
    claims = (
        PaperClaim(
            statement="ER is larger than others: fraction of degrees",
            printed=1,
            computed=1 - len(exceeded) / len(compared_degrees),
            reading_error=0.05,
            interpretation="Read as 95 % or more of the degrees that it has with another family"
            f" that is drawn here: all but degree {', '.join(map(str, exceeded))}.",
        ),
        PaperClaim(
            statement="asymptotically the Moore bound: at degree 128",
            printed=1,
            computed=polarity[128] / moore_bound(128, 2),
            reading_error=0.01,
            interpretation="A limit: read as 99 % or more of it at degree 128.",
        ),
        PaperClaim(
            statement="an ER graph for any degree q + 1, q a prime power: those of 3 to"
            f" {MOST_BUILT_DEGREE}",
            printed=sum(prime_power(q) is not None for q in range(2, MOST_BUILT_DEGREE)),
            computed=sum(
                _is_structure_graph(q) for q in range(2, MOST_BUILT_DEGREE) if prime_power(q)
            ),
        ),
    )
    names_of_graphs = {
        "polarfly": "Erdős–Rényi",
        "slimfly": "McKay–Miller–Širáň",
        "hyperx": "Hamming",
    }
    curves = tuple(
        _curve(names_of_graphs[name], orders, lambda degree: moore_bound(degree, 2))
        for name, orders in best.items()
    )
    panel = Panel("Structure graphs of diameter 2", "degree", "% of the Moore bound", curves)
    return Evidence(claims, panels=(panel,))


def _is_structure_graph(q: int) -> bool:
    """Whether ER_q has q² + q + 1 vertices, the degree q + 1, and diameter 2."""
    graph = build_topology("polarfly", {"q": q}).graph
    return counts_of(matrix_of(graph)) == GraphCounts(q * q + q + 1, q + 1, diameter=2)


def feasible_orders(_quick: bool) -> Evidence:
    """Figure 7: orders of PolarStar with Inductive-Quad and with Paley supernodes, by radix.

    §7.2 lists the radixes at which the largest PolarStar has another supernode. The list is missing
    in our copy of the paper, so we only count them.
    """
    # By radix the orders of all PolarStars with a supernode of each of the two kinds.
    quad: dict[int, list[int]] = {}
    paley: dict[int, list[int]] = {}
    for design in designs_of_radixes(RADIXES, among=families(("polarstar",))):
        if design.supernode == "inductive-quad":
            quad.setdefault(design.radix, []).append(design.nodes)
        elif design.supernode == "paley":
            paley.setdefault(design.radix, []).append(design.nodes)
    counts = [len(quad.get(radix, [])) + len(paley.get(radix, [])) for radix in RADIXES]
    with_larger_paley = [
        radix for radix in RADIXES if max(paley.get(radix, [0])) > max(quad.get(radix, [0]))
    ]
    claims = (
        PaperClaim(
            statement=f"fewest configurations at a radix, of {RADIX_RANGE}",
            printed=2,
            computed=min(counts),
            relation=">=",
            interpretation=f"Read as two or more. The fewest are {min(counts)}.",
        ),
        PaperClaim(
            statement=f"radixes with an Inductive-Quad, of {RADIX_RANGE}",
            printed=len(RADIXES),
            computed=len(quad),
        ),
        PaperClaim(
            statement="the largest has an Inductive-Quad: fraction of radixes",
            printed=1,
            computed=1 - len(with_larger_paley) / len(RADIXES),
            reading_error=0.05,
            interpretation=f"Read as 95 % or more: all but {len(with_larger_paley)} of"
            f" {len(RADIXES)}. The text has lost the list of exceptions in §7.2.",
        ),
        PaperClaim(
            statement="radixes at which the largest has a Paley graph, here"
            f" {', '.join(map(str, with_larger_paley))}",
            printed=1,
            computed=len(with_larger_paley),
            relation=">=",
        ),
    )
    curves = []
    for name, orders in (("Inductive-Quad", quad), ("Paley", paley)):
        points = [(float(radix), float(order)) for radix in orders for order in orders[radix]]
        x, y = zip(*points, strict=True)
        curves.append(Curve(name, x, y, "points"))
    panel = Panel("Orders of PolarStar", "radix", "order", tuple(curves), logarithmic="y")
    return Evidence(claims, panels=(panel,), setup=("Orders are by formulas.",))


def _largest_orders(designs: Iterable[Design], diameter: int = 3) -> dict[str, dict[int, int]]:
    """By family and radix the largest order of the designs with this diameter."""
    best: dict[str, dict[int, int]] = {}
    for design in designs:
        if design.diameter == diameter:
            orders = best.setdefault(design.family, {})
            orders[design.radix] = max(orders.get(design.radix, 0), design.nodes)
    return best


def _largest_product(radix: int) -> int:
    """The largest order of a star product of this radix by the bounds of its two factors.

    A structure graph of degree d has at most d² + 1 vertices, the Moore bound. A supernode of
    degree d' has at most 2d' + 2 vertices. The radix is d + d'.
    """
    return max((d * d + 1) * (2 * (radix - d) + 2) for d in range(1, radix))


def _geometric_mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def _curve(name: str, orders: Mapping[int, int], bound: Callable[[int], int]) -> Curve:
    """A curve of the largest orders by degree, as per cent of a bound."""
    degrees = sorted(orders)
    percents = tuple(100 * orders[degree] / bound(degree) for degree in degrees)
    return Curve(name, tuple(map(float, degrees)), percents)
