"""Device types in the YAML of NetBox's and Nautobot's community libraries."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from inventory.document_errors import part
from inventory.model import NodeType
from inventory.netbox.extras import of_document, to_comment
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
INTERFACE_NAME = re.compile(r"[A-Za-z0-9._/:-]{1,64}")
MOST_INTERFACES = 65_000


def fits(document: Document) -> bool:
    """Whether the document looks like a device type."""
    return {"manufacturer", "model"} <= set(document.data)


def slug(text: str) -> str:
    """`co-packaged-4x8` for `Co-packaged 4x8`."""
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-") or "type"


def manufacturer(node_type: NodeType) -> str:
    """The manufacturer, which NetBox requires."""
    return node_type.manufacturer or "Generic"


def export_type(name: str, node_type: NodeType, management: str = "") -> dict[str, Any]:
    """A node type as a device type; blocks, limits and capabilities go to the comments.

    Args:
        name: in the inventory.
        node_type: the type.
        management: the name of its interface of management; "" for none.
    """
    model = node_type.model or name
    kept = node_type.model_dump(mode="json", exclude_defaults=True)
    listed: list[dict[str, Any]] = [
        {"name": i.name, "type": i.type} | ({"label": i.label} if i.label else {})
        for i in interfaces(node_type)
    ]
    if management:
        listed.append({"name": management, "type": UNKNOWN, "mgmt_only": True})
    number = {"part_number": node_type.part_number} if node_type.part_number else {}
    return {
        "manufacturer": manufacturer(node_type),
        "model": model,
        "slug": slug(f"{manufacturer(node_type)} {model}"),
        **number,
        "u_height": node_type.units,
        "comments": to_comment({"name": name, "type": kept}),
        "interfaces": listed,
    }


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A device type as an inventory has it."""

    name: str
    """In the inventory."""
    model: str
    """In NetBox."""
    node_type: NodeType | None
    """None for a type without ports of a fabric, such as that of a power distribution unit."""
    passed_over: tuple[DeviceInterface, ...] = ()
    """Interfaces that are no ports of a fabric."""


def import_type(document: Document) -> DeviceType:
    """A device type of a file.

    Management interfaces, those without a socket and those that are not Ethernet are passed over.
    Blocks that the comments hold are taken where they still name the interfaces that are listed.

    Raises:
        InputError: names that ports cannot have.
    """
    data = document.data
    model = data.get("model")
    if not isinstance(model, str | int):
        given = f"a mapping with {', '.join(map(shown, list(data)[:6]))}"
        raise InputError.of(DEVICE_TYPE, given, "", document.file, 1)
    extras = of_document(document)
    inventory_names = own_names(document)
    name = extras.get("name") if isinstance(extras.get("name"), str) else slug(str(model))
    ports, passed_over = _listed(document)
    if not ports or data.get("power-outlets"):
        return DeviceType(str(name)[:63], str(model), None, (*ports, *passed_over))
    listed = [i._replace(name=inventory_names.get(i.name, i.name)) for i in ports]
    if inventory_names:  # the label was the name, unless it had one
        listed = [i._replace(label=i.label if i.label != i.name else "") for i in listed]
    kept = part(NodeType, extras.get("type"))
    if (
        kept is not None
        and sum(b.total for b in kept.ports) <= MOST_INTERFACES
        and interfaces(kept) == listed
    ):
        # The interface of management is in the comments' words: a node's `management`.
        others = (i for i in passed_over if i.type != MANAGEMENT)
        return DeviceType(str(name), str(model), kept, tuple(others))
    values = {
        "ports": [block.model_dump() for block in blocks(listed)],
        "units": _units(data.get("u_height", 1), document),
        "manufacturer": data.get("manufacturer"),
        "model": str(model),
        "part_number": data.get("part_number"),
    }
    node_type = _node_type(values, document)
    return DeviceType(str(name)[:63], str(model), node_type, tuple(passed_over))


def own_names(document: Document) -> dict[str, str]:
    """The inventory's names of ports, by those of the system that an export has named them for."""
    kept = of_document(document).get("ports")
    pairs = kept.items() if isinstance(kept, dict) else ()
    return {k: v for k, v in pairs if isinstance(v, str) and INTERFACE_NAME.fullmatch(v)}


def _node_type(given: dict[str, Any], document: Document) -> NodeType:
    values = {word: value for word, value in given.items() if value is not None}
    try:
        return NodeType.model_validate(values)
    except ValidationError as error:
        where = error.errors()[0]["loc"]
        path = tuple(w for w in where[:1] if isinstance(w, str))
        value = values.get(str(where[0]))
        problem = document.problem(path, "a device type with plain values", shown(value))
        raise InputError(problem) from None


def type_of(model: str, listed: list[DeviceInterface], file: str) -> NodeType:
    """A node type from the interfaces of a device, where there is no device type file.

    Raises:
        InputError: names that ports cannot have.
    """
    nothing: dict[str, Any] = {}
    document = Document(file, "", nothing, {id(nothing): {}})
    if wrong := [i.name for i in listed if not INTERFACE_NAME.fullmatch(i.name)]:
        raise InputError.of(*_unfit(wrong), file=file, key=model)
    ports = [block.model_dump() for block in blocks(listed)]
    return _node_type({"ports": ports, "model": model[:100]}, document)


def _listed(document: Document) -> tuple[list[DeviceInterface], list[DeviceInterface]]:
    """The interfaces that are ports, and those that are not."""
    ports: list[DeviceInterface] = []
    passed_over: list[DeviceInterface] = []
    wrong: list[tuple[int, str]] = []
    entries = document.data.get("interfaces") or []
    if not isinstance(entries, list):
        raise InputError(document.problem(("interfaces",), "a list of interfaces", shown(entries)))
    for i, entry in enumerate(entries[:MOST_INTERFACES]):
        facts = entry if isinstance(entry, dict) else {}
        name = facts.get("name")
        kind = facts.get("type")
        label = facts.get("label")
        interface = DeviceInterface(
            str(name),
            kind if isinstance(kind, str) else "other",
            label if isinstance(label, str) else "",
        )
        if str(facts.get("mgmt_only", "")).lower() == "true":
            passed_over.append(interface._replace(type=MANAGEMENT))
            continue
        if not carries_cable(interface):
            passed_over.append(interface)
            continue
        if name is None or not INTERFACE_NAME.fullmatch(interface.name):
            wrong.append((i, interface.name if name is not None else "nothing"))
        ports.append(interface)
    if wrong:
        required, given, todo = _unfit([name for _, name in wrong])
        path = ("interfaces", wrong[0][0], "name")
        raise InputError(document.problem(path, required, given, todo))
    return ports, passed_over


def _unfit(names: list[str]) -> tuple[str, str, str]:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        "interface names of letters, digits and . _ / : -",
        shown(names[0]) + more,
        "write them as the switch's operating system does: Ethernet1 rather than Port 1",
    )


def _units(value: object, document: Document) -> int:
    """Height in whole rack units; halves round up, devices without one count as 1."""
    try:
        height = float(str(value))
    except ValueError:
        height = math.nan
    if not 0 <= height <= 100:
        problem = document.problem(("u_height",), "a height from 0 to 100", shown(value))
        raise InputError(problem)
    return max(1, math.ceil(height))
