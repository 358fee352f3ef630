"""Projective Networks: Topologies for Large Parallel Computer Systems (Camarero et al., 2016).

Each function of `EXHIBITS` reproduces one table or figure of the paper, and returns its claims as
`Evidence`: numbers that the paper prints beside ours. `extensions.papers.catalogue` computes them.

In the paper's words, N is the number of routers, Δ their degree, Δ0 the compute nodes of a router,
R = Δ + Δ0 its ports, T the compute nodes of a network; k is the diameter, k̄ the average distance
and u the average utilisation of links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, replace
from itertools import pairwise
from math import isnan, isqrt, log, sqrt

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.plots import Curve, Panel
from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.families import build_topology
from compilers.topology.family import moore_bound
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout, links_between
from extensions.baselines.slimfly import degree
from extensions.papers.diagram import HIDDEN, HOST, Diagram, Places, columns, ring, with_hosts
from extensions.papers.exhibit import Evidence, PaperClaim, exhibits_of, or_nan
from extensions.papers.graphs import (
    complement,
    counted,
    diameter_of,
    hamming,
    matrix_of,
    mean_distance,
    paley,
    turan,
)
from extensions.papers.limits import GraphShape
from extensions.papers.paper_tables import configuration, paper_table, table_evidence
from extensions.papers.projective.delorme_graph import POLAR
from extensions.papers.projective.generalised_hexagon import SELF_POLAR, is_polar_by_coordinates
from extensions.papers.projective.measured_networks import (
    DRAGONFLY,
    diameter_of_a_dragonfly,
    measured,
    order_and_degree,
)
from extensions.papers.projective.network_growth import (
    GROWTHS,
    LARGEST_ROUTER,
    NetworkGrowth,
    cost,
    growth,
    ideal_hosts,
    ideal_mean,
)
from extensions.papers.projective.printed_limits import LIMITS, WORDS

HOSTS = "compute nodes T"
"""The label of an axis."""
CORNERS = (("100", -1, 1), ("010", 1, 1), ("001", 0, -2), ("111", 0, 0))
"""The corners and the centre of the drawn Fano plane: name, x / √3, and y, downwards."""
MIDDLES = ("110", "101", "011")
"""The points of the Fano plane that are drawn in the middle of its sides; they are a line, too."""
SUPERSEDED = (
    "The dragonfly supersedes the 3D Hamming graph in scale. Of as many compute nodes, up to"
    " 65,520, the 3D Hamming graph has the smaller k̄/u, by 3 % or more, with routers of more ports:"
    " there 61, of the dragonfly 44."
)
"""A remark on figure 7, of the claim that the dragonfly supersedes the 3D Hamming graph."""
DELORME_MISTAKE = "R = 4(q + 1)/3 is 4, 12 and 44 with q = 2, 8 and 32."
"""The mistake in the claim that figure 7 has two points of Delorme's graph."""
DELORME_DRAWN = (
    "Delorme's graph is drawn for q = 2 and 8, by what is measured: k̄ 2.286 and 2.849, u 1 and"
    " .975. For q = 32 k̄ is 2.967; u is not computed."
)
"""A remark on the points of Delorme's graph in figure 7."""
HAMMING_MISTAKE = (
    "The text has 2 - 2/n - 1/n². Of the n² - 1 others 2(n - 1) are at distance 1 and (n - 1)²"
    " at 2, so the mean is 2n/(n + 1); with the vertex itself, at distance 0, it is 2 - 2/n."
)
"""The mistake in the mean distance of the Hamming graph in figure 4."""
DIAGONALS = [1, 4]
"""The indices of the two diagonals of K_4 among its six links, in the order of `np.argwhere`."""
DIAGONAL_SHIFTS = [[0.12, 0.1], [-0.12, 0.1]]
"""How far the vertices of these two links are drawn from the point where the diagonals cross."""
CIRCLE_BENDS = 48
"""The bends by which a circle is drawn."""
LABEL_POSITION = 0.2
"""Where the label of a straight line is, as a part of the way between its two ends."""


def _names(topology: Topology) -> list[str]:
    """The name of each vertex: its homogeneous coordinates, such as `011`."""
    return ["".join(map(str, row[-3:])) for row in topology.coordinates.tolist()]


