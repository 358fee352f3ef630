"""Figures 5 to 9 of the Projective Networks paper, which are plots of network families.

Each function with the parameter `_quick` reproduces a figure and returns its claims and panels as
`Evidence`; `projective_paper` lists them.

In the paper's words, N is the number of routers, Δ their degree, Δ0 the compute nodes of a router,
R = Δ + Δ0 its ports, T the compute nodes of a network; k is the diameter, k̄ the average distance
and u the average utilisation of links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isnan, isqrt, log

import numpy as np

from compilers.drawing.plots import Curve, Panel
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.families import build_topology
from compilers.topology.family import moore_bound
from compilers.topology.field import prime_power
from extensions.baselines.slimfly import degree
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graph_shapes import DELORME_UTILISATION, GraphShape
from extensions.papers.graphs import GraphCounts, counts_of, matrix_of
from extensions.papers.network_quantities import configuration
from extensions.papers.projective.delorme_graph import POLAR
from extensions.papers.projective.measured_networks import MeasuredMember, measured_members
from extensions.papers.projective.network_growth import (
    CUBES,
    GROWTHS,
    LARGEST_ROUTER,
    NEAR_A_LIMIT,
    NetworkGrowth,
    cost,
    growth,
    ideal_hosts,
    ideal_mean,
)
from extensions.papers.projective.projective_tables import BY_FORMULA, LOADS_OF_DELORME

HOSTS_LABEL = "compute nodes T"
"""The label of the axes with the compute nodes of networks."""
DRAGONFLY_SUPERSEDES = (
    "The dragonfly supersedes the 3D Hamming graph in scale. Of as many compute nodes, up to"
    " 65,520, the 3D Hamming graph has the smaller k̄/u, by 3 % or more, with routers of more ports:"
    " there 61, of the dragonfly 44."
)
"""A remark on figure 7, of the claim that the dragonfly supersedes the 3D Hamming graph."""
DELORME_CORRECTION = "R = 4(q + 1)/3 is 4, 12 and 44 with q = 2, 8 and 32."
"""The correction of the claim that figure 7 has two points of Delorme's graph."""
DELORME_DRAWN = (
    "Delorme's graph is drawn for q = 2 and 8, by what is measured: k̄ 2.286 and 2.849, u 1 and"
    " .975. For q = 32 k̄ is 2.967; u is not computed."
)
"""A remark on the points of Delorme's graph in figures 7 and 8."""
UP_TO_64 = f"Networks are of R up to {LARGEST_ROUTER}, unless a statement names another size."
"""A remark on the sizes in figures 8 and 9."""
HYPERCUBES = f"Hypercubes are of up to {CUBES[-1]} dimensions, R = {CUBES[-1] + 2}."
"""A remark on the sizes of hypercubes in figures 7 and 8."""
NO_HEXAGONS = "Delorme's graphs on hexagons are left out: their k̄ and u are not computed."
"""A remark on figures 7 and 8."""
OVER_IDEAL = "k̄/u over that of an ideal graph"
"""The measure of a claim on the bound of figure 7."""
CLAIMS_OF_BOUND = {
    "attains": ("attains the bound", "="),
    "does not attain": ("does not attain the bound", ">"),
    "is drawn above": ("is not below the bound", ">="),
}
"""By `NetworkGrowth.said_of_bound` what a claim on the bound says, and its relation."""
BUILT_MMS = (5, 7, 8, 9, 11, 13, 17, 19, 23)
"""The q of MMS graphs that are built."""
LARGE_PRIME = 65_537
"""A q for which the order of MMS graphs is near its limit."""
LARGE_Q = 2048
"""A q for which k̄ and u by formulas are near their limits."""


def mms_orders(_quick: bool) -> Evidence:
    """Figure 5: vertices of the MMS graph over the Moore bound."""
    shares = {q: 2 * q * q / moore_bound(degree(q), 2) for q in _prime_powers(3, 128)}
    built = {q: counts_of(matrix_of(build_topology("slimfly", {"q": q}).graph)) for q in BUILT_MMS}
    as_by_formula = [
        q
        for q, counts in built.items()
        if counts == GraphCounts(order=2 * q * q, degree=degree(q), diameter=2)
    ]
    claims = (
        PaperClaim(
            statement="Δ = 7: the MMS graph of q = 5, built", printed=7, computed=built[5].degree
        ),
        PaperClaim(
            statement="is the Hoffman–Singleton graph, a Moore graph: vertices over the bound of"
            " its degree and diameter",
            printed=1,
            computed=built[5].fraction_of_moore_bound(),
        ),
        PaperClaim(
            statement=f"limit 8/9, at q = {LARGE_PRIME:,}",
            printed=8 / 9,
            computed=2 * LARGE_PRIME**2 / moore_bound(degree(LARGE_PRIME), 2),
            reading_error=NEAR_A_LIMIT,
        ),
    )
    vertices = tuple(2.0 * q * q for q in shares)
    curves = (
        Curve("MMS", vertices, tuple(shares.values())),
        _eight_ninths(vertices),
    )
    setup = (
        "Orders and degrees are by formulas. So are those of the built graphs, whose diameter is 2:"
        f" q = {', '.join(map(str, as_by_formula))}.",
    )
    return Evidence(
        claims, panels=(_mms_panel("vertices over the Moore bound", curves),), setup=setup
    )


