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
    Facts,
    NeighbourTables,
    Seen,
    Source,
    as_mapping,
)
from compilers.targets.target_lookup import installed_systems
from inventory.problems import InputError, Problem, few, file_name, shown


@cache
def neighbour_forms() -> Mapping[str, NeighbourTables]:
    """All forms by their names: those that systems print, and a CSV table that people write."""
    printed = (system.neighbours for system in installed_systems() if system.neighbours)
    return {form.form: form for form in (*printed, neighbour_table.FORM)}


def read_facts(paths: Iterable[Path], form: str | None = None) -> Facts:
    """Read files of neighbour tables.

    Where a table is of one node, the name of the file without its last suffix names the node, or
    else a folder that it is in. A JSON file may have many tables, as a mapping from node to table.

    Args:
        paths: files and folders.
        form: a key of `neighbour_forms`; None: the contents tell.

    Raises:
        InputError: files cannot be read, or are of no known form; all of them at once.
    """
    seen: list[Seen] = []
    reporters: set[tuple[str, ...]] = set()
    forms: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    for file in device_files(paths, "neighbour tables", problems):
        try:
            for source in _sources(file.path, form):
                tables = _required_form(source, form)
                facts = list(tables.read(source))
                if tables.of_one_node:
                    facts = [_in_folders(fact, file.folders) for fact in facts]
                    forms[source.node, *file.folders] = tables.form
                    reporters.add((source.node, *file.folders))
                else:
                    reporters |= {fact.near.nodes for fact in facts}
                seen += facts
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(few(problems))
    return Facts(tuple(seen), frozenset(reporters), tuple(forms.items()))


def _in_folders(fact: Seen, folders: tuple[str, ...]) -> Seen:
    """A neighbour, with the folders of the file among the names of the node that sees it."""
    return fact._replace(near=fact.near._replace(nodes=(*fact.near.nodes, *folders)))


def _sources(path: Path, form: str | None) -> list[Source]:
    """The tables in a file: one, or several in JSON by the names of their nodes."""
    file = file_name(path)
    text = device_text(path)
    single = Source(file, text, path.stem, _json(text, file))
    data_of_node = as_mapping(single.data)
    if data_of_node and not _form_of(single, form):
        tables = [Source(file, "", str(node), data) for node, data in data_of_node.items()]
        if all(_form_of(table, form) for table in tables):
            return tables
    return [single]


def _json(text: str, file: str) -> object:
    """The value of a file of JSON, None where it is another text.

    Raises:
        InputError: it has several outputs.
    """
    clean = without_prompts(text)
    begin = behind_banner(clean, 0)
    if clean[begin : begin + 1] not in ("{", "["):
        return None
    outputs = list(json_outputs(text, file))
    if len(outputs) > 1:
        given = f"{len(outputs)} outputs"
        raise InputError.of("one neighbour table in a file", given, "a file for each", file)
    return unwrapped(outputs[0]) if outputs else {}


def _form_of(source: Source, form: str | None) -> NeighbourTables | None:
    """The form that a table fits, among all or the requested one alone; None: it fits none."""
    forms = [neighbour_forms()[form]] if form else neighbour_forms().values()
    return next((tables for tables in forms if tables.fits(source)), None)


def _required_form(source: Source, form: str | None) -> NeighbourTables:
    """The form of a table.

    Raises:
        InputError: the table fits no form, or not the requested one; with what it looks like.
    """
    if tables := _form_of(source, form):
        return tables
    for reader in neighbour_forms().values():
        for output in reader.not_read:
            if output.looks.search(source.text):
                raise source.wrong(reader.output_name, output.name, f"collect {output.instead}")
    any_of = f"a neighbour table ({', '.join(sorted(neighbour_forms()))})"
    required = neighbour_forms()[form].output_name if form else any_of
    other = _form_of(source, None)
    given = f"what looks like {other.form}" if other else _in_words(source)
    todo = f"leave `format` out, or say `format {other.form}`" if other else ""
    raise source.wrong(required, given, todo)


def _in_words(source: Source) -> str:
    """The beginning of a table of no known form: keys of JSON, an error of a device, or a line."""
    if isinstance(source.data, dict) and source.data:
        return f"JSON with {', '.join(map(shown, [*source.data][:3]))}"
    if isinstance(source.data, list) and source.data:
        keys = ", ".join(map(shown, [*as_mapping(source.data[0])][:3]))
        return f"a list in JSON, its members with {keys}" if keys else "a list in JSON"
    if refusal := REFUSAL.search(without_prompts(source.text)):
        return f"what a device says: {shown(refusal[0].strip())}"
    first = next((line.strip() for line in source.text.splitlines() if line.strip()), "")
    return shown(first or "an empty file")
