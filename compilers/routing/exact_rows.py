"""Exact rows where the algebra's next hop is gone or no longer on a shortest path.

Only destinations towards which some row of the whole fabric uses a missing link are looked at; the
others have the paths that they always had, and those are minimal in what is left as well. Towards
the former the distances in what is left decide: the algebra's next hop stays where it is a link
nearer, and another neighbour that is takes its place where it is not. So every step of every packet
leads nearer, and nothing loops. Time is in proportion to the damage, and so are the rows.

A row of an aggregate whose link is gone is taken out, and its members get rows of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.split_classes import rows_of
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Routes, Tables, no_route
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.topology.labelled_graph import Topology
from compilers.wiring.damage import Damage
from compilers.wiring.wiring import Wiring

ROW_CELLS_AT_ONCE = 1 << 21
LINKS_TRIED = 4
"""Links of a row that are tried before all of them: one of these mostly leads nearer."""


def with_exceptions(
    tables: Tables, damage: Damage, topology: Topology, wiring: Wiring
) -> tuple[Tables, Topology]:
    """Minimal tables of what is left, and its topology with the diameter that it has now.

    Args:
        tables: minimal routes of the whole fabric, class k the k-th link.
        damage: what is missing.
        topology: what is left (`compilers.wiring.damage.remaining`), every endpoint of it joined.
        wiring: of what is left.
    """
    routes = tables.routes
    affected = _affected(routes, damage)
    affected = affected[topology.endpoints[affected]]
    routes = _without(routes, damage)
    tables = Tables(routes=routes, classes=Classes.minimal(wiring.port.copy()))
    fib = Fib.of(tables, wiring.cables())
    table = neighbour_table(topology.graph)
    diameter = topology.diameter
    found = []
    step = max(1, ROW_CELLS_AT_ONCE // len(table))
    for first in range(0, len(affected), step):
        ends = affected[first : first + step]
        distance = distances(table, ends).T
        diameter = max(diameter, int(distance[distance != BEYOND].max()))
        found.append(nearer_links(fib.next_switch(ends), wiring.far, ends, distance))
    if found:
        switch, destination, link = (np.concatenate(part) for part in zip(*found, strict=True))
        tables = replace(tables, routes=with_rows(routes, switch, destination, link))
    return tables, replace(topology, diameter=diameter)


def _affected(routes: Routes, damage: Damage) -> NDArray[np.int64]:
    """int64[n]: the destinations towards which some switch that is there uses a missing link."""
    hurt = np.flatnonzero(damage.links.any(axis=1) & ~damage.absent)
    gone = np.pad(damage.links[hurt], ((0, 0), (0, 1)))
    number = np.minimum(routes.egress[hurt], gone.shape[1] - 1).astype(np.intp)
    which, row = np.nonzero(np.take_along_axis(gone, number, axis=1))
    return behind(
        routes, routes.prefix[hurt[which] * len(routes.prefix) // len(routes.egress), row]
    )


def behind(routes: Routes, prefix: NDArray[np.integer]) -> NDArray[np.int64]:
    """int64[n]: the destinations that are in any of these prefixes, ascending."""
    order = len(routes.egress)
    there = np.isin(routes.aggregate, prefix[prefix >= order])
    there[prefix[prefix < order]] = True
    return np.flatnonzero(there)


def _without(routes: Routes, damage: Damage) -> Routes:
    """Rows by the links that are left; none at nodes or towards nodes that are not there."""
    egress = routes.egress.copy()
    nothing = no_route(egress)  # also all rows of a node that is not there
    for switch in np.flatnonzero(damage.links.any(axis=1)):
        number = np.arange(np.iinfo(egress.dtype).max + 1)
        gone = damage.links[switch]
        number[: len(gone)] = np.where(gone, nothing, np.cumsum(~gone) - 1)
        egress[switch] = number[egress[switch]]
    missing = np.zeros(max(len(egress), int(routes.prefix.max()) + 1), np.bool_)
    missing[: len(egress)] = damage.absent
    whole = np.unique(routes.aggregate[routes.aggregate >= 0])
    missing[np.setdiff1d(whole, routes.aggregate[~damage.absent])] = True
    group, row = np.nonzero(missing[routes.prefix])
    egress.reshape(len(routes.prefix), -1, egress.shape[1])[group, :, row] = nothing
    return replace(routes, egress=egress)


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
