"""Two classes per link: one for destinations behind the neighbour, one for the neighbour itself.

Packets for the neighbour itself take the minimal path only (PolarFly paper, §VII), and are repaired
by other ports than packets for destinations behind it. With K links, class k < K leads to
destinations behind the k-th neighbour, and class K + k, the *direct class*, to that neighbour
itself. Families and `compilers.routing.choose` call `split_direct` before they add alternates.

`exact_rows_of` and `longest_prefix_rows` look rows up in tables, for this module and for others.
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
    """Double the classes of minimal tables, and move rows of neighbours to the direct classes."""
    routes = tables.routes
    most_links = tables.classes.port.shape[1]
    if isinstance(routes.egress, LineEgress):
        egress: Any = routes.egress.split(most_links)
    else:
        egress = _with_direct_classes(routes, wiring, most_links)
    return Tables(
        routes=replace(routes, egress=egress),
        classes=Classes.minimal(np.tile(tables.classes.port, 2)),
    )


def _with_direct_classes(routes: Routes, wiring: Wiring, most_links: int) -> Egress:
    """Return stored egress values with the rows of neighbours in the direct classes."""
    egress = _widened(routes.egress, 2 * most_links)
    switch, link = np.nonzero(wiring.far >= 0)
    row, has_row = exact_rows_of(routes, switch, wiring.far[switch, link])
    # No row leads to a spine of an OFT, which has no address: there `row` leads to another switch.
    leads_there = has_row & (routes.egress[switch, row] == link)
    switch, row, link = switch[leads_there], row[leads_there], link[leads_there]
    egress[switch, row] = (most_links + link).astype(egress.dtype)
    return egress


def exact_rows_of(
    routes: Routes, switch: NDArray[np.int64], prefix: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look rows of switches up by exact prefixes.

    Args:
        routes: the rows of all switches.
        switch: int64[n], a switch for each prefix.
        prefix: int[n], the prefixes.

    Returns:
        The row of each prefix, int64[n], and whether there is one, bool[n]. Where there is none,
        the row is that of another prefix.
    """
    groups, rows = routes.prefix.shape
    group = routes.group_of(switch)
    # One ascending key for each group and prefix, so that one search serves all groups. `width` is
    # above every prefix, so the keys of a group are below those of the next.
    width = int(routes.prefix.max()) + 2
    keys = (np.arange(groups)[:, None] * width + routes.prefix).ravel()
    key = group * width + prefix
    index = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    return index % rows, keys[index] == key


def longest_prefix_rows(
    routes: Routes, switch: int, destinations: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look destinations up at a switch by longest-prefix match.

    Args:
        routes: the rows of all switches.
        switch: the switch.
        destinations: int64[D], destinations.

    Returns:
        The row that matches each destination, int64[D], and whether there is one, bool[D].
    """
    prefix, egress = routes.prefixes(switch), routes.egress[switch]
    covering = routes.aggregate[destinations]
    has_route = egress != no_route(egress)
    exact = np.minimum(np.searchsorted(prefix, destinations), len(prefix) - 1)
    aggregate = np.minimum(np.searchsorted(prefix, covering), len(prefix) - 1)
    is_exact = has_route[exact] & (prefix[exact] == destinations)
    row = np.where(is_exact, exact, aggregate)
    return row, is_exact | (has_route[row] & (prefix[row] == covering))


def _widened(egress: Egress, classes: int) -> Egress:
    """Return a copy in the narrowest type that holds so many classes."""
    wide = empty_egress(len(egress), egress.shape[1], classes)
    wide[...] = egress
    if wide.dtype != egress.dtype:
        wide[egress == local(egress)] = local(wide)
        wide[egress == no_route(egress)] = no_route(wide)
    return wide
