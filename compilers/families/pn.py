"""The family `pn`: the incidence graph G_q of a projective plane (Projective Networks paper, §III).

Switches are the points and the lines of the plane; a point is joined to the lines through it.
Routes are by algebra.
"""

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
    label_in_fan,
    lines,
    numbers_of,
    order,
    points,
    quadrics,
)
from inventory.problems import Problem


class ProjectiveNetwork(Family):
    """G_q of a plane with n points: points 0..n-1, then lines n..2n-1; diameter 3 (§III-A)."""

    name = "pn"
    parameters: tuple[str, ...] = ("q",)
    place = 3  # in lists of families

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return a problem unless the order q is a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """Return N = 2(q² + q + 1)."""
        return 2 * order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """Build G_q; coordinates, int32[N, 4], are 0 for a point, 1 for a line, and the vector."""
        q = int(parameters["q"])
        n, incidence = order(q), lines(q)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=Graph.from_padded(np.concatenate((incidence + n, incidence))),
            kinds=("point", "line"),
            kind=np.repeat(np.array([0, 1], np.uint8), n),
            coordinates=copied_points(q, 2),
            endpoints=np.ones(2 * n, np.bool_),
            diameter=3,
        )

    def degree(self, parameters: Parameters) -> int:
        """Return q + 1."""
        return int(parameters["q"]) + 1

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield G_(radix-1) if radix - 1 is a prime power."""
        q = radix - 1
        if q <= LARGEST_Q and prime_power(q):
            yield self.design(radix, 2 * order(q), 3, {"q": q})

    def mean_distance(self, parameters: Parameters) -> float:
        """Return the mean of the distances of §III-A."""
        q = int(parameters["q"])
        return (5 * q * q + 3 * q + 1) / (2 * q * q + 2 * q + 1)

    def utilisation(self, parameters: Parameters) -> float:  # noqa: ARG002
        """Return 1, as the graph is symmetric (Theorem 3.5)."""
        return 1.0

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield subplanes if q = r², and clusters of ER_q with the points and the lines of each."""
        q = int(parameters["q"])
        r = isqrt(q)
        if r * r == q:
            yield Modules(
                size=2 * order(r),
                count=q - r + 1,
                inside=order(r) * (r + 1),
                bundles=comb(q - r + 1, 2),
            )
        yield fan_modules(q, 2, 0, 1)

    def routes(self, topology: Topology) -> Any:
        """Return routes by algebra (`compilers.routing.plane_minimal`)."""
        from compilers.routing.plane_minimal import pn_routes

        return pn_routes(topology)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Return the layout by subplanes, if q is a square."""
        q = int(topology.parameters["q"])
        return {"subplanes": subplane_racks} if isqrt(q) ** 2 == q else {}

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the layout by parallel classes."""
        return {"parallels": parallels}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Return a number for each link of a switch, alike in all racks of parallel classes."""
        q, graph = int(topology.parameters["q"]), topology.graph
        whole = graph.size == order(q) * (q + 1)
        return headings(q, graph.padded()) if whole else None


def copied_points(q: int, copies: int) -> NDArray[np.int32]:
    """Return the coordinates of several copies of all points, int32[copies · N, 4].

    The first coordinate is the number of the copy; the others are the vector of the point.
    """
    copy = np.repeat(np.arange(copies, dtype=np.int32), order(q))
    return np.column_stack((copy, np.tile(points(q), (copies, 1))))


def parallels(topology: Topology, start: int | None) -> Layout:
    """Return the layout of PN or OFT with one parallel class of the affine plane in each rack.

    Points and lines have the coordinates (t, w) of `polarity.affine`. The lines (t, w) of one t are
    a parallel class: they meet in one point at infinity, the centre t. A rack has the points and
    the lines of one t, each with its centre, and for OFT also the other column of points. Point
    (t, w) is on line (s, v) where w + v = -(s - t)², for even q where w + v = st. So all racks have
    the same links inside (for even q, all but that of t = 0), and links between two racks depend
    only on s - t, for even q on s/t. The point and the line P0 have a rack of their own.

    Args:
        topology: a PN or OFT.
        start: the quadric P0; None for the first.
    """
    q = int(topology.parameters["q"])
    t, w, in_fan = affine(q, start)
    copies = topology.graph.order // order(q)
    p0 = quadrics(q)[0] if start is None else start
    rack = np.where(np.arange(order(q)) == p0, 0, t + 1)
    # int32[copies, N]: in each copy of the points the centre comes last.
    place = np.where(in_fan, label_in_fan(q, t, w), q) + (q + 1) * np.arange(copies)[:, None]
    position = np.where(rack == 0, np.arange(copies)[:, None], place)
    return Layout(
        name="parallels",
        rack=np.tile(rack, copies).astype(np.int32),
        position=position.ravel().astype(np.int32),
        kinds=("infinity", "parallel"),
        kind=(np.arange(q + 1) > 0).astype(np.uint8),
        names=("infinity", *(f"parallel{s}" for s in range(1, q + 1))),
        centre=np.full(q + 1, -1, np.int32),
    )


def subplanes(q: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return a partition of G_q, q = p², into m = p²-p+1 copies of G_p (§III-A).

    A Singer cycle numbers the points 0..N-1 so that every line is a shift of one line. Shifts by m
    map each subplane to itself, so the points of a subplane have the same residue modulo m; a line
    belongs to the subplane that it shares p+1 points with.

    Returns:
        For the points and lines of PN: the number of the copy, int32[2N], and the place in the copy
        from 0, int32[2N], which is the same in every copy.

    Raises:
        ValueError: q is not a square.
    """
    p = isqrt(q)
    if p * p != q:
        raise ValueError(f"{q} is not the square of a prime power")
    n, m = order(q), q - p + 1
    point = np.empty(n, np.int64)
    point[_singer_cycle(q)] = np.arange(n)

    on_line = np.sort(point[lines(q)], axis=1)
    # Each line has one pair of points with consecutive numbers, which says by how much it is
    # shifted. The residue that the line with shift 0 has more than once is that of its subplane.
    adjacent = (np.roll(on_line, -1, axis=1) - on_line) % n == 1
    shift = on_line[adjacent]
    residues = np.sort(on_line[shift == 0][0] % m)
    repeated = residues[:-1][np.diff(residues) == 0][0]
    line = (shift + repeated) % n

    numbers = np.concatenate((point, line))
    place = numbers // m + np.repeat([0, n // m], n)
    return (numbers % m).astype(np.int32), place.astype(np.int32)


