"""Minimal routes, from the algebra: which egress class leads each switch to each destination."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compilers.routing.kernels import two_hop
from compilers.tables import Classes, Routes, Tables, egress_dtype, local, no_route
from compilers.threads import over_rows
from compilers.topologies.topology import Topology
from compilers.wiring import Wiring

ROWS_AT_ONCE = 1024


def polarfly(topology: Topology) -> Routes:
    """Exact rows for ER_q: the only path of length 2, or the direct link (PolarFly paper, §IV-D).

    The next hop from s to d is d itself where they are adjacent, else the point s×d. All the
    destinations of class k are the points on the line of the k-th neighbour, so a switch's row is
    filled line by line, each entry once: as much work as the table has entries.
    """
    neighbours = topology.graph.padded()
    order, width = neighbours.shape
    dtype = egress_dtype(width)
    egress = np.empty((order, order), dtype)
    unreached, here = no_route(egress), local(egress)

    def fill(first: int, last: int) -> None:
        egress[first:last] = unreached
        two_hop(neighbours, first, last, egress)

    for _ in over_rows(order, ROWS_AT_ONCE, fill):
        pass
    np.fill_diagonal(egress, here)
    return Routes(
        prefix=np.broadcast_to(np.arange(order, dtype=np.int32), (order, order)),
        egress=egress,
        aggregate=np.full(order, -1, np.int32),
    )


ROUTES: dict[str, Callable[[Topology], Routes]] = {"polarfly": polarfly}


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that use the minimal path of every pair."""
    return Tables(
        routes=ROUTES[topology.family](topology), classes=Classes.minimal(wiring.port.copy())
    )
