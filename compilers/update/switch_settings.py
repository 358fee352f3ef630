"""The settings of switches, cables and node types in an inventory, and their changes in a build.

A *setting* is what the inventory says besides links and hosts: serial numbers, systems, rack units,
management addresses, properties of ports, lengths of cables. A changed setting changes no row of a
table. But a router may need another file, a switch another rack, or a link another cable. So
`compile`, `diff` and `plan` print the changes that `setting_changes` lists.

A switch with a serial is the same switch under any name. A switch without a serial is known by its
name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from compilers.cabling.cable_plan import Cables, cables_of
from compilers.cabling.schedule_columns import labels_of
from compilers.tables.build import Build
from compilers.wiring.node_type_facts import NodeTypeFacts

SWITCH, NODE_TYPE, CABLE = "switch", "type", "cable"
"""The kinds of things that have settings, as reports name them."""
LONGEST_VALUE = 60
"""How many characters of a value are printed, so that a change takes one line."""


class SettingChange(NamedTuple):
    """A setting that differs, of a switch or cable that stays, or of a node type."""

    kind: str
    """`SWITCH`, `NODE_TYPE` or `CABLE`."""
    name: str
    """The name of the switch in the new build, of the node type, or on the label of the cable."""
    setting: str
    """The name of the setting, such as `system`."""
    old_value: str
    """The old value in words; `none` if there was none."""
    new_value: str
    """The new value in words."""


class _SwitchSettings(NamedTuple):
    """The settings of a switch, by the names that reports print; "" for what is not set."""

    serial: str
    """Its serial number."""
    type: str
    """The name of its type."""
    system: str
    """The system that it runs, by the name of its target."""
    place: str
    """Its rack and its unit."""
    management: str
    """Its management address."""
    disabled: str
    """The ports that are disabled."""
    vars: str
    """The user's own variables of the node and its groups, as JSON."""


PORT_FIELDS = (
    "module",
    "label",
    "speed",
    "lanes",
    "connector",
    "role",
    "sockets",
    "platform",
    "plug",
)
"""The lists of `NodeTypeFacts` that have an entry for each port."""
TYPE_FIELDS = tuple(
    field.name for field in fields(NodeTypeFacts) if field.name not in ("blocks", *PORT_FIELDS)
)
"""What `NodeTypeFacts` says of a whole node type."""
SETTINGS = _SwitchSettings._fields
"""The settings that are compared."""
SETTINGS_WITHOUT_HARDWARE = tuple(name for name in SETTINGS if name not in ("serial", "place"))
"""The settings that are compared if one of the builds was made without an inventory: only an
inventory has serials and racks."""


def _switch_settings(build: Build) -> dict[str, _SwitchSettings]:
    """The settings of each switch, by its name."""
    wiring, hardware = build.wiring, build.hardware
    settings = {}
    for vertex, name in enumerate(wiring.names):
        serial = place = ""
        if hardware:
            serial = hardware.serial[vertex]
            place = f"{hardware.rack_names[hardware.rack[vertex]]} unit {hardware.unit[vertex]}"
        variables = build.node_vars.get(name, {})
        settings[name] = _SwitchSettings(
            serial=serial,
            type=wiring.type_names[wiring.node_type[vertex]],
            system=build.systems[vertex] if build.systems else "",
            place=place,
            management=wiring.management[vertex],
            disabled=" ".join(build.disabled_ports.get(name, ())),
            vars=json.dumps(variables, sort_keys=True) if variables else "",
        )
    return settings


def serials(build: Build) -> dict[str, str]:
    """The serial of each switch, by its name; only of switches whose serial is known."""
    if not build.hardware:
        return {}
    names_and_serials = zip(build.wiring.names, build.hardware.serial, strict=True)
    return {name: serial for name, serial in names_and_serials if serial}


def renamed_switches(old: Build, new: Build) -> dict[str, str]:
    """The new name of each switch with a serial that has another name now, by its old name."""
    by_serial = {serial: name for name, serial in serials(new).items()}
    names = {name: by_serial.get(serial, name) for name, serial in serials(old).items()}
    return {name: new_name for name, new_name in names.items() if name != new_name}


def new_names(old: Build, new: Build) -> dict[str, str]:
    """The name in the new build of each switch that both builds have, by its name in the old one.

    A switch whose old name now belongs to a renamed switch is not in the new build.
    """
    renamed = renamed_switches(old, new)
    names, names_of_renamed = set(new.wiring.names), set(renamed.values())
    return {
        name: renamed.get(name, name)
        for name in old.wiring.names
        if name in renamed or (name in names and name not in names_of_renamed)
    }


def setting_changes(old: Build, new: Build) -> tuple[SettingChange, ...]:
    """Settings of switches and cables that both builds have, and of types, where they differ."""
    old_settings, new_settings = _switch_settings(old), _switch_settings(new)
    names = new_names(old, new)
    both_have_hardware = old.hardware is not None and new.hardware is not None
    changes = list(_type_changes(old, new))
    for old_name, name in names.items():
        for setting in SETTINGS if both_have_hardware else SETTINGS_WITHOUT_HARDWARE:
            old_value = getattr(old_settings[old_name], setting)
            new_value = getattr(new_settings[name], setting)
            if old_value != new_value:
                values = _shown(old_value), _shown(new_value)
                changes.append(SettingChange(SWITCH, name, setting, *values))
    return (*changes, *_length_changes(old, new, names))


