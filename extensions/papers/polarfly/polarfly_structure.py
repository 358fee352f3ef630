"""Figures 3 to 7 and 13 of the PolarFly paper, about its graph: its layout and its growth.

Each function with the parameter `_quick` reproduces a figure and returns its claims and pictures as
`Evidence`; `polarfly_paper` lists them. ER_q is PolarFly's graph; a quadric is a vertex with a loop
in it. V1 are the neighbours of quadrics, and V2 all other vertices. The layout has a cluster of the
quadrics and q fans. A fan is a centre and triangles that have it in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, links_between
from compilers.topology.polarity import cross
from compilers.topology.replicated_clusters import Expansion, expand
from extensions.papers.diagram import (
    BROWN,
    GREEN,
    HIDDEN,
    LIGHT_GREEN,
    RED,
    WHITE,
    Diagram,
    Places,
    ring,
)
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan, truth_claim

COLOURS_IN_WORDS = "Red: quadrics; light green: centres of fans; green: V1; blue: V2."
"""What the colours of vertices mean."""
CENTRE = LIGHT_GREEN
"""The colour of centres of fans. Other vertices have the colour of their kind's number: quadrics
red, V1 green, V2 blue."""
COPIED = BROWN
"""The colour of copied vertices."""
LAYERED_WIDTH = 640
"""The width of figure 6 in pixels."""
WIDTH_OF_FANS = 1000
"""The width of figure 13 in pixels."""
LINE_END = WHITE
"""The colour of the named ends of the lines in figure 3."""
OBLIQUE = np.array([[0.9, -0.25], [-0.45, -0.35], [0.0, -0.95]])
"""By row, where the axes x, y and z of figure 3 lead on paper, to the right and downwards. It is an
oblique view from above."""
QUADRIC_ROW = -1.2
"""How far the quadrics of figures 6 and 13 are below the centres of fans: they are above them."""


def geometry(_quick: bool) -> Evidence:
    """Figure 3: two lines, the planes perpendicular to them, and the line in which those meet."""
    claims = (
        PaperClaim(
            statement="ER_7: pairs of lines without an m joined to both",
            printed=0,
            computed=_pairs_without_meeting(7),
        ),
    )
    return Evidence(claims, diagrams=(_geometry_diagram(),))


def _geometry_diagram() -> Diagram:
    """Two lines ℓ0 and ℓ1, the planes perpendicular to them, and the line m where those meet.

    A line is drawn from -1.6 to 1.6 times its unit vector, with its name at the end. A plane is
    drawn as a square, in the background.
    """
    line_0, line_1 = np.array([0.2, 0.3, 1.0]), np.array([1.0, -0.2, 0.25])
    meeting = np.cross(line_0, line_1)
    places: list[np.ndarray] = []
    links, labels = [], []
    for name, line in (("ℓ0", line_0), ("ℓ1", line_1), ("m", meeting)):
        end = 1.6 * line / np.linalg.norm(line)
        links.append([len(places), len(places) + 1])
        places += [-end, end]
        labels += ["", name]
    faint = [False] * 3
    for line in (line_0, line_1):
        # Two unit vectors in the perpendicular plane, and the corners of the square.
        side_a = meeting / np.linalg.norm(meeting)
        side_b = np.cross(side_a, line / np.linalg.norm(line))
        corners = [side_a + side_b, side_a - side_b, -side_a - side_b, -side_a + side_b]
        links += [[len(places) + k, len(places) + (k + 1) % 4] for k in range(4)]
        faint += [True] * 4
        places += corners
        labels += [""] * 4
    return Diagram(
        title="Lines and the planes perpendicular to them",
        places=np.array(places) @ OBLIQUE,
        links=np.array(links),
        labels=labels,
        vertex_colours=[LINE_END if label else HIDDEN for label in labels],
        faint=faint,
    )


def _pairs_without_meeting(q: int) -> int:
    """How many pairs of vertices of ER_q have a cross product that is not joined to both."""
    graph = build_topology("polarfly", {"q": q}).graph
    # A vertex counts as joined to itself: the cross product may be one of the two, a quadric.
    perpendicular = np.eye(graph.order, dtype=np.bool_)
    perpendicular[graph.tails(), graph.targets] = True
    first, second = np.triu_indices(graph.order, 1)
    middle = cross(q, first.astype(np.int32), second.astype(np.int32))
    return int((~(perpendicular[middle, first] & perpendicular[middle, second])).sum())


def er3(_quick: bool) -> Evidence:
    """Figure 4: the dot-product construction of ER_3."""
    topology = build_topology("polarfly", {"q": 3})
    names = ["".join(map(str, row)) for row in topology.coordinates.tolist()]
    neighbours = {name: set(topology.graph.neighbours(v).tolist()) for v, name in enumerate(names)}
    quadrics, v1, v2 = np.bincount(topology.kind, minlength=3).tolist()
    between = neighbours["001"] & neighbours["122"]
    claims = (
        PaperClaim(statement="vertices", printed=13, computed=topology.graph.order),
        truth_claim("[1, 1, 1] is adjacent to [0, 1, 2]", names.index("012") in neighbours["111"]),
        PaperClaim(statement="quadrics, q + 1", printed=4, computed=quadrics),
        PaperClaim(statement="V1, q(q+1)/2", printed=6, computed=v1),
        PaperClaim(statement="V2, q(q-1)/2", printed=3, computed=v2),
        PaperClaim(
            statement="(1, 1, 0) alone is between (0, 0, 1) and (1, 2, 2)",
            printed=1,
            computed=len(between),
        ),
        truth_claim("and it is (1, 1, 0)", between == {names.index("110")}),
    )
    position = np.argsort(np.argsort(names))  # on the ring, in the order of the names
    edges = topology.graph.edges()
    picture = Diagram(
        "ER_3", places=ring(13)[position], links=edges, labels=names, vertex_colours=topology.kind
    )
    return Evidence(claims, diagrams=(picture,))


def rack_layout(_quick: bool) -> Evidence:
    """Figure 5: the quadric cluster and q fans, and the links between them."""
    q = 7
    topology = build_topology("polarfly", {"q": q})
    racks = layout(topology)
    between = links_between(topology.graph, racks)
    between_fans = between[1:, 1:][~np.eye(q, dtype=np.bool_)]
    claims = (
        PaperClaim(statement="clusters", printed=q + 1, computed=len(racks.names)),
        *_fewest_and_most("links between a fan and the quadrics", q + 1, between[0, 1:]),
        *_fewest_and_most("links between two fans", q - 2, between_fans),
        PaperClaim(
            statement="links inside the quadric cluster", printed=0, computed=int(between[0, 0])
        ),
        *_fewest_and_most("links in a fan", 3 * (q - 1) // 2, np.diag(between)[1:]),
        *_fewest_and_most("triangles in a fan", (q - 1) // 2, _triangles_in_fans(topology, racks)),
    )
    picture = Diagram(
        "Clusters of ER_7",
        places=np.concatenate(([[0.0, 0.0]], ring(q))),
        links=np.array(list(combinations(range(q + 1), 2))),
        labels=["C0: quadrics", *(f"C{fan}" for fan in range(1, q + 1))],
        vertex_colours=[RED] + [GREEN] * q,
        radius=12,
    )
    return Evidence(claims, diagrams=(picture,), setup=("q = 7.",))


def _fewest_and_most(
    says: str, printed: int, counts: Sequence[int] | NDArray[np.integer]
) -> Iterator[PaperClaim]:
    """Yield the claims that the fewest and the most of some counts are the printed number."""
    yield PaperClaim(statement=f"{says}, fewest", printed=printed, computed=int(np.min(counts)))
    yield PaperClaim(statement="and most", printed=printed, computed=int(np.max(counts)))


def _triangles_in_fans(topology: Topology, racks: Layout) -> list[int]:
    """How many triangles each fan has: six closed walks of three links go round each of them."""
    adjacency = np.zeros((topology.graph.order,) * 2, np.int64)
    adjacency[topology.graph.tails(), topology.graph.targets] = 1
    triangles = []
    for rack in range(1, len(racks.names)):
        fan = adjacency[np.ix_(racks.members(rack), racks.members(rack))]
        triangles.append(int(np.trace(np.linalg.matrix_power(fan, 3))) // 6)
    return triangles


def er7(_quick: bool) -> Evidence:
    """Figure 6: the layout of ER_7, a fan's own links, and those to others."""
    topology = build_topology("polarfly", {"q": 7})
    racks = layout(topology)
    edges, fan = topology.graph.edges(), 3  # the fan that is drawn in front
    # Which links are inside the fan, and which join it to the next fan, or to the quadrics.
    racks_of_ends = racks.rack[edges]
    is_inside = (racks_of_ends == fan).all(axis=1)
    is_to_next_fan = (np.sort(racks_of_ends, axis=1) == [fan, fan + 1]).all(axis=1)
    is_to_quadrics = (np.sort(racks_of_ends, axis=1) == [0, fan]).all(axis=1)
    members, centre = racks.members(fan), int(racks.centre[fan])
    links_of_fan = edges[is_inside]
    has_centre = (links_of_fan == centre).any(axis=1)
    rim_links = links_of_fan[~has_centre]
    claims = (
        PaperClaim(statement="links of a fan", printed=9, computed=len(links_of_fan)),
        PaperClaim(
            statement="from its centre to all others", printed=6, computed=int(has_centre.sum())
        ),
        PaperClaim(statement="its triangles, (q-1)/2", printed=3, computed=len(rim_links)),
        PaperClaim(
            statement="that share the centre only: vertices of their other links",
            printed=len(members) - 1,
            computed=len(np.unique(rim_links)),
        ),
        PaperClaim(
            statement="q - 2 = 5 links between two fans",
            printed=5,
            computed=int(is_to_next_fan.sum()),
        ),
        PaperClaim(
            statement="q + 1 = 8 links between a fan and the quadrics",
            printed=8,
            computed=int(is_to_quadrics.sum()),
        ),
    )
    places, colours = _layered_places(topology, racks), _colours(topology, racks)
    links_inside = Diagram(
        title="ER_7: a fan",
        places=places,
        links=edges,
        vertex_colours=colours,
        faint=(~is_inside).tolist(),
        width=LAYERED_WIDTH,
    )
    outer_end = np.where(racks_of_ends[:, 0] == fan, edges[:, 1], edges[:, 0])
    links_outside = Diagram(
        title="ER_7: from a fan to the quadrics and to another fan",
        places=places,
        links=edges,
        vertex_colours=colours,
        faint=(~(is_to_next_fan | is_to_quadrics)).tolist(),
        width=LAYERED_WIDTH,
        link_colours=topology.kind[outer_end],
    )
    setup = (
        f"{COLOURS_IN_WORDS} The links of a fan are black; those to others have the colour of their"
        " end.",
    )
    return Evidence(claims, diagrams=(links_inside, links_outside), setup=setup)


