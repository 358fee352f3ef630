"""Figures 1 to 7 and 13 of the PolarFly paper, about its graph: its sizes, its layout, its growth.

Each function with the parameter `_quick` reproduces a figure and returns its claims and pictures as
`Evidence`; `polarfly_paper` lists them. ER_q is PolarFly's graph; a quadric is a vertex with a loop
in it. V1 are the neighbours of quadrics, and V2 all other vertices. The layout has a cluster of the
quadrics and q fans. A fan is a centre and triangles that have it in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isqrt, log

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.plots import Curve, Panel, efficiency
from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.comparison.designs import designs_of_radixes, families
from compilers.topology.families import build_topology
from compilers.topology.family import Design
from compilers.topology.family import moore_bound as moore
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, links_between
from compilers.topology.polarity import cross, order
from compilers.topology.replicated_clusters import expand
from extensions.baselines import slimfly
from extensions.papers.diagram import HIDDEN, HOST, Diagram, Places, ring
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan
from extensions.papers.graphs import Adjacency, GraphCounts, counts_of, matrix_of
from extensions.papers.polarfly.polarfly_measures import TITLES

KINDS = "Red: quadrics; light green: centres of fans; green: V1; blue: V2."
"""What the colours of vertices mean, in words."""
LEAST_COMMON = 7
"""The degree above which PolarFly and Slim Fly are compared."""
CENTRE = 6
"""The number of the colour of centres."""
COPIED = 3
"""The number of the colour of copied vertices."""
LAYERED_WIDTH = 640
"""The width of figure 6 in pixels."""
WIDTH_OF_FANS = 1000
"""The width of figure 13 in pixels."""
LINE_END = HOST
"""The colour of the named ends of the lines in figure 3: white."""
OBLIQUE = np.array([[0.9, -0.25], [-0.45, -0.35], [0.0, -0.95]])
"""By row, where the axes x, y and z of figure 3 lead on paper, to the right and downwards. It is an
oblique view from above."""


def degrees(_quick: bool) -> Evidence:
    """Figure 1: feasible degrees of PolarFly and Slim Fly."""
    most = 10_000_000
    powers = prime_powers(most)
    polarfly, slim_fly = powers + 1, slim_fly_degrees(powers[1:])
    polarfly, slim_fly = polarfly[polarfly <= most], slim_fly[slim_fly <= most]
    polarfly_to_128, slim_fly_to_128 = polarfly[polarfly <= 128], slim_fly[slim_fly <= 128]
    shared = np.intersect1d(polarfly_to_128, slim_fly_to_128)
    ratio = len(polarfly) / len(slim_fly)
    claims = (
        PaperClaim(
            "asymptotically 50 % more degrees",
            1.5,
            ratio * log(most) / log(2 * most / 3),
            rounding=0.005,
            interpretation=f"Up to degree {most:,} there are {100 * (ratio - 1):.0f} % more. Slim"
            " Fly's q go up to 2/3 of it, where prime powers are denser: one in ln(q). Ours is the"
            " ratio without this factor.",
        ),
        *(PaperClaim(f"radix {k} is feasible", 1, float(k in polarfly)) for k in (32, 48, 62, 128)),
        PaperClaim(
            "without much overlap: of our radixes up to 128, at most half are also Slim Fly's",
            0.5,
            len(shared) / len(polarfly_to_128),
            "<=",
            interpretation=f"Read as half of them at most; {len(shared)} of"
            f" {len(polarfly_to_128)} are.",
        ),
    )
    limit = np.arange(3, 129)
    curves = tuple(
        Curve(name, tuple(limit.tolist()), tuple(np.searchsorted(radixes, limit, "right").tolist()))
        for name, radixes in (("PolarFly", polarfly), ("Slim Fly", slim_fly))
    )
    marks = tuple(
        Curve(name, tuple(feasible.tolist()), (line,) * len(feasible))
        for line, name, feasible in (
            (2.0, "PolarFly", polarfly_to_128),
            (1.0, "Slim Fly", slim_fly_to_128),
        )
    )
    panels = (
        Panel("Feasible degrees", "largest radix", "degrees up to it", curves),
        Panel("Which they are", "radix", "", marks, top=3, ticks=("Slim Fly", "PolarFly")),
    )
    setup = ("Degrees are by formulas, of prime powers q: q + 1, and (3q - δ)/2 of Slim Fly.",)
    return Evidence(claims, panels=panels, setup=setup)


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
    degrees = np.sort((3 * powers - ((powers + 1) % 4 - 1)) // 2)
    return degrees[np.diff(degrees, prepend=0) > 0]  # of millions; `np.unique` takes longer


DRAWN_FAMILIES = ("polarfly", "slimfly", "hyperx")
"""The families of figure 2."""
LARGEST_BUILT_RADIX = 20
"""The radix up to which networks of figure 2 are built, and their orders and diameters counted."""
LARGE_PRIME = 65_537
"""A prime so large that the part of the Moore bound is near its limit."""


def moore_bound(_quick: bool) -> Evidence:
    """Figure 2: the part of the Moore bound."""
    designs = [
        design
        for design in designs_of_radixes(range(3, 129), among=families([*DRAWN_FAMILIES]))
        if design.diameter == 2
    ]
    panel = efficiency(designs)[0]
    curve_of_family = {curve.name: curve for curve in panel.curves}
    percent_by_radix = {
        family: dict(zip(curve.x, curve.y, strict=True))
        for family, curve in curve_of_family.items()
    }
    petersen = counts_of(_petersen())
    singleton = counts_of(matrix_of(build_topology("slimfly", {"q": 5}).graph))
    claims = (
        _moderate_radix_claim(percent_by_radix["polarfly"]),
        *_moore_limit_claims(),
        *_moore_graph_claims("Petersen", petersen, GraphCounts(order=10, degree=3, diameter=2)),
        *_moore_graph_claims(
            "Hoffman–Singleton", singleton, GraphCounts(order=50, degree=7, diameter=2)
        ),
        *_moore_order_claims(percent_by_radix),
    )
    curves = (
        *(replace(curve_of_family[family], name=TITLES[family]) for family in DRAWN_FAMILIES),
        Curve("Petersen", (3.0,), (100 * petersen.moore_part(),)),
        Curve("Hoffman–Singleton", (7.0,), (100 * singleton.moore_part(),)),
    )
    setup = (_sizes_by_formula(designs),)
    return Evidence(claims, panels=(replace(panel, curves=curves),), setup=setup)


def _moderate_radix_claim(percent_by_radix: Mapping[float, float]) -> PaperClaim:
    """The claim on PolarFly at moderate radixes, by its per cent of the bound at each radix."""
    last_below_96 = max(radix for radix, percent in percent_by_radix.items() if percent <= 96)
    return PaperClaim(
        "more than 96 % at moderate radixes: at radix 32",
        96,
        percent_by_radix[32.0],
        ">",
        interpretation=f"Read as of radix 32. It is so above radix {last_below_96:g}.",
    )


def _moore_limit_claims() -> tuple[PaperClaim, ...]:
    """The claims on the parts of the bound in the limit, by formulas of a large prime."""
    return (
        PaperClaim(
            f"asymptotically all of it, at q = {LARGE_PRIME:,}",
            100,
            100 * order(LARGE_PRIME) / moore(LARGE_PRIME + 1, 2),
            reading_error=0.01,
        ),
        PaperClaim(
            f"Slim Fly: asymptotically 8/9, at q = {LARGE_PRIME:,}",
            100 * 8 / 9,
            100 * slimfly.order(LARGE_PRIME) / moore(slimfly.degree(LARGE_PRIME), 2),
            reading_error=0.01,
        ),
    )


def _moore_graph_claims(
    name: str, built: GraphCounts, printed: GraphCounts
) -> tuple[PaperClaim, ...]:
    """The claims that a graph, which is built here, attains the bound of its diameter."""
    return (
        PaperClaim(f"{name}, built: vertices", printed.order, built.order),
        PaperClaim(f"{name}, built: radix", printed.degree, built.degree),
        PaperClaim(
            f"{name}, built: achieves the bound of its diameter", 100, 100 * built.moore_part()
        ),
    )


def _moore_order_claims(
    percent_by_radix: Mapping[str, Mapping[float, float]],
) -> tuple[PaperClaim, ...]:
    """The claims that PolarFly is above other families.

    Args:
        percent_by_radix: the per cent of the bound of each family at each radix.
    """
    polarfly, slim_fly, hyperx = (percent_by_radix[family] for family in DRAWN_FAMILIES)
    with_hyperx = set(polarfly) & set(hyperx)
    with_slim_fly = {radix for radix in set(polarfly) & set(slim_fly) if radix > LEAST_COMMON}
    return (
        PaperClaim(
            f"PolarFly is above HyperX at every degree of both up to {max(with_hyperx):g}: least"
            " ratio",
            1,
            min(polarfly[radix] / hyperx[radix] for radix in with_hyperx),
            ">",
        ),
        PaperClaim(
            f"PolarFly is above Slim Fly at every degree of both above {LEAST_COMMON}: least ratio",
            1,
            min(polarfly[radix] / slim_fly[radix] for radix in with_slim_fly),
            ">",
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


def geometry(_quick: bool) -> Evidence:
    """Figure 3: two lines, the planes perpendicular to them, and the line in which those meet."""
    line_0, line_1 = np.array([0.2, 0.3, 1.0]), np.array([1.0, -0.2, 0.25])
    meeting = np.cross(line_0, line_1)
    claims = (
        PaperClaim(
            "ER_7: pairs of lines without an m joined to both", 0, _pairs_without_meeting(7)
        ),
    )
    places: list[np.ndarray] = []
    links, labels = [], []
    for name, line in (("ℓ0", line_0), ("ℓ1", line_1), ("m", meeting)):
        unit = 1.6 * line / np.linalg.norm(line)
        links.append([len(places), len(places) + 1])
        places += [-unit, unit]
        labels += ["", name]
    faint = [False] * 3
    for line in (line_0, line_1):
        side_a = meeting / np.linalg.norm(meeting)  # two unit vectors in the perpendicular plane
        side_b = np.cross(side_a, line / np.linalg.norm(line))
        corners = [side_a + side_b, side_a - side_b, -side_a - side_b, -side_a + side_b]
        links += [[len(places) + k, len(places) + (k + 1) % 4] for k in range(4)]
        faint += [True] * 4
        places += corners
        labels += [""] * 4
    picture = Diagram(
        title="Lines and the planes perpendicular to them",
        places=np.array(places) @ OBLIQUE,
        links=np.array(links),
        labels=labels,
        kinds=[LINE_END if label else HIDDEN for label in labels],
        faint=faint,
    )
    return Evidence(claims, diagrams=(picture,))


def _pairs_without_meeting(q: int) -> int:
    """Pairs of vertices of ER_q whose cross product is not perpendicular to both, by its links."""
    graph = build_topology("polarfly", {"q": q}).graph
    perpendicular = np.eye(graph.order, dtype=np.bool_)  # where m is an end, a quadric, too
    perpendicular[graph.tails(), graph.targets] = True
    first, second = np.triu_indices(graph.order, 1)
    middle = cross(q, first.astype(np.int32), second.astype(np.int32))
    return int((~(perpendicular[middle, first] & perpendicular[middle, second])).sum())


def er3(_quick: bool) -> Evidence:
    """Figure 4: the dot-product construction of ER_3."""
    topology = build_topology("polarfly", {"q": 3})
    names = ["".join(map(str, row)) for row in topology.coordinates.tolist()]
    neighbours = {name: set(topology.graph.neighbours(v).tolist()) for v, name in enumerate(names)}
    counts = np.bincount(topology.kind, minlength=3).tolist()
    between = neighbours["001"] & neighbours["122"]
    claims = (
        PaperClaim("vertices", 13, topology.graph.order),
        PaperClaim(
            "[1, 1, 1] is adjacent to [0, 1, 2]", 1, float(names.index("012") in neighbours["111"])
        ),
        PaperClaim("quadrics, q + 1", 4, counts[0]),
        PaperClaim("V1, q(q+1)/2", 6, counts[1]),
        PaperClaim("V2, q(q-1)/2", 3, counts[2]),
        PaperClaim("(1, 1, 0) alone is between (0, 0, 1) and (1, 2, 2)", 1, len(between)),
        PaperClaim("and it is (1, 1, 0)", 1, float(between == {names.index("110")})),
    )
    position = np.argsort(np.argsort(names))
    edges = topology.graph.edges()
    picture = Diagram("ER_3", ring(13)[position], edges, names, kinds=topology.kind)
    return Evidence(claims, diagrams=(picture,))


def rack_layout(_quick: bool) -> Evidence:
    """Figure 5: the quadric cluster and q fans, and the links between them."""
    topology = build_topology("polarfly", {"q": 7})
    racks = layout(topology)
    between = links_between(topology.graph, racks)
    q = 7
    between_fans = between[1:, 1:][~np.eye(q, dtype=np.bool_)]
    adjacency = np.zeros((topology.graph.order,) * 2, np.int64)
    adjacency[topology.graph.tails(), topology.graph.targets] = 1
    fans = [np.ix_(racks.members(rack), racks.members(rack)) for rack in range(1, q + 1)]
    triangles = [int(np.trace(np.linalg.matrix_power(adjacency[fan], 3))) // 6 for fan in fans]
    claims = (
        PaperClaim("clusters", q + 1, len(racks.names)),
        PaperClaim(
            "links between a fan and the quadrics, fewest", q + 1, int(between[0, 1:].min())
        ),
        PaperClaim("and most", q + 1, int(between[0, 1:].max())),
        PaperClaim("links between two fans, fewest", q - 2, int(between_fans.min())),
        PaperClaim("and most", q - 2, int(between_fans.max())),
        PaperClaim("links inside the quadric cluster", 0, int(between[0, 0])),
        PaperClaim("links in a fan, fewest", 3 * (q - 1) // 2, int(np.diag(between)[1:].min())),
        PaperClaim("and most", 3 * (q - 1) // 2, int(np.diag(between)[1:].max())),
        PaperClaim("triangles in a fan, fewest", (q - 1) // 2, min(triangles)),
        PaperClaim("and most", (q - 1) // 2, max(triangles)),
    )
    places = np.concatenate(([[0.0, 0.0]], ring(q)))
    links = np.array(list(combinations(range(q + 1), 2)))
    labels = [name if n == 0 else f"C{n}" for n, name in enumerate(["C0: quadrics"] + [""] * q)]
    kinds = [0] + [1] * q
    picture = Diagram("Clusters of ER_7", places, links, labels, kinds=kinds, radius=12)
    return Evidence(claims, diagrams=(picture,), setup=("q = 7.",))


def er7(_quick: bool) -> Evidence:
    """Figure 6: the layout of ER_7, a fan's own links, and those to others."""
    topology = build_topology("polarfly", {"q": 7})
    racks = layout(topology)
    edges, fan = topology.graph.edges(), 3  # the fan that is drawn in front
    ends_in = racks.rack[edges]
    inside_fan = (ends_in == fan).all(axis=1)
    to_next_fan = (np.sort(ends_in, axis=1) == [fan, fan + 1]).all(axis=1)
    to_quadrics = (np.sort(ends_in, axis=1) == [0, fan]).all(axis=1)
    members, centre = racks.members(fan), int(racks.centre[fan])
    inner = edges[inside_fan]
    blades = inner[(inner != centre).all(axis=1)]
    claims = (
        PaperClaim("links of a fan", 9, len(inner)),
        PaperClaim("from its centre to all others", 6, int((inner == centre).any(axis=1).sum())),
        PaperClaim("its triangles, (q-1)/2", 3, len(blades)),
        PaperClaim(
            "that share the centre only: vertices of their other links",
            len(members) - 1,
            len(np.unique(blades)),
        ),
        PaperClaim("q - 2 = 5 links between two fans", 5, int(to_next_fan.sum())),
        PaperClaim("q + 1 = 8 links between a fan and the quadrics", 8, int(to_quadrics.sum())),
    )
    places, kinds = _layered_places(topology, racks), _colours(topology, racks)
    inside = Diagram(
        title="ER_7: a fan",
        places=places,
        links=edges,
        kinds=kinds,
        faint=(~inside_fan).tolist(),
        width=LAYERED_WIDTH,
    )
    faint = (~(to_next_fan | to_quadrics)).tolist()
    far_end = np.where(ends_in[:, 0] == fan, edges[:, 1], edges[:, 0])
    hues = topology.kind[far_end]
    title = "ER_7: from a fan to the quadrics and to another fan"
    outside = Diagram(
        title=title,
        places=places,
        links=edges,
        kinds=kinds,
        faint=faint,
        width=LAYERED_WIDTH,
        hues=hues,
    )
    setup = (
        f"{KINDS} The links of a fan are black; those to others have the colour of their end.",
    )
    return Evidence(claims, diagrams=(inside, outside), setup=setup)


