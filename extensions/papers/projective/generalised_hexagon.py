"""The split Cayley hexagons H(q), their incidence graphs, and Delorme's graph of H(3).

The Projective Networks paper (§IV-C) takes the graphs from the literature. They are computed here
from coordinates, so that distances and loads are measured and not assumed.

Points are (∞), (a), (k, b), (a, l, a'), (k, b, k', b'), (a, l, a', l', a''), and lines are [∞],
[k], [a, l], [k, b, k'], [a, l, a', l'], [k, b, k', b', k''], with coordinates from F_q (Van
Maldeghem, *Generalized Polygons*, §3.5.1). A point is on a line where one has the coordinates of
the other without its last one, and (a, l, a', l', a'') is on [k, b, k', b', k''] where

    a'' = ak + b,                           a' = a²k + b' + 2ab,
    k'' = a³k + l - 3a''a² + 3aa',          k' = a³k² + l' - kl - 3a²a''k - 3a'a'' + 3aa''².

Tests show that these are generalised hexagons: the incidence graphs have degree q + 1, diameter 6
and girth 12.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from compilers.topology.field import Field, field
from compilers.topology.labelled_graph import Topology
from extensions.papers.projective.generalised_quadrangle import (
    incidence_graph,
    incidences,
    polarity_graph,
)

SELF_POLAR = 3
"""The q of the hexagon whose polarity is used. H(q) has one for odd powers of 3; this is the least.
"""
Elements = NDArray[np.integer]
"""Elements of a field, as arrays that numpy broadcasts."""


def lines_of_hexagon(q: int) -> NDArray[np.int64]:
    """int64[N, q + 1]: the points on each line of H(q), N = 1 + q + q² + q³ + q⁴ + q⁵.

    Points are numbered (∞), (a), (k, b), …, each kind in the order of its coordinates; lines
    likewise [∞], [k], [a, l], ….

    Raises:
        ValueError: q is not a prime power.
    """
    f = field(q)
    elements = np.arange(q)
    # The number of the first point, and of the first line, with 0 to 5 coordinates; then the end.
    first = np.cumsum([0, *(q**count for count in range(6))])
    points = np.empty((first[-1], q + 1), np.int64)
    points[0] = np.append(0, first[1] + elements)  # [∞]: (∞), and every (a)
    for count in range(1, 6):
        # A line with so many coordinates: the point without the last of them, and, if there are
        # fewer than five, the points with one more.
        lines = slice(first[count], first[count + 1])
        points[lines, 0] = first[count - 1] + np.repeat(np.arange(q ** (count - 1)), q)
        if count < 5:
            points[lines, 1:] = first[count + 1] + np.arange(q ** (count + 1)).reshape(-1, q)
    k, b, k1, b1, k2 = (axis.reshape(-1, 1) for axis in np.meshgrid(*[elements] * 5, indexing="ij"))
    points[first[5] :, 1:] = first[5] + _points_of_five(f, k=k, b=b, k1=k1, b1=b1, k2=k2)
    return points


def _points_of_five(
    f: Field, k: Elements, b: Elements, k1: Elements, b1: Elements, k2: Elements
) -> Elements:
    """The points (a, l, a', l', a'') on lines [k, b, k', b', k''], a column for each a.

    A point is numbered in the order of its coordinates. Variables have digits for primes: k1 is k',
    and k2 is k''. The l without a prime is l0.
    """
    q = len(f.neg)
    a = np.arange(q)[None, :]

    def total(*terms: Elements) -> Elements:
        """The sum of terms."""
        return reduce(lambda left, right: f.add[left, right], terms)

    def product(*factors: Elements) -> Elements:
        """The product of factors."""
        return reduce(lambda left, right: f.mul[left, right], factors)

    def minus(term: Elements) -> Elements:
        """The negative of a term."""
        return f.neg[term]

    def thrice(*factors: Elements) -> Elements:
        """Three times a product of factors."""
        once = product(*factors)
        return total(once, once, once)

    # The four equations of the module's docstring, solved for a'', a', l and l'.
    a2 = total(product(a, k), b)
    a1 = total(product(a, a, k), b1, product(a, b), product(a, b))
    l0 = total(k2, minus(product(a, a, a, k)), thrice(a2, a, a), minus(thrice(a, a1)))
    l1 = total(
        k1,
        minus(product(a, a, a, k, k)),
        product(k, l0),
        thrice(a, a, a2, k),
        thrice(a1, a2),
        minus(thrice(a, a2, a2)),
    )
    return (((a * q + l0) * q + a1) * q + l1) * q + a2


def hexagon_incidence(q: int) -> Topology:
    """The incidence graph of H(q): points 0 to N - 1, lines N to 2N - 1, degree q + 1, diameter 6.

    Raises:
        ValueError: q is not a prime power.
    """
    return incidence_graph("hexagon incidence", q, lines_of_hexagon(q), diameter=6)


def is_polar_by_coordinates(q: int) -> bool:
    """Whether each point of H(q) and the line with its coordinates are changed by a polarity.

    They are if a point is on the line of another one just where that one is on its own line.
    """
    pairs = {tuple(pair) for pair in incidences(lines_of_hexagon(q)).tolist()}
    return all((point, line) in pairs for line, point in pairs)


def delorme_of_hexagon() -> Topology:
    """Delorme's graph of H(3): points p and p' are joined where p is on the line of p'.

    The line of a point is the one with its coordinates, a polarity (`is_polar_by_coordinates`).
    """
    lines = lines_of_hexagon(SELF_POLAR)
    return polarity_graph("Delorme hexagon", SELF_POLAR, lines, diameter=5)
