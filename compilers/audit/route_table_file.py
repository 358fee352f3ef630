"""Files of routing tables, one or more a device, whatever system printed them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from compilers.readers.devices.device_files import device_text
from compilers.readers.devices.held_routes import HeldRoutes, RouteTables
from compilers.readers.devices.json_outputs import json_outputs
from compilers.targets.eos import routing_tables as eos_routes
from compilers.targets.frr import routing_tables as frr_routes
from compilers.targets.junos import routing_tables as junos_routes
from compilers.targets.linux import routing_tables as kernel_routes
from compilers.targets.nxos import routing_tables as nxos_routes
from compilers.targets.sonic import routing_tables as sonic_routes
from compilers.targets.srlinux import routing_tables as srlinux_routes
from inventory.problems import InputError

LINUX, RULES = "linux", "rules"
ROUTE_FORMS: dict[str, ModuleType] = {
    LINUX: kernel_routes,
    "frr": frr_routes,
    "sonic": sonic_routes,
    "eos": eos_routes,
    "nxos": nxos_routes,
    "junos": junos_routes,
    "srlinux": srlinux_routes,
}
"""The forms, by the target whose systems print them."""
FORMS_IN_WORDS = {name: form.COMMANDS for name, form in ROUTE_FORMS.items()}
MOST_WORDS = 160
"""Letters of an error that a message says."""


@dataclass(frozen=True, slots=True)
class DeviceRoutes:
    """The routes of a device.

    form: one of ROUTE_FORMS, "" where the tables are empty. whole: whether every choice is shown,
    not the best one alone.
    """

    form: str
    whole: bool
    tables: RouteTables


def device_texts(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """The texts of a device's files, for `read_tables`."""
    return [(device_text(path), str(path)) for path in paths]


def read_tables(
    texts: Sequence[tuple[str, str]], known: AbstractSet[str] = frozenset()
) -> DeviceRoutes:
    """The routes of a device.

    Args:
        texts: each of one output or several, one after the other, and its path. The policy rules of
            a kernel may be given with the tables of another form.
        known: prefixes that are as `ip_network` writes them.

    Raises:
        InputError: a text is empty, of no known form, or of another than the others.
    """
    documents: dict[str, list[Any]] = {}
    for text, path in texts:
        if not text.strip():
            raise InputError.of("routing tables", "an empty file", "collect them again", path)
        for document in json_outputs(text, path):
            form = _form(path, document)
            documents.setdefault(RULES if _is_rules(form, document) else form, []).append(document)
            if len(forms := documents.keys() - {RULES}) > 1:
                other = next(iter(forms - {form}))
                required = f"one form for all tables of a device: {FORMS_IN_WORDS[other]}"
                raise InputError.of(required, f"that of {form}", "", path)
    form = next(iter(documents.keys() - {RULES}), "")
    rules = documents.pop(RULES, [])
    try:
        held: HeldRoutes = ROUTE_FORMS[form].read(documents[form]) if form else HeldRoutes()
        held.rows |= kernel_routes.read(rules).rows
        return DeviceRoutes(form, held.whole, held.tables(known))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        text = str(error)
        short = text if len(text) <= MOST_WORDS else f"{text[: MOST_WORDS - 1]}…"
        given = f"values that it never has ({short})"
        places = " and ".join(path for _, path in texts)
        raise InputError.of(FORMS_IN_WORDS[form or LINUX], given, "", places) from error


def _is_rules(form: str, document: Any) -> bool:
    return form == LINUX and "priority" in document[0]


def _form(path: str, document: Any) -> str:
    for name, form in ROUTE_FORMS.items():
        if form.fits(document):
            return name
    required = "the output of one of: " + "; ".join(f"{t}: {w}" for t, w in FORMS_IN_WORDS.items())
    given = f"JSON that begins with {json.dumps(document)[:48]}"
    raise InputError.of(required, given, "", path)
