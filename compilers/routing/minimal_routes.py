"""Minimal routes: a shortest path from every switch to every destination.

What comes in is a topology and its wiring. What goes out are tables with one egress class for each
link. `compile` calls `minimal_tables`. A family whose algebra says the next hop computes its routes
itself (`Family.routes`). For all other graphs this module finds them by breadth-first search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import (
    Classes,
    Routes,
    Tables,
    empty_egress,
    local,
    no_route,
)
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

SOURCES_AT_ONCE = 256
"""How many sources the breadth-first search starts from at once."""
NO_EARLIER_LINKS = np.empty((0, 0), np.int64)
"""The argument `earlier` of `routes` for a fabric that is new."""


def minimal_tables(topology: Topology, wiring: Wiring) -> Tables:
    """Return tables that send every packet along a minimal path; class k is the k-th link."""
    by_algebra = family_of(topology.family).routes(topology)
    return Tables(
        routes=routes(topology, NO_EARLIER_LINKS) if by_algebra is None else by_algebra,
        classes=Classes.minimal(wiring.port.copy()),
    )


def routes(topology: Topology, earlier: NDArray[np.integer]) -> Routes:
    """Search a shortest path for every pair of switches; class k is the k-th link.

    Of several shortest paths, rows take one in turn by source and destination.

    Args:
        topology: a connected graph.
        earlier: int[S, S], by switch and destination the links (columns of `graph.padded()`) that
            the first S vertices took to each other before, negative for none. A row keeps such a
            link if it is still on a shortest path.

    Returns:
        One row for each destination.
    """
    graph = topology.graph
    # int[S, K], the neighbour at each link, negative where there is none.
    switches, neighbours = graph.order, graph.padded()
    # uint8[S, S], the links between any two switches.
    distance = np.empty((switches, switches), np.uint8)
    table = neighbour_table(graph)
    for first in range(0, switches, SOURCES_AT_ONCE):
        sources = np.arange(first, min(first + SOURCES_AT_ONCE, switches))
        distance[sources] = distances(table, sources)
    egress = empty_egress(switches, switches, neighbours.shape[1])
    for source in range(switches):
        # bool[K, S], the links of the source that are first on a shortest path to each destination.
        # Where there is no link, the index is negative, and the next line removes what it gives.
        shortest = distance[neighbours[source]] == distance[source] - 1
        shortest &= (neighbours[source] >= 0)[:, None] & (distance[source] < BEYOND)
        link = _in_turn(shortest, source)
        if source < len(earlier):
            old = earlier[source].astype(np.int64)
            stays = (old >= 0) & shortest[old, np.arange(len(old))]
            link[: len(old)][stays] = old[stays]
        egress[source] = link.astype(egress.dtype)
    np.fill_diagonal(egress, local(egress))
    egress[:, ~topology.endpoints] = no_route(egress)
    return Routes.without_aggregates(egress)


def _in_turn(usable: NDArray[np.bool_], source: int) -> NDArray[np.int64]:
    """Choose one of the usable links for each destination, in turn, int64[N].

    Args:
        usable: bool[K, N], by link and destination.
        source: where the turns begin.
    """
    count = usable.sum(axis=0)
    turn = (source + np.arange(usable.shape[1])) % np.maximum(count, 1)
    rank = np.cumsum(usable, axis=0) - 1  # of each usable link among the usable ones
    link: NDArray[np.int64] = (usable & (rank == turn)).argmax(axis=0)
    return link
