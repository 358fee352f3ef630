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
            # Neighbours of points are lines, and neighbours of lines are points.
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
        """Return a number for each link of a switch, the same in all racks of parallel classes.

        These are the numbers of `polarity.headings`. None if links of the plane are missing.
        """
        q, graph = int(topology.parameters["q"]), topology.graph
        whole = graph.size == order(q) * (q + 1)
        return headings(q, graph.padded()) if whole else None


def copied_points(q: int, copies: int) -> NDArray[np.int32]:
    """Return the coordinates of several copies of all points, int32[copies · n, 4].

    The first coordinate is the number of the copy; the others are the vector of the point.
    """
    copy = np.repeat(np.arange(copies, dtype=np.int32), order(q))
    return np.column_stack((copy, np.tile(points(q), (copies, 1))))


def parallels(topology: Topology, start: int | None) -> Layout:
    """Return the layout of PN or OFT with one parallel class of the affine plane in each rack.

    Points and lines have the affine coordinates (t, w) of `polarity.affine`. The lines with the
    same t are a *parallel class*: they meet in one point at infinity, the *centre* t.

    - Rack 0 has the point and the line P0.
    - Rack t + 1 has the points and the lines (t, w) for all w, and the centres t. For OFT it has
      the other copy of the points, too.

    Point (t, w) is on line (s, v) where w + v = -(s - t)² if q is odd, and where w + v = st if q is
    even. So all racks but rack 0 have the same links inside (for even q, also rack 1 is different,
    that of t = 0). The links between two racks depend only on s - t (for even q, on s/t).

    Args:
        topology: a PN or OFT.
        start: the quadric P0; None for the first.
    """
    q = int(topology.parameters["q"])
    n = order(q)
    t, w, in_fan = affine(q, start)
    copies = topology.graph.order // n
    p0 = quadrics(q)[0] if start is None else start
    rack = np.where(np.arange(n) == p0, 0, t + 1)
    copy = np.arange(copies)[:, None]
    # int32[copies, n]. A rack has q + 1 places for each copy, of which the last is for the centre.
    # The rack of P0 has one.
    place = np.where(in_fan, label_in_fan(q, t, w), q) + (q + 1) * copy
    position = np.where(rack == 0, copy, place)
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
    """Return a partition of G_q, q = r², into m = r² - r + 1 copies of G_r (§III-A).

    A Singer cycle numbers the n points 0..n-1 so that every line is a shift of one line. Shifts by
    m map each subplane to itself, so the points of a subplane have the same residue modulo m. A
    line belongs to the subplane with which it shares r + 1 points.

    Returns:
        For the points and lines of PN: the number of the copy, int32[2n], and the place in the copy
        from 0, int32[2n], which is the same in every copy.

    Raises:
        ValueError: q is not a square.
    """
    r = isqrt(q)
    if r * r != q:
        raise ValueError(f"{q} is not the square of a prime power")
    n, m = order(q), q - r + 1
    point_number = np.empty(n, np.int64)
    point_number[_singer_cycle(q)] = np.arange(n)

    on_line = np.sort(point_number[lines(q)], axis=1)
    # Each line has one pair of points with consecutive numbers, which says by how much it is
    # shifted. The residue that the line with shift 0 has more than once is that of its subplane.
    is_followed = (np.roll(on_line, -1, axis=1) - on_line) % n == 1
    shift = on_line[is_followed]
    residues = np.sort(on_line[shift == 0][0] % m)
    repeated_residue = residues[:-1][np.diff(residues) == 0][0]
    line_number = (shift + repeated_residue) % n

    numbers = np.concatenate((point_number, line_number))
    first_place = np.repeat([0, n // m], n)  # lines come after the points of their copy
    place = numbers // m + first_place
    return (numbers % m).astype(np.int32), place.astype(np.int32)


def _singer_cycle(q: int) -> NDArray[np.int32]:
    """Return the points in the order in which a collineation visits them all, int32[n].

    The collineation is the companion matrix of a cubic x³ = a + bx + cx². Cubics are tried in
    lexicographic order of (c, b, a) from (1, 0, 1), until the orbit of a point is the whole plane.
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
    """Return the image (az, x+bz, y+cz) of each point (x, y, z), int32[n]."""
    f = field(q)
    x, y, z = points(q).T
    image = f.mul[a, z], f.add[x, f.mul[b, z]], f.add[y, f.mul[c, z]]
    # The vector of a point has 1 as its first coordinate that is not 0.
    first_nonzero = np.where(image[0] != 0, image[0], np.where(image[1] != 0, image[1], image[2]))
    scale = f.inv[first_nonzero]
    return numbers_of(q, np.stack([f.mul[part, scale] for part in image], axis=-1))


def subplane_racks(topology: Topology, start: int | None) -> Layout:
    """Return the layout of PN for q = r²: r² - r + 1 racks, each a PN of order r (§III-A)."""
    del start
    rack, position = subplanes(int(topology.parameters["q"]))
    return Layout.of_one_kind("subplanes", rack, position, "subplane")
