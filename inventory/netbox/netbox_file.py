"""Make an inventory from files that NetBox or Nautobot has exported.

`polarfab inventory` calls `read_netbox`. A *site* is the content of these files (`site_files`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inventory.netbox.netbox_cables import site_links, types_in_stock
from inventory.netbox.netbox_devices import (
    add_types_of_interfaces,
    node_entries,
    rack_entry,
    switch_rows,
)
from inventory.netbox.netbox_tables import CsvRow
from inventory.netbox.site_files import LeftOut, Site, read_site
from inventory.problems import InputError, few

PORT_COLUMNS = (
    ("interfaces", "device", "name"),
    ("cables", "a_device", "a_name"),
    ("cables", "b_device", "b_name"),
)
"""The columns that name ports: the table, the column of the device, and the column of the port."""


@dataclass(frozen=True, slots=True)
class ImportedSite:
    """An inventory from a site of NetBox."""

    data: dict[str, Any]
    """The inventory, as it is written to YAML."""
    left_out: LeftOut
    """The devices, interfaces and cables of the site that are not in the inventory."""


def read_netbox(paths: Iterable[Path], roles: Collection[str] = ()) -> ImportedSite:
    """The inventory of a site, from its device types (YAML) and tables (CSV).

    Args:
        paths: the files, and folders of them.
        roles: the roles of the devices that become nodes; () for all roles but those of other
            devices, such as servers and power distribution units.

    Raises:
        InputError: files or rows have mistakes; all of them.
    """
    site = read_site(tuple(paths))
    if site.problems:
        raise InputError(few(site.problems))
    return _inventory_of_site(site, roles)


def _inventory_of_site(site: Site, roles: Collection[str]) -> ImportedSite:
    """The inventory of a site whose files are read.

    Args:
        site: the content of the files; gets the inventory's names of ports, and problems.
        roles: the roles of the devices that become nodes.

    Raises:
        InputError: rows have mistakes; all of them.
    """
    _use_inventory_names(site)
    add_types_of_interfaces(site)
    node_rows = switch_rows(site, roles)
    listed_nodes = node_entries(site, node_rows)
    sections = _panel_sections(site)
    stocked_types = types_in_stock(sections.get("cabling")) if sections else []
    # If two types in types_in_stock have one medium and colour, the first is used.
    kinds = {(kind["media"], kind["colour"] or ""): kind for kind in reversed(stocked_types)}
    in_stock = set(kinds)
    links = site_links(site, {node["name"] for node in listed_nodes}, kinds)
    if site.problems:
        raise InputError(few(site.problems))
    new_kinds = [kind for key, kind in kinds.items() if key not in in_stock]
    cabling = dict(sections.get("cabling", {}))
    if new_kinds:
        cabling["types"] = [*stocked_types, *new_kinds]
    parts: dict[str, Any] = {
        "node_types": _node_types(site, node_rows),
        "racks": [rack_entry(row) for row in site.rows["racks"]],
        **sections,
        "cabling": cabling,
        "nodes": listed_nodes,
        "cables": links.cables,
        "dead_links": links.dead,
    }
    # An empty `panels` also counts: it means cassettes with the default trunks.
    stated = {key: value for key, value in parts.items() if value or key in sections}
    return ImportedSite(stated, site.left_out)


def _node_types(site: Site, node_rows: Sequence[CsvRow]) -> dict[str, Any]:
    """The node types of the inventory: the types of its nodes, and types that no device has."""
    of_nodes = {site.model(row) for row in node_rows}
    of_other_devices = {site.model(row) for row in site.rows["devices"]} - of_nodes
    return {
        name: node_type.model_dump(mode="json", exclude_defaults=True)
        for model, (name, node_type) in site.types.items()
        if model not in of_other_devices
    }


def _use_inventory_names(site: Site) -> None:
    """Rename ports in all rows to their names in the inventory that was once exported."""
    model_of_device = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    for table, device_column, port_column in PORT_COLUMNS:
        for row in site.rows[table]:
            model = model_of_device.get(row.get(device_column), "")
            names = site.inventory_names.get(model, {})
            if row.get(port_column) in names:
                row.values[port_column] = names[row.get(port_column)]


def _panel_sections(site: Site) -> dict[str, Any]:
    """The sections of an inventory in the types of cassettes; {} without cassettes."""
    for panel in site.panels.values():
        if "panels" in panel.sections:
            return panel.sections
    return {}
