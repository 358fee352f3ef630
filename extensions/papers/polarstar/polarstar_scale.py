"""Figures 1, 4 and 7 of the PolarStar paper, about size: Moore bound, structure graphs, orders.

Each function with the parameter `_quick` reproduces a figure and returns its claims as `Evidence`;
`polarstar_paper` lists them. PolarStar is the star product of a *structure graph*, the polarity
graph ER_q, and a small graph, the *supernode*.
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
from extensions.papers.graphs import counts_of, matrix_of

RADIXES = range(8, 129)
"""The radixes of figures 1 and 7."""
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
COMPARED = ("polarstar", "bundlefly", "dragonfly", "hyperx", "spectralfly")
"""The families of figure 1, PolarStar first."""
ABSTRACT_RATIOS = {"bundlefly": 1.3, "dragonfly": 1.9, "hyperx": 6.7}
"""The abstract (arXiv:2302.07217v2) says how many times as large PolarStar is as each family: the
geometric mean, over radixes, of PolarStar's order divided by the family's."""
LARGE_RADIX = 1024
"""A radix at which PolarStar is near its limit."""
KAUTZ_LIMIT = 1 / 8
"""The limit of the order of `kautz` divided by the radix cubed, for large radixes."""
BUILT_RADIXES = range(8, 16)
"""The radixes at which the largest PolarStar is built as a graph, to check the formulas."""
MOST_BUILT_DEGREE = 33
"""The largest degree for which an ER graph is built, to check the formulas."""
POLARSTAR_LIMIT = 8 / 27
"""The fraction of the Moore bound that PolarStar reaches for large radixes, by formula (2): twice
the maximum of x²(1 - x), which is at x = 2/3."""


def moore_efficiency(_quick: bool) -> Evidence:
    """Figure 1: the fraction of the Moore bound that direct networks of diameter 3 reach."""
    best = _largest_orders(designs_of_radixes(RADIXES, among=families(COMPARED, baselines=True)))
    products = {radix: _largest_product(radix) for radix in RADIXES}
    curves = tuple(
        _curve(name, orders, lambda radix: moore_bound(radix, 3))
        for name, orders in (
            *((NAMES[name], best[name]) for name in COMPARED),
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
            as_by_formula += counts_of(matrix_of(graph)) == (largest[design.radix], design.radix, 3)
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
            for name in COMPARED[1:]
            for radix, order in best[name].items()
            if order > polarstar[radix]
        }
    )
    return (
        *(
            PaperClaim(
                f"times as large as {NAMES[name]}, geometric mean over"
                f" {_radix_words(best[name])}radixes 8 to 128",
                printed,
                _geometric_mean(polarstar[radix] / order for radix, order in best[name].items()),
                rounding=0.05,
            )
            for name, printed in ABSTRACT_RATIOS.items()
        ),
        PaperClaim("a construction for every radix of 8 to 128", len(RADIXES), len(polarstar)),
        PaperClaim(
            "the largest for almost all radixes: part of them",
            1,
            1 - len(not_largest) / len(RADIXES),
            reading_error=0.05,
            interpretation="Read as 95 % or more, beside the families that are drawn here: all but"
            f" radix {', '.join(map(str, not_largest))}.",
        ),
    )


def _radix_words(orders: Mapping[int, int]) -> str:
    """Words before "radixes" that say how many of them a family has; "" if it has them all."""
    return "" if len(orders) == len(RADIXES) else f"the {len(orders)} that it has of "


def _moore_claims(
    best: Mapping[str, Mapping[int, int]], products: Mapping[int, int]
) -> tuple[PaperClaim, ...]:
    """The claims of figure 1 on bounds and limits; the arguments are those of `_scale_claims`."""
    polarstar = best["polarstar"]
    fraction_of_bound = {
        name: {radix: order / moore_bound(radix, 3) for radix, order in orders.items()}
        for name, orders in best.items()
    }
    large_designs = designs_of_radixes([LARGE_RADIX], among=families(("polarstar",)))
    largest_order = _largest_orders(large_designs)["polarstar"][LARGE_RADIX]
    limit = largest_order / moore_bound(LARGE_RADIX, 3)
    fractions_of_products = [polarstar[radix] / order for radix, order in products.items()]
    mean = _geometric_mean(fractions_of_products)
    return (
        PaperClaim(
            f"asymptotically 8/27 of the Moore bound, at radix {LARGE_RADIX:,}",
            POLARSTAR_LIMIT,
            limit,
            reading_error=0.001,
            interpretation=f"A limit, {POLARSTAR_LIMIT:.4f}: read as .001 or less from it at radix"
            f" {LARGE_RADIX:,}.",
        ),
        PaperClaim(
            "near the largest star product by the bounds of its factors: geometric mean part of it",
            1,
            mean,
            reading_error=0.05,
            interpretation=f"Read as 95 % or more on average. It is {100 * mean:.1f} %, and at some"
            f" radix {100 * min(fractions_of_products):.0f} %.",
        ),
        PaperClaim(
            "more consistent than Bundlefly: standard deviation of the part of the Moore bound",
            pstdev(fraction_of_bound["bundlefly"].values()),
            pstdev(fraction_of_bound["polarstar"].values()),
            "<",
            interpretation="Consistent is read as of a small standard deviation over the radixes"
            f" that each has: of 8 to 128, Bundlefly {len(best['bundlefly'])}.",
        ),
        PaperClaim(
            "Spectralfly has diameter 3 for very few radixes: fewer than any other",
            min(len(best[name]) for name in COMPARED[:-1]),
            len(best["spectralfly"]),
            "<",
            interpretation="Very few are read as fewer than any other of figure 1 has.",
        ),
        PaperClaim(
            "more than bidirectional Kautz graphs, at each even radix of 8 to 128: least ratio",
            1,
            min(polarstar[radix] / kautz(radix) for radix in RADIXES[::2]),
            ">",
        ),
    )


def kautz(radix: int) -> int:
    """The order of a Kautz graph of diameter 3 whose arcs are links.

    Half of the links of a vertex are arcs to it, half are arcs from it.
    """
    half = radix // 2
    return half**3 + half**2


def structure_graphs(_quick: bool) -> Evidence:
    """Figure 4: the fraction of the Moore bound that structure graphs of diameter 2 reach."""
    designs = designs_of_radixes(
        range(3, 129), among=families(("polarfly", "slimfly", "hyperx"), True)
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
            "ER is larger than others at almost all degrees: part at which it is",
            1,
            1 - len(exceeded) / len(compared_degrees),
            reading_error=0.05,
            interpretation="Read as 95 % or more of the degrees that it has with another family"
            f" that is drawn here: all but degree {', '.join(map(str, exceeded))}.",
        ),
        PaperClaim(
            "asymptotically the Moore bound: at degree 128",
            1,
            polarity[128] / moore_bound(128, 2),
            reading_error=0.01,
            interpretation="A limit: read as 99 % or more of it at degree 128.",
        ),
        PaperClaim(
            f"an ER graph for any degree q + 1, q a prime power: those of 3 to {MOST_BUILT_DEGREE}",
            sum(prime_power(q) is not None for q in range(2, MOST_BUILT_DEGREE)),
            sum(_is_structure_graph(q) for q in range(2, MOST_BUILT_DEGREE) if prime_power(q)),
        ),
    )
    names = {"polarfly": "Erdős–Rényi", "slimfly": "McKay–Miller–Širáň", "hyperx": "Hamming"}
    curves = tuple(
        _curve(names[name], orders, lambda degree: moore_bound(degree, 2))
        for name, orders in best.items()
    )
    panel = Panel("Structure graphs of diameter 2", "degree", "% of the Moore bound", curves)
    return Evidence(claims, panels=(panel,))


def _is_structure_graph(q: int) -> bool:
    """Whether ER_q has q² + q + 1 vertices, the degree q + 1, and diameter 2."""
    graph = build_topology("polarfly", {"q": q}).graph
    return counts_of(matrix_of(graph)) == (q * q + q + 1, q + 1, 2)


def feasible_orders(_quick: bool) -> Evidence:
    """Figure 7: orders of PolarStar with Inductive-Quad and with Paley supernodes, by radix."""
    designs = [
        design
        for design in designs_of_radixes(RADIXES, among=families(("polarstar",)))
        if design.supernode in ("inductive-quad", "paley")
    ]
    orders: dict[str, dict[int, list[int]]] = {}
    for design in designs:
        orders.setdefault(design.supernode or "", {}).setdefault(design.radix, []).append(
            design.nodes
        )
    quad, paley = orders["inductive-quad"], orders["paley"]
    counts = [len(quad.get(radix, [])) + len(paley.get(radix, [])) for radix in RADIXES]
    larger = [radix for radix in RADIXES if max(paley.get(radix, [0])) > max(quad.get(radix, [0]))]
    claims = (
        PaperClaim(
            "several configurations for every radix of 8 to 128: fewest",
            2,
            min(counts),
            ">=",
            interpretation=f"Read as two or more. The fewest are {min(counts)}.",
        ),
        PaperClaim("an Inductive-Quad for every radix of 8 to 128", len(RADIXES), len(quad)),
        PaperClaim(
            "the largest has an Inductive-Quad for almost all radixes: part of them",
            1,
            1 - len(larger) / len(RADIXES),
            reading_error=0.05,
            interpretation=f"Read as 95 % or more: all but {len(larger)} of {len(RADIXES)}. Those"
            " that §7.2 excepts are lost in the text.",
        ),
        PaperClaim(
            "but not for all of 8 to 128: radixes with Paley, here"
            f" {', '.join(map(str, larger))}, at least",
            1,
            len(larger),
            ">=",
        ),
    )
    curves = []
    for name, sizes in (("Inductive-Quad", quad), ("Paley", paley)):
        radixes, nodes = zip(*((float(r), float(n)) for r in sizes for n in sizes[r]), strict=True)
        curves.append(Curve(name, radixes, nodes, "points"))
    axes = ("radix", "order")
    panel = Panel("Orders of PolarStar", *axes, tuple(curves), logarithmic="y")
    return Evidence(claims, panels=(panel,), setup=("Orders are by formulas.",))


def _largest_orders(designs: Iterable[Design], diameter: int = 3) -> dict[str, dict[int, int]]:
    """The largest order of each family at each radix, of its designs of this diameter."""
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
    x = sorted(orders)
    return Curve(
        name, tuple(map(float, x)), tuple(100 * orders[degree] / bound(degree) for degree in x)
    )
