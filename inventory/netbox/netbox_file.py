"""An inventory from what NetBox or Nautobot exported."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from inventory.document_errors import part
from inventory.floor import Cabling, Media
from inventory.model import NodeType
from inventory.netbox.device_types import fits, import_type, own_names, slug, type_of
from inventory.netbox.extras import from_comment
from inventory.netbox.interface_types import DeviceInterface, carries_cable
from inventory.netbox.netbox_tables import NETBOX_TABLES, Row, read_table
from inventory.netbox.panel_ports import PanelPorts, Plug, far_end
from inventory.problems import InputError, Problem, did_you_mean, few, shown
from inventory.yamlfile import read

METRES_OF_UNIT = {"m": 1.0, "cm": 0.01, "km": 1000.0, "ft": 0.3048, "in": 0.0254, "mi": 1609.344}
LENGTH = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]*)")
TERMINATION = re.compile(r"((dcim\.)?(interface|(front|rear) ?port))?")
NODE_EXTRAS = ("plane", "vertex", "datapath_id", "management", "hosts", "guid")
RACK_EXTRAS = ("row", "column")
NOT_THERE = {"planned", "staged", "inventory", "offline", "failed", "decommissioning"}
SUFFIXES = {".yaml", ".yml", ".csv"}


@dataclass(slots=True)
class _Found:
    """What the files hold. types: (name here, type) by model there; own: `own_names`.

    panels: the ports of panels by their model.
    """

    types: dict[str, tuple[str, NodeType]] = field(default_factory=dict)
    own: dict[str, dict[str, str]] = field(default_factory=dict)
    panels: dict[str, PanelPorts] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Imported:
    """inventory.yaml as plain data, and how many cables led to devices that are not in it."""

    data: dict[str, Any]
    left_out: int


def read_netbox(paths: Iterable[Path]) -> Imported:
    """The inventory in device types (YAML) and tables (CSV), files or folders of them.

    Raises:
        InputError: every file or row that is wrong.
    """
    found, paths = _Found(), tuple(paths)
    for path in _files(paths, found):
        try:
            _read_file(path, found)
        except InputError as error:
            found.problems += error.problems
    if not found.problems and not found.types and not found.rows["devices"]:
        todo, file = "name those files, too, or their folder", ", ".join(map(str, paths))
        found.problems.append(Problem(NETBOX_TABLES, "no device and no device type", todo, file))
    if found.problems:
        raise InputError(few(found.problems))
    return _assembled(found)


def _files(paths: Iterable[Path], found: _Found) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        if not inside:
            found.problems.append(
                Problem(NETBOX_TABLES, "a folder without .csv and .yaml", "", str(path))
            )
        yield from inside


def _read_file(path: Path, found: _Found) -> None:
    if path.suffix.lower() in (".yaml", ".yml"):
        document = read(path)
        if not fits(document):
            keys = ", ".join(map(shown, list(document.data)[:6]))
            raise InputError(document.problem((), NETBOX_TABLES, f"YAML with {keys or 'no keys'}"))
        if "front-ports" in document.data and "interfaces" not in document.data:
            found.panels[str(document.data["model"])] = PanelPorts.of(document)
            return
        name, model, node_type = import_type(document)
        found.types[model], found.own[model] = (name, node_type), own_names(document)
        return
    text = _text(path)
    kind, rows = read_table(text, str(path))
    found.rows[kind] += rows


def _text(path: Path) -> str:
    file = str(path)
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        absent = isinstance(error, FileNotFoundError)
        what = "no such file" if absent else getattr(error, "strerror", None) or str(error)
        raise InputError.of("a file to read", what, "check the name", file) from None
    if content.startswith(b"PK"):
        raise InputError.of(NETBOX_TABLES, "a ZIP or Excel file", "export the table as CSV", file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        given = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        todo = "save the file as UTF-8"
        raise InputError.of("UTF-8 text", given, todo, file) from None


def _assembled(found: _Found) -> Imported:
    model = {row.get("name"): row.get("device_type") for row in found.rows["devices"]}
    for kind, device, name in (
        *(("interfaces", "device", "name"),),
        *(("cables", f"{end}_device", f"{end}_name") for end in "ab"),
    ):
        for row in found.rows[kind]:
            own = found.own.get(model.get(row.get(device), ""), {})
            if row.get(name) in own:
                row.values[name] = own[row.get(name)]
    _types_of_interfaces(found)
    nodes = _nodes(found)
    sections = _panel_sections(found)
    stock = _stock(sections.get("cabling")) if sections else []
    kinds = {(kind["media"], kind["colour"] or ""): kind for kind in reversed(stock)}
    known = len(kinds)
    cables, left_out = _cables(found, {node["name"] for node in nodes}, kinds)
    dead = [cable for cable in cables if cable.pop("dead")]
    if found.problems:
        raise InputError(few(found.problems))
    types = {
        name: node_type.model_dump(mode="json", exclude_defaults=True)
        for name, node_type in found.types.values()
    }
    parts: dict[str, Any] = {
        "node_types": types,
        "racks": [_rack(row) for row in found.rows["racks"]],
        **sections,
        "cabling": sections.get("cabling", {})
        | ({"types": [*stock, *list(kinds.values())[known:]]} if len(kinds) > known else {}),
        "nodes": nodes,
        "cables": cables,
        "dead_links": [{"a": cable["a"], "b": cable["b"]} for cable in dead],
    }
    # `panels: {}` says that there are cassettes, with the usual trunks.
    said = {word: value for word, value in parts.items() if value or word in sections}
    return Imported(said, left_out)


def _types_of_interfaces(found: _Found) -> None:
    """Node types that only the interfaces of a device tell."""
    listed: dict[str, list[DeviceInterface]] = defaultdict(list)
    files: dict[str, str] = {}
    for row in found.rows["interfaces"]:
        interface = DeviceInterface(row.get("name"), row.get("type").lower(), row.get("label"))
        if row.get("mgmt_only").lower() != "true" and carries_cable(interface):
            listed[row.get("device")].append(interface)
        files[row.get("device")] = row.file
    for row in found.rows["devices"]:
        model, device = row.get("device_type"), row.get("name")
        if model in found.types or model in found.panels or not listed.get(device):
            continue
        try:
            node_type = type_of(model, listed[device], files[device])
        except InputError as error:
            found.problems += error.problems
            continue
        found.types[model] = (slug(model)[:63], node_type)


def _nodes(found: _Found) -> list[dict[str, Any]]:
    nodes = []
    disabled = _disabled(found)
    racks = {row.get("name") for row in found.rows["racks"]}
    for row in found.rows["devices"]:
        model = row.get("device_type")
        if model in found.panels:
            continue
        if model not in found.types:
            todo = did_you_mean(model, found.types, "import its device type, too")
            problem = row.problem("device_type", "a device type of the files", model, todo)
            found.problems.append(problem)
            continue
        node: dict[str, Any] = {"name": row.get("name"), "type": found.types[model][0]}
        if row.get("rack") and row.get("rack") in racks:
            node["rack"] = row.get("rack")
            if row.get("position"):
                node["unit"] = _unit(row, found)
        if row.get("serial"):
            node["serial"] = row.get("serial")
        if row.get("address"):
            node["management"] = row.get("address").partition("/")[0]
        if row.get("status").lower() in NOT_THERE:
            node["state"] = "planned"
        if node["name"] in disabled:
            node["disabled_ports"] = disabled[node["name"]]
        nodes.append(node | _extras(row, NODE_EXTRAS))
    return nodes


def _disabled(found: _Found) -> dict[str, list[str]]:
    """The ports of each device that are switched off."""
    model = {row.get("name"): row.get("device_type") for row in found.rows["devices"]}
    ports = {m: {n for b in t.ports for n in b.port_names()} for m, (_, t) in found.types.items()}
    disabled: dict[str, list[str]] = defaultdict(list)
    for row in found.rows["interfaces"]:
        known = ports.get(model.get(row.get("device"), ""), ())
        if row.get("enabled").lower() in ("false", "0", "no") and row.get("name") in known:
            disabled[row.get("device")].append(row.get("name"))
    return disabled


def _unit(row: Row, found: _Found) -> int:
    """The rack unit: NetBox prints 12, 12.0 or 12.5."""
    try:
        unit = float(row.get("position"))
    except ValueError:
        unit = 0.5
    if unit % 1 or not 1 <= unit <= 1000:
        required = "a whole unit from 1"
        found.problems.append(row.problem("position", required, row.get("position")))
        return 1
    return int(unit)


def _rack(row: Row) -> dict[str, Any]:
    height = row.get("u_height").lower().removesuffix("u").strip()
    units = int(height) if re.fullmatch("[0-9]{1,4}", height) else height
    return {"name": row.get("name"), "units": units} | _extras(row, RACK_EXTRAS)


def _extras(row: Row, words: tuple[str, ...]) -> dict[str, Any]:
    """What the comments hold of these."""
    extras = from_comment(row.values.get("comments"), row.file, row.line)
    return {word: extras[word] for word in words if word in extras}


def _cables(
    found: _Found, names: set[str], kinds: dict[tuple[str, str], dict[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """Links between interfaces of nodes, and how many cables are of none.

    `kinds` takes the types of cables as they come; a link through panels has none of its own.
    """
    rows = found.rows["cables"]
    links, used = [], set[int]()
    for run, (a, a_port), (b, b_port) in _links(found, names):
        used |= {*run}
        dead = any(rows[i].get("status").lower() == "decommissioning" for i in run)
        link = {"dead": dead, "a": a, "a_port": a_port, "b": b, "b_port": b_port}
        if len(run) == 1:
            row = rows[run[0]]
            if row.get("type"):
                link["type"] = _cable_type(row, kinds, found)
            if row.get("length"):
                link["length"] = _length(row, found)
            if row.get("label"):
                link["label"] = row.get("label")
        links.append(link)
    return links, len(rows) - len(used)


def _links(found: _Found, names: set[str]) -> Iterator[tuple[list[int], Plug, Plug]]:
    """The cables of each link, by their numbers, and its ends at nodes."""
    models = ((row.get("name"), row.get("device_type")) for row in found.rows["devices"])
    panels = {name: found.panels[model] for name, model in models if model in found.panels}
    ends = []
    cabled: dict[Plug, tuple[Plug, int]] = {}
    for i, row in enumerate(found.rows["cables"]):
        if all(TERMINATION.fullmatch(row.get(f"{end}_type")) for end in "ab"):
            a, b = ((row.get(f"{end}_device"), row.get(f"{end}_name")) for end in "ab")
            ends.append((i, a, b))
            cabled[a], cabled[b] = (b, i), (a, i)
    followed = set[Plug]()
    for i, *both in ends:
        near = [plug for plug in both if plug[0] in names]
        if len(near) == 2:
            yield [i], near[0], near[1]
        elif near and near[0] not in followed:
            far, run = far_end(near[0], cabled, panels)
            if far and far[0] in names:
                followed.add(far)
                yield run, near[0], far


def _stock(cabling: object) -> list[dict[str, Any]]:
    """The types of cables of a section `cabling`, of the usual one where it has none."""
    stock = part(Cabling, cabling or {}) or Cabling()
    return [kind.model_dump(mode="json") for kind in stock.types]


def _panel_sections(found: _Found) -> dict[str, Any]:
    """`panels` and what else of the inventory the types of cassettes hold."""
    ours = (panel.sections for panel in found.panels.values() if "panels" in panel.sections)
    return next(ours, {})


def _cable_type(row: Row, kinds: dict[tuple[str, str], dict[str, Any]], found: _Found) -> str:
    media, colour = row.get("type").lower(), row.get("color").lower().removeprefix("#")
    known = get_args(Media)
    if media not in known:
        todo = did_you_mean(media, known, f"there are: {', '.join(known)}")
        found.problems.append(row.problem("type", "a type of cable", row.get("type"), todo))
    name = f"{media}-{colour}" if colour else media
    kind: dict[str, Any] = {"name": name, "media": media} | ({"colour": colour} if colour else {})
    return str(kinds.setdefault((media, colour), kind)["name"])


def _length(row: Row, found: _Found) -> float:
    """Metres."""
    match = LENGTH.fullmatch(row.get("length").lower())
    unit = (match[2] if match else "") or row.get("length_unit").lower() or "m"
    unit = {"meters": "m", "feet": "ft", "inches": "in", "centimeters": "cm"}.get(unit, unit)
    if match is None or unit not in METRES_OF_UNIT:
        required = f"a length in {', '.join(METRES_OF_UNIT)}"
        found.problems.append(row.problem("length", required, f"{row.get('length')} {unit}"))
        return 0.0
    return round(float(match[1]) * METRES_OF_UNIT[unit], 3)
