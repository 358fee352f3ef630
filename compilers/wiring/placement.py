"""Placement: which node of the inventory each vertex is, and in which rack and unit it is.

A *layout* divides the vertices of the graph into *clusters*: fans of PolarFly, supernodes of
PolarStar. A cluster goes whole into the first rack with room for it. If there is no such rack, it
is divided among the racks with room, in their order. The vertex, rack and unit that the inventory
gives a node are kept. Nothing is cabled yet.

`placed_fabric` calls `place_nodes` in a compile. It takes the layout that the inventory names, adds
the nodes and racks that the inventory describes (`compilers.wiring.generated_nodes`), and has
`compilers.wiring.rack_room` put the nodes into racks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, layouts, places_in
from compilers.topology.partition import partition
from compilers.wiring.generated_nodes import with_generated_nodes
from compilers.wiring.hosts_of_file import require_switches_of_hosts, with_hosts_of_file
from compilers.wiring.rack_room import RackRoom, fill_racks, no_room_finding, nodes_in_racks
from compilers.wiring.shortest_order import shortest_order
from inventory.problems import Finding, InputError, KeyPath, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node

PARTITION = "partition"
"""The layout of any graph: a part for each rack."""


def layout_or_whole(topology: Topology, name: str = "") -> Layout:
    """Return a layout of a topology.

    A family without layouts gets one with a single cluster, of all vertices.

    Args:
        topology: the fabric.
        name: of the layout; "" for the family's default.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if name or layouts(topology):
        return layout(topology, name)
    position = np.arange(topology.graph.order, dtype=np.int32)
    return Layout.of_one_kind("whole", np.zeros_like(position), position, "whole", ("all",))


def placed_layout(topology: Topology, inventory: Inventory) -> Layout:
    """Return the layout by which `place_nodes` placed the nodes of an inventory.

    In the layout `partition` a cluster is what is in one rack.

    Raises:
        InputError: the topology has no layout of this name.
    """
    if inventory.placement.layout != PARTITION:
        return layout_or_whole(topology, _layout_name(topology, inventory))
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    rack_of = {node.vertex: index[node.rack] for node in inventory.nodes if node.rack is not None}
    return _partition_layout([rack_of[v] for v in range(topology.graph.order)], tuple(index))


def _layout_name(topology: Topology, inventory: Inventory) -> str:
    """Return the name of the layout that the inventory asks for; "" for the family's default.

    An inventory with trunks between cassettes (`panels`) needs a layout that is made for these.
    """
    if inventory.placement.layout is None and inventory.panels:
        return next(iter(family_of(topology.family).cassette_layouts(topology)), "")
    return inventory.placement.layout or ""


def _partition_layout(racks: Sequence[int] | NDArray[np.int32], names: tuple[str, ...]) -> Layout:
    """Return the layout `partition` with this rack for each vertex."""
    rack_of = np.asarray(racks, np.int32)
    return Layout.of_one_kind(PARTITION, rack_of, places_in(rack_of), PARTITION, names)


def place_nodes(
    topology: Topology,
    inventory: Inventory,
    plane: int = 0,
    others: Sequence[Node] = (),
) -> Inventory:
    """Give every vertex a node, and every such node a rack and a unit.

    An inventory with `generate` gets the nodes that it describes, and racks if it lists none.
    Without racks, nodes get no units. The order of nodes and racks stays, so that messages can name
    the place of an entry in the file.

    Args:
        topology: the fabric.
        inventory: nodes, racks, and what is known of their places.
        plane: from 1, where there are several.
        others: nodes of other planes, whose units are taken.

    Returns:
        The inventory with the vertex, rack and unit of every node that the fabric needs.

    Raises:
        Refused: there is no such layout, or not enough room in the racks.
    """
    is_partition = inventory.placement.layout == PARTITION
    # `partition` depends on what the racks hold, so it follows when there are racks. Until then the
    # family's own layout says how many racks are generated.
    clusters = layout_or_whole(topology) if is_partition else _layout_of(topology, inventory)
    if inventory.generate:
        inventory = with_generated_nodes(topology, inventory, inventory.generate, clusters, plane)
    inventory = with_hosts_of_file(inventory)
    if not inventory.racks:
        if is_partition:
            path = ("placement", "layout")
            raise Refused(Finding(path, "racks, one for each part", "none", "list `racks`"))
        require_switches_of_hosts(inventory, topology.graph.order)
        return inventory
    if is_partition:
        clusters = _partition(topology, inventory, others)
    sequence = _cluster_order(topology, inventory, clusters, others)
    inventory = nodes_in_racks(topology, inventory, clusters, sequence, others)
    require_switches_of_hosts(inventory, topology.graph.order)
    return inventory


