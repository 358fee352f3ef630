"""Growth of PolarFly by copies of clusters, without removing a link (PolarFly paper, §VI).

Old vertices keep their numbers and copies follow, so the larger graph is the old one plus links. A
copy has the links of its original. The family of the result is `polarfly-expanded`, as the algebra
of ER_q no longer routes it. Clusters are the racks of the layout `fans`: C0 holds the quadrics, and
C1, C2, … are fans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import GRAPH_FAMILY, build_topology, family_of
from compilers.topology.labelled_graph import EXPANDED, Topology
from compilers.topology.layout import Layout, layout
from inventory.problems import InputError, Problem

Edges = NDArray[np.int64]
"""int64[n, 2], pairs of vertices."""


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """A fabric that has grown."""

    topology: Topology
    """The larger fabric.

    Its coordinates, int32[N', 4], end with the number of the copy, 0 for old vertices.
    """
    added: NDArray[np.int32]
    """int32[A, 2]: the links (u, v) to add, u < v, ascending."""
    origin: NDArray[np.int32]
    """int32[N']: the vertex that each vertex is a copy of; an old vertex itself."""
    layout: Layout
    """The clusters of the larger fabric."""


def added_clusters(topology: Topology) -> tuple[str, int]:
    """Return the method and the number of clusters that a topology has grown by.

    "" and 0 if it has not grown. Builds of version 0.1 call clusters racks.
    """
    parameters = topology.parameters if topology.grown_from else {}
    text = str(parameters.get("clusters") or parameters.get("racks") or "")
    method, _, count = text.partition(":")
    return method, int(count or 0)


def whole_topology(topology: Topology) -> Topology:
    """Return the topology that the same family and parameters make, with nothing missing.

    Raises:
        InputError, KeyError, TypeError, ValueError: there is no such family, or it has other
            parameters.
    """
    family = topology.grown_from or topology.family
    if family == GRAPH_FAMILY:  # a graph from a file has no other definition than itself
        return topology
    method, count = added_clusters(topology)
    if not method:
        return build_topology(topology.family, topology.parameters)
    first = build_topology(family, {"q": topology.parameters["q"]})
    return expand(first, method, count).topology


def growth_problems(topology: Topology, method: str, count: int) -> list[Problem]:
    """Return the problems of growing a topology by `count` clusters, [] if it can grow so.

    The method is one of `METHODS`: `quadric` is for odd q, `nucleus` for even q, `fan` for both.
    """
    if not family_of(topology.family).grows_by_clusters:
        return [Problem(key="clusters", required="a PolarFly", given=topology.title())]
    if method not in METHODS:
        return [Problem(key="clusters", required=f"one of {', '.join(METHODS)}", given=method)]
    q = int(topology.parameters["q"])
    if method == "quadric" and q % 2 == 0:
        # All of even q's quadrics are neighbours of the nucleus, whose degree each copy would
        # raise by q + 1.
        todo = f"use fan or nucleus: a copy of the quadrics gives the nucleus {2 * (q + 1)} links"
        return [Problem(key="clusters", required="odd q for quadric", given=str(q), todo=todo)]
    if method == "nucleus" and q % 2:
        todo = "use quadric or fan"
        return [Problem(key="clusters", required="even q for nucleus", given=str(q), todo=todo)]
    fans = q if q % 2 else q - 1
    most = {"quadric": MOST_COPIES_OF_QUADRICS, "fan": fans, "nucleus": 1}[method]
    if 1 <= count <= most:
        return []
    required = f"1 to {most} for {method}" if most > 1 else f"1 for {method}"
    return [Problem(key="clusters", required=required, given=str(count))]


def expand(topology: Topology, method: str, count: int = 1, start: int | None = None) -> Expansion:
    """Grow a PolarFly.

    Args:
        topology: a PolarFly.
        method: `quadric` copies the cluster of the quadrics, so that the diameter stays 2 (for odd
            q); `fan` copies fans, so that degrees stay nearly equal and the diameter is 3;
            `nucleus` adds a twin of the nucleus, which gives all vertices the same degree (for
            even q).
        count: the number of clusters; by `fan` at most all fans, which are q, or q - 1 for even q;
            1 by `nucleus`.
        start: the quadric that the clusters start from, as for `layout`.

    Raises:
        InputError: the topology cannot grow by this method and count.
    """
    if problems := growth_problems(topology, method, count):
        raise InputError(problems)
    return METHODS[method](topology, layout(topology, "fans", start), count)


def _quadric(topology: Topology, clusters: Layout, count: int) -> Expansion:
    """Add copies of C0; a quadric and its copies are all joined to each other (§VI-A)."""
    quadrics = topology.of_kind("W")
    graph = topology.graph
    # int64[count, q + 1], the copies of the quadrics.
    copies = graph.order + np.arange(count * len(quadrics)).reshape(count, -1)
    from_quadric = np.isin(graph.tails(), quadrics)
    neighbours = graph.targets[from_quadric].reshape(len(quadrics), -1)
    # int64[count + 1, q + 1], the quadrics, then their copies.
    originals_and_copies = np.vstack((quadrics, copies))
    first, second = np.triu_indices(count + 1, 1)
    edges = [
        _pairs(copies[:, :, None], np.broadcast_to(neighbours, (count, *neighbours.shape))),
        _pairs(originals_and_copies[first], originals_and_copies[second]),
    ]
    return _expansion_of(
        topology,
        clusters,
        np.concatenate(edges),
        copied=np.tile(quadrics, count),
        copy=np.repeat(np.arange(1, count + 1), len(quadrics)),
        names=tuple(f"quadrics-{n}" for n in range(1, count + 1)),
        method="quadric",
        diameter=2,
    )


def _fan(topology: Topology, clusters: Layout, count: int) -> Expansion:
    """Add copies of the fans C1, C2, … (Definition VI.1), with balancing links (§VI-B).

    The paper copies one fan after the other, each from the graph so far. So a copy is joined to
    the neighbours of its original in other clusters and to their copies, and in its own cluster to
    copies only.

    Balancing links are for odd q. For every other fan C_j, the copied fan has one vertex besides
    its centre that has no link to C_j. The copy of this vertex is joined to the centre of C_j, and
    to the copy of that centre if there is one. For even q only the centre has no link to C_j, so
    there is nothing to balance.
    """
    q, order = int(topology.parameters["q"]), topology.graph.order
    copied = np.concatenate([clusters.members(i) for i in range(1, count + 1)])
    # int64[N], the copy of each vertex, -1 for none.
    copy_of = np.full(order, -1, np.int64)
    copy_of[copied] = order + np.arange(len(copied))

    u, v = topology.graph.edges().astype(np.int64).T
    between_clusters = clusters.rack[u] != clusters.rack[v]
    links = [
        _pairs(copy_of[u], v)[between_clusters],
        _pairs(u, copy_of[v])[between_clusters],
        _pairs(copy_of[u], copy_of[v]),
    ]
    if q % 2:
        fan, other = np.nonzero(~np.eye(q + 1, dtype=np.bool_))
        is_balanced = (fan > 0) & (fan <= count) & (other > 0)  # cluster 0 holds the quadrics
        fan, other = fan[is_balanced], other[is_balanced]
        unlinked = copy_of[_unlinked(topology, clusters)[fan, other]]
        centre = clusters.centre[other]
        links += [_pairs(unlinked, centre), _pairs(unlinked, copy_of[centre])]
    added = np.concatenate(links)
    return _expansion_of(
        topology,
        clusters,
        added[(added >= 0).all(axis=1)],
        copied=copied,
        copy=np.ones(len(copied), np.int64),
        names=tuple(f"fan{i}-1" for i in range(1, count + 1)),
        method="fan",
        diameter=3,
    )


def _unlinked(topology: Topology, clusters: Layout) -> NDArray[np.int64]:
    """Return the vertex of fan i, not its centre, that has no link to fan j, int64[R, R]."""
    graph, count = topology.graph, len(clusters.names)
    # bool[N, R], whether a vertex has a link into a cluster. Centres, and each vertex in its own
    # cluster, count as linked, so that only the vertices looked for are not.
    linked = np.zeros((graph.order, count), np.bool_)
    linked[graph.tails(), clusters.rack[graph.targets]] = True
    linked[clusters.centre[1:]] = True
    linked[np.arange(graph.order), clusters.rack] = True
    vertex, other = np.nonzero(~linked)
    unlinked = np.zeros((count, count), np.int64)
    unlinked[clusters.rack[vertex], other] = vertex
    return unlinked


def _nucleus(topology: Topology, clusters: Layout, count: int) -> Expansion:
    """Add a copy of the nucleus: every vertex then has degree q+1, and the diameter stays 2."""
    nucleus = clusters.centre[:1]
    neighbours = topology.graph.neighbours(int(nucleus[0]))
    return _expansion_of(
        topology,
        clusters,
        _pairs(np.full(len(neighbours), topology.graph.order), neighbours),
        copied=nucleus,
        copy=np.ones(count, np.int64),
        names=("nucleus-twin",),
        method="nucleus",
        diameter=2,
    )


def _pairs(u: NDArray[np.integer], v: NDArray[np.integer]) -> Edges:
    """Return pairs of vertices, int64[n, 2], of two arrays that broadcast together."""
    u, v = np.broadcast_arrays(u, v)
    return np.stack((u.ravel(), v.ravel()), axis=1).astype(np.int64)


def _expansion_of(
    topology: Topology,
    clusters: Layout,
    added: Edges,
    copied: NDArray[np.integer],
    copy: NDArray[np.integer],
    names: tuple[str, ...],
    method: str,
    diameter: int,
) -> Expansion:
    """Put a grown topology together.

    Args:
        topology: the topology before.
        clusters: its layout `fans`, whose racks are the clusters.
        added: int64[A, 2], the new links.
        copied: int[n], the original of each new vertex, cluster by cluster, all of one size.
        copy: int[n], the number of the copy that each new vertex belongs to, from 1.
        names: the names of the new clusters.
        method: the method of growth.
        diameter: of the grown topology.
    """
    old = topology.graph.order
    cluster_size = len(copied) // len(names)
    origin = np.concatenate((np.arange(old), copied)).astype(np.int32)
    # A link (u, v) with u < v as one number, by which links are sorted.
    keys = np.sort(np.sort(added, axis=1) @ [len(origin), 1])
    added = np.stack(np.divmod(keys, len(origin)), axis=1)
    number_of_copy = np.concatenate((np.zeros(old, np.int64), copy))
    new_rack = len(clusters.names) + np.repeat(np.arange(len(names)), cluster_size)
    larger = Topology(
        family=topology.family.removesuffix(EXPANDED) + EXPANDED,
        parameters={**topology.parameters, "clusters": f"{method}:{len(names)}"},
        graph=Graph.from_edges(len(origin), np.concatenate((topology.graph.edges(), added))),
        kinds=topology.kinds,
        kind=topology.kind[origin],
        coordinates=np.column_stack((topology.coordinates[origin], number_of_copy)).astype(
            np.int32
        ),
        endpoints=topology.endpoints[origin],
        diameter=diameter,
    )
    copied_rack = clusters.rack[copied[::cluster_size]]  # by new cluster, the one that it copies
    centre = old + np.arange(len(names)) * cluster_size  # the first vertex of a fan
    grown = Layout(
        name=clusters.name,
        rack=np.concatenate((clusters.rack, new_rack)).astype(np.int32),
        position=clusters.position[origin],
        kinds=clusters.kinds,
        kind=np.concatenate((clusters.kind, clusters.kind[copied_rack])),
        names=clusters.names + names,
        centre=np.concatenate((clusters.centre, np.where(method == "fan", centre, -1))).astype(
            np.int32
        ),
    )
    return Expansion(larger, added.astype(np.int32), origin, grown)


MOST_COPIES_OF_QUADRICS = 1024
"""The most clusters that a topology grows by with the method `quadric`."""
METHODS: dict[str, Callable[[Topology, Layout, int], Expansion]] = {
    "quadric": _quadric,
    "fan": _fan,
    "nucleus": _nucleus,
}
"""The methods of growth by name: each takes the topology, its clusters, and how many to add."""
