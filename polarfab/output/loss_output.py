"""Links and hosts that are lost because of the inventory, named, and what the links' loss costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarfab.output.verb_output import warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

NAMED = 10


def warn_of_losses(fabric: Fabric) -> dict[str, list[str]]:
    """Name what is lost, the first ten of a plane, and say what it costs.

    Gives all `lost_links` and `lost_hosts`.
    """
    from polarfab.cabling import lost_links

    every: dict[str, list[str]] = {"lost_links": [], "lost_hosts": []}
    known = fabric.loaded.inventory if fabric.loaded else None
    if not known:
        return every
    spare = len(known.nodes) > sum(len(build.wiring.names) for build in fabric.builds)
    if not (spare or known.dead_links or any(node.disabled_ports for node in known.nodes)):
        return every
    for found in lost_links(fabric):
        for word, lost in (("link", found.links), ("host", found.hosts)):
            every[f"lost_{word}s"] += lost
            for each in lost[:NAMED]:
                warn(f"lost {word}: {each}")
            if (more := len(lost) - NAMED) > 0:
                warn(f"and {more:,} more")
        if cost := found.cost():
            warn(f"without them: {cost}")
    return every
