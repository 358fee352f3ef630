"""The detours of a whole PolarFly whose rows prove minimal delivery, by its triangles alone.

In ER_q two switches have exactly one path of two links (`compilers.topology.polarfly`), so let s be
joined to x and to r, and d be served over x. If d is not x, it is not joined to s, and r's way to
it is r - w - d or r - d, never over s. It meets x only if r is joined to x: then x is the one
common neighbour of r and d, as d is joined to x, and not to r, which has x's other neighbour s. If
d is x, then r reaches it in one link if it is joined to x, else over the one common neighbour, s.
"""

from __future__ import annotations

import numpy as np

from compilers.proof.detours import BACK, NEXT_HOP, Detours
from compilers.proof.port_use import PortUse
from compilers.tables.build import Build
from compilers.topology import polarfly

TRIANGLE_CELLS = 1 << 27
"""The most pairs of links of a switch, over all switches, for which triangles are looked for."""


def has_triangle_detours(build: Build) -> bool:
    """Whether a build is a whole PolarFly, by family and links, and not too large for this."""
    order, width = build.wiring.far.shape
    return polarfly.is_whole(build.topology) and order * width * width <= TRIANGLE_CELLS


def triangle_detours(build: Build) -> Detours:
    """The detours of a whole PolarFly, as `Detours.of` finds them by walks.

    Args:
        build: its topology is what its family makes, and its rows prove minimal delivery
            (`compilers.proof.certificate.minimal_rows`).
    """
    far, port = build.wiring.far, build.tables.classes.port
    egress = build.tables.routes.egress
    order = len(far)
    there = far >= 0
    near = np.zeros((order, order), np.bool_)
    s, k = np.nonzero(there)
    near[s, far[s, k]] = True
    triangle = near[far[:, :, None], far[:, None, :]] & there[:, :, None] & there[:, None, :]

    count = port.shape[1]
    served = np.zeros((order, count), np.int64)
    for switch, row in enumerate(egress):
        served[switch] = np.bincount(row, minlength=count)[:count]
    direct = np.zeros((order, count), np.int64)
    np.add.at(direct, (s, egress[s, far[s, k]].astype(np.intp)), 1)
    link = PortUse.of(build.wiring).links(port)
    apex = triangle[np.arange(order)[:, None], np.maximum(link, 0)]
    to, by = (direct > 0)[..., None], (served > direct)[..., None]
    behind, itself = np.uint8(NEXT_HOP) * apex, np.uint8(BACK) * ~apex
    least = np.minimum(np.where(by, behind, BACK), np.where(to, itself, BACK))
    most = np.maximum(np.where(by, behind, 0), np.where(to, itself, 0))
    other = there[:, None, :] & (port[..., None] > 0)
    other &= build.wiring.port[:, None, :] != port[..., None]
    return Detours(to[..., 0], by[..., 0], other, least.astype(np.uint8), most.astype(np.uint8))