def notation(_quick: bool) -> Evidence:
    """Table I: each quantity of one network, and the relations between them."""
    pn = build_topology("pn", {"q": 5})
    load, hosts = uniform(pn), 2
    nodes, links, ports = pn.graph.order, pn.graph.size, int(pn.graph.degrees.max())
    spread = distribution(pn)
    accepted = load.full_throughput_hosts
    rows = (
        ("T", "compute nodes", nodes * hosts),
        ("R", "router radix", ports + hosts),
        ("N", "routers", nodes),
        ("Δ", "largest degree", ports),
        ("Δ0", "compute nodes a router", hosts),
        ("k", "diameter", spread.diameter),
        ("k̄", "average distance", load.mean_distance),
        ("a", "load accepted by a router in saturation", accepted),
        ("u", "average utilisation of links", load.utilisation),
    )
    claims = (
        PaperClaim("2|E| = NΔ of a Δ-regular graph", nodes * ports, 2 * links),
        PaperClaim(
            "u = a·k̄/Δ, k̄ by search", load.utilisation, accepted * or_nan(spread.mean) / ports
        ),
        _used_share("slimfly", 7),
    )
    return Evidence(claims, ("notation", "definition", "PN of q = 5"), rows)


def _used_share(family: str, q: int) -> PaperClaim:
    """The claim that u = a·k̄/Δ of a regular graph whose links carry different loads."""
    graph = build_topology(family, {"q": q})
    load, spread, ports = uniform(graph), distribution(graph), int(graph.graph.degrees.max())
    share = load.full_throughput_hosts * or_nan(spread.mean) / ports
    return PaperClaim(f"the same of Slim Fly of q = {q}", load.utilisation, share)


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
"""By family, why its limit is not computed."""
BY_FORMULA = (
    "k̄ and u are by formulas, which equal what is measured in built graphs (the rows n = … of"
    " projective-table2). The dragonfly's are those of its usual routes.",
)
"""A remark on the values of k̄ and u in several exhibits."""


