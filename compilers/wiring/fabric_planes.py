"""The planes of a fabric: parallel fabrics of one topology, each with its own nodes and addresses.

`each_plane` puts one plane after the other on its hardware (`compilers.wiring.placed_fabric`).
Every plane has its own part of the address pools, and names that begin with its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from compilers.spec.fabric_file import LoadedFabric
from compilers.wiring.placed_fabric import PlacedFabric, place_fabric
from compilers.wiring.plane_pools import pools_of_plane

if TYPE_CHECKING:
    from inventory.model import Inventory, Node


def each_plane(loaded: LoadedFabric) -> Iterator[PlacedFabric]:
    """Yield each plane on its hardware, one after the other.

    Racks that planes share fill up in this order.

    Raises:
        InputError: the inventory cannot hold a plane.
    """
    count = loaded.spec.planes
    if count == 1:
        yield place_fabric(loaded)
        return
    nodes = loaded.inventory.nodes if loaded.inventory else ()
    placed_nodes: list[Node] = []
    for plane in range(1, count + 1):
        later = [node for node in nodes if (node.plane or 1) > plane]
        placed = place_fabric(_only_plane(loaded, plane), (*placed_nodes, *later))
        placed_nodes += placed.inventory.nodes
        yield placed


def _only_plane(loaded: LoadedFabric, plane: int) -> LoadedFabric:
    """Return a plane, from 1, as a fabric by itself."""
    spec, pools = loaded.spec, pools_of_plane(loaded, plane)
    changed = {"name": f"{spec.name}-p{plane}", "planes": 1, "addressing": pools}
    inventory, indexes_in_file = (
        _inventory_of_plane(loaded.inventory, plane) if loaded.inventory else (None, {})
    )
    return replace(
        loaded,
        spec=spec.model_copy(update=changed),
        inventory=inventory,
        plane=plane,
        indexes_in_file=indexes_in_file,
    )


def _inventory_of_plane(
    inventory: Inventory, plane: int
) -> tuple[Inventory, dict[str, tuple[int, ...]]]:
    """Return an inventory with the nodes, cables and dead links of one plane only.

    Cables and dead links that end in no plane are left to the first plane, which refuses them.

    Returns:
        The inventory, and by the key of each list the indexes of these entries in the file's list.
    """
    prefix = f"p{plane}-"
    plane_of = {node.name: node.plane or 1 for node in inventory.nodes}

    def in_plane(end: str) -> bool:
        """Whether the node of this name is in the plane."""
        if not inventory.nodes:
            has_plane = re.match(r"p(\d+)-", end)
            return end.startswith(prefix) or (plane == 1 and not has_plane)
        return plane_of.get(end, 1) == plane

    indexes_in_file: dict[str, tuple[int, ...]] = {
        "nodes": tuple(i for i, node in enumerate(inventory.nodes) if (node.plane or 1) == plane),
        "cables": tuple(i for i, cable in enumerate(inventory.cables) if in_plane(cable.a)),
        "dead_links": tuple(i for i, link in enumerate(inventory.dead_links) if in_plane(link.a)),
    }
    lists = {
        key: tuple(getattr(inventory, key)[i] for i in indices)
        for key, indices in indexes_in_file.items()
    }
    return inventory.model_copy(update=lists), indexes_in_file
