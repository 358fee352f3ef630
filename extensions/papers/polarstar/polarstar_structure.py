"""Figures 2, 3, 5, 6 and 8 of the PolarStar paper: drawings of star products and their parts.

Each function with the parameter `_quick` reproduces a figure and returns its claims and pictures as
`Evidence`; `polarstar_paper` lists them. In a star product each vertex of ER_q is a copy of a
supernode, a small graph with a bijection f of its members. Where ER_q joins two vertices, member x'
of one copy is joined to f(x') of the other.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarstar import star_product
from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout, links_between
from compilers.topology.polarity import order
from compilers.topology.supernodes import Supernode, supernode
from extensions.papers.diagram import (
    BLUE,
    BROWN,
    GREEN,
    RED,
    WHITE,
    Diagram,
    Places,
    matrix_links,
    ring,
)
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import cartesian, diameter_of, matrix_of

IQ = "inductive-quad"
"""The kind of supernode that is drawn."""
DEGREE = 3
"""The degree d' of the supernode that is drawn."""
Q = 3
"""The q of the structure graph ER_q of figures 3 and 5."""
SMALL_POLARSTAR: dict[str, int | str | None] = {"q": Q, "supernode": IQ, "degree": DEGREE}
"""The parameters of the PolarStar of figures 3 and 5."""
CASES = ("y' = x'", "y' = f(x')", "x' ~ y'", "f(x') ~ f(y')")
"""The cases of Property R*, (a) to (d), for two members x' and y' of a supernode."""
SAME, IMAGE, JOINED, IMAGES_JOINED = range(4)
"""The indices of these cases in `CASES`."""
READ_RSTAR = (
    "The text has lost the cases of R*. Read as: by an involution f any two vertices x and y are"
    " joined, or f(x) and f(y) are, or y = f(x)."
)
"""How claims on Property R* are read."""
Paths = NDArray[np.int64]
"""int[W, n]: in each row the n vertices of a path."""
Pairs = NDArray[np.int64]
"""int[P, 2]: in each row two members of a supernode, x' and y'."""
BEND, SIDE_DISTANCE, ROW_DISTANCE, SIDE_RISE = 0.35, 1.7, 0.9, 0.12
"""Lengths of drawings in two columns: how far a row is bent outwards, the distances of the columns
and of the rows, and how much higher the right column is. They are chosen by eye."""


def products(_quick: bool) -> Evidence:
    """Figure 2: the Cartesian product of an edge and a pentagon, and a star product of both."""
    pentagon = supernode("paley", 2)
    edge = Graph.from_edges(2, np.array([[0, 1]]))
    star = matrix_of(star_product(edge, np.zeros(2, np.bool_), pentagon))
    product = cartesian(matrix_of(edge), pentagon.adjacency())
    pentagon_diameter = diameter_of(pentagon.adjacency())
    claims = (
        PaperClaim(statement="vertices of both, |G|·|G'|", printed=2 * 5, computed=len(product)),
        PaperClaim(statement="and of the star product", printed=2 * 5, computed=len(star)),
        PaperClaim(
            statement="largest degree, that of G and that of G'",
            printed=1 + 2,
            computed=int(star.sum(0).max()),
        ),
        PaperClaim(
            statement="diameter of the Cartesian product, D + D' at most",
            printed=1 + pentagon_diameter,
            computed=diameter_of(product),
            relation="<=",
        ),
        PaperClaim(
            statement="of the star product, D + 1 at most",
            printed=1 + 1,
            computed=diameter_of(star),
            relation="<=",
        ),
    )
    setup = (
        "The paper's drawing is lost. The factor graphs, an edge and a pentagon, are our choice."
        " So are the bijections of the star product, those of the Paley supernode of degree 2.",
    )
    outer_places, inner_places = ring(5), ring(5, 0.5)
    diagrams = tuple(
        Diagram(
            title,
            places=np.concatenate((outer_places, inner_places[position])),
            links=matrix_links(adjacency),
            vertex_colours=np.repeat([RED, BLUE], 5),
        )
        for title, adjacency, position in (
            ("Cartesian product", product, np.arange(5)),
            ("A star product: Petersen's graph", star, pentagon.backward),
        )
    )
    return Evidence(claims, diagrams=diagrams, setup=setup)