def _length_changes(old: Build, new: Build, names: Mapping[str, str]) -> Iterator[SettingChange]:
    """Yield the lengths that differ, of cables between the same two switches.

    Links through panels are left out: they have cords and trunks instead of one cable with a label.

    Args:
        old: the old build.
        new: the new build.
        names: the new names of switches by the old ones (`new_names`).
    """
    if not (old.hardware and new.hardware) or old.hardware.panels or new.hardware.panels:
        return
    old_cables = cables_of(old.wiring, old.hardware)
    new_cables = cables_of(new.wiring, new.hardware)
    same_ends = np.array_equal(old_cables.ends, new_cables.ends)
    if same_ends and np.array_equal(old_cables.length, new_cables.length):
        return
    # The ends of old cables are named as in the new build. A switch that is gone gets "", because
    # another switch may have its name now.
    names_in_new = [names.get(name, "") for name in old.wiring.names]
    old_keys = _cable_keys(old_cables, names_in_new)
    old_length_of = dict(zip(old_keys, old_cables.length, strict=True))
    new_keys = _cable_keys(new_cables, new.wiring.names)
    labels = labels_of(new_cables, np.arange(len(new_cables)))
    for key, label, new_length in zip(new_keys, labels, new_cables.length, strict=True):
        old_length = old_length_of.get(key, new_length)
        if old_length != new_length:
            yield SettingChange(CABLE, label, "length", f"{old_length:g} m", f"{new_length:g} m")


def _cable_keys(cables: Cables, names: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the names of the switches at both ends of each cable, in order, and its socket."""
    for (u, v), socket in zip(cables.ends.tolist(), cables.socket.tolist(), strict=True):
        first, second = sorted((names[u], names[v]))
        yield first, second, socket


def _type_changes(old: Build, new: Build) -> Iterator[SettingChange]:
    """Yield the settings that differ of node types that both builds have."""
    if not (old.hardware and new.hardware):
        return
    old_types = {old_type.name: old_type for old_type in old.hardware.types}
    for new_type in new.hardware.types:
        old_type = old_types.get(new_type.name, new_type)
        yield from _type_value_changes(old_type, new_type)
        yield from _port_changes(old_type, new_type)
        yield from _block_changes(old_type, new_type)


def _type_value_changes(old: NodeTypeFacts, new: NodeTypeFacts) -> Iterator[SettingChange]:
    """Yield the values of a whole node type that differ."""
    for field_name in TYPE_FIELDS:
        old_value, new_value = getattr(old, field_name), getattr(new, field_name)
        if old_value != new_value:
            values = _shown(old_value), _shown(new_value)
            yield SettingChange(NODE_TYPE, new.name, field_name, *values)


def _port_changes(old: NodeTypeFacts, new: NodeTypeFacts) -> Iterator[SettingChange]:
    """Yield the number of ports if it differs, and for each field the first port that differs.

    One port a field is enough to see the change, and a type may have hundreds of ports.
    """
    if len(old.label) != len(new.label):
        counts = str(len(old.label)), str(len(new.label))
        yield SettingChange(NODE_TYPE, new.name, "ports", *counts)
    for field_name in PORT_FIELDS:
        old_values, new_values = getattr(old, field_name), getattr(new, field_name)
        if bool(old_values) != bool(new_values):
            in_words = ("given" if values else "none" for values in (old_values, new_values))
            yield SettingChange(NODE_TYPE, new.name, field_name, *in_words)
        for port, old_value, new_value in zip(new.label, old_values, new_values, strict=False):
            if old_value != new_value:
                what = f"{field_name} of port {port}"
                yield SettingChange(NODE_TYPE, new.name, what, _shown(old_value), _shown(new_value))
                break


def _block_changes(old: NodeTypeFacts, new: NodeTypeFacts) -> Iterator[SettingChange]:
    """Yield the number of port blocks if it differs, and the fields that differ in a block."""
    if len(old.blocks) != len(new.blocks):
        counts = str(len(old.blocks)), str(len(new.blocks))
        yield SettingChange(NODE_TYPE, new.name, "blocks of ports", *counts)
    for number, (old_block, new_block) in enumerate(zip(old.blocks, new.blocks, strict=False), 1):
        for field in fields(new_block):
            old_value, new_value = getattr(old_block, field.name), getattr(new_block, field.name)
            if old_value != new_value:
                what = f"port block {number}, {field.name}"
                yield SettingChange(NODE_TYPE, new.name, what, _shown(old_value), _shown(new_value))


def _shown(value: Any) -> str:
    """A value as text that is printed: `none` for no value, and shortened if it is long."""
    if isinstance(value, Mapping):
        value = ", ".join(f"{key}={entry}" for key, entry in value.items())
    text = str(value) if value not in ("", (), None) else "none"
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
