"""The hardware of a build: where its nodes and hosts are in racks, and the types of its nodes.

`hardware_of_inventory` copies these values from the inventory when a fabric is compiled
(`placed_fabric`). The build stores them, so that the cable plan, audits and an expansion need no
inventory. Fields say "" or 0 where the inventory says nothing.

In shapes, S is the number of nodes and P the most host ports of a node. The *place* of a host is
the index of its port among the host ports of its node. A *cluster* is a set of nodes that belong
into one rack. A *plane* is one of several parallel fabrics that share hosts and racks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.layout import Layout
from compilers.wiring.node_type_facts import NodeTypeFacts, node_type_facts
from compilers.wiring.plane_numbers import plane_prefix
from compilers.wiring.wiring import Wiring

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node


@dataclass(frozen=True, slots=True)
class SpareHost:
    """A host at a spare node."""

    name: str
    """The name of the host."""
    mac: str
    """The MAC address."""
    guid: str
    """The InfiniBand GUID."""
    rack: str
    """The rack that it is in."""
    unit: int
    """The rack unit that it is in."""


@dataclass(frozen=True, slots=True)
class SpareNode:
    """A node of the inventory that is no vertex of the fabric."""

    name: str
    """The name of the node."""
    type: str
    """The name of its type."""
    rack: str
    """The rack that it is in."""
    unit: int
    """The lowest rack unit that it fills."""
    datapath_id: int
    """The OpenFlow datapath id."""
    management: str
    """The management address."""
    serial: str
    """The serial number."""
    guid: str
    """The InfiniBand GUID."""
    disabled_ports: tuple[str, ...]
    """The names of disabled ports."""
    hosts: tuple[SpareHost, ...]
    """The hosts at the node."""


@dataclass(frozen=True, slots=True)
class ListedRisk:
    """A group of `shared_risks` in the inventory."""

    name: str
    """The name of the group."""
    fails: tuple[str, ...]
    """The nodes, links and groups that fail together, as the inventory names them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hardware:
    """Where the S nodes of a fabric and their hosts are, and what types the nodes have."""

    cluster: Annotated[NDArray[np.int32], "S", "0..clusters"]
    """int32[S]: the cluster of each node, an index into cluster_names."""
    cluster_names: Annotated[tuple[str, ...], "clusters"]
    """The names of clusters: sets of nodes that the papers put into one rack."""
    rack: Annotated[NDArray[np.int32], "S", "0..racks"]
    """int32[S]: the rack of each node, an index into rack_names."""
    unit: Annotated[NDArray[np.int32], "S"]
    """int32[S]: the lowest unit that the node fills; 0 where unknown."""
    rack_names: Annotated[tuple[str, ...], "racks"]
    """The names of racks."""
    rack_place: Annotated[NDArray[np.int32], "racks 2"]
    """int32[racks, 2]: the row and the column of each rack."""
    rack_units: Annotated[NDArray[np.int32], "racks"]
    """int32[racks]: the height of each rack in units."""
    host_rack: Annotated[NDArray[np.int32], "S P", "-1..racks"]
    """int32[S, P]: the rack of each host; -1 where unknown."""
    host_unit: Annotated[NDArray[np.int32], "S P"]
    """int32[S, P]: the unit of each host; 0 where unknown."""
    host_broken: Annotated[NDArray[np.bool_], "S P"]
    """bool[S, P]: whether a place has no host, or its host no port that works."""
    serial: Annotated[tuple[str, ...], "S"]
    """The serial number of each node; "" where unknown."""
    guid: Annotated[tuple[str, ...], "S"]
    """The GUID of each node; "" where unknown."""
    host_guid: Annotated[tuple[str, ...], "hosts"]
    """A text for each entry of `Wiring.host_names`; "" where unknown."""
    types: Annotated[tuple[NodeTypeFacts, ...], "types"]
    """The node types, by `Wiring.node_type`."""
    cabling: Mapping[str, Any]
    """`inventory.floor.Cabling` as plain data."""
    hand: tuple[Mapping[str, Any], ...]
    """The cables that the inventory lists (`cables`), as plain data."""
    plane: int
    """The number of the plane, from 1; 0 in a fabric of one plane."""
    cable_number: Annotated[NDArray[np.int64], "cables"]
    """int64[cables]: the number on the label of each cable, from 1.

    Empty where they are 1, 2, … in the order of the floor plan.
    """
    bundle_number: Annotated[NDArray[np.int64], "bundles"]
    """int64[bundles]: the number on the label of each bundle, from 1.

    Empty where they are 1, 2, … in the order of the floor plan.
    """
    spares: tuple[SpareNode, ...] = ()
    """Nodes of the inventory that are no vertices, for an expansion; planned ones last."""
    risks: tuple[ListedRisk, ...] = ()
    """The groups that fail together, as the inventory lists them."""
    panels: tuple[str, ...] = ()
    """The names of the trunks in stock, where links run through cassettes."""

    def __repr__(self) -> str:
        """`<Hardware: 57 nodes in 8 racks>`."""
        return f"<Hardware: {len(self.rack):,} nodes in {len(self.rack_names):,} racks>"

    def bundle_key(self, racks: Sequence[int], clusters: Sequence[int]) -> str:
        """The key of a bundle in allocations: the racks and the clusters at its two ends."""
        rack, far_rack = (self.rack_names[number] for number in racks)
        cluster, far_cluster = (self.cluster_names[number] for number in clusters)
        return f"{rack} to {far_rack}, {cluster} to {far_cluster}"

    def bundle_between(self, u: int, v: int) -> str:
        """The key of the bundle of a cable between two vertices; "" for a cable in no bundle."""
        ends = ((int(self.rack[end]), int(self.cluster[end])) for end in (u, v))
        (rack, cluster), (far_rack, far_cluster) = sorted(ends)
        if (rack, cluster) == (far_rack, far_cluster):
            return ""
        return self.bundle_key((rack, far_rack), (cluster, far_cluster))


