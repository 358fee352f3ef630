"""The planes of a fabric, each as a fabric by itself: its own nodes, cables and pools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, TypeVar

from compilers.spec.fabric_file import LoadedFabric
from compilers.wiring.placed_fabric import Placed, place_fabric

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node

Pool = TypeVar("Pool", IPv4Network, IPv6Network)


def each_plane(loaded: LoadedFabric) -> Iterator[Placed]:
    """The planes one after the other; racks that they share fill up in this order.

    A fabric of one plane is that.

    Raises:
        InputError: the inventory cannot hold the plane.
    """
    count = loaded.spec.planes
    if count == 1:
        yield place_fabric(loaded)
        return
    nodes = loaded.inventory.nodes if loaded.inventory else ()
    placed_nodes: list[Node] = []
    for plane in range(1, count + 1):
        later = [node for node in nodes if (node.plane or 1) > plane]
        part = _one(loaded, plane)
        placed = place_fabric(part, (*placed_nodes, *later))
        placed_nodes += placed.inventory.nodes
        yield placed


def _one(loaded: LoadedFabric, plane: int) -> LoadedFabric:
    """A plane as a fabric by itself."""
    spec, count = loaded.spec, loaded.spec.planes
    pools = spec.addressing
    addressing = pools.model_copy(
        update={
            "ipv4": part_of(pools.ipv4, plane, count),
            "ipv6": part_of(pools.ipv6, plane, count) if pools.ipv6 else None,
        }
    )
    own = {"name": f"{spec.name}-p{plane}", "planes": 1, "addressing": addressing}
    inventory, places = _inventory(loaded.inventory, plane) if loaded.inventory else (None, {})
    return replace(
        loaded, spec=spec.model_copy(update=own), inventory=inventory, plane=plane, places=places
    )


def part_of(pool: Pool, plane: int, count: int) -> Pool:
    """A plane's part of a pool, which is divided into the next power of two of equal parts."""
    length = pool.prefixlen + (count - 1).bit_length()
    size = 1 << (pool.max_prefixlen - length)
    return type(pool)((int(pool.network_address) + (plane - 1) * size, length))


def _inventory(inventory: Inventory, plane: int) -> tuple[Inventory, dict[str, tuple[int, ...]]]:
    """A plane's own nodes, cables and dead links, and their places in the lists of the file.

    Cables and dead links that end in no plane are left to the first, which refuses them.
    """
    prefix = f"p{plane}-"
    node_of = {node.name: node.plane or 1 for node in inventory.nodes}

    def mine(end: str) -> bool:
        if not inventory.nodes:
            own = re.match(r"p(\d+)-", end)
            return end.startswith(prefix) or (plane == 1 and not own)
        return node_of.get(end, 1) == plane

    places: dict[str, tuple[int, ...]] = {
        "nodes": tuple(i for i, n in enumerate(inventory.nodes) if (n.plane or 1) == plane),
        "cables": tuple(i for i, c in enumerate(inventory.cables) if mine(c.a)),
        "dead_links": tuple(i for i, c in enumerate(inventory.dead_links) if mine(c.a)),
    }
    own = {word: tuple(getattr(inventory, word)[i] for i in kept) for word, kept in places.items()}
    return inventory.model_copy(update=own), places