def paths(_quick: bool) -> Evidence:
    """Figure 3: paths of at most three links between supernodes, in the cases of Property R*."""
    topology = build_topology("polarstar", SMALL_POLARSTAR)
    adjacency, quad = matrix_of(topology.graph), supernode(IQ, DEGREE)
    pairs = np.argwhere(np.ones((quad.order, quad.order), np.bool_))
    holds = _cases_that_hold(quad.adjacency(), quad.forward, pairs)
    paths_by_case = [_paths(topology, quad, case, pairs[holds[case]]) for case in range(len(CASES))]
    fewest = int(holds.sum(0).min())
    says = "at least one case holds for two members: fewest"
    claims = [
        PaperClaim(
            statement=says, printed=1, computed=fewest, relation=">=", interpretation=READ_RSTAR
        )
    ]
    for case, paths_of_case in enumerate(paths_by_case):
        tails, heads = paths_of_case[:, :-1], paths_of_case[:, 1:]
        linked = adjacency[tails, heads] | (tails == heads)
        says = f"{CASES[case]}: part of all pairs whose path of the proof is there"
        claims.append(
            PaperClaim(statement=says, printed=1, computed=float(linked.all(axis=1).mean()))
        )
        longest = int((tails != heads).sum(axis=1).max())
        claims.append(
            PaperClaim(
                statement=f"{CASES[case]}: its links, D + 1 at most",
                printed=3,
                computed=longest,
                relation="<=",
            )
        )
    claims.append(
        PaperClaim(
            statement="diameter of the star product, D + 1",
            printed=3,
            computed=diameter_of(adjacency),
        )
    )
    diagrams = tuple(
        _path_diagram(topology, paths_of_case, case)
        for case, paths_of_case in enumerate(paths_by_case)
    )
    setup = ("Of PolarStar with q = 3 and Inductive-Quad of degree 3.",)
    return Evidence(tuple(claims), diagrams=diagrams, setup=setup)


def _cases_that_hold(
    joined: NDArray[np.bool_], image: NDArray[np.int32], pairs: Pairs
) -> NDArray[np.bool_]:
    """bool[4, P]: which of `CASES` hold for pairs of members x' and y'.

    Args:
        joined: bool[k, k], the adjacency matrix of the supernode.
        image: the image f(x) of each member.
        pairs: the members.
    """
    first, last = pairs.T
    holds = np.zeros((len(CASES), len(pairs)), np.bool_)
    holds[SAME] = first == last
    holds[IMAGE] = last == image[first]
    holds[JOINED] = joined[first, last]
    holds[IMAGES_JOINED] = joined[image[first], image[last]]
    return holds


def _paths(topology: Topology, quad: Supernode, case: int, pairs: Pairs) -> Paths:
    """int[W, 4]: the path of the proof of Theorem 4 for pairs of members, D = 2.

    For each pair of members, one path between any two different supernodes x and y. It leads over
    z, the vertex between them in ER_q with its loops. A path of fewer than three links repeats a
    vertex.

    Args:
        topology: the star product.
        quad: the supernode of the star product.
        case: the index in `CASES` of a case that holds for all the pairs.
        pairs: the member x' of x at which each path begins, and the member y' of y at which it
            ends.
    """
    image = quad.forward
    structure = build_topology("polarfly", {"q": topology.parameters["q"]})
    loops_and_links = matrix_of(structure.graph) | np.diag(structure.kind == 0)
    is_other = ~np.eye(len(loops_and_links), dtype=np.bool_)
    ends = np.argwhere(is_other)
    between = np.argmax(loops_and_links[:, None, :] & loops_and_links[None, :, :], axis=2)
    # Supernodes x, y and z of each path; `first` and `last` are its members x' and y'.
    x, y = (np.repeat(side, len(pairs)) for side in ends.T)
    first, last = (np.tile(side, len(ends)) for side in pairs.T)
    z = between[x, y]
    # The supernode and the member of each of the four vertices.
    if case == SAME:
        steps = [(x, first), (z, image[first]), (y, first), (y, first)]
    elif case == IMAGE:  # over a neighbour w of x, and from there over the vertex between w and y
        linked = loops_and_links & is_other
        w = np.where(linked[x, y], y, np.argmax(linked[x], axis=1))
        middle = np.where(w == y, y, between[w, y])
        member = np.where(w == y, image[first], first)
        steps = [(x, first), (w, image[first]), (middle, member), (y, last)]
    elif case == JOINED:
        steps = [(x, first), (x, last), (z, image[last]), (y, last)]
    else:  # IMAGES_JOINED
        steps = [(x, first), (z, image[first]), (z, image[last]), (y, last)]
    return np.stack([node * quad.order + member for node, member in steps], axis=1)


