"""Minimal routes: the egress class of each switch towards each destination, by family or search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compilers.routing import polarfly_minimal, projective_minimal
from compilers.routing.search import shortest_paths
from compilers.routing.star import polarstar_minimal
from compilers.tables.intermediate_form import Classes, Routes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

ROUTES_OF_FAMILY: dict[str, Callable[[Topology], Routes]] = {
    "polarfly": polarfly_minimal.routes,
    "polarstar": polarstar_minimal.routes,
    "pn": projective_minimal.pn_routes,
    "oft": projective_minimal.oft_routes,
}


NOTHING_KEPT = np.empty((0, 0), np.int64)


def _searched(topology: Topology) -> Routes:
    """Shortest paths by search, for graphs that no algebra routes."""
    return shortest_paths.routes(topology, NOTHING_KEPT)


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that send every packet along its minimal path."""
    return Tables(
        routes=ROUTES_OF_FAMILY.get(topology.family, _searched)(topology),
        classes=Classes.minimal(wiring.port.copy()),
    )
