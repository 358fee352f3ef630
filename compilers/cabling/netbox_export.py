"""NetBox import files of a fabric's hardware: device types in YAML, bulk imports in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from compilers.cabling.cable_plan import cables_of
from compilers.cabling.netbox_cables import as_netbox
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.cabling.schedule_columns import Rows
from compilers.spec.fabric_file import LoadedFabric
from compilers.targets.target_lookup import target
from compilers.wiring.placed_fabric import Placed, each_plane
from compilers.wiring.wiring import place
from inventory.model import Inventory, Node
from inventory.netbox.device_types import export_type, manufacturer, slug
from inventory.netbox.extras import from_comment, to_comment
from inventory.netbox.interface_types import interfaces
from inventory.netbox.panel_ports import SECTIONS, export_panel

DEVICE = (
    *("name", "role", "manufacturer", "device_type", "serial", "status", "site", "rack"),
    *("position", "face", "comments"),
)
RACK = ("site", "name", "status", "u_height", "comments")
INTERFACE = ("device", "name", "label", "type", "enabled")
STATUS = {"installed": "active", "planned": "planned"}


def files(
    loaded: LoadedFabric,
    site: str,
    role: str = "switch",
    system: str = "",
) -> Iterator[tuple[str, str]]:
    """The name and text of each file, in the order in which NetBox can import them.

    Args:
        loaded: the fabric, with a generated inventory if it names none.
        site: the site of all devices; it and `role` must exist in NetBox.
        role: the role of every device.
        system: a target, whose names ports have; "" for the inventory's. An import knows both.

    Raises:
        InputError: the inventory cannot hold the fabric, or there is no such target.
    """
    parts = list(each_plane(loaded))
    links = list(_cables(parts))
    plans = [plan for _, plan in links if plan]
    if system:
        yield from _in_words_of(files(loaded, site, role), _names(parts, system), parts)
        return
    yield from _types(parts)
    yield from _cassettes(parts[0].inventory, plans)
    if any(part.inventory.racks for part in parts):
        yield "racks.csv", _csv(RACK, _racks(parts, site))
    devices = chain.from_iterable(_devices(part, site, role) for part in parts)
    panels = chain.from_iterable(_panels(plan, site) for plan in plans)
    yield "devices.csv", _csv(DEVICE, chain(devices, panels))
    yield "interfaces.csv", _csv(INTERFACE, chain.from_iterable(map(_interfaces, parts)))
    dead = frozenset(
        frozenset((link.a, link.b)) for part in parts for link in part.inventory.dead_links
    )
    yield "cables.csv", "".join(as_netbox(links, dead))


def _names(parts: Sequence[Placed], system: str) -> dict[str, dict[str, str]]:
    """{node type: {port: its name in a system}}."""
    naming = target(system).interfaces
    if naming is None:
        return {}
    names = dict[str, dict[str, str]]()
    for part in parts:
        wiring, listed = part.wiring, part.loaded.inventory is not None
        types, usual = (part.hardware().types, "") if listed else (None, naming.usual)
        ports = naming.of_types(wiring.port_names, types, usual, system)
        for kind, ours, theirs in zip(wiring.type_names, wiring.port_names, ports, strict=True):
            names[kind] = dict(zip(ours, (port.name for port in theirs), strict=True))
    return names


def _in_words_of(
    given: Iterable[tuple[str, str]], names: Mapping[str, dict[str, str]], parts: Sequence[Placed]
) -> Iterator[tuple[str, str]]:
    """The files with ports named by a system; labels and comments keep the inventory's names."""
    import yaml

    kind = {node.name: names.get(node.type, {}) for part in parts for node in part.inventory.nodes}
    file_of = {f"device-types/{slug(name)}.yaml": ports for name, ports in names.items()}
    columns = (
        ("device", "name", "label"),
        *((f"side_{e}_device", f"side_{e}_name", "") for e in "ab"),
    )
    for file, text in given:
        if ports := file_of.get(file):
            data = yaml.safe_load(text)
            for interface in data["interfaces"]:
                interface.setdefault("label", interface["name"])
                interface["name"] = ports.get(interface["name"], interface["name"])
            extras = from_comment(data["comments"], file, 0)
            data["comments"] = to_comment(extras | {"ports": {v: k for k, v in ports.items()}})
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
        elif file in ("interfaces.csv", "cables.csv"):
            rows = list(csv.DictReader(io.StringIO(text)))
            for row in rows:
                for device, name, label in columns:
                    if row.get(device) in kind:
                        if label:
                            row[label] = row[label] or row[name]
                        row[name] = kind[row[device]].get(row[name], row[name])
            text = _csv(list(rows[0]), (list(row.values()) for row in rows)) if rows else text
        yield file, text


