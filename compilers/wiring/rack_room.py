"""The capacity of racks: which nodes and rack units are free, and which of them vertices get.

A fabric's graph has N vertices. Placement gives each vertex a node of the inventory, a rack, and a
unit in this rack. A *cluster* is a set of vertices that belong into one rack, such as a fan of
PolarFly; a *member* is one of its vertices. `fill_racks` decides in which rack each member goes.
`nodes_in_racks` then gives every vertex a node, and every such node its rack and unit. `RackRoom`
counts the nodes and units that are still free. `placement.place_nodes` calls both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.vertex_nodes import nodes_to_place
from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Rack
    from inventory.model import Inventory, Node


class ClusterRacks(NamedTuple):
    """The racks that clusters were put into."""

    racks: list[NDArray[np.int64]]
    """For each cluster, the rack of each member for which there is room."""
    missing: int
    """For how many members there is no room."""


def fill_racks(sizes: NDArray[np.int64], room: NDArray[np.int64]) -> ClusterRacks:
    """Put clusters into racks: each whole into the first one with room, else over several.

    Args:
        sizes: int64[C], the members of each cluster, in the order of placement.
        room: int64[R], how many vertices each rack takes.
    """
    free_room = room.copy()
    racks_of_clusters, missing = [], 0
    for size in sizes.tolist():
        racks = np.flatnonzero(free_room >= size)[:1]  # the first with room for the whole cluster
        if not len(racks):
            # The first racks that have room for the cluster together, or all racks with room.
            with_room = np.flatnonzero(free_room)
            needed = np.searchsorted(np.cumsum(free_room[with_room]), size) + 1
            racks = with_room[:needed]
        # A rack stands here as often as it has room, and the cluster takes the first places.
        rack_of_member = np.repeat(racks, free_room[racks])[:size]
        np.subtract.at(free_room, rack_of_member, 1)
        racks_of_clusters.append(rack_of_member)
        missing += size - len(rack_of_member)
    return ClusterRacks(racks_of_clusters, missing)


@dataclass(slots=True)
class RackRoom:
    """The free nodes and free units of each rack."""

    racks: tuple[Rack, ...]
    """The racks of the inventory."""
    free_nodes: list[list[int]]
    """For each rack, the indexes of its nodes without a vertex; those in the lowest units first."""
    taken_units: list[set[int]]
    """For each rack, the units that are taken."""
    height: int
    """The height in units of the tallest node without a rack, for which room is counted."""
    heights: dict[str, int]
    """The height in units of each node type, by its name."""
    nodes_without_rack: int
    """How many nodes that get a vertex have no rack."""

    @classmethod
    def of(
        cls, inventory: Inventory, other_plane_nodes: Sequence[Node] = (), vertex_count: int = 0
    ) -> RackRoom:
        """Return the nodes and units that are free in the racks of an inventory.

        Args:
            inventory: racks and nodes.
            other_plane_nodes: nodes of other planes.
            vertex_count: the number of vertices; 0 for as many as nodes.
        """
        heights = {name: t.units for name, t in inventory.node_types.items()}
        index = {rack.name: r for r, rack in enumerate(inventory.racks)}
        free_nodes: list[list[int]] = [[] for _ in index]
        taken_units: list[set[int]] = [set() for _ in index]
        without_vertex = {*nodes_to_place(vertex_count or len(inventory.nodes), inventory)}
        without_rack = [
            node
            for i, node in enumerate(inventory.nodes)
            if node.rack is None and (i in without_vertex or node.vertex is not None)
        ]
        for i, node in enumerate(inventory.nodes):
            if node.rack is None:
                continue
            r = index[node.rack]
            if i in without_vertex:
                free_nodes[r].append(i)
            if node.unit is not None:
                taken_units[r] |= set(range(node.unit, node.unit + heights[node.type]))
        for r, nodes in enumerate(free_nodes):
            nodes.sort(key=lambda i: (inventory.nodes[i].unit or inventory.racks[r].units, i))
        height = max((heights[node.type] for node in without_rack), default=1)
        room = cls(
            inventory.racks,
            free_nodes=free_nodes,
            taken_units=taken_units,
            height=height,
            heights=heights,
            nodes_without_rack=len(without_rack),
        )
        room.mark_taken(inventory.nodes, other_plane_nodes)
        # Nodes that have a rack and no unit yet get their units before all others.
        for node in inventory.nodes:
            if node.rack is not None and node.unit is None:
                room.take_unit(index[node.rack], heights[node.type])
        return room

    def mark_taken(self, nodes: Sequence[Node], other_plane_nodes: Sequence[Node]) -> None:
        """Mark units as taken: those of all hosts, and those of the nodes of other planes."""
        index = {rack.name: r for r, rack in enumerate(self.racks)}
        for node in (*nodes, *other_plane_nodes):
            for host in node.hosts:
                if host.rack is not None and host.unit is not None:
                    self.taken_units[index[host.rack]].add(host.unit)
        for node in other_plane_nodes:
            if node.rack in index and node.unit is not None:
                units_of_node = range(node.unit, node.unit + self.heights[node.type])
                self.taken_units[index[node.rack]].update(units_of_node)

    def free_spaces(self, rack: int) -> int:
        """Return how many nodes of `height` units fit into the free units of a rack."""
        spaces, free_below = 0, 0
        for unit in range(1, self.racks[rack].units + 1):
            free_below = 0 if unit in self.taken_units[rack] else free_below + 1
            if free_below == self.height:
                spaces, free_below = spaces + 1, 0
        return spaces

    def vertex_capacity(self) -> NDArray[np.int64]:
        """Return how many more vertices each of the R racks can take, int64[R].

        A vertex takes a free node of the rack, or a node without a rack and a space for it.
        """
        nodes = np.array([len(nodes) for nodes in self.free_nodes], np.int64)
        spaces = np.array([self.free_spaces(r) for r in range(len(self.racks))], np.int64)
        if nodes.any():
            # Only as many spaces count as there are nodes without a rack: those of the first racks.
            spaces_before = np.cumsum(spaces) - spaces
            spaces = np.clip(self.nodes_without_rack - spaces_before, 0, spaces)
        return nodes + spaces

    def take_node(self, rack: int, movable: Iterator[int]) -> tuple[int, int]:
        """Return the index of a node for a vertex that belongs into a rack, and the node's rack.

        This is a free node of the rack, else a node without a rack. If there is neither, it is a
        free node of another rack. Nodes with a fixed vertex but no rack are placed first, and may
        have used up this rack's space.

        Args:
            rack: the rack.
            movable: the nodes without a rack that have no vertex yet, as indexes.
        """
        if not self.free_nodes[rack]:
            node = next(movable, None)
            if node is not None:
                return node, rack
            rack = next(r for r, nodes in enumerate(self.free_nodes) if nodes)
        return self.free_nodes[rack].pop(0), rack

    def take_unit(self, rack: int, height: int) -> int | None:
        """Return the lowest free unit for a node, and mark it as taken; None if there is none."""
        units, taken = self.racks[rack].units, self.taken_units[rack]
        for unit in range(1, units - height + 2):
            units_of_node = range(unit, unit + height)
            if not taken.intersection(units_of_node):
                taken.update(units_of_node)
                return unit
        return None


def nodes_in_racks(
    topology: Topology,
    inventory: Inventory,
    layout: Layout,
    sequence: NDArray[np.int64],
    other_plane_nodes: Sequence[Node],
) -> Inventory:
    """Give every vertex a node, and every such node a rack and a unit.

    Args:
        topology: the fabric.
        inventory: with racks.
        layout: its C clusters.
        sequence: int64[C], the clusters in the order in which they are placed.
        other_plane_nodes: nodes of other planes.

    Raises:
        Refused: there is not enough room in the racks.
    """
    nodes = list(inventory.nodes)
    vertex_count = topology.graph.order
    room = RackRoom.of(inventory, other_plane_nodes, vertex_count)
    node_of = {node.vertex: i for i, node in enumerate(nodes) if node.vertex is not None}
    movable = (i for i in nodes_to_place(vertex_count, inventory) if nodes[i].rack is None)
    if not any(room.free_nodes):  # no rack has nodes of its own: vertices take nodes in order
        node_of |= {v: next(movable) for v in range(vertex_count) if v not in node_of}
    has_rack = {v for v, i in node_of.items() if nodes[i].rack is not None}
    vertices = _vertices_in_sequence(layout, sequence).tolist()
    unplaced = np.array([v for v in vertices if v not in has_rack], np.int64)
    # The members of each cluster that need a rack; a layout has one rack for each cluster.
    size_of_cluster = np.bincount(layout.rack[unplaced], minlength=len(sequence))
    cluster_racks = fill_racks(size_of_cluster[sequence], room.vertex_capacity())
    if cluster_racks.missing:
        raise Refused(no_room_finding(inventory, len(unplaced), cluster_racks.missing))
    racks = np.concatenate(cluster_racks.racks).tolist()
    for v, rack in zip(unplaced.tolist(), racks, strict=True):
        if v in node_of:
            i = node_of[v]
        else:
            i, rack = room.take_node(rack, movable)
        nodes[i] = nodes[i].model_copy(update={"vertex": v, "rack": inventory.racks[rack].name})
    placed = _with_units(nodes, inventory, other_plane_nodes, layout.position)
    return inventory.model_copy(update={"nodes": placed})


def _vertices_in_sequence(layout: Layout, sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all vertices, int64[N]: cluster by cluster in sequence, by position in a cluster.

    Args:
        layout: its C clusters.
        sequence: int64[C], the clusters in the order in which they are placed.
    """
    place_of_cluster = np.argsort(sequence)
    return np.lexsort((layout.position, place_of_cluster[layout.rack]))


