"""Slim Fly: the McKay–Miller–Širáň graphs MMS(q) (Projective Networks paper, §IV-B).

The field F_q has order q = 4w + δ, with δ in {-1, 0, 1}, a prime power other than 2. Vertex
(s, x, y), with s in {0, 1} and x, y in F_q, has number s·q² + x·q + y. (s, x, y) and (s, x, y') are
joined if y - y' is in the generator set X_s. (0, x, y) and (1, x', y') are joined if y - y' = x·x'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, Modules, integers
from compilers.topology.field import field, powers, prime_power, prime_powers_near
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.layout import Layout
from inventory.problems import Problem

SUBGRAPHS = ("S0", "S1")
"""The kinds of vertices: s = 0 and s = 1."""


def residue(q: int) -> int:
    """The δ in {-1, 0, 1} with q ≡ δ (mod 4).

    >>> residue(5), residue(7), residue(8)
    (1, -1, 0)
    """
    return (q + 1) % 4 - 1


def order(q: int) -> int:
    """The number of vertices, 2q²."""
    return 2 * q * q


def degree(q: int) -> int:
    """The degree of each vertex, (3q - δ)/2."""
    return (3 * q - residue(q)) // 2


def generator_sets(q: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The generator sets X_0 and X_1 = ξ·X_0, with (q - δ)/2 elements each.

    ξ is a primitive element of F_q, and X_0 has its even powers. For δ = -1 these are not closed
    under negation, so the exponents are 0, 2, …, (q-3)/2 and (q-1)/2, (q+3)/2, …, q-2. Those in the
    paper are off by one.
    """
    xi = powers(q)  # by exponent, the powers of ξ
    exponents = np.arange(0, q - 1, 2)
    if residue(q) == -1:
        exponents = np.concatenate((np.arange(0, (q - 1) // 2, 2), np.arange((q - 1) // 2, q, 2)))
    return xi[exponents % (q - 1)], xi[(exponents + 1) % (q - 1)]


def mms(q: int) -> Graph:
    """MMS(q) for a prime power q other than 2."""
    f = field(q)
    elements = np.arange(q)
    links = []
    # (s, x, y) and (s, x, y + g), for the same pairs of second coordinates in all 2q groups (s, x).
    for s, generators in enumerate(generator_sets(q)):
        heads = f.add[elements[:, None], generators]
        pairs = np.stack(np.broadcast_arrays(elements[:, None], heads), axis=-1).reshape(-1, 2)
        first_of_group = (s * q + elements)[:, None, None] * q
        links.append((first_of_group + pairs[pairs[:, 0] < pairs[:, 1]]).reshape(-1, 2))
    # (0, x, y) and (1, x', y - x·x').
    x, far_x, y = (
        axis.ravel() for axis in np.meshgrid(elements, elements, elements, indexing="ij")
    )
    heads = q * q + far_x * q + f.add[y, f.neg[f.mul[x, far_x]]]
    links.append(np.stack((x * q + y, heads), axis=1))
    return Graph.from_edges(order(q), np.concatenate(links))


def check_q(parameters: Parameters) -> list[Problem]:
    """A problem unless q is a prime power of at least 3."""
    if problems := integers(parameters, {"q": 3}):
        return problems
    q = int(parameters["q"])
    if prime_power(q):
        return []
    todo = "the nearest are {} and {}".format(*prime_powers_near(q))
    return [Problem(key="q", required="a prime power", given=str(q), todo=todo)]


def feasible(radix: int) -> Iterator[int]:
    """Yield every q for which MMS(q) has this degree, at most one for each δ."""
    for delta in (-1, 0, 1):
        q, remainder = divmod(2 * radix + delta, 3)
        if remainder == 0 and q > 2 and residue(q) == delta and prime_power(q):
            yield q


def affine(q: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The rack and the label of each vertex, int32[S] each, so that all racks are wired alike.

    Racks and labels are elements of F_q. A vertex of S0 with rack r and label l, and a vertex of S1
    with rack r' and label l', are joined by a condition that has only r, r' and l + l' in it:

    - For odd q, (0, x, y) has rack x and label y - x²/2, and (1, x, y) has rack x and label
      -y - x²/2. They are joined if l + l' = -(r - r')²/2, as in PolarFly.
    - For even q, (0, x, y) has rack x and (1, x, y) has rack 1/x; the label of both is y. They are
      joined if l + l' = r/r'. Rack 0 differs from the others.

    Two vertices of one kind and one rack are joined if the difference of their labels is in a set.
    """
    f = field(q)
    s, x, y = np.unravel_index(np.arange(order(q)), (2, q, q))
    if q % 2 == 0:
        return np.where(s, f.inv[x], x).astype(np.int32), y.astype(np.int32)
    half = f.inv[f.add[1, 1]]
    half_of_square = f.mul[half, f.mul[x, x]]
    signed_y = np.where(s, f.neg[y], y)
    return x.astype(np.int32), f.add[signed_y, f.neg[half_of_square]].astype(np.int32)


def _inverse_or_one(q: int, elements: NDArray[np.int32]) -> NDArray[np.int32]:
    """The inverses of elements of F_q, and 1 for 0."""
    inverse: NDArray[np.int32] = field(q).inv[np.where(elements, elements, 1)]
    return inverse


def layout_with_two_groups(topology: Topology, start: int | None) -> Layout:  # noqa: ARG001
    """The layout `groups`: each rack has a group (0, x, ·) and a group (1, x', ·).

    2q links join any two racks. The layout has no start to choose.
    """
    q = int(topology.parameters["q"])
    rack, label = affine(q)
    return Layout.of_one_kind("groups", rack, label + q * topology.kind.astype(np.int32), "group")


class SlimFly(Family):
    """The family MMS(q)."""

    name = "slimfly"
    place = 7  # in lists of families
    compared = True
    parameters = ("q",)

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power other than 2."""
        return check_q(parameters)

    def order(self, parameters: Parameters) -> int:
        """N = 2q²."""
        return order(int(parameters["q"]))

    def degree(self, parameters: Parameters) -> int:
        """Δ = (3q - δ)/2."""
        return degree(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """MMS(q) with the coordinates (s, x, y)."""
        q = int(parameters["q"])
        graph = mms(q)
        vertex = np.arange(graph.order, dtype=np.int32)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=graph,
            kinds=SUBGRAPHS,
            kind=(vertex // (q * q)).astype(np.uint8),
            coordinates=np.stack((vertex // (q * q), vertex // q % q, vertex % q), axis=1),
            endpoints=np.ones(graph.order, np.bool_),
            diameter=2,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield every MMS(q) of degree radix."""
        for q in feasible(radix):
            yield self.design(radix, order(q), diameter=2, parameters={"q": q})

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """The layout with two groups in each rack."""
        return {"groups": layout_with_two_groups}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """A number for each link that is the same in all racks (`Family.headings`).

        A link within a group has the number q + i, where the difference of the labels of its ends
        is ξ^(i - 1). A link between S0 and S1 has the number i, where the difference of the racks,
        or for even q their quotient, is ξ^(i - 1), or i = 0 if they are the same. In places without
        a link the number is 2q.

        None: the graph lacks links of MMS(q).
        """
        q, far_end = int(topology.parameters["q"]), topology.graph.padded()
        if topology.graph.size * 2 != order(q) * degree(q):
            return None
        f = field(q)
        # The discrete logarithm: i for the i-th power of ξ, from 1; 0 for the element 0.
        log = np.zeros(q, np.int32)
        log[powers(q)] = np.arange(1, q)
        # Between S0 and S1: int32[S, K], by the racks of both ends.
        rack, label = affine(q)
        near_rack, far_rack = rack[:, None], rack[far_end]
        if q % 2:
            from_near_to_far = f.add[far_rack, f.neg[near_rack]]
        else:
            from_near_to_far = f.mul[far_rack, _inverse_or_one(q, near_rack)]
        between = log[from_near_to_far]
        # Within a group: int32[S, K], by the labels of both ends.
        inside = q + log[f.add[label[far_end], f.neg[label[:, None]]]]
        is_inside = topology.kind[far_end] == topology.kind[:, None]
        heading = np.where(is_inside, inside, between)
        return np.where(far_end < 0, 2 * q, heading).astype(np.int32)

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield modules with a group of each kind, and modules with one group."""
        q = int(parameters["q"])
        links_of_group = q * (q - residue(q)) // 4
        yield Modules(
            size=2 * q, count=q, inside=2 * links_of_group + q, between=2 * q, bundles=comb(q, 2)
        )
        yield Modules(size=q, count=2 * q, inside=links_of_group)

    def mean_distance(self, parameters: Parameters) -> float | None:
        """2 - Δ/(N-1): Δ vertices are at distance 1, all others at 2."""
        q = int(parameters["q"])
        return 2 - degree(q) / (order(q) - 1)

    def utilisation(self, parameters: Parameters) -> float | None:
        """The mean load of a link over the largest; None below q = 5, as there is no formula.

        From q = 5 on the links between S0 and S1 carry the most, 3q - 2 pairs in each direction.
        The limit is 8/9 (Projective Networks paper, §IV-B).
        """
        q = int(parameters["q"])
        if q < 5:
            return None
        pairs = 2 * (order(q) - 1) - degree(q)
        return pairs / (degree(q) * (3 * q - 2))