def _mms_panel(y_label: str, curves: tuple[Curve, ...]) -> Panel:
    """A plot of a quantity of MMS graphs over their vertices."""
    return Panel("MMS graphs", "vertices", y_label, curves, top=1.05, bottom=0.6, logarithmic="x")


def _eight_ninths(x: tuple[float, ...]) -> Curve:
    """The limit 8/9, as a line from the first to the last of these x."""
    return Curve("8/9", (x[0], x[-1]), (8 / 9, 8 / 9), "limit")


def mms_utilisation(_quick: bool) -> Evidence:
    """Figure 6: utilisation of the links of the MMS graph; by formula, and some measured."""
    shape = growth("Slim Fly MMS").shape
    by_formula = {q: shape(q).utilisation for q in _prime_powers(5, 128)}
    measured = {q: uniform(build_topology("slimfly", {"q": q})).utilisation for q in BUILT_MMS}
    largest_difference = max(abs(measured[q] - by_formula[q]) for q in BUILT_MMS)
    claims = (
        PaperClaim(
            statement="u = 1 for q = 5, the Hoffman–Singleton graph",
            printed=1,
            computed=measured[5],
        ),
        PaperClaim(
            statement=f"limit 8/9, at q = {LARGE_Q:,}",
            printed=8 / 9,
            computed=shape(LARGE_Q).utilisation,
            reading_error=0.001,
        ),
        PaperClaim(
            statement="a little worse where q mod 4 is not 1: largest u over that of the next q"
            " where it is",
            printed=1,
            computed=max(_ratios_to_next(by_formula)),
            relation="<",
            interpretation="Read as of traffic that is split evenly over all minimal paths.",
        ),
    )
    vertices = tuple(2.0 * q * q for q in by_formula)
    curves = (
        Curve("by formula", vertices, tuple(by_formula.values())),
        Curve("measured", tuple(2.0 * q * q for q in measured), tuple(measured.values()), "points"),
        _eight_ninths(vertices),
    )
    setup = (
        "By a formula, which differs from what is measured in the built graphs by"
        f" {largest_difference:.1g} at most: q = {', '.join(map(str, BUILT_MMS))}.",
    )
    return Evidence(claims, panels=(_mms_panel("utilisation u", curves),), setup=setup)


def _ratios_to_next(utilisation: Mapping[int, float]) -> Iterator[float]:
    """For each q that is not 1 modulo 4, yield its u over the u of the next q that is 1 modulo 4.

    The last q, which have no such next one, are left out.

    Args:
        utilisation: u by q, in ascending order of q.
    """
    for q, u in utilisation.items():
        following = [larger for larger in utilisation if larger > q and larger % 4 == 1]
        if q % 4 != 1 and following:
            yield u / utilisation[following[0]]


