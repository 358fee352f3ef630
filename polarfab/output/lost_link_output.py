"""Links that carry nothing because of the inventory, named, and what their loss costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polarfab.output.verb_output import warn

if TYPE_CHECKING:
    from polarfab.fabric import Fabric

NAMED = 10


def warn_of_lost_links(fabric: Fabric) -> list[str]:
    """Name each lost link, the first ten of a plane, and say what it costs; gives all of them."""
    known = fabric.loaded.inventory if fabric.loaded else None
    if not known or not (known.dead_links or any(node.disabled_ports for node in known.nodes)):
        return []
    every: list[str] = []
    for found in fabric.lost_links():
        every += found.links
        for link in found.links[:NAMED]:
            warn(f"lost link: {link}")
        if (more := len(found.links) - NAMED) > 0:
            warn(f"and {more:,} more")
        if cost := found.cost():
            warn(f"without them: {cost}")
    return every
