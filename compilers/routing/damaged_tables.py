"""Minimal tables of a fabric with missing nodes or links; `compile` calls `damaged_tables`.

What comes in are the tables of the whole fabric and what is missing. What goes out are the tables
that the controller would install after the same links failed (`compilers.routing.link_repair`),
without the parts that are missing: only the links that are left have classes, and there are no rows
at missing nodes or towards them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.tables.intermediate_form import Classes, Routes, Tables, no_route
from compilers.topology.labelled_graph import Topology
from compilers.wiring.damage import Damage
from compilers.wiring.wiring import Wiring


def damaged_tables(
    tables: Tables, whole: Wiring, damage: Damage, topology: Topology, wiring: Wiring
) -> tuple[Tables, Topology]:
    """Return minimal tables of the fabric that is left, and its topology with its diameter.

    Args:
        tables: minimal routes of the whole fabric; class k leads over the k-th link.
        whole: the wiring of the whole fabric.
        damage: what is missing.
        topology: the fabric that is left (`compilers.wiring.damage.remaining_fabric`), in which a
            path joins any two endpoints.
        wiring: the wiring that is left.
    """
    repair = repair_tables(IntactBuild.of_tables(tables, whole, topology), damage.links)
    routes = _without_missing(repair.tables.routes, damage)
    damaged = Tables(routes=routes, classes=Classes.minimal(wiring.port.copy()))
    return damaged, replace(topology, diameter=repair.diameter)


def _without_missing(routes: Routes, damage: Damage) -> Routes:
    """Return routes with classes numbered by the links that are left.

    Rows towards missing nodes are removed, and rows for aggregates that cover missing nodes only.
    All rows of a missing node use missing links, so they are removed with these links.
    """
    egress = routes.egress.copy()
    lost_class = no_route(egress)
    for switch in np.flatnonzero(damage.links.any(axis=1)):
        # A look-up table with an entry for every value of `Routes.egress`. A class gets the number
        # of its link among the links that are left. Every other value, such as that of local
        # delivery, stands for itself.
        new_class = np.arange(np.iinfo(egress.dtype).max + 1)
        is_missing = damage.links[switch]
        new_class[: len(is_missing)] = np.where(is_missing, lost_class, np.cumsum(~is_missing) - 1)
        egress[switch] = new_class[egress[switch]]
    is_unused = _unused_prefixes(routes, damage)
    # The switches of a group have the same prefixes (`Routes.prefix`). `egress` is changed through
    # a view of it: [groups, switches of a group, rows].
    by_group = egress.reshape(len(routes.prefix), -1, egress.shape[1])
    group, row = np.nonzero(is_unused[routes.prefix])
    by_group[group, :, row] = lost_class
    return replace(routes, egress=egress)


def _unused_prefixes(routes: Routes, damage: Damage) -> NDArray[np.bool_]:
    """Return which prefixes belong to missing nodes only, bool[prefixes].

    The prefix of a node has the node's number. The numbers of aggregates are above these.
    """
    nodes = len(routes.egress)
    is_unused = np.zeros(max(nodes, int(routes.prefix.max()) + 1), np.bool_)
    is_unused[:nodes] = damage.absent
    aggregates = np.unique(routes.aggregate[routes.aggregate >= 0])
    aggregates_in_use = routes.aggregate[~damage.absent]
    is_unused[np.setdiff1d(aggregates, aggregates_in_use)] = True
    return is_unused