def costs(_quick: bool) -> Evidence:
    """Figure 7: k̄/u of networks of routers with up to 64 ports."""
    claims = [_claim_of_the_bound(family) for family in GROWTHS]
    mms, demi = (cost(growth(name).shape(LARGE_Q)) for name in ("Slim Fly MMS", "demi-PN"))
    claims.append(
        PaperClaim(
            statement=f"MMS is about 9/8 of demi-PN, at q = {LARGE_Q:,}",
            printed=9 / 8,
            computed=mms / demi,
            reading_error=0.001,
        )
    )
    shapes = {family.name: family.members() for family in GROWTHS if family.has_formulas}
    all_shapes = [shape for members in shapes.values() for shape in members]
    claims += [
        PaperClaim(
            statement="dragonfly supersedes the 3D Hamming graph: least T over that of one of as"
            " many ports",
            printed=1,
            computed=_least_ratio_of_hosts(shapes["Hamming 3D"], shapes["dragonfly"]),
            relation=">=",
            interpretation="Read as of scale, with as many ports. In k̄/u, which the figure draws,"
            " the 3D Hamming graph is below the dragonfly of as many compute nodes.",
        ),
        PaperClaim(
            statement="two points only of Delorme's graph: those of R up to 64",
            printed=2,
            computed=sum(4 * (q + 1) / 3 <= LARGEST_ROUTER for q in POLAR),
            correction=DELORME_CORRECTION,
        ),
        PaperClaim(
            statement="all curves that are drawn here are above the bound: most compute nodes over"
            " those of an ideal graph of this k̄/u and 64 ports",
            printed=1,
            computed=max(_hosts(shape) / ideal_hosts(cost(shape)) for shape in all_shapes),
            relation="<=",
        ),
    ]
    means = tuple(np.linspace(1, 5.6, 461).tolist())
    hosts = (2.0, *map(ideal_hosts, means))  # two routers, and more, are a complete graph
    curves = (*_by_hosts(shapes), Curve("ideal, R = 64", hosts, (1.0, *means), "limit"))
    panel = Panel("Routers of up to 64 ports", HOSTS_LABEL, "k̄/u", curves, logarithmic="x")
    setup = (DRAGONFLY_SUPERSEDES, DELORME_DRAWN, NO_HEXAGONS, HYPERCUBES, BY_FORMULA)
    return Evidence(tuple(claims), panels=(panel,), setup=setup)


def _claim_of_the_bound(family: NetworkGrowth) -> PaperClaim:
    """The claim on a family's k̄/u over that of an ideal graph, which is the bound."""
    if family.said_of_bound == "attains in the limit":
        return _claim_of_the_limit(family)
    says, relation = CLAIMS_OF_BOUND[family.said_of_bound]
    ratio, member = _over_the_bound(family)
    return PaperClaim(
        statement=f"{family.name} {says}: {OVER_IDEAL}, {member}",
        printed=1,
        computed=ratio,
        relation=relation,
    )


def _claim_of_the_limit(family: NetworkGrowth) -> PaperClaim:
    """The claim that a family attains the bound in the limit, by a large member if its u is known.

    It is known of demi-PN, by a formula, and not of Delorme's graph, which is measured.
    """
    says = f"{family.name} {CLAIMS_OF_BOUND['attains'][0]}: {OVER_IDEAL}"
    large, largest = family.shape(LARGE_Q), family.members()[-1]
    percent_above = f"{100 * (cost(largest) / ideal_mean(largest) - 1):.1f} % above it"
    if isnan(large.utilisation):
        return PaperClaim(
            statement=f"{says}, in the limit",
            printed=1,
            computed=None,
            reason=f"{percent_above} at q = {max(DELORME_UTILISATION)}. {LOADS_OF_DELORME}",
        )
    return PaperClaim(
        statement=f"{says}, q = {LARGE_Q:,}",
        printed=1,
        computed=cost(large) / ideal_mean(large),
        reading_error=NEAR_A_LIMIT,
        interpretation=f"Read as of the limit. Up to 64 ports the largest is {percent_above}.",
    )


def _over_the_bound(family: NetworkGrowth) -> tuple[float, str]:
    """The k̄/u of a member over that of an ideal graph of its order and degree.

    The member is the largest with R up to 64, and its k̄ and u are by formulas. There are two
    exceptions: the family has no formulas, or the formulas are those of the ideal graph, so that
    the ratio would show nothing. Then the member is the largest that is built, and its k̄ and u are
    measured.

    Returns:
        The ratio, and which member it is of, in words.
    """
    largest = family.members()[-1] if family.has_formulas else None
    if largest and (largest.utilisation != 1 or largest.mean != ideal_mean(largest)):
        return cost(largest) / ideal_mean(largest), f"by formulas, of {family.largest}"
    *_, largest_built = measured_members(family.name)
    ideal = ideal_mean(family.shape(largest_built.size))
    ratio = largest_built.mean / largest_built.utilisation / ideal
    return ratio, f"built, of n = {largest_built.size}"


