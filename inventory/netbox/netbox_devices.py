"""Make nodes and racks of an inventory from the devices and racks of a site.

`netbox_file` calls these functions in the order in which they stand here. A *model* is NetBox's
name of a device type.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection
from ipaddress import ip_address
from typing import Any

from inventory.netbox.device_roles import is_switch
from inventory.netbox.device_types import slug, type_of
from inventory.netbox.extras import from_comment
from inventory.netbox.interface_types import MANAGEMENT, DeviceInterface, carries_cable
from inventory.netbox.netbox_tables import CsvRow
from inventory.netbox.site_files import Site
from inventory.problems import InputError, did_you_mean, shown

NODE_EXTRAS = (
    "plane",
    "vertex",
    "datapath_id",
    "management",
    "hosts",
    "host_count",
    "guid",
    "system",
    "asn",
)
"""The keys of nodes that an export writes into the comments of devices."""
RACK_EXTRAS = ("row", "column")
"""The keys of racks that an export writes into their comments."""
NOT_INSTALLED = {
    "planned",
    "staged",
    "inventory",
    "offline",
    "failed",
    "decommissioning",
    "decommissioned",
    "retired",
}
"""The statuses of devices that are not installed."""
PORTS_REMEDY = "its interfaces.csv or its device type in YAML, or choose the switches by their role"
"""What to do about a device without a known type: messages put "import" before it."""


def add_types_of_interfaces(site: Site) -> None:
    """Add node types for models without a file, from the interfaces of a device of the model."""
    listed: dict[str, list[DeviceInterface]] = defaultdict(list)
    passed_over: dict[str, list[DeviceInterface]] = defaultdict(list)
    files: dict[str, str] = {}
    for row in site.rows["interfaces"]:
        interface = DeviceInterface(row.get("name"), row.get("type").lower(), row.get("label"))
        device = row.get("device")
        files[device] = row.file
        if row.get("mgmt_only").lower() == "true":
            passed_over[device].append(interface._replace(type=MANAGEMENT))
        elif carries_cable(interface):
            listed[device].append(interface)
        else:
            passed_over[device].append(interface)
    for row in site.rows["devices"]:
        model, device = site.model(row), row.get("name")
        if model in site.types or model in site.panels or not listed.get(device):
            continue
        if row.get("role") and not is_switch(row.get("role")):
            continue
        try:
            node_type = type_of(model, listed[device], files[device])
        except InputError as error:
            site.problems += error.problems
            continue
        site.types[model] = (slug(model)[:63], node_type)
        site.passed_over[model] = tuple(passed_over[device])


def switch_rows(site: Site, roles: Collection[str]) -> list[CsvRow]:
    """The rows of devices that are nodes; other devices are noted as left out.

    Args:
        site: has the rows; gets the devices that are left out, and problems.
        roles: the roles of nodes; () for all roles but those of other devices (`is_switch`).
    """
    chosen = {role.casefold() for role in roles}
    rows: list[CsvRow] = []
    for row in site.rows["devices"]:
        role, model = row.get("role"), site.model(row)
        if model in site.panels:
            continue
        has_role = role.casefold() in chosen if chosen else is_switch(role)
        if not has_role:
            site.left_out.devices[f"role {shown(role)}"].append(row.get("name"))
        elif model in site.portless and model not in site.types:
            reason = f"{shown(model)} has no ports of a fabric"
            site.left_out.devices[reason].append(row.get("name"))
        elif not row.get("name"):
            todo = "name it in NetBox, and export again"
            site.problems.append(row.problem("name", "a name of each switch", "none", todo))
        else:
            rows.append(row)
    if not rows and site.rows["devices"] and site.left_out.devices:
        first, *_ = site.rows["devices"]
        site_roles = sorted({row.get("role") for row in site.rows["devices"]} - {""})
        actual, todo = "types without ports", "name the device types of the switches, too"
        if site_roles:
            actual = f"the roles {', '.join(map(shown, site_roles))}"
            todo = "choose switches by role"
        site.problems.append(
            first.problem_in_words("role", "a device that is a switch", actual, todo)
        )
    return rows


def node_entries(site: Site, rows: Collection[CsvRow]) -> list[dict[str, Any]]:
    """The nodes of these devices, as the inventory lists them."""
    listed = []
    disabled = _disabled(site)
    racks = {row.get("name") for row in site.rows["racks"]}
    for row in rows:
        model = site.model(row)
        if model not in site.types:
            todo = did_you_mean(model, site.types, f"import {PORTS_REMEDY}")
            problem = row.problem("device_type", "a device type of the files", model, todo)
            site.problems.append(problem)
            continue
        node: dict[str, Any] = {"name": row.get("name"), "type": site.types[model][0]}
        node |= _node_facts(row, racks, site)
        if node["name"] in disabled:
            node["disabled_ports"] = disabled[node["name"]]
        listed.append(node | _extras(row, NODE_EXTRAS))
    used = {site.model(row) for row in rows} if site.rows["devices"] else set(site.types)
    for model in used & set(site.types):
        kinds = Counter(interface.type for interface in site.passed_over.get(model, ()))
        site.left_out.interfaces += kinds
    return listed


def _node_facts(row: CsvRow, racks: Collection[str], site: Site) -> dict[str, Any]:
    """The rack, the serial number, the address and the state of a device, if its row has them."""
    facts: dict[str, Any] = {}
    if row.get("rack") and row.get("rack") in racks:
        facts["rack"] = row.get("rack")
        if row.get("position"):
            facts["unit"] = _unit(row, site)
    if row.get("serial"):
        facts["serial"] = row.get("serial")
    if row.get("address"):
        facts["management"] = _address(row, site)
    if row.get("status").lower() in NOT_INSTALLED:
        facts["state"] = "planned"
    return facts


def _disabled(site: Site) -> dict[str, list[str]]:
    """By device, the names of its ports that are disabled."""
    model_of_device = {row.get("name"): site.model(row) for row in site.rows["devices"]}
    ports_of_model = {
        model: {name for block in node_type.ports for name in block.port_names()}
        for model, (_, node_type) in site.types.items()
    }
    disabled: dict[str, list[str]] = defaultdict(list)
    for row in site.rows["interfaces"]:
        names = ports_of_model.get(model_of_device.get(row.get("device"), ""), ())
        if row.get("enabled").lower() in ("false", "0", "no") and row.get("name") in names:
            disabled[row.get("device")].append(row.get("name"))
    return disabled


def _address(row: CsvRow, site: Site) -> str:
    """The management address of a device, without its prefix length."""
    address = row.get("address").partition("/")[0]
    try:
        ip_address(address)
    except ValueError:
        todo = "export the address of the device, or leave the column out"
        site.problems.append(row.problem("address", "an IP address", address, todo))
    return address


def _unit(row: CsvRow, site: Site) -> int:
    """The rack unit of a device, which NetBox prints as 12, 12.0 or 12.5."""
    try:
        unit = float(row.get("position"))
    except ValueError:
        unit = 0.0
    if unit % 1 or not 1 <= unit <= 1000:
        required = "a whole unit from 1"
        site.problems.append(row.problem("position", required, row.get("position")))
        return 1
    return int(unit)


def rack_entry(row: CsvRow) -> dict[str, Any]:
    """A rack as the inventory lists it."""
    height = row.get("u_height").lower().removesuffix("u").strip()
    units = int(height) if re.fullmatch("[0-9]{1,4}", height) else height
    return {"name": row.get("name"), "units": units} | _extras(row, RACK_EXTRAS)


def _extras(row: CsvRow, keys: tuple[str, ...]) -> dict[str, Any]:
    """The values of some keys in the comments of a row, if they have them."""
    extras = from_comment(row.values.get("comments"), row.file, row.line)
    return {key: extras[key] for key in keys if key in extras}