def hardware_of_inventory(
    inventory: Inventory, wiring: Wiring, clusters: Layout, plane: int = 0
) -> Hardware:
    """Return the hardware of an inventory whose nodes have places (`placement.place_nodes`).

    If it has no racks, every cluster gets a rack that just fits. These are on a square grid, with
    planes behind each other.

    Args:
        inventory: nodes, racks and types.
        wiring: the node of each vertex.
        clusters: the cluster of each vertex, as `clusters.rack`.
        plane: from 1; 0 for a fabric of one plane.
    """
    by_name = {node.name: node for node in inventory.nodes}
    nodes = [by_name[name] for name in wiring.names]
    types = tuple(node_type_facts(name, inventory.node_types[name]) for name in wiring.type_names)
    if inventory.racks:
        racks = _racks_of_inventory(inventory, nodes)
    else:
        racks = _racks_of_clusters(clusters, max(facts.units for facts in types), plane)
    host_rack, host_unit = _host_places(nodes, inventory, wiring)
    return Hardware(
        cluster=clusters.rack,
        cluster_names=clusters.names,
        rack=racks.rack,
        unit=racks.unit,
        rack_names=racks.names,
        rack_place=racks.place,
        rack_units=racks.units,
        serial=tuple(node.serial or "" for node in nodes),
        guid=tuple(node.guid or "" for node in nodes),
        host_guid=tuple(
            guid for node in nodes for guid in _host_guids(node, wiring.host_port.shape[1])
        ),
        types=types,
        cabling=inventory.cabling.model_dump(mode="json"),
        hand=tuple(cable.model_dump(mode="json") for cable in inventory.cables),
        host_rack=host_rack,
        host_unit=host_unit,
        host_broken=_places_without_host(nodes, inventory, wiring),
        plane=plane,
        cable_number=np.zeros(0, np.int64),
        bundle_number=np.zeros(0, np.int64),
        spares=_spares(inventory, wiring),
        risks=tuple(ListedRisk(risk.name, risk.fails) for risk in inventory.shared_risks),
        panels=tuple(inventory.panels.trunk.split()) if inventory.panels else (),
    )


