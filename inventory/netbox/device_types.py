"""Export and import node types as device types, in the YAML of NetBox's community library.

A node type of an inventory is a model of switch with blocks of ports; a device type of NetBox lists
each interface. The export and import of sites (`inventory.netbox.site_files`) call it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from inventory.document_errors import value_or_none
from inventory.model import NodeType
from inventory.netbox.extras import device_type_extras, to_comment
from inventory.netbox.interface_types import (
    MANAGEMENT,
    UNKNOWN,
    DeviceInterface,
    blocks,
    carries_cable,
    interfaces,
)
from inventory.problems import InputError, shown
from inventory.yamlfile import Document

DEVICE_TYPE = "a device type of the community library: manufacturer, model, interfaces"
"""The required document, in messages."""
INTERFACE_NAME = re.compile(r"[A-Za-z0-9._/:-]{1,64}")
"""A name that a port can have, such as `Ethernet1/1`."""
NAME_RULE = "interface names of letters, digits and . _ / : -"
"""The required names of interfaces, in messages."""
NAME_REMEDY = "write them as the switch's operating system does: Ethernet1 rather than Port 1"
"""The remedy for other names, in messages."""
MOST_INTERFACES = 65_000
"""The most interfaces that are read."""
LONGEST_NAME = 63
"""The most characters of a type's name."""


def is_device_type(document: Document) -> bool:
    """Whether a document is a device type, by its keys."""
    return {"manufacturer", "model"} <= set(document.data)


def slug(text: str) -> str:
    """A text as NetBox's slug: `co-packaged-4x8` for `Co-packaged 4x8`."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-") or "type"


def manufacturer(node_type: NodeType) -> str:
    """The manufacturer, which NetBox requires; "Generic" where the type has none."""
    return node_type.manufacturer or "Generic"


def export_type(name: str, node_type: NodeType, management: str = "") -> dict[str, Any]:
    """A node type as a device type; blocks, limits and capabilities go to the comments.

    Args:
        name: the name of the type in the inventory.
        node_type: the type.
        management: the name of its management interface; "" for none.
    """
    model = node_type.model or name
    values = node_type.model_dump(mode="json", exclude_defaults=True)
    listed: list[dict[str, Any]] = []
    for interface in interfaces(node_type):
        entry = {"name": interface.name, "type": interface.type}
        if interface.label:
            entry["label"] = interface.label
        listed.append(entry)
    if management:
        listed.append({"name": management, "type": UNKNOWN, "mgmt_only": True})
    number = {"part_number": node_type.part_number} if node_type.part_number else {}
    return {
        "manufacturer": manufacturer(node_type),
        "model": model,
        "slug": slug(f"{manufacturer(node_type)} {model}"),
        **number,
        "u_height": node_type.units,
        "comments": to_comment({"name": name, "type": values}),
        "interfaces": listed,
    }


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A device type that was imported."""

    name: str
    """The name of the type in the inventory."""
    model: str
    """The model in NetBox."""
    node_type: NodeType | None
    """The node type; None for a type without ports of a fabric, such as a power distribution unit.
    """
    passed_over: tuple[DeviceInterface, ...] = ()
    """The interfaces that are no ports of a fabric."""


def import_type(document: Document) -> DeviceType:
    """The device type of a file.

    Interfaces for management, without a socket, or of another kind than Ethernet and InfiniBand are
    passed over. If the comments have the node type of an earlier export, and its ports still have
    the names of the interfaces, that node type is the result.

    Raises:
        InputError: the file is no device type, or has names that ports cannot have.
    """
    data = document.data
    model = data.get("model")
    if not isinstance(model, str | int):
        keys = f"a mapping with {', '.join(map(shown, list(data)[:6]))}"
        raise InputError.of(DEVICE_TYPE, keys, "", document.file, 1)
    extras = device_type_extras(document)
    inventory_names = inventory_port_names(document)
    name = extras.get("name") if isinstance(extras.get("name"), str) else slug(str(model))
    ports, passed_over = _split_interfaces(document)
    if not ports or data.get("power-outlets"):
        return DeviceType(str(name)[:LONGEST_NAME], str(model), None, (*ports, *passed_over))
    listed = [port._replace(name=inventory_names.get(port.name, port.name)) for port in ports]
    if inventory_names:  # an export for a system writes a port's name as its label
        listed = [
            port._replace(label=port.label if port.label != port.name else "") for port in listed
        ]
    exported = value_or_none(NodeType, extras.get("type"))
    if (
        exported is not None
        and sum(block.total for block in exported.ports) <= MOST_INTERFACES
        and interfaces(exported) == listed
    ):
        # An exported type has a management interface for the `management` of its nodes.
        others = tuple(i for i in passed_over if i.type != MANAGEMENT)
        return DeviceType(str(name), str(model), exported, others)
    values = {
        "ports": [block.model_dump() for block in blocks(listed)],
        "units": _units(data.get("u_height", 1), document),
        "manufacturer": data.get("manufacturer"),
        "model": str(model),
        "part_number": data.get("part_number"),
    }
    node_type = _node_type(values, document)
    return DeviceType(str(name)[:LONGEST_NAME], str(model), node_type, tuple(passed_over))