def _colours(topology: Topology, racks: Layout) -> NDArray[np.integer]:
    """int[N]: the colours of vertices: those of their kinds, and `CENTRE` for centres of fans."""
    colours = topology.kind.astype(np.int64)
    colours[racks.centre[racks.centre >= 0]] = CENTRE
    return colours


def _starting_quadric(topology: Topology, racks: Layout) -> int:
    """The quadric that all centres are joined to."""
    centres = set(racks.centre[1:].tolist())
    quadrics: list[int] = racks.members(0).tolist()
    return next(v for v in quadrics if centres == set(topology.graph.neighbours(v).tolist()))


def _layered_places(topology: Topology, racks: Layout) -> Places:
    """The places of fans next to each other, with the quadrics above them.

    In each fan, the vertices of V1 are on an arc around the centre, those of V2 on an arc below it,
    in the order of the layout. So the two ends of a rim link are neighbours on an arc, or one is
    below the other. The starting quadric is in the middle of the quadrics.
    """
    places = np.zeros((topology.graph.order, 2))
    fans = len(racks.names) - 1
    start = _starting_quadric(topology, racks)
    quadrics = [v for v in racks.members(0).tolist() if v != start]
    quadrics.insert(len(quadrics) // 2, start)
    places[quadrics, 0] = np.linspace(fans / 4, 3 * fans / 4, len(quadrics)) + 0.5
    places[quadrics, 1] = QUADRIC_ROW
    for rack in range(1, fans + 1):
        centre = int(racks.centre[rack])
        places[centre] = rack, 0
        rim = [v for v in racks.members(rack).tolist() if v != centre]
        for kind in (1, 2):
            of_kind = [v for v in rim if topology.kind[v] == kind]
            # Every third place of an ellipse around the place of the centre, or one below that.
            ellipse = ring(3 * len(of_kind)) * [0.4, 0.22]
            places[of_kind] = ellipse[1::3] + np.array([rack, kind - 1])
    return places


def growth_methods(_quick: bool) -> Evidence:
    """Figure 7: a copied quadric cluster, and a copied fan."""
    base = build_topology("polarfly", {"q": 3})
    claims, diagrams = list[PaperClaim](), []
    for method, nodes, diameter in (("quadric", 4, 2), ("fan", 3, 3)):
        grown = expand(base, method, 1)
        claims += _growth_claims(method, base, grown, nodes, diameter)
        diagrams.append(_growth_diagram(method, base, grown))
    return Evidence(tuple(claims), diagrams=tuple(diagrams))


def _growth_claims(
    method: str, base: Topology, grown: Expansion, nodes: int, diameter: int
) -> Iterator[PaperClaim]:
    """Yield the claims on a network that has grown by one cluster.

    Args:
        method: what is copied, `quadric` or `fan`.
        base: the network before growth.
        grown: the network after growth.
        nodes: how many nodes the paper says are added.
        diameter: the diameter that the paper prints.
    """
    graph = grown.topology.graph
    links = {tuple(link) for link in graph.edges().tolist()}
    yield PaperClaim(
        statement=f"ER_3, {method}: nodes added",
        printed=nodes,
        computed=graph.order - base.graph.order,
    )
    yield PaperClaim(
        statement=f"ER_3, {method}: diameter",
        printed=diameter,
        computed=or_nan(distribution(grown.topology).diameter),
    )
    yield PaperClaim(
        statement=f"ER_3, {method}: links that stay, none is rewired",
        printed=base.graph.size,
        computed=sum(tuple(link) in links for link in base.graph.edges().tolist()),
    )


def _growth_diagram(method: str, base: Topology, grown: Expansion) -> Diagram:
    """A network that has grown: a ring of clusters, the links before growth in the background."""
    graph, racks = grown.topology.graph, grown.layout.rack
    edges = graph.edges()
    centres = ring(int(racks.max()) + 1, 2.6)
    places = np.zeros((graph.order, 2))
    for rack, centre in enumerate(centres):
        members = np.flatnonzero(racks == rack)
        places[members] = ring(len(members), 0.7, tuple(centre))
    is_old_vertex = np.arange(graph.order) < base.graph.order
    return Diagram(
        f"ER_3 with a copied {method} cluster",
        places=places,
        links=edges,
        vertex_colours=np.where(is_old_vertex, grown.topology.kind, COPIED),
        faint=np.all(edges < base.graph.order, axis=1).tolist(),
    )


def er17_and_er19(_quick: bool) -> Evidence:
    """Figure 13: fans of ER_17, and of ER_19, next to each other."""
    claims, diagrams = [], list[Diagram]()
    for q in (17, 19):
        topology = build_topology("polarfly", {"q": q})
        racks = layout(topology)
        claims.append(_rim_claim(q, topology, racks))
        diagrams += _fan_diagrams(q, topology, racks)
    setup = (f"{COLOURS_IN_WORDS} Black: links of fans, and of the quadric that they start from.",)
    return Evidence(tuple(claims), diagrams=tuple(diagrams), setup=setup)


def _is_in_a_fan(topology: Topology, racks: Layout) -> NDArray[np.bool_]:
    """bool[E]: whether both ends of a link are in one fan."""
    first, second = racks.rack[topology.graph.edges()].T
    return np.asarray((first == second) & (first > 0))


def _rim_claim(q: int, topology: Topology, racks: Layout) -> PaperClaim:
    """The claim on rim links, which are those of fans without their centres.

    For q = 4w + 1 none joins V1 and V2, and for q = 4w - 1 all do.
    """
    edges = topology.graph.edges()
    is_rim_link = _is_in_a_fan(topology, racks) & ~np.isin(edges, racks.centre).any(axis=1)
    kinds = topology.kind[edges[is_rim_link]]
    return PaperClaim(
        statement=f"q = {q}: part of the rims of fans that join V1 and V2",
        printed=0.0 if q % 4 == 1 else 1.0,
        computed=float((kinds[:, 0] != kinds[:, 1]).mean()),
    )


def _fan_diagrams(q: int, topology: Topology, racks: Layout) -> tuple[Diagram, Diagram]:
    """All clusters of ER_q, and one of its fans with the starting quadric."""
    edges, start = topology.graph.edges(), _starting_quadric(topology, racks)
    places, colours = _layered_places(topology, racks), _colours(topology, racks)
    is_shown = _is_in_a_fan(topology, racks) | (edges == start).any(axis=1)
    clusters = Diagram(
        title=f"ER_{q}: clusters",
        places=places,
        links=edges,
        vertex_colours=colours,
        faint=(~is_shown).tolist(),
        width=WIDTH_OF_FANS,
        radius=2.6,
    )
    rack = q // 2 + 1  # the fan in the middle
    vertices = np.sort([start, *racks.members(rack)])
    is_start = vertices[:, None] == start
    rims = "V1 with V1, V2 with V2" if q % 4 == 1 else "V1 with V2"
    fan = Diagram(
        title=f"ER_{q}: a fan, {rims}",
        places=np.where(is_start, [rack, QUADRIC_ROW], places[vertices]) * [3, 1],
        links=np.searchsorted(vertices, edges[np.isin(edges, vertices).all(axis=1)]),
        vertex_colours=colours[vertices],
    )
    return clusters, fan