class _Racks(NamedTuple):
    """The racks of a fabric, and where its S nodes are in them."""

    rack: NDArray[np.int32]
    """int32[S]: the rack of each node, an index into `names`."""
    unit: NDArray[np.int32]
    """int32[S]: the lowest unit that the node fills."""
    names: tuple[str, ...]
    """The names of racks."""
    place: NDArray[np.int32]
    """int32[racks, 2]: the row and the column of each rack."""
    units: NDArray[np.int32]
    """int32[racks]: the height of each rack."""


def _racks_of_inventory(inventory: Inventory, nodes: Sequence[Node]) -> _Racks:
    """Return the racks that an inventory lists.

    The r-th rack, from 0, is in column r if the inventory does not name its column.

    Args:
        inventory: with racks.
        nodes: the node of each vertex, in a rack and with a unit.
    """
    number = {rack.name: r for r, rack in enumerate(inventory.racks)}
    grid = [
        (rack.row or 0, r if rack.column is None else rack.column)
        for r, rack in enumerate(inventory.racks)
    ]
    return _Racks(
        rack=np.array([number[node.rack or ""] for node in nodes], np.int32),
        unit=np.array([node.unit for node in nodes], np.int32),
        names=tuple(number),
        place=np.array(grid, np.int32),
        units=np.array([rack.units for rack in inventory.racks], np.int32),
    )


def _racks_of_clusters(clusters: Layout, height: int, plane: int) -> _Racks:
    """Return a rack for each cluster, all on a square grid, with planes behind each other.

    Args:
        clusters: the cluster of each vertex, as `clusters.rack`.
        height: the units of the highest node type.
        plane: from 1; 0 for a fabric of one plane.
    """
    count = len(clusters.names)
    columns = round(count**0.5)
    rows = -(-count // columns)  # rounded up
    first_row = max(plane - 1, 0) * rows
    return _Racks(
        rack=clusters.rack,
        unit=(clusters.position * height + 1).astype(np.int32),
        names=tuple(f"{plane_prefix(plane)}{name}" for name in clusters.names),
        place=np.array([(first_row + r // columns, r % columns) for r in range(count)], np.int32),
        units=(np.bincount(clusters.rack, minlength=count) * height).astype(np.int32),
    )


def _spares(inventory: Inventory, wiring: Wiring) -> tuple[SpareNode, ...]:
    """Return the nodes that are no vertices, planned ones last."""
    used = set(wiring.names)
    spares = (node for node in inventory.nodes if node.name not in used)
    return tuple(
        SpareNode(
            name=node.name,
            type=node.type,
            rack=node.rack or "",
            unit=node.unit or 0,
            datapath_id=node.datapath_id or 0,
            management=str(node.management or ""),
            serial=node.serial or "",
            guid=node.guid or "",
            disabled_ports=node.disabled_ports,
            hosts=tuple(
                SpareHost(h.name or "", h.mac or "", h.guid or "", h.rack or "", h.unit or 0)
                for h in node.hosts
                if not h.absent
            ),
        )
        for node in sorted(spares, key=lambda node: node.state == "planned")
    )


def _places_without_host(
    nodes: Sequence[Node], inventory: Inventory, wiring: Wiring
) -> NDArray[np.bool_]:
    """Return which places have no host, bool[S, P], by the number of hosts of each node."""
    host_ports = wiring.host_port.shape[1]
    has_no_host = np.ones(wiring.host_port.shape, np.bool_)
    for v, node in enumerate(nodes):
        has_no_host[v, node.host_places(inventory.host_count(node, host_ports))] = False
    return has_no_host


def _host_places(
    nodes: Sequence[Node], inventory: Inventory, wiring: Wiring
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rack and the unit of each host, int32[S, P] each, -1 and 0 where unknown."""
    index = {rack.name: r for r, rack in enumerate(inventory.racks)}
    rack = np.full(wiring.host_port.shape, -1, np.int32)
    unit = np.zeros_like(rack)
    for v, node in enumerate(nodes):
        for h, host in enumerate(node.hosts):
            if host.rack is not None:
                rack[v, h], unit[v, h] = index[host.rack], host.unit or 1
    return rack, unit


def _host_guids(node: Node, per_node: int) -> list[str]:
    """Return the GUID of each place for a host at a node, "" where unknown."""
    guids = [host.guid or "" for host in node.hosts[:per_node]]
    return [*guids, *[""] * (per_node - len(guids))]
