"""What several test modules of this folder and of others use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.routing.choose import choices
from compilers.routing.damaged_tables import damaged_tables
from compilers.spec.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import local
from compilers.wiring.damage import Damage, remaining_fabric, require_connected
from compilers.wiring.wiring import Wiring
from inventory.model import Inventory


def missing(wiring: Wiring, nodes: list[int], links: list[tuple[int, int]]) -> Damage:
    """Damage by vertices, and links as vertex and place."""
    absent = np.zeros(len(wiring.far), np.bool_)
    absent[nodes] = True
    dead = absent[:, None] | absent[wiring.far]
    for u, k in links:
        v = int(wiring.far[u, k])
        dead[u, k] = True
        dead[v] |= wiring.far[v] == u
    hosts = np.broadcast_to(absent[:, None], wiring.host_port.shape)
    return Damage(absent=absent, links=dead & (wiring.far >= 0), hosts=hosts)


def damaged(build: Build, damage: Damage, forwarding: Forwarding | None = None) -> Build:
    topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
    require_connected(topology, wiring.names, Inventory())
    tables, topology = damaged_tables(build.tables, build.wiring, damage, topology, wiring)
    build = replace(build, topology=topology, wiring=wiring, tables=tables)
    if not forwarding:
        return build
    return replace(
        build,
        tables=choices(tables, topology, wiring, forwarding, whole=False),
        balance="compact-valiant" if forwarding.has_alternates else "minimal",
        forwarding=forwarding,
    )


def ports(build: Build) -> np.ndarray:
    """int[S, S]: the port of every switch for every destination; 0: none, -1: delivered."""
    egress = Fib.of(build.tables, build.wiring.far_by_port()).egress(
        np.arange(build.tables.switches)
    )
    port = np.pad(build.tables.classes.port, ((0, 0), (0, 1)))
    number = np.minimum(egress, port.shape[1] - 1).astype(np.intp)
    result = np.take_along_axis(port, number, axis=1)
    return np.where(egress == local(egress), -1, result)
