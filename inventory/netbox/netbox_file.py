"""An inventory from what NetBox or Nautobot exported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inventory.netbox.netbox_cables import site_links, stock
from inventory.netbox.netbox_devices import nodes, rack, switches, types_of_interfaces
from inventory.netbox.netbox_tables import CsvRow
from inventory.netbox.site_files import LeftOut, Site, read_site
from inventory.problems import InputError, few

PORT_COLUMNS = (
    ("interfaces", "device", "name"),
    ("cables", "a_device", "a_name"),
    ("cables", "b_device", "b_name"),
)
"""Where ports are named in tables: the table, the column of the device, and that of the port."""


@dataclass(frozen=True, slots=True)
class Imported:
    """An inventory from a site of NetBox."""

    data: dict[str, Any]
    """The inventory, as it is written to YAML."""
    left_out: LeftOut
    """The devices, interfaces and cables of the site that are not in it."""


def read_netbox(paths: Iterable[Path], roles: Collection[str] = ()) -> Imported:
    """The inventory in device types (YAML) and tables (CSV), files or folders of them.

    Args:
        paths: of the files and folders.
        roles: those of the devices that become nodes; none for all but devices whose role says that
            they are something else, such as servers and power distribution units.

    Raises:
        InputError: every file or row that is wrong.
    """
    site = read_site(tuple(paths))
    if site.problems:
        raise InputError(few(site.problems))
    return _assembled(site, roles)


def _assembled(site: Site, roles: Collection[str]) -> Imported:
    """The inventory of a site, whose files are read.

    Args:
        site: gets the names of ports that the inventory has, and its problems.
        roles: of the devices that become nodes.

    Raises:
        InputError: every row that is wrong.
    """
    _take_own_names(site)
    types_of_interfaces(site)
    node_rows = switches(site, roles)
    node_entries = nodes(site, node_rows)
    sections = _panel_sections(site)
    stocked = stock(sections.get("cabling")) if sections else []
    # Of two types in stock of one medium and colour the first is taken.
    kinds = {(kind["media"], kind["colour"] or ""): kind for kind in reversed(stocked)}
    in_stock = set(kinds)
    links = site_links(site, {node["name"] for node in node_entries}, kinds)
    if site.problems:
        raise InputError(few(site.problems))
    new_kinds = [kind for key, kind in kinds.items() if key not in in_stock]
    cabling = dict(sections.get("cabling", {}))
    if new_kinds:
        cabling["types"] = [*stocked, *new_kinds]
    parts: dict[str, Any] = {
        "node_types": _node_types(site, node_rows),
        "racks": [rack(row) for row in site.rows["racks"]],
        **sections,
        "cabling": cabling,
        "nodes": node_entries,
        "cables": links.cables,
        "dead_links": links.dead,
    }
    # `panels: {}` says that there are cassettes, with the usual trunks.
    stated = {key: value for key, value in parts.items() if value or key in sections}
    return Imported(stated, site.left_out)


def _node_types(site: Site, node_rows: Sequence[CsvRow]) -> dict[str, Any]:
    """The types of the inventory: those of its nodes, and those that no device has."""
    of_nodes = {site.model(row) for row in node_rows}
    of_other_devices = {site.model(row) for row in site.rows["devices"]} - of_nodes
    return {
        name: node_type.model_dump(mode="json", exclude_defaults=True)
        for model, (name, node_type) in site.types.items()
        if model not in of_other_devices
    }


def _take_own_names(site: Site) -> None:
    """Name ports in all rows as in the inventory from which the device types were exported."""
    model_of_device = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    for table, device_column, port_column in PORT_COLUMNS:
        for row in site.rows[table]:
            model = model_of_device.get(row.get(device_column), "")
            names = site.inventory_names.get(model, {})
            if row.get(port_column) in names:
                row.values[port_column] = names[row.get(port_column)]


def _panel_sections(site: Site) -> dict[str, Any]:
    """`panels` and what else of the inventory the types of cassettes hold; {} without cassettes."""
    for panel in site.panels.values():
        if "panels" in panel.sections:
            return panel.sections
    return {}
