"""Networks on the incidence of points and lines of PG(2, q) (Projective Networks paper, §III, §V).

Lines are numbered as the points that they are orthogonal to, so the points on line L are
`polarfly.lines(q)[L]`. demi-PN, the polarity quotient, is PolarFly.
"""

from __future__ import annotations

from itertools import product
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from compilers.topology.field import field
from compilers.topology.polarity import index, lines, order, points


def sided(q: int, sides: int) -> NDArray[np.int32]:
    """int32[sides · N, 4]: the number of a side, and the vector of each point on it."""
    side = np.repeat(np.arange(sides, dtype=np.int32), order(q))
    return np.column_stack((side, np.tile(points(q), (sides, 1))))


def subplanes(q: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """A partition of G_q, q = p², into m = p²-p+1 copies of G_p (§III-A).

    Two int32[2N] in the numbering of PN: the copy of each point or line, and its place in the copy,
    from 0, the same in every copy. A Singer cycle numbers the points 0..N-1 so that every line is a
    shift of one line. Shifts by m map each subplane to itself, so its points are those of one
    residue modulo m; a line belongs to the subplane that it shares p+1 points with.

    Raises:
        ValueError: q is not a square.
    """
    p = isqrt(q)
    if p * p != q:
        raise ValueError(f"{q} is not the square of a prime power")
    n, m = order(q), q - p + 1
    point = np.empty(n, np.int64)
    point[_singer_cycle(q)] = np.arange(n)

    around = np.sort(point[lines(q)], axis=1)
    adjacent = (np.roll(around, -1, axis=1) - around) % n == 1
    shift = around[adjacent]
    first = np.sort(around[shift == 0][0] % m)
    own = first[:-1][np.diff(first) == 0][0]
    line = (shift + own) % n

    numbers = np.concatenate((point, line))
    place = numbers // m + np.repeat([0, n // m], n)
    return (numbers % m).astype(np.int32), place.astype(np.int32)


def _singer_cycle(q: int) -> NDArray[np.int32]:
    """int32[N], the points in the order in which a collineation visits them all.

    The collineation is the companion matrix of a cubic x³ = a + bx + cx²: the first one, in
    lexicographic order of (c, b, a) from (1, 0, 1), whose orbit is the whole plane.
    """
    for c, b, a in product(range(1, q), range(q), range(1, q)):
        step = _companion(q, a, b, c).tolist()
        orbit = [0]
        while (following := step[orbit[-1]]) != 0:
            orbit.append(following)
        if len(orbit) == order(q):
            return np.array(orbit, np.int32)
    raise AssertionError("every finite projective plane over a field has a Singer cycle")


def _companion(q: int, a: int, b: int, c: int) -> NDArray[np.int32]:
    """int32[N], the image of each point (x, y, z): (az, x+bz, y+cz)."""
    f = field(q)
    x, y, z = points(q).T
    u, v, w = f.mul[a, z], f.add[x, f.mul[b, z]], f.add[y, f.mul[c, z]]
    scale = f.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    return index(q, np.stack([f.mul[part, scale] for part in (u, v, w)], axis=-1))
