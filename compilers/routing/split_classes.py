"""Two classes per link: one for destinations behind the neighbour, one for the neighbour itself.

An adjacent switch is reached minimally only (PolarFly paper, §VII), and its repair differs. Class
k < K leads behind the k-th neighbour, class K + k to the k-th neighbour.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import (
    Classes,
    Egress,
    Routes,
    Tables,
    empty_egress,
    local,
    no_route,
)
from compilers.tables.line_rows import LineEgress
from compilers.wiring.wiring import Wiring


def split_direct(tables: Tables, wiring: Wiring) -> Tables:
    """K classes per switch become 2K: rows of adjacent switches move to the direct classes."""
    routes = tables.routes
    links = tables.classes.port.shape[1]
    if isinstance(routes.egress, LineEgress):
        egress: Any = routes.egress.split(links)
    else:
        egress = _split(routes, wiring, links)
    return Tables(
        routes=replace(routes, egress=egress),
        classes=Classes.minimal(np.tile(tables.classes.port, 2)),
    )


def _split(routes: Routes, wiring: Wiring, links: int) -> Egress:
    egress = _widened(routes.egress, 2 * links)
    switch, link = np.nonzero(wiring.far >= 0)
    row, direct = rows_of(routes, switch, wiring.far[switch, link])
    direct &= routes.egress[switch, row] == link  # a spine of an OFT has no address of its own
    egress[switch[direct], row[direct]] = (links + link[direct]).astype(egress.dtype)
    return egress


def rows_of(
    routes: Routes, switch: NDArray[np.int64], prefix: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """int64[n], bool[n]: the row of each switch for each prefix, and whether there is one."""
    sets, rows = routes.prefix.shape
    group = switch * sets // len(routes.egress)
    width = int(routes.prefix.max()) + 2
    keys = (np.arange(sets)[:, None] * width + routes.prefix).ravel()
    wanted = group * width + prefix
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return found % rows, keys[found] == wanted


def deciding_rows(
    routes: Routes, switch: int, ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """int64[D], bool[D]: the row that matches each end at the switch, and whether there is one."""
    prefix, egress, covering = (
        routes.prefixes(switch),
        routes.egress[switch],
        routes.aggregate[ends],
    )
    present = egress != no_route(egress)
    exact, aggregate = (
        np.minimum(np.searchsorted(prefix, wanted), len(prefix) - 1) for wanted in (ends, covering)
    )
    known = present[exact] & (prefix[exact] == ends)
    row = np.where(known, exact, aggregate)
    return row, known | (present[row] & (prefix[row] == covering))


def _widened(egress: Egress, classes: int) -> Egress:
    """A copy in the narrowest type for that many classes."""
    wide = empty_egress(len(egress), egress.shape[1], classes)
    wide[...] = egress
    if wide.dtype != egress.dtype:
        wide[egress == local(egress)] = local(wide)
        wide[egress == no_route(egress)] = no_route(wide)
    return wide
