"""Minimal routes in ER_q: one exact row per destination, filled from a table of q³ entries.

The next hop from s to d is d itself where they are adjacent, else the point s×d (PolarFly paper,
§IV-D). Scale s to (A, B, 1). For d = (1, y, z) the cross product is (Bz-y, 1-Az, ·), so the next
hop is (1, u, ·) with u = (1-Az)/(Bz-y), or (0, 1, ·) where Bz = y. The neighbours of s in canonical
order are (0, 1, ·) and then (1, u, ·) for u = 0, 1, …, so the class is 1 + u, or 0. It depends on
m = 1-Az, t = Bz and y only: the row of s is q runs of the table [m, t, y] → class, one a z.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Egress, Routes, empty_egress, local, no_route
from compilers.topology.field import Field, field
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarfly import points

POLARFLY_ENTRIES_AT_ONCE = 1 << 18


def routes(topology: Topology) -> Routes:
    """Exact minimal rows, N a switch; time and memory grow with the size of the table."""
    f = field(int(topology.parameters["q"]))
    order = topology.graph.order
    neighbours = topology.graph.padded()
    egress = empty_egress(order, order, f.q + 1)

    affine = points(f.q)[:, 2] != 0
    quadric = topology.graph.degrees == f.q
    _fill_by_algebra(f, np.flatnonzero(affine & ~quadric), neighbours, egress)
    _fill_by_lines(np.flatnonzero(~affine | quadric), neighbours, egress)
    np.fill_diagonal(egress, local(egress))
    return Routes(
        prefix=np.arange(order, dtype=np.int32)[None],
        egress=egress,
        aggregate=np.full(order, -1, np.int32),
    )


def _fill_by_algebra(
    f: Field, switches: NDArray[np.int64], neighbours: NDArray[np.int32], egress: Egress
) -> None:
    """Fill the rows of the points (a, b, c), c ≠ 0, that are not quadrics, by formula."""
    q = f.q
    minus = f.add[:, f.neg]

    def ratio(over: NDArray[np.integer], under: NDArray[np.integer]) -> Egress:
        """The class of the next hop (under, over, ·)."""
        line = np.where(under == 0, 0, 1 + f.mul[over, f.inv[under]])
        return cast(Egress, line.astype(egress.dtype))

    elements = np.arange(q)
    run = ratio(elements[:, None, None], minus[None]).reshape(q * q, q)
    a, b, c = points(q)[switches].T
    scaled_a, scaled_b = f.mul[a, f.inv[c]], f.mul[b, f.inv[c]]
    step = max(1, POLARFLY_ENTRIES_AT_ONCE // (q * q))
    for first in range(0, len(switches), step):
        part = slice(first, first + step)
        az, bz = f.mul[scaled_a[part]], f.mul[scaled_b[part]]
        block = np.empty((len(az), len(egress)), egress.dtype)
        block[:, 0] = ratio(f.neg[scaled_a[part]], scaled_b[part])
        block[:, 1 : q + 1] = ratio(f.neg[az], minus[bz, 1])
        block[:, q + 1 :].reshape(-1, q, q)[...] = run[minus[1, az] * q + bz].transpose(0, 2, 1)
        direct = np.arange(q + 1, dtype=egress.dtype)[None]
        np.put_along_axis(block, neighbours[switches[part]].astype(np.intp), direct, axis=1)
        egress[switches[part]] = block


def _fill_by_lines(
    switches: NDArray[np.int64], neighbours: NDArray[np.int32], egress: Egress
) -> None:
    """Fill the other O(q) rows: class k leads to the k-th neighbour and its neighbours."""
    egress[switches] = no_route(egress)
    for s in switches:
        near = neighbours[s][neighbours[s] >= 0]
        far = neighbours[near]
        classes = np.broadcast_to(np.arange(len(near), dtype=egress.dtype)[:, None], far.shape)
        egress[s, far[far >= 0]] = classes[far >= 0]
        egress[s, near] = classes[:, 0]