def _path_diagram(topology: Topology, paths_of_case: Paths, case: int) -> Diagram:
    """One of the paths of a case, in front of the links of its three supernodes.

    Its two ends are in different supernodes that are not adjacent.
    """
    k = topology.hierarchy
    supernodes_of_paths = paths_of_case // k
    without_return = paths_of_case[supernodes_of_paths[:, 0] != supernodes_of_paths[:, 2]]
    path = next(row.tolist() for row in without_return if len({*(row // k).tolist()}) >= 3)
    # The supernodes on the path, each once and in its order: a dict as an ordered set.
    nodes = list(dict.fromkeys(vertex // k for vertex in path))
    vertices = [node * k + member for node in nodes for member in range(k)]
    index = {vertex: number for number, vertex in enumerate(vertices)}
    drawn = [(u, v) for u, v in topology.graph.edges().tolist() if u in index and v in index]
    steps = {frozenset(step) for step in pairwise(path)}
    # A vertex on the path has its place on it as its label.
    labels = [""] * len(vertices)
    for number, vertex in enumerate(dict.fromkeys(path)):
        labels[index[vertex]] = str(number)
    return Diagram(
        f"({'abcd'[case]}) {CASES[case]}",
        places=np.concatenate([ring(k, 0.8, (2.6 * place, 0)) for place in range(len(nodes))]),
        links=np.array([(index[u], index[v]) for u, v in drawn]),
        labels=labels,
        vertex_colours=np.repeat(np.arange(len(nodes)), k),  # one colour for each supernode
        faint=[frozenset(ends) not in steps for ends in drawn],
        width=480,
    )


def construction(_quick: bool) -> Evidence:
    """Figure 5: ER_q with its loops, a supernode, and their star product."""
    topology, quad = build_topology("polarstar", SMALL_POLARSTAR), supernode(IQ, DEGREE)
    structure = build_topology("polarfly", {"q": Q})
    q, d = Q, DEGREE
    degrees, edges = topology.graph.degrees, topology.graph.edges()
    # The supernode and the member in it of both ends of each link. Links inside a supernode are its
    # own, or come from the loop of a quadric: these join x' and f(x').
    nodes, members = np.divmod(edges, quad.order)
    is_inside = nodes[:, 0] == nodes[:, 1]
    is_from_loop = is_inside & (quad.forward[members[:, 0]] == members[:, 1])
    claims = (
        PaperClaim(
            statement="order, (q²+q+1)(2d'+2)",
            printed=order(q) * (2 * d + 2),
            computed=topology.graph.order,
        ),
        PaperClaim(
            statement="degree, q + 1 + d', least", printed=q + 1 + d, computed=int(degrees.min())
        ),
        PaperClaim(statement="and largest", printed=q + 1 + d, computed=int(degrees.max())),
        PaperClaim(
            statement="links from self-loops, d' + 1 at each quadric",
            printed=4 * (d + 1),
            computed=int(is_from_loop.sum()),
        ),
        PaperClaim(
            statement="diameter", printed=3, computed=diameter_of(matrix_of(topology.graph))
        ),
    )
    diagrams = (
        Diagram(
            "Structure graph ER_3; loops at red",
            places=ring(13),
            links=structure.graph.edges(),
            vertex_colours=structure.kind,
        ),
        Diagram(
            "Supernode IQ, degree 3",
            places=ring(8),
            links=matrix_links(quad.adjacency()),
            vertex_colours=[WHITE] * 8,
        ),
        Diagram(
            "Star product",
            places=_clustered(topology, 3.4),
            links=edges,
            vertex_colours=topology.kind,
            faint=(~is_inside).tolist(),
            width=620,
            radius=4,
        ),
    )
    setup = ("Of PolarStar with q = 3 and Inductive-Quad of degree 3.",)
    return Evidence(claims, diagrams=diagrams, setup=setup)


def inductive_quads(_quick: bool) -> Evidence:
    """Figure 6: the two first Inductive-Quad graphs, and the step from d' to d' + 4."""
    claims = []
    for d in (0, 3, 4, 7, 8, 11):
        quad = supernode(IQ, d)
        degrees = quad.graph.degrees
        pairs = np.argwhere(np.ones((quad.order, quad.order), np.bool_))
        holds = _cases_that_hold(quad.adjacency(), quad.forward, pairs)
        claims += [
            PaperClaim(
                statement=f"d' = {d}: vertices, 2d' + 2", printed=2 * d + 2, computed=quad.order
            ),
            PaperClaim(statement=f"d' = {d}: least degree", printed=d, computed=int(degrees.min())),
            PaperClaim(
                statement=f"d' = {d}: largest degree", printed=d, computed=int(degrees.max())
            ),
            PaperClaim(
                statement=f"d' = {d}: Property R*, fewest cases of a pair",
                printed=1,
                computed=int(holds.sum(0).min()),
                relation=">=",
                interpretation=READ_RSTAR,
            ),
            PaperClaim(
                statement=f"d' = {d}: f is an involution: vertices x with f(f(x)) = x",
                printed=quad.order,
                computed=int((quad.forward[quad.forward] == np.arange(quad.order)).sum()),
            ),
        ]
    smaller, larger = supernode(IQ, 3), supernode(IQ, 7)
    links = larger.graph.edges()
    link_set = {tuple(link) for link in links.tolist()}
    links_kept = sum(tuple(link) in link_set for link in smaller.graph.edges().tolist())
    is_across = (links < smaller.order).sum(axis=1) == 1
    new_neighbours = larger.adjacency()[: smaller.order, smaller.order :].sum(axis=1)
    claims += [
        PaperClaim(
            statement="the step keeps all links", printed=smaller.graph.size, computed=links_kept
        ),
        PaperClaim(
            statement="and joins four new vertices to each old one, fewest",
            printed=4,
            computed=int(new_neighbours.min()),
        ),
        PaperClaim(statement="and most", printed=4, computed=int(new_neighbours.max())),
    ]
    places = np.concatenate((_in_two_columns(smaller.order, 0.0), _in_two_columns(8, 3.0)))
    diagrams = (
        Diagram(
            "d' = 0",
            places=_in_two_columns(2, 0.0),
            links=np.zeros((0, 2), np.int64),
            labels=["x", "f(x)"],
            vertex_colours=[RED, BLUE],
        ),
        Diagram(
            "d' = 3",
            places=_in_two_columns(8, 0.0),
            links=smaller.graph.edges(),
            vertex_colours=[RED, BLUE] * 4,
        ),
        Diagram(
            "From d' = 3 to 7: A and f(A), and eight new vertices",
            places=places,
            links=links,
            vertex_colours=[RED, BLUE] * 4 + [GREEN, BROWN] * 4,
            faint=is_across.tolist(),
            width=420,
        ),
    )
    setup = (
        "The drawings of the two first graphs are lost. Of degree 0 with two vertices, and of"
        " degree 3 with eight vertices and R* as read here, there is one graph only.",
    )
    return Evidence(tuple(claims), diagrams=diagrams, setup=setup)


def _in_two_columns(count: int, left: float) -> Places:
    """float64[count, 2]: pairs x, f(x) in two columns, bent so that no link hides another."""
    pair, side = np.divmod(np.arange(count), 2)
    outwards = 1 - 2 * side
    bend = BEND * (pair % 2) * outwards
    x, y = left + SIDE_DISTANCE * side - bend, ROW_DISTANCE * pair + SIDE_RISE * side
    return np.stack((x, y), axis=1)


def modules(_quick: bool) -> Evidence:
    """Figure 8: supernodes, bundles of links between them, and clusters of supernodes."""
    topology = build_topology("polarstar", {"q": 5, "supernode": IQ, "degree": 3})
    q, k = 5, topology.hierarchy
    links_of_pairs = np.triu(links_between(topology.graph, layout(topology, "supernodes")), 1)
    bundles = np.argwhere(links_of_pairs > 0)
    bundle_sizes = links_of_pairs[links_of_pairs > 0]
    clusters = layout(topology, "clusters")
    bundles_between = np.triu(links_between(topology.graph, clusters), 1) / k
    bundles_of_pairs = bundles_between[np.triu_indices(len(bundles_between), 1)]
    fewest, most = bundles_of_pairs.min(), bundles_of_pairs.max()
    bundles_at_31 = _bundles_between_clusters(31)
    reading = (
        "About q is read as q ± 2. Two fans share q - 2 bundles, and each shares q + 1 with the"
        f" quadrics. It is of q = 31; our picture has q = {q}, where they are {fewest:g} to"
        f" {most:g}."
    )
    claims = (
        PaperClaim(
            statement="links between adjacent supernodes, 2d' + 2: fewest",
            printed=8,
            computed=int(bundle_sizes.min()),
        ),
        PaperClaim(statement="and most", printed=8, computed=int(bundle_sizes.max())),
        PaperClaim(
            statement="bundles, q(q+1)²/2", printed=q * (q + 1) ** 2 // 2, computed=len(bundles)
        ),
        PaperClaim(
            statement="global cables less by a factor of 2d' + 2",
            printed=8,
            computed=int(bundle_sizes.sum()) / len(bundles),
        ),
        PaperClaim(
            statement="clusters of supernodes, q + 1", printed=q + 1, computed=len(clusters.names)
        ),
        *(
            PaperClaim(
                statement=f"bundles between two clusters, about q: {end} at q = 31",
                printed=31,
                computed=count,
                reading_error=2,
                interpretation=reading,
            )
            for end, count in (
                ("fewest", int(bundles_at_31.min())),
                ("most", int(bundles_at_31.max())),
            )
        ),
    )
    racks = layout(build_topology("polarfly", {"q": q}))
    setup = (f"Of PolarStar with q = {q} and Inductive-Quad of degree 3, unless another is named.",)
    diagrams = _module_diagrams(topology, racks.rack, bundles, f"{int(fewest)} to {int(most)}")
    return Evidence(claims, diagrams=diagrams, setup=setup)


def _bundles_between_clusters(q: int) -> NDArray[np.int64]:
    """The bundles between each two clusters; each link of the structure graph is one bundle."""
    structure = build_topology("polarfly", {"q": q})
    bundles_between = links_between(structure.graph, layout(structure))
    bundles_of_pairs: NDArray[np.int64] = bundles_between[np.triu_indices(len(bundles_between), 1)]
    return bundles_of_pairs


def _module_diagrams(
    topology: Topology, cluster: NDArray[np.int32], bundles: NDArray[np.int64], bundle_counts: str
) -> tuple[Diagram, ...]:
    """Draw two supernodes with their bundle, all supernodes, and all clusters.

    Args:
        topology: the PolarStar.
        cluster: the cluster of each supernode.
        bundles: int[B, 2], the two supernodes that each bundle joins.
        bundle_counts: how many bundles join two clusters, as text.
    """
    k, cluster_count = topology.hierarchy, int(cluster.max()) + 1
    # The first bundle: the links within the two supernodes that it joins, and between them.
    edges = topology.graph.edges()
    vertices = (bundles[0][:, None] * k + np.arange(k)).ravel()
    links = np.searchsorted(vertices, edges[np.isin(edges, vertices).all(axis=1)])
    is_inside = links[:, 0] // k == links[:, 1] // k
    # Each cluster is a ring of its supernodes, and the clusters are on a ring.
    supernode_places = np.empty((len(cluster), 2))
    for c, centre in enumerate(ring(cluster_count, 2.6)):
        in_cluster = np.flatnonzero(cluster == c)
        supernode_places[in_cluster] = ring(len(in_cluster), 0.8, tuple(centre))
    is_across = cluster[bundles[:, 0]] != cluster[bundles[:, 1]]
    return (
        Diagram(
            title="Two supernodes and their bundle",
            places=np.concatenate((ring(k), ring(k, 1.0, (3.0, 0.0)))),
            links=links,
            vertex_colours=[RED] * k + [GREEN] * k,
            faint=is_inside.tolist(),
        ),
        Diagram(
            title="Supernodes and bundles",
            places=supernode_places,
            links=bundles,
            vertex_colours=cluster,
            faint=is_across.tolist(),
            width=420,
        ),
        Diagram(
            f"Clusters, joined by {bundle_counts} bundles",
            places=ring(cluster_count),
            links=np.column_stack(np.triu_indices(cluster_count, 1)),
            radius=12,
        ),
    )


def _clustered(topology: Topology, radius: float) -> Places:
    """float64[N, 2]: each supernode a ring, on a ring of supernodes with a radius."""
    k = topology.hierarchy
    centres = ring(topology.graph.order // k, radius)
    return np.concatenate([ring(k, 0.6, tuple(centre)) for centre in centres])