def scalability(_quick: bool) -> Evidence:
    """Figure 8: compute nodes over the ports of routers."""
    shapes = {family.name: family.members() for family in GROWTHS if family.has_formulas}
    optimal_families = sorted(
        (family for family in GROWTHS if family.is_optimal),
        key=lambda family: cost(family.members()[-1]),
    )
    large_pn, limit_of_pn = growth("PN").shape(LARGE_Q).quantities(), 100 / 343
    large_tree = configuration(
        {"family": "oft", "radix": 256, "parameters": {"q": 127}}, priced_as_hosts=None
    )
    claims = (
        PaperClaim(
            statement="T = 0.29 R³ of PN, read as the limit 100/343 of T/R³: by formula, at q ="
            f" 2,048, R = {large_pn['R']:,.1f}",
            printed=limit_of_pn,
            computed=large_pn["T"] / large_pn["R"] ** 3,
            reading_error=NEAR_A_LIMIT * limit_of_pn,
        ),
        PaperClaim(
            statement="T = 0.25 R³ of the orthogonal fat tree, read as the limit 1/4 of T/R³: by"
            f" formula, at q = 127, R = {large_tree.router_ports:,}",
            printed=0.25,
            computed=large_tree.total_hosts / large_tree.router_ports**3,
            reading_error=0.01 * 0.25,
        ),
        PaperClaim(
            statement="complete graph: T = ((R+1)/2)² ≈ 576 at R = 48",
            printed=576,
            computed=max(order**2 for order in range(2, 99) if 2 * order - 1 <= 48),
            interpretation="With Δ0 = N, as in Table III, of K24 with R = 47. By formula (1) Δ0 is"
            " N - 1: K25 has R = 48 and T = 600.",
        ),
        PaperClaim(
            statement="optimal lines, Delorme's of q = 2 and 8, are sorted by k̄/u, computed of"
            " their largest members: least T of one over that of the line below it, of as many"
            " ports",
            printed=1,
            computed=min(
                _least_ratio_of_hosts(shapes[lower.name], shapes[upper.name])
                for lower, upper in pairwise(optimal_families)
            ),
            relation=">=",
        ),
    )
    curves = tuple(
        Curve(name, tuple(map(_ports, members)), tuple(map(_hosts, members)))
        for name, members in shapes.items()
    )
    panel = Panel("Scalability", "router ports R", HOSTS_LABEL, curves, logarithmic="y")
    setup = (UP_TO_64, DELORME_DRAWN, NO_HEXAGONS, HYPERCUBES, BY_FORMULA)
    return Evidence(claims, panels=(panel,), setup=setup)


def _least_ratio_of_hosts(lower: list[GraphShape], upper: list[GraphShape]) -> float:
    """How many times as many compute nodes one family has as another at least, with as many ports.

    A network of `upper` is compared with the network of `lower` that has the most compute nodes
    with routers of at most its ports. Networks with fewer ports than all of `lower` are left out.
    """
    return min(
        _hosts(shape) / max(_hosts(other) for other in lower if _ports(other) <= _ports(shape))
        for shape in upper
        if _ports(lower[0]) <= _ports(shape)
    )


def three_networks(_quick: bool) -> Evidence:
    """Figure 9: k̄ and k̄/u of Slim Fly, PN and demi-PN."""
    shapes = {name: growth(name).members() for name in ("Slim Fly MMS", "PN", "demi-PN")}
    claims = (
        _coincidence_claim(list(measured_members("PN"))),
        *_distance_claims(shapes),
        *_scale_claims(shapes),
    )
    curves = (*_by_hosts(shapes, ": k̄/u"), *_by_hosts(shapes, ": k̄", lambda shape: shape.mean))
    panel = Panel("Distance and cost", HOSTS_LABEL, "k̄, k̄/u", curves, bottom=1.5, logarithmic="x")
    return Evidence(claims, panels=(panel,), setup=(UP_TO_64, BY_FORMULA))


def _coincidence_claim(built: Sequence[MeasuredMember]) -> PaperClaim:
    """The claim that k̄ and k̄/u are equal in PN, by networks that are built, ascending."""
    difference = max(abs(pn.mean / pn.utilisation - pn.mean) for pn in built)
    return PaperClaim(
        statement="both curves coincide for PN: largest difference, built up to q ="
        f" {built[-1].size}",
        printed=0,
        computed=difference,
    )


def _distance_claims(shapes: Mapping[str, list[GraphShape]]) -> tuple[PaperClaim, ...]:
    """The claims on the mean distance and the order of MMS, given the members of each network."""
    demi_shapes = shapes["demi-PN"]
    compared_mms = _within_sizes(shapes["Slim Fly MMS"], demi_shapes)
    above_line = ", ".join(str(_q_of(mms)) for mms in _above_line(compared_mms, demi_shapes))
    rivals = [*demi_shapes, *shapes["PN"]]
    mms_above_another = [mms for mms in compared_mms if _has_larger_and_closer(rivals, mms)]
    huge_mms = growth("Slim Fly MMS").shape(LARGE_Q)
    return (
        PaperClaim(
            statement="MMS has the smallest average distance: how many, of demi-PN's sizes, are"
            " below every demi-PN and PN at least as large",
            printed=len(compared_mms),
            computed=len(compared_mms) - len(mms_above_another),
            interpretation="Read as of networks. The line that joins two demi-PNs in the figure,"
            f" where none is, is below MMS of q = {above_line}.",
        ),
        PaperClaim(
            statement="and 8/9 of the largest size, which demi-PN attains, in the limit: MMS of q ="
            " 2,048 over Δ² - Δ + 1, demi-PN's order by its formula; none has this Δ,"
            f" {huge_mms.degree:,}",
            printed=8 / 9,
            computed=huge_mms.order / (huge_mms.degree**2 - huge_mms.degree + 1),
            reading_error=0.001,
        ),
    )


