"""Tables II to VI of the PolarFly paper: its graph, its growth, and networks to compare it with.

Each function with the parameter `_quick` reproduces a table and returns its rows and claims as
`Evidence`; `polarfly_paper` lists them. Every exhibit of a paper is called with whether to simulate
small networks only. Nothing is simulated here, so the parameter is not used.

The kinds of vertices of PolarFly are W (quadrics), V1 (their neighbours) and V2 (all others).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.growth import GrowthStep, growth
from compilers.evaluation.analysis.path_diversity import PathClass, diversity
from compilers.families.polarfly import triangles
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import expand
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan
from extensions.papers.paper_tables import table_evidence
from extensions.papers.polarfly.polarfly_feasibility import share_of_links_kept

KIND_BETWEEN = {
    1: {("V1", "V1"): "V1", ("V1", "V2"): "V2", ("V2", "V2"): "V1"},
    3: {("V1", "V1"): "V2", ("V1", "V2"): "V1", ("V2", "V2"): "V2"},
}
"""Table III as printed: by q mod 4, and by the kinds of two adjacent vertices, the kind of the
vertex between them."""


def inter_cluster_triangles(_quick: bool) -> Evidence:
    """Table II: how many triangles have corners in several clusters, by the corners' kinds."""
    claims, rows = [], []
    for q in (5, 7, 9, 11, 13, 17, 19, 23, 25, 27, 31):
        topology = build_topology("polarfly", {"q": q})
        # counts[n]: the triangles with corners in several clusters, n of them of kind V2.
        corners = triangles(topology)
        racks = layout(topology).rack[corners]
        between_racks = corners[(racks != racks[:, :1]).any(axis=1)]
        corners_in_v2 = (topology.kind[between_racks] == topology.kinds.index("V2")).sum(axis=1)
        counts = np.bincount(corners_in_v2, minlength=4).tolist()
        if q % 4 == 1:
            printed = [q * (q - 1) * (q - 5) // 24, 0, q * (q - 1) ** 2 // 8, 0]
        else:
            printed = [0, q * (q - 1) * (q - 3) // 8, 0, (q + 1) * q * (q - 1) // 24]
        for number, (count_printed, count) in enumerate(zip(printed, counts, strict=True)):
            claims.append(
                PaperClaim(
                    statement=f"q = {q}: triangles with {number} of V2",
                    printed=count_printed,
                    computed=count,
                )
            )
        claims.append(
            PaperClaim(
                statement=f"q = {q}: C(q, 3) in all",
                printed=comb(q, 3),
                computed=len(between_racks),
            )
        )
        rows.append((q, *counts))
    heads = ("q", "(v1, v1, v1)", "(v1, v1, v2)", "(v1, v2, v2)", "(v2, v2, v2)")
    return Evidence(tuple(claims), columns=heads, rows=tuple(rows))


def intermediate_kinds(_quick: bool) -> Evidence:
    """Table III: the kind of the vertex between two adjacent ones, of every such pair."""
    claims, rows = [], []
    for q in (5, 7, 9, 11, 13, 17, 19, 23):
        topology = build_topology("polarfly", {"q": q})
        kinds = np.sort(topology.kind[triangles(topology)], axis=1)
        for ends, printed in KIND_BETWEEN[q % 4].items():
            with_ends = kinds[_have_pair(kinds, *(topology.kinds.index(name) for name in ends))]
            as_printed = sorted(topology.kinds.index(name) for name in (*ends, printed))
            count = int((with_ends == as_printed).all(axis=1).sum())
            rows.append((q, *ends, printed, len(with_ends), count))
            says = f"q = {q}: {printed} is between {ends[0]} and {ends[1]}: part of their triangles"
            claims.append(PaperClaim(statement=says, printed=1, computed=count / len(with_ends)))
    heads = ("q", "from", "to", "between in print", "triangles", "that have it")
    return Evidence(tuple(claims), columns=heads, rows=tuple(rows))


def _have_pair(kinds: NDArray[np.uint8], first: int, second: int) -> NDArray[np.bool_]:
    """bool[T]: which triangles have a corner of each of two kinds, or two corners of one kind.

    Args:
        kinds: uint8[T, 3], the kinds of the corners of each triangle.
        first: a kind.
        second: another kind, or the same.
    """
    if first == second:
        return np.asarray((kinds == first).sum(axis=1) >= 2)
    return np.asarray((kinds == first).any(axis=1) & (kinds == second).any(axis=1))


def expansion_methods(_quick: bool) -> Evidence:
    """Table IV: what the methods of expansion do to PolarFly, measured."""
    q, racks = 19, 8
    base = build_topology("polarfly", {"q": q})
    growths = growth(base, racks)
    claims: list[PaperClaim] = []
    for step in growths:
        if step.method:
            claims += _claims_of_a_step(q, step)
    claims += _claims_of_several_steps(q, growths)
    for method in ("quadric", "fan"):
        links_kept = share_of_links_kept(base, expand(base, method, racks).topology)
        says = f"{method}, {racks} clusters: no rewiring, the part of links that stay"
        claims.append(PaperClaim(statement=says, printed=1, computed=links_kept))
    heads = ("method", "clusters", "nodes", "least degree", "largest degree", "diameter", "mean")
    rows = tuple(
        (
            step.method or "as it was",
            step.racks,
            step.nodes,
            step.least_degree,
            step.largest_degree,
            step.diameter,
            step.mean_distance,
        )
        for step in growths
    )
    setup = (f"Of PolarFly with q = {q}, and 1 to {racks} copied clusters.",)
    return Evidence(tuple(claims), columns=heads, rows=rows, setup=setup)


def _claims_of_a_step(q: int, step: GrowthStep) -> Iterator[PaperClaim]:
    """The claims about a network after one step of growth."""
    says = f"{step.method}, {step.racks} clusters"
    ports_added = step.largest_degree - (q + 1)
    is_quadric = step.method == "quadric"
    if is_quadric:
        per_port = (step.nodes - (q * q + q + 1)) / ports_added
        yield PaperClaim(
            statement=f"{says}: (q+1)/2 nodes a port", printed=(q + 1) / 2, computed=per_port
        )
    else:
        yield PaperClaim(
            statement=f"{says}: nodes, qn more",
            printed=q * q + q + 1 + q * step.racks,
            computed=step.nodes,
        )
        yield PaperClaim(
            statement=f"{says}: largest degree, n + 1 more",
            printed=step.racks + 1,
            computed=ports_added,
        )
    yield PaperClaim(
        statement=f"{says}: diameter",
        printed=2 if is_quadric else 3,
        computed=or_nan(step.diameter),
    )
    yield PaperClaim(
        statement=f"{says}: average shortest path below 2",
        printed=2,
        computed=or_nan(step.mean_distance),
        relation="<",
    )


def _claims_of_several_steps(q: int, growths: Sequence[GrowthStep]) -> Iterator[PaperClaim]:
    """The claims of Table IV on several steps of growth."""
    fans = [step for step in growths if step.method == "fan"]
    few, many = fans[0], fans[-1]
    # Per copy after the first, as the first copy takes two ports.
    nodes_per_port = (many.nodes - few.nodes) / (many.largest_degree - few.largest_degree)
    by_few, by_many = (q * fan.racks / (fan.racks + 1) for fan in (few, many))
    yield PaperClaim(
        statement=f"fan, {few.racks} to {many.racks} clusters: about q nodes a port",
        printed=q,
        computed=nodes_per_port,
        interpretation="Read as of each further copy. The first one takes two ports, so that n"
        f" copies give qn/(n + 1) nodes a port: {by_few:.1f} with {few.racks}, {by_many:.1f}"
        f" with {many.racks}.",
    )
    degree_spread = {
        step.method: step.largest_degree - step.least_degree
        for step in growths
        if step.racks == many.racks
    }
    # Degrees are not quite uniform with fans either, so the two methods are compared.
    yield PaperClaim.of_order(
        says=f"degrees are uniform with fans, not with quadrics: largest less least, {many.racks}"
        " clusters",
        first=degree_spread["fan"],
        relation="<",
        second=degree_spread["quadric"],
        interpretation="Read as one beside the other; the text says near-uniform of fans.",
    )


def configurations(_quick: bool) -> Evidence:
    """Table V: the routers and radixes of the compared networks."""
    return table_evidence("polarfly-5")


def path_diversity(_quick: bool) -> Evidence:
    """Table VI: simple paths of every pair, counted."""
    claims: list[PaperClaim] = []
    rows = []
    for q in (5, 7, 9, 11, 13):
        topology = build_topology("polarfly", {"q": q})
        avoiding_counts = paths_around_the_middle(topology)
        for path_class in diversity(topology):
            claims += _path_claims(q, path_class, avoiding_counts)
            lengths = zip(path_class.fewest, path_class.most, strict=True)
            texts = [f"{low}" if low == high else f"{low} to {high}" for low, high in lengths]
            adjacency = "adjacent" if path_class.adjacent else "not adjacent"
            rows.append((q, adjacency, "-".join(path_class.ends), path_class.middle or "", *texts))
    heads = ("q", "", "ends", "between", "of 1", "of 2", "of 3", "of 4 links")
    return Evidence(tuple(claims), columns=heads, rows=tuple(rows))


def paths_around_the_middle(topology: Topology) -> dict[tuple[str, str, str], set[int]]:
    """How many paths of 3 links lead from a vertex to another one around the vertex between them.

    The two ends are not adjacent, and one vertex, the middle, is adjacent to both.

    Returns:
        The different counts, by the kind of one end, of the other end, and of the middle. The kinds
        of the ends are in the order of `Topology.kinds`.
    """
    order = topology.graph.order
    joined = np.zeros((order, order), np.int64)
    joined[topology.graph.tails(), topology.graph.targets] = 1
    walks_of_2 = joined @ joined
    walks_of_3 = walks_of_2 @ joined
    counts: dict[tuple[str, str, str], set[int]] = {}
    names = [topology.kinds[kind] for kind in topology.kind.tolist()]
    for source, target in np.argwhere(np.triu(1 - joined, 1)).tolist():
        middle = int(np.argmax(joined[source] & joined[target]))
        # Walks whose first or second link leads to the middle are not around it.
        around = (
            walks_of_3[source, target] - walks_of_2[middle, target] - walks_of_2[source, middle]
        )
        low, high = sorted((source, target), key=lambda vertex: int(topology.kind[vertex]))
        counts.setdefault((names[low], names[high], names[middle]), set()).add(int(around))
    return counts


AVOIDING_READING = (
    "Of paths that avoid the vertex between both ends. Of all paths of 3 links there are q - 1"
    " where both ends are quadric, q where one is, else q + 1, or q where that vertex is quadric."
)
"""How the numbers of paths of 3 links are read. Those of all paths are:

=============  ================================================
quadric ends   paths
=============  ================================================
2              q - 1
1              q
0              q + 1; q if the vertex between them is a quadric
=============  ================================================
"""
FOUR_LINKS_CORRECTION = (
    "Between vertices that are not adjacent there are, of 4 links, q² - nq(v) - nq(w) +"
    " 2[x quadric] where neither is quadric, q² - q - nq(w) where one is, (q - 1)² where both are;"
    " nq: quadric neighbours. The print has q - 1 too many of those with a quadric end; for q = 5"
    " it has 20, 22 and 24, and there are 16, 18 and 20."
)
"""The correction of the printed numbers of paths of 4 links."""


def _path_claims(
    q: int, path_class: PathClass, avoiding_counts: Mapping[tuple[str, str, str], set[int]]
) -> Iterator[PaperClaim]:
    """The claims about how many paths of each length pairs of a class have.

    Args:
        q: the parameter of PolarFly.
        path_class: the class, with the counts of paths of its pairs.
        avoiding_counts: the result of `paths_around_the_middle`.
    """
    quadrics = path_class.ends.count("W")
    kinds = "-".join(path_class.ends) + (f" over {path_class.middle}" if path_class.middle else "")
    adjacency = "adjacent" if path_class.adjacent else "not adjacent"
    for length, printed in enumerate(_printed_paths(q, path_class), 1):
        if printed is None:
            continue
        counts = {path_class.fewest[length - 1], path_class.most[length - 1]}
        avoids_middle = length == 3 and not path_class.adjacent
        if avoids_middle:
            counts = avoiding_counts[(*path_class.ends, path_class.middle or "")]
        for computed in counts:
            yield PaperClaim(
                statement=f"q = {q}, {adjacency}, {kinds}, {quadrics} quadric: paths of {length}"
                " links",
                printed=printed,
                computed=computed,
                interpretation=AVOIDING_READING if avoids_middle else "",
                correction=FOUR_LINKS_CORRECTION if length == 4 else "",
            )


def _printed_paths(q: int, path_class: PathClass) -> tuple[int | None, ...]:
    """How many paths of 1 to 4 links the paper prints for a class; None where it prints nothing."""
    quadrics, is_over_quadric = path_class.ends.count("W"), path_class.middle == "W"
    if path_class.adjacent:
        return (1, 0, 0, q * q - q) if quadrics else (1, 1, 0, (q - 1) ** 2)
    paths_of_4 = {
        ("W", "W"): q * q - q,
        ("W", "V1"): q * q - 3,
        ("W", "V2"): q * q - 1,
        ("V1", "V1"): q * q - 2 if is_over_quadric else q * q - 4,
        ("V1", "V2"): q * q - 2,
        ("V2", "V2"): q * q,
    }
    return (None, 1, q if is_over_quadric else q - 1, paths_of_4[path_class.ends])
