"""A fabric on its hardware: the node of each vertex, its place, and the cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compilers.spec.fabric_file import LoadedFabric
from compilers.topology.families import build_topology, vertex_names
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.addressing import clashing_macs
from compilers.wiring.hardware import Hardware, hardware
from compilers.wiring.placement import (
    at_same_vertices,
    at_vertices,
    clusters_of,
    hosts_in_place,
    settle,
)
from compilers.wiring.wiring import Wiring, generated_inventory, wire
from inventory.asn_range import PRIVATE_AS

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The topology, the inventory with a place for every node, clusters and wiring, all whole."""

    loaded: LoadedFabric
    topology: Topology
    inventory: Inventory
    clusters: Layout
    wiring: Wiring

    def hardware(self) -> Hardware:
        """What the inventory says beyond the wiring; made up where there is none."""
        return hardware(self.inventory, self.wiring, self.clusters, self.loaded.plane)


def place_fabric(loaded: LoadedFabric, others: Sequence[Node] = ()) -> Placed:
    """Put a fabric of one plane on its nodes, racks and ports.

    Args:
        loaded: spec and inventory.
        others: nodes of other planes, whose units in the racks are taken.

    Raises:
        InputError: the inventory cannot hold the fabric; every problem of a step at once.
    """
    spec, plane = loaded.spec, loaded.plane
    given = spec.topology.family, spec.topology.parameters()
    topology, names = build_topology(*given), vertex_names(*given)
    installed = loaded.installed[max(plane - 1, 0)] if loaded.installed else None
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    if loaded.inventory is None:
        inventory = generated_inventory(topology, spec.hosts_per_node, plane, names)
    else:
        # Placement before wiring: links to one rack share modules.
        with loaded.reported():
            inventory = at_vertices(loaded.inventory, names)
            if installed:
                inventory = at_same_vertices(inventory, installed.vertex, topology.graph.order)
            inventory = settle(topology, inventory, plane, others)
            if installed:
                inventory = hosts_in_place(inventory, installed, spec.hosts_per_node)
    found = clusters_of(topology, inventory)
    with loaded.reported(clashing_macs(spec, inventory, topology, plane)):
        wiring = wire(
            topology,
            inventory,
            spec.hosts_per_node,
            found.position,
            plane,
            spec.base.asn or PRIVATE_AS,
            installed,
        )
    return Placed(loaded, topology, inventory, found, wiring)