def _cluster_order(
    topology: Topology, inventory: Inventory, layout: Layout, others: Sequence[Node]
) -> NDArray[np.int64]:
    """Return the clusters in the order of placement, int64[C]: by number, or for shortest cables.

    Args:
        topology: the fabric.
        inventory: racks, and `placement.order`.
        layout: its C clusters.
        others: nodes of other planes, whose units are taken.

    Raises:
        Refused: there is no such order for the fabric.
    """
    # A layout has one rack for each cluster.
    sizes = np.bincount(layout.rack, minlength=len(layout.names))
    if inventory.placement.order != "shortest":
        return np.arange(len(sizes))
    capacity = RackRoom.of(inventory, others, topology.graph.order).vertex_capacity()
    first_racks = [int(racks[0]) for racks in fill_racks(sizes, capacity).racks if len(racks)]
    with _findings_at(("placement", "order")):
        return shortest_order(topology.graph, layout, first_racks, rack_places(inventory))


def _partition(topology: Topology, inventory: Inventory, others: Sequence[Node]) -> Layout:
    """Return the layout `partition`: parts of vertices with few links between them, one a rack.

    Racks are filled in their order, each with as many vertices as it takes.

    Raises:
        Refused: there is not enough room in the racks.
    """
    names = tuple(rack.name for rack in inventory.racks)
    index = {name: r for r, name in enumerate(names)}
    fixed = np.full(topology.graph.order, -1)  # the rack of each vertex; -1: none yet
    for node in inventory.nodes:
        if node.vertex is not None and node.rack is not None:
            fixed[node.vertex] = index[node.rack]
    waiting = int((fixed < 0).sum())  # vertices whose node has no rack yet
    capacity = RackRoom.of(inventory, others, topology.graph.order).vertex_capacity()
    if capacity.sum() < waiting:
        raise Refused(no_room_finding(inventory, waiting, waiting - int(capacity.sum())))
    capacity_before = np.cumsum(capacity) - capacity  # of all racks before each rack
    sizes = np.clip(waiting - capacity_before, 0, capacity)
    return _partition_layout(partition(topology.graph, sizes.tolist(), fixed), names)


def rack_places(inventory: Inventory) -> NDArray[np.float64]:
    """Return the place of each rack in metres, along rows and across them, float64[R, 2]."""
    cabling = inventory.cabling
    grid = [
        (rack.row or 0, i if rack.column is None else rack.column)
        for i, rack in enumerate(inventory.racks)
    ]
    return np.array(grid, np.float64).reshape(-1, 2) * [cabling.row_pitch, cabling.column_pitch]


def _layout_of(topology: Topology, inventory: Inventory) -> Layout:
    """Return the layout that the inventory asks for.

    Raises:
        Refused: the topology has no such layout.
    """
    with _findings_at(("placement", "layout")):
        return layout_or_whole(topology, _layout_name(topology, inventory))


@contextmanager
def _findings_at(path: KeyPath) -> Iterator[None]:
    """Turn an InputError in the block into findings about the inventory's value at `path`.

    Raises:
        Refused: something in the block raised an InputError.
    """
    try:
        yield
    except InputError as error:
        findings = [Finding(path, p.required, p.given, p.todo) for p in error.problems]
        raise Refused(findings) from None
