"""The Erdős–Rényi polarity graph ER_q, the graph of PolarFly (PolarFly paper, §IV).

Vertices are the points of the projective plane over F_q, as left-normalised vectors in ascending
lexicographic order (their *canonical* numbers): the first coordinate that is not 0 is 1. Two points
are joined when their dot product is 0. *Quadrics* are the points orthogonal to themselves. Other
families (PN, OFT, PolarStar) are made of the same points.

Racks of a PolarFly are *fans*. Each neighbour of one quadric, P0, is the *centre* of a fan, which
has the centre and the other neighbours of the centre. `affine` gives vertices coordinates in which
all fans look the same, and `headings` numbers their links, so that all fans can be cabled in the
same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import family_named
from compilers.topology.field import LARGEST_Q, field, powers, prime_power, prime_powers_near
from compilers.topology.labelled_graph import Topology
from inventory.problems import Problem

VERTEX_KINDS = ("W", "V1", "V2")
"""The kinds of vertices: W for quadrics, V1 for their neighbours, V2 for all other vertices."""
MIRRORS = 5
"""The least number of reflections among the automorphisms that `symmetries` yields. Together they
move each link to all other links of its orbit."""
CELLS_AT_ONCE = 1 << 18
"""How many neighbours of points are computed in one call: few enough that Ctrl-C acts at once."""


def order(q: int) -> int:
    """Return the number of points, N = q² + q + 1 (PolarFly paper, §IV-B)."""
    return q * q + q + 1


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of ER_q, and no more."""
    q, graph = int(topology.parameters.get("q", 0)), topology.graph
    family, size = family_named(topology.family), (graph.order, graph.size)
    return family is not None and family.polarity and size == (order(q), q * (q + 1) ** 2 // 2)


def points(q: int) -> NDArray[np.int32]:
    """Return the left-normalised vectors of F_q^3 in canonical order, int32[N, 3].

    >>> points(2).tolist()
    [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]]
    """
    elements = np.arange(q, dtype=np.int32)
    table = np.zeros((order(q), 3), np.int32)
    table[0] = 0, 0, 1
    # The next q points are (0, 1, z), and all others are (1, y, z).
    table[1 : q + 1, 1] = 1
    table[1 : q + 1, 2] = elements
    table[q + 1 :, 0] = 1
    table[q + 1 :, 1] = np.repeat(elements, q)
    table[q + 1 :, 2] = np.tile(elements, q)
    return table


def numbers_of(q: int, vectors: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the canonical numbers of left-normalised vectors, int32[…], of int32[…, 3].

    This is the inverse of `points`.
    """
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    # (0, 0, 1) is the first, q points (0, 1, z) come next, and then all (1, y, z).
    without_x = np.where(y == 1, 1 + z, 0)
    return np.where(x == 1, 1 + q + y * q + z, without_x).astype(np.int32)


def lines(q: int, vectors: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """Return the points orthogonal to each point, int32[n, q + 1], ascending.

    A quadric is orthogonal to itself. The equation a·x + b·y + c·z = 0 is solved over the normal
    forms (1, y, z), (0, 1, z), (0, 0, 1) for all points (a, b, c) at once.

    Args:
        q: the order of the field.
        vectors: int32[n, 3], the vectors of some points; None for all points.

    >>> lines(2)[:2].tolist()
    [[1, 3, 5], [0, 3, 4]]
    """
    f = field(q)
    a, b, c = (points(q) if vectors is None else vectors).T
    y = np.arange(q, dtype=np.int32)
    table = np.empty((len(a), q + 1), np.int32)

    # c ≠ 0: (0, 1, -b/c), and (1, y, -(a + by)/c) for each y.
    has_c = c != 0
    minus_inverse = f.neg[f.inv[c[has_c]]]
    slope, start = f.mul[b[has_c], minus_inverse], f.mul[a[has_c], minus_inverse]
    table[has_c, 0] = 1 + slope
    table[has_c, 1:] = 1 + q + y * q + f.add[start[:, None], f.mul[slope[:, None], y]]

    # c = 0, b ≠ 0: (0, 0, 1), and (1, -a/b, z) for each z.
    only_b = (c == 0) & (b != 0)
    table[only_b, 0] = 0
    table[only_b, 1:] = 1 + q + f.mul[f.neg[a[only_b]], f.inv[b[only_b]]][:, None] * q + y

    # Only a ≠ 0: (0, 0, 1), and (0, 1, z) for each z.
    table[(c == 0) & (b == 0)] = np.append(np.int32(0), 1 + y)
    return table


def line_blocks(q: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield the first point of each block of points, and the `lines` of the block's points."""
    vectors = points(q)
    step = max(1, CELLS_AT_ONCE // (q + 1))
    for first in range(0, len(vectors), step):
        yield first, lines(q, vectors[first : first + step])


def edge_blocks(q: int) -> Iterator[NDArray[np.int32]]:
    """Yield the edges (u, v) of ER_q with u < v in blocks, int32[n, 2] each, ascending."""
    for first, block in line_blocks(q):
        u = np.arange(first, first + len(block), dtype=np.int32)[:, None]
        later = block > u
        yield np.column_stack((np.broadcast_to(u, block.shape)[later], block[later]))


def cross(q: int, s: NDArray[np.int32], d: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the vertex s×d, the one point orthogonal to both s and d, int32[…].

    It is the middle of the only path of length 2 (PolarFly paper, §IV-D, formula (2), with its
    signs and indices corrected). Where s×d is s or d, s and d are adjacent.

    Args:
        q: the order of the field.
        s: int32[…], vertices by number.
        d: int32[…], other vertices, each different from s.
    """
    f = field(q)
    vectors = points(q)
    u, v = vectors[s], vectors[d]

    def minor(i: int, j: int) -> NDArray[np.int32]:
        """u_i·v_j - u_j·v_i, an entry of the cross product."""
        return f.add[f.mul[u[..., i], v[..., j]], f.neg[f.mul[u[..., j], v[..., i]]]]

    return point(q, np.stack([minor(1, 2), minor(2, 0), minor(0, 1)], axis=-1))


def point(q: int, vectors: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the vertices of vectors, int32[…], of int32[…, 3], none of which is 0."""
    f = field(q)
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    # The first coordinate that is not 0 becomes 1.
    first_of_y_z = np.where(y != 0, y, z)
    scale = f.inv[np.where(x != 0, x, first_of_y_z)]
    return numbers_of(q, f.mul[vectors, scale[..., None]])


def structure(q: int) -> tuple[Graph, NDArray[np.bool_]]:
    """Return ER_q without loops, and which vertices are quadrics, bool[N]."""
    quadric = np.zeros(order(q), np.bool_)
    # Each point is orthogonal to q + 1 points, less the loops of the q + 1 quadrics.
    targets = np.empty((len(quadric) - 1) * (q + 1), np.int32)
    filled = 0
    for first, block in line_blocks(q):
        loops = block == np.arange(first, first + len(block))[:, None]
        quadric[first : first + len(block)] = loops.any(axis=1)
        neighbours = block[~loops]
        targets[filled : filled + len(neighbours)] = neighbours
        filled += len(neighbours)
    offsets = np.zeros(len(quadric) + 1, np.int64)
    np.cumsum(q + 1 - quadric, out=offsets[1:])
    return Graph(offsets=offsets, targets=targets), quadric


def symmetries(q: int) -> Iterator[NDArray[np.int32]]:
    """Yield automorphisms of ER_q, as the vertex that each vertex moves to, int32[N] each.

    The first one rotates the three coordinates, which keeps dot products. The others are
    reflections R at vectors w. For odd q, R(v) = (w·w)v - 2(v·w)w, with w·w ≠ 0. For even q,
    R(v) = v + (v·w)w, with w·w = 0. Multiplied out, R(v)·R(u) is (w·w)²(v·u) for odd q, and v·u for
    even q, where 2 = 0. So orthogonal vectors stay orthogonal.
    """
    f, vectors = field(q), points(q)
    yield point(q, np.roll(vectors, 1, axis=1))
    norm = _dot(q, vectors, vectors)
    mirrors = np.flatnonzero(norm == 0 if q % 2 == 0 else norm != 0)
    for w in vectors[mirrors[:: max(1, len(mirrors) // MIRRORS)]]:
        factor = _dot(q, vectors, np.broadcast_to(w, vectors.shape))  # v·w of each vertex v
        if q % 2:
            factor = f.neg[f.add[factor, factor]]
        along_w = f.mul[factor[:, None], w]
        scaled_vectors = f.mul[_dot(q, w[None], w[None]) if q % 2 else 1, vectors]
        yield point(q, f.add[scaled_vectors, along_w])


def _dot(q: int, v: NDArray[np.int32], u: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the dot products of vectors, int32[…], of int32[…, 3]."""
    f = field(q)
    x, y, z = np.moveaxis(f.mul[v, u], -1, 0)
    product: NDArray[np.int32] = f.add[f.add[x, y], z]
    return product


def quadrics(q: int) -> NDArray[np.int32]:
    """Return the points orthogonal to themselves, int32[q + 1], ascending.

    >>> quadrics(3).tolist()
    [8, 9, 11, 12]
    """
    vectors = points(q)
    return np.flatnonzero(_dot(q, vectors, vectors) == 0).astype(np.int32)


class AffineCoordinates(NamedTuple):
    """Coordinates of the vertices of ER_q in a chart from a quadric P0."""

    t: NDArray[np.int32]
    """int32[N], the number of a vertex's fan."""
    w: NDArray[np.int32]
    """int32[N], its place in the fan; 0 for the centre."""
    in_fan: NDArray[np.bool_]
    """bool[N], the vertices with both coordinates: all but P0 and the centres."""


def affine(q: int, start: int | None = None) -> AffineCoordinates:
    """Return affine coordinates of ER_q, in which all fans look the same.

    The neighbours of a quadric P0 are the centres of the fans. Every other vertex, except P0, is
    (t, w), in fan t.

    - For odd q, (t, w) and (s, v) are joined where w + v = -(s - t)²; for even q where w + v = st.
    - Centre t is joined to all (t, w), and to P0.

    Proof. The base vectors are P0, another quadric P1, and M, a multiple of P0×P1. Only M is
    orthogonal to both P0 and P1 (`cross`), so P0·P1 is not 0, and neither is M·M, which is
    -(P0·P1)² times a square. Let r = (P0·P1)/(M·M). The vertices that are not orthogonal to P0 are
    a·P0 + t·M + P1, as P1 gets the factor 1 if a vector is multiplied by a number.

    - a·P0 + t·M + P1 and b·P0 + s·M + P1 have the dot product (M·M)(ra + rb + ts). They are joined
      where ra + rb = -ts. For even q, w is ra. For odd q, w is -2ra - t², and v is -2rb - s², so
      w + v = 2ts - t² - s².
    - The vertices orthogonal to P0, other than P0, are c·P0 + M. Their dot product with
      a·P0 + t·M + P1 is (M·M)(rc + t). So c·P0 + M is the centre of fan -rc.

    Args:
        q: the order of the field.
        start: the quadric P0; None for the first.
    """
    f, vectors = field(q), points(q)
    all_quadrics = quadrics(q)
    p0 = all_quadrics[:1] if start is None else np.array([start], np.int32)
    p1 = all_quadrics[all_quadrics != p0][:1]
    vector_p0, vector_p1, vector_m = (vectors[v][0] for v in (p0, p1, cross(q, p0, p1)))
    r = f.mul[_dot(q, vector_p0, vector_p1), f.inv[_dot(q, vector_m, vector_m)]]
    # Of a vertex α·P0 + β·M + γ·P1 these are γ(P0·P1), β(M·M) and α(P0·P1).
    dot_p0, dot_m, dot_p1 = (_dot(q, vectors, base) for base in (vector_p0, vector_m, vector_p1))
    in_fan = dot_p0 != 0
    ra = f.mul[r, f.mul[dot_p1, f.inv[dot_p0]]]  # r·α/γ
    t_in_fan = f.mul[r, f.mul[dot_m, f.inv[dot_p0]]]  # β/γ
    t_of_centre = f.neg[f.mul[dot_p1, f.inv[dot_m]]]  # -r·α/β
    t = np.where(in_fan, t_in_fan, t_of_centre)
    w = f.neg[f.add[f.add[ra, ra], f.mul[t, t]]] if q % 2 else ra
    return AffineCoordinates(t.astype(np.int32), np.where(in_fan, w, 0).astype(np.int32), in_fan)


def label_in_fan(q: int, t: NDArray[np.int32], w: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a label of (t, w) by which all fans have the same links inside, int32[…].

    It is w for odd q: in a fan (t, w) and (t, v) are joined where w + v = 0. It is w/t² for even q,
    where w/t² + v/t² = 1. For even q fan 0 has the quadrics other than P0, and no such links.
    """
    f = field(q)
    inverse_t = f.inv[np.where(t, t, 1)]
    label: NDArray[np.int32] = w if q % 2 else f.mul[w, f.mul[inverse_t, inverse_t]]
    return label


def headings(q: int, far: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a number for each link of a vertex, the same in all fans, int32[N, K].

    Ports are assigned in the order of these numbers, so that links of all fans have the same ports.
    In affine coordinates the number of a link comes from an element of the field: for a link

    - from (t, w) to (s, v): s - t, or for even q s/t,
    - from centre t to (t, w): w, or for even q w/t²,
    - from P0 to centre t: t.

    It is 0 for the element 0, and 1 + i for the i-th power of the primitive element. Links to a
    centre or to P0 have the number q, and the loop of P0 in PN and OFT has q + 1.

    Why the numbers are the same in all fans: by the equations of `affine`, (t, w) → (t + c, w) is
    an automorphism for odd q, and (t, w) → (ct, c²w) for even q and c ≠ 0. It moves fans to fans,
    and keeps s - t and w, or s/t and w/t². Triangles have the same numbers in all fans, too, by the
    same equations: links h = s - t and -w/h of (t, w), or r = s/t and r' with 1/r + 1/r' = 1.

    Args:
        q: the order of the field.
        far: int32[N, K], the neighbours, -1 beyond the last. PN and OFT have the points of ER_q two
            and three times; links to the third copy have numbers that are q + 2 higher.
    """
    f = field(q)
    # The points at both ends of each link: `target` is int[N, K], and `source` int[N, 1].
    copy, target = np.divmod(far, order(q))
    source = np.arange(len(far))[:, None] % order(q)
    t, w, in_fan = affine(q)
    number_of = np.zeros(q, np.int32)  # by the element
    number_of[powers(q)] = np.arange(1, q)

    # From (t, w) and from a centre, to (s, v): the element of the field.
    inverse_t = f.inv[np.where(t, t, 1)][source]
    from_fan = f.add[t[target], f.neg[t[source]]] if q % 2 else f.mul[t[target], inverse_t]
    from_centre = label_in_fan(q, np.broadcast_to(t[source], far.shape), w[target])
    element = np.where(in_fan[source], from_fan, from_centre)

    # All links but those of P0, and then those of P0: to itself, or to centres.
    number = np.where(in_fan[target], number_of[element], q)
    p0 = quadrics(q)[0]
    from_p0 = np.where(target == p0, q + 1, number_of[t[target]])
    number = np.where(source == p0, from_p0, number)

    to_third_copy = np.where(copy == 2, q + 2, 0)
    absent = int(to_third_copy.max(initial=0)) + q + 1
    return np.where(far < 0, absent, number + to_third_copy).astype(np.int32)


def check_q(q: int | str) -> list[Problem]:
    """Return a problem with key `q` unless q is a prime power from 2 to `LARGEST_Q`."""
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
