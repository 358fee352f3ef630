"""Tables I to VI of the Projective Networks paper: its formulas and its example networks.

Each function with the parameter `_quick` reproduces a table and returns its rows and claims as
`Evidence`; `projective_paper` lists them.

In the paper's words, N is the number of routers, Δ their degree, Δ0 the compute nodes of a router,
R = Δ + Δ0 its ports, T the compute nodes of a network; k is the diameter, k̄ the average distance
and u the average utilisation of links.
"""

from __future__ import annotations

from dataclasses import astuple, replace
from math import isnan

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.families import build_topology
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan
from extensions.papers.paper_tables import paper_table, table_evidence
from extensions.papers.projective.generalised_hexagon import SELF_POLAR, is_polar_by_coordinates
from extensions.papers.projective.measured_networks import (
    DRAGONFLY,
    diameter_of_a_dragonfly,
    measured_members,
    order_and_degree,
)
from extensions.papers.projective.network_growth import GROWTHS, NEAR_A_LIMIT
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
    " projective-table2). The dragonfly's are those of its usual routes.",
)
"""A remark on the values of k̄ and u in several exhibits."""
HUGE_MEMBER_ERROR = 1e-6
"""The relative error of quantities by the limits of k̄ and u, of the huge members in `LIMITS`."""
FINITE_DELORME = {
    "Delorme quadrangle, q=32": "Measured for q = 8: T 1,779, R 12.04, Δ0 3.04, by the printed"
    " formulas 1,755, 12, 3.",
    "Delorme hexagon, q=3": "Measured: T 319.2, R 4.88, Δ0 .88.",
}
"""By row of table III whose limit is not computed, the values that are measured instead."""
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
    load, hosts = uniform(pn), 2
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
        PaperClaim("2|E| = NΔ of a Δ-regular graph", nodes * ports, 2 * links),
        PaperClaim(
            "u = a·k̄/Δ, k̄ by search", load.utilisation, accepted * or_nan(distances.mean) / ports
        ),
        _utilisation_claim("slimfly", 7),
    )
    return Evidence(claims, ("notation", "definition", "PN of q = 5"), rows)


def _utilisation_claim(family: str, q: int) -> PaperClaim:
    """The claim that u = a·k̄/Δ of a regular graph whose links carry different loads."""
    graph = build_topology(family, {"q": q})
    load, ports = uniform(graph), int(graph.graph.degrees.max())
    by_formula = load.full_throughput_hosts * or_nan(distribution(graph).mean) / ports
    return PaperClaim(f"the same of Slim Fly of q = {q}", load.utilisation, by_formula)


def limits(_quick: bool) -> Evidence:
    """Table II: diameter, and k̄ and u of a member so large that they are near their limits."""
    claims, rows = [], list[tuple[object, ...]]()
    for family in GROWTHS:
        shape = family.shape(family.large)
        built = [*measured_members(family.name)]
        rows += [(f"{family.name}, n = {member.size}", *astuple(member)[1:]) for member in built]
        diameter = built[-1].diameter if built else diameter_of_a_dragonfly()
        size = built[-1].size if built else DRAGONFLY
        mean, utilisation = (
            None if isnan(value) else value for value in (shape.mean, shape.utilisation)
        )
        interpretation, by_formula = "", utilisation not in (None, 1)
        at_large = f", by formula, at n = {family.large:,}"
        if utilisation == 1:  # as the formula assumes it, the measured u is compared instead
            utilisation = max((member.utilisation for member in built), key=lambda u: abs(u - 1))
            sizes = ", ".join(str(member.size) for member in built)
            interpretation = (
                f"Read as of every member: u is 1 in those that are built, of n = {sizes}."
            )
        reason = NOT_AT_THE_LIMIT.get(family.name, "")
        claims += [
            PaperClaim(f"{family.name}: k, of n = {size}", family.diameter, diameter),
            PaperClaim(
                f"{family.name}: lim k̄{at_large if mean else ''}",
                family.mean,
                mean,
                reading_error=NEAR_A_LIMIT * family.mean,
                reason=reason,
            ),
            PaperClaim(
                f"{family.name}: lim u{at_large if by_formula else ''}",
                family.utilisation,
                utilisation,
                reading_error=NEAR_A_LIMIT * family.utilisation,
                interpretation=interpretation,
                reason=reason,
            ),
        ]
        rows.append((f"{family.name}, N = {shape.order:,}", diameter, mean, utilisation))
    claims.append(
        PaperClaim(
            "q of Delorme's graphs, on hexagons as on quadrangles, is an odd power of 2: there is"
            " none of H(3)",
            1,
            float(not is_polar_by_coordinates(SELF_POLAR)),
            mistake="The hexagon H(3) has a polarity, found here, and its Delorme graph 364"
            " vertices, degree 4 and diameter 5. A generalised hexagon of order q has one only"
            " where 3q is a square (Ott, 1981): not for q = 2, 8, 32.",
        )
    )
    heads = ("graph", "k", "k̄", "u")
    return Evidence(tuple(claims), heads, tuple(rows), setup=BY_FORMULA)


