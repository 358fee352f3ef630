"""Read the exported files of a site: device types, panels, and tables of rows.

`netbox_file` calls `read_site`, and makes an inventory of the `Site` that it returns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inventory.model import NodeType
from inventory.netbox.device_types import (
    DeviceType,
    import_type,
    inventory_port_names,
    is_device_type,
    slug,
)
from inventory.netbox.interface_types import DeviceInterface
from inventory.netbox.netbox_tables import NETBOX_TABLES, CsvRow, read_table
from inventory.netbox.panel_ports import PanelPorts
from inventory.problems import InputError, Problem, file_name, first_names, shown
from inventory.yamlfile import Document, read

SUFFIXES = {".yaml", ".yml", ".csv"}
"""The suffixes of the files that are read in folders."""
MOST_NAMED = 4
"""The most names of devices in a line."""


@dataclass(slots=True)
class LeftOut:
    """The parts of a site that are not imported."""

    devices: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By the reason why they are no nodes, the names of devices."""
    interfaces: Counter[str] = field(default_factory=Counter)
    """By NetBox's type, how many interfaces of node types are no ports."""
    cables: int = 0
    """How many cables belong to no link between nodes."""
    breakouts: list[str] = field(default_factory=list)
    """For each breakout cable between nodes, its file, its line and the nodes, in words."""

    def lines(self) -> Iterator[str]:
        """A sentence for each reason. Cables that belong to no link are only counted (`cables`)."""
        for reason, names in self.devices.items():
            yield f"left out, {reason}: {first_names(names, MOST_NAMED)}"
        if self.interfaces:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.interfaces.items())
            yield f"interfaces left out of node types: {kinds}"
        for cable in self.breakouts:
            yield f"left out, a breakout cable: {cable}; write its links into `cables` yourself"


@dataclass(slots=True)
class Site:
    """The content of the files of a site."""

    types: dict[str, tuple[str, NodeType]] = field(default_factory=dict)
    """By model, the name of the type in the inventory and the node type."""
    inventory_names: dict[str, dict[str, str]] = field(default_factory=dict)
    """By model and by name of a port in NetBox, the inventory's name of the port."""
    panels: dict[str, PanelPorts] = field(default_factory=dict)
    """By model, the ports of panels."""
    portless: dict[str, Problem] = field(default_factory=dict)
    """By model whose interfaces are no ports of a fabric, the problem of that. It is reported if
    there are no other types, and no devices."""
    passed_over: dict[str, tuple[DeviceInterface, ...]] = field(default_factory=dict)
    """By model, the interfaces that are no ports."""
    models: dict[str, str] = field(default_factory=dict)
    """By other names of a model, the model: by its slug, and with its manufacturer before it."""
    rows: dict[str, list[CsvRow]] = field(default_factory=lambda: defaultdict(list))
    """By kind of table, the rows of CSV files."""
    problems: list[Problem] = field(default_factory=list)
    """The mistakes in the files."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """The devices, interfaces and cables that are not imported."""

    def model(self, row: CsvRow) -> str:
        """The model of a device."""
        model = row.get("device_type")
        return self.models.get(model.casefold(), model) if model not in self.types else model


def read_site(paths: Sequence[Path]) -> Site:
    """The content of files and folders; mistakes in them are in its `problems`."""
    site = Site()
    for path in _files(paths, site):
        try:
            _read_file(path, site)
        except InputError as error:
            site.problems += error.problems
    if not site.problems and not site.types and not site.rows["devices"]:
        todo = "name those files, too, or their folder"
        file = ", ".join(map(file_name, paths))
        no_devices = Problem(NETBOX_TABLES, "no device and no device type", todo, file)
        site.problems += site.portless.values() or [no_devices]
    return site


def _files(paths: Iterable[Path], site: Site) -> Iterator[Path]:
    """The files, and those in folders; a folder without any is a problem."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        if not inside:
            site.problems.append(
                Problem(NETBOX_TABLES, "a folder without .csv and .yaml", "", file_name(path))
            )
        yield from inside


def _read_file(path: Path, site: Site) -> None:
    """Add the content of a file to a site.

    Raises:
        InputError: the file cannot be read, or has mistakes.
    """
    if path.suffix.lower() not in (".yaml", ".yml"):
        kind, rows = read_table(_text(path), file_name(path))
        site.rows[kind] += rows
        return
    document = read(path)
    if not is_device_type(document):
        keys = ", ".join(map(shown, list(document.data)[:6]))
        raise InputError(document.problem((), NETBOX_TABLES, f"YAML with {keys or 'no keys'}"))
    if "front-ports" in document.data and "interfaces" not in document.data:
        model = str(document.data["model"])
        site.panels[model] = PanelPorts.of(document)
    else:
        device_type = import_type(document)
        model = device_type.model
        _add_type(device_type, document, site)
    maker = str(document.data["manufacturer"])
    names = f"{maker} {model}", slug(f"{maker} {model}"), str(document.data.get("slug", ""))
    site.models |= {name.casefold(): model for name in names if name}


def _add_type(device_type: DeviceType, document: Document, site: Site) -> None:
    """Add a device type to a site."""
    model = device_type.model
    site.passed_over[model] = device_type.passed_over
    if device_type.node_type is None:
        required = "an interface that takes a cable of Ethernet or InfiniBand"
        site.portless[model] = document.problem(("interfaces",), required, "none")
        return
    site.types[model] = (device_type.name, device_type.node_type)
    site.inventory_names[model] = inventory_port_names(document)


def _text(path: Path) -> str:
    """The text of a CSV file.

    Raises:
        InputError: the file cannot be read, or is no text in UTF-8.
    """
    file = file_name(path)
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            reason = "no such file"
        raise InputError.of("a file to read", reason, "check the name", file) from None
    if content.startswith(b"PK"):
        raise InputError.of(NETBOX_TABLES, "a ZIP or Excel file", "export the table as CSV", file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        todo = "save the file as UTF-8"
        raise InputError.of("UTF-8 text", byte, todo, file) from None
