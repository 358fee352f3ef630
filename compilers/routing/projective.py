"""Minimal routes in PN and OFT: exact rows, one for each switch that has hosts.

Lines are numbered as the points that they are orthogonal to, so two switches of one side meet at
s×d, as in ER_q. In PN, a point s and a line d that is not through it have q + 1 minimal paths, one
over each line through s; ours goes over the line through s and the point that has d's number. Over
all pairs this loads the links evenly, but for quadrics (where that point is on d) and for the
switch of the same number, whose rows take the lines in turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.routing.plane import meets
from compilers.tables import Egress, Routes, empty_egress, local, no_route
from compilers.topologies.polarfly import lines
from compilers.topologies.topology import Topology

POINTS_AT_ONCE = 256


def pn_routes(topology: Topology) -> Routes:
    """Exact minimal rows of G_q, N a switch."""
    near = lines(int(topology.parameters["q"]))
    n = len(near)
    egress = empty_egress(2 * n, 2 * n, near.shape[1])
    for points in _parts(n):
        same = meets(near, points)
        other = _across(near, points, same)
        egress[points, :n] = egress[n + points, n:] = same
        egress[points, n:] = egress[n + points, :n] = other
    np.fill_diagonal(egress, local(egress))
    return _exact(egress)


def oft_routes(topology: Topology) -> Routes:
    """Exact minimal rows of the OFT, one for each leaf; spines have no addresses of their own.

    Class k of a leaf leads to the k-th spine. A spine has q + 1 leaves of the first column, then
    those of the other. Leaves with the same point take one of their q + 1 common spines.
    """
    near = lines(int(topology.parameters["q"]))
    n, width = near.shape
    egress = empty_egress(3 * n, 3 * n, 2 * width)
    leaf = egress[:n]
    for points in _parts(n):
        leaf[points, :n] = meets(near, points)
        across = _across(near, points, leaf[points, :n])
        egress[n + points, :n] = across
        egress[n + points, 2 * n :] = across + width
    np.fill_diagonal(leaf[:, :n], np.arange(n) % width)
    leaf[:, 2 * n :] = leaf[:, :n]
    egress[2 * n :] = leaf
    egress[:, n : 2 * n] = no_route(egress)
    ends = np.flatnonzero(topology.endpoints)
    egress[ends, ends] = local(egress)
    return _exact(egress)


def _across(
    near: NDArray[np.int32], points: NDArray[np.int64], same: NDArray[np.integer]
) -> NDArray[np.int16]:
    """int16[B, N]: the class towards each switch of the other side, of the same numbers."""
    width = near.shape[1]
    own = (near == np.arange(len(near))[:, None]).any(axis=1)
    table = same.astype(np.int16)
    table[:, own] = (points[:, None] + np.flatnonzero(own)) % width
    rows = np.arange(len(points))
    table[rows, points] = points % width
    table[rows[:, None], near[points]] = np.arange(width)
    return table


def _exact(egress: Egress) -> Routes:
    order = len(egress)
    return Routes(
        prefix=np.arange(order, dtype=np.int32)[None],
        egress=egress,
        aggregate=np.full(order, -1, np.int32),
    )


def _parts(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), -(-n // POINTS_AT_ONCE))