def _scale_claims(shapes: Mapping[str, list[GraphShape]]) -> tuple[PaperClaim, ...]:
    """The claims on cost and compute nodes of large networks, given the members of each.

    The paper, §V-B: "However, when link utilization is considered in the network cost model, for
    more than 1000 compute nodes demi-PN exhibits as the best alternative both in scalability and
    cost. Finally, PN is an alternative to scale to a larger amount of compute nodes reaching almost
    10⁵ compute nodes with minimum cost."

    Cost is k̄/u, compared over all networks of more than 1000 compute nodes. Scalability is the most
    compute nodes of a family with routers of up to 64 ports.
    """
    large_mms, large_pn, large_demi = (
        [shape for shape in shapes[name] if _hosts(shape) > 1000]
        for name in ("Slim Fly MMS", "PN", "demi-PN")
    )
    return (
        PaperClaim(
            statement="above 1000 compute nodes demi-PN is the cheapest: least k̄/u of MMS and PN"
            " over its largest",
            printed=1,
            computed=min(map(cost, [*large_mms, *large_pn])) / max(map(cost, large_demi)),
            relation=">",
        ),
        PaperClaim(
            statement="and in scale: its most compute nodes over those of MMS, R up to 64",
            printed=1,
            computed=max(map(_hosts, large_demi)) / max(map(_hosts, large_mms)),
            relation=">",
            interpretation="Read as beside MMS. PN has more compute nodes, as the next sentence"
            " says.",
        ),
        PaperClaim(
            statement="PN scales to almost 10⁵ compute nodes: its largest",
            printed=1e5,
            computed=_hosts(shapes["PN"][-1]),
            reading_error=5e3,
            reason="With R up to 64 the largest has q = 43, R = 61.6. With q = 47 R is 67.2. By"
            " T = .29 R³ of §VI it would be 76,000.",
        ),
    )


def _within_sizes(members: list[GraphShape], bounds: list[GraphShape]) -> list[GraphShape]:
    """The members with compute nodes from those of the first bound to those of the last."""
    low, high = _logs(bounds)[0], _logs(bounds)[-1]
    return [shape for shape in members if low <= log(_hosts(shape)) <= high]


def _above_line(members: list[GraphShape], line: list[GraphShape]) -> list[GraphShape]:
    """The members whose k̄ is not below the line through the k̄ of others, over log T."""
    means = np.interp(_logs(members), _logs(line), [shape.mean for shape in line]).tolist()
    return [shape for shape, mean in zip(members, means, strict=True) if shape.mean >= mean]


def _has_larger_and_closer(members: list[GraphShape], shape: GraphShape) -> bool:
    """Whether a member has at least the compute nodes of a network, and at most its k̄."""
    return any(member.mean <= shape.mean for member in members if _hosts(member) >= _hosts(shape))


def _prime_powers(low: int, high: int) -> list[int]:
    """The prime powers from `low` to below `high`."""
    return [q for q in range(low, high) if prime_power(q)]


def _hosts(shape: GraphShape) -> float:
    """The compute nodes T of a network."""
    return shape.quantities()["T"]


def _ports(shape: GraphShape) -> float:
    """The ports R of its routers."""
    return shape.quantities()["R"]


def _q_of(shape: GraphShape) -> int:
    """The parameter of an MMS graph of 2q² vertices."""
    return isqrt(shape.order // 2)


def _logs(members: list[GraphShape]) -> list[float]:
    """The natural logarithms of the networks' compute nodes."""
    return [log(_hosts(shape)) for shape in members]


def _by_hosts(
    shapes: dict[str, list[GraphShape]],
    suffix: str = "",
    value: Callable[[GraphShape], float] = cost,
) -> Iterator[Curve]:
    """Yield a curve over compute nodes for each family.

    Args:
        shapes: the members of each family, by its name.
        suffix: what follows the family's name in the name of its curve.
        value: the quantity that is drawn.
    """
    for name, members in shapes.items():
        yield Curve(name + suffix, tuple(map(_hosts, members)), tuple(map(value, members)))
