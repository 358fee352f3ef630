"""Minimal routes: the egress class of each switch towards each destination, algebra or search."""

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

LARGEST_SHORTEST = 8192
SOURCES_AT_ONCE = 256
NOTHING_KEPT = np.empty((0, 0), np.int64)


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that send every packet along its minimal path."""
    known = family_of(topology.family).routes(topology)
    return Tables(
        routes=routes(topology, NOTHING_KEPT) if known is None else known,
        classes=Classes.minimal(wiring.port.copy()),
    )


def routes(topology: Topology, kept: NDArray[np.integer]) -> Routes:
    """Exact minimal rows by search, one a destination; class k is the k-th link.

    Args:
        topology: a connected graph.
        kept: int[S, S], the links that the first S vertices took to each other, negative for none.
            They stay wherever they still lead along a shortest path; every other row takes one of
            its shortest paths, in turn by source and destination.
    """
    graph = topology.graph
    order, near = graph.order, graph.padded()
    distance = np.empty((order, order), np.uint8)
    table = neighbour_table(graph)
    for first in range(0, order, SOURCES_AT_ONCE):
        part = np.arange(first, min(first + SOURCES_AT_ONCE, order))
        distance[part] = distances(table, part)
    egress = empty_egress(order, order, near.shape[1])
    for source in range(order):
        shortest = distance[near[source]] == distance[source] - 1
        shortest &= (near[source] >= 0)[:, None] & (distance[source] < BEYOND)
        link = _in_turn(shortest, source)
        if source < len(kept):
            old = kept[source].astype(np.int64)
            stays = (old >= 0) & shortest[old, np.arange(len(old))]
            link[: len(old)][stays] = old[stays]
        egress[source] = link.astype(egress.dtype)
    np.fill_diagonal(egress, local(egress))
    egress[:, ~topology.endpoints] = no_route(egress)
    return Routes.without_aggregates(egress)


def _in_turn(usable: NDArray[np.bool_], source: int) -> NDArray[np.int64]:
    """int64[N]: one of the links usable towards each destination, in turn."""
    count = usable.sum(axis=0)
    turn = (source + np.arange(usable.shape[1])) % np.maximum(count, 1)
    place = np.cumsum(usable, axis=0) - 1
    link: NDArray[np.int64] = (usable & (place == turn)).argmax(axis=0)
    return link