def structural_parameters(_quick: bool) -> Evidence:
    """Table III: N and Δ of the examples by their graphs, T, R and Δ0 by formula (1)."""
    table = paper_table("projective-3")
    claims = []
    for cell in table.cells:
        if cell.quantity in ("N", "Δ"):
            printed = float(cell.printed.rpartition("= ")[2].replace(",", ""))
            says = f"{cell.network}: {cell.quantity}"
            order, degree_of_network = order_and_degree(cell.network)
            counted = order if cell.quantity == "N" else degree_of_network
            claims.append(PaperClaim(says, printed, counted))
            continue
        limit = LIMITS[cell.network]
        printed = limit.formulas(limit.size)[cell.quantity]
        claims.append(
            PaperClaim(
                f"{cell.network}: {cell.quantity} = {cell.printed.rpartition(' = ')[0]}",
                printed,
                limit.quantities().get(cell.quantity),
                reading_error=HUGE_MEMBER_ERROR * printed,
                interpretation=READINGS[limit.hosts_of_router] if limit.hosts_of_router else "",
                reason=FINITE_DELORME.get(cell.network, ""),
            )
        )
    setup = (
        "The columns have our examples, whose N and Δ are counted in built graphs. T, R and Δ0"
        " there are those of the example's own k̄ and u; a statement says where the printed formula"
        " has others.",
        *BY_FORMULA,
    )
    return Evidence(tuple(claims), tuple(table.columns), tuple(map(tuple, table.rows)), setup=setup)


def ten_thousand(_quick: bool) -> Evidence:
    """Table IV, and what the text says of it."""
    table = table_evidence("projective-4")
    less_cost, less_power = (
        _percent_less(table, "demi-PN(27)", "SF MMS(19)", quantity) for quantity in (COST, POWER)
    )
    claims = (
        *table.claims,
        PaperClaim(
            "§V-C: demi-PN costs 1 % less than SF MMS",
            1,
            less_cost,
            rounding=0.5,
            interpretation=CABLES_OF_THE_PAPER,
        ),
        PaperClaim("§V-C: demi-PN takes 7 % less power than SF MMS", 7, less_power, rounding=0.5),
    )
    return replace(table, claims=claims)


def twenty_five_thousand(_quick: bool) -> Evidence:
    """Table V, and what the text says of it."""
    table = table_evidence("projective-5")
    claims = (
        *table.claims,
        PaperClaim(
            "§V-C: PN takes 10.9 % less power than the dragonfly",
            10.9,
            _percent_less(table, "PN(31)", "dragonfly(9)", POWER),
            rounding=0.05,
            reason="PN(31) has 9.69 W, and not 9.70 W.",
        ),
        PaperClaim(
            "§V-C: the dragonfly costs 2.6 % less than PN",
            2.6,
            _percent_less(table, "dragonfly(9)", "PN(31)", COST),
            rounding=0.05,
            reason=BY_PRINTED_COSTS,
        ),
    )
    return replace(table, claims=claims)


def _percent_less(table: Evidence, cheaper: str, dearer: str, quantity: str) -> float:
    """By how many per cent a quantity of one network is less than that of another network."""
    computed = {claim.says: or_nan(claim.computed) for claim in table.claims}
    return 100 * (1 - computed[f"{cheaper}: {quantity}"] / computed[f"{dearer}: {quantity}"])


def indirect_examples(_quick: bool) -> Evidence:
    """Table VI: example multi-layer full mesh and orthogonal fat trees."""
    return table_evidence("projective-6")
