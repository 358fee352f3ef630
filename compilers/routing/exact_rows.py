"""Rows of their own for destinations whose next hop is gone or no longer on a shortest path.

The next hop of a row stays where it is a link nearer in what is left of the fabric, and another
neighbour that is takes its place where it is not. So every step of every packet leads nearer, and
nothing loops. A row of an aggregate whose link is gone is taken out, and its members get rows of
their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.split_classes import rows_of
from compilers.tables.intermediate_form import Routes, no_route
from compilers.topology.distance import BEYOND

LINKS_TRIED = 4
"""Links of a row that are tried before all of them: one of these mostly leads nearer."""


def behind(routes: Routes, prefix: NDArray[np.integer]) -> NDArray[np.int64]:
    """int64[n]: the destinations that are in any of these prefixes, ascending."""
    order = len(routes.egress)
    there = np.isin(routes.aggregate, prefix[prefix >= order])
    there[prefix[prefix < order]] = True
    return np.flatnonzero(there)


def nearer_links(
    after: NDArray[np.int32],
    far: NDArray[np.int32],
    ends: NDArray[np.int64],
    distance: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Switch, destination and link of the rows that must change; links are taken in turn.

    Args:
        after: int32[S, D], the next switch towards each of `ends`, negative where none is left.
        far: int32[S, K], the neighbours that are left, -1 beyond the last.
        ends: int64[D], destinations.
        distance: uint8[S, D], in what is left.
    """
    order, links = far.shape
    nearer = distance[after, np.arange(len(ends))] + 1 == distance
    must = ~((after >= 0) & nearer) & (distance > 0) & (distance != BEYOND)
    column, switch = np.nonzero(must.T)  # the distances of one destination lie together
    turn = (switch + ends[column]) % links
    twice = np.concatenate((far, far), axis=1).ravel()
    near, wanted = distance.T.ravel(), distance[switch, column] - 1
    link = np.empty(len(switch), np.int64)
    left = np.arange(len(switch))
    for tried in (np.arange(min(LINKS_TRIED, links)), np.arange(links)):
        there = twice.take((switch[left] * 2 * links + turn[left])[:, None] + tried)
        closer = near.take((column[left] * order)[:, None] + there) == wanted[left, None]
        closer &= there >= 0
        link[left] = (turn[left] + closer.argmax(axis=1)) % links
        left = left[~closer.any(axis=1)]
    return switch, ends[column], link


def with_rows(
    routes: Routes,
    switch: NDArray[np.int64],
    destination: NDArray[np.int64],
    egress_class: NDArray[np.int64],
) -> Routes:
    """Routes with rows of their own for destinations at switches."""
    row, there = rows_of(routes, switch, destination)
    if not there.all():
        group = switch[~there] * len(routes.prefix) // len(routes.egress)
        routes = _with_prefixes(routes, group, destination[~there])
        row, _ = rows_of(routes, switch, destination)
    egress = routes.egress.copy()
    egress[switch, row] = egress_class.astype(egress.dtype)
    return replace(routes, egress=egress)


def _with_prefixes(routes: Routes, group: NDArray[np.int64], prefix: NDArray[np.int64]) -> Routes:
    """Routes whose groups of switches have place for more prefixes, without rows yet."""
    order, beyond = len(routes.egress), max(len(routes.egress), int(routes.aggregate.max()) + 1)
    sets = [rows[rows < beyond] for rows in routes.prefix]
    for g in np.unique(group).tolist():
        sets[g] = np.union1d(sets[g], prefix[group == g])
    widest = max(map(len, sets))
    prefixes = np.full((len(sets), widest), beyond, np.int32)
    egress = np.full((order, widest), no_route(routes.egress), routes.egress.dtype)
    old, new = (e.reshape(len(sets), -1, e.shape[1]) for e in (routes.egress, egress))
    for g, rows in enumerate(sets):
        prefixes[g, : len(rows)] = rows
        before = routes.prefix[g][routes.prefix[g] < beyond]
        new[g][:, np.searchsorted(rows, before)] = old[g][:, : len(before)]
    return replace(routes, prefix=prefixes, egress=egress)
