"""PN, the incidence graph of a projective plane: routes by algebra; marks stay on a side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import comb, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarfly import fan_modules
from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, Modules
from compilers.topology.field import LARGEST_Q, field, prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.layout import Layout
from compilers.topology.polarity import (
    affine,
    check_q,
    headings,
    index,
    lines,
    order,
    points,
    quadrics,
    scaled,
)
from inventory.problems import Problem


class ProjectiveNetwork(Family):
    """PN, the incidence graph G_q: points 0..n-1, then lines n..2n-1; diameter 3 (§III-A)."""

    name = "pn"
    parameters: tuple[str, ...] = ("q",)
    place = 3

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """N = 2(q² + q + 1)."""
        return 2 * order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """G_q; coordinates, int32[N, 4], are 0 for a point or 1 for a line, and the vector."""
        q = int(parameters["q"])
        n, incidence = order(q), lines(q)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=Graph.from_padded(np.concatenate((incidence + n, incidence))),
            kinds=("point", "line"),
            kind=np.repeat(np.array([0, 1], np.uint8), n),
            coordinates=sided(q, 2),
            endpoints=np.ones(2 * n, np.bool_),
            diameter=3,
        )

    def degree(self, parameters: Parameters) -> int:
        """Q + 1."""
        return int(parameters["q"]) + 1

    def designs(self, radix: int) -> Iterator[Design]:
        """G_(radix-1) where radix-1 is a prime power."""
        q = radix - 1
        if q <= LARGEST_Q and prime_power(q):
            yield self.design(radix, 2 * order(q), 3, {"q": q})

    def mean_distance(self, parameters: Parameters) -> float:
        """The distances of §III-A."""
        q = int(parameters["q"])
        return (5 * q * q + 3 * q + 1) / (2 * q * q + 2 * q + 1)

    def utilisation(self, parameters: Parameters) -> float:  # noqa: ARG002
        """The graph is symmetric (Theorem 3.5)."""
        return 1.0

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Subplanes for q = r²; else a cluster of ER_q twice, its points and its lines."""
        q = int(parameters["q"])
        r = isqrt(q)
        if r * r == q:
            yield Modules(2 * order(r), q - r + 1, order(r) * (r + 1), bundles=comb(q - r + 1, 2))
        yield fan_modules(q, 2, 0, 1)

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.plane_minimal`."""
        from compilers.routing.plane_minimal import pn_routes

        return pn_routes(topology)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Subplanes, where q is a square."""
        q = int(topology.parameters["q"])
        return {"subplanes": subplane_racks} if isqrt(q) ** 2 == q else {}

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Parallel classes."""
        return {"parallels": parallels}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Numbers of links that are the same in all racks of parallel classes."""
        q, graph = int(topology.parameters["q"]), topology.graph
        whole = graph.size == order(q) * (q + 1)
        return headings(q, graph.padded()) if whole else None


def sided(q: int, sides: int) -> NDArray[np.int32]:
    """int32[sides · N, 4]: the number of a side, and the vector of each point on it."""
    side = np.repeat(np.arange(sides, dtype=np.int32), order(q))
    return np.column_stack((side, np.tile(points(q), (sides, 1))))


def parallels(topology: Topology, start: int | None) -> Layout:
    """Racks of parallel classes: the points (t, w), with the point where they meet at infinity.

    So the lines (t, w), with theirs, and a further column of points. In the affine coordinates of
    `polarity.affine` point (t, w) is on line (s, v) where w + v = -(s - t)², for even q where
    w + v = st, so racks are the same inside and see each other by s - t, or s/t, alone; of even q
    that of t = 0 differs. The point and line P0 have a rack of their own.
    """
    q = int(topology.parameters["q"])
    t, w, member = affine(q, start)
    copies = topology.graph.order // order(q)
    first = quadrics(q)[0] if start is None else start
    rack = np.where(np.arange(order(q)) == first, 0, t + 1)
    place = np.where(member, scaled(q, t, w), q) + (q + 1) * np.arange(copies)[:, None]
    position = np.where(rack == 0, np.arange(copies)[:, None], place)
    names = ("infinity", *(f"parallel{s}" for s in range(1, q + 1)))
    none = np.full(q + 1, -1, np.int32)
    kind = (np.arange(q + 1) > 0).astype(np.uint8)
    racks = np.tile(rack, copies).astype(np.int32), position.ravel().astype(np.int32)
    return Layout("parallels", *racks, ("infinity", "parallel"), kind, names, none)


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


def subplane_racks(topology: Topology, start: int | None) -> Layout:
    """PN of q = p²: p²-p+1 racks, each a PN of order p (Projective Networks paper, §III-A)."""
    del start
    rack, position = subplanes(int(topology.parameters["q"]))
    return Layout.of_one_kind("subplanes", rack, position, "subplane")
