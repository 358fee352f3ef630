"""Hardware of an expansion: racks of new nodes, and cables that keep their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of
from compilers.cabling.schedule_columns import cable_name, labels_of
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring

Values = TypeVar("Values", np.int32, np.bool_)


def grown_hardware(
    expansion: Expansion, wiring: Wiring, known: Hardware, before: Cables
) -> Hardware:
    """The hardware of the larger fabric, its new racks in a row behind the last.

    Every cable gets an inventory entry, so that it keeps its label when cables are renumbered.
    """
    old, layout = len(known.rack), expansion.layout
    first = int(layout.rack[old:].min())
    fresh, names = layout.rack[old:] - first, layout.names[first:]
    height = max(known.types[t].units for t in wiring.node_type[old:].tolist())
    units = max(int(known.rack_units.max()), height)
    part, place = np.divmod(layout.position[old:], units // height)
    home, rack = np.unique(np.stack((fresh, part), axis=1), axis=0, return_inverse=True)
    labels = [names[c] if p == 0 else f"{names[c]}-part{p + 1}" for c, p in home.tolist()]
    row = int(known.rack_place[:, 0].max()) + 1
    larger = replace(
        known,
        cluster=_joined(known.cluster, len(known.cluster_names) + fresh),
        cluster_names=(*known.cluster_names, *names),
        rack=_joined(known.rack, len(known.rack_names) + rack.ravel()),
        rack_names=(*known.rack_names, *labels),
        unit=_joined(known.unit, place * height + 1),
        rack_place=_joined(known.rack_place, np.array([(row, c) for c in range(len(home))])),
        rack_units=_joined(known.rack_units, np.full(len(home), units)),
        host_rack=_hosts(known.host_rack, len(fresh), -1),
        host_unit=_hosts(known.host_unit, len(fresh), 0),
        host_broken=_hosts(known.host_broken, len(fresh), False),
        serial=(*known.serial, *("" for _ in fresh)),
        guid=(*known.guid, *("" for _ in fresh)),
        host_guid=(*known.host_guid, *("" for _ in wiring.host_names[len(known.host_guid) :])),
    )
    return replace(larger, hand=_labelled(wiring, known, before, cables_of(wiring, larger)))


def _hosts(known: NDArray[Values], added: int, unknown: int) -> NDArray[Values]:
    return np.pad(known, ((0, added), (0, 0)), constant_values=unknown)


def _joined(one: NDArray[np.int32], other: NDArray[np.integer]) -> NDArray[np.int32]:
    return np.concatenate((one, other)).astype(np.int32)


def _labelled(
    wiring: Wiring, known: Hardware, before: Cables, after: Cables
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
        entry = known.hand[hand] if hand >= 0 else {"type": None, "length": None}
        old[min(u, v), max(u, v), k] = {**entry, "label": label}
    # By rack of the newer node, so that a smaller expansion gives the same numbers.
    newer = np.maximum(after.ends[:, 0], after.ends[:, 1])
    added = np.flatnonzero(newer >= len(known.rack))
    added = added[np.argsort(after.hardware.rack[newer[added]], kind="stable")]
    first = len(old) + 1
    labels = {e: cable_name(n, known.plane) for n, e in enumerate(added.tolist(), first)}
    entries = []
    ports = [[facts.sockets for facts in known.types][t] for t in wiring.node_type.tolist()]
    for e, ((u, v), (p, r), k) in enumerate(
        zip(after.ends.tolist(), after.ports.tolist(), after.socket.tolist(), strict=True)
    ):
        known_entry = old.get((min(u, v), max(u, v), k))
        entry = known_entry or {"type": None, "length": None, "label": labels[e]}
        ends = {"a": wiring.names[u], "a_port": ports[u][p - 1][k]}
        ends |= {"b": wiring.names[v], "b_port": ports[v][r - 1][k]}
        entries.append({**entry, **ends})
    return tuple(entries)
