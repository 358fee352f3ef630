"""Figures 1 to 4, 10 and 11 of the Projective Networks paper, which are drawings of graphs.

Each function with the parameter `_quick` reproduces a figure and returns its claims (what the paper
says, and what is computed here) and its pictures as `Evidence`; `projective_paper` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, links_between
from extensions.papers.diagram import (
    GREEN,
    HIDDEN,
    LEFT,
    RED,
    RIGHT,
    WHITE,
    Diagram,
    Places,
    columns,
    ring,
    with_hosts,
)
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan, truth_claim
from extensions.papers.graphs import complement, diameter_of, hamming, mean_distance, paley, turan
from extensions.papers.projective.network_growth import NEAR_A_LIMIT

CORNERS_AND_CENTRE = {
    "100": (-sqrt(3), 1.0),
    "010": (sqrt(3), 1.0),
    "001": (0.0, -2.0),
    "111": (0.0, 0.0),
}
"""Where four points of the Fano plane are drawn, as x to the right and y downwards."""
MIDDLES = {"110": ("100", "010"), "101": ("100", "001"), "011": ("010", "001")}
"""The points of the Fano plane that are drawn in the middle of a side of the triangle, by the two
corners of the side. The three points are a line, too, which is drawn as a circle."""
HAMMING_CORRECTION = (
    "The text has 2 - 2/n - 1/n². Of the n² - 1 others 2(n - 1) are at distance 1 and (n - 1)²"
    " at 2, so the mean is 2n/(n + 1); with the vertex itself, at distance 0, it is 2 - 2/n."
)
"""The correction of the mean distance of the Hamming graph in figure 4."""
DIAGONALS = [1, 4]
"""The indices of the two diagonals of K_4 among its six links, in the order of `np.argwhere`."""
DIAGONAL_SHIFTS = [[0.12, 0.1], [-0.12, 0.1]]
"""How far the vertices of these two links are drawn from the point where the diagonals cross."""
LARGE_TURAN = 1200
"""The vertices of Turán graphs that are near their limits."""
NAMES_IN_GF4 = str.maketrans("0123", "01AB")
"""The names that the paper's figure 2 gives the elements of GF(4): 0, 1, A and B, for the numbers 0
to 3 by which coordinates are stored. For `str.translate`."""
CIRCLE_BENDS = 48
"""The bends by which a circle is drawn."""
POINT, LINE = 0, 1
"""The kinds of the vertices of an incidence graph, as numbers in `Topology.kind`."""
SUBPLANE_WIDTH = 3.0
"""How far the columns of points of two neighbouring subplanes of figure 2 are from each other."""
LINES_FROM_POINTS = 1.6
"""How far the column of lines is to the right of the column of points, in a subplane."""
LABEL_POSITION = 0.2
"""Where the label of a straight line is, as a fraction of the way from its start to its end."""


def fano(_quick: bool) -> Evidence:
    """Figure 1: the Fano plane, and its incidence graph."""
    heawood = build_topology("pn", {"q": 2})
    names, n = _names(heawood), heawood.graph.order // 2  # n points, and then n lines
    line = n + names[n:].index("001")
    points_of_line = sorted(names[point] for point in heawood.graph.neighbours(line))
    distances = distribution(heawood)
    claims = (
        PaperClaim(statement="points and lines", printed=14, computed=heawood.graph.order),
        PaperClaim(statement="degree 3", printed=3, computed=int(heawood.graph.degrees.max())),
        truth_claim("on line 001: 100, 110 and 010", points_of_line == ["010", "100", "110"]),
        *(
            PaperClaim(
                statement=f"vertices at distance {distance}",
                printed=count,
                computed=distances.pairs[distance] / heawood.graph.order,
            )
            for distance, count in ((1, 3), (2, 6), (3, 4))
        ),
    )
    graph = Diagram(
        "Heawood graph",
        places=columns(n, n),
        links=heawood.graph.edges(),
        labels=names,
        vertex_colours=heawood.kind,
    )
    return Evidence(claims, diagrams=(_fano_drawing(heawood), graph))


def _fano_drawing(heawood: Topology) -> Diagram:
    """The Fano plane with six straight lines and a circle, which is the seventh line.

    A `Diagram` has straight links only. So the circle is drawn by links between bends, and the name
    of a line is the label of a hidden vertex beside it.

    Args:
        heawood: the incidence graph of the plane, its points first.
    """
    names, n = _names(heawood), heawood.graph.order // 2
    places = _fano_places(names[:n])
    # Six straight lines: the sides of the triangle, and from each corner to the middle opposite.
    ends_of_lines = [("100", "010"), ("100", "001"), ("010", "001")]
    ends_of_lines += [("100", "011"), ("010", "101"), ("001", "110")]
    links = [[names.index(end) for end in ends] for ends in ends_of_lines]
    # The circle through the three middles, around the centre.
    centre_to_middle = places[names.index("110")] - places[names.index("111")]
    bends = ring(CIRCLE_BENDS, float(np.hypot(*centre_to_middle)))
    bend = np.arange(CIRCLE_BENDS)
    circle = n + np.stack((bend, (bend + 1) % CIRCLE_BENDS), axis=1)
    middles = [names.index(middle) for middle in MIDDLES]
    line_names = [f"[{_line_through(heawood, points)}]" for points in (*links, middles)]
    label_places = np.array(
        [places[start] + LABEL_POSITION * (places[end] - places[start]) for start, end in links]
    )
    # The circle's name is at its third bend; the straight lines' are at vertices of their own.
    circle_labels = ["", "", line_names[-1], *[""] * (CIRCLE_BENDS - 3)]
    return Diagram(
        "Fano plane: points, [lines]",
        places=np.concatenate((places, bends, label_places)),
        links=np.concatenate((links, circle)),
        labels=[*names[:n], *circle_labels, *line_names[:-1]],
        vertex_colours=[RED] * n + [HIDDEN] * (CIRCLE_BENDS + len(links)),
        width=400,
    )


def _names(topology: Topology) -> list[str]:
    """The name of each vertex: its homogeneous coordinates, such as `011`."""
    return ["".join(map(str, row[-3:])) for row in topology.coordinates.tolist()]


def _line_through(heawood: Topology, points: list[int]) -> str:
    """The name of the line through these points of the Fano plane."""
    lines: list[set[int]] = [{*heawood.graph.neighbours(point).tolist()} for point in points]
    (line,) = set.intersection(*lines)
    return _names(heawood)[line]


def _fano_places(names: list[str]) -> Places:
    """The places of the points: the corners of a triangle, the middles of its sides, its centre."""
    place_of = dict(CORNERS_AND_CENTRE)
    for middle, (corner_a, corner_b) in MIDDLES.items():
        (x_a, y_a), (x_b, y_b) = place_of[corner_a], place_of[corner_b]
        place_of[middle] = ((x_a + x_b) / 2, (y_a + y_b) / 2)
    return np.array([place_of[name] for name in names])


def subplanes(_quick: bool) -> Evidence:
    """Figure 2: the layout of G_4 in three subplanes."""
    pn = build_topology("pn", {"q": 4})
    racks = layout(pn, "subplanes")
    between = links_between(pn.graph, racks)
    claims = [PaperClaim(statement="subplanes", printed=3, computed=len(racks.names))]
    for rack in range(len(racks.names)):
        members, edges = racks.members(rack), pn.graph.edges()
        links = edges[(racks.rack[edges] == rack).all(axis=1)]
        points = int((pn.kind[members] == POINT).sum())
        claims += [
            PaperClaim(statement=f"points of subplane {rack + 1}", printed=7, computed=points),
            PaperClaim(
                statement=f"vertices of subplane {rack + 1}", printed=14, computed=len(members)
            ),
            PaperClaim(
                statement=f"its links, those of G_2, degree 3: {rack + 1}",
                printed=21,
                computed=int(between[rack, rack]),
            ),
            PaperClaim(
                statement=f"its smallest degree: {rack + 1}",
                printed=3,
                computed=int(np.bincount(links.ravel())[members].min()),
            ),
            PaperClaim(
                statement=f"its pairs of points on one of its lines, so that it is G_2: {rack + 1}",
                printed=7 * 6 // 2,
                computed=pairs_on_one_line(links),
            ),
        ]
    return Evidence(tuple(claims), diagrams=(_subplane_drawing(pn, racks),))


def _subplane_drawing(pn: Topology, racks: Layout) -> Diagram:
    """G_4 with two columns for each subplane: its points, and its lines to their right."""
    places = np.zeros((pn.graph.order, 2))
    for rack in range(3):
        members = racks.members(rack)
        x_of_points = SUBPLANE_WIDTH * rack
        for kind, x in ((POINT, x_of_points), (LINE, x_of_points + LINES_FROM_POINTS)):
            of_kind = members[pn.kind[members] == kind]
            places[of_kind] = np.stack((np.full(7, x), np.arange(7)), axis=1)
    edges = pn.graph.edges()
    faint = (racks.rack[edges[:, 0]] != racks.rack[edges[:, 1]]).tolist()
    names = [name.translate(NAMES_IN_GF4) for name in _names(pn)]
    return Diagram(
        "G_4 in three subplanes",
        places=places,
        links=edges,
        labels=names,
        vertex_colours=pn.kind,
        faint=faint,
        width=560,
    )


def pairs_on_one_line(links: NDArray[np.integer]) -> int:
    """How many pairs of points have exactly one line in common.

    Args:
        links: int[L, 2], the point and the line that each link joins.
    """
    points, lines = (np.unique(side, return_inverse=True)[1] for side in links.T)
    incidence = np.zeros((int(points.max()) + 1, int(lines.max()) + 1), np.int64)
    incidence[points, lines] = 1
    lines_in_common = incidence @ incidence.T
    return int((np.triu(lines_in_common, 1) == 1).sum())


def modified_incidence(_quick: bool) -> Evidence:
    """Figure 3: the incidence graph G_2, and the modified one, which is PolarFly's."""
    heawood, demi = build_topology("pn", {"q": 2}), build_topology("polarfly", {"q": 2})
    names = _names(demi)
    degrees = demi.graph.degrees
    neighbours = sorted(names[v] for v in demi.graph.neighbours(names.index("001")))
    claims = (
        PaperClaim(statement="vertices", printed=7, computed=demi.graph.order),
        PaperClaim(statement="degree of 001", printed=3, computed=int(degrees[names.index("001")])),
        truth_claim("neighbours of 001: 100, 110 and 010", neighbours == ["010", "100", "110"]),
        PaperClaim(statement="degree of 110", printed=2, computed=int(degrees[names.index("110")])),
        PaperClaim(
            statement="Theorem 3.10: u of q = 2",
            printed=11 / 12,
            computed=uniform(demi).utilisation,
        ),
    )
    incidence_drawing = Diagram(
        "G_2",
        places=columns(7, 7),
        links=heawood.graph.edges(),
        labels=_names(heawood),
        vertex_colours=heawood.kind,
    )
    modified_drawing = Diagram(
        "Modified G_2",
        places=ring(7),
        links=demi.graph.edges(),
        labels=names,
        vertex_colours=demi.kind,
    )
    return Evidence(claims, diagrams=(incidence_drawing, modified_drawing))


