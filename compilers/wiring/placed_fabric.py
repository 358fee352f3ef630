"""The step of a compile that puts a fabric on its hardware: placement, then wiring.

Placement gives every vertex of the graph a node of the inventory, in a rack and at a unit; wiring
gives every link a port at both ends. The result is a `PlacedFabric`, from which a compile computes
addresses and routes. `each_plane` yields one for each plane: the *planes* of a fabric are parallel
fabrics of one topology, each with its own nodes, addresses and names. If the fabric was compiled
before, nodes, hosts and numbers stay where the previous build had them (`Installed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, TypeVar

from compilers.spec.address_blocks import Blocks, block_count, ipv4_block_length
from compilers.spec.allocations import ASN, POOL, Numbers
from compilers.spec.cross_checks import check_blocks
from compilers.spec.fabric_file import LoadedFabric
from compilers.spec.installed import Installed
from compilers.topology.families import (
    build_topology,
    family_named,
    family_of,
    parameters,
    vertex_names,
)
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.addressing import mac_clash_findings, planned_blocks
from compilers.wiring.as_numbers import planned_as_numbers
from compilers.wiring.hardware import Hardware, hardware_of_inventory
from compilers.wiring.kept_places import (
    with_named_vertices,
    with_previous_host_places,
    with_previous_vertices,
)
from compilers.wiring.link_numbers import renumbered_allocations
from compilers.wiring.placement import place_nodes, placed_layout
from compilers.wiring.same_units import with_previous_units
from compilers.wiring.wire import wire
from compilers.wiring.wiring import Wiring, generated_inventory, node_indexes
from inventory.asn_range import PRIVATE_AS

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import AddressingSpec
    from inventory.model import Inventory, Node
    from inventory.problems import Finding


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
    installed: Installed | None = None
    """What the previous build recorded, by the vertices of this one; None for a new fabric."""

    def hardware(self) -> Hardware:
        """Return where nodes stand, and what their types are."""
        return hardware_of_inventory(self.inventory, self.wiring, self.clusters, self.loaded.plane)

    def as_numbers(self) -> tuple[int, ...] | None:
        """Return the AS number of each vertex; None where switches have none and had none."""
        before = self.installed.allocations.of(ASN) if self.installed else Numbers()
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
    family, parameters = spec.topology.family, spec.topology.parameters()
    topology, names = build_topology(family, parameters), vertex_names(family, parameters)
    installed = loaded.installed[max(plane - 1, 0)] if loaded.installed else None
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    if loaded.inventory is None:
        inventory = generated_inventory(topology, spec.hosts_per_node, plane, names)
    else:
        # Placement before wiring: links to one rack share modules.
        with loaded.stage():
            inventory = with_named_vertices(loaded.inventory, names)
            if installed:
                vertex_count = topology.graph.order
                nodes = [(node.name, node.serial or "") for node in inventory.nodes]
                vertices = installed.vertices(nodes)
                inventory = with_previous_vertices(inventory, vertices, vertex_count)
                inventory = with_previous_units(inventory, vertices, installed.places, others)
            inventory = place_nodes(topology, inventory, plane, others)
            if installed:
                installed = _installed_at_new_vertices(
                    installed, vertices, inventory, vertex_count, bool(names)
                )
                inventory = with_previous_host_places(
                    inventory, installed, spec.hosts_per_node, vertex_count
                )
    clusters = placed_layout(topology, inventory)
    with loaded.stage() as findings:
        findings += mac_clash_findings(spec, inventory, topology, plane)
        wiring = wire(
            topology,
            inventory,
            spec.hosts_per_node,
            clusters.position,
            plane,
            spec.base.asn or PRIVATE_AS,
            installed,
        )
    return PlacedFabric(loaded, topology, inventory, clusters, wiring, installed)


def _installed_at_new_vertices(
    installed: Installed,
    vertices: Mapping[str, int],
    inventory: Inventory,
    vertex_count: int,
    is_named: bool,
) -> Installed:
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
    used = set(new_vertex.values())
    new_vertex |= {
        v: v for v in range(len(installed.names)) if v not in new_vertex and v not in used
    }
    at_new_vertices = installed.at_new_vertices(new_vertex)
    if not is_named or at_new_vertices is installed:
        return at_new_vertices
    return replace(
        at_new_vertices, allocations=renumbered_allocations(installed.allocations, new_vertex)
    )


Pool = TypeVar("Pool", IPv4Network, IPv6Network)


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
    spec, pools = loaded.spec, _pools_of(loaded, plane)
    changed = {"name": f"{spec.name}-p{plane}", "planes": 1, "addressing": pools}
    inventory, places = (
        _inventory_of_plane(loaded.inventory, plane) if loaded.inventory else (None, {})
    )
    return replace(
        loaded,
        spec=spec.model_copy(update=changed),
        inventory=inventory,
        plane=plane,
        places=places,
    )


def block_findings(loaded: LoadedFabric) -> Iterator[Finding]:
    """Yield findings about addresses of management and servers that are in the blocks of hosts.

    Such addresses must be outside the blocks of all planes. The blocks of a plane may begin where
    they did in the previous build.
    """
    spec, blocks = loaded.spec, list[Blocks]()
    family = family_of(spec.topology.family)
    values = parameters(spec.topology.family, spec.topology.parameters())
    supernode_size = family.hierarchy(values)
    count = block_count(family.order(values), supernode_size)
    for plane in range(1, spec.planes + 1):
        pools = _pools_of(loaded, plane) if spec.planes > 1 else spec.addressing
        installed = loaded.installed[plane - 1] if loaded.installed else None
        blocks += planned_blocks(pools, spec.hosts_per_node, count, supernode_size, installed)
    yield from check_blocks(loaded.fabric_document.data, loaded.inventory, blocks)


def _pools_of(loaded: LoadedFabric, plane: int) -> AddressingSpec:
    """Return the parts of the address pools that a plane gets."""
    pools = loaded.spec.addressing
    return pools.model_copy(
        update={
            "ipv4": _part_of_pool(loaded, pools.ipv4, plane),
            "ipv6": _part_of_pool(loaded, pools.ipv6, plane) if pools.ipv6 else None,
        }
    )


def _part_of_pool(loaded: LoadedFabric, pool: Pool, plane: int) -> Pool:
    """Return a plane's part of a pool of addresses.

    If all planes can keep the blocks of the previous build, it is the largest prefix around the
    plane's blocks that meets no other plane's. They can if the blocks are in the pool, and each
    such prefix has room for all blocks. Otherwise the pool is divided anew (`part_of`).
    """
    new_part = part_of(pool, plane, loaded.spec.planes)
    numbers = [installed.allocations.of(POOL).used for installed in loaded.installed]
    # The first address of each plane's blocks in the previous build; None where it had none.
    firsts_or_none = [used.get(f"ipv{pool.version}") for used in numbers]
    firsts = [first for first in firsts_or_none if first is not None]
    is_inside = all(type(pool)((first, pool.max_prefixlen)).subnet_of(pool) for first in firsts)
    if len(set(firsts)) != loaded.spec.planes or not is_inside:
        return new_part
    bits = pool.max_prefixlen - new_part.prefixlen
    # Halve the parts until no two planes are in one part.
    while len({first >> bits for first in firsts}) < len(firsts):
        bits -= 1
    needed, size = _addresses_per_plane(loaded, pool), 1 << bits
    if any(first % size + needed > size for first in firsts):
        return new_part
    return type(pool)((firsts[plane - 1] >> bits << bits, pool.max_prefixlen - bits))


def _addresses_per_plane(loaded: LoadedFabric, pool: Pool) -> int:
    """Return how many addresses of a pool the blocks of a plane take."""
    topology = loaded.spec.topology
    values = parameters(topology.family, topology.parameters())
    family = family_named(topology.family)
    length = 64  # the prefix length of a switch's block
    if pool.version == 4:
        length = ipv4_block_length(loaded.spec.hosts_per_node)
        for installed in loaded.installed:
            length = min(length, installed.block_length or length)
    blocks = block_count(family.order(values), family.hierarchy(values)) if family else 0
    return blocks << (pool.max_prefixlen - length)


def part_of(pool: Pool, plane: int, count: int) -> Pool:
    """Return a plane's part of a pool of addresses.

    The pool is divided into equal parts, as many as the next power of two from `count`.

    >>> part_of(IPv4Network("10.0.0.0/16"), 2, 3)
    IPv4Network('10.0.64.0/18')
    """
    length = pool.prefixlen + (count - 1).bit_length()
    size = 1 << (pool.max_prefixlen - length)
    return type(pool)((int(pool.network_address) + (plane - 1) * size, length))


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

    places: dict[str, tuple[int, ...]] = {
        "nodes": tuple(i for i, node in enumerate(inventory.nodes) if (node.plane or 1) == plane),
        "cables": tuple(i for i, cable in enumerate(inventory.cables) if in_plane(cable.a)),
        "dead_links": tuple(i for i, link in enumerate(inventory.dead_links) if in_plane(link.a)),
    }
    lists = {
        key: tuple(getattr(inventory, key)[i] for i in indices) for key, indices in places.items()
    }
    return inventory.model_copy(update=lists), places
