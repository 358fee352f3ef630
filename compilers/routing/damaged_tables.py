"""Minimal tables of a fabric of which nodes or links are missing, for a compile.

They are those that the controller has after the same links failed, without what only the whole
fabric needs: classes are those of the links that are left, and nothing is routed at nodes or
towards nodes that are missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.routing.link_repair import Intact, repaired
from compilers.tables.intermediate_form import Classes, Routes, Tables, no_route
from compilers.topology.labelled_graph import Topology
from compilers.wiring.damage import Damage
from compilers.wiring.wiring import Wiring


def damaged_tables(
    tables: Tables, whole: Wiring, damage: Damage, topology: Topology, wiring: Wiring
) -> tuple[Tables, Topology]:
    """Minimal tables of what is left, and its topology with the diameter that it has now.

    Args:
        tables: minimal routes of the whole fabric, class k the k-th link.
        whole: the wiring of the whole fabric.
        damage: what is missing.
        topology: what is left (`compilers.wiring.damage.remaining`), every endpoint of it joined.
        wiring: of what is left.
    """
    found = repaired(Intact.of_tables(tables, whole, topology), damage.links)
    routes = _of_links_left(found.tables.routes, damage)
    left = Tables(routes=routes, classes=Classes.minimal(wiring.port.copy()))
    return left, replace(topology, diameter=found.diameter)


def _of_links_left(routes: Routes, damage: Damage) -> Routes:
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