def small_graphs(_quick: bool) -> Evidence:
    """Figure 4: graphs of average distance up to 2."""
    turan_graph, paley_graph, hamming_graph = turan(9, 3), paley(13), hamming(4)
    # 2 is no square modulo 13. So n ↦ 2n maps pairs whose difference is a square onto pairs whose
    # difference is none, which are the links of the complement.
    doubled = 2 * np.arange(13) % 13
    joined_in_complement = complement(paley_graph)[np.ix_(doubled, doubled)]
    degree = int(hamming_graph.sum(axis=1).max())
    claims = (
        PaperClaim(statement="Turán(9, 3): diameter", printed=2, computed=diameter_of(turan_graph)),
        *(
            PaperClaim(
                statement=f"Turán graph, r = {r}: lim k̄ = 1 + 1/r, at {LARGE_TURAN:,} vertices,"
                " built",
                printed=1 + 1 / r,
                computed=mean_distance(turan(LARGE_TURAN, r)),
                reading_error=NEAR_A_LIMIT,
            )
            for r in range(2, 7)
        ),
        PaperClaim(statement="Paley(13): diameter", printed=2, computed=diameter_of(paley_graph)),
        *(
            PaperClaim(
                statement=f"Paley graph, q = {q}: k̄ is its limit",
                printed=1.5,
                computed=mean_distance(paley(q)),
            )
            for q in (13, 101)
        ),
        PaperClaim(
            statement="Paley graph: isomorphic to its complement: how many ends of links n ↦ 2n mod"
            " 13 maps onto ends of the complement's",
            printed=int(paley_graph.sum()),
            computed=int((paley_graph & joined_in_complement).sum()),
        ),
        PaperClaim(
            statement="Hamming graph: diameter", printed=2, computed=diameter_of(hamming_graph)
        ),
        PaperClaim(
            statement="Hamming graph: N = Δ²/4 + Δ + 1",
            printed=degree**2 / 4 + degree + 1,
            computed=len(hamming_graph),
        ),
        PaperClaim(
            statement="Hamming graph, n = 4: k̄ = 2 - 2/n - 1/n²",
            printed=2 - 2 / 4 - 1 / 16,
            computed=mean_distance(hamming_graph),
            correction=HAMMING_CORRECTION,
        ),
    )
    diagrams = (
        Diagram(
            "Turán(9, 3)",
            places=ring(9),
            links=np.argwhere(np.triu(turan_graph)),
            vertex_colours=np.arange(9) // 3,
        ),
        Diagram(
            "Paley(13)",
            places=ring(13),
            links=np.argwhere(np.triu(paley_graph)),
            labels=[str(n) for n in range(13)],
        ),
        Diagram("Hamming, n = 4", places=_bent_grid(4), links=np.argwhere(np.triu(hamming_graph))),
    )
    return Evidence(claims, diagrams=diagrams)


