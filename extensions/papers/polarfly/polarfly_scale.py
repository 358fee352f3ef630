"""Figures 1 and 2 of the PolarFly paper, about its size: feasible degrees, and the Moore bound.

The *Moore bound* is the most vertices that a graph of a degree and a diameter can have. A degree is
*feasible* if the family has a network of this degree.

Each function with the parameter `_quick` reproduces a figure and returns its claims and plots as
`Evidence`; `polarfly_paper` lists these functions. All exhibits take `_quick`, for small sizes;
the figures of this module are quickly computed in full, and ignore it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isqrt, log

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.plots import Curve, Panel, efficiency
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.topology.families import build_topology
from compilers.topology.family import Design, moore_bound
from compilers.topology.polarity import order
from extensions.baselines import slimfly
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import Adjacency, GraphCounts, counts_of, matrix_of
from extensions.papers.polarfly.polarfly_networks import TITLES

MOST_DEGREE = 10_000_000
"""The degree up to which feasible degrees are counted, for the asymptotic claim."""
LARGEST_DRAWN_RADIX = 128
"""The largest radix of figures 1 and 2."""
DRAWN_FAMILIES = ("polarfly", "slimfly", "hyperx")
"""The families of figure 2."""
LARGEST_BUILT_RADIX = 20
"""The radix up to which networks of figure 2 are built, and their orders and diameters counted."""
LARGE_PRIME = 65_537
"""A prime so large that the fraction of the Moore bound is near its limit."""
HOFFMAN_SINGLETON_DEGREE = 7
"""The degree above which PolarFly and Slim Fly are compared. At this degree Slim Fly is a Moore
graph, and there is no PolarFly."""


def figure_1_degrees(_quick: bool) -> Evidence:
    """Figure 1: feasible degrees of PolarFly and Slim Fly."""
    powers = prime_powers(MOST_DEGREE)
    polarfly, slim_fly = (
        feasible[feasible <= MOST_DEGREE] for feasible in (powers + 1, slim_fly_degrees(powers[1:]))
    )
    panels = _degree_panels(polarfly, slim_fly)
    setup = ("Degrees are by formulas, of prime powers q: q + 1, and (3q - δ)/2 of Slim Fly.",)
    return Evidence(_degree_claims(polarfly, slim_fly), panels=panels, setup=setup)


def _degree_claims(
    polarfly: NDArray[np.int64], slim_fly: NDArray[np.int64]
) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 1, from the feasible degrees of both networks."""
    polarfly_to_128 = polarfly[polarfly <= LARGEST_DRAWN_RADIX]
    shared = np.intersect1d(polarfly_to_128, slim_fly[slim_fly <= LARGEST_DRAWN_RADIX])
    ratio = len(polarfly) / len(slim_fly)
    return (
        PaperClaim(
            statement="asymptotically 50 % more degrees",
            printed=1.5,
            # Near n the density of prime powers is 1 / ln(n). We divide by the ratio of the
            # densities at the largest q of PolarFly and of Slim Fly; in the limit it is 1.
            computed=ratio * log(MOST_DEGREE) / log(2 * MOST_DEGREE / 3),
            rounding=0.005,
            interpretation=f"Up to degree {MOST_DEGREE:,} there are {100 * (ratio - 1):.0f} % more."
            " Slim Fly's q go up to 2/3 of it, where prime powers are denser: one in ln(q). Ours is"
            " the ratio without this factor.",
        ),
        *(
            PaperClaim(statement=f"radix {k} is feasible", printed=1, computed=float(k in polarfly))
            for k in (32, 48, 62, 128)
        ),
        PaperClaim(
            statement="without much overlap: of our radixes up to 128, at most half are also Slim"
            " Fly's",
            printed=0.5,
            computed=len(shared) / len(polarfly_to_128),
            relation="<=",
            interpretation=f"Read as half of them at most; {len(shared)} of"
            f" {len(polarfly_to_128)} are.",
        ),
    )


