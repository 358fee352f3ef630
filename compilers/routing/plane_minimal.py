"""Minimal routes in ER_q, PN and OFT by algebra: a row for each switch that has hosts.

What comes in is a topology. What goes out are its routes, without a search. The families PolarFly,
PN and OFT call these functions. Switches are points and lines of the projective plane PG(2, q).
Lines have the numbers of the points that they are orthogonal to, and s×d is the cross product.

- **ER_q** (PolarFly): the next hop from s to d is d itself where the two are adjacent, else the
  point s×d (PolarFly paper, §IV-D), where the lines of s and d meet (`compilers.tables.line_rows`).
- **PN**, the incidence graph G_q of points and lines: two points, or two lines, have one path, over
  s×d. A point s and a line d that is not through it have q + 1 minimal paths, one over each line
  through s. A correlation a maps every line to a point, and the path takes the line through s and
  a(d). This spreads the destinations over the lines through s, and the destinations of each line
  over its points. It fails for lines d that pass through their own point a(d). With the correlation
  used here, only line 0 does so. The rows towards line 0 follow a conic instead. The loads of a
  fabric's links differ by a few paths only.
- **OFT**: leaves in two columns, joined by a column of spines in between. Its rows are those of PN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Routes, empty_egress, local, no_route
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology.field import field
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import lines, numbers_of, points

SWITCHES_AT_ONCE = 256
"""The most switches whose rows are computed together."""


def polarfly_routes(topology: Topology) -> Routes:
    """Return minimal routes of ER_q; rows of a large fabric are computed when they are read."""
    around = lines(int(topology.parameters["q"]))
    program = LineProgram(around, np.zeros(1, np.int32))
    return Routes.without_aggregates(unless_large(LineEgress(program)))


def pn_routes(topology: Topology) -> Routes:
    """Return minimal routes of PN, with points and then lines as switches."""
    q = int(topology.parameters["q"])
    around, other = lines(q), _OtherSide(q)
    n = len(around)
    egress = empty_egress(2 * n, 2 * n, q + 1)
    for block in _blocks(n):
        same_side = meeting_places(around, block)
        other_side = other.classes(block, same_side)
        egress[block, :n] = egress[n + block, n:] = same_side
        egress[block, n:] = egress[n + block, :n] = other_side
    np.fill_diagonal(egress, local(egress))
    return Routes.without_aggregates(egress)


def oft_routes(topology: Topology) -> Routes:
    """Return minimal routes of the OFT: rows for leaves, as spines have no addresses of their own.

    Switches are n leaves, n spines, and n leaves of the other column. Class k of a leaf leads to
    its k-th spine. The first q + 1 classes of a spine lead to leaves of the first column, the
    others to leaves of the other. Leaves with the same point in both columns have q + 1 common
    spines, and take one of them by their number.
    """
    q = int(topology.parameters["q"])
    around, other = lines(q), _OtherSide(q)
    n = len(around)
    egress = empty_egress(3 * n, 3 * n, 2 * (q + 1))
    leaf, spine = egress[:n], egress[n : 2 * n]
    for block in _blocks(n):
        same_side = meeting_places(around, block)
        leaf[block, :n] = same_side
        spine[block, :n] = other.classes(block, same_side)
    np.fill_diagonal(leaf[:, :n], np.arange(n) % (q + 1))
    spine[:, 2 * n :] = spine[:, :n] + (q + 1)
    # Rows of both columns of leaves are the same.
    leaf[:, 2 * n :] = leaf[:, :n]
    egress[2 * n :] = leaf
    egress[:, n : 2 * n] = no_route(egress)
    leaves = np.flatnonzero(topology.endpoints)
    egress[leaves, leaves] = local(egress)
    return Routes.without_aggregates(egress)


def meeting_places(lines: NDArray[np.int32], points: NDArray[np.integer]) -> NDArray[np.int16]:
    """Return the place of s×d among the q + 1 points orthogonal to s, int16[B, N].

    The point s×d is orthogonal to both s and d. Let r be the k-th point orthogonal to s. Then s×d
    is r for all points d that are orthogonal to r. One such d is s itself: its entry has no
    meaning.

    Args:
        lines: int32[N, q + 1], the points orthogonal to each point, ascending.
        points: int[B], the points s.
    """
    places = np.empty((len(points), len(lines)), np.int16)
    place_of_r = np.arange(lines.shape[1], dtype=np.int16)[:, None]
    for row, orthogonal_to_s in zip(places, lines[points], strict=True):
        # int32[q + 1, q + 1], by r the points orthogonal to r: the row gets the place of r there.
        row[lines[orthogonal_to_s]] = place_of_r
    return places


class _OtherSide:
    """Classes towards the other side of G_q: from points towards lines, and from lines to points.

    Class k of a point leads over its k-th line. Points and lines have the same numbers, so one
    table serves both directions.
    """

    def __init__(self, q: int) -> None:
        self.lines_through = lines(q)
        """int32[N, q + 1]: the lines through each point."""
        self.point_of = _correlation(q)
        """int32[N]: the point a(d) of each line d."""
        gf = field(q)
        x, y, z = points(q).T
        x_over_z, y_over_z = gf.mul[x, gf.inv[z]], gf.mul[y, gf.inv[z]]
        self.conic = 1 + gf.add[x_over_z, gf.mul[y_over_z, y_over_z]]
        """int32[N]: the class of each point (x, y, z) towards line 0: 1 + x/z + (y/z)²."""

    def classes(self, block: NDArray[np.int64], same_side: NDArray[np.int16]) -> NDArray[np.int16]:
        """Return the classes of switches towards the other side, int16[B, N].

        Args:
            block: int64[B], switches of one side.
            same_side: int16[B, N], their classes towards their own side (`meeting_places`).
        """
        width = self.lines_through.shape[1]  # the lines through a point
        # The path to line d takes the line through s and the point a(d).
        classes = same_side[:, self.point_of]
        # But where s itself is a(d), or where that line would be line 0, destinations take turns
        # over all lines through s. Where line 0 passes through s, it is the first of them.
        over_line_0 = (classes == 0) & (self.lines_through[block, :1] == 0)
        row, column = np.nonzero(over_line_0 | (block[:, None] == self.point_of))
        classes[row, column] = (block[row] + column) % width
        # Towards line 0 the conic decides.
        classes[:, 0] = self.conic[block]
        # Lines through s are its neighbours.
        classes[np.arange(len(block))[:, None], self.lines_through[block]] = np.arange(width)
        return classes


def _correlation(q: int) -> NDArray[np.int32]:
    """Return the number of the point (x + by, cy + z, -y) for each line (x, y, z), int32[N].

    t² + bt + c is the first polynomial without a root. A line passes through its own point where
    x² + bxy + cy² = 0, which is so for (0, 0, 1) only.
    """
    gf = field(q)
    t = np.arange(q)
    # [q, q], the value of t² + bt by b and t. The polynomial has the root t for c = -(t² + bt).
    values = gf.add[gf.mul[t, t], gf.mul[t[:, None], t]]
    has_no_root = np.ones((q, q), np.bool_)  # by b and c
    has_no_root[t[:, None], gf.neg[values]] = False
    b, c = np.argwhere(has_no_root)[0]
    x, y, z = points(q).T
    u, v, w = gf.add[x, gf.mul[b, y]], gf.add[gf.mul[c, y], z], gf.neg[y]
    # The first coordinate that is not 0 becomes 1, as in all vectors of points.
    scale = gf.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    return numbers_of(q, np.stack([gf.mul[value, scale] for value in (u, v, w)], axis=-1))


def _blocks(n: int) -> list[NDArray[np.int64]]:
    """Return the numbers 0 to n - 1 in blocks of about `SWITCHES_AT_ONCE`."""
    return np.array_split(np.arange(n), -(-n // SWITCHES_AT_ONCE))
