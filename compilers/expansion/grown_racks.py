"""Hardware of an expansion: racks of new nodes, and cables that keep their labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of
from compilers.cabling.schedule_columns import cable_name, labels_of
from compilers.expansion.spare_ports import SpareNodes, hosts_of_spares
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, of_plane

Values = TypeVar("Values", np.int32, np.bool_)


def grown_hardware(
    expansion: Expansion,
    wiring: Wiring,
    hardware: Hardware,
    before: Cables,
    taken: SpareNodes,
    planes: Sequence[tuple[Wiring, Hardware]] = (),
) -> Hardware:
    """The hardware of the larger fabric: new nodes in racks with room, then in racks of their own.

    Spares in a rack stay there. The rest of a cluster goes whole into the first rack
    with room, else over those with room in their order, else into new racks, in a row behind the
    last. Every cable gets an inventory entry, so that it keeps its label when cables are
    renumbered. `planes` are other planes, whose places are taken.
    """
    old, layout = len(hardware.rack), expansion.layout
    first = int(layout.rack[old:].min())
    fresh, names = layout.rack[old:] - first, layout.names[first:]
    height = max(hardware.types[t].units for t in wiring.node_type[old:].tolist())
    units = max(int(hardware.rack_units.max()), height)
    seats = units // height
    free = _free([(wiring, hardware), *planes], hardware, height)
    rack, unit = np.full(len(fresh), -1, np.int64), np.zeros(len(fresh), np.int64)
    index = {name: r for r, name in enumerate(hardware.rack_names)}
    for v, node in taken.items():
        rack[v - old], unit[v - old] = index.get(node.rack, -1), node.unit
    labels: list[str] = []
    for cluster, name in enumerate(names):
        members = np.flatnonzero((fresh == cluster) & (rack < 0))
        members = members[np.argsort(layout.position[old:][members])]
        if not len(members):
            continue
        if not (places := _places(free, len(members))):
            parts = -(-len(members) // seats)
            behind = len(hardware.rack_names) + len(labels)
            places = [(behind + p, 1 + n * height) for p in range(parts) for n in range(seats)]
            own = of_plane(hardware.plane) + name
            labels += [f"{own}-part{p + 1}" if p else own for p in range(parts)]
        rack[members], unit[members] = np.array(places[: len(members)]).T
    rows = [int(part.rack_place[:, 0].max()) for part in (hardware, *(k for _, k in planes))]
    row = max(rows) + 1
    spots = np.stack((np.full(len(labels), row), np.arange(len(labels))), axis=1)
    nodes = [taken.get(v) for v in range(old, old + len(fresh))]
    larger = replace(
        _with_hosts(hardware, len(fresh), taken),
        cluster=_joined(hardware.cluster, len(hardware.cluster_names) + fresh),
        cluster_names=(*hardware.cluster_names, *names),
        rack=_joined(hardware.rack, rack),
        rack_names=(*hardware.rack_names, *labels),
        unit=_joined(hardware.unit, unit),
        rack_place=_joined(hardware.rack_place, spots),
        rack_units=_joined(hardware.rack_units, np.full(len(labels), units)),
        serial=(*hardware.serial, *(node.serial if node else "" for node in nodes)),
        guid=(*hardware.guid, *(node.guid if node else "" for node in nodes)),
        spares=tuple(spare for spare in hardware.spares if spare not in taken.values()),
    )
    return replace(larger, hand=_labelled(wiring, hardware, before, cables_of(wiring, larger)))


def _with_hosts(hardware: Hardware, added: int, taken: SpareNodes) -> Hardware:
    """The hardware with the hosts of new nodes, whose places are known at spares only."""
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
    return replace(
        hardware, host_rack=rack, host_unit=unit, host_broken=broken, host_guid=tuple(guid)
    )


def _free(
    parts: Sequence[tuple[Wiring, Hardware]], hardware: Hardware, height: int
) -> list[list[int]]:
    """For each rack, the units at which nodes of this height fit, one above the other."""
    taken: dict[str, set[int]] = defaultdict(set)
    for wiring, part in parts:
        _take(taken, wiring, part)
    free = []
    for name, units in zip(hardware.rack_names, hardware.rack_units.tolist(), strict=True):
        full = taken[name]
        starts, unit = [], 1
        while unit + height - 1 <= units:
            clear = full.isdisjoint(range(unit, unit + height))
            starts += [unit] * clear
            unit += height if clear else 1
        free.append(starts)
    return free


def _take(taken: dict[str, set[int]], wiring: Wiring, hardware: Hardware) -> None:
    """Add the units that nodes, hosts and spares have, by the names of racks."""
    kinds = wiring.node_type[: len(hardware.rack)].tolist()
    nodes = zip(hardware.rack.tolist(), hardware.unit.tolist(), kinds, strict=True)
    for rack, unit, kind in nodes:
        taken[hardware.rack_names[rack]].update(range(unit, unit + hardware.types[kind].units))
    for v, host in np.argwhere(hardware.host_rack >= 0).tolist():
        taken[hardware.rack_names[hardware.host_rack[v, host]]].add(
            int(hardware.host_unit[v, host])
        )
    heights = {facts.name: facts.units for facts in hardware.types}
    for spare in hardware.spares:
        if spare.unit:
            taken[spare.rack].update(range(spare.unit, spare.unit + heights.get(spare.type, 1)))
        for there in spare.hosts:
            taken[there.rack].add(there.unit or 1)


def _places(free: list[list[int]], count: int) -> list[tuple[int, int]]:
    """Rack and unit for each of so many nodes, which are free no longer; none if there is no room.

    In the first rack with room for all, else over the racks with room.
    """
    racks = next(([r] for r, units in enumerate(free) if len(units) >= count), range(len(free)))
    places = [(r, unit) for r in racks for unit in free[r]][:count]
    if len(places) < count:
        return []
    for r, unit in places:
        free[r].remove(unit)
    return places


def _hosts(known: NDArray[Values], added: int, unknown: int) -> NDArray[Values]:
    return np.pad(known, ((0, added), (0, 0)), constant_values=unknown)


def _joined(one: NDArray[np.int32], other: NDArray[np.integer]) -> NDArray[np.int32]:
    return np.concatenate((one, other)).astype(np.int32)


def _labelled(
    wiring: Wiring, hardware: Hardware, before: Cables, after: Cables
) -> tuple[Mapping[str, Any], ...]:
    """Inventory entries of all cables: old labels stay, new cables continue the numbers."""
    old: dict[tuple[int, int, int], Mapping[str, Any]] = {}
    for label, (u, v), k, hand in zip(
        labels_of(before, np.arange(len(before))),
        before.ends.tolist(),
        before.socket.tolist(),
        before.hand.tolist(),
        strict=True,
    ):
        entry = hardware.hand[hand] if hand >= 0 else {"type": None, "length": None}
        old[min(u, v), max(u, v), k] = {**entry, "label": label}
    # By cluster and rack of the newer node, so that a smaller expansion gives the same numbers.
    newer = np.maximum(after.ends[:, 0], after.ends[:, 1])
    added = np.flatnonzero(newer >= len(hardware.rack))
    where = after.hardware
    added = added[np.lexsort((where.rack[newer[added]], where.cluster[newer[added]]))]
    first = len(old) + 1
    labels = {e: cable_name(n, hardware.plane) for n, e in enumerate(added.tolist(), first)}
    entries = []
    ports = [[facts.sockets for facts in hardware.types][t] for t in wiring.node_type.tolist()]
    for e, ((u, v), (p, r), k) in enumerate(
        zip(after.ends.tolist(), after.ports.tolist(), after.socket.tolist(), strict=True)
    ):
        known_entry = old.get((min(u, v), max(u, v), k))
        entry = known_entry or {"type": None, "length": None, "label": labels[e]}
        ends = {"a": wiring.names[u], "a_port": ports[u][p - 1][k]}
        ends |= {"b": wiring.names[v], "b_port": ports[v][r - 1][k]}
        entries.append({**entry, **ends})
    return tuple(entries)