def _cables(parts: Sequence[Placed]) -> Iterator[tuple[Rows, PanelPlan | None]]:
    """The links of each plane, and how they run through cassettes."""
    for part in parts:
        with part.loaded.stage():
            hardware = part.hardware()
            cables = cables_of(part.wiring, hardware)
            plan = panel_plan(part.topology, part.wiring, hardware)
        yield Rows.of(part.wiring, cables), plan


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _types(parts: Sequence[Placed]) -> Iterator[tuple[str, str]]:
    import yaml

    inventory = parts[0].inventory
    used = {node.type for part in parts for node in part.inventory.nodes}
    for name, model in _models(inventory).items():
        if name in used:
            node_type = inventory.node_types[name].model_copy(update={"model": model})
            text = yaml.safe_dump(export_type(name, node_type), sort_keys=False, width=100_000)
            yield f"device-types/{slug(name)}.yaml", text


def _cassettes(inventory: Inventory, plans: Sequence[PanelPlan]) -> Iterator[tuple[str, str]]:
    """The types of cassettes; what an import cannot see of panels and cabling is in comments."""
    import yaml

    kept = inventory.model_dump(mode="json", exclude_defaults=True, include={*SECTIONS})
    for plan in plans:
        single = bool(plan.shuffle.turned.any())
        for name, front in plan.shuffle.types:
            data = export_panel(name, front, plan.room, single, kept)
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
            yield f"device-types/{slug(data['model'])}.yaml", text


def _panels(plan: PanelPlan, site: str) -> Iterator[Sequence[object]]:
    """The cassettes as devices at the top of their racks."""
    types, racks = plan.shuffle.types, plan.cables.hardware.rack_names
    kinds = plan.shuffle.kind.tolist()
    for name, kind, rack in zip(plan.names, kinds, plan.rack.tolist(), strict=True):
        where = (site, racks[rack], "", "")
        yield (name, "cassette", "Generic", f"cassette {types[kind][0]}", "", "active", *where, "")


def _models(inventory: Inventory) -> dict[str, str]:
    """A unique model for each type: the type's name where two types share a model."""
    models = {name: t.model or name for name, t in inventory.node_types.items()}
    shared = {model for model in models.values() if list(models.values()).count(model) > 1}
    return {name: name if model in shared else model for name, model in models.items()}


def _racks(parts: Sequence[Placed], site: str) -> Iterator[Sequence[object]]:
    racks = {rack.name: rack for part in parts for rack in part.inventory.racks}
    for rack in racks.values():
        floor = {"row": rack.row, "column": rack.column} if rack.column is not None else {}
        yield site, rack.name, "active", rack.units, to_comment(floor)


def _devices(part: Placed, site: str, role: str) -> Iterator[Sequence[object]]:
    inventory = part.inventory
    vertex = {i: v for v, i in enumerate(place(part.topology.graph.order, inventory))}
    models = _models(inventory)
    for i, node in enumerate(inventory.nodes):
        node_type = inventory.node_types[node.type]
        yield (
            *(node.name, role, manufacturer(node_type), models[node.type], node.serial or ""),
            *(
                STATUS[node.state],
                site,
                node.rack or "",
                node.unit or "",
                "front" if node.unit else "",
            ),
            to_comment(_extras(node, vertex.get(i), part.loaded.plane)),
        )


def _extras(node: Node, vertex: int | None, plane: int) -> dict[str, Any]:
    """The facts that NetBox's device import has no column for."""
    known: dict[str, Any] = {
        "plane": plane or None,
        "vertex": vertex,
        "datapath_id": f"{node.datapath_id:#x}" if node.datapath_id else None,
        "management": str(node.management) if node.management else None,
        "guid": node.guid,
        "hosts": [host.model_dump(mode="json", exclude_none=True) for host in node.hosts] or None,
    }
    return {word: value for word, value in known.items() if value is not None}


def _interfaces(part: Placed) -> Iterator[Sequence[object]]:
    types = part.inventory.node_types
    listed = {name: interfaces(types[name]) for name in part.wiring.type_names}
    for node in part.inventory.nodes:
        for interface in listed[node.type]:
            enabled = "false" if interface.name in node.disabled_ports else "true"
            yield node.name, interface.name, interface.label, interface.type, enabled
