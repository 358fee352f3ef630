"""Read the routing tables of a device from one or more files, in the form of any system.

`check routes` and `push` call `read_tables` with the texts that a device printed. The form of a
JSON document tells which system printed it. Forms have the names of targets (`route_forms`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compilers.readers.devices.device_files import device_text
from compilers.readers.devices.held_routes import RouteTables, RoutingTableForm
from compilers.readers.devices.json_outputs import json_outputs, unwrapped
from compilers.targets.target_lookup import installed_systems
from inventory.problems import InputError, file_name

LONGEST_HEAD = 4096
"""How many characters of a file are searched for the beginning of a table printed as text."""
EMPTY = re.compile(r"\{\s*\}|\[\s*\]")
"""A table without routes in JSON."""
LONGEST_BEGINNING = 48
"""How many characters of an unknown document are in a message."""
LONGEST_ERROR = 160
"""How many characters of an error are in a message."""


@dataclass(frozen=True, slots=True)
class DeviceRoutes:
    """The routes of a device."""

    form: str
    """The form of its tables, a key of `route_forms`; "" where they are empty."""
    shows_all_choices: bool
    """Whether the device prints all choices for a prefix, and not only the best one."""
    tables: RouteTables
    """The routes, by table and prefix."""


@cache
def route_forms() -> Mapping[str, RoutingTableForm]:
    """The forms of routing tables, by the target of the system that prints them."""
    systems = installed_systems()
    return {system.name: system.routing_tables for system in systems if system.routing_tables}


DeviceText = tuple[str, str]
"""The text and the path of a file of a device."""


def device_texts(paths: Sequence[Path]) -> list[DeviceText]:
    """The texts of a device's files, for `read_tables`."""
    return [(device_text(path), file_name(path)) for path in paths]


def read_tables(
    texts: Sequence[DeviceText], known_prefixes: AbstractSet[str] = frozenset()
) -> DeviceRoutes:
    """The routes of a device.

    Args:
        texts: the text and the path of each file. A text has one output or several, one after the
            other. Policy rules of a kernel may come with the tables of another form, as FRR prints
            no rules.
        known_prefixes: prefixes that are known to be written as `ip_network` writes them.

    Raises:
        InputError: a text is empty, of no known form, or not of the form of the others.
    """
    outputs = _outputs(texts)
    documents, rules = outputs.documents, outputs.rules
    has_empty_table = any(EMPTY.search(text) for text, _ in texts)
    if rules and not documents and not has_empty_table:
        (form,) = rules
        required = f"routing tables: {route_forms()[form].commands}, or those of another system"
        raise InputError.of(required, "policy rules alone", "", _paths_in_words(texts))
    form_of_tables = next(iter(documents), "")
    shows_all_choices, tables = False, RouteTables()
    for form, printed in (*documents.items(), *rules.items()):
        try:
            held = route_forms()[form].read(printed)
            if form == form_of_tables:
                shows_all_choices |= held.all_choices
            tables |= held.tables(known_prefixes)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            given = f"values that it never has ({_shortened(str(error))})"
            commands = route_forms()[form].commands
            raise InputError.of(commands, given, "", _paths_in_words(texts)) from error
    return DeviceRoutes(form_of_tables, shows_all_choices, tables)


def _shortened(text: str) -> str:
    """A text that fits a message."""
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The JSON documents of a device's files, by form."""

    documents: dict[str, list[Any]]
    """Routing tables, all of one form."""
    rules: dict[str, list[Any]]
    """Policy rules."""


def _outputs(texts: Sequence[DeviceText]) -> _Outputs:
    """The JSON documents in texts; see `read_tables`."""
    outputs = _Outputs({}, {})
    for text, path in texts:
        if not text.strip():
            raise InputError.of("routing tables", "an empty file", "collect them again", path)
        for name, form in route_forms().items():
            if form.text and form.text.search(text, 0, LONGEST_HEAD):
                given = f"a routing table of {name} as text"
                raise InputError.of("JSON", given, f"collect {form.commands}", path)
        for output in json_outputs(text, path):
            document = unwrapped(output)
            name = _form_of(path, document)
            has_rules = _has_rules(name, document)
            by_form = outputs.rules if has_rules else outputs.documents
            by_form.setdefault(name, []).append(document)
            if len(outputs.documents) > 1:
                other = next(iter(outputs.documents.keys() - {name}))
                required = f"one form for all tables of a device: {route_forms()[other].commands}"
                raise InputError.of(required, f"that of {name}", "", path)
    return outputs


def _paths_in_words(texts: Sequence[DeviceText]) -> str:
    """The paths of texts, for messages."""
    return " and ".join(path for _, path in texts)


def _has_rules(form: str, document: Any) -> bool:
    """Whether a document is a list of policy rules, and not of routes."""
    key = route_forms()[form].rules_key
    return bool(key) and key in document[0]


def _form_of(path: str, document: Any) -> str:
    """The form of a document.

    Raises:
        InputError: it has no known form.
    """
    for name, form in route_forms().items():
        if form.fits(document):
            return name
    commands = (f"{name}: {form.commands}" for name, form in route_forms().items())
    required = "the output of one of: " + "; ".join(commands)
    given = f"JSON that begins with {json.dumps(document)[:LONGEST_BEGINNING]}"
    raise InputError.of(required, given, "", path)
