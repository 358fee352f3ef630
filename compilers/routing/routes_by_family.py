"""Minimal routes: the egress class of each switch towards each destination, by family or search."""

from __future__ import annotations

import numpy as np

from compilers.routing.search import shortest_paths
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

NOTHING_KEPT = np.empty((0, 0), np.int64)


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that send every packet along its minimal path."""
    routes = family_of(topology.family).routes(topology)
    return Tables(
        routes=shortest_paths.routes(topology, NOTHING_KEPT) if routes is None else routes,
        classes=Classes.minimal(wiring.port.copy()),
    )
