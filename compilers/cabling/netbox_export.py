"""Write a fabric's hardware as files that NetBox imports: device types in YAML, the rest in CSV.

`polarfab export` writes them. `files` yields them in the order of the import: device types, module
types of cassettes, racks, devices, interfaces, management addresses, cables. NetBox's import of
devices has no column for an address. Its import of addresses has: `is_primary`, together with the
device and the interface (`IPAddressImportForm` in netbox/ipam/forms/bulk_import.py, 4.6.8). Facts
that NetBox has no column for are in the comments, so that an import into polarfab reads them back
(`inventory.netbox.extras`).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compilers.cabling.cable_labels import with_labels
from compilers.cabling.cable_plan import cables_of
from compilers.cabling.netbox_cables import as_netbox
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.cabling.schedule_columns import ScheduleRows
from compilers.spec.allocations import Allocations
from compilers.spec.fabric_file import LoadedFabric
from compilers.targets.target_lookup import target
from compilers.wiring.damage import damage_of
from compilers.wiring.fabric_planes import each_plane
from compilers.wiring.placed_fabric import PlacedFabric
from compilers.wiring.vertex_nodes import node_indexes
from inventory.model import Inventory, Node
from inventory.netbox.device_types import export_type, manufacturer, slug
from inventory.netbox.extras import from_comment, to_comment
from inventory.netbox.interface_types import interfaces
from inventory.netbox.panel_ports import SECTIONS, export_panel

RACK_COLUMNS = ("site", "name", "status", "u_height", "comments")
INTERFACE_COLUMNS = ("device", "name", "label", "type", "enabled")
ADDRESS_COLUMNS = ("address", "status", "device", "interface", "is_primary")
MANAGEMENT_PORT = "mgmt0"
"""The interface of management where neither the spec nor a system names one."""
STATUS = {"installed": "active", "planned": "planned"}
"""NetBox's word for each state of a node."""
CsvRow = Sequence[object]
"""The values of a row of CSV, one for each column."""


