"""Write a fabric's hardware as files that NetBox imports: device types in YAML, the rest in CSV.

`files` yields them in the order of the import: device types, module types of cassettes, racks,
devices, interfaces, management addresses, cables. NetBox's import of devices has no column for an
address. Its import of addresses has: `is_primary`, together with the device and the interface
(`IPAddressImportForm` in netbox/ipam/forms/bulk_import.py, 4.6.8). Facts that NetBox has no column
for are in the comments, so that an import into polarfab reads them back
(`inventory.netbox.extras`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from compilers.cabling.cable_plan import cables_of, labelled
from compilers.cabling.netbox_cables import as_netbox
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.cabling.schedule_columns import Rows
from compilers.spec.allocations import Allocations
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
ADDRESS = ("address", "status", "device", "interface", "is_primary")
MANAGEMENT_PORT = "mgmt0"
"""The interface of management where neither the spec nor a system names one."""
STATUS = {"installed": "active", "planned": "planned"}
"""NetBox's word for each state of a node."""


def files(
    loaded: LoadedFabric,
    site: str,
    role: str = "switch",
    system: str = "",
    management: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file, in the order in which NetBox can import them.

    Args:
        loaded: the fabric, with a generated inventory if it names none.
        site: the site of all devices; it must exist in NetBox.
        role: the role of all devices; it must exist in NetBox.
        system: a target by whose names ports are named; "" for the names of the inventory. An
            import into polarfab knows both.
        management: the interface of management; "" for that of the spec or of the system.

    Raises:
        InputError: the inventory cannot hold the fabric, or there is no such target.
    """
    parts = list(each_plane(loaded))
    links = list(_cables(parts))
    plans = [plan for _, plan in links if plan]
    if system:
        renamed = files(loaded, site, role, management=_management_port(loaded, system))
        yield from _with_port_names(renamed, _names(parts, system), parts)
        return
    management = management or _management_port(loaded)
    yield from _types(parts, management)
    yield from _cassettes(parts[0].inventory, plans)
    if any(part.inventory.racks for part in parts):
        yield "racks.csv", _csv(RACK, _racks(parts, site))
    devices = chain.from_iterable(_devices(part, site, role) for part in parts)
    panels = chain.from_iterable(_panels(plan, site) for plan in plans)
    yield "devices.csv", _csv(DEVICE, chain(devices, panels))
    yield "interfaces.csv", _csv(INTERFACE, chain.from_iterable(map(_interfaces, parts)))
    if addresses := [*chain.from_iterable(_addresses(part, management) for part in parts)]:
        yield "ip-addresses.csv", _csv(ADDRESS, addresses)
    dead = frozenset(
        frozenset((link.a, link.b)) for part in parts for link in part.inventory.dead_links
    )
    yield "cables.csv", "".join(as_netbox(links, dead))


def _names(parts: Sequence[Placed], system: str) -> dict[str, dict[str, str]]:
    """By node type and port, the name of the port in a system; {} if it has no names of its own."""
    naming = target(system).interfaces
    if naming is None:
        return {}
    names = dict[str, dict[str, str]]()
    for part in parts:
        wiring, listed = part.wiring, part.loaded.inventory is not None
        types, usual = (part.hardware().types, "") if listed else (None, naming.usual)
        ports = naming.of_types(wiring.port_names, types, usual, system)
        for node_type, inventory_names, system_ports in zip(
            wiring.type_names, wiring.port_names, ports, strict=True
        ):
            system_names = (port.name for port in system_ports)
            names[node_type] = dict(zip(inventory_names, system_names, strict=True))
    return names


def _management_port(loaded: LoadedFabric, system: str = "") -> str:
    """The interface of management: that of the spec, else the usual one of a system."""
    stated = loaded.spec.base.management
    if stated and stated.interface:
        return stated.interface
    naming = target(system).interfaces if system else None
    return naming.management if naming else MANAGEMENT_PORT


def _addresses(part: Placed, interface: str) -> Iterator[Sequence[object]]:
    """Yield the rows of the management addresses of a plane, which become primary ones."""
    stated = part.loaded.spec.base.management
    for node in part.inventory.nodes:
        if node.management:
            length = stated.length if stated else node.management.max_prefixlen
            yield f"{node.management}/{length}", "active", node.name, interface, "true"


def _with_port_names(
    all_files: Iterable[tuple[str, str]],
    names: Mapping[str, dict[str, str]],
    parts: Sequence[Placed],
) -> Iterator[tuple[str, str]]:
    """Yield the files with ports named by a system; labels and comments keep the inventory's names.

    Args:
        all_files: the name and text of each file, with the names of the inventory.
        names: of `_names`.
        parts: the planes of the fabric.
    """
    of_device = {
        node.name: names.get(node.type, {}) for part in parts for node in part.inventory.nodes
    }
    of_file = {f"device-types/{slug(name)}.yaml": ports for name, ports in names.items()}
    for file, text in all_files:
        if ports := of_file.get(file):
            yield file, _renamed_type(file, text, ports)
        elif file in ("interfaces.csv", "cables.csv"):
            yield file, _renamed_rows(text, of_device)
        else:
            yield file, text


def _renamed_type(file: str, text: str, ports: Mapping[str, str]) -> str:
    """A device type with the interfaces named as in `ports`, by the names of the inventory."""
    import yaml

    data = yaml.safe_load(text)
    for interface in data["interfaces"]:
        if interface.get("mgmt_only"):
            continue
        interface.setdefault("label", interface["name"])
        interface["name"] = ports.get(interface["name"], interface["name"])
    extras = from_comment(data["comments"], file, 0)
    data["comments"] = to_comment(extras | {"ports": {v: k for k, v in ports.items()}})
    return yaml.safe_dump(data, sort_keys=False, width=100_000)


def _renamed_rows(text: str, of_device: Mapping[str, Mapping[str, str]]) -> str:
    """A CSV of interfaces or cables with the names of ports in `of_device`, by device."""
    # The columns of a device and of its port, and the one that keeps the name of the inventory.
    columns = (
        ("device", "name", "label"),
        ("side_a_device", "side_a_name", ""),
        ("side_b_device", "side_b_name", ""),
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        for device, name, label in columns:
            if row.get(device) in of_device:
                if label:
                    row[label] = row[label] or row[name]
                row[name] = of_device[row[device]].get(row[name], row[name])
    return _csv(list(rows[0]), (list(row.values()) for row in rows)) if rows else text


def _cables(parts: Sequence[Placed]) -> Iterator[tuple[Rows, PanelPlan | None]]:
    """Yield the links of each plane, and how they run through cassettes, if they do."""
    for part in parts:
        with part.loaded.stage():
            before = part.installed.allocations if part.installed else Allocations()
            hardware, _ = labelled(part.hardware(), part.wiring, before)
            cables = cables_of(part.wiring, hardware)
            plan = panel_plan(part.topology, part.wiring, hardware)
        yield Rows.of(part.wiring, cables), plan


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file with a heading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _types(parts: Sequence[Placed], management: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the device types of nodes.

    Args:
        parts: the planes of the fabric.
        management: the interface of nodes that have a management address.
    """
    import yaml

    inventory = parts[0].inventory
    used = {node.type for part in parts for node in part.inventory.nodes}
    managed = {n.type for part in parts for n in part.inventory.nodes if n.management}
    for name, model in _models(inventory).items():
        if name in used:
            node_type = inventory.node_types[name].model_copy(update={"model": model})
            data = export_type(name, node_type, management if name in managed else "")
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
            yield f"device-types/{slug(name)}.yaml", text


def _cassettes(inventory: Inventory, plans: Sequence[PanelPlan]) -> Iterator[tuple[str, str]]:
    """Yield the files of the types of cassettes.

    The parts of the inventory about panels and cabling, which NetBox has no place for, are in their
    comments.
    """
    import yaml

    kept = inventory.model_dump(mode="json", exclude_defaults=True, include={*SECTIONS})
    for plan in plans:
        single = bool(plan.shuffle.turned.any())
        for name, front in plan.shuffle.types:
            data = export_panel(name, front, plan.room, single, kept)
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
            yield f"device-types/{slug(data['model'])}.yaml", text


def _panels(plan: PanelPlan, site: str) -> Iterator[Sequence[object]]:
    """Yield the cassettes of a plane as devices at the top of their racks."""
    types, racks = plan.shuffle.types, plan.cables.hardware.rack_names
    kinds = plan.shuffle.kind.tolist()
    for name, kind, rack in zip(plan.names, kinds, plan.rack.tolist(), strict=True):
        where = (site, racks[rack], "", "")
        yield (name, "cassette", "Generic", f"cassette {types[kind][0]}", "", "active", *where, "")


def _models(inventory: Inventory) -> dict[str, str]:
    """A unique model for each node type: its name if two types have the same model."""
    models = {name: kind.model or name for name, kind in inventory.node_types.items()}
    shared = {model for model in models.values() if list(models.values()).count(model) > 1}
    return {name: name if model in shared else model for name, model in models.items()}


def _racks(parts: Sequence[Placed], site: str) -> Iterator[Sequence[object]]:
    """Yield the rows of all racks."""
    racks = {rack.name: rack for part in parts for rack in part.inventory.racks}
    for rack in racks.values():
        floor = {"row": rack.row, "column": rack.column} if rack.column is not None else {}
        yield site, rack.name, "active", rack.units, to_comment(floor)


def _devices(part: Placed, site: str, role: str) -> Iterator[Sequence[object]]:
    """Yield the rows of all nodes of a plane."""
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
            to_comment(_extras(part, node, vertex.get(i))),
        )