def limits(_quick: bool) -> Evidence:
    """Table II: diameter, and k̄ and u of a member so large that they are near their limits."""
    claims, rows = [], list[tuple[object, ...]]()
    for family in GROWTHS:
        shape = family.shape(family.large)
        small = [*measured(family.name)]
        rows += [(f"{family.name}, n = {one.size}", *astuple(one)[1:]) for one in small]
        diameter = small[-1].diameter if small else diameter_of_a_dragonfly()
        size = small[-1].size if small else DRAGONFLY
        mean, utilisation = (
            None if isnan(value) else value for value in (shape.mean, shape.utilisation)
        )
        every = ""
        if utilisation == 1:  # assumed in the formula, so that what is measured is held against u
            utilisation = max((one.utilisation for one in small), key=lambda u: abs(u - 1))
            sizes = ", ".join(str(one.size) for one in small)
            every = f"Read as of every member: u is 1 in those that are built, of n = {sizes}."
        reason = NOT_AT_THE_LIMIT.get(family.name, "")
        claims += [
            PaperClaim(f"{family.name}: k, of n = {size}", family.diameter, diameter),
            PaperClaim(
                f"{family.name}: lim k̄",
                family.mean,
                mean,
                reading_error=NEAR_A_LIMIT * family.mean,
                reason=reason,
            ),
            PaperClaim(
                f"{family.name}: lim u",
                family.utilisation,
                utilisation,
                reading_error=NEAR_A_LIMIT * family.utilisation,
                interpretation=every,
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


NEAR_A_LIMIT = 0.001
"""The relative distance from its limit that a large member may have."""
HUGE_MEMBER_ERROR = 1e-6
"""The relative error of quantities by the limits of k̄ and u, of the huge members in `LIMITS`."""
FINITE_DELORME = {
    "Delorme quadrangle, q=32": "Measured for q = 8: T 1,779, R 12.04, Δ0 3.04, by the printed"
    " formulas 1,755, 12, 3.",
    "Delorme hexagon, q=3": "Measured: T 319.2, R 4.88, Δ0 .88.",
}
"""By row of table III whose limit is not computed, the values that are measured instead."""


def structural_parameters(_quick: bool) -> Evidence:
    """Table III: N and Δ of the examples by their graphs, T, R and Δ0 by formula (1)."""
    table = paper_table("projective-3")
    claims = []
    for cell in table.cells:
        if cell.quantity in ("N", "Δ"):
            printed = float(cell.printed.rpartition("= ")[2].replace(",", ""))
            says = f"{cell.network}: {cell.quantity}"
            order, degree_of_network = order_and_degree(cell.network)
            ours = order if cell.quantity == "N" else degree_of_network
            claims.append(PaperClaim(says, printed, ours))
            continue
        limit = LIMITS[cell.network]
        printed = limit.formulas(limit.size)[cell.quantity]
        claims.append(
            PaperClaim(
                f"{cell.network}: {cell.quantity} = {cell.printed.rpartition(' = ')[0]}",
                printed,
                limit.quantities().get(cell.quantity),
                reading_error=HUGE_MEMBER_ERROR * printed,
                interpretation=WORDS[limit.hosts] if limit.hosts else "",
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


COST, POWER = "cost per host ($)", "power per host (W)"
"""The quantities of tables IV and V that the text compares."""
OF_PRINT = "With the paper's number of electrical cables of demi-PN(27)."
"""How the claim on the cost of demi-PN is read."""
OWN_NUMBERS = "By the printed costs, too, it is 2.7 %: (1,497.77 - 1,457.39)/1,497.77 = .02696."
"""Why the claim on the cost of the dragonfly differs."""


def ten_thousand(_quick: bool) -> Evidence:
    """Table IV, and what the text says of it."""
    table = table_evidence("projective-4")
    cost, power = (_less(table, "demi-PN(27)", "SF MMS(19)", of) for of in (COST, POWER))
    claims = (
        *table.claims,
        PaperClaim(
            "§V-C: demi-PN costs 1 % less than SF MMS",
            1,
            cost,
            rounding=0.5,
            interpretation=OF_PRINT,
        ),
        PaperClaim("§V-C: demi-PN takes 7 % less power than SF MMS", 7, power, rounding=0.5),
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
            _less(table, "PN(31)", "dragonfly(9)", POWER),
            rounding=0.05,
            reason="PN(31) has 9.69 W, and not 9.70 W.",
        ),
        PaperClaim(
            "§V-C: the dragonfly costs 2.6 % less than PN",
            2.6,
            _less(table, "dragonfly(9)", "PN(31)", COST),
            rounding=0.05,
            reason=OWN_NUMBERS,
        ),
    )
    return replace(table, claims=claims)


def _less(table: Evidence, cheaper: str, dearer: str, quantity: str) -> float:
    """By how many per cent a quantity of one network is less than that of another network."""
    computed = {claim.says: or_nan(claim.computed) for claim in table.claims}
    return 100 * (1 - computed[f"{cheaper}: {quantity}"] / computed[f"{dearer}: {quantity}"])


def indirect_examples(_quick: bool) -> Evidence:
    """Table VI: example multi-layer full mesh and orthogonal fat trees."""
    return table_evidence("projective-6")


def fano(_quick: bool) -> Evidence:
    """Figure 1: the Fano plane, and its incidence graph."""
    heawood = build_topology("pn", {"q": 2})
    names, n = _names(heawood), heawood.graph.order // 2
    line = n + names[n:].index("001")
    on = sorted(names[point] for point in heawood.graph.neighbours(line))
    spread = distribution(heawood)
    claims = (
        PaperClaim("points and lines", 14, heawood.graph.order),
        PaperClaim("degree 3", 3, int(heawood.graph.degrees.max())),
        PaperClaim("on line 001: 100, 110 and 010", 1, float(on == ["010", "100", "110"])),
        *(
            PaperClaim(f"vertices at distance {d}", count, spread.pairs[d] / 14)
            for d, count in ((1, 3), (2, 6), (3, 4))
        ),
    )
    places = _fano_places(names[:n])
    centre_to_middle = places[names.index("110")] - places[names.index("111")]
    bends = ring(CIRCLE_BENDS, float(np.hypot(*centre_to_middle)))
    straight = [("100", "010"), ("100", "001"), ("010", "001")]
    straight += [("100", "011"), ("010", "101"), ("001", "110")]
    links = [[names.index(end) for end in ends] for ends in straight]
    bend = np.arange(CIRCLE_BENDS)
    circle = n + np.stack((bend, (bend + 1) % CIRCLE_BENDS), axis=1)
    middles = [names.index(middle) for middle in MIDDLES]
    line_names = [f"[{_line_through(heawood, points)}]" for points in (*links, middles)]
    label_places = np.array(
        [places[start] + LABEL_POSITION * (places[end] - places[start]) for start, end in links]
    )
    # The circle's name is at its third bend; the straight lines' are at vertices of their own.
    circle_labels = ["", "", line_names[-1], *[""] * (CIRCLE_BENDS - 3)]
    plane = Diagram(
        "Fano plane: points, [lines]",
        np.concatenate((places, bends, label_places)),
        np.concatenate((links, circle)),
        [*names[:n], *circle_labels, *line_names[:-1]],
        [0] * n + [HIDDEN] * (CIRCLE_BENDS + len(links)),
        width=400,
    )
    graph = Diagram("Heawood graph", columns(n, n), heawood.graph.edges(), names, heawood.kind)
    return Evidence(claims, diagrams=(plane, graph))


def _line_through(heawood: Topology, points: list[int]) -> str:
    """The name of the line through these points of the Fano plane."""
    lines: list[set[int]] = [{*heawood.graph.neighbours(point).tolist()} for point in points]
    (line,) = set.intersection(*lines)
    return _names(heawood)[line]


def _fano_places(names: list[str]) -> Places:
    """The places of the points: corners and middles of a triangle, and its centre."""
    at = {name: (sqrt(3) * x, y + 0.0) for name, x, y in CORNERS}
    for middle, ends in (("110", ("100", "010")), ("101", ("100", "001")), ("011", ("010", "001"))):
        (a, b), (c, d) = (at[end] for end in ends)
        at[middle] = ((a + c) / 2, (b + d) / 2)
    return np.array([at[name] for name in names])


def subplanes(_quick: bool) -> Evidence:
    """Figure 2: the layout of G_4 in three subplanes."""
    pn = build_topology("pn", {"q": 4})
    racks = layout(pn, "subplanes")
    between = links_between(pn.graph, racks)
    claims = [PaperClaim("subplanes", 3, len(racks.names))]
    for rack in range(len(racks.names)):
        inside = racks.members(rack)
        links = pn.graph.edges()
        inner = links[(racks.rack[links] == rack).all(axis=1)]
        points = int((pn.kind[inside] == 0).sum())
        claims += [
            PaperClaim(f"points of subplane {rack + 1}", 7, points),
            PaperClaim(f"vertices of subplane {rack + 1}", 14, len(inside)),
            PaperClaim(
                f"its links, those of G_2, degree 3: {rack + 1}", 21, int(between[rack, rack])
            ),
            PaperClaim(
                f"its smallest degree: {rack + 1}", 3, int(np.bincount(inner.ravel())[inside].min())
            ),
            PaperClaim(
                f"its pairs of points on one of its lines, so that it is G_2: {rack + 1}",
                7 * 6 // 2,
                pairs_on_one_line(inner),
            ),
        ]
    places = np.zeros((pn.graph.order, 2))
    for rack in range(3):
        inside = racks.members(rack)
        side = pn.kind[inside]
        place = np.arange(7)
        places[inside[side == 0]] = np.stack((np.full(7, rack * 3.0), place), axis=1)
        places[inside[side == 1]] = np.stack((np.full(7, rack * 3.0 + 1.6), place), axis=1)
    edges = pn.graph.edges()
    faint = (racks.rack[edges[:, 0]] != racks.rack[edges[:, 1]]).tolist()
    numbers = str.maketrans("0123", "01AB")
    names = [name.translate(numbers) for name in _names(pn)]
    picture = Diagram("G_4 in three subplanes", places, edges, names, pn.kind, faint, width=560)
    return Evidence(tuple(claims), diagrams=(picture,))


def pairs_on_one_line(links: NDArray[np.integer]) -> int:
    """Pairs of points that are on exactly one line, of int[L, 2] that join points and lines."""
    points, lines = (np.unique(side, return_inverse=True)[1] for side in links.T)
    on = np.zeros((int(points.max()) + 1, int(lines.max()) + 1), np.int64)
    on[points, lines] = 1
    return int((np.triu(on @ on.T, 1) == 1).sum())


def modified_incidence(_quick: bool) -> Evidence:
    """Figure 3: the incidence graph G_2, and the modified one, which is PolarFly's."""
    heawood, demi = build_topology("pn", {"q": 2}), build_topology("polarfly", {"q": 2})
    names = _names(demi)
    degrees = demi.graph.degrees
    near = sorted(names[v] for v in demi.graph.neighbours(names.index("001")))
    claims = (
        PaperClaim("vertices", 7, demi.graph.order),
        PaperClaim("degree of 001", 3, int(degrees[names.index("001")])),
        PaperClaim("neighbours of 001: 100, 110 and 010", 1, float(near == ["010", "100", "110"])),
        PaperClaim("degree of 110", 2, int(degrees[names.index("110")])),
        PaperClaim("Theorem 3.10: u of q = 2", 11 / 12, uniform(demi).utilisation),
    )
    left = Diagram("G_2", columns(7, 7), heawood.graph.edges(), _names(heawood), heawood.kind)
    right = Diagram("Modified G_2", ring(7), demi.graph.edges(), names, demi.kind)
    return Evidence(claims, diagrams=(left, right))


def small_graphs(_quick: bool) -> Evidence:
    """Figure 4: graphs of average distance up to 2."""
    three, field, square = turan(9, 3), paley(13), hamming(4)
    twice = 2 * np.arange(13) % 13  # 2 is no square modulo 13
    ends = int(square.sum(axis=1).max())
    claims = (
        PaperClaim("Turán(9, 3): diameter", 2, diameter_of(three)),
        *(
            PaperClaim(
                f"Turán graph, r = {r}: lim k̄ = 1 + 1/r",
                1 + 1 / r,
                mean_distance(turan(1200, r)),
                reading_error=NEAR_A_LIMIT,
            )
            for r in range(2, 7)
        ),
        PaperClaim("Paley(13): diameter", 2, diameter_of(field)),
        *(
            PaperClaim(f"Paley graph, q = {q}: k̄ is its limit", 1.5, mean_distance(paley(q)))
            for q in (13, 101)
        ),
        PaperClaim(
            "Paley graph: isomorphic to its complement: how many ends of links n ↦ 2n mod 13 maps"
            " onto ends of the complement's",
            int(field.sum()),
            int((field & complement(field)[np.ix_(twice, twice)]).sum()),
        ),
        PaperClaim("Hamming graph: diameter", 2, diameter_of(square)),
        PaperClaim("Hamming graph: N = Δ²/4 + Δ + 1", ends**2 / 4 + ends + 1, len(square)),
        PaperClaim(
            "Hamming graph, n = 4: k̄ = 2 - 2/n - 1/n²",
            2 - 2 / 4 - 1 / 16,
            mean_distance(square),
            mistake=HAMMING_MISTAKE,
        ),
    )
    grid = np.stack(np.divmod(np.arange(16), 4), axis=1)[:, ::-1] + 0.0
    bent = grid + 0.22 * np.sin(grid[:, ::-1] * 2.0)
    diagrams = (
        Diagram("Turán(9, 3)", ring(9), np.argwhere(np.triu(three)), kinds=np.arange(9) // 3),
        Diagram("Paley(13)", ring(13), np.argwhere(np.triu(field)), [str(n) for n in range(13)]),
        Diagram("Hamming, n = 4", bent, np.argwhere(np.triu(square))),
    )
    return Evidence(claims, diagrams=diagrams)


BUILT_MMS = (5, 7, 8, 9, 11, 13, 17, 19, 23)
"""The q of MMS graphs that are built."""
LARGE_PRIME = 65_537
"""A q for which MMS graphs are near their limits."""


def mms_orders(_quick: bool) -> Evidence:
    """Figure 5: vertices of the MMS graph over the Moore bound."""
    shares = {q: 2 * q * q / moore_bound(degree(q), 2) for q in _prime_powers(3, 128)}
    built = {q: counted(matrix_of(build_topology("slimfly", {"q": q}).graph)) for q in BUILT_MMS}
    alike = [q for q, shape in built.items() if shape == (2 * q * q, degree(q), 2)]
    claims = (
        PaperClaim("Δ = 7: the MMS graph of q = 5, built", 7, built[5].degree),
        PaperClaim(
            "is the Hoffman–Singleton graph, a Moore graph: vertices over the bound of its degree"
            " and diameter",
            1,
            built[5].moore_part(),
        ),
        PaperClaim(
            f"limit 8/9, at q = {LARGE_PRIME:,}",
            8 / 9,
            2 * LARGE_PRIME**2 / moore_bound(degree(LARGE_PRIME), 2),
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
        f" q = {', '.join(map(str, alike))}.",
    )
    return Evidence(claims, panels=(_of_mms("vertices over the Moore bound", curves),), setup=setup)


def _of_mms(y_label: str, curves: tuple[Curve, ...]) -> Panel:
    """A plot of a quantity of MMS graphs over their vertices."""
    return Panel("MMS graphs", "vertices", y_label, curves, 1.05, bottom=0.6, logarithmic="x")


def _eight_ninths(x: tuple[float, ...]) -> Curve:
    """The limit 8/9, as a line from the first to the last of these x."""
    return Curve("8/9", (x[0], x[-1]), (8 / 9, 8 / 9), "limit")


def mms_utilisation(_quick: bool) -> Evidence:
    """Figure 6: utilisation of the links of the MMS graph; by formula, and some measured."""
    shape = growth("Slim Fly MMS").shape
    by_formula = {q: shape(q).utilisation for q in _prime_powers(5, 128)}
    pairs = [
        (q, next((r for r in by_formula if r > q and r % 4 == 1), q))
        for q in by_formula
        if q % 4 != 1
    ]
    measured = {q: uniform(build_topology("slimfly", {"q": q})).utilisation for q in BUILT_MMS}
    farthest = max(abs(measured[q] - by_formula[q]) for q in BUILT_MMS)
    claims = (
        PaperClaim("u = 1 for q = 5, the Hoffman–Singleton graph", 1, measured[5]),
        PaperClaim("limit 8/9, at q = 2,048", 8 / 9, shape(2048).utilisation, reading_error=0.001),
        PaperClaim(
            "a little worse where q mod 4 is not 1: largest u over that of the next q where it is",
            1,
            max(by_formula[q] / by_formula[after] for q, after in pairs if after > q),
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
        f" {farthest:.1g} at most: q = {', '.join(map(str, BUILT_MMS))}.",
    )
    return Evidence(claims, panels=(_of_mms("utilisation u", curves),), setup=setup)


def costs(_quick: bool) -> Evidence:
    """Figure 7: k̄/u of networks of routers with up to 64 ports."""
    claims = []
    for family in GROWTHS:
        ratio, which = _over_the_bound(family)
        says = f"{family.name} attains the bound: k̄/u over that of an ideal graph, {which}"
        if family.name == "demi-PN":
            large = family.shape(2048)
            more = 100 * (ratio - 1)
            claims.append(
                PaperClaim(
                    f"{family.name} attains the bound: k̄/u over that of an ideal graph, q = 2,048",
                    1,
                    cost(large) / ideal_mean(large),
                    reading_error=NEAR_A_LIMIT,
                    interpretation=f"Read as of the limit. Up to 64 ports the largest is {more:.1f}"
                    " % above it.",
                )
            )
        elif family.name == "Delorme, quadrangles":
            why = f"{100 * (ratio - 1):.1f} % above it at q = 8. {LOADS_OF_DELORME}"
            says = f"{family.name} attains the bound: k̄/u over that of an ideal graph, in the limit"
            claims.append(PaperClaim(says, 1, None, reason=why))
        elif family.optimal:
            claims.append(PaperClaim(says, 1, ratio))
        elif family.name in ("Slim Fly MMS", "dragonfly"):
            says = f"{family.name} does not attain the bound: k̄/u over that of an ideal graph"
            claims.append(PaperClaim(f"{says}, {which}", 1, ratio, ">"))
        else:
            says = f"{family.name} is not below the bound: k̄/u over that of an ideal graph"
            claims.append(PaperClaim(f"{says}, {which}", 1, ratio, ">="))
    mms, demi = (cost(growth(name).shape(2048)) for name in ("Slim Fly MMS", "demi-PN"))
    claims.append(
        PaperClaim(
            "MMS is about 9/8 of demi-PN, at q = 2,048", 9 / 8, mms / demi, reading_error=0.001
        )
    )
    shapes = {family.name: family.members() for family in GROWTHS if family.computed}
    every = [shape for members in shapes.values() for shape in members]
    claims += [
        PaperClaim(
            "dragonfly supersedes the 3D Hamming graph: least T over that of one of as many ports",
            1,
            _more_hosts(shapes["Hamming 3D"], shapes["dragonfly"]),
            ">=",
            interpretation="Read as of scale, with as many ports. In k̄/u, which the figure draws,"
            " the 3D Hamming graph is below the dragonfly of as many compute nodes.",
        ),
        PaperClaim(
            "two points only of Delorme's graph: those of R up to 64",
            2,
            sum(4 * (q + 1) / 3 <= LARGEST_ROUTER for q in POLAR),
            mistake=DELORME_MISTAKE,
        ),
        PaperClaim(
            "all curves are above the bound: most compute nodes over those of an ideal graph of"
            " this k̄/u and 64 ports",
            1,
            max(_hosts(shape) / ideal_hosts(cost(shape)) for shape in every),
            "<=",
        ),
    ]
    means = tuple(np.linspace(1, 5.6, 461).tolist())
    hosts = (2.0, *map(ideal_hosts, means))  # two routers, and more, are a complete graph
    curves = (*_by_hosts(shapes), Curve("ideal, R = 64", hosts, (1.0, *means), "limit"))
    panel = Panel("Routers of up to 64 ports", HOSTS, "k̄/u", curves, logarithmic="x")
    setup = (SUPERSEDED, DELORME_DRAWN, *BY_FORMULA)
    return Evidence(tuple(claims), panels=(panel,), setup=setup)


def _over_the_bound(family: NetworkGrowth) -> tuple[float, str]:
    """k̄/u of a member over that of an ideal graph of its order and degree, and which member it is.

    Of the largest member of R up to 64 by formulas. Where there are none, or these are those of the
    ideal graph, so that the ratio would show nothing: of the largest member that is built, by what
    is measured.
    """
    largest = family.members()[-1] if family.computed else None
    if largest and (largest.utilisation != 1 or largest.mean != ideal_mean(largest)):
        which = f"by formulas, of the largest with R up to {LARGEST_ROUTER}"
        return cost(largest) / ideal_mean(largest), which
    *_, one = measured(family.name)
    ratio = one.mean / one.utilisation / ideal_mean(family.shape(one.size))
    return ratio, f"built, of n = {one.size}"


def scalability(_quick: bool) -> Evidence:
    """Figure 8: compute nodes over the ports of routers."""
    shapes = {family.name: family.members() for family in GROWTHS if family.computed}
    best = sorted((g for g in GROWTHS if g.optimal), key=lambda g: cost(g.members()[-1]))
    large = growth("PN").shape(2048).quantities()
    entry = {"family": "oft", "radix": 256, "parameters": {"q": 127}}
    tree = configuration(entry, like=None)
    claims = (
        PaperClaim("T = 0.29 R³ of PN", 0.29, large["T"] / large["R"] ** 3, rounding=0.005),
        PaperClaim(
            "T = 0.25 R³ of the orthogonal fat tree",
            0.25,
            tree.total_hosts / tree.router_ports**3,
            rounding=0.005,
        ),
        PaperClaim(
            "complete graph: T = ((R+1)/2)² ≈ 576 at R = 48",
            576,
            max(n * n for n in range(2, 99) if 2 * n - 1 <= 48),
            interpretation="With Δ0 = N, as in Table III, of K24 with R = 47. By formula (1) Δ0 is"
            " N - 1: K25 has R = 48 and T = 600.",
        ),
        PaperClaim(
            "optimal lines are sorted by k̄/u, computed of their largest members: least T of one"
            " over that of the line below it, of as many ports",
            1,
            min(_more_hosts(shapes[a.name], shapes[b.name]) for a, b in pairwise(best)),
            ">=",
        ),
    )
    curves = tuple(
        Curve(name, tuple(map(_ports, members)), tuple(map(_hosts, members)))
        for name, members in shapes.items()
    )
    panel = Panel("Scalability", "router ports R", HOSTS, curves, logarithmic="y")
    return Evidence(claims, panels=(panel,), setup=BY_FORMULA)


def _more_hosts(lower: list[GraphShape], upper: list[GraphShape]) -> float:
    """The least ratio of T of a network of `upper` to the most T of `lower` with at most its R."""
    return min(
        _hosts(shape) / max(_hosts(other) for other in lower if _ports(other) <= _ports(shape))
        for shape in upper
        if _ports(lower[0]) <= _ports(shape)
    )


def three_networks(_quick: bool) -> Evidence:
    """Figure 9: k̄ and k̄/u of Slim Fly, PN and demi-PN."""
    shapes = {name: growth(name).members() for name in ("Slim Fly MMS", "PN", "demi-PN")}
    large_mms, large_demi = (
        [shape for shape in shapes[name] if _hosts(shape) > 1000]
        for name in ("Slim Fly MMS", "demi-PN")
    )
    built = [*measured("PN")]
    difference = max(abs(pn.mean / pn.utilisation - pn.mean) for pn in built)
    every_demi = shapes["demi-PN"]
    compared_mms = _within_sizes(shapes["Slim Fly MMS"], every_demi)
    above_line = _above_line(compared_mms, every_demi)
    beaten = [mms for mms in compared_mms if _has_larger_and_closer(every_demi, mms)]
    large = growth("Slim Fly MMS").shape(2048)
    claims = (
        PaperClaim(
            f"both curves coincide for PN: largest difference, built up to q = {built[-1].size}",
            0,
            difference,
        ),
        PaperClaim(
            "MMS has the smallest average distance: how many are below every demi-PN at least as"
            " large",
            len(compared_mms),
            len(compared_mms) - len(beaten),
            interpretation="Read as of networks. The line that joins two demi-PNs in the figure,"
            f" where none is, is below MMS of q = {', '.join(str(_q_of(s)) for s in above_line)}.",
        ),
        PaperClaim(
            "and 8/9 of the largest size, which demi-PN attains: of the same degree, 3072",
            8 / 9,
            large.order / (large.degree**2 - large.degree + 1),
            reading_error=0.001,
        ),
        PaperClaim(
            "above 1000 compute nodes demi-PN is the cheapest: least k̄/u of MMS over its largest",
            1,
            min(map(cost, large_mms)) / max(map(cost, large_demi)),
            ">",
        ),
        PaperClaim(
            "and in scale: its most compute nodes over those of MMS, R up to 64",
            1,
            max(map(_hosts, large_demi)) / max(map(_hosts, large_mms)),
            ">",
        ),
        PaperClaim(
            "PN scales to almost 10⁵ compute nodes: its largest",
            1e5,
            _hosts(shapes["PN"][-1]),
            reading_error=5e3,
            reason="With R up to 64 the largest has q = 43, R = 61.6. With q = 47 R is 67.2. By"
            " T = .29 R³ of §VI it would be 76,000.",
        ),
    )
    curves = (*_by_hosts(shapes, ": k̄/u"), *_by_hosts(shapes, ": k̄", lambda shape: shape.mean))
    panel = Panel("Distance and cost", HOSTS, "k̄, k̄/u", curves, bottom=1.5, logarithmic="x")
    return Evidence(claims, panels=(panel,), setup=BY_FORMULA)


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


def full_mesh(_quick: bool) -> Evidence:
    """Figure 10: the incidence graph of K_4, and the multi-layer full mesh."""
    mesh = build_topology("mlfm", {"n": 4})
    leaves = mesh.of_kind("leaf")
    pairs = np.argwhere(np.triu(np.ones((4, 4)), 1))
    ends = np.stack((pairs.ravel(), 4 + np.repeat(np.arange(6), 2)), axis=1)
    claims = (
        PaperClaim("spines: n(n-1)/2", 6, len(mesh.of_kind("spine"))),
        PaperClaim("leaves: n(n-1)", 12, len(leaves)),
        PaperClaim("Δ = n - 1", 3, int(mesh.graph.degrees[leaves].max())),
        PaperClaim("R = 2Δ", 6, int(mesh.graph.degrees[mesh.of_kind("spine")].max())),
        PaperClaim("between leaves", 2, or_nan(distribution(mesh).diameter)),
    )
    corners = ring(4)
    middles = corners[pairs].mean(axis=1)
    middles[DIAGONALS] += DIAGONAL_SHIFTS  # they cross in one point
    diagrams = (
        Diagram(
            "Incidence graph of K_4",
            np.concatenate((corners, middles)),
            ends,
            kinds=[0] * 4 + [1] * 6,
        ),
        Diagram("K_4: leaves and spines", columns(4, 6), ends, kinds=[0] * 4 + [1] * 6),
        _with_hosts("MLFM", mesh, columns(12, 6), [(leaves, -1)]),
    )
    return Evidence(claims, diagrams=diagrams)


def orthogonal_fat_tree(_quick: bool) -> Evidence:
    """Figure 11: the orthogonal fat tree of q = 2."""
    tree = build_topology("oft", {"q": 2})
    spread, leaves, load = distribution(tree), tree.endpoints, uniform(tree)
    columns_of = np.bincount(tree.coordinates[:, 0])
    claims = (
        PaperClaim("routers", 21, tree.graph.order),
        PaperClaim("in each of three columns", 7, int(columns_of.min())),
        PaperClaim("Δ = q + 1", 3, int(tree.graph.degrees[leaves].max())),
        PaperClaim(
            "Δ0 = q + 1, by §VI's formula Δ0 = (u/k̄)(2Δ - δ), which generalises (1)",
            3,
            load.full_throughput_hosts,
        ),
        PaperClaim("T = 2(q+1)(q²+q+1)", 42, int(leaves.sum()) * load.full_throughput_hosts),
        PaperClaim("k̄ between leaves", 2, or_nan(spread.mean)),
        PaperClaim("u", 1, load.utilisation),
    )
    first, last = np.flatnonzero(leaves).reshape(2, -1)
    sides = [(first, -1), (last, 1)]
    picture = _with_hosts("Orthogonal fat tree, q = 2", tree, columns(7, 7, 7), sides)
    return Evidence(claims, diagrams=(picture,))


def _with_hosts(
    title: str, tree: Topology, places: Places, sides: Iterable[tuple[NDArray[np.int64], int]]
) -> Diagram:
    """The routers, and at each leaf as many compute nodes as it has links."""
    links: NDArray[np.integer] = tree.graph.edges()
    for leaves, side in sides:
        hosts_of_leaf = int(tree.graph.degrees[leaves].max())
        places, links = with_hosts(places, links, leaves, hosts_of_leaf, side)
    kinds = [*tree.kind, *[HOST] * (len(places) - tree.graph.order)]
    return Diagram(title, places, links, kinds=kinds, width=500, radius=4)


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
    """A curve over compute nodes for each family.

    Args:
        shapes: the members of each family, by its name.
        suffix: what follows the family's name in the name of its curve.
        value: the quantity that is drawn.
    """
    for name, members in shapes.items():
        yield Curve(name + suffix, tuple(map(_hosts, members)), tuple(map(value, members)))


EXHIBITS = [
    *exhibits_of(
        "projective",
        "table",
        {
            notation: "Notation used in the paper",
            limits: "Topological parameters of optimal topologies and some references",
            structural_parameters: "Structural parameters of optimal known topologies",
            ten_thousand: "Example networks with about 10,000 compute nodes",
            twenty_five_thousand: "Example networks with about 25,000 compute nodes",
            indirect_examples: "Example multi-layer full mesh and orthogonal fat trees",
        },
    ),
    *exhibits_of(
        "projective",
        "fig",
        {
            fano: "The Fano plane, and its incidence graph",
            subplanes: "A layout of G_4 in three subplanes",
            modified_incidence: "The incidence graph G_2, and the modified one",
            small_graphs: "The Turán, Paley and Hamming graphs",
            mms_orders: "Vertices of the MMS graph: 8/9 of the Moore bound",
            mms_utilisation: "Link utilisation of the MMS graph: 8/9",
            costs: "The measure of cost k̄/u over compute nodes, routers of 64 ports",
            scalability: "Scalability of the topologies",
            three_networks: "k̄ and k̄/u of Slim Fly, PN and demi-PN",
            full_mesh: "The incidence graph of K_4, and the multi-layer full mesh",
            orthogonal_fat_tree: "The orthogonal fat tree of q = 2",
        },
    ),
]
"""Six tables and eleven figures."""