def _degree_panels(polarfly: NDArray[np.int64], slim_fly: NDArray[np.int64]) -> tuple[Panel, Panel]:
    """How many degrees are feasible up to a radix, and which they are."""
    limits = np.arange(3, LARGEST_DRAWN_RADIX + 1)
    counts = tuple(
        Curve(
            name, tuple(limits.tolist()), tuple(np.searchsorted(feasible, limits, "right").tolist())
        )
        for name, feasible in (("PolarFly", polarfly), ("Slim Fly", slim_fly))
    )
    marks = tuple(
        Curve(name, tuple(drawn.tolist()), (line,) * len(drawn))
        for line, name, drawn in (
            (2.0, "PolarFly", polarfly[polarfly <= LARGEST_DRAWN_RADIX]),
            (1.0, "Slim Fly", slim_fly[slim_fly <= LARGEST_DRAWN_RADIX]),
        )
    )
    return (
        Panel("Feasible degrees", "largest radix", "degrees up to it", counts),
        Panel("Which they are", "radix", "", marks, top=3, ticks=("Slim Fly", "PolarFly")),
    )


def prime_powers(most: int) -> NDArray[np.int64]:
    """The prime powers up to a number, ascending, by a sieve."""
    is_prime = np.ones(most + 1, np.bool_)
    is_prime[:2] = False
    for number in range(2, isqrt(most) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = False
    primes = np.flatnonzero(is_prime)
    powers = [primes]
    for exponent in range(2, most.bit_length()):
        bases = primes[primes <= int(most ** (1 / exponent)) + 1]
        powers.append(bases**exponent)
    all_powers = np.concatenate(powers)
    return np.sort(all_powers[all_powers <= most])


def slim_fly_degrees(powers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different degrees (3q - δ)/2 of MMS graphs of q from 3 on, ascending."""
    # q = 4w + δ: δ is 0 or 1 for the remainders 0 and 1, and -1 for the remainder 3.
    delta = (powers + 1) % 4 - 1
    sorted_degrees = np.sort((3 * powers - delta) // 2)
    # There are millions of them: `np.unique` takes longer.
    return sorted_degrees[np.diff(sorted_degrees, prepend=0) > 0]


def figure_2_moore_bound(_quick: bool) -> Evidence:
    """Figure 2: the fraction of the Moore bound that networks of diameter 2 reach."""
    designs = [
        design
        for design in designs_of_radixes(
            range(3, LARGEST_DRAWN_RADIX + 1), among=families([*DRAWN_FAMILIES])
        )
        if design.diameter == 2
    ]
    panel = efficiency(designs)[0]
    curve_of_family = {curve.name: curve for curve in panel.curves}
    percent_by_radix = {
        family: dict(zip(curve.x, curve.y, strict=True))
        for family, curve in curve_of_family.items()
    }
    petersen = counts_of(_petersen())
    hoffman_singleton = counts_of(matrix_of(build_topology("slimfly", {"q": 5}).graph))
    claims = (
        _moderate_radix_claim(percent_by_radix["polarfly"]),
        *_moore_limit_claims(),
        *_moore_graph_claims("Petersen", petersen, GraphCounts(order=10, degree=3, diameter=2)),
        *_moore_graph_claims(
            "Hoffman–Singleton", hoffman_singleton, GraphCounts(order=50, degree=7, diameter=2)
        ),
        *_moore_order_claims(percent_by_radix),
    )
    curves = (
        *(replace(curve_of_family[family], name=TITLES[family]) for family in DRAWN_FAMILIES),
        Curve("Petersen", (3.0,), (100 * petersen.fraction_of_moore_bound(),)),
        Curve("Hoffman–Singleton", (7.0,), (100 * hoffman_singleton.fraction_of_moore_bound(),)),
    )
    setup = (_sizes_by_formula(designs),)
    return Evidence(claims, panels=(replace(panel, curves=curves),), setup=setup)


def _moderate_radix_claim(percent_by_radix: Mapping[float, float]) -> PaperClaim:
    """The claim on PolarFly at moderate radixes, by its per cent of the bound at each radix."""
    last_below_96 = max(radix for radix, percent in percent_by_radix.items() if percent <= 96)
    return PaperClaim(
        statement="more than 96 % at moderate radixes: at radix 32",
        printed=96,
        computed=percent_by_radix[32.0],
        relation=">",
        interpretation=f"Read as of radix 32. It is so above radix {last_below_96:g}.",
    )


def _moore_limit_claims() -> tuple[PaperClaim, ...]:
    """The claims on fractions of the bound in the limit, by formulas at a large prime."""
    return (
        PaperClaim(
            statement=f"asymptotically all of it, at q = {LARGE_PRIME:,}",
            printed=100,
            computed=100 * order(LARGE_PRIME) / moore_bound(LARGE_PRIME + 1, 2),
            reading_error=0.01,
        ),
        PaperClaim(
            statement=f"Slim Fly: asymptotically 8/9, at q = {LARGE_PRIME:,}",
            printed=100 * 8 / 9,
            computed=100 * slimfly.order(LARGE_PRIME) / moore_bound(slimfly.degree(LARGE_PRIME), 2),
            reading_error=0.01,
        ),
    )


def _moore_graph_claims(
    name: str, built: GraphCounts, printed: GraphCounts
) -> tuple[PaperClaim, ...]:
    """The claims that a graph, which is built here, attains the bound of its diameter."""
    return (
        PaperClaim(
            statement=f"{name}, built: vertices", printed=printed.order, computed=built.order
        ),
        PaperClaim(
            statement=f"{name}, built: radix", printed=printed.degree, computed=built.degree
        ),
        PaperClaim(
            statement=f"{name}, built: achieves the bound of its diameter",
            printed=100,
            computed=100 * built.fraction_of_moore_bound(),
        ),
    )


def _moore_order_claims(
    percent_by_radix: Mapping[str, Mapping[float, float]],
) -> tuple[PaperClaim, ...]:
    """The claims that PolarFly is above other families at every radix that both have.

    Args:
        percent_by_radix: the percentage of the bound that each family reaches at each radix.
    """
    polarfly, slim_fly, hyperx = (percent_by_radix[family] for family in DRAWN_FAMILIES)
    with_hyperx = set(polarfly) & set(hyperx)
    with_slim_fly = {
        radix for radix in set(polarfly) & set(slim_fly) if radix > HOFFMAN_SINGLETON_DEGREE
    }
    return (
        PaperClaim(
            statement="PolarFly is above HyperX at every degree of both up to"
            f" {max(with_hyperx):g}: least ratio",
            printed=1,
            computed=min(polarfly[radix] / hyperx[radix] for radix in with_hyperx),
            relation=">",
        ),
        PaperClaim(
            statement="PolarFly is above Slim Fly at every degree of both above"
            f" {HOFFMAN_SINGLETON_DEGREE}: least ratio",
            printed=1,
            computed=min(polarfly[radix] / slim_fly[radix] for radix in with_slim_fly),
            relation=">",
            interpretation="Read as asymptotically, with which the sentence begins. At radix 6"
            " MMS(4) has 32 vertices and ER_5 has 31; of radix 7, Hoffman–Singleton's, there is no"
            " PolarFly.",
        ),
    )


def _sizes_by_formula(designs: Sequence[Design]) -> str:
    """How many of the small networks have the order, radix and diameter of the formulas."""
    small = [design for design in designs if design.radix <= LARGEST_BUILT_RADIX]
    as_by_formula = sum(
        counts_of(matrix_of(build_topology(design.family, dict(design.parameters)).graph))
        == GraphCounts(design.nodes, design.radix, diameter=2)
        for design in small
    )
    return (
        f"Orders are by formulas. Of the {len(small)} networks of up to radix"
        f" {LARGEST_BUILT_RADIX}, which are built, {as_by_formula} have this order and radix, and"
        " the diameter 2."
    )


def _petersen() -> Adjacency:
    """Petersen's graph: its vertices are the pairs out of five, joined where they are disjoint."""
    pairs = list(combinations(range(5), 2))
    return np.array([[set(row).isdisjoint(column) for column in pairs] for row in pairs])