def inventory_port_names(document: Document) -> dict[str, str]:
    """The inventory's names of ports, by the names of the system that the type was exported for."""
    ports = device_type_extras(document).get("ports")
    if not isinstance(ports, dict):
        return {}
    return {
        system_name: name
        for system_name, name in ports.items()
        if isinstance(name, str) and INTERFACE_NAME.fullmatch(name)
    }


def _node_type(fields: dict[str, Any], document: Document) -> NodeType:
    """The node type with these fields; those that are None are left out.

    Raises:
        InputError: a field has a value that it cannot have.
    """
    values = {key: value for key, value in fields.items() if value is not None}
    try:
        return NodeType.model_validate(values)
    except ValidationError as error:
        key = error.errors()[0]["loc"][0]
        path = (key,) if isinstance(key, str) else ()
        value = shown(values.get(str(key)))
        problem = document.problem(path, "a device type with plain values", value)
        raise InputError(problem) from None


def type_of(model: str, listed: list[DeviceInterface], file: str) -> NodeType:
    """A node type from the interfaces of a device, for a model without a file of its type.

    Args:
        model: the model.
        listed: the interfaces that are ports.
        file: the file that lists them.

    Raises:
        InputError: there are names that ports cannot have.
    """
    no_data: dict[str, Any] = {}
    document = Document(file, "", no_data, {id(no_data): {}})
    wrong = [i.name for i in listed if not INTERFACE_NAME.fullmatch(i.name)]
    if wrong:
        raise InputError.of(NAME_RULE, _first_name(wrong), NAME_REMEDY, file=file, key=model)
    ports = [block.model_dump() for block in blocks(listed)]
    return _node_type({"ports": ports, "model": model[:100]}, document)


def _split_interfaces(document: Document) -> tuple[list[DeviceInterface], list[DeviceInterface]]:
    """The interfaces that are ports, and those that are not.

    Raises:
        InputError: there is no list of interfaces, or there are names that ports cannot have.
    """
    ports: list[DeviceInterface] = []
    passed_over: list[DeviceInterface] = []
    wrong: list[tuple[int, str]] = []
    entries = document.data.get("interfaces") or []
    if not isinstance(entries, list):
        raise InputError(document.problem(("interfaces",), "a list of interfaces", shown(entries)))
    for i, entry in enumerate(entries[:MOST_INTERFACES]):
        fields = entry if isinstance(entry, dict) else {}
        name = fields.get("name")
        kind = fields.get("type")
        label = fields.get("label")
        interface = DeviceInterface(
            str(name),
            kind if isinstance(kind, str) else "other",
            label if isinstance(label, str) else "",
        )
        if str(fields.get("mgmt_only", "")).lower() == "true":
            passed_over.append(interface._replace(type=MANAGEMENT))
            continue
        if not carries_cable(interface):
            passed_over.append(interface)
            continue
        if name is None or not INTERFACE_NAME.fullmatch(interface.name):
            wrong.append((i, interface.name if name is not None else "nothing"))
        ports.append(interface)
    if wrong:
        first = _first_name([name for _, name in wrong])
        path = ("interfaces", wrong[0][0], "name")
        raise InputError(document.problem(path, NAME_RULE, first, NAME_REMEDY))
    return ports, passed_over


def _first_name(names: list[str]) -> str:
    """The first name, and how many more there are."""
    return shown(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _units(value: object, document: Document) -> int:
    """The height in whole rack units, rounded up; at least 1, also for a device of height 0."""
    try:
        height = float(str(value))
    except ValueError:
        height = math.nan
    if not 0 <= height <= 100:
        problem = document.problem(("u_height",), "a height from 0 to 100", shown(value))
        raise InputError(problem)
    return max(1, math.ceil(height))
