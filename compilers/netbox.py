"""A fabric's hardware as NetBox takes it: device types in YAML, the rest as bulk imports in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from compilers.cable_formats import as_netbox
from compilers.cable_rows import Rows
from compilers.cables import cables_of
from compilers.hardware import hardware
from compilers.load import LoadedFabric
from compilers.phases import phases_of
from compilers.placement import clusters, settle
from compilers.topologies import FAMILIES
from compilers.wiring import Wiring, generated_inventory, place, wire
from inventory.model import Inventory, Node
from inventory.netbox.device_types import export_type, manufacturer, slug
from inventory.netbox.extras import to_comment
from inventory.netbox.interfaces import interfaces

DEVICE = (
    *("name", "role", "manufacturer", "device_type", "serial", "status", "site", "rack"),
    *("position", "face", "comments"),
)
RACK = ("site", "name", "status", "u_height", "comments")
INTERFACE = ("device", "name", "label", "type", "enabled")


def files(loaded: LoadedFabric, site: str, role: str = "switch") -> Iterator[tuple[str, str]]:
    """The name and text of each file, in the order in which NetBox can import them.

    Args:
        loaded: the fabric; where it names no inventory, the generated one.
        site: the site that everything stands in, which NetBox must know, as it must `role`.
        role: of every device.

    Raises:
        InputError: the inventory cannot hold the fabric.
    """
    topology = FAMILIES[loaded.spec.topology.family].build(loaded.spec.topology.parameters())
    hosts = loaded.spec.hosts_per_node
    inventory = loaded.inventory or generated_inventory(topology, hosts)
    inventory = settle(topology, inventory, loaded.locate)
    found = clusters(topology, inventory.placement.layout or "")
    wiring = wire(topology, inventory, hosts, loaded.locate, found.position)
    order = place(topology.graph.order, inventory)

    yield from _types(inventory)
    if inventory.racks:
        yield "racks.csv", _csv(RACK, _racks(inventory, site))
    yield "devices.csv", _csv(DEVICE, _devices(inventory, order, site, role))
    yield "interfaces.csv", _csv(INTERFACE, _interfaces(inventory, wiring))
    cables = cables_of(wiring, hardware(inventory, wiring, found), loaded.locate)
    rows = Rows.of(wiring, cables, phases_of(topology.graph, cables, 1))
    yield "cables.csv", "".join(as_netbox(rows))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _types(inventory: Inventory) -> Iterator[tuple[str, str]]:
    import yaml

    used = {node.type for node in inventory.nodes}
    for name, model in _models(inventory).items():
        if name in used:
            node_type = inventory.node_types[name].model_copy(update={"model": model})
            text = yaml.safe_dump(export_type(name, node_type), sort_keys=False, width=100_000)
            yield f"device-types/{slug(name)}.yaml", text


def _models(inventory: Inventory) -> dict[str, str]:
    """The model of each type, which is its own: the type's name where two share a model."""
    models = {name: t.model or name for name, t in inventory.node_types.items()}
    shared = {model for model in models.values() if list(models.values()).count(model) > 1}
    return {name: name if model in shared else model for name, model in models.items()}


def _racks(inventory: Inventory, site: str) -> Iterator[Sequence[object]]:
    for rack in inventory.racks:
        place_there = {"row": rack.row, "column": rack.column} if rack.column is not None else {}
        yield site, rack.name, "active", rack.units, to_comment(place_there)


def _devices(
    inventory: Inventory, order: Sequence[int], site: str, role: str
) -> Iterator[Sequence[object]]:
    vertex = {i: v for v, i in enumerate(order)}
    models = _models(inventory)
    for i, node in enumerate(inventory.nodes):
        node_type = inventory.node_types[node.type]
        yield (
            *(node.name, role, manufacturer(node_type), models[node.type], node.serial or ""),
            *("planned", site, node.rack or "", node.unit or "", "front" if node.unit else ""),
            to_comment(_extras(node, vertex.get(i))),
        )


def _extras(node: Node, vertex: int | None) -> dict[str, Any]:
    """What NetBox has no column for when it imports devices."""
    known: dict[str, Any] = {
        "vertex": vertex,
        "datapath_id": f"{node.datapath_id:#x}" if node.datapath_id else None,
        "management": str(node.management) if node.management else None,
        "guid": node.guid,
        "hosts": [host.model_dump(mode="json", exclude_none=True) for host in node.hosts] or None,
    }
    return {word: value for word, value in known.items() if value is not None}


def _interfaces(inventory: Inventory, wiring: Wiring) -> Iterator[Sequence[object]]:
    listed = {name: interfaces(inventory.node_types[name]) for name in wiring.type_names}
    for node in inventory.nodes:
        for interface in listed[node.type]:
            yield node.name, interface.name, interface.label, interface.type, "true"
