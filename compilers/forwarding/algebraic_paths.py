"""Minimal paths between numbered vertices, by the algebra of their vectors alone.

No graph is built, and nothing is searched. There is one rule for each family, a loop that plain
Python follows for a single pair, and machine code for many (`compilers.forwarding.machine_code`):

- `plane_path`, PolarFly: the middle of the only path of two links is the cross product of its ends
  (PolarFly paper, §IV-D, formula (2), with its signs and indices corrected).
- `incidence_path`, PN: two points meet on the line that is their cross product (Projective Networks
  paper, Lemma 3.4). A point and a line that does not pass through it have q + 1 paths of three
  links, one over each line through the point (also Lemma 3.4).
- `tree_path`, the orthogonal fat tree, from leaf to leaf: leaves of different points share one
  spine, the two leaves of one point share all its q + 1 spines. The paper has no lemma for it.
- `star_path`, PolarStar: the rules of `compilers.routing.polarstar_minimal`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import loop
from compilers.topology.field import field
from compilers.topology.polarity import order, points
from compilers.topology.supernodes import supernode

Vertices = NDArray[np.int32]
NO_VERTEX = -1
"""Fills the places of a path behind its destination, and of tables where there is no vertex."""


class Plane(NamedTuple):
    """The vectors of ER_q, and the field that their coordinates are from."""

    q: int
    """The order of the field."""
    size: int
    """N = q² + q + 1, the number of vectors."""
    x: Vertices
    """int32[N]: the first coordinate of each left-normalised vector."""
    y: Vertices
    """int32[N]: the second coordinate."""
    z: Vertices
    """int32[N]: the third coordinate."""
    add: Vertices
    """int32[q, q]: sums."""
    mul: Vertices
    """int32[q, q]: products."""
    neg: Vertices
    """int32[q]: negatives."""
    inv: Vertices
    """int32[q]: inverses; that of 0 has no meaning."""
    near: Vertices
    """int32[N]: the first vertex that is orthogonal to each one; it may be the vertex itself."""


class Star(NamedTuple):
    """A PolarStar: router (x, x') has the number x·k + x'."""

    plane: Plane
    """The structure graph."""
    members: int
    """k, the routers of a supernode."""
    image: Vertices
    """int32[2, k]: f, along an arc to a larger structure vertex, and f⁻¹, to a smaller one."""
    joined: NDArray[np.bool_]
    """bool[2, k, k]: the links inside a supernode, and inside that of a quadric."""
    common: Vertices
    """int32[2, k, k]: the first common neighbour of two members there, or `NO_VERTEX`."""
    neighbour: Vertices
    """int32[N]: the first neighbour of each structure vertex."""


@lru_cache(maxsize=8)
def plane(q: int) -> Plane:
    """The vectors of ER_q."""
    f = field(q)
    x, y, z = (np.ascontiguousarray(column) for column in points(q).T)
    # (0, 0, 1) is orthogonal to (x, y, 0), and (0, 1, -y/z) to (x, y, z): the first of its line.
    near = np.where(z == 0, 0, 1 + f.mul[f.neg[y], f.inv[z]]).astype(np.int32)
    return Plane(q, order(q), x, y, z, f.add, f.mul, f.neg, f.inv, near)


@lru_cache(maxsize=8)
def star(q: int, kind: str, degree: int) -> Star:
    """The tables of a PolarStar; kind and degree are those of the supernode."""
    node = supernode(kind, degree)
    edges = node.adjacency()
    of_quadric = edges.copy()
    of_quadric[node.loops(), node.forward[node.loops()]] = True
    joined = np.stack((edges, of_quadric))
    both = joined[:, :, None, :] & joined.transpose(0, 2, 1)[:, None, :, :]
    common = np.where(both.any(axis=3), both.argmax(axis=3), NO_VERTEX).astype(np.int32)
    structure = plane(q)
    # A quadric (0, 1, z) is the first of its own line. The next one is (1, 0, 0), of number 1 + q.
    itself = structure.near == np.arange(structure.size)
    neighbour = np.where(itself, 1 + q, structure.near).astype(np.int32)
    image = np.stack((node.forward, node.backward))
    return Star(structure, node.order, image, joined, common, neighbour)


@loop
def dot(at: Plane, u: int, v: int) -> int:
    """The dot product of two vertices: 0 where they are joined, or one and the same quadric."""
    mul, add = at.mul, at.add
    product: int = add[add[mul[at.x[u], at.x[v]], mul[at.y[u], at.y[v]]], mul[at.z[u], at.z[v]]]
    return product


@loop
def cross(at: Plane, u: int, v: int) -> tuple[int, int, int]:
    """The cross product of two vertices, before it is normalised."""
    mul, add, neg = at.mul, at.add, at.neg
    ux, uy, uz = at.x[u], at.y[u], at.z[u]
    vx, vy, vz = at.x[v], at.y[v], at.z[v]
    return (
        add[mul[uy, vz], neg[mul[uz, vy]]],
        add[mul[uz, vx], neg[mul[ux, vz]]],
        add[mul[ux, vy], neg[mul[uy, vx]]],
    )


@loop
def meeting(at: Plane, u: int, v: int) -> int:
    """The only vertex that is orthogonal to both of two different vertices."""
    x, y, z = cross(at, u, v)
    if x != 0:
        scale = at.inv[x]
        ordinary: int = 1 + at.q + at.mul[y, scale] * at.q + at.mul[z, scale]
        return ordinary
    if y != 0:
        at_infinity: int = 1 + at.mul[z, at.inv[y]]
        return at_infinity
    return 0


@loop
def plane_path(at: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write the minimal path of PolarFly to int32[3]."""
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    if dot(at, source, destination) == 0:
        path[1] = destination
        return
    path[1], path[2] = meeting(at, source, destination), destination


@loop
def incidence_path(at: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of PN to int32[4]; of q + 1 it is the one over the first neighbour.

    Points are 0 to N - 1, lines N to 2N - 1; a line has the vector that it is orthogonal to.
    """
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    start, end = source % at.size, destination % at.size
    one_side, other_side = source - start, at.size - (source - start)
    if (source < at.size) == (destination < at.size):
        path[1], path[2] = other_side + meeting(at, start, end), destination
    elif dot(at, start, end) == 0:
        path[1] = destination
    else:
        first = at.near[start]
        path[1], path[2] = other_side + first, one_side + meeting(at, first, end)
        path[3] = destination


@loop
def tree_path(at: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of the orthogonal fat tree to int32[3]; of many the first spine's.

    Leaves are 0 to N - 1 and 2N to 3N - 1, spines N to 2N - 1.
    """
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    start, end = source % at.size, destination % at.size
    spine = at.near[start] if start == end else meeting(at, start, end)
    path[1], path[2] = at.size + spine, destination


@loop
def star_path(at: Star, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of PolarStar to int32[4]."""
    path[:] = NO_VERTEX
    path[0] = source
    for place in range(1, 4):
        if path[place - 1] == destination:
            return
        path[place] = next_router(at, path[place - 1], destination)


@loop
def next_router(at: Star, router: int, destination: int) -> int:
    """The next router of a minimal path to another router."""
    x, member = router // at.members, router % at.members
    y, wanted = destination // at.members, destination % at.members
    if x == y:
        quadric = 1 if dot(at.plane, x, x) == 0 else 0
        if at.joined[quadric, member, wanted]:
            return destination
        common: int = at.common[quadric, member, wanted]
        if common != NO_VERTEX:
            return x * at.members + common
        return joined_router(at, x, member, at.neighbour[x])
    middle = meeting(at.plane, x, y)
    if dot(at.plane, x, y) != 0:
        return joined_router(at, x, member, middle)
    towards = 0 if x < y else 1
    image: int = at.image[towards, member]
    preimage: int = at.image[1 - towards, wanted]
    if image == wanted:
        return destination
    if at.joined[0, member, preimage]:
        return x * at.members + preimage
    if at.joined[0, image, wanted]:
        return y * at.members + image
    return joined_router(at, x, member, middle)


@loop
def joined_router(at: Star, x: int, member: int, z: int) -> int:
    """The router at structure vertex z that (x, member) is joined to; by a loop where z is x."""
    router: int = z * at.members + at.image[0 if x <= z else 1, member]
    return router


@loop
def plane_paths(at: Plane, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write the path of each pair, int32[P], to a row of int32[P, 3]."""
    for pair in range(len(sources)):
        plane_path(at, sources[pair], destinations[pair], paths[pair])


@loop
def incidence_paths(at: Plane, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 4]."""
    for pair in range(len(sources)):
        incidence_path(at, sources[pair], destinations[pair], paths[pair])


@loop
def tree_paths(at: Plane, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 3]."""
    for pair in range(len(sources)):
        tree_path(at, sources[pair], destinations[pair], paths[pair])


@loop
def star_paths(at: Star, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 4]."""
    for pair in range(len(sources)):
        star_path(at, sources[pair], destinations[pair], paths[pair])
