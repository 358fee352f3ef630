"""The step of a compile that puts a fabric on its hardware: placement, then wiring.

Placement gives every vertex of the graph a node of the inventory, in a rack and at a unit; wiring
gives every link a port at both ends. The result is a `PlacedFabric`, from which a compile computes
addresses and routes. A fabric of several planes is put on its hardware plane by plane
(`compilers.wiring.fabric_planes`). If the fabric was compiled before, nodes, hosts and numbers stay
where the previous build had them (`InstalledPlane`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compilers.spec.allocations import ASN, AllocatedNumbers
from compilers.spec.fabric_file import LoadedFabric
from compilers.spec.installed import InstalledPlane
from compilers.topology.families import build_topology, vertex_names
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.as_numbers import planned_as_numbers
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.kept_places import (
    with_named_vertices,
    with_previous_host_places,
    with_previous_vertices,
)
from compilers.wiring.link_numbers import renumbered_allocations
from compilers.wiring.mac_addresses import mac_clash_findings
from compilers.wiring.placement import place_nodes, placed_layout
from compilers.wiring.same_units import with_previous_units
from compilers.wiring.vertex_nodes import node_indexes
from compilers.wiring.wire import wire
from compilers.wiring.wiring import Wiring
from inventory.asn_range import PRIVATE_AS

if TYPE_CHECKING:
    from inventory.model import Inventory, Node


@dataclass(frozen=True, slots=True, eq=False)
class PlacedFabric:
    """A whole fabric of one plane on its hardware, as if nothing were missing or broken."""

    loaded: LoadedFabric
    """fabric.yaml and the inventory as they were read."""
    topology: Topology
    """The graph of the family."""
    inventory: Inventory
    """The inventory with the vertex, rack and unit of every node; generated if there is none."""
    clusters: Layout
    """The cluster of each vertex (nodes that belong into one rack), and its position in it."""
    wiring: Wiring
    """The node of each vertex, and the ports of each link."""
    previous: InstalledPlane | None = None
    """What the previous build recorded, by the vertices of this one; None for a new fabric."""

    def hardware(self) -> Hardware:
        """Return where nodes stand, and what their types are."""
        return hardware_of_inventory(self.inventory, self.wiring, self.clusters, self.loaded.plane)

    def as_numbers(self) -> tuple[int, ...] | None:
        """Return the AS number of each vertex; None where switches have none and had none."""
        before = self.previous.allocations.of(ASN) if self.previous else AllocatedNumbers()
        spec, nodes = self.loaded.spec, self.inventory.nodes
        if spec.control_plane.routes != "ebgp" and not before:
            return None
        asn_of_nodes = [
            nodes[i].asn for i in node_indexes(self.topology.graph.order, self.inventory)
        ]
        return planned_as_numbers(spec.base.asn or PRIVATE_AS, asn_of_nodes, before)

    def host_numbers(self) -> dict[str, int]:
        """Return the number of each host that the inventory names, by `VERTEX/NAME`."""
        nodes = self.inventory.nodes
        return {
            f"{vertex}/{host.name}": number
            for vertex, i in enumerate(node_indexes(self.topology.graph.order, self.inventory))
            for number, host in enumerate(nodes[i].hosts)
            if host.name
        }


def place_fabric(loaded: LoadedFabric, others: Sequence[Node] = ()) -> PlacedFabric:
    """Put a fabric of one plane on its nodes, racks and ports.

    Args:
        loaded: fabric.yaml and the inventory.
        others: nodes of other planes, whose units in the racks are taken.

    Raises:
        InputError: the inventory cannot hold the fabric; every problem of a step at once.
    """
    spec, plane = loaded.spec, loaded.plane
    family, values = spec.topology.family, spec.topology.parameters()
    topology, names = build_topology(family, values), vertex_names(family, values)
    # Planes count from 1, and plane 0 is the only one.
    installed = loaded.installed[max(plane - 1, 0)] if loaded.installed else None
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    if loaded.inventory is None:
        inventory = generated_inventory(topology, spec.hosts_per_node, plane, names)
    else:
        # Placement before wiring: links to one rack share modules.
        with loaded.stage():
            inventory = with_named_vertices(loaded.inventory, names)
            if installed is None:
                inventory = place_nodes(topology, inventory, plane, others)
            else:
                inventory, installed = _place_again(
                    loaded, topology, inventory, installed, others, is_named=bool(names)
                )
    clusters = placed_layout(topology, inventory)
    with loaded.stage() as findings:
        findings += mac_clash_findings(spec, inventory, topology, plane)
        wiring = wire(
            topology,
            inventory=inventory,
            hosts_per_node=spec.hosts_per_node,
            position=clusters.position,
            plane=plane,
            first_asn=spec.base.asn or PRIVATE_AS,
            installed=installed,
        )
    return PlacedFabric(
        loaded,
        topology=topology,
        inventory=inventory,
        clusters=clusters,
        wiring=wiring,
        previous=installed,
    )


def _place_again(
    loaded: LoadedFabric,
    topology: Topology,
    inventory: Inventory,
    installed: InstalledPlane,
    others: Sequence[Node],
    is_named: bool,
) -> tuple[Inventory, InstalledPlane]:
    """Place nodes and hosts where the previous build had them, and new ones where there is room.

    Args:
        loaded: fabric.yaml.
        topology: the fabric graph.
        inventory: the nodes, those that a file names at their vertices.
        installed: what the previous build recorded, by its own vertices.
        others: nodes of other planes, whose units in the racks are taken.
        is_named: whether a file names the vertices.

    Returns:
        The inventory with all places, and what is installed by the vertices of this build.

    Raises:
        Refused: there is not enough room, or a node cannot stay where it was.
    """
    vertex_count = topology.graph.order
    nodes = [(node.name, node.serial or "") for node in inventory.nodes]
    old_vertices = installed.vertices(nodes)
    inventory = with_previous_vertices(inventory, old_vertices, vertex_count)
    inventory = with_previous_units(inventory, old_vertices, installed.racks_and_units, others)
    inventory = place_nodes(topology, inventory, loaded.plane, others)
    installed = _installed_at_new_vertices(
        installed, old_vertices, inventory, vertex_count, is_named
    )
    inventory = with_previous_host_places(
        inventory, installed, loaded.spec.hosts_per_node, vertex_count
    )
    return inventory, installed


def _installed_at_new_vertices(
    installed: InstalledPlane,
    vertices: Mapping[str, int],
    inventory: Inventory,
    vertex_count: int,
    is_named: bool,
) -> InstalledPlane:
    """Return what is installed, by the vertices that its nodes have now.

    Args:
        installed: by the vertices of the earlier build.
        vertices: the vertex that each node had then, by its name.
        inventory: the nodes with their new vertices.
        vertex_count: the number of vertices.
        is_named: whether a file names the vertices, so that their numbers change with the file.
    """
    vertex_now = {
        inventory.nodes[i].name: v for v, i in enumerate(node_indexes(vertex_count, inventory))
    }
    new_vertex = {
        old_vertex: vertex_now[name] for name, old_vertex in vertices.items() if name in vertex_now
    }
    # A vertex whose node is gone keeps its number, unless another node has moved there. So what is
    # recorded of it, such as the numbers of its links, still holds for the node that comes next.
    vertices_in_use = set(new_vertex.values())
    new_vertex |= {
        v: v
        for v in range(len(installed.names))
        if v not in new_vertex and v not in vertices_in_use
    }
    at_new_vertices = installed.at_new_vertices(new_vertex)
    if not is_named or at_new_vertices is installed:
        return at_new_vertices
    return replace(
        at_new_vertices, allocations=renumbered_allocations(installed.allocations, new_vertex)
    )
