"""Warnings about the planned switches of an inventory, and the links and hosts that are lost.

The warnings go to standard error, and the names are returned for the verb's JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarfab.output.verb_output import warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

MOST_NAMED = 10
"""The most names of a plane that are printed."""


def warn_of_planned(fabric: Fabric) -> list[str]:
    """Name the planned switches, the first ten of a plane, and say what their absence costs.

    Returns:
        The names of all planned switches.
    """
    from compilers.wiring.fabric_planes import each_plane
    from compilers.wiring.planned_nodes import PlannedNodes

    all_names: list[str] = []
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not (fabric.loaded and inventory):
        return all_names
    if all(node.state != "planned" for node in inventory.nodes):
        return all_names
    for planned in map(PlannedNodes.of, each_plane(fabric.loaded)):
        all_names += planned.names
        for sentence in planned.sentences[:MOST_NAMED]:
            warn(f"planned, and left out until it is installed: {sentence}")
        if len(planned.names) > MOST_NAMED:
            warn(f"and {len(planned.names) - MOST_NAMED:,} more")
        cost = planned.cost()
        if cost:
            warn(f"without planned switches: {cost}")
    return all_names


def warn_of_losses(fabric: Fabric) -> dict[str, list[str]]:
    """Name lost links and hosts, the first ten of a plane, and say what their loss costs.

    Returns:
        All names, by `lost_links` and `lost_hosts`.
    """
    from polarfab.cabling import lost_links

    all_names: dict[str, list[str]] = {"lost_links": [], "lost_hosts": []}
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not inventory:
        return all_names
    has_spares = len(inventory.nodes) > sum(len(build.wiring.names) for build in fabric.builds)
    has_disabled_ports = any(node.disabled_ports for node in inventory.nodes)
    if not (has_spares or inventory.dead_links or has_disabled_ports):
        return all_names
    for lost_of_plane in lost_links(fabric):
        for word, names in (("link", lost_of_plane.links), ("host", lost_of_plane.hosts)):
            all_names[f"lost_{word}s"] += names
            for name in names[:MOST_NAMED]:
                warn(f"lost {word}: {name}")
            if len(names) > MOST_NAMED:
                warn(f"and {len(names) - MOST_NAMED:,} more")
        cost = lost_of_plane.cost()
        if cost:
            warn(f"without them: {cost}")
        for exchange in lost_of_plane.exchanges[:MOST_NAMED]:
            warn(exchange)
    return all_names
