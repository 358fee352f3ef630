"""Figures of the PolarStar paper that are drawings: star products, supernodes, paths, layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarstar import star_product
from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout, links_between
from compilers.topology.polarity import order
from compilers.topology.supernodes import Supernode, supernode
from extensions.papers.diagram import Diagram, Places, matrix_links, ring
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import cartesian, diameter_of, matrix_of

IQ = "inductive-quad"
DEGREE = 3
SMALL: dict[str, int | str | None] = {"q": 3, "supernode": IQ, "degree": DEGREE}
CASES = ("y' = x'", "y' = f(x')", "x' ~ y'", "f(x') ~ f(y')")
"""The cases of Property R*, (a) to (d)."""
READ_RSTAR = (
    "The text has lost the cases of R*. Read as: by an involution f any two vertices x and y are"
    " joined, or f(x) and f(y) are, or y = f(x)."
)
Paths = NDArray[np.int64]


def products(_quick: bool) -> Evidence:
    """Figure 2: the Cartesian product of an edge and a pentagon, and a star product of both."""
    pentagon = supernode("paley", 2)
    edge = Graph.from_edges(2, np.array([[0, 1]]))
    star = matrix_of(star_product(edge, np.zeros(2, np.bool_), pentagon))
    plain = cartesian(matrix_of(edge), pentagon.adjacency())
    inside = diameter_of(pentagon.adjacency())
    claims = (
        PaperClaim("vertices of both, |G|·|G'|", 2 * 5, len(plain)),
        PaperClaim("and of the star product", 2 * 5, len(star)),
        PaperClaim("largest degree, that of G and that of G'", 1 + 2, int(star.sum(0).max())),
        PaperClaim(
            "diameter of the Cartesian product, D + D' at most",
            1 + inside,
            diameter_of(plain),
            "<=",
        ),
        PaperClaim("of the star product, D + 1 at most", 1 + 1, diameter_of(star), "<="),
    )
    outside, within = ring(5), ring(5, 0.5)
    diagrams = tuple(
        Diagram(
            title,
            np.concatenate((outside, within[turned])),
            matrix_links(matrix),
            kinds=np.repeat([0, 2], 5),
        )
        for title, matrix, turned in (
            ("Cartesian product", plain, np.arange(5)),
            ("A star product: Petersen's graph", star, pentagon.backward),
        )
    )
    return Evidence(claims, diagrams=diagrams)


def paths(_quick: bool) -> Evidence:
    """Figure 3: paths of at most three links between supernodes, in the cases of Property R*."""
    topology = build_topology("polarstar", SMALL)
    whole, node = matrix_of(topology.graph), supernode(IQ, DEGREE)
    k, near, image = node.order, node.adjacency(), node.forward
    ends = np.stack(np.meshgrid(*[np.arange(k)] * 2, indexing="ij"), -1).reshape(-1, 2)
    holds = _cases(near, image, ends)
    walks_by_case = [_walks(topology, node, case, ends[holds[case]]) for case in range(len(CASES))]
    fewest = int(holds.sum(0).min())
    says = "at least one case holds for two members: fewest"
    claims = [PaperClaim(says, 1, fewest, ">=", interpretation=READ_RSTAR)]
    for case, walks in enumerate(walks_by_case):
        linked = whole[walks[:, :-1], walks[:, 1:]] | (walks[:, :-1] == walks[:, 1:])
        says = f"{CASES[case]}: part of all pairs whose path of the proof is there"
        claims.append(PaperClaim(says, 1, float(linked.all(axis=1).mean())))
        longest = int((walks[:, :-1] != walks[:, 1:]).sum(axis=1).max())
        claims.append(PaperClaim(f"{CASES[case]}: its links, D + 1 at most", 3, longest, "<="))
    claims.append(PaperClaim("diameter of the star product, D + 1", 3, diameter_of(whole)))
    diagrams = tuple(_walk(topology, walks, case) for case, walks in enumerate(walks_by_case))
    setup = ("Of PolarStar with q = 3 and Inductive-Quad of degree 3.",)
    return Evidence(tuple(claims), diagrams=diagrams, setup=setup)


def _cases(near: NDArray[np.bool_], image: NDArray[np.int32], ends: Paths) -> NDArray[np.bool_]:
    """bool[4, P]: which of `CASES` hold for pairs of members, int[P, 2]."""
    one, other = ends.T
    return np.stack(
        (one == other, other == image[one], near[one, other], near[image[one], image[other]])
    )


def _walks(topology: Topology, node: Supernode, case: int, ends: Paths) -> Paths:
    """int[W, 4]: the path of the proof of Theorem 4 for these pairs of members, D = 2.

    Between all pairs of different supernodes x and y over z, the vertex between them in ER_q with
    its loops; a path shorter than three links repeats a vertex.
    """
    k, image = node.order, node.forward
    structure = build_topology("polarfly", {"q": topology.parameters["q"]})
    step = matrix_of(structure.graph) | np.diag(structure.kind == 0)
    n = len(step)
    pairs = np.argwhere(~np.eye(n, dtype=np.bool_))
    between = np.argmax(step[:, None, :] & step[None, :, :], axis=2)
    x, y = (np.repeat(side, len(ends)) for side in pairs.T)
    one, other = (np.tile(side, len(pairs)) for side in ends.T)
    z = between[x, y]
    if case == 0:
        steps = [(x, one), (z, image[one]), (y, one), (y, one)]
    elif case == 1:  # over a neighbour w of x, and from there over what is between w and y
        around = step & ~np.eye(n, dtype=np.bool_)
        w = np.where(around[x, y], y, np.argmax(around[x], axis=1))
        middle = np.where(w == y, y, between[w, y])
        member = np.where(w == y, image[one], one)
        steps = [(x, one), (w, image[one]), (middle, member), (y, other)]
    elif case == 2:
        steps = [(x, one), (x, other), (z, image[other]), (y, other)]
    else:
        steps = [(x, one), (z, image[one]), (z, image[other]), (y, other)]
    return np.stack([place * k + member for place, member in steps], axis=1)


def _walk(topology: Topology, walks: Paths, case: int) -> Diagram:
    """The path between two supernodes that are not adjacent, in front of their own links."""
    k = topology.hierarchy
    straight = walks[(walks // k)[:, 0] != (walks // k)[:, 2]]
    walk = next(row for row in straight if len({*(row // k).tolist()}) >= 3)
    shown = np.array(list(dict.fromkeys((walk // k).tolist())))
    vertices = (shown[:, None] * k + np.arange(k)).ravel()
    index = {int(vertex): place for place, vertex in enumerate(vertices)}
    edges = topology.graph.edges()
    kept = edges[np.isin(edges, vertices).all(axis=1)]
    links = np.array([[index[v] for v in pair] for pair in kept.tolist()])
    steps = {frozenset(pair) for pair in zip(walk[:-1].tolist(), walk[1:].tolist(), strict=True)}
    faint = [frozenset(pair) not in steps for pair in kept.tolist()]
    places = np.concatenate([ring(k, 0.8, (2.6 * at, 0)) for at in range(len(shown))])
    labels = [""] * len(vertices)
    for number, vertex in enumerate(dict.fromkeys(walk.tolist())):
        labels[index[vertex]] = str(number)
    title = f"({'abcd'[case]}) {CASES[case]}"
    kinds = np.repeat(np.arange(len(shown)), k)
    return Diagram(title, places, links, labels, kinds, faint, width=480)


def construction(_quick: bool) -> Evidence:
    """Figure 5: ER_q with its loops, a supernode, and their star product."""
    topology, node = build_topology("polarstar", SMALL), supernode(IQ, DEGREE)
    structure = build_topology("polarfly", {"q": 3})
    q, d = 3, 3
    degrees, edges = topology.graph.degrees, topology.graph.edges()
    same = edges // node.order
    loops = (same[:, 0] == same[:, 1]) & (node.forward[edges[:, 0] % node.order] == edges[:, 1] % 8)
    claims = (
        PaperClaim("order, (q²+q+1)(2d'+2)", order(q) * (2 * d + 2), topology.graph.order),
        PaperClaim("degree, q + 1 + d', least", q + 1 + d, int(degrees.min())),
        PaperClaim("and largest", q + 1 + d, int(degrees.max())),
        PaperClaim("links from self-loops, d' + 1 at each quadric", 4 * (d + 1), int(loops.sum())),
        PaperClaim("diameter", 3, diameter_of(matrix_of(topology.graph))),
    )
    factor = structure.graph.edges()
    inside = same[:, 0] == same[:, 1]
    diagrams = (
        Diagram("Structure graph ER_3; loops at red", ring(13), factor, kinds=structure.kind),
        Diagram("Supernode IQ, degree 3", ring(8), matrix_links(node.adjacency()), kinds=[4] * 8),
        Diagram(
            "Star product",
            _clustered(topology, 3.4),
            edges,
            kinds=topology.kind,
            faint=(~inside).tolist(),
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
        node = supernode(IQ, d)
        degrees = node.graph.degrees
        pairs = np.argwhere(np.ones((node.order, node.order), np.bool_))
        holds = _cases(node.adjacency(), node.forward, pairs)
        claims += [
            PaperClaim(f"d' = {d}: vertices, 2d' + 2", 2 * d + 2, node.order),
            PaperClaim(f"d' = {d}: least degree", d, int(degrees.min())),
            PaperClaim(f"d' = {d}: largest degree", d, int(degrees.max())),
            PaperClaim(
                f"d' = {d}: Property R*, fewest cases of a pair",
                1,
                int(holds.sum(0).min()),
                ">=",
                interpretation=READ_RSTAR,
            ),
            PaperClaim(
                f"d' = {d}: f is an involution: vertices x with f(f(x)) = x",
                node.order,
                int((node.forward[node.forward] == np.arange(node.order)).sum()),
            ),
        ]
    smaller, larger = supernode(IQ, 3), supernode(IQ, 7)
    new = larger.graph.edges()
    links = {tuple(link) for link in new.tolist()}
    kept = sum(tuple(link) in links for link in smaller.graph.edges().tolist())
    across = (new < smaller.order).sum(axis=1) == 1
    joined = larger.adjacency()[: smaller.order, smaller.order :].sum(axis=1)
    claims += [
        PaperClaim("the step keeps all links", smaller.graph.size, kept),
        PaperClaim("and joins four new vertices to each old one, fewest", 4, int(joined.min())),
        PaperClaim("and most", 4, int(joined.max())),
    ]
    step = np.concatenate((_halves(smaller.order, 0.0), _halves(8, 3.0)))
    diagrams = (
        Diagram("d' = 0", _halves(2, 0.0), np.zeros((0, 2), np.int64), ["x", "f(x)"], [0, 2]),
        Diagram("d' = 3", _halves(8, 0.0), smaller.graph.edges(), kinds=[0, 2] * 4),
        Diagram(
            "From d' = 3 to 7: A and f(A), and eight new vertices",
            step,
            new,
            kinds=[0, 2] * 4 + [1, 3] * 4,
            faint=across.tolist(),
            width=420,
        ),
    )
    return Evidence(tuple(claims), diagrams=diagrams)


def _halves(count: int, left: float) -> Places:
    """float64[count, 2]: pairs x, f(x) in two columns, bent so that no link hides another."""
    pair, side = np.divmod(np.arange(count), 2)
    bend = 0.35 * (pair % 2) * (1 - 2 * side)
    return np.stack((left + 1.7 * side - bend, 0.9 * pair + 0.12 * side), axis=1)


def modules(_quick: bool) -> Evidence:
    """Figure 8: supernodes, bundles of links between them, and clusters of supernodes."""
    topology = build_topology("polarstar", {"q": 5, "supernode": IQ, "degree": 3})
    q, k = 5, topology.hierarchy
    between = links_between(topology.graph, layout(topology, "supernodes"))
    apart = np.triu(between, 1)
    bundle = apart[apart > 0]
    clusters = layout(topology, "clusters")
    shared = np.triu(links_between(topology.graph, clusters), 1) / k
    met = shared[np.triu_indices(len(shared), 1)]
    far = _bundles_between_clusters(31)
    about = (
        "About q is read as q ± 2. Two fans share q - 2 bundles, and each shares q + 1 with the"
        f" quadrics. It is of q = 31; our picture has q = {q}, where they are {met.min():g} to"
        f" {met.max():g}."
    )
    claims = (
        PaperClaim("links between adjacent supernodes, 2d' + 2: fewest", 8, int(bundle.min())),
        PaperClaim("and most", 8, int(bundle.max())),
        PaperClaim("bundles, q(q+1)²/2", q * (q + 1) ** 2 // 2, len(bundle)),
        PaperClaim("global cables less by a factor of 2d' + 2", 8, int(bundle.sum()) / len(bundle)),
        PaperClaim("clusters of supernodes, q + 1", q + 1, len(clusters.names)),
        *(
            PaperClaim(
                f"bundles between two clusters, about q: {end} at q = 31",
                31,
                bundles,
                reading_error=2,
                interpretation=about,
            )
            for end, bundles in (("fewest", int(far.min())), ("most", int(far.max())))
        ),
    )
    racks = layout(build_topology("polarfly", {"q": q}))
    setup = (f"Of PolarStar with q = {q} and Inductive-Quad of degree 3, unless another is named.",)
    drawn = _modules(topology, racks.rack, apart, met)
    return Evidence(claims, diagrams=drawn, setup=setup)


def _bundles_between_clusters(q: int) -> NDArray[np.int64]:
    """Of each two clusters; a bundle for each link of the structure graph."""
    graph = build_topology("polarfly", {"q": q})
    shared = links_between(graph.graph, layout(graph))
    pairs: NDArray[np.int64] = shared[np.triu_indices(len(shared), 1)]
    return pairs


def _modules(
    topology: Topology,
    cluster: NDArray[np.int32],
    apart: NDArray[np.int64],
    met: NDArray[np.float64],
) -> tuple[Diagram, ...]:
    k, count = topology.hierarchy, int(cluster.max()) + 1
    edges = topology.graph.edges()
    first = np.argwhere(apart > 0)[0]
    shown = (first[:, None] * k + np.arange(k)).ravel()
    kept = edges[np.isin(edges, shown).all(axis=1)]
    pair = np.searchsorted(shown, kept)
    faint = (pair[:, 0] // k == pair[:, 1] // k).tolist()
    places = np.concatenate((ring(k), ring(k, 1.0, (3.0, 0.0))))
    inside = np.concatenate(
        [ring(int((cluster == c).sum()), 0.8, tuple(ring(count, 2.6)[c])) for c in range(count)]
    )
    at = np.argsort(np.argsort(cluster, kind="stable"), kind="stable")
    bundles = np.argwhere(apart > 0)
    same = cluster[bundles[:, 0]] == cluster[bundles[:, 1]]
    links = np.argwhere(np.triu(np.ones((count, count)), 1))
    fewest, most = int(met.min()), int(met.max())
    return (
        Diagram("Two supernodes and their bundle", places, pair, (), [0] * k + [1] * k, faint),
        Diagram("Supernodes and bundles", inside[at], bundles, (), cluster, (~same).tolist(), 420),
        Diagram(f"Clusters, joined by {fewest} to {most} bundles", ring(count), links, radius=12),
    )


def _clustered(topology: Topology, apart: float) -> Places:
    """float64[N, 2]: each supernode a ring, on a ring of supernodes."""
    k = topology.hierarchy
    centres = ring(topology.graph.order // k, apart)
    return np.concatenate([ring(k, 0.6, tuple(centre)) for centre in centres])
