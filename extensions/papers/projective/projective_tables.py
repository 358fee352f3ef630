"""Tables I to VI of the Projective Networks paper: its formulas and its example networks.

Each function with the parameter `_quick` reproduces a table and returns its rows and claims as
`Evidence`; `projective_paper` lists them. All exhibits have this parameter. These functions do not
use it, as they simulate nothing.

In the paper's words, N is the number of routers, Δ their degree, Δ0 the compute nodes of a router,
R = Δ + Δ0 its ports, T the compute nodes of a network; k is the diameter, k̄ the average distance
and u the average utilisation of links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from math import isnan
from typing import NamedTuple

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.families import build_topology
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan
from extensions.papers.paper_tables import Cell, paper_table, table_evidence
from extensions.papers.projective.generalised_hexagon import SELF_POLAR, is_polar_by_coordinates
from extensions.papers.projective.measured_networks import (
    MEASURED_DRAGONFLY,
    MeasuredMember,
    diameter_of_a_dragonfly,
    measured_members,
    order_and_degree,
)
from extensions.papers.projective.network_growth import GROWTHS, NEAR_A_LIMIT, NetworkGrowth
from extensions.papers.projective.printed_limits import LIMITS, READINGS

LOADS_OF_DELORME = (
    "Measured: 1 for q = 2, .975 for q = 8. The loads of larger ones are not computed."
)
"""Why the limit of u of Delorme's graphs on quadrangles is not computed."""
ONE_HEXAGON = (
    "Measured for q = 3: k̄ 4.411, u .986. The next one, of q = 27, has 14,900,788 vertices."
)
"""Why the limits of Delorme's graphs on hexagons are not computed."""
NOT_AT_THE_LIMIT = {
    "Delorme, quadrangles": LOADS_OF_DELORME,
    "Delorme, hexagons": ONE_HEXAGON,
}
"""Why the limit of a family is not computed, by the family's name."""
BY_FORMULA = (
    "k̄ and u are by formulas, which equal what is measured in built graphs (the rows n = … of"
    " projective-table2). The dragonfly's are those of its usual routes."
)
"""A line below several exhibits on how their k̄ and u are computed."""
LIMIT_ERROR = 1e-6
"""The relative error that is allowed where T, R and Δ0 are computed with the limits of k̄ and u: a
huge member stands for the limit (`printed_limits.HUGE`)."""
MEASURED_DELORME = {
    "Delorme quadrangle, q=32": "Measured for q = 8: T 1,779, R 12.04, Δ0 3.04, by the printed"
    " formulas 1,755, 12, 3.",
    "Delorme hexagon, q=3": "Measured: T 319.2, R 4.88, Δ0 .88.",
}
"""By row of Table III whose limit is not computed, the values that are measured instead."""
COST, POWER = "cost per host ($)", "power per host (W)"
"""The quantities of tables IV and V that the text compares."""
CABLES_OF_THE_PAPER = "With the paper's number of electrical cables of demi-PN(27)."
"""How the claim on the cost of demi-PN is read."""
BY_PRINTED_COSTS = (
    "By the printed costs, too, it is 2.7 %: (1,497.77 - 1,457.39)/1,497.77 = .02696."
)
"""Why the claim on the cost of the dragonfly differs."""


def notation(_quick: bool) -> Evidence:
    """Table I: each quantity of one network, and the relations between them."""
    pn = build_topology("pn", {"q": 5})
    load, hosts = uniform(pn), 2  # two compute nodes at each router
    nodes, links, ports = pn.graph.order, pn.graph.size, int(pn.graph.degrees.max())
    distances = distribution(pn)
    accepted = load.full_throughput_hosts
    rows = (
        ("T", "compute nodes", nodes * hosts),
        ("R", "router radix", ports + hosts),
        ("N", "routers", nodes),
        ("Δ", "largest degree", ports),
        ("Δ0", "compute nodes a router", hosts),
        ("k", "diameter", distances.diameter),
        ("k̄", "average distance", load.mean_distance),
        ("a", "load accepted by a router in saturation", accepted),
        ("u", "average utilisation of links", load.utilisation),
    )
    claims = (
        PaperClaim(
            statement="2|E| = NΔ of a Δ-regular graph", printed=nodes * ports, computed=2 * links
        ),
        PaperClaim(
            statement="u = a·k̄/Δ, k̄ by search",
            printed=load.utilisation,
            computed=accepted * or_nan(distances.mean) / ports,
        ),
        _utilisation_claim("slimfly", 7),
    )
    return Evidence(claims, columns=("notation", "definition", "PN of q = 5"), rows=rows)