def _bent_grid(n: int) -> Places:
    """Places in n rows of n, with rows and columns bent so that no link hides another."""
    grid = np.stack(np.divmod(np.arange(n * n), n), axis=1)[:, ::-1] + 0.0
    bent: Places = grid + 0.22 * np.sin(grid[:, ::-1] * 2.0)
    return bent


def full_mesh(_quick: bool) -> Evidence:
    """Figure 10: the incidence graph of K_4, and the multi-layer full mesh."""
    mesh = build_topology("mlfm", {"n": 4})
    leaves = mesh.of_kind("leaf")
    # The incidence graph of K_4: its vertices 0 to 3, and vertices 4 to 9 for its links.
    pairs = np.argwhere(np.triu(np.ones((4, 4)), 1))
    incidences = np.stack((pairs.ravel(), 4 + np.repeat(np.arange(6), 2)), axis=1)
    colours = [RED] * 4 + [GREEN] * 6
    claims = (
        PaperClaim(statement="spines: n(n-1)/2", printed=6, computed=len(mesh.of_kind("spine"))),
        PaperClaim(statement="leaves: n(n-1)", printed=12, computed=len(leaves)),
        PaperClaim(
            statement="Δ = n - 1", printed=3, computed=int(mesh.graph.degrees[leaves].max())
        ),
        PaperClaim(
            statement="R = 2Δ",
            printed=6,
            computed=int(mesh.graph.degrees[mesh.of_kind("spine")].max()),
        ),
        PaperClaim(
            statement="between leaves", printed=2, computed=or_nan(distribution(mesh).diameter)
        ),
    )
    corners = ring(4)
    middles = corners[pairs].mean(axis=1)
    middles[DIAGONALS] += DIAGONAL_SHIFTS  # the two middles are one point, where diagonals cross
    diagrams = (
        Diagram(
            "Incidence graph of K_4",
            places=np.concatenate((corners, middles)),
            links=incidences,
            vertex_colours=colours,
        ),
        Diagram(
            "K_4: leaves and spines",
            places=columns(4, 6),
            links=incidences,
            vertex_colours=colours,
        ),
        _drawing_with_hosts("MLFM", mesh, columns(12, 6), [(leaves, LEFT)]),
    )
    return Evidence(claims, diagrams=diagrams)


