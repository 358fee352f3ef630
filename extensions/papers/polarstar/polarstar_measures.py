"""Figures 12 to 14 of the PolarStar paper, about cuts in halves and failing links (§11).

Each function with the parameter `_quick` reproduces a figure and returns its claims as `Evidence`;
`polarstar_paper` lists them. METIS finds a small cut, whose links are an upper bound of the
smallest one. The second eigenvalue of the graph's Laplacian gives a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, pstdev

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.plots import Curve, Panel, failures
from compilers.evaluation.analysis.bisection import bisection
from compilers.evaluation.analysis.resilience import (
    RUNS,
    FailurePoint,
    Resilience,
    resilience,
)
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.family import Design
from compilers.topology.labelled_graph import Topology
from extensions.papers.exhibit import Evidence, PaperClaim, as_not_computed, or_nan
from extensions.papers.failure_medians import disconnects_later
from extensions.papers.polarstar.polarstar_scale import NAMES
from extensions.papers.polarstar.polarstar_simulation import TABLE_3

RADIXES = tuple(range(9, 31, 3))
"""The radixes of figure 12."""
SUPERNODE_RADIXES = tuple(range(9, 25))
"""The radixes of figure 13, of all of which there is a PolarStar with each supernode."""
LANCZOS_STEPS = 120
"""Steps of Lanczos's method for the second eigenvalue."""
NO_RESIDUAL = 1e-9
"""A residual so small that Lanczos's method has found the whole invariant subspace."""
FEW_FAILURES = 0.05
"""The fraction of failed links until which the paper speaks of rapid growth."""

# How statements are read, or why our values do not decide them.
OUR_RADIXES = (
    f"Of radixes {RADIXES[0]}, {RADIXES[1]}, … {RADIXES[-1]}: the paper's text has lost its own."
)
"""Which radixes the averages of figure 12 are of."""
PROVED_BY_BOUNDS = (
    "Ours is the part that every cut has at least, by the second eigenvalue, on average; the other"
    f" one is the part of METIS's cuts. {OUR_RADIXES}"
)
"""How a claim is read that the bounds prove: even the lower bound of one network is above the upper
bound of the other (`has_more`)."""
UPPER_BOUNDS_ONLY = "METIS finds both cuts. These are upper bounds, so the order may be another."
"""Why METIS's cuts do not decide an order."""
INDUCTIVE_QUAD_CUT = (
    "METIS finds both cuts. These are upper bounds, so the order of the averages may be another. At"
    " radix 15 Inductive-Quad has 13.3 % at most: halved pairs {x, f(x)} cut no link between"
    " supernodes."
)
"""The same for PolarStar, whose smallest cut is small with Inductive-Quad supernodes."""
HALVED_PAIRS = (
    "The d' + 1 pairs {x, f(x)} of an Inductive-Quad supernode, halved alike in all of them, cut no"
    " link between supernodes: 4 of 30 links at radix 15, (d' + 1)/(2·radix) for odd d'. METIS"
    " finds this cut, or a smaller one."
)
"""Why PolarStar with Inductive-Quad supernodes has a small cut."""
BUNDLEFLY_KEEPS_MORE = (
    f"{INDUCTIVE_QUAD_CUT} Bundlefly has 14.6 % or more there: λN/4 links, by the second eigenvalue"
    " λ of the Laplacian."
)
"""Why Bundlefly's cuts may be larger than PolarStar's."""
PALEY_KEEPS_MORE = (
    f"{INDUCTIVE_QUAD_CUT} Paley with q = 8 has 20.7 % or more there: λN/4 links, by the second"
    " eigenvalue λ of the Laplacian."
)
"""Why cuts with Paley supernodes may be larger than with Inductive-Quad."""
STABILITY_UNDECIDED = (
    "Stable is read as of a small standard deviation. METIS finds all cuts, which are upper bounds,"
    f" and the paper's text has lost its radixes. These are of every radix from"
    f" {SUPERNODE_RADIXES[0]} to {SUPERNODE_RADIXES[-1]}; of some of them the order is reversed:"
    " .033 against .040 of 9, 12, … 30."
)
"""Why "more stable" of figure 13 is not computed.

At radixes 9, 12, … 30 alone the order is reversed: the standard deviations are 0.033 and 0.040."""
ROUTERS_ARE_CUT_OFF = (
    "A router is cut off when all its links fail, so a network of N routers of d links disconnects"
    " where N·pᵈ is about 0.7: at 61 % with PolarStar's 15 links, at 71 % with the 18 of a fat"
    " tree's edge routers (68 % where routers without hosts count too)."
)
"""Why a fat tree disconnects later than direct networks, against the paper."""
READ_RAPIDLY = "Rapidly is read as faster than another network, in the run of median survival."
"""How the claims on growing diameters and distances are read."""
Fractions = Mapping[str, Mapping[int, float]]
"""Fractions of links in cuts, by network and radix."""