def _colours(topology: Topology, racks: Layout) -> NDArray[np.integer]:
    """int[N]: colours of vertices by kind, of the centres of fans another one."""
    kinds = topology.kind.astype(np.int64)
    kinds[racks.centre[racks.centre >= 0]] = CENTRE
    return kinds


def _starting_quadric(topology: Topology, racks: Layout) -> int:
    """The quadric that all centres are joined to."""
    centres = set(racks.centre[1:].tolist())
    quadrics: list[int] = racks.members(0).tolist()
    return next(v for v in quadrics if centres == set(topology.graph.neighbours(v).tolist()))


def _layered_places(topology: Topology, racks: Layout) -> Places:
    """The places of fans next to each other, with the quadrics above them.

    In each fan, the vertices of V1 are on a ring around the centre, those of V2 on a ring below it.
    By the positions of a layout, ends of a rim's link are neighbours on a ring, or one is below the
    other. The starting quadric is in the middle.
    """
    places = np.zeros((topology.graph.order, 2))
    count = len(racks.names) - 1
    quadrics = [v for v in racks.members(0).tolist() if v != _starting_quadric(topology, racks)]
    quadrics.insert(len(quadrics) // 2, _starting_quadric(topology, racks))
    places[quadrics, 0] = np.linspace(count / 4, 3 * count / 4, len(quadrics)) + 0.5
    places[quadrics, 1] = -1.2
    for rack in range(1, count + 1):
        centre = int(racks.centre[rack])
        places[centre] = rack, 0
        rim = [v for v in racks.members(rack).tolist() if v != centre]
        for kind in (1, 2):
            of_kind = [v for v in rim if topology.kind[v] == kind]
            places[of_kind] = ring(3 * len(of_kind))[1::3] * [0.4, 0.22] + [rack, kind - 1]
    return places


def growth_methods(_quick: bool) -> Evidence:
    """Figure 7: a copied quadric cluster, and a copied fan."""
    base = build_topology("polarfly", {"q": 3})
    claims, diagrams = [], []
    for method, nodes, diameter in (("quadric", 4, 2), ("fan", 3, 3)):
        larger = expand(base, method, 1)
        graph = larger.topology.graph
        distances = distribution(larger.topology)
        links = {tuple(link) for link in graph.edges().tolist()}
        claims += [
            PaperClaim(f"ER_3, {method}: nodes added", nodes, graph.order - base.graph.order),
            PaperClaim(f"ER_3, {method}: diameter", diameter, or_nan(distances.diameter)),
            PaperClaim(
                f"ER_3, {method}: links that stay, none is rewired",
                base.graph.size,
                sum(tuple(link) in links for link in base.graph.edges().tolist()),
            ),
        ]
        edges = graph.edges()
        is_old = np.all(edges < base.graph.order, axis=1).tolist()
        racks = larger.layout.rack
        count = int(racks.max()) + 1
        centres = ring(count, 2.6)
        places = np.zeros((graph.order, 2))
        for rack in range(count):
            inside = np.flatnonzero(racks == rack)
            places[inside] = ring(len(inside), 0.7, tuple(centres[rack]))
        kinds = np.where(np.arange(graph.order) < base.graph.order, larger.topology.kind, COPIED)
        title = f"ER_3 with a copied {method} cluster"
        diagrams.append(Diagram(title, places, edges, kinds=kinds, faint=is_old))
    return Evidence(tuple(claims), diagrams=tuple(diagrams))


def er17_and_er19(_quick: bool) -> Evidence:
    """Figure 13: fans of ER_17, and of ER_19, next to each other."""
    claims, diagrams = [], []
    for q in (17, 19):
        topology = build_topology("polarfly", {"q": q})
        racks = layout(topology)
        edges = topology.graph.edges()
        inside = (racks.rack[edges[:, 0]] == racks.rack[edges[:, 1]]) & (
            racks.rack[edges[:, 0]] > 0
        )
        rims = inside & ~np.isin(edges, racks.centre).any(axis=1)
        kind = topology.kind[edges[rims]]
        share_between_kinds = float((kind[:, 0] != kind[:, 1]).mean())
        says = f"q = {q}: part of the rims of fans that join V1 and V2"
        claims.append(PaperClaim(says, 0.0 if q % 4 == 1 else 1.0, share_between_kinds))
        start = _starting_quadric(topology, racks)
        shown = inside | (edges == start).any(axis=1)
        places, kinds = _layered_places(topology, racks), _colours(topology, racks)
        title = f"ER_{q}: clusters"
        diagrams.append(
            Diagram(
                title=title,
                places=places,
                links=edges,
                kinds=kinds,
                faint=(~shown).tolist(),
                width=WIDTH_OF_FANS,
                radius=2.6,
            )
        )
        rack = q // 2 + 1
        fan = np.sort([start, *racks.members(rack)])
        links = np.searchsorted(fan, edges[np.isin(edges, fan).all(axis=1)])
        pairs = "V1 with V1, V2 with V2" if q % 4 == 1 else "V1 with V2"
        title = f"ER_{q}: a fan, {pairs}"
        fan_places = np.where(fan[:, None] == start, [rack, -1.2], places[fan]) * [3, 1]
        diagrams.append(Diagram(title, fan_places, links, kinds=kinds[fan]))
    setup = (f"{KINDS} Black: links of fans, and of the quadric that they start from.",)
    return Evidence(tuple(claims), diagrams=tuple(diagrams), setup=setup)