def orthogonal_fat_tree(_quick: bool) -> Evidence:
    """Figure 11: the orthogonal fat tree of q = 2."""
    tree = build_topology("oft", {"q": 2})
    distances, leaves, load = distribution(tree), tree.endpoints, uniform(tree)
    column_sizes = np.bincount(tree.coordinates[:, 0])
    claims = (
        PaperClaim(statement="routers", printed=21, computed=tree.graph.order),
        PaperClaim(
            statement="in each of three columns", printed=7, computed=int(column_sizes.min())
        ),
        PaperClaim(
            statement="Δ = q + 1", printed=3, computed=int(tree.graph.degrees[leaves].max())
        ),
        PaperClaim(
            statement="Δ0 = q + 1, by §VI's formula Δ0 = (u/k̄)(2Δ - δ), which generalises (1)",
            printed=3,
            computed=load.full_throughput_hosts,
        ),
        PaperClaim(
            statement="T = 2(q+1)(q²+q+1)",
            printed=42,
            computed=int(leaves.sum()) * load.full_throughput_hosts,
        ),
        PaperClaim(statement="k̄ between leaves", printed=2, computed=or_nan(distances.mean)),
        PaperClaim(statement="u", printed=1, computed=load.utilisation),
    )
    first, last = np.flatnonzero(leaves).reshape(2, -1)
    sides = [(first, LEFT), (last, RIGHT)]
    picture = _drawing_with_hosts("Orthogonal fat tree, q = 2", tree, columns(7, 7, 7), sides)
    return Evidence(claims, diagrams=(picture,))


def _drawing_with_hosts(
    title: str, tree: Topology, places: Places, sides: Iterable[tuple[NDArray[np.int64], int]]
) -> Diagram:
    """A drawing of the routers, with as many hosts at each leaf as the leaf has links.

    Args:
        title: the title of the drawing.
        tree: the network.
        places: the places of the network's routers.
        sides: some of the leaves, and on which side of them their hosts are drawn, LEFT or RIGHT.
    """
    links: NDArray[np.integer] = tree.graph.edges()
    for leaves, side in sides:
        hosts_of_leaf = int(tree.graph.degrees[leaves].max())
        places, links = with_hosts(places, links, leaves, hosts_of_leaf, side)
    hosts = len(places) - tree.graph.order
    colours = [*tree.kind, *[WHITE] * hosts]
    return Diagram(title, places=places, links=links, vertex_colours=colours, width=500, radius=4)