def _extras(part: Placed, node: Node, vertex: int | None) -> dict[str, Any]:
    """The facts that NetBox's device import has no column for."""
    facts: dict[str, Any] = {
        "plane": part.loaded.plane or None,
        "vertex": vertex,
        "datapath_id": f"{node.datapath_id:#x}" if node.datapath_id else None,
        "management": str(node.management) if node.management else None,
        "guid": node.guid,
        "system": node.system,
        "asn": node.asn,
        "hosts": _hosts(part, node, vertex) or None,
        "host_count": _host_count(part.inventory, node),
    }
    return {word: value for word, value in facts.items() if value is not None}


def _hosts(part: Placed, node: Node, vertex: int | None) -> list[dict[str, Any]]:
    """The hosts that the inventory lists at a node.

    Where an earlier build has ports, every host of the node, with its name and its port there.
    """
    listed = [host.model_dump(mode="json", exclude_none=True) for host in node.hosts]
    if vertex is None or part.installed is None or not part.installed.host:
        return [facts for facts, host in zip(listed, node.hosts, strict=True) if not host.absent]
    wiring, hosts = part.wiring, list[dict[str, Any]]()
    width = wiring.host_port.shape[1]
    for number, port in enumerate(wiring.host_port[vertex].tolist()):
        if port:
            facts = listed[number] if number < len(listed) else {}
            name = wiring.host_names[vertex * width + number]
            hosts.append(facts | {"name": name, "port": wiring.port_name(vertex, port)})
    return hosts


def _host_count(inventory: Inventory, node: Node) -> int | None:
    """The number of hosts that the node or its group states; None for that of its type."""
    of_type = inventory.node_types[node.type].host_count
    usual = -1 if of_type is None else of_type
    count = inventory.host_count(node, usual)
    return None if count == usual else count


def _interfaces(part: Placed) -> Iterator[Sequence[object]]:
    """Yield the rows of all interfaces of a plane."""
    types = part.inventory.node_types
    of_type = {name: interfaces(types[name]) for name in part.wiring.type_names}
    for node in part.inventory.nodes:
        for interface in of_type[node.type]:
            enabled = "false" if interface.name in node.disabled_ports else "true"
            yield node.name, interface.name, interface.label, interface.type, enabled
