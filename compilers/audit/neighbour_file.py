"""Read files and folders of neighbour tables, in any of the forms that systems and tools print.

A neighbour table says which node and port a node sees at each of its ports (LLDP and others).
`check wiring` calls `read_facts`, which returns what all tables say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from compilers.readers.devices import neighbour_table
from compilers.readers.devices.device_files import (
    REFUSAL,
    behind_banner,
    device_files,
    device_text,
    without_prompts,
)
from compilers.readers.devices.json_outputs import json_outputs, unwrapped
from compilers.readers.devices.neighbour_facts import (
    NeighbourFacts,
    NeighbourForm,
    NeighbourSighting,
    NeighbourTable,
    as_mapping,
)
from compilers.targets.target_lookup import installed_systems
from inventory.problems import InputError, Problem, few, file_name, shown

MOST_KEYS = 3
"""How many keys of unknown JSON are in a message."""


@cache
def neighbour_forms() -> Mapping[str, NeighbourForm]:
    """All forms by their names: those that systems print, and a CSV table that people write."""
    printed = (system.neighbours for system in installed_systems() if system.neighbours)
    return {form.name: form for form in (*printed, neighbour_table.FORM)}


def read_facts(paths: Iterable[Path], form: str | None = None) -> NeighbourFacts:
    """Read files of neighbour tables.

    Where a table is of one node, the name of the file without its last suffix names the node, or
    else a folder that it is in. A JSON file may have many tables, as a mapping from node to table.

    Args:
        paths: files and folders.
        form: a key of `neighbour_forms`; None: the contents tell.

    Raises:
        InputError: files cannot be read, or are of no known form; all of them at once.
    """
    seen: list[NeighbourSighting] = []
    reporters: set[tuple[str, ...]] = set()
    form_names: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    requested = neighbour_forms()[form] if form else None
    for file in device_files(paths, "neighbour tables", problems):
        try:
            for table in _tables_in(file.path, requested):
                table_form = _require_form(table, requested)
                facts = list(table_form.read(table))
                if table_form.of_one_node:
                    facts = [_in_folders(fact, file.folders) for fact in facts]
                    reporter = (table.node, *file.folders)
                    form_names[reporter] = table_form.name
                    reporters.add(reporter)
                else:
                    reporters |= {fact.near.nodes for fact in facts}
                seen += facts
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(few(problems))
    return NeighbourFacts(tuple(seen), frozenset(reporters), tuple(form_names.items()))


def _in_folders(fact: NeighbourSighting, folders: tuple[str, ...]) -> NeighbourSighting:
    """A neighbour, with the folders of the file among the names of the node that sees it."""
    return fact._replace(near=fact.near._replace(nodes=(*fact.near.nodes, *folders)))


def _tables_in(path: Path, requested: NeighbourForm | None) -> list[NeighbourTable]:
    """The tables in a file: one, or several in JSON by the names of their nodes.

    Args:
        path: the file.
        requested: the form that the tables should have; None: any.
    """
    file = file_name(path)
    text = device_text(path)
    whole_file = NeighbourTable(file, text, path.stem, _json(text, file))
    data_of_node = as_mapping(whole_file.data)
    # Tables of some forms are JSON objects themselves, whose keys name no nodes.
    if data_of_node and not _form_of(whole_file, requested):
        tables = [NeighbourTable(file, "", str(node), data) for node, data in data_of_node.items()]
        if all(_form_of(table, requested) for table in tables):
            return tables
    return [whole_file]


def _json(text: str, file: str) -> object:
    """The value of a file of JSON, None where it is another text.

    Raises:
        InputError: it has several outputs.
    """
    clean = without_prompts(text)
    start = behind_banner(clean, 0)
    if clean[start : start + 1] not in ("{", "["):
        return None
    outputs = list(json_outputs(text, file))
    if len(outputs) > 1:
        count = f"{len(outputs)} outputs"
        raise InputError.of("one neighbour table in a file", count, "a file for each", file)
    return unwrapped(outputs[0]) if outputs else {}


def _form_of(table: NeighbourTable, requested: NeighbourForm | None = None) -> NeighbourForm | None:
    """The form that a table fits; None: it fits none.

    Args:
        table: the table.
        requested: the only form that is tried; None: all are.
    """
    forms = [requested] if requested else neighbour_forms().values()
    return next((form for form in forms if form.fits(table)), None)


def _require_form(table: NeighbourTable, requested: NeighbourForm | None) -> NeighbourForm:
    """The form of a table.

    Raises:
        InputError: the table fits no form, or not the requested one; with what it looks like.
    """
    if form := _form_of(table, requested):
        return form
    for known_form in neighbour_forms().values():
        for output in known_form.not_read:
            if output.pattern.search(table.text):
                todo = f"collect {output.command}"
                raise table.wrong(known_form.output_name, output.name, todo)
    any_form = f"a neighbour table ({', '.join(sorted(neighbour_forms()))})"
    required = requested.output_name if requested else any_form
    if actual := _form_of(table):
        todo = f"leave `format` out, or say `format {actual.name}`"
        raise table.wrong(required, f"what looks like {actual.name}", todo)
    raise table.wrong(required, _beginning_in_words(table))


def _beginning_in_words(table: NeighbourTable) -> str:
    """The beginning of a table of no known form: keys of JSON, an error of a device, or a line."""
    if isinstance(table.data, dict) and table.data:
        return f"JSON with {', '.join(map(shown, [*table.data][:MOST_KEYS]))}"
    if isinstance(table.data, list) and table.data:
        keys = ", ".join(map(shown, [*as_mapping(table.data[0])][:MOST_KEYS]))
        return f"a list in JSON, its members with {keys}" if keys else "a list in JSON"
    if refusal := REFUSAL.search(without_prompts(table.text)):
        return f"what a device says: {shown(refusal[0].strip())}"
    first_line = next((line.strip() for line in table.text.splitlines() if line.strip()), "")
    return shown(first_line or "an empty file")
