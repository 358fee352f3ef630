"""Delorme's graphs: the quotients of generalised quadrangles W(q) by a polarity.

The Projective Networks paper (§IV-C) takes the graph from the literature. It is computed here from
the coordinates of `generalised_quadrangle`, so that its distances and loads are measured and not
assumed.

A *polarity* maps points to lines and lines to points, so that a point p is on the line of p' if p'
is on the line of p. The graph joins such p and p'. For q = 2^(2e+1), the Suzuki–Tits polarity maps
the point (a, l, a') to the line [θ(a), θ⁻¹(l), θ(a')], where θ(x) = x^(2^(e+1)), so that
θ(θ(x)) = x².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.field import LARGEST_Q, Field, field
from compilers.topology.labelled_graph import Topology
from extensions.papers.projective.generalised_quadrangle import (
    first_with_coordinates,
    points_on_lines,
    polarity_graph,
)

POLAR = tuple(2**power for power in range(1, 11, 2) if 2**power <= LARGEST_Q)
"""The q for which W(q) has a polarity, in ascending order: odd powers of 2."""


def delorme(q: int) -> Topology:
    """Delorme's graph: points p and p' of W(q) are joined where p is on the line of p'.

    The lines are those of the Suzuki–Tits polarity. The q² + 1 points on their own line have q
    neighbours, all others q + 1.

    Raises:
        ValueError: q is no odd power of 2, so W(q) has no polarity (Tits, 1962).
    """
    if q not in POLAR:
        raise ValueError(f"W({q}) has a polarity only where q is an odd power of 2")
    points_of_polar = points_on_lines(q)[polarity(q)]
    return polarity_graph("Delorme quadrangle", q, points_of_polar, diameter=3)


def polarity(q: int) -> NDArray[np.int32]:
    """int32[N]: the line of each point in the Suzuki–Tits polarity, for q = 2^(2e+1)."""
    f = field(q)
    e = POLAR.index(q)  # q = 2^(2e+1)
    elements = np.arange(q, dtype=np.int32)
    theta = _power(f, elements, 2 ** (e + 1))
    theta_inverse = _power(f, elements, 2**e)  # of θ as a map
    # Points are numbered by how many coordinates they have, and then by these; lines likewise.
    first_1, first_2, first_3 = first_with_coordinates(q)
    line = np.empty(first_3 + q**3, np.int32)
    line[0] = 0  # (∞) to [∞]
    line[first_1:first_2] = first_1 + theta  # (a) to [θ(a)]
    # (k, b) to [θ⁻¹(k), θ(b)]
    line[first_2:first_3] = first_2 + (theta_inverse[:, None] * q + theta[None, :]).ravel()
    # (a, l, a') to [θ(a), θ⁻¹(l), θ(a')]
    k, b, k_prime = theta[:, None, None], theta_inverse[None, :, None], theta[None, None, :]
    line[first_3:] = first_3 + ((k * q + b) * q + k_prime).ravel()
    return line


def _power(f: Field, base: NDArray[np.int32], exponent: int) -> NDArray[np.int32]:
    """The powers of field elements with one exponent."""
    power = np.ones_like(base)
    for _ in range(exponent):
        power = f.mul[power, base]
    return power
