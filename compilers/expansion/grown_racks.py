"""Place the new nodes of an expansion in racks.

`grow` calls `grown_hardware` with the hardware of the installed fabric. A *cluster* is a set of new
nodes that belong together; it goes into one rack if it fits. A *spare* is a node of the inventory
that becomes a new switch, and stays where it stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.expansion.spare_nodes import SpareNodes, hosts_of_spares
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware
from compilers.wiring.plane_numbers import plane_prefix
from compilers.wiring.wiring import Wiring

Values = TypeVar("Values", np.int32, np.bool_)


class PlaneHardware(NamedTuple):
    """A plane, whose nodes fill units of racks."""

    wiring: Wiring
    """The types of its nodes."""
    hardware: Hardware
    """The places of its nodes."""


class RackUnit(NamedTuple):
    """The place of a node."""

    rack: int
    """The number of the rack."""
    unit: int
    """The lowest unit of the rack that the node fills."""


def grown_hardware(
    expansion: Expansion,
    wiring: Wiring,
    hardware: Hardware,
    spare_nodes: SpareNodes,
    planes: Sequence[PlaneHardware] = (),
) -> Hardware:
    """The hardware of the larger fabric.

    Spares that stand in a rack stay there. The other nodes of a cluster go together into the first
    rack with room for all; else into several racks with room; else into new racks, in a row behind
    the last one.

    Args:
        expansion: the larger topology and its clusters.
        wiring: the wiring of the larger fabric.
        hardware: the hardware of the old nodes.
        spare_nodes: the spares that are used.
        planes: the other planes, which fill units of the same racks.
    """
    first_new, layout = len(hardware.rack), expansion.layout
    first_cluster = int(layout.rack[first_new:].min())
    cluster_of_node = layout.rack[first_new:] - first_cluster
    new_clusters = layout.names[first_cluster:]
    height = max(hardware.types[t].units for t in wiring.node_type[first_new:].tolist())
    free_places = _FreePlaces(
        free_units=_free_units([PlaneHardware(wiring, hardware), *planes], hardware, height),
        height=height,
        rack_units=max(int(hardware.rack_units.max()), height),
        old_racks=len(hardware.rack_names),
    )
    rack, unit = _rack_units(expansion, hardware, spare_nodes, free_places)
    nodes = [spare_nodes.get(vertex) for vertex in range(first_new, first_new + len(rack))]
    floor_places = _new_floor_places(
        len(free_places.new_racks), [hardware, *(plane.hardware for plane in planes)]
    )
    return replace(
        _with_hosts(hardware, wiring.host_port[first_new:], spare_nodes),
        cluster=_append(hardware.cluster, len(hardware.cluster_names) + cluster_of_node),
        cluster_names=(*hardware.cluster_names, *new_clusters),
        rack=_append(hardware.rack, rack),
        rack_names=(*hardware.rack_names, *free_places.new_racks),
        unit=_append(hardware.unit, unit),
        rack_place=_append(hardware.rack_place, floor_places),
        rack_units=_append(
            hardware.rack_units, np.full(len(free_places.new_racks), free_places.rack_units)
        ),
        serial=(*hardware.serial, *(node.serial if node else "" for node in nodes)),
        guid=(*hardware.guid, *(node.guid if node else "" for node in nodes)),
        cable_number=np.zeros(0, np.int64),
        bundle_number=np.zeros(0, np.int64),
        spares=tuple(spare for spare in hardware.spares if spare not in spare_nodes.values()),
    )


def _rack_units(
    expansion: Expansion, hardware: Hardware, spare_nodes: SpareNodes, free_places: _FreePlaces
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rack and the lowest unit of each new node, int64[A] each.

    Args:
        expansion: the larger topology and its clusters.
        hardware: the hardware of the old nodes.
        spare_nodes: the spares that are used, which may stand in a rack.
        free_places: the places that other nodes take.
    """
    first_new, layout = len(hardware.rack), expansion.layout
    cluster_of_node = layout.rack[first_new:]
    count = len(cluster_of_node)
    # A node without a rack has -1 until its cluster is placed.
    rack, unit = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    rack_number = {name: number for number, name in enumerate(hardware.rack_names)}
    for vertex, node in spare_nodes.items():
        rack[vertex - first_new] = rack_number.get(node.rack, -1)
        unit[vertex - first_new] = node.unit
    for cluster in range(int(cluster_of_node.min()), len(layout.names)):
        members = np.flatnonzero((cluster_of_node == cluster) & (rack < 0))
        members = members[np.argsort(layout.position[first_new:][members])]
        if len(members):
            name = plane_prefix(hardware.plane) + layout.names[cluster]
            rack[members], unit[members] = np.array(free_places.take(len(members), name)).T
    return rack, unit


def _new_floor_places(count: int, planes: Sequence[Hardware]) -> NDArray[np.int64]:
    """The row and the column of new racks, int64[count, 2], in a row behind all others."""
    row = 1 + max(int(plane.rack_place[:, 0].max()) for plane in planes)
    return np.stack((np.full(count, row), np.arange(count)), axis=1)