def _with_units(
    nodes: list[Node],
    inventory: Inventory,
    other_plane_nodes: Sequence[Node],
    position: NDArray[np.int32],
) -> tuple[Node, ...]:
    """Give every node in a rack the lowest free unit, in the order of positions in clusters.

    So racks whose clusters have the same links look the same. Nodes without a vertex come last.

    Args:
        nodes: the nodes, with their racks.
        inventory: the racks, and what fills their units already.
        other_plane_nodes: nodes of other planes.
        position: int32[N], the position of each vertex in its cluster.

    Raises:
        Refused: a rack has no free units left.
    """
    # `RackRoom.of` gives units to nodes that lack one, in the order of the inventory. Here they get
    # them in the order of positions instead. So only nodes that have their units are passed to it.
    nodes_with_unit = [node for node in nodes if node.unit]
    room = RackRoom.of(inventory.model_copy(update={"nodes": nodes_with_unit}))
    room.mark_taken(nodes, other_plane_nodes)
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    without_unit = [
        i for i, node in enumerate(nodes) if node.rack is not None and node.unit is None
    ]
    findings = []

    def by_position(i: int) -> tuple[bool, int, int]:
        """The sorting key of a node: nodes without a vertex come last."""
        vertex = nodes[i].vertex
        return vertex is None, 0 if vertex is None else int(position[vertex]), i

    for i in sorted(without_unit, key=by_position):
        node, rack = nodes[i], nodes[i].rack or ""
        unit = room.take_unit(index[rack], room.heights[node.type])
        if unit is None:
            given = f"{rack}, whose units are taken, for {node.name}"
            required = "a rack with free units"
            findings.append(Finding(("nodes", i, "rack"), required, given, "move nodes"))
        nodes[i] = node.model_copy(update={"unit": unit})
    if findings:
        raise Refused(findings)
    return tuple(nodes)


def no_room_finding(inventory: Inventory, needed: int, missing: int) -> Finding:
    """Return the finding that racks lack room for `missing` of `needed` nodes."""
    return Finding(
        ("racks",),
        f"room for {needed:,} nodes more",
        f"{len(inventory.racks):,} racks with room for {needed - missing:,}",
        "add racks or units",
    )