def _utilisation_claim(family: str, q: int) -> PaperClaim:
    """The claim that u = a·k̄/Δ of a regular graph whose links carry different loads."""
    topology = build_topology(family, {"q": q})
    load, ports = uniform(topology), int(topology.graph.degrees.max())
    by_formula = load.full_throughput_hosts * or_nan(distribution(topology).mean) / ports
    return PaperClaim(
        statement=f"the same of Slim Fly of q = {q}", printed=load.utilisation, computed=by_formula
    )


def limits(_quick: bool) -> Evidence:
    """Table II: diameter, and k̄ and u of a member so large that they are near their limits."""
    claims, rows = list[PaperClaim](), list[tuple[object, ...]]()
    for family in GROWTHS:
        measured = [*measured_members(family.name)]
        limit = _LimitOfUtilisation.of(family, measured)
        large = family.shape(family.large_parameter)
        mean = None if isnan(large.mean) else large.mean
        if measured:
            size, diameter = measured[-1].size, measured[-1].diameter
        else:
            size, diameter = MEASURED_DRAGONFLY, diameter_of_a_dragonfly()
        claims += _limit_claims(family, size, diameter, mean, limit)
        rows += [(f"{family.name}, n = {member.size}", *astuple(member)[1:]) for member in measured]
        rows.append((f"{family.name}, N = {large.order:,}", diameter, mean, limit.utilisation))
    claims.append(_hexagon_claim())
    columns = ("graph", "k", "k̄", "u")
    return Evidence(tuple(claims), columns=columns, rows=tuple(rows), setup=(BY_FORMULA,))


class _LimitOfUtilisation(NamedTuple):
    """Our value of the limit of u for a family, and how it is found.

    There are three cases:

    - The formula of the family gives u of a large member.
    - The formula is u = 1 at every size. It would show nothing, so the claim is read as one on
      every member. The value is the measured u that is farthest from 1.
    - There is no formula: nothing is computed.
    """

    utilisation: float | None
    """The value; None if there is none."""
    of_large_member: bool = False
    """Whether it is the value of the large member, by the formula."""
    interpretation: str = ""
    """How the claim is read."""

    @classmethod
    def of(cls, family: NetworkGrowth, measured: Sequence[MeasuredMember]) -> _LimitOfUtilisation:
        """The limit of a family, some members of which are measured."""
        by_formula = family.shape(family.large_parameter).utilisation
        if isnan(by_formula):
            return cls(None)
        if by_formula != 1:
            return cls(by_formula, of_large_member=True)
        sizes = ", ".join(str(member.size) for member in measured)
        return cls(
            max((member.utilisation for member in measured), key=lambda u: abs(u - 1)),
            interpretation="Read as of every member: u is 1 in those that are built, of"
            f" n = {sizes}.",
        )


def _limit_claims(
    family: NetworkGrowth,
    size: int,
    diameter: float,
    mean: float | None,
    limit: _LimitOfUtilisation,
) -> Iterator[PaperClaim]:
    """Yield the claims of Table II on a family.

    Args:
        family: the family, with the printed values.
        size: the parameter of the member whose diameter is measured.
        diameter: its diameter.
        mean: k̄ of the large member; None if there is no formula.
        limit: our value of the limit of u.
    """
    at_large = f", by formula, at n = {family.large_parameter:,}"
    reason = NOT_AT_THE_LIMIT.get(family.name, "")
    yield PaperClaim(
        statement=f"{family.name}: k, of n = {size}", printed=family.diameter, computed=diameter
    )
    yield PaperClaim(
        statement=f"{family.name}: lim k̄{at_large if mean else ''}",
        printed=family.mean_limit,
        computed=mean,
        reading_error=NEAR_A_LIMIT * family.mean_limit,
        reason=reason,
    )
    yield PaperClaim(
        statement=f"{family.name}: lim u{at_large if limit.of_large_member else ''}",
        printed=family.utilisation_limit,
        computed=limit.utilisation,
        reading_error=NEAR_A_LIMIT * family.utilisation_limit,
        interpretation=limit.interpretation,
        reason=reason,
    )


