"""Keep each node at its vertex, and each host at its port, when a fabric is compiled again.

A *vertex* is a switch's number in the graph of the fabric, from which its addresses and links
follow. The *place* of a host is its index among the host ports of its node. `placed_fabric` calls
these functions with what the previous build recorded (`InstalledPlane`), before it gives free
vertices and places to new nodes and hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compilers.spec.installed import InstalledPlane
from compilers.wiring.vertex_nodes import node_indexes

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node


def with_named_vertices(inventory: Inventory, names: Sequence[str]) -> Inventory:
    """Return the inventory with each node that has the name of a vertex at that vertex.

    Args:
        inventory: nodes without a vertex may be in it.
        names: the names that a graph's file gives its vertices.
    """
    vertex = {name: v for v, name in enumerate(names)}
    nodes = tuple(
        node.model_copy(update={"vertex": vertex[node.name]})
        if node.vertex is None and node.name in vertex
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes}) if vertex else inventory


def with_previous_vertices(
    inventory: Inventory, vertex: Mapping[str, int], vertex_count: int
) -> Inventory:
    """Return the inventory with nodes at the vertices that they had, unless others are there now.

    If there are too few vertices for new nodes, planned nodes (not installed yet) give theirs up,
    the last one in the inventory first.

    Args:
        inventory: nodes without a vertex may be in it.
        vertex: the vertex that each node had, by its name.
        vertex_count: the number of vertices.
    """
    used = {node.vertex for node in inventory.nodes if node.vertex is not None}
    # By node, the vertex that it may return to.
    returnable = {name: v for name, v in vertex.items() if v < vertex_count and v not in used}
    unplaced = [node for node in inventory.nodes if node.vertex is None]
    planned = [
        node.name for node in unplaced if node.state == "planned" and node.name in returnable
    ]
    returning = sum(node.name in returnable for node in unplaced)
    new_nodes = sum(node.name not in returnable and node.state != "planned" for node in unplaced)
    vertices_left = vertex_count - len(used) - returning
    missing = max(new_nodes - vertices_left, 0)
    for name in planned[::-1][:missing]:  # the last planned nodes give up their vertices
        del returnable[name]
    nodes = tuple(
        node.model_copy(update={"vertex": returnable[node.name]})
        if node.vertex is None and node.name in returnable
        else node
        for node in inventory.nodes
    )
    return inventory.model_copy(update={"nodes": nodes})


def with_previous_host_places(
    inventory: Inventory, installed: InstalledPlane, place_count: int, vertex_count: int
) -> Inventory:
    """Return the inventory with hosts at the places that they had before, by their names.

    Other hosts get the first free places: first those that no host has ever had, then those that
    hosts have left. A free place below the last host gets a `NoHost`.

    Args:
        inventory: lists hosts at nodes.
        installed: the places of hosts in the previous build.
        place_count: the number of places of a node.
        vertex_count: the number of vertices.
    """
    reserved = installed.reserved_hosts()
    nodes = list(inventory.nodes)
    for vertex, i in enumerate(node_indexes(vertex_count, inventory)):
        node = nodes[i]
        before = {
            host.name: installed.number_of_host[vertex, host.name]
            for host in node.hosts
            if host.name and (vertex, host.name) in installed.number_of_host
        }
        host_count = inventory.host_count(node, place_count)
        nodes[i] = _with_hosts_at(node, before, reserved.get(vertex, ()), place_count, host_count)
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def _with_hosts_at(
    node: Node,
    before: Mapping[str, int],
    reserved: Sequence[int],
    place_count: int,
    host_count: int,
) -> Node:
    """A node with its hosts at the places that they had.

    Args:
        node: the node.
        before: the place that each of its hosts had, by name.
        reserved: the places that hosts have or had, in the order in which they were freed.
        place_count: the number of places.
        host_count: the number of hosts, those without a name included.
    """
    from inventory.hosts import Host, NoHost

    host_at, without_old_place = dict[int, Host](), list[Host]()
    for host in node.hosts:
        old_place = before.get(host.name or "", place_count)
        if old_place < place_count and old_place not in host_at:
            host_at[old_place] = host
        else:
            without_old_place.append(host)
    if not host_at and not reserved:
        return node
    without_old_place += [Host.model_construct() for _ in range(host_count - len(node.hosts))]
    never_used = [place for place in range(place_count) if place not in reserved]
    used_before = [place for place in reserved if place < place_count]
    free_places = [place for place in (*never_used, *used_before) if place not in host_at]
    host_at |= dict(zip(free_places, without_old_place, strict=False))
    places = range(max(host_at, default=-1) + 1)
    hosts = tuple(host_at.get(place) or NoHost.model_construct() for place in places)
    return node.model_copy(update={"hosts": hosts})
