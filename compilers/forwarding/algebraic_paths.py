"""Minimal paths between numbered vertices, by the algebra of their vectors alone.

No graph is built, and nothing is searched. There is one rule for each family. It is a loop, which
runs as Python for a single pair and as machine code for many (`compilers.forwarding.machine_code`).
`family_paths` calls them.

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
    first_neighbour: Vertices
    """int32[N]: the first vertex that is orthogonal to each one; it may be the vertex itself."""


class Star(NamedTuple):
    """A PolarStar: router (x, x') has the number x·k + x'."""

    plane: Plane
    """The vectors of the structure graph."""
    members: int
    """k, the routers of a supernode."""
    bijection: Vertices
    """int32[2, k]: the bijections f, along an arc to a larger structure vertex, and f⁻¹, to a
    smaller one."""
    is_joined: NDArray[np.bool_]
    """bool[2, k, k]: the links inside a supernode, and inside that of a quadric."""
    common_neighbour: Vertices
    """int32[2, k, k]: the first common neighbour of two members by these links, or `NO_VERTEX`."""
    first_neighbour: Vertices
    """int32[N]: the first neighbour of each structure vertex."""


@lru_cache(maxsize=8)
def plane(q: int) -> Plane:
    """The vectors of ER_q."""
    gf = field(q)
    x, y, z = (np.ascontiguousarray(column) for column in points(q).T)
    # (0, 0, 1) is orthogonal to (x, y, 0), and (0, 1, -y/z) to (x, y, z): the first of its line.
    first_neighbour = np.where(z == 0, 0, 1 + gf.mul[gf.neg[y], gf.inv[z]]).astype(np.int32)
    return Plane(
        q,
        size=order(q),
        x=x,
        y=y,
        z=z,
        add=gf.add,
        mul=gf.mul,
        neg=gf.neg,
        inv=gf.inv,
        first_neighbour=first_neighbour,
    )


@lru_cache(maxsize=8)
def star(q: int, kind: str, degree: int) -> Star:
    """The tables of a PolarStar; kind and degree are those of the supernode."""
    pattern = supernode(kind, degree)
    edges = pattern.adjacency()
    edges_of_quadric = edges.copy()
    edges_of_quadric[pattern.loops(), pattern.forward[pattern.loops()]] = True
    joined = np.stack((edges, edges_of_quadric))
    # bool[2, k, k, k], for members a and b whether each member is a neighbour of both.
    is_common = joined[:, :, None, :] & joined.transpose(0, 2, 1)[:, None, :, :]
    common = np.where(is_common.any(axis=3), is_common.argmax(axis=3), NO_VERTEX).astype(np.int32)
    structure = plane(q)
    # A quadric (0, 1, z) is the first of its own line. The next one is (1, 0, 0), of number 1 + q.
    is_itself = structure.first_neighbour == np.arange(structure.size)
    neighbour = np.where(is_itself, 1 + q, structure.first_neighbour).astype(np.int32)
    image = np.stack((pattern.forward, pattern.backward))
    return Star(
        structure,
        members=pattern.order,
        bijection=image,
        is_joined=joined,
        common_neighbour=common,
        first_neighbour=neighbour,
    )


@loop
def dot(tables: Plane, u: int, v: int) -> int:
    """The dot product of two vertices: 0 where they are joined, or are the same quadric."""
    mul, add = tables.mul, tables.add
    product: int = add[
        add[mul[tables.x[u], tables.x[v]], mul[tables.y[u], tables.y[v]]],
        mul[tables.z[u], tables.z[v]],
    ]
    return product


@loop
def cross(tables: Plane, u: int, v: int) -> tuple[int, int, int]:
    """The cross product of two vertices, before it is normalised."""
    mul, add, neg = tables.mul, tables.add, tables.neg
    ux, uy, uz = tables.x[u], tables.y[u], tables.z[u]
    vx, vy, vz = tables.x[v], tables.y[v], tables.z[v]
    return (
        add[mul[uy, vz], neg[mul[uz, vy]]],
        add[mul[uz, vx], neg[mul[ux, vz]]],
        add[mul[ux, vy], neg[mul[uy, vx]]],
    )


@loop
def meeting(tables: Plane, u: int, v: int) -> int:
    """The only vertex that is orthogonal to both of two different vertices."""
    x, y, z = cross(tables, u, v)
    if x != 0:
        scale = tables.inv[x]
        ordinary: int = 1 + tables.q + tables.mul[y, scale] * tables.q + tables.mul[z, scale]
        return ordinary
    if y != 0:
        at_infinity: int = 1 + tables.mul[z, tables.inv[y]]
        return at_infinity
    return 0


@loop
def plane_path(tables: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write the minimal path of PolarFly to int32[3]."""
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    if dot(tables, source, destination) == 0:
        path[1] = destination
        return
    path[1], path[2] = meeting(tables, source, destination), destination


@loop
def incidence_path(tables: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of PN to int32[4]: of several paths, that over the first neighbour.

    Points are 0 to N - 1, lines N to 2N - 1; a line has the vector that it is orthogonal to.
    """
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    start, end = source % tables.size, destination % tables.size
    first_of_side = source - start
    first_of_other_side = tables.size - first_of_side
    if (source < tables.size) == (destination < tables.size):
        path[1], path[2] = first_of_other_side + meeting(tables, start, end), destination
    elif dot(tables, start, end) == 0:
        path[1] = destination
    else:
        first = tables.first_neighbour[start]
        path[1] = first_of_other_side + first
        path[2] = first_of_side + meeting(tables, first, end)
        path[3] = destination


@loop
def tree_path(tables: Plane, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of the orthogonal fat tree to int32[3]: over the first common spine.

    Leaves are 0 to N - 1 and 2N to 3N - 1, spines N to 2N - 1.
    """
    path[:] = NO_VERTEX
    path[0] = source
    if source == destination:
        return
    start, end = source % tables.size, destination % tables.size
    spine = tables.first_neighbour[start] if start == end else meeting(tables, start, end)
    path[1], path[2] = tables.size + spine, destination


@loop
def star_path(tables: Star, source: int, destination: int, path: Vertices) -> None:
    """Write a minimal path of PolarStar to int32[4]."""
    path[:] = NO_VERTEX
    path[0] = source
    for place in range(1, 4):
        if path[place - 1] == destination:
            return
        path[place] = next_router(tables, path[place - 1], destination)


@loop
def next_router(tables: Star, router: int, destination: int) -> int:
    """The next router of a minimal path to another router."""
    x, member = router // tables.members, router % tables.members
    y, goal = destination // tables.members, destination % tables.members
    if x == y:
        # In one supernode: the link, a common neighbour, or the way over another supernode.
        quadric = 1 if dot(tables.plane, x, x) == 0 else 0
        if tables.is_joined[quadric, member, goal]:
            return destination
        common: int = tables.common_neighbour[quadric, member, goal]
        if common != NO_VERTEX:
            return x * tables.members + common
        return joined_router(tables, x, member, tables.first_neighbour[x])
    middle = meeting(tables.plane, x, y)
    if dot(tables.plane, x, y) != 0:
        return joined_router(tables, x, member, middle)
    # Supernodes x and y are joined: the link, a link inside before it or after it, or the way over
    # a third supernode that is joined to both.
    towards = 0 if x < y else 1
    image: int = tables.bijection[towards, member]
    preimage: int = tables.bijection[1 - towards, goal]
    if image == goal:
        return destination
    if tables.is_joined[0, member, preimage]:
        return x * tables.members + preimage
    if tables.is_joined[0, image, goal]:
        return y * tables.members + image
    return joined_router(tables, x, member, middle)


@loop
def joined_router(tables: Star, x: int, member: int, z: int) -> int:
    """The router at structure vertex z that (x, member) is joined to; by a loop where z is x."""
    router: int = z * tables.members + tables.bijection[0 if x <= z else 1, member]
    return router


@loop
def plane_paths(tables: Plane, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write the path of each pair, int32[P], to a row of int32[P, 3]."""
    for pair in range(len(sources)):
        plane_path(tables, sources[pair], destinations[pair], paths[pair])


@loop
def incidence_paths(
    tables: Plane, sources: Vertices, destinations: Vertices, paths: Vertices
) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 4]."""
    for pair in range(len(sources)):
        incidence_path(tables, sources[pair], destinations[pair], paths[pair])


@loop
def tree_paths(tables: Plane, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 3]."""
    for pair in range(len(sources)):
        tree_path(tables, sources[pair], destinations[pair], paths[pair])


@loop
def star_paths(tables: Star, sources: Vertices, destinations: Vertices, paths: Vertices) -> None:
    """Write a path of each pair, int32[P], to a row of int32[P, 4]."""
    for pair in range(len(sources)):
        star_path(tables, sources[pair], destinations[pair], paths[pair])
