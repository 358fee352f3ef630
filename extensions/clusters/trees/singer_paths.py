"""Edge-disjoint Hamiltonian paths of ER_q from a Singer difference set (SPAA'23, §7).

A Singer cycle that is symmetric as a matrix, M = Mᵀ, numbers the points so that the dot product of
Mⁱx and Mʲx depends on i + j alone: i and j are joined when i + j mod N is in the difference set D.
Two elements d, e of D alternate along a path that moves on by d - e every second step; it visits
all N points, from the quadric d/2 to the quadric e/2, if d - e and N have no common divisor. Pairs
of elements without one in common give paths without a common edge.
"""

from __future__ import annotations

from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from compilers.topology.field import field
from compilers.topology.polarity import index, lines, order, points


def hamiltonian_paths(q: int) -> list[NDArray[np.int32]]:
    """int32[N] each: the vertices along ⌊(q + 1)/2⌋ Hamiltonian paths without a common edge.

    There were as many for every q up to 128 (SPAA'23, §7.3; tests check those up to 32); there
    would be fewer if too many differences shared a divisor with N.
    """
    from networkx import Graph, max_weight_matching

    n, cycle = order(q), symmetric_cycle(q)
    differences = np.flatnonzero(np.isin(cycle, lines(q)[cycle[0]])).tolist()
    pairs: Graph[int] = Graph()
    pairs.add_edges_from(
        (d, e) for d, e in product(differences, repeat=2) if d < e and gcd(e - d, n) == 1
    )
    matched = max_weight_matching(pairs, maxcardinality=True)
    return [cycle[_places(d, e, n)] for d, e in sorted(map(sorted, matched))]


def symmetric_cycle(q: int) -> NDArray[np.int32]:
    """int32[N]: the points in the order in which a symmetric collineation visits them all.

    The first one, in the order of (a, b, c, d), of the matrices a 1 0, 1 b d, 0 d c.
    """
    for d, a, b, c in product(range(1, q), range(q), range(q), range(q)):
        step = _images(q, a, b, c, d)
        orbit = [0]
        while (following := step[orbit[-1]]) != 0 and len(orbit) <= len(step):
            orbit.append(following)
        if len(orbit) == len(step):
            return np.array(orbit, np.int32)
    raise AssertionError("PG(2, q) has a symmetric Singer cycle")


def _images(q: int, a: int, b: int, c: int, d: int) -> list[int]:
    """The image of each point; of those of a matrix that is not regular some are wrong."""
    f = field(q)
    x, y, z = points(q).T
    u = f.add[f.mul[a, x], y]
    v = f.add[f.add[x, f.mul[b, y]], f.mul[d, z]]
    w = f.add[f.mul[d, y], f.mul[c, z]]
    scale = f.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    found: list[int] = index(q, np.stack([f.mul[p, scale] for p in (u, v, w)], axis=-1)).tolist()
    return found


def _places(d: int, e: int, n: int) -> NDArray[np.int64]:
    """int64[n]: the places along the path of d and e; its first edge is of e."""
    half = np.arange((n + 1) // 2, dtype=np.int64)
    even = (d * (n + 1) // 2 + half * (d - e)) % n
    path = np.empty(n, np.int64)
    path[::2] = even
    path[1::2] = (e - even[:-1]) % n
    return path
