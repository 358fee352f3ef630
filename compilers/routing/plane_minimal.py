"""Minimal routes in ER_q, PN and OFT by algebra: exact rows, one for each switch that has hosts.

In ER_q the next hop from s to d is d itself where they are adjacent, else the point s×d (PolarFly
paper, §IV-D), which is where the lines of s and d meet (`compilers.tables.line_rows`).

Lines are numbered as the points that they are orthogonal to, so two switches of one side meet at
s×d, as in ER_q. In PN, a point s and a line d that is not through it have q + 1 minimal paths, one
over each line through s. A correlation a maps every line to a point, and we take the line through s
and a(d). That spreads the destinations over the lines through s, and each line's over its points,
except for lines through their own point. Our a has one such line, number 0, whose rows follow a
conic instead. The loads of a fabric's links differ by a few paths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Routes, empty_egress, local, no_route
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology.field import field
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import index, lines, points

SWITCHES_AT_ONCE = 256


def polarfly_routes(topology: Topology) -> Routes:
    """Exact minimal rows, N a switch; those of a large fabric are computed when they are read."""
    around = lines(int(topology.parameters["q"]))
    program = LineProgram(around, np.zeros(1, np.int32))
    return Routes.without_aggregates(unless_large(LineEgress(program)))


def pn_routes(topology: Topology) -> Routes:
    """Exact minimal rows of G_q, N a switch."""
    q = int(topology.parameters["q"])
    near, across = lines(q), _Across(q)
    n = len(near)
    egress = empty_egress(2 * n, 2 * n, q + 1)
    for part in _parts(n):
        same = meets(near, part)
        egress[part, :n] = egress[n + part, n:] = same
        egress[part, n:] = egress[n + part, :n] = across.classes(part, same)
    np.fill_diagonal(egress, local(egress))
    return Routes.without_aggregates(egress)


def oft_routes(topology: Topology) -> Routes:
    """Exact minimal rows of the OFT, one for each leaf; spines have no addresses of their own.

    Class k of a leaf leads to the k-th spine. A spine has q + 1 leaves of the first column, then
    those of the other. Leaves with the same point take one of their q + 1 common spines.
    """
    q = int(topology.parameters["q"])
    near, across = lines(q), _Across(q)
    n = len(near)
    egress = empty_egress(3 * n, 3 * n, 2 * (q + 1))
    leaf = egress[:n]
    for part in _parts(n):
        same = meets(near, part)
        leaf[part, :n] = same
        egress[n + part, :n] = across.classes(part, same)
    np.fill_diagonal(leaf[:, :n], np.arange(n) % (q + 1))
    egress[n : 2 * n, 2 * n :] = egress[n : 2 * n, :n] + (q + 1)
    leaf[:, 2 * n :] = leaf[:, :n]
    egress[2 * n :] = leaf
    egress[:, n : 2 * n] = no_route(egress)
    ends = np.flatnonzero(topology.endpoints)
    egress[ends, ends] = local(egress)
    return Routes.without_aggregates(egress)


def meets(lines: NDArray[np.int32], points: NDArray[np.integer]) -> NDArray[np.int16]:
    """int16[B, N]: the place of s×d among the q + 1 points orthogonal to s, for s in `points`.

    Args:
        lines: `polarfly.lines(q)`, int32[N, q + 1].
        points: int[B], the points s.

    The points orthogonal to the k-th point orthogonal to s are those d with s×d in the k-th place,
    and s itself, whose entry has no meaning. Time grows with the size of the table.
    """
    table = np.empty((len(points), len(lines)), np.int16)
    place = np.arange(lines.shape[1], dtype=np.int16)[:, None]
    for row, near in zip(table, lines[points], strict=True):
        row[lines[near]] = place
    return table


class _Across:
    """Classes towards the other side of G_q, whose switches have the same numbers."""

    def __init__(self, q: int) -> None:
        self.near = lines(q)
        self.partner = _correlation(q)
        f = field(q)
        x, y, z = points(q).T
        y = f.mul[y, f.inv[z]]
        self.conic = 1 + f.add[f.mul[x, f.inv[z]], f.mul[y, y]]

    def classes(self, part: NDArray[np.int64], same: NDArray[np.int16]) -> NDArray[np.int16]:
        """int16[B, N], from the switches in `part`, whose `meets` are `same`."""
        width = self.near.shape[1]
        table = same[:, self.partner]
        # Where line 0 passes through s it is the first of the lines through s.
        over_0 = (table == 0) & (self.near[part, :1] == 0)
        row, column = np.nonzero(over_0 | (part[:, None] == self.partner))
        table[row, column] = (part[row] + column) % width
        table[:, 0] = self.conic[part]
        table[np.arange(len(part))[:, None], self.near[part]] = np.arange(width)
        return table


def _correlation(q: int) -> NDArray[np.int32]:
    """int32[N], the number of the point (x + by, cy + z, -y) for each line (x, y, z).

    t² + bt + c is the first polynomial without a root, so x² + bxy + cy², which is 0 where a line
    passes through its own point, is 0 for (0, 0, 1) alone.
    """
    f = field(q)
    t = np.arange(q)
    values = f.add[f.mul[t, t], f.mul[t[:, None], t]]
    free = np.ones((q, q), np.bool_)
    free[t[:, None], f.neg[values]] = False
    b, c = np.argwhere(free)[0]
    x, y, z = points(q).T
    u, v, w = f.add[x, f.mul[b, y]], f.add[f.mul[c, y], z], f.neg[y]
    scale = f.inv[np.where(u != 0, u, np.where(v != 0, v, w))]
    return index(q, np.stack([f.mul[part, scale] for part in (u, v, w)], axis=-1))


def _parts(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), -(-n // SWITCHES_AT_ONCE))
