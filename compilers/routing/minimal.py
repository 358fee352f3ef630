"""Minimal routes: which egress class leads each switch to each destination, by family."""

from __future__ import annotations

from collections.abc import Callable

from compilers.routing import polarfly, polarstar, projective
from compilers.tables import Classes, Routes, Tables
from compilers.topologies.topology import Topology
from compilers.wiring import Wiring

ROUTES: dict[str, Callable[[Topology], Routes]] = {
    "polarfly": polarfly.routes,
    "polarstar": polarstar.routes,
    "pn": projective.pn_routes,
    "oft": projective.oft_routes,
}


def minimal(topology: Topology, wiring: Wiring) -> Tables:
    """Tables that send every packet along its minimal path."""
    return Tables(
        routes=ROUTES[topology.family](topology), classes=Classes.minimal(wiring.port.copy())
    )
