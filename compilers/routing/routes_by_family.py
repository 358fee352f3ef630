"""Minimal routes: which egress class leads each switch to each destination, by family."""

from __future__ import annotations

from collections.abc import Callable

from compilers.routing import polarfly_minimal, polarstar_minimal, projective_minimal
from compilers.tables.intermediate_form import Classes, Routes, Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

ROUTES_OF_FAMILY: dict[str, Callable[[Topology], Routes]] = {
    "polarfly": polarfly_minimal.routes,
    "polarstar": polarstar_minimal.routes,
    "pn": projective_minimal.pn_routes,
    "oft": projective_minimal.oft_routes,
}


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that send every packet along its minimal path."""
    return Tables(
        routes=ROUTES_OF_FAMILY[topology.family](topology),
        classes=Classes.minimal(wiring.port.copy()),
    )