def _with_hosts(
    hardware: Hardware, host_port: NDArray[np.int32], spare_nodes: SpareNodes
) -> Hardware:
    """The hardware with the hosts of new nodes; only the hosts of spares have a known place.

    Args:
        hardware: the hardware of the old nodes.
        host_port: int32[A, P], the ports of the hosts of the new nodes.
        spare_nodes: the spares that are used.
    """
    added = len(host_port)
    rack = _with_new_nodes(hardware.host_rack, added, -1)
    unit = _with_new_nodes(hardware.host_unit, added, 0)
    per_node = rack.shape[1]
    guid = [*hardware.host_guid, *[""] * (added * per_node)]
    rack_number = {name: number for number, name in enumerate(hardware.rack_names)}
    for (vertex, number), host in hosts_of_spares(spare_nodes, per_node):
        guid[vertex * per_node + number] = host.guid
        if host.rack in rack_number:
            rack[vertex, number] = rack_number[host.rack]
            unit[vertex, number] = host.unit or 1
    broken = _with_new_nodes(hardware.host_broken, added, False)
    broken[len(broken) - added :] = host_port == 0
    return replace(
        hardware, host_rack=rack, host_unit=unit, host_broken=broken, host_guid=tuple(guid)
    )


def _free_units(
    planes: Sequence[PlaneHardware], hardware: Hardware, height: int
) -> list[list[int]]:
    """For each rack the units at which nodes of a height fit, one above the other.

    Args:
        planes: all planes, which share racks.
        hardware: has the racks.
        height: the height of a node in units.
    """
    taken_units: dict[str, set[int]] = defaultdict(set)
    for plane in planes:
        _add_taken_units(taken_units, plane)
    free = []
    for name, units in zip(hardware.rack_names, hardware.rack_units.tolist(), strict=True):
        starts, unit = [], 1
        while unit + height - 1 <= units:
            if taken_units[name].isdisjoint(range(unit, unit + height)):
                starts.append(unit)
                unit += height
            else:
                unit += 1
        free.append(starts)
    return free


def _add_taken_units(taken_units: dict[str, set[int]], plane: PlaneHardware) -> None:
    """Add the units that nodes, hosts and spares of a plane fill.

    Args:
        taken_units: the units by the name of their rack; changed.
        plane: the plane.
    """
    wiring, hardware = plane
    types = wiring.node_type[: len(hardware.rack)].tolist()
    nodes = zip(hardware.rack.tolist(), hardware.unit.tolist(), types, strict=True)
    for rack, unit, node_type in nodes:
        units = range(unit, unit + hardware.types[node_type].units)
        taken_units[hardware.rack_names[rack]].update(units)
    for vertex, number in np.argwhere(hardware.host_rack >= 0).tolist():
        name = hardware.rack_names[hardware.host_rack[vertex, number]]
        taken_units[name].add(int(hardware.host_unit[vertex, number]))
    heights = {facts.name: facts.units for facts in hardware.types}
    for spare in hardware.spares:
        if spare.unit:
            taken_units[spare.rack].update(
                range(spare.unit, spare.unit + heights.get(spare.type, 1))
            )
        for host in spare.hosts:
            taken_units[host.rack].add(host.unit or 1)


@dataclass(slots=True)
class _FreePlaces:
    """The places for nodes of one height: in old racks with room, and in new racks."""

    free_units: list[list[int]]
    """For each old rack the free units at which a node fits."""
    height: int
    """The height of a node in units."""
    rack_units: int
    """The height of a new rack in units."""
    old_racks: int
    """How many old racks there are; new racks are numbered from here on."""
    new_racks: list[str] = field(default_factory=list)
    """The names of the new racks so far."""

    def take(self, count: int, name: str) -> list[RackUnit]:
        """Take a place for each of `count` nodes; new racks are called `name`."""
        return self._take_in_old_racks(count) or self._take_in_new_racks(count, name)

    def _take_in_old_racks(self, count: int) -> list[RackUnit]:
        """Places in the first old rack with room for all nodes, else in several racks.

        [] if there is no room.
        """
        with_room = [rack for rack, units in enumerate(self.free_units) if len(units) >= count]
        racks = with_room[:1] or range(len(self.free_units))
        places = [RackUnit(rack, unit) for rack in racks for unit in self.free_units[rack]][:count]
        if len(places) < count:
            return []
        for rack, unit in places:
            self.free_units[rack].remove(unit)
        return places

    def _take_in_new_racks(self, count: int, name: str) -> list[RackUnit]:
        """Places in as many new racks as are needed."""
        per_rack = self.rack_units // self.height
        racks = -(-count // per_rack)  # rounded up
        first = self.old_racks + len(self.new_racks)
        self.new_racks.append(name)
        self.new_racks += [f"{name}-part{number}" for number in range(2, racks + 1)]
        places = [
            RackUnit(rack, 1 + n * self.height)
            for rack in range(first, first + racks)
            for n in range(per_rack)
        ]
        return places[:count]


def _with_new_nodes(values: NDArray[Values], added: int, unknown: int) -> NDArray[Values]:
    """A value for each host, [S', H], with `unknown` for the hosts of `added` new nodes."""
    return np.pad(values, ((0, added), (0, 0)), constant_values=unknown)


def _append(old: NDArray[np.int32], new: NDArray[np.integer]) -> NDArray[np.int32]:
    """The values of old nodes or racks, then those of new nodes or racks."""
    return np.concatenate((old, new)).astype(np.int32)