def _hexagon_claim() -> PaperClaim:
    """The claim on the q of Delorme's graphs, which H(3) refutes."""
    return PaperClaim(
        statement="q of Delorme's graphs, on hexagons as on quadrangles, is an odd power of 2:"
        " there is none of H(3)",
        printed=1,
        computed=float(not is_polar_by_coordinates(SELF_POLAR)),
        correction="The hexagon H(3) has a polarity, found here, and its Delorme graph 364"
        " vertices, degree 4 and diameter 5. A generalised hexagon of order q has one only"
        " where 3q is a square (Ott, 1981): not for q = 2, 8, 32.",
    )


def structural_parameters(_quick: bool) -> Evidence:
    """Table III: N and Δ of the examples by their graphs, T, R and Δ0 by formula (1)."""
    table = paper_table("projective-3")
    claims = tuple(
        _counted_claim(cell) if cell.quantity in ("N", "Δ") else _formula_claim(cell)
        for cell in table.cells
    )
    setup = (
        "The columns have our examples, whose N and Δ are counted in built graphs. T, R and Δ0"
        " there are those of the example's own k̄ and u; a statement says where the printed formula"
        " has others.",
        BY_FORMULA,
    )
    rows = tuple(map(tuple, table.rows))
    return Evidence(claims, columns=tuple(table.columns), rows=rows, setup=setup)


def _counted_claim(cell: Cell) -> PaperClaim:
    """The claim on N or Δ of an example, which is counted in its graph."""
    order, degree = order_and_degree(cell.network)
    return PaperClaim(
        statement=f"{cell.network}: {cell.quantity}",
        printed=float(cell.printed.rpartition("= ")[2].replace(",", "")),
        computed=order if cell.quantity == "N" else degree,
    )


def _formula_claim(cell: Cell) -> PaperClaim:
    """The claim on T, R or Δ0 of an example, by formula (1) in place of the printed formula."""
    limit = LIMITS[cell.network]
    formula, _, _number = cell.printed.rpartition(" = ")
    printed = limit.formulas(limit.size)[cell.quantity]
    return PaperClaim(
        statement=f"{cell.network}: {cell.quantity} = {formula}",
        printed=printed,
        computed=limit.quantities().get(cell.quantity),
        reading_error=LIMIT_ERROR * printed,
        interpretation=READINGS[limit.hosts_of_router] if limit.hosts_of_router else "",
        reason=MEASURED_DELORME.get(cell.network, ""),
    )


def ten_thousand(_quick: bool) -> Evidence:
    """Table IV, and what the text says of it."""
    table = table_evidence("projective-4")
    less_cost, less_power = (
        _percent_less(table, "demi-PN(27)", "SF MMS(19)", quantity) for quantity in (COST, POWER)
    )
    claims = (
        *table.claims,
        PaperClaim(
            statement="§V-C: demi-PN costs 1 % less than SF MMS",
            printed=1,
            computed=less_cost,
            rounding=0.5,
            interpretation=CABLES_OF_THE_PAPER,
        ),
        PaperClaim(
            statement="§V-C: demi-PN takes 7 % less power than SF MMS",
            printed=7,
            computed=less_power,
            rounding=0.5,
        ),
    )
    return replace(table, claims=claims)


def twenty_five_thousand(_quick: bool) -> Evidence:
    """Table V, and what the text says of it."""
    table = table_evidence("projective-5")
    claims = (
        *table.claims,
        PaperClaim(
            statement="§V-C: PN takes 10.9 % less power than the dragonfly",
            printed=10.9,
            computed=_percent_less(table, "PN(31)", "dragonfly(9)", POWER),
            rounding=0.05,
            reason="PN(31) has 9.69 W, and not 9.70 W.",
        ),
        PaperClaim(
            statement="§V-C: the dragonfly costs 2.6 % less than PN",
            printed=2.6,
            computed=_percent_less(table, "dragonfly(9)", "PN(31)", COST),
            rounding=0.05,
            reason=BY_PRINTED_COSTS,
        ),
    )
    return replace(table, claims=claims)


def _percent_less(table: Evidence, cheaper: str, dearer: str, quantity: str) -> float:
    """By how many per cent a quantity of one network is less than that of another network."""
    computed = {claim.statement: or_nan(claim.computed) for claim in table.claims}
    return 100 * (1 - computed[f"{cheaper}: {quantity}"] / computed[f"{dearer}: {quantity}"])


def indirect_examples(_quick: bool) -> Evidence:
    """Table VI: example multi-layer full mesh and orthogonal fat trees."""
    return table_evidence("projective-6")
