"""PolarFly: the Erdős–Rényi polarity graph ER_q (PolarFly paper, §IV).

Vertices are the points of the projective plane over F_q, as left-normalised vectors in ascending
lexicographic order; two are joined when their dot product is 0. Quadrics are the points orthogonal
to themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import family_named
from compilers.topology.field import LARGEST_Q, field, powers, prime_power, prime_powers_near
from compilers.topology.labelled_graph import Topology
from inventory.problems import Problem

VERTEX_KINDS = ("W", "V1", "V2")
MIRRORS = 5
"""Reflections that are tried as symmetries, at least: so many reach all links that are alike."""
CELLS_AT_ONCE = 1 << 18
"""Ends of links that are computed at a time: a call that Ctrl-C need not wait for."""


def order(q: int) -> int:
    """N = q² + q + 1 (PolarFly paper, §IV-B)."""
    return q * q + q + 1


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of ER_q, and no more."""
    q, graph = int(topology.parameters.get("q", 0)), topology.graph
    family, size = family_named(topology.family), (graph.order, graph.size)
    return family is not None and family.polarity and size == (order(q), q * (q + 1) ** 2 // 2)


def points(q: int) -> NDArray[np.int32]:
    """int32[N, 3], the left-normalised vectors of F_q^3 in canonical order."""
    elements = np.arange(q, dtype=np.int32)
    table = np.zeros((order(q), 3), np.int32)
    table[0] = 0, 0, 1
    table[1 : q + 1, 1] = 1
    table[1 : q + 1, 2] = elements
    table[q + 1 :, 0] = 1
    table[q + 1 :, 1] = np.repeat(elements, q)
    table[q + 1 :, 2] = np.tile(elements, q)
    return table


def index(q: int, vectors: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[…], the canonical number of each left-normalised vector of `vectors`, int32[…, 3]."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    return np.where(x == 1, 1 + q + y * q + z, np.where(y == 1, 1 + z, 0)).astype(np.int32)


def lines(q: int, of: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """int32[n, q + 1]: the points orthogonal to each point, ascending, a quadric itself included.

    Solves a·x + b·y + c·z = 0 over the normal forms (1, y, z), (0, 1, z), (0, 0, 1) for all points
    (a, b, c) at once.

    Args:
        q: the order of the field.
        of: int32[n, 3], some of `points(q)`; None for all of them.
    """
    f = field(q)
    a, b, c = (points(q) if of is None else of).T
    y = np.arange(q, dtype=np.int32)
    table = np.empty((len(a), q + 1), np.int32)

    m = c != 0
    over = f.neg[f.inv[c[m]]]
    table[m, 0] = 1 + f.mul[b[m], over]
    slope, start = f.mul[b[m], over], f.mul[a[m], over]
    table[m, 1:] = 1 + q + y * q + f.add[start[:, None], f.mul[slope[:, None], y]]

    m = (c == 0) & (b != 0)
    table[m, 0] = 0
    table[m, 1:] = 1 + q + f.mul[f.neg[a[m]], f.inv[b[m]]][:, None] * q + y

    table[(c == 0) & (b == 0)] = np.append(np.int32(0), 1 + y)
    return table


def line_blocks(q: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """The first point of each block and the `lines` of its points, of a megabyte or so."""
    every = points(q)
    step = max(1, CELLS_AT_ONCE // (q + 1))
    for first in range(0, len(every), step):
        yield first, lines(q, every[first : first + step])


def edge_blocks(q: int) -> Iterator[NDArray[np.int32]]:
    """int32[n, 2]: the edges of ER_q block by block, u < v, ascending; the graph is not held."""
    for first, block in line_blocks(q):
        u = np.arange(first, first + len(block), dtype=np.int32)[:, None]
        later = block > u
        yield np.column_stack((np.broadcast_to(u, block.shape)[later], block[later]))


def cross(q: int, s: NDArray[np.int32], d: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[…]: the vertex s×d, the one point orthogonal to both vertices s ≠ d (numbers).

    It is the middle of the only path of length 2 (PolarFly paper, §IV-D, formula (2), with its
    signs and indices corrected). Where s×d is s or d, s and d are adjacent.
    """
    f = field(q)
    table = points(q)
    u, v = table[s], table[d]

    def minor(i: int, j: int) -> NDArray[np.int32]:
        return f.add[f.mul[u[..., i], v[..., j]], f.neg[f.mul[u[..., j], v[..., i]]]]

    return point(q, np.stack([minor(1, 2), minor(2, 0), minor(0, 1)], axis=-1))


def point(q: int, vectors: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[…], the vertex of each vector of `vectors`, int32[…, 3]; none is 0."""
    f = field(q)
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    scale = f.inv[np.where(x != 0, x, np.where(y != 0, y, z))]
    return index(q, f.mul[vectors, scale[..., None]])


def structure(q: int) -> tuple[Graph, NDArray[np.bool_]]:
    """ER_q without loops, and bool[N]: which vertices are quadrics."""
    quadric = np.zeros(order(q), np.bool_)
    targets = np.empty((len(quadric) - 1) * (q + 1), np.int32)  # q + 1 points are quadrics
    done = 0
    for first, block in line_blocks(q):
        loops = block == np.arange(first, first + len(block))[:, None]
        quadric[first : first + len(block)] = loops.any(axis=1)
        kept = block[~loops]
        targets[done : done + len(kept)] = kept
        done += len(kept)
    offsets = np.zeros(len(quadric) + 1, np.int64)
    np.cumsum(q + 1 - quadric, out=offsets[1:])
    return Graph(offsets=offsets, targets=targets), quadric


def symmetries(q: int) -> Iterator[NDArray[np.int32]]:
    """int32[N] each: automorphisms of ER_q, as the vertex that each vertex moves to.

    They turn the coordinates in a circle, and reflect at some vectors w. Where q is odd, v moves to
    (w·w)v - 2(v·w)w, of a w with w·w ≠ 0; else to v + (v·w)w, of a w with w·w = 0. Both keep which
    vectors are orthogonal.
    """
    f, every = field(q), points(q)
    yield point(q, np.roll(every, 1, axis=1))
    norm = _dot(q, every, every)
    mirrors = np.flatnonzero(norm == 0 if q % 2 == 0 else norm != 0)
    for w in every[mirrors[:: max(1, len(mirrors) // MIRRORS)]]:
        across = _dot(q, every, np.broadcast_to(w, every.shape))
        if q % 2:
            across = f.neg[f.add[across, across]]
        moved = f.mul[across[:, None], w]
        scale = f.mul[_dot(q, w[None], w[None]) if q % 2 else 1, every]
        yield point(q, f.add[scale, moved])


def _dot(q: int, v: NDArray[np.int32], u: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[…]: the dot product of vectors, int32[…, 3]."""
    f = field(q)
    x, y, z = np.moveaxis(f.mul[v, u], -1, 0)
    found: NDArray[np.int32] = f.add[f.add[x, y], z]
    return found


def quadrics(q: int) -> NDArray[np.int32]:
    """The points orthogonal to themselves, ascending."""
    at = points(q)
    return np.flatnonzero(_dot(q, at, at) == 0).astype(np.int32)


def affine(
    q: int, start: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Affine coordinates of ER_q: t and w, int32[N], and bool[N], which have both.

    In the chart from a quadric P0 (start, or the first), another P1 and R = P0×P1, a vertex that is
    neither centre nor P0 is (t, w), in fan t. For odd q (t, w) and (s, v) are joined where
    w + v = -(s - t)², for even q where w + v = st; centre t and all (t, w) are joined, and P0 and
    all centres. A centre has the t of its fan and w = 0.
    """
    f, at = field(q), points(q)
    known = quadrics(q)
    first = known[:1] if start is None else np.array([start], np.int32)
    second = known[known != first][:1]
    zero, one, pole = (at[v][0] for v in (first, second, cross(q, first, second)))
    ratio = f.mul[_dot(q, zero, one), f.inv[_dot(q, pole, pole)]]
    a, b, c = (_dot(q, at, each) for each in (zero, pole, one))
    w = f.mul[ratio, f.mul[c, f.inv[a]]]
    t = np.where(a, f.mul[ratio, f.mul[b, f.inv[a]]], f.neg[f.mul[c, f.inv[b]]])
    if q % 2:
        w = f.neg[f.add[f.add[w, w], f.mul[t, t]]]
    return t.astype(np.int32), np.where(a, w, 0).astype(np.int32), a != 0


def scaled(q: int, t: NDArray[np.int32], w: NDArray[np.int32]) -> NDArray[np.int32]:
    """The place of (t, w) in its fan, by which all fans are the same inside: w, for even q w/t²."""
    f = field(q)
    over = f.inv[np.where(t, t, 1)]
    place: NDArray[np.int32] = w if q % 2 else f.mul[w, f.mul[over, over]]
    return place


def headings(q: int, far: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[N, K]: numbers of each vertex' links, the same in all fans.

    In affine coordinates a link from (t, w) to (s, v) is known by s - t, for even q by s/t, and one
    from centre t to (t, w) by w, for even q by w/t², from P0 to centre t by t: number 0 for 0,
    1 + i for the i-th power of the primitive element, q for one to a centre or P0, and q + 1 from
    P0 to P0. Triangles are alike in all fans, too: links s - t and -w/(s - t), or r and r' with
    1/r + 1/r' = 1.

    Args:
        q: the order of the field.
        far: the neighbours, -1 beyond the last. PN and OFT have ER_q's points two and three times:
            links to the third are q + 2 higher.
    """
    f = field(q)
    copy, there = np.divmod(far, order(q))
    here = np.arange(len(far))[:, None] % order(q)
    t, w, member = affine(q)
    over = f.inv[np.where(t, t, 1)][here]
    seen = f.add[t[there], f.neg[t[here]]] if q % 2 else f.mul[t[there], over]
    log = np.zeros(q, np.int32)
    log[powers(q)] = np.arange(1, q)
    inside = scaled(q, np.broadcast_to(t[here], far.shape), w[there])
    number = np.where(member[there], log[np.where(member[here], seen, inside)], q)
    first = quadrics(q)[0]
    number = np.where(here == first, np.where(there == first, q + 1, log[t[there]]), number)
    third = np.where(copy == 2, q + 2, 0)
    absent = int(third.max(initial=0)) + q + 1
    return np.where(far < 0, absent, number + third).astype(np.int32)


def check_q(q: int | str) -> list[Problem]:
    """A problem with key `q` unless q is a prime power from 2 to `LARGEST_Q`."""
    number = q if type(q) is int else 0
    if 2 <= number <= LARGEST_Q and prime_power(number):
        return []
    if number > LARGEST_Q:
        todo = f"the largest is {LARGEST_Q}"
    elif number > 2:
        todo = "the nearest are {} and {}".format(*prime_powers_near(number))
    else:
        todo = "the smallest are 2, 3 and 4"
    required = f"a prime power from 2 to {LARGEST_Q}"
    return [Problem(key="q", required=required, given=str(q), todo=todo)]