class NetboxDevice(NamedTuple):
    """A row of devices.csv; the names of the fields are those of its columns."""

    name: str
    role: str
    manufacturer: str
    device_type: str
    """The model."""
    serial: str
    status: str
    site: str
    rack: str
    position: int | str
    """The lowest rack unit; "" where it is unknown."""
    face: str
    """The side of the rack; "" without a position."""
    comments: str


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
        InputError: the inventory cannot hold the fabric, `dead_links` are no links, or there is no
            such target.
    """
    planes = list(each_plane(loaded))
    for plane in planes:
        with plane.loaded.stage():
            damage_of(plane.inventory, plane.wiring)
    cables = list(_cables(planes))
    plans = [plan for _, plan in cables if plan]
    if system:
        # The files with the names of the inventory, in which the ports are renamed afterwards.
        renamed = files(loaded, site, role, management=_management_port(loaded, system))
        yield from _with_port_names(renamed, _port_names(planes, system), planes)
        return
    management = management or _management_port(loaded)
    yield from _types(planes, management)
    yield from _cassettes(planes[0].inventory, plans)
    if any(plane.inventory.racks for plane in planes):
        yield "racks.csv", _csv(RACK_COLUMNS, _racks(planes, site))
    devices = [device for plane in planes for device in _devices(plane, site, role)]
    devices += [panel for plan in plans for panel in _panels(plan, site)]
    yield "devices.csv", _csv(NetboxDevice._fields, devices)
    interface_rows = (row for plane in planes for row in _interfaces(plane))
    yield "interfaces.csv", _csv(INTERFACE_COLUMNS, interface_rows)
    if addresses := [row for plane in planes for row in _addresses(plane, management)]:
        yield "ip-addresses.csv", _csv(ADDRESS_COLUMNS, addresses)
    dead = frozenset(
        frozenset((link.a, link.b)) for plane in planes for link in plane.inventory.dead_links
    )
    yield "cables.csv", "".join(as_netbox(cables, dead))


def _port_names(planes: Sequence[PlacedFabric], system: str) -> dict[str, dict[str, str]]:
    """The name of each port in a system, by node type and by its name in the inventory.

    {} if the system has no names of its own.
    """
    naming = target(system).interfaces
    if naming is None:
        return {}
    names = dict[str, dict[str, str]]()
    for plane in planes:
        wiring, has_inventory = plane.wiring, plane.loaded.inventory is not None
        types = plane.hardware().types if has_inventory else None
        default_pattern = "" if has_inventory else naming.default_pattern
        ports = naming.ports_by_type(wiring.port_names, types, default_pattern, system)
        for node_type, inventory_names, system_ports in zip(
            wiring.type_names, wiring.port_names, ports, strict=True
        ):
            system_names = (port.name for port in system_ports)
            names[node_type] = dict(zip(inventory_names, system_names, strict=True))
    return names


def _management_port(loaded: LoadedFabric, system: str = "") -> str:
    """The interface of management: that of the spec, else the usual one of a system."""
    management = loaded.spec.base.management
    if management and management.interface:
        return management.interface
    naming = target(system).interfaces if system else None
    return naming.management if naming else MANAGEMENT_PORT


def _addresses(plane: PlacedFabric, interface: str) -> Iterator[CsvRow]:
    """Yield the rows of the management addresses of a plane, which become primary addresses."""
    management = plane.loaded.spec.base.management
    for node in plane.inventory.nodes:
        if node.management:
            length = management.length if management else node.management.max_prefixlen
            yield f"{node.management}/{length}", "active", node.name, interface, "true"


def _with_port_names(
    all_files: Iterable[tuple[str, str]],
    names: Mapping[str, dict[str, str]],
    planes: Sequence[PlacedFabric],
) -> Iterator[tuple[str, str]]:
    """Yield the files with ports named by a system; labels and comments keep the inventory's names.

    Args:
        all_files: the name and text of each file, with the names of the inventory.
        names: the result of `_port_names`.
        planes: the planes of the fabric.
    """
    names_of_device = {
        node.name: names.get(node.type, {}) for plane in planes for node in plane.inventory.nodes
    }
    names_of_file = {f"device-types/{slug(name)}.yaml": ports for name, ports in names.items()}
    for file, text in all_files:
        if ports := names_of_file.get(file):
            yield file, _renamed_type(file, text, ports)
        elif file in ("interfaces.csv", "cables.csv"):
            yield file, _renamed_rows(text, names_of_device)
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


def _renamed_rows(text: str, names_of_device: Mapping[str, Mapping[str, str]]) -> str:
    """A CSV of interfaces or cables with other names of ports.

    Args:
        text: the CSV, with the names of the inventory.
        names_of_device: by device and by the name in the inventory, the new name of each port.
    """
    # The columns of a device and of its port, and the one that keeps the name of the inventory.
    columns = (
        ("device", "name", "label"),
        ("side_a_device", "side_a_name", ""),
        ("side_b_device", "side_b_name", ""),
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        for device, name, label in columns:
            if row.get(device) in names_of_device:
                if label:
                    row[label] = row[label] or row[name]
                row[name] = names_of_device[row[device]].get(row[name], row[name])
    return _csv(list(rows[0]), (list(row.values()) for row in rows)) if rows else text


def _cables(planes: Sequence[PlacedFabric]) -> Iterator[tuple[ScheduleRows, PanelPlan | None]]:
    """Yield the links of each plane, and how they run through cassettes, if they do."""
    for plane in planes:
        with plane.loaded.stage():
            before = plane.previous.allocations if plane.previous else Allocations()
            hardware, _ = with_labels(plane.hardware(), plane.wiring, before)
            cables = cables_of(plane.wiring, hardware)
            plan = panel_plan(plane.topology, plane.wiring, hardware)
        yield ScheduleRows.of(plane.wiring, cables), plan


def _csv(columns: Sequence[str], rows: Iterable[CsvRow]) -> str:
    """A CSV file with a heading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _types(planes: Sequence[PlacedFabric], management: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the device types of nodes.

    Args:
        planes: the planes of the fabric.
        management: the interface of nodes that have a management address.
    """
    import yaml

    inventory = planes[0].inventory
    nodes = [node for plane in planes for node in plane.inventory.nodes]
    used = {node.type for node in nodes}
    managed = {node.type for node in nodes if node.management}
    for name, model in _models(inventory).items():
        if name in used:
            node_type = inventory.node_types[name].model_copy(update={"model": model})
            data = export_type(name, node_type, management if name in managed else "")
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
            yield f"device-types/{slug(name)}.yaml", text


def _cassettes(inventory: Inventory, plans: Sequence[PanelPlan]) -> Iterator[tuple[str, str]]:
    """Yield the files of the types of cassettes.

    NetBox has no place for the sections of the inventory about panels and cabling, so they are in
    the comments of these files.
    """
    import yaml

    sections = inventory.model_dump(mode="json", exclude_defaults=True, include={*SECTIONS})
    for plan in plans:
        # NetBox cannot reverse a trunk, so its positions are rear ports (`netbox_cables`).
        is_split = bool(plan.shuffle.is_reversed.any())
        for name, front in plan.shuffle.types:
            data = export_panel(name, front, plan.room, is_split, sections)
            text = yaml.safe_dump(data, sort_keys=False, width=100_000)
            yield f"device-types/{slug(data['model'])}.yaml", text


def _panels(plan: PanelPlan, site: str) -> Iterator[NetboxDevice]:
    """Yield the cassettes of a plane as devices at the top of their racks."""
    types, racks = plan.shuffle.types, plan.cables.hardware.rack_names
    type_numbers = plan.shuffle.cassette_type.tolist()
    for name, number, rack in zip(plan.names, type_numbers, plan.rack.tolist(), strict=True):
        yield NetboxDevice(
            name=name,
            role="cassette",
            manufacturer="Generic",
            device_type=f"cassette {types[number].name}",
            serial="",
            status="active",
            site=site,
            rack=racks[rack],
            position="",
            face="",
            comments="",
        )


def _models(inventory: Inventory) -> dict[str, str]:
    """A unique model for each node type: its name if two types have the same model."""
    models = {name: kind.model or name for name, kind in inventory.node_types.items()}
    count = Counter(models.values())
    return {name: name if count[model] > 1 else model for name, model in models.items()}


def _racks(planes: Sequence[PlacedFabric], site: str) -> Iterator[CsvRow]:
    """Yield the rows of all racks."""
    racks = {rack.name: rack for plane in planes for rack in plane.inventory.racks}
    for rack in racks.values():
        floor = {"row": rack.row, "column": rack.column} if rack.column is not None else {}
        yield site, rack.name, "active", rack.units, to_comment(floor)


def _devices(plane: PlacedFabric, site: str, role: str) -> Iterator[NetboxDevice]:
    """Yield the nodes of a plane."""
    inventory = plane.inventory
    entries = node_indexes(plane.topology.graph.order, inventory)
    vertex_of_entry = {entry: vertex for vertex, entry in enumerate(entries)}
    models = _models(inventory)
    for entry, node in enumerate(inventory.nodes):
        yield NetboxDevice(
            name=node.name,
            role=role,
            manufacturer=manufacturer(inventory.node_types[node.type]),
            device_type=models[node.type],
            serial=node.serial or "",
            status=STATUS[node.state],
            site=site,
            rack=node.rack or "",
            position=node.unit or "",
            face="front" if node.unit else "",
            comments=to_comment(_extras(plane, node, vertex_of_entry.get(entry))),
        )


def _extras(plane: PlacedFabric, node: Node, vertex: int | None) -> dict[str, Any]:
    """The facts that NetBox's device import has no column for."""
    facts: dict[str, Any] = {
        "plane": plane.loaded.plane or None,
        "vertex": vertex,
        "datapath_id": f"{node.datapath_id:#x}" if node.datapath_id else None,
        "management": str(node.management) if node.management else None,
        "guid": node.guid,
        "system": node.system,
        "asn": node.asn,
        "hosts": _hosts(plane, node, vertex) or None,
        "host_count": _host_count(plane.inventory, node),
    }
    return {word: value for word, value in facts.items() if value is not None}


def _hosts(plane: PlacedFabric, node: Node, vertex: int | None) -> list[dict[str, Any]]:
    """The hosts of a node: those that the inventory lists.

    If an earlier build has given hosts their ports, all hosts of the node, with names and ports.
    """
    listed = [host.model_dump(mode="json", exclude_none=True) for host in node.hosts]
    if vertex is None or plane.previous is None or not plane.previous.port_of_host:
        return [facts for facts, host in zip(listed, node.hosts, strict=True) if not host.absent]
    wiring, hosts = plane.wiring, list[dict[str, Any]]()
    width = wiring.host_port.shape[1]
    for number, port in enumerate(wiring.host_port[vertex].tolist()):
        if port:
            facts = listed[number] if number < len(listed) else {}
            name = wiring.host_names[vertex * width + number]
            hosts.append(facts | {"name": name, "port": wiring.port_name(vertex, port)})
    return hosts


def _host_count(inventory: Inventory, node: Node) -> int | None:
    """The number of hosts that the node or its group states; None for that of its type."""
    count_of_type = inventory.node_types[node.type].host_count
    default = -1 if count_of_type is None else count_of_type
    count = inventory.host_count(node, default)
    return None if count == default else count


def _interfaces(plane: PlacedFabric) -> Iterator[CsvRow]:
    """Yield the rows of all interfaces of a plane."""
    types = plane.inventory.node_types
    interfaces_of_type = {name: interfaces(types[name]) for name in plane.wiring.type_names}
    for node in plane.inventory.nodes:
        for interface in interfaces_of_type[node.type]:
            enabled = "false" if interface.name in node.disabled_ports else "true"
            yield node.name, interface.name, interface.label, interface.type, enabled