@dataclass(frozen=True, slots=True)
class CutBounds:
    """Bounds on the smallest cut in halves of a network, on average over radixes."""

    least: float
    """The smallest fraction of the links that a cut may have, by the second eigenvalue."""
    most: float
    """The fraction of the links that is in the cut that METIS finds."""


def least_cut_fraction(topology: Topology) -> float:
    """The smallest fraction of the links that a cut in halves may have.

    Every cut in halves has λN/4 links or more for even N, where λ is the second eigenvalue of the
    Laplacian. `_second_eigenvalue` is a little below λ.
    """
    order = topology.graph.order
    half = order // 2
    second = _second_eigenvalue(topology.graph)
    return float(second * half * (order - half) / order / topology.graph.size)


def _second_eigenvalue(graph: Graph) -> float:
    """The second eigenvalue of the Laplacian of a graph, less the error that the method leaves.

    Lanczos's method makes orthonormal vectors, all of them orthogonal to the vector of ones. In
    this basis the Laplacian is a tridiagonal matrix. The least eigenvalue of this matrix is near
    the second eigenvalue of the Laplacian. The last residual bounds by how much it may be above.
    """
    tails, targets, order = graph.tails(), graph.targets, graph.order
    degrees = graph.degrees.astype(float)

    def laplacian(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """The Laplacian times a vector."""
        product: NDArray[np.float64] = degrees * vector - np.bincount(tails, vector[targets], order)
        return product

    steps = min(LANCZOS_STEPS, order - 1)
    basis = np.zeros((steps + 1, order))
    basis[0] = np.random.default_rng(0).standard_normal(order)
    basis[0] -= basis[0].mean()
    basis[0] /= np.linalg.norm(basis[0])
    tridiagonal = np.zeros((steps, steps))
    for step in range(steps):
        vector = laplacian(basis[step])
        tridiagonal[step, step] = vector @ basis[step]
        for _ in range(2):  # twice, as rounding leaves something of the other vectors
            vector -= basis[: step + 1].T @ (basis[: step + 1] @ vector) + vector.mean()
        residual = float(np.linalg.norm(vector))
        if step == steps - 1 or residual < NO_RESIDUAL:
            break
        tridiagonal[step, step + 1] = tridiagonal[step + 1, step] = residual
        basis[step + 1] = vector / residual
    values, vectors = np.linalg.eigh(tridiagonal[: step + 1, : step + 1])
    return float(values[0] - residual * abs(vectors[-1, 0]))


def has_more(says: str, more: CutBounds, less: CutBounds, why_undecided: str) -> PaperClaim:
    """The claim that one network has more links in its cuts than another network.

    Its verdict is "not computed" if the bounds do not decide the order.

    Args:
        says: what the paper says.
        more: the bounds of the network that has more links in its cuts, as the paper says.
        less: the bounds of the network that has fewer.
        why_undecided: why the bounds do not decide the order, if they do not.
    """
    if more.least > less.most:
        return PaperClaim.of_order(
            says=says,
            first=more.least,
            relation=">",
            second=less.most,
            interpretation=PROVED_BY_BOUNDS,
        )
    return as_not_computed(
        PaperClaim.of_order(
            says=says,
            first=more.most,
            relation=">",
            second=less.most,
        ),
        why_undecided,
    )


def least_cut_fraction_of_hyperx(radix: int) -> float:
    """The smallest fraction of the links that a cut in halves of a 3-D HyperX may have.

    This HyperX has N = n³ switches, with n = radix/3 + 1. The second eigenvalue of its Laplacian is
    n, so a cut in halves has nN/4 links or more. For odd N the bound is a little lower.
    """
    side = radix // 3 + 1
    order = side**3
    half = order // 2
    return side * half * (order - half) / order / (order * radix / 2)


def _hyperx_keeps_more(polarstar: float) -> str:
    """Why PolarStar's cuts are smaller than HyperX's, for a claim of figure 12.

    Args:
        polarstar: the mean fraction of PolarStar's links that is in the cuts that METIS finds.
    """
    least_fraction_of_hyperx = mean(map(least_cut_fraction_of_hyperx, RADIXES))
    return (
        f"{HALVED_PAIRS} On average METIS's cuts of PolarStar have {100 * polarstar:.1f} % of the"
        f" links. Every cut of HyperX has {100 * least_fraction_of_hyperx:.1f} % or more on"
        " average: λN/4 links, by the second eigenvalue λ of the Laplacian: of these radixes the"
        f" order is reversed. {OUR_RADIXES} Over other radixes the order may be another."
    )


def _dragonfly_undecided(polarstar: CutBounds) -> str:
    """Why the order of PolarStar and Dragonfly is not decided, for a claim of figure 12."""
    return (
        f"{UPPER_BOUNDS_ONLY} Every cut of PolarStar has {100 * polarstar.least:.1f} % of the links"
        " or more on average, by the second eigenvalue."
    )


def cuts(_quick: bool) -> Evidence:
    """Figure 12: links in the smallest cut that METIS finds, of the largest networks of a radix."""
    fractions, least_cut_fractions = _cut_fractions()
    means = {
        name: mean(fraction_by_radix.values()) for name, fraction_by_radix in fractions.items()
    }
    # Lower bounds are computed of the networks that the paper says have more than others.
    bounds = {
        name: CutBounds(
            least=mean(least_cut_fractions[name]) if name in least_cut_fractions else 0.0, most=most
        )
        for name, most in means.items()
    }
    # Megafly is indirect; Jellyfish and Spectralfly have claims of their own.
    not_compared = ("Megafly", "Jellyfish", "Spectralfly")
    direct = [name for name in means if name not in not_compared]
    largest = max(direct, key=lambda name: means[name])
    spectralfly, jellyfish = fractions["Spectralfly"], fractions["Jellyfish"]
    ratios = [fraction / jellyfish[radix] for radix, fraction in spectralfly.items()]
    at_radixes = f"at the radixes of both, {', '.join(map(str, spectralfly))}"
    claims = (
        has_more(
            f"Jellyfish has the most: beside the largest of {', '.join(direct)}, on average",
            more=bounds["Jellyfish"],
            less=bounds[largest],
            why_undecided=UPPER_BOUNDS_ONLY,
        ),
        as_not_computed(
            PaperClaim(
                statement=f"Jellyfish has more than Spectralfly, {at_radixes}: least ratio",
                printed=1,
                computed=1 / max(ratios),
                relation=">",
            ),
            UPPER_BOUNDS_ONLY,
        ),
        PaperClaim(
            statement=f"Spectralfly is comparable to Jellyfish, {at_radixes}: farthest ratio",
            printed=1,
            computed=max(ratios, key=lambda ratio: abs(ratio - 1)),
            reading_error=0.1,
            interpretation=f"Comparable is read as within 10 %, of METIS's cuts. {OUR_RADIXES}",
        ),
        *(
            has_more(
                f"PolarStar has more than {name}, on average",
                more=bounds["PolarStar"],
                less=bounds[name],
                why_undecided=why,
            )
            for name, why in (
                ("Dragonfly", _dragonfly_undecided(bounds["PolarStar"])),
                ("Megafly", INDUCTIVE_QUAD_CUT),
                ("HyperX", _hyperx_keeps_more(means["PolarStar"])),
                ("Bundlefly", BUNDLEFLY_KEEPS_MORE),
            )
        ),
    )
    return Evidence(
        claims,
        panels=(_panel("Bisection", fractions),),
        setup=(
            "METIS's smallest cut of 50, at radixes 9, 12, … 30; the paper's are not legible.",
            "Networks are the largest of their radix of diameter 3, of Megafly between hosts."
            " Jellyfish has the routers and the radix of that PolarStar.",
        ),
    )


def _cut_fractions() -> tuple[dict[str, dict[int, float]], dict[str, list[float]]]:
    """The fractions of links in cuts of the networks of figure 12.

    Returns:
        The fraction in METIS's cut, by network and radix; and the smallest fraction that a cut may
        have, of PolarStar and Jellyfish only, in the order of radixes.
    """
    fractions: dict[str, dict[int, float]] = {name: {} for name in NAMES.values()}
    least_cut_fractions: dict[str, list[float]] = {"PolarStar": [], "Jellyfish": []}
    for radix in RADIXES:
        among = families([name for name in NAMES if name != "jellyfish"], baselines=True)
        for design in _largest_of_each_family(designs_of_radixes([radix], among=among)):
            fractions[NAMES[design.family]][radix] = _cut_fraction(design)
            if design.family == "polarstar":
                size = {"nodes": design.nodes, "degree": radix}
                jellyfish = build_topology("jellyfish", size)
                fractions["Jellyfish"][radix] = bisection(jellyfish).fraction
                least_cut_fractions["Jellyfish"].append(least_cut_fraction(jellyfish))
                least_cut_fractions["PolarStar"].append(least_cut_fraction(_topology_of(design)))
    return fractions, least_cut_fractions


def cuts_by_supernode(_quick: bool) -> Evidence:
    """Figure 13: links in the smallest cut that METIS finds of PolarStars, by kind of supernode."""
    kinds = {"inductive-quad": "Inductive-Quad", "paley": "Paley"}
    fractions: dict[str, dict[int, float]] = {name: {} for name in kinds.values()}
    halved_pairs: dict[int, float] = {}
    for radix in SUPERNODE_RADIXES:
        designs = designs_of_radixes([radix], among=families(("polarstar",)))
        for kind, name in kinds.items():
            design = next(candidate for candidate in designs if candidate.supernode == kind)
            fractions[name][radix] = _cut_fraction(design)
            if kind == "inductive-quad" and (design.supernode_degree or 0) % 2:
                halved_pairs[radix] = _cut_of_halved_pairs(_topology_of(design))
    quad, paley = (tuple(fractions[name].values()) for name in kinds.values())
    claims = (
        as_not_computed(
            PaperClaim.of_order(
                says="Inductive-Quad has more than Paley, on average",
                first=mean(quad),
                relation=">",
                second=mean(paley),
            ),
            PALEY_KEEPS_MORE,
        ),
        as_not_computed(
            PaperClaim.of_order(
                says="and is more stable: standard deviation over radixes",
                first=pstdev(quad),
                relation="<",
                second=pstdev(paley),
            ),
            STABILITY_UNDECIDED,
        ),
    )
    panel = _panel("PolarStar: bisection", fractions)
    halved = Curve(
        "pairs halved", tuple(map(float, halved_pairs)), _percent(halved_pairs), "points"
    )
    panel = replace(panel, curves=(*panel.curves, halved))
    setup = (
        "METIS's smallest cut of 50, at each radix from"
        f" {SUPERNODE_RADIXES[0]} to {SUPERNODE_RADIXES[-1]}; the paper's are not legible.",
        "Networks are the largest of their radix with each supernode.",
    )
    return Evidence(claims, panels=(panel,), setup=setup)


def _largest_of_each_family(designs: Iterable[Design]) -> list[Design]:
    """The largest design of each family whose hosts are at most three links from each other.

    Args:
        designs: designs of one radix, the largest first.
    """
    largest: dict[str, Design] = {}
    for design in designs:
        # The diameter of Megafly is larger, between routers without hosts.
        if design.diameter == 3 or design.family == "megafly":
            largest.setdefault(design.family, design)
    return list(largest.values())


def _topology_of(design: Design) -> Topology:
    """The topology of a design."""
    return build_topology(design.family, dict(design.parameters))


def _cut_fraction(design: Design) -> float:
    """The fraction of the links that is in the cut that METIS finds."""
    return bisection(_topology_of(design)).fraction


def _cut_of_halved_pairs(topology: Topology) -> float:
    """The fraction of the links in a cut that has half of each supernode's pairs on each side.

    The members of a pair {x, f(x)} have consecutive numbers.
    """
    supernode_size = topology.hierarchy
    pair = np.arange(topology.graph.order) % supernode_size // 2  # within the supernode
    side = pair % 2
    side_of_ends = side[topology.graph.edges()]
    return float((side_of_ends[:, 0] != side_of_ends[:, 1]).mean())


def _panel(title: str, fractions: Fractions) -> Panel:
    """A plot of the fraction of links in the cut, over the radix."""
    curves = tuple(
        Curve(name, tuple(map(float, by_radix)), _percent(by_radix))
        for name, by_radix in fractions.items()
    )
    return Panel(title, "radix", "links in the cut, %", curves)


def _percent(fractions: Mapping[int, float]) -> tuple[float, ...]:
    """Fractions as per cent."""
    return tuple(100 * fraction for fraction in fractions.values())


def link_failures(_quick: bool) -> Evidence:
    """Figure 14: diameter and mean distance while links fail, in the run of median survival."""
    topologies = {name: network.topology() for name, network in TABLE_3.items()}
    runs = {name: resilience(topology) for name, topology in topologies.items()}
    networks = "; ".join(
        f"{name} {network.title()}, {topologies[name].graph.order:,} routers"
        for name, network in TABLE_3.items()
    )
    rows = [(name, _rows_of_points(run)) for name, run in runs.items()]
    setup = (
        f"Networks: {networks}.",
        "They are those of Table 3, but for PS-Pal, of which that table prints 993 routers.",
        f"Of {RUNS} runs that end when routers with hosts are disconnected, the one with the median"
        " part of failed links.",
    )
    return Evidence(_failure_claims(runs), panels=failures(rows), setup=setup)


def _failure_claims(runs: Mapping[str, Resilience]) -> tuple[PaperClaim, ...]:
    """What the paper says of figure 14.

    Args:
        runs: the runs with failing links of each network of Table 3.
    """
    medians = {name: run.median for name, run in runs.items()}
    star_products = ("PS-IQ", "PS-Pal", "BF")
    first_direct = min(
        (runs[name] for name in (*star_products, "DF", "HX", "SF")), key=lambda run: run.median
    )
    return (
        PaperClaim(
            statement="PolarStar and Bundlefly disconnect at similar parts of links: least over"
            " largest",
            printed=1,
            computed=min(medians[name] for name in star_products)
            / _last_to_disconnect(runs, star_products).median,
            reading_error=0.1,
            interpretation="Similar is read as within 10 %.",
        ),
        disconnects_later(
            "Dragonfly later than all of these",
            _last_to_disconnect(runs, star_products),
            runs["DF"],
        ),
        *(
            disconnects_later(
                f"{name} later than the other direct ones",
                _last_to_disconnect(runs, (*star_products, "DF")),
                runs[name],
            )
            for name in ("HX", "SF")
        ),
        *(
            replace(
                disconnects_later(f"direct networks later than {name}", runs[name], first_direct),
                correction=ROUTERS_ARE_CUT_OFF if name == "FT" else "",
            )
            for name in ("FT", "MF")
        ),
        *_growth_claims(runs),
    )


def _growth_claims(runs: Mapping[str, Resilience]) -> tuple[PaperClaim, ...]:
    """The claims on how fast diameters and mean distances grow until 5 % of links have failed.

    Args:
        runs: the runs with failing links of each network of Table 3.
    """
    faster_and_slower = (("DF", "PS-IQ"), ("DF", "PS-Pal"), ("MF", "FT"))
    return (
        *(
            PaperClaim.of_order(
                says=f"{faster}'s diameter grows faster than {slower}'s: links more with 5 %"
                " failed",
                first=_growth_of_diameter(runs[faster]),
                relation=">",
                second=_growth_of_diameter(runs[slower]),
                interpretation=READ_RAPIDLY,
            )
            for faster, slower in faster_and_slower
        ),
        *(
            PaperClaim.of_order(
                says=f"{faster}'s mean distance grows faster than {slower}'s: until 5 % failed",
                first=_growth_of_distance(runs[faster]),
                relation=">",
                second=_growth_of_distance(runs[slower]),
                interpretation=READ_RAPIDLY if faster == "DF" else "",
            )
            for faster, slower in faster_and_slower
        ),
    )


def _last_to_disconnect(runs: Mapping[str, Resilience], names: Sequence[str]) -> Resilience:
    """The runs of that one of the named networks that disconnects last."""
    return max((runs[name] for name in names), key=lambda run: run.median)


def _point_with_few_failures(run: Resilience) -> FailurePoint:
    """The point of a run where about 5 % of the links have failed."""
    return min(run.curve, key=lambda point: abs(point.fraction - FEW_FAILURES))


def _growth_of_diameter(run: Resilience) -> float:
    """By how many links the diameter grows until about 5 % of the links have failed."""
    return or_nan(_point_with_few_failures(run).diameter) - or_nan(run.curve[0].diameter)


def _growth_of_distance(run: Resilience) -> float:
    """The mean distance with about 5 % of the links failed, divided by that without failures."""
    return or_nan(_point_with_few_failures(run).mean_distance) / or_nan(run.curve[0].mean_distance)


def _rows_of_points(run: Resilience) -> list[dict[str, float | int | None]]:
    """The points of a run as rows of a figure."""
    return [
        {"fraction": p.fraction, "diameter": p.diameter, "mean_distance": p.mean_distance}
        for p in run.curve
    ]
