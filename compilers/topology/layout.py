"""Layouts: vertices in clusters, one rack each, and the links between them (PolarFly paper, §V).

Clusters of one kind (fans, stars, supernodes, subplanes) are wired alike inside: the same positions
are joined in each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology, family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import cross, order
from compilers.topology.projective import subplanes
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class Layout:
    """A placement of N vertices in R clusters, here called racks.

    rack: int32[N]. position: int32[N], from 0 within the rack. kinds: the names of the kinds of
    racks. kind: uint8[R], the kind of each rack, an index into kinds. names: one a rack. centre:
    int32[R], the vertex that is joined to all others of its rack, -1 where there is none.
    """

    name: str
    rack: NDArray[np.int32]
    position: NDArray[np.int32]
    kinds: tuple[str, ...]
    kind: NDArray[np.uint8]
    names: tuple[str, ...]
    centre: NDArray[np.int32]

    def members(self, rack: int) -> NDArray[np.int64]:
        """The vertices in a rack, in order of position."""
        inside = np.flatnonzero(self.rack == rack)
        return inside[np.argsort(self.position[inside])]


def layouts(topology: Topology) -> tuple[str, ...]:
    """The names of a topology's layouts, the default first."""
    return tuple(family_of(topology.family).layouts(topology))


def layout(topology: Topology, name: str = "", start: int | None = None) -> Layout:
    """A layout of the topology by name, or its default.

    Args:
        topology: the fabric graph.
        name: one of `layouts(topology)`.
        start: the quadric that Algorithm 1 starts from, a vertex of ER_q; the first by default.

    Raises:
        InputError: the topology has no such layout, or the start is not a quadric.
    """
    known = layouts(topology)
    if not known or (name and name not in known):
        required = ", ".join(known) or "a family with racks: polarfly, polarstar, pn of square q"
        raise InputError.of(required, given=name or topology.title(), key="layout")
    made: Layout = family_of(topology.family).layouts(topology)[name or known[0]](topology, start)
    return made


def links_between(graph: Graph, layout: Layout) -> NDArray[np.int64]:
    """int64[R, R]: links between racks, symmetric; within a rack on the diagonal."""
    racks = len(layout.names)
    u, v = layout.rack[graph.edges()].astype(np.int64).T
    count = np.bincount(u * racks + v, minlength=racks * racks).reshape(racks, racks)
    return count + count.T - np.diag(np.diag(count))


def bundles(graph: Graph, layout: Layout) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Pairs of racks that are cabled, int32[B, 2] ascending, and the links in each, int64[B].

    Memory grows with the number of links, not with that of racks.
    """
    racks = len(layout.names)
    ends = np.sort(layout.rack[graph.edges()].astype(np.int64), axis=1)
    between = ends[ends[:, 0] != ends[:, 1]]
    keys, count = np.unique(between @ [racks, 1], return_counts=True)
    return np.stack(np.divmod(keys, racks), axis=1).astype(np.int32), count


def triangles(topology: Topology) -> NDArray[np.int32]:
    """int32[C(q+1, 3), 3], the triangles of ER_q, vertices ascending.

    Each link between ordinary vertices u, v is in one, with the apex u×v.
    """
    u, v = topology.graph.edges()[_ordinary_links(topology)].T
    found = np.stack((u, v, cross(_q(topology), u, v)), axis=1)
    return found[found[:, 2] > found[:, 1]]


def blocks(topology: Topology, layout: Layout) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Triangles that join three racks, int32[B, 3], and those racks, int32[B, 3] ascending.

    They are the blocks of a design: with odd q, every three fans are joined by exactly one triangle
    (PolarFly paper, Theorem V.7).
    """
    found = triangles(topology)
    racks = layout.rack[found]
    by_rack = np.argsort(racks, axis=1)
    racks = np.take_along_axis(racks, by_rack, axis=1)
    distinct = (np.diff(racks, axis=1) > 0).all(axis=1)
    return np.take_along_axis(found, by_rack, axis=1)[distinct], racks[distinct]


def _ordinary_links(topology: Topology) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = (topology.kind[topology.graph.edges()] != 0).all(axis=1)
    return mask


def _q(topology: Topology) -> int:
    return int(topology.parameters["q"])


def fans(topology: Topology, start: int | None) -> Layout:
    """Algorithm 1 from a quadric: its ordinary neighbours are centres, with theirs around them.

    C0 holds the quadrics and, for even q, the nucleus, which would be a fan of its own (layout A).
    """
    q, quadrics = _q(topology), topology.of_kind("W")
    first = _quadric(quadrics, start)
    nucleus = _nucleus(q, topology)
    near = topology.graph.neighbours(first)
    centres = near[~np.isin(near, nucleus)]
    rack = _around(topology, centres)
    return _layout(
        "fans",
        rack,
        kinds=("quadrics", "fan"),
        names=("quadrics", *(f"fan{i}" for i in range(1, len(centres) + 1))),
        centre=np.concatenate((nucleus if len(nucleus) else [-1], centres)),
        mate=_mates(q, rack, np.concatenate(([-1], centres))),
    )


