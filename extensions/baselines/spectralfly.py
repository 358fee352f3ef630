"""SpectralFly: the Ramanujan graphs X^{p,q} of Lubotzky, Phillips and Sarnak.

Young et al., "SpectralFly" (IPDPS 2022), §III, which also allows p, q ≡ 3 (mod 4).

Vertices are 2×2 matrices over F_q, where multiples of a matrix count as the same. If p is no square
modulo q they are all invertible ones, the group PGL(2, q). Otherwise they are those whose
determinant is a square, the group PSL(2, q). A vertex is the multiple whose first entry other than
0 is 1. Vertices are numbered in ascending lexicographic order of the four entries.

The neighbours of a vertex are its products with p + 1 generators, one for each way to write p as a
sum of four squares (`four_squares`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.family import Design, Family, integers
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Problem

Matrix = NDArray[np.int64]
"""int64[…, 4], 2×2 matrices over F_q row by row."""
DIAMETER_THREE = {
    11: (7,),
    23: (11, 13),
    29: (13,),
    41: (23,),
    43: (17, 19),
    47: (17, 19),
    53: (17,),
    59: (17, 23),
    61: (19,),
    67: (17,),
    71: (23, 29),
    73: (19, 23),
    83: (19, 29),
    97: (31, 43),
    101: (23, 31, 37, 43),
    103: (29, 31, 41),
    107: (29, 31, 43),
    109: (29, 31),
    113: (31, 41),
    127: (23, 41, 43),
}
"""For each p below 128 every q for which X^{p,q} has diameter 3, by search. None has diameter 2."""


def is_odd_prime(n: int) -> bool:
    """Whether n is a prime other than 2."""
    return n > 2 and prime_power(n) == (n, 1)


def is_residue(p: int, q: int) -> bool:
    """Whether the Legendre symbol (p/q) is 1, by Euler's criterion."""
    return pow(p, (q - 1) // 2, q) == 1


def order(p: int, q: int) -> int:
    """The number of vertices.

    It is |PSL(2, q)| = q(q²-1)/2 if p is a square modulo q, else |PGL(2, q)| = q(q²-1).
    """
    return q * (q * q - 1) // (2 if is_residue(p, q) else 1)


def four_squares(p: int) -> list[tuple[int, ...]]:
    """The p + 1 solutions (a, b, c, d) of a² + b² + c² + d² = p that stand for the generators.

    For p ≡ 1 modulo 4, a is odd and the others are even; for p ≡ 3 it is the other way round. The
    first entry that is not 0 is positive.

    >>> len(four_squares(5)), four_squares(5)[0]
    (6, (1, -2, 0, 0))
    """
    bound = isqrt(p)
    parity_of_others = p % 4 // 2
    entries = range(-bound, bound + 1)
    first = [x for x in entries if x % 2 != parity_of_others and x >= 0]
    other_entries = [x for x in entries if x % 2 == parity_of_others]
    return [
        solution
        for solution in product(first, other_entries, other_entries, other_entries)
        if sum(x * x for x in solution) == p and next(x for x in solution if x) > 0
    ]


def generators(p: int, q: int) -> Matrix:
    """The generators, int64[p + 1, 4]: matrices row by row, with determinant p modulo q."""
    # The quaternion a + bi + cj + dk as a matrix over F_q, with any x and y of x² + y² = -1.
    x, y = next((x, y) for x, y in product(range(q), repeat=2) if (x * x + y * y + 1) % q == 0)
    a, b, c, d = np.array(four_squares(p), np.int64).T
    rows = (a + b * x + d * y, -b * y + c + d * x, -b * y - c + d * x, a - b * x - d * y)
    return np.stack(rows, axis=1) % q


def normalised(q: int, matrices: Matrix) -> Matrix:
    """The matrices, int64[…, 4], scaled so that the first entry that is not 0 is 1."""
    inverse = np.array([0, *(pow(x, -1, q) for x in range(1, q))])
    first = np.where(matrices[..., 0] != 0, matrices[..., 0], matrices[..., 1])
    scaled: Matrix = matrices * inverse[first][..., None] % q
    return scaled


def matrix_index(q: int, matrices: Matrix) -> NDArray[np.int64]:
    """The lexicographic index of normalised matrices among all of them, int64[…].

    The q² matrices (0, 1, c, d) come first, and then the q³ matrices (1, b, c, d). Some of them are
    not invertible, and no vertices.
    """
    a, b, c, d = (matrices[..., i] for i in range(4))
    return np.where(a == 1, q * q + (b * q + c) * q + d, c * q + d)


def elements(p: int, q: int) -> Matrix:
    """The matrices of the group in the order of `matrix_index`, int64[N, 4]."""
    # All normalised matrices. The index among those of its kind, to the base q, has the digits b,
    # c and d, or c and d where a = 0 and b = 1.
    indices = np.arange(q * q + q**3)
    a_is_zero = indices < q * q
    index_of_kind = np.where(a_is_zero, indices, indices - q * q)
    b = np.where(a_is_zero, 1, index_of_kind // (q * q))
    c, d = index_of_kind // q % q, index_of_kind % q
    matrices = np.stack((np.where(a_is_zero, 0, 1), b, c, d), axis=1)
    determinant = (matrices[:, 0] * d - b * c) % q
    is_square = np.zeros(q, np.bool_)
    is_square[np.arange(1, q) ** 2 % q] = True
    is_vertex = is_square[determinant] if is_residue(p, q) else determinant != 0
    vertices: Matrix = matrices[is_vertex]
    return vertices


def multiply(q: int, left: Matrix, right: Matrix) -> Matrix:
    """The products of 2×2 matrices, row by row in the last axis."""
    a, b, c, d = (left[..., i] for i in range(4))
    e, f, g, h = (right[..., i] for i in range(4))
    rows = (a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)
    return np.stack(rows, axis=-1) % q


def lps(p: int, q: int) -> tuple[Graph, Matrix]:
    """The graph X^{p,q}, and the matrix of each vertex, int64[N, 4]."""
    vertices = elements(p, q)
    vertex_of_index = np.full(q * q + q**3, -1, np.int64)
    vertex_of_index[matrix_index(q, vertices)] = np.arange(len(vertices))
    edges = []
    for generator in generators(p, q):
        heads = vertex_of_index[matrix_index(q, normalised(q, multiply(q, vertices, generator)))]
        forward = np.flatnonzero(np.arange(len(vertices)) < heads)
        edges.append(np.stack((forward, heads[forward]), axis=1))
    return Graph.from_edges(len(vertices), np.concatenate(edges)), vertices


class SpectralFly(Family):
    """The family X^{p,q}: distinct odd primes p and q with q > 2√p; degree p + 1."""

    name = "spectralfly"
    place = 15  # in lists of families
    compared = True
    parameters = ("p", "q")

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless p and q are distinct odd primes with q > 2√p.

        With a smaller q several generators lead to the same neighbour.
        """
        if problems := integers(parameters, {"p": 3, "q": 3}):
            return problems
        p, q = int(parameters["p"]), int(parameters["q"])
        return [
            Problem(key=key, required="an odd prime", given=str(n), todo=_primes_near(n))
            for key, n in (("p", p), ("q", q))
            if not is_odd_prime(n)
        ] or self._check_pair(p, q)

    @staticmethod
    def _check_pair(p: int, q: int) -> list[Problem]:
        """A problem unless q differs from p and is above 2√p."""
        if q != p and q * q > 4 * p:
            return []
        next_allowed = next(
            n for n in range(q + 1, 8 * p) if is_odd_prime(n) and n != p and n * n > 4 * p
        )
        return [
            Problem(
                key="q",
                required=f"a prime other than p and above 2√p = {2 * p**0.5:.1f}",
                given=str(q),
                todo=f"the next that fits p={p} is {next_allowed}",
            )
        ]

    def order(self, parameters: Parameters) -> int:
        """The order of PSL(2, q) or PGL(2, q)."""
        return order(int(parameters["p"]), int(parameters["q"]))

    def degree(self, parameters: Parameters) -> int:
        """The degree p + 1."""
        return int(parameters["p"]) + 1

    def build(self, parameters: Parameters) -> Topology:
        """X^{p,q} with the entries of the matrices as coordinates.

        The graph looks the same from every vertex, so one search gives the diameter.
        """
        p, q = int(parameters["p"]), int(parameters["q"])
        graph, matrices = lps(p, q)
        diameter = int(distances(neighbour_table(graph), np.array([0])).max())
        return self.direct({"p": p, "q": q}, graph, matrices.astype(np.int32), diameter)

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield every X^{radix-1,q} of diameter 3, for radix ≤ 128; larger q are not offered."""
        p = radix - 1
        for q in DIAMETER_THREE.get(p, ()):
            yield self.design(radix, order(p, q), diameter=3, parameters={"p": p, "q": q})


def _primes_near(n: int) -> str:
    """The odd primes next to n, in words."""
    below = next((k for k in range(n - 1, 2, -1) if is_odd_prime(k)), None)
    above = next(k for k in range(n + 1, 2 * n + 2) if is_odd_prime(k))
    return f"the nearest are {below} and {above}" if below else f"the smallest is {above}"
