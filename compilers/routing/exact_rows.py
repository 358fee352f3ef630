"""Routes around failures: new rows where a next hop has failed or is on no shortest path any more.

An *exact* row is a route for a single destination. Other rows are for aggregates, which cover
several destinations. After failures a row keeps its next hop if the next hop is one link nearer to
the destination in the fabric that is left. Otherwise the row gets a neighbour that is nearer. So
every hop of every packet leads nearer, and nothing loops. A row for an aggregate is removed if its
link has failed. The members of the aggregate get exact rows.

`compilers.routing.link_repair` calls `nearer_links`, which finds the rows that change, and
`with_rows`, which writes them into routes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.split_classes import exact_rows_of
from compilers.tables.intermediate_form import Routes, no_route
from compilers.topology.distance import BEYOND

LINKS_TRIED_FIRST = 4
"""How many links are tried for each row at first: mostly one of them leads nearer."""


class ExactRows(NamedTuple):
    """n rows of switches for single destinations."""

    switch: NDArray[np.int64]
    """int64[n], the switches."""
    destination: NDArray[np.int64]
    """int64[n], the destinations."""
    link: NDArray[np.int64]
    """int64[n], the number of the link that each row uses."""


def covered_destinations(routes: Routes, prefix: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the destinations that any of these prefixes covers, int64[n], ascending."""
    switches = len(routes.egress)
    covered = np.isin(routes.aggregate, prefix[prefix >= switches])
    covered[prefix[prefix < switches]] = True
    return np.flatnonzero(covered)


def nearer_links(
    next_switch: NDArray[np.int32],
    far: NDArray[np.int32],
    destinations: NDArray[np.int64],
    distance: NDArray[np.uint8],
) -> ExactRows:
    """Return the rows that must change, each with a link that leads nearer.

    Of several such links a row takes the first in cyclic order, which begins at a link that depends
    on the switch and the destination. So rows spread over links.

    Args:
        next_switch: int32[S, D], the next switch towards each destination, negative where none is
            left.
        far: int32[S, K], the neighbours that are left, -1 beyond the last.
        destinations: int64[D].
        distance: uint8[S, D], the links between switches in the fabric that is left.
    """
    switches, most_links = far.shape
    is_nearer = distance[next_switch, np.arange(len(destinations))] + 1 == distance
    stays = (next_switch >= 0) & is_nearer
    must_change = ~stays & (distance > 0) & (distance != BEYOND)
    # By destination, so that distances that are close in memory are read together.
    column, switch = np.nonzero(must_change.T)
    first_link = (switch + destinations[column]) % most_links
    # Each list of neighbours twice, so that its cyclic order from any link on is one range.
    far_twice = np.concatenate((far, far), axis=1).ravel()
    flat_distance, nearer_distance = distance.T.ravel(), distance[switch, column] - 1
    link = np.empty(len(switch), np.int64)
    open_rows = np.arange(len(switch))  # rows without a link so far
    # A few links are tried for all rows, then all links for the rows that are still open.
    for tried_links in (np.arange(min(LINKS_TRIED_FIRST, most_links)), np.arange(most_links)):
        start = switch[open_rows] * 2 * most_links + first_link[open_rows]
        neighbour = far_twice.take(start[:, None] + tried_links)
        from_neighbour = flat_distance.take((column[open_rows] * switches)[:, None] + neighbour)
        is_nearer = (from_neighbour == nearer_distance[open_rows, None]) & (neighbour >= 0)
        link[open_rows] = (first_link[open_rows] + is_nearer.argmax(axis=1)) % most_links
        open_rows = open_rows[~is_nearer.any(axis=1)]
    return ExactRows(switch=switch, destination=destinations[column], link=link)


def with_rows(
    routes: Routes,
    switch: NDArray[np.int64],
    destination: NDArray[np.int64],
    egress_class: NDArray[np.int64],
) -> Routes:
    """Return routes in which switches have exact rows for destinations.

    Args:
        routes: before.
        switch: int64[n], the switches.
        destination: int64[n], the destination of each row.
        egress_class: int64[n], the class of each row.
    """
    row, has_row = exact_rows_of(routes, switch, destination)
    if not has_row.all():
        group = routes.group_of(switch[~has_row])
        routes = _with_prefixes(routes, group, destination[~has_row])
        row, _ = exact_rows_of(routes, switch, destination)
    egress = routes.egress.copy()
    egress[switch, row] = egress_class.astype(egress.dtype)
    return replace(routes, egress=egress)


def _with_prefixes(routes: Routes, group: NDArray[np.int64], prefix: NDArray[np.int64]) -> Routes:
    """Return routes with more prefixes in groups of switches, which have no route for them yet.

    Args:
        routes: before.
        group: int64[n], groups of switches that have the same prefixes.
        prefix: int64[n], a prefix for each of these groups.
    """
    switches = len(routes.egress)
    # A number above all prefixes, for the rows that groups with fewer prefixes than others lack.
    filler = max(switches, int(routes.aggregate.max()) + 1)
    prefixes_of = [rows[rows < filler] for rows in routes.prefix]
    for g in np.unique(group).tolist():
        prefixes_of[g] = np.union1d(prefixes_of[g], prefix[group == g])
    widest = max(map(len, prefixes_of))
    prefixes = np.full((len(prefixes_of), widest), filler, np.int32)
    egress = np.full((switches, widest), no_route(routes.egress), routes.egress.dtype)
    # Views by group of switches: [groups, switches of a group, rows].
    old = routes.egress.reshape(len(prefixes_of), -1, routes.egress.shape[1])
    new = egress.reshape(len(prefixes_of), -1, widest)
    for g, rows in enumerate(prefixes_of):
        prefixes[g, : len(rows)] = rows
        # The columns of the prefixes that the group had before move to their new places.
        before = routes.prefix[g][routes.prefix[g] < filler]
        new[g][:, np.searchsorted(rows, before)] = old[g][:, : len(before)]
    return replace(routes, prefix=prefixes, egress=egress)