def _around(topology: Topology, centres: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[N]: i + 1 for the i-th centre and its ordinary neighbours, 0 for the rest."""
    rack = np.zeros(topology.graph.order, np.int32)
    near = topology.graph.padded()[centres]
    numbered = np.broadcast_to(np.arange(1, len(centres) + 1)[:, None], near.shape)
    ordinary = (near >= 0) & (topology.kind[near] != 0)
    rack[near[ordinary]] = numbered[ordinary]
    rack[centres] = numbered[:, 0]
    return rack


def _mates(q: int, rack: NDArray[np.int32], centre: NDArray[np.int64]) -> NDArray[np.int32]:
    """int32[N]: the third vertex of the triangle with the centre of the fan; 0 at a centre."""
    vertex = np.arange(len(rack), dtype=np.int32)
    mate = np.zeros(len(rack), np.int32)
    blade = (rack > 0) & (vertex != centre[rack])
    mate[blade] = cross(q, vertex[blade], centre[rack[blade]].astype(np.int32))
    return mate


def stars(topology: Topology, start: int | None) -> Layout:
    """Layout B of even q: the nucleus alone, and each quadric with its q-1 other neighbours."""
    del start
    q, quadrics = _q(topology), topology.of_kind("W").astype(np.int32)
    nucleus = _nucleus(q, topology)
    rack = np.zeros(topology.graph.order, np.int32)
    near = topology.graph.padded()[quadrics, :q]
    rack[near] = rack[quadrics, None] = np.arange(1, q + 2)[:, None]
    rack[nucleus] = 0
    return _layout(
        "stars",
        rack,
        kinds=("nucleus", "star"),
        names=("nucleus", *(f"star{i}" for i in range(1, q + 2))),
        centre=np.concatenate((nucleus, quadrics)),
    )


def supernode_racks(topology: Topology, start: int | None) -> Layout:
    """One rack per supernode, members in canonical order; those of quadrics have loop links."""
    del start
    count = order(_q(topology))
    members = topology.graph.order // count
    vertices = np.arange(topology.graph.order, dtype=np.int32)
    return Layout(
        name="supernodes",
        rack=vertices // members,
        position=vertices % members,
        kinds=("quadric", "supernode"),
        kind=np.minimum(topology.kind[::members], 1),
        names=tuple(f"supernode{i}" for i in range(count)),
        centre=np.full(count, -1, np.int32),
    )


def supernode_clusters(topology: Topology, start: int | None) -> Layout:
    """The supernodes of each cluster of ER_q in one rack, one by one (PolarStar paper, §8)."""
    structure = fans(build_topology("polarfly", {"q": _q(topology)}), start)
    members = topology.graph.order // len(structure.rack)
    within = np.tile(np.arange(members, dtype=np.int32), len(structure.rack))
    return Layout(
        name="clusters",
        rack=np.repeat(structure.rack, members),
        position=np.repeat(structure.position, members) * members + within,
        kinds=structure.kinds,
        kind=structure.kind,
        names=structure.names,
        centre=np.full(len(structure.names), -1, np.int32),
    )


def subplane_racks(topology: Topology, start: int | None) -> Layout:
    """PN of q = p²: p²-p+1 racks, each a PN of order p (Projective Networks paper, §III-A)."""
    del start
    rack, position = subplanes(_q(topology))
    count = int(rack.max()) + 1
    return Layout(
        name="subplanes",
        rack=rack,
        position=position,
        kinds=("subplane",),
        kind=np.zeros(count, np.uint8),
        names=tuple(f"subplane{i}" for i in range(count)),
        centre=np.full(count, -1, np.int32),
    )


def _layout(
    name: str,
    rack: NDArray[np.int32],
    kinds: tuple[str, str],
    names: tuple[str, ...],
    centre: NDArray[np.integer],
    mate: NDArray[np.int32] | None = None,
) -> Layout:
    """A layout whose first rack is the only one of the first kind.

    In a rack the centre comes first, then the vertices ascending, those of one triangle with the
    centre side by side.
    """
    vertex = np.arange(len(rack), dtype=np.int32)
    lead = vertex if mate is None else np.where(rack == 0, vertex, np.minimum(vertex, mate))
    by_place = np.lexsort((vertex, lead, vertex != centre[rack], rack))
    sizes = np.bincount(rack, minlength=len(names))
    position = np.empty(len(rack), np.int32)
    position[by_place] = np.arange(len(rack)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kind = np.zeros(len(names), np.uint8)
    kind[1:] = 1
    return Layout(name, rack, position, kinds, kind, names, np.asarray(centre, np.int32))


def _quadric(quadrics: NDArray[np.int64], start: int | None) -> int:
    if start is None:
        return int(quadrics[0])
    if start in quadrics:
        return start
    shown = ", ".join(map(str, quadrics[:8])) + (", …" if len(quadrics) > 8 else "")
    raise InputError.of(key="start", required=f"a quadric: {shown}", given=str(start))


def _nucleus(q: int, topology: Topology) -> NDArray[np.int32]:
    """The vertex (1, 1, 1) of even q, which is joined to exactly the quadrics; none for odd q."""
    ones = (topology.coordinates == 1).all(axis=1)
    return np.flatnonzero(ones & (q % 2 == 0)).astype(np.int32)
