"""An inventory from what NetBox or Nautobot exported."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inventory.netbox.netbox_cables import cables, stock
from inventory.netbox.netbox_devices import nodes, rack, switches, types_of_interfaces
from inventory.netbox.site_files import LeftOut, Site, read_site
from inventory.problems import InputError, few


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
    _take_own_names(site)
    types_of_interfaces(site)
    rows = switches(site, roles)
    listed = nodes(site, rows)
    sections = _panel_sections(site)
    kept = stock(sections.get("cabling")) if sections else []
    kinds = {(kind["media"], kind["colour"] or ""): kind for kind in reversed(kept)}
    kept_kinds = len(kinds)
    links = cables(site, {node["name"] for node in listed}, kinds)
    dead = [link for link in links if link.pop("dead")]
    new_kinds = list(kinds.values())[kept_kinds:]
    if site.problems:
        raise InputError(few(site.problems))
    used = {site.model(row) for row in rows}
    others = {site.model(row) for row in site.rows["devices"]} - used
    parts: dict[str, Any] = {
        "node_types": {
            name: node_type.model_dump(mode="json", exclude_defaults=True)
            for model, (name, node_type) in site.types.items()
            if model not in others
        },
        "racks": [rack(row) for row in site.rows["racks"]],
        **sections,
        "cabling": sections.get("cabling", {})
        | ({"types": [*kept, *new_kinds]} if new_kinds else {}),
        "nodes": listed,
        "cables": links,
        "dead_links": [{"a": link["a"], "b": link["b"]} for link in dead],
    }
    # `panels: {}` says that there are cassettes, with the usual trunks.
    said = {word: value for word, value in parts.items() if value or word in sections}
    return Imported(said, site.left_out)


def _take_own_names(site: Site) -> None:
    """Name ports in all rows as the inventory does that an export was made from."""
    model = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    for kind, device, name in (
        ("interfaces", "device", "name"),
        *(("cables", f"{end}_device", f"{end}_name") for end in "ab"),
    ):
        for row in site.rows[kind]:
            names = site.inventory_names.get(model.get(row.get(device), ""), {})
            if row.get(name) in names:
                row.values[name] = names[row.get(name)]


def _panel_sections(site: Site) -> dict[str, Any]:
    """`panels` and what else of the inventory the types of cassettes hold."""
    ours = (panel.sections for panel in site.panels.values() if "panels" in panel.sections)
    return next(ours, {})
