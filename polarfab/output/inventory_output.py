"""What an inventory means for a fabric: whose cables stay, which links and hosts are lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polarfab.output.verb_output import say, warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

NAMED = 10


def earlier_build(fabric: Fabric, named: Path | None, output: Path) -> Fabric | None:
    """The earlier build: the one that is named, or that of the fabric in `output` if installed."""
    from compilers.tables.folders.generations import fabric_in
    from polarfab.fabric import Fabric

    inventory = fabric.loaded.inventory if fabric.loaded else None
    if named is None and inventory and inventory.installed:
        if fabric_in(output) == fabric.name:
            named = output
        else:
            say(f"installed: true: {output} has no earlier build of it, so cables are planned anew")
    return Fabric.load(named) if named else None


def warn_of_planned(fabric: Fabric) -> list[str]:
    """Name the planned switches, the first ten of a plane, and say what their absence costs.

    Gives the names of all.
    """
    from compilers.wiring.placed_fabric import each_plane
    from compilers.wiring.planned_nodes import PlannedNodes

    every: list[str] = []
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not (fabric.loaded and inventory):
        return every
    if all(node.state != "planned" for node in inventory.nodes):
        return every
    for planned in map(PlannedNodes.of, each_plane(fabric.loaded)):
        every += planned.names
        for sentence in planned.sentences[:NAMED]:
            warn(f"planned, and left out until it is installed: {sentence}")
        if (more := len(planned.names) - NAMED) > 0:
            warn(f"and {more:,} more")
        if cost := planned.cost():
            warn(f"without planned switches: {cost}")
    return every


def warn_of_losses(fabric: Fabric) -> dict[str, list[str]]:
    """Name what is lost, the first ten of a plane, and say what it costs.

    Gives all `lost_links` and `lost_hosts`.
    """
    from polarfab.cabling import lost_links

    every: dict[str, list[str]] = {"lost_links": [], "lost_hosts": []}
    inventory = fabric.loaded.inventory if fabric.loaded else None
    if not inventory:
        return every
    spare = len(inventory.nodes) > sum(len(build.wiring.names) for build in fabric.builds)
    if not (spare or inventory.dead_links or any(node.disabled_ports for node in inventory.nodes)):
        return every
    for lost_of_plane in lost_links(fabric):
        for word, lost in (("link", lost_of_plane.links), ("host", lost_of_plane.hosts)):
            every[f"lost_{word}s"] += lost
            for name in lost[:NAMED]:
                warn(f"lost {word}: {name}")
            if (more := len(lost) - NAMED) > 0:
                warn(f"and {more:,} more")
        if cost := lost_of_plane.cost():
            warn(f"without them: {cost}")
        for move in lost_of_plane.moves[:NAMED]:
            warn(move)
    return every
