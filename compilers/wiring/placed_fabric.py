"""A fabric, or each of its planes by itself, on its hardware: nodes of vertices, places, cables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, TypeVar

from compilers.spec.fabric_file import LoadedFabric
from compilers.topology.families import build_topology, vertex_names
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.addressing import clashing_macs
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.placement import (
    at_same_vertices,
    at_vertices,
    clusters_of,
    hosts_in_place,
    place_nodes,
)
from compilers.wiring.wiring import Wiring, generated_inventory, wire
from inventory.asn_range import PRIVATE_AS

if TYPE_CHECKING:
    from inventory.model import Inventory, Node


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A whole fabric on its hardware, whatever of it is missing or broken."""

    loaded: LoadedFabric
    """Spec and inventory as they were read."""
    topology: Topology
    """The graph of the family."""
    inventory: Inventory
    """The inventory with the vertex, rack and unit of every node; made up where there is none."""
    clusters: Layout
    """What stands together: the cluster of each vertex, and its place in that."""
    wiring: Wiring
    """Each vertex on a node, and each link on a port at both ends."""

    def hardware(self) -> Hardware:
        """What the inventory says beyond the wiring; made up where there is none."""
        return hardware_of_inventory(self.inventory, self.wiring, self.clusters, self.loaded.plane)


def place_fabric(loaded: LoadedFabric, others: Sequence[Node] = ()) -> Placed:
    """Put a fabric of one plane on its nodes, racks and ports.

    Args:
        loaded: spec and inventory.
        others: nodes of other planes, whose units in the racks are taken.

    Raises:
        InputError: the inventory cannot hold the fabric; every problem of a step at once.
    """
    spec, plane = loaded.spec, loaded.plane
    family, parameters = spec.topology.family, spec.topology.parameters()
    topology, names = build_topology(family, parameters), vertex_names(family, parameters)
    installed = loaded.installed[max(plane - 1, 0)] if loaded.installed else None
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    if loaded.inventory is None:
        inventory = generated_inventory(topology, spec.hosts_per_node, plane, names)
    else:
        # Placement before wiring: links to one rack share modules.
        with loaded.stage():
            inventory = at_vertices(loaded.inventory, names)
            if installed:
                inventory = at_same_vertices(inventory, installed.vertex, topology.graph.order)
            inventory = place_nodes(topology, inventory, plane, others)
            if installed:
                inventory = hosts_in_place(inventory, installed, spec.hosts_per_node)
    clusters = clusters_of(topology, inventory)
    with loaded.stage() as findings:
        findings += clashing_macs(spec, inventory, topology, plane)
        wiring = wire(
            topology,
            inventory,
            spec.hosts_per_node,
            clusters.position,
            plane,
            spec.base.asn or PRIVATE_AS,
            installed,
        )
    return Placed(loaded, topology, inventory, clusters, wiring)


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
