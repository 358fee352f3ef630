"""Place the new nodes of an expansion in racks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.expansion.spare_ports import SpareNodes, hosts_of_spares
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane

Values = TypeVar("Values", np.int32, np.bool_)


def grown_hardware(
    expansion: Expansion,
    wiring: Wiring,
    hardware: Hardware,
    taken: SpareNodes,
    planes: Sequence[tuple[Wiring, Hardware]] = (),
) -> Hardware:
    """The hardware of the larger fabric.

    Spares that stand in a rack stay there. The other nodes of a cluster go together into the first
    rack with room for all; else into several racks with room; else into new racks, in a row behind
    the last one.

    Args:
        expansion: the larger topology and its clusters.
        wiring: the wiring of the larger fabric.
        hardware: the hardware of the old nodes.
        taken: the spares that are used.
        planes: the wiring and hardware of other planes, whose places in racks are taken.
    """
    old, layout = len(hardware.rack), expansion.layout
    first = int(layout.rack[old:].min())
    # By new node its cluster, and by new cluster its name.
    cluster, names = layout.rack[old:] - first, layout.names[first:]
    height = max(hardware.types[t].units for t in wiring.node_type[old:].tolist())
    seats = _Seats(
        free=_free([(wiring, hardware), *planes], hardware, height),
        height=height,
        rack_units=max(int(hardware.rack_units.max()), height),
        old_racks=len(hardware.rack_names),
    )
    rack, unit = np.full(len(cluster), -1, np.int64), np.zeros(len(cluster), np.int64)
    rack_of = {name: r for r, name in enumerate(hardware.rack_names)}
    for v, node in taken.items():
        rack[v - old], unit[v - old] = rack_of.get(node.rack, -1), node.unit
    for number, name in enumerate(names):
        members = np.flatnonzero((cluster == number) & (rack < 0))
        members = members[np.argsort(layout.position[old:][members])]
        if len(members):
            places = seats.take(len(members), of_plane(hardware.plane) + name)
            rack[members], unit[members] = np.array(places).T
    new_racks = len(seats.new_racks)
    row = 1 + max(int(part.rack_place[:, 0].max()) for part in (hardware, *(k for _, k in planes)))
    floor_places = np.stack((np.full(new_racks, row), np.arange(new_racks)), axis=1)
    nodes = [taken.get(v) for v in range(old, old + len(cluster))]
    return replace(
        _with_hosts(hardware, wiring.host_port[old:], taken),
        cluster=_joined(hardware.cluster, len(hardware.cluster_names) + cluster),
        cluster_names=(*hardware.cluster_names, *names),
        rack=_joined(hardware.rack, rack),
        rack_names=(*hardware.rack_names, *seats.new_racks),
        unit=_joined(hardware.unit, unit),
        rack_place=_joined(hardware.rack_place, floor_places),
        rack_units=_joined(hardware.rack_units, np.full(new_racks, seats.rack_units)),
        serial=(*hardware.serial, *(node.serial if node else "" for node in nodes)),
        guid=(*hardware.guid, *(node.guid if node else "" for node in nodes)),
        cable_number=np.zeros(0, np.int64),
        bundle_number=np.zeros(0, np.int64),
        spares=tuple(spare for spare in hardware.spares if spare not in taken.values()),
    )


def _with_hosts(hardware: Hardware, host_port: NDArray[np.int32], taken: SpareNodes) -> Hardware:
    """The hardware with the hosts of new nodes; only spares know where their hosts are.

    Args:
        hardware: the hardware of the old nodes.
        host_port: int32[A, P], the ports of the hosts of the new nodes.
        taken: the spares that are used.
    """
    added = len(host_port)
    rack = _hosts(hardware.host_rack, added, -1)
    unit = _hosts(hardware.host_unit, added, 0)
    per_node = rack.shape[1]
    guid = [*hardware.host_guid, *[""] * (added * per_node)]
    index = {name: r for r, name in enumerate(hardware.rack_names)}
    for (v, h), host in hosts_of_spares(taken, per_node):
        guid[v * per_node + h] = host.guid
        if host.rack in index:
            rack[v, h], unit[v, h] = index[host.rack], host.unit or 1
    broken = _hosts(hardware.host_broken, added, False)
    broken[len(broken) - added :] = host_port == 0
    return replace(
        hardware, host_rack=rack, host_unit=unit, host_broken=broken, host_guid=tuple(guid)
    )


def _free(
    parts: Sequence[tuple[Wiring, Hardware]], hardware: Hardware, height: int
) -> list[list[int]]:
    """For each rack the units at which nodes of a height fit, one above the other.

    Args:
        parts: the wiring and hardware of all planes, which share racks.
        hardware: its racks are looked at.
        height: the height of a node in units.
    """
    taken: dict[str, set[int]] = defaultdict(set)
    for wiring, part in parts:
        _take(taken, wiring, part)
    free = []
    for name, units in zip(hardware.rack_names, hardware.rack_units.tolist(), strict=True):
        full = taken[name]
        starts, unit = [], 1
        while unit + height - 1 <= units:
            if full.isdisjoint(range(unit, unit + height)):
                starts.append(unit)
                unit += height
            else:
                unit += 1
        free.append(starts)
    return free


def _take(taken: dict[str, set[int]], wiring: Wiring, hardware: Hardware) -> None:
    """Add the units that nodes, hosts and spares of a plane fill, by the names of racks."""
    kinds = wiring.node_type[: len(hardware.rack)].tolist()
    nodes = zip(hardware.rack.tolist(), hardware.unit.tolist(), kinds, strict=True)
    for rack, unit, kind in nodes:
        taken[hardware.rack_names[rack]].update(range(unit, unit + hardware.types[kind].units))
    for v, number in np.argwhere(hardware.host_rack >= 0).tolist():
        taken[hardware.rack_names[hardware.host_rack[v, number]]].add(
            int(hardware.host_unit[v, number])
        )
    heights = {facts.name: facts.units for facts in hardware.types}
    for spare in hardware.spares:
        if spare.unit:
            taken[spare.rack].update(range(spare.unit, spare.unit + heights.get(spare.type, 1)))
        for host in spare.hosts:
            taken[host.rack].add(host.unit or 1)


@dataclass(slots=True)
class _Seats:
    """The places for nodes of one height: in old racks with room, and in new racks."""

    free: list[list[int]]
    """For each old rack the units that are free."""
    height: int
    """The height of a node in units."""
    rack_units: int
    """The height of a new rack in units."""
    old_racks: int
    """How many old racks there are; new racks are numbered from here on."""
    new_racks: list[str] = field(default_factory=list)
    """The names of the new racks so far."""

    def take(self, count: int, name: str) -> list[tuple[int, int]]:
        """Take the rack and unit for each of `count` nodes; new racks are called `name`."""
        return self._in_old_racks(count) or self._in_new_racks(count, name)

    def _in_old_racks(self, count: int) -> list[tuple[int, int]]:
        """Places in the first old rack with room for all, else in several; [] if there is no
        room.
        """
        free = self.free
        racks = next(([r] for r, units in enumerate(free) if len(units) >= count), range(len(free)))
        places = [(r, unit) for r in racks for unit in free[r]][:count]
        if len(places) < count:
            return []
        for r, unit in places:
            free[r].remove(unit)
        return places

    def _in_new_racks(self, count: int, name: str) -> list[tuple[int, int]]:
        """Places in as many new racks as are needed."""
        seats = self.rack_units // self.height
        racks = -(-count // seats)
        first = self.old_racks + len(self.new_racks)
        self.new_racks += [f"{name}-part{r + 1}" if r else name for r in range(racks)]
        places = [(first + r, 1 + n * self.height) for r in range(racks) for n in range(seats)]
        return places[:count]


def _hosts(old: NDArray[Values], added: int, unknown: int) -> NDArray[Values]:
    """A value for each host, [S, H], with `unknown` for the hosts of `added` new nodes."""
    return np.pad(old, ((0, added), (0, 0)), constant_values=unknown)


def _joined(one: NDArray[np.int32], other: NDArray[np.integer]) -> NDArray[np.int32]:
    """The values of old nodes or racks, and then those of new ones."""
    return np.concatenate((one, other)).astype(np.int32)