def _singer_cycle(q: int) -> NDArray[np.int32]:
    """Return the points in the order in which a collineation visits them all, int32[N].

    The collineation is the companion matrix of a cubic x³ = a + bx + cx²: the first one, in
    lexicographic order of (c, b, a) from (1, 0, 1), whose orbit is the whole plane.
    """
    for c, b, a in product(range(1, q), range(q), range(1, q)):
        image = _companion(q, a, b, c).tolist()
        orbit = [0]
        while (next_point := image[orbit[-1]]) != 0:
            orbit.append(next_point)
        if len(orbit) == order(q):
            return np.array(orbit, np.int32)
    raise AssertionError("every finite projective plane over a field has a Singer cycle")


def _companion(q: int, a: int, b: int, c: int) -> NDArray[np.int32]:
    """Return the image (az, x+bz, y+cz) of each point (x, y, z), int32[N]."""
    f = field(q)
    x, y, z = points(q).T
    u, v, w = f.mul[a, z], f.add[x, f.mul[b, z]], f.add[y, f.mul[c, z]]
    scale = f.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    return numbers_of(q, np.stack([f.mul[part, scale] for part in (u, v, w)], axis=-1))


def subplane_racks(topology: Topology, start: int | None) -> Layout:
    """Return the layout of PN for q = p²: p²-p+1 racks, each a PN of order p (§III-A)."""
    del start
    rack, position = subplanes(int(topology.parameters["q"]))
    return Layout.of_one_kind("subplanes", rack, position, "subplane")
