"""The models of hosts in an inventory, at their nodes or in a CSV file of all hosts.

`HostFile` is the type of an inventory's `hosts`: pydantic calls `_read_host_file` with the name of
the file. All mistakes in the file are collected as `RowMistake`s.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, WithJsonSchema

from inventory.problems import did_you_mean, nearest, shown
from inventory.values import Guid, Line, Mac, Model, Name, Whole, refusal, refused_rows

COLUMNS = ("name", "switch", "port", "mac", "guid", "rack", "unit")
"""The columns of the file of hosts."""
REQUIRED_COLUMNS = ("name", "switch")
"""The columns that the file must have."""
SYNONYMS = {"host": "name", "hostname": "name", "node": "switch"}
"""Other headings that are accepted, with the columns that they stand for."""
LAST_UNIT = 1000
"""The highest rack unit of a host."""
SPARE = "it is a spare: the inventory lists more nodes than the fabric has switches"
"""Why a listed node is not one of the fabric."""


class Host(Model):
    """An endpoint at a node's host port. What is left out is made up, or stays unknown."""

    absent: ClassVar[bool] = False
    """Whether there is no host at this place."""
    name: Name | None = None
    """The name of the host."""
    port: Line | None = None
    """The name of the node's port that it is plugged into."""
    mac: Mac | None = None
    """The MAC address."""
    guid: Guid | None = None
    """The GUID of its adapter's port."""
    rack: Name | None = None
    """The host's rack. With it the host's cable has a length."""
    unit: Annotated[Whole, Field(ge=1, le=LAST_UNIT)] | None = None
    """The rack unit of its adapter."""


class NoHost(Host):
    """A place without a host among those of a node: hosts behind it keep theirs."""

    absent: ClassVar[bool] = True


class HostRow(NamedTuple):
    """A line of the file of hosts."""

    file: str
    """The name of the file."""
    line: int
    """The number of the line."""
    switch: str
    """The name of the host's switch."""
    host: Host
    """The host."""


class RowMistake(NamedTuple):
    """A mistake in a line of the file of hosts."""

    line: int
    """The number of the line."""
    required: str
    """What should be there."""
    given: str
    """What is there."""
    todo: str = ""
    """What the reader can do about it."""


def _read_host_file(value: Any, info: ValidationInfo) -> Any:
    """The rows of the CSV file of this name, next to the inventory."""
    if not isinstance(value, str):
        raise refusal("the name of a CSV file", "one with the columns name, switch and port")
    path = Path((info.context or {}).get("folder", "")) / value
    mistakes: list[RowMistake] = []
    rows = tuple(_rows(_text(path), str(path), mistakes))
    if not rows and not mistakes:
        todo = "for a fabric without hosts leave hosts out, and write host_count: 0 in each type"
        raise refusal("a line for each host below the first line; there is none", todo)
    mistakes += _repeated_values(rows)
    nodes, generate = info.data.get("nodes"), info.data.get("generate")
    if nodes:
        node_names = {node.name for node in nodes}
        mistakes += [mistake for _, mistake in switch_mistakes(rows, node_names, node_names)]
    elif generate:
        patterns = [part.name or generate.name for part in generate.parts]
        mistakes += _unknown_generated_switches(rows, patterns)
    if mistakes:
        raise refused_rows(str(path), sorted(mistakes))
    return rows


def _text(path: Path) -> str:
    """The text of the file of hosts.

    Raises:
        PydanticCustomError: the file cannot be read, or is not in UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise refusal("a CSV file that can be read", error.strerror or "") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise refusal(f"a CSV file in UTF-8: line {line} is not", "save it as UTF-8") from None


def switch_mistakes(
    rows: Iterable[HostRow], switches: Collection[str], node_names: Collection[str]
) -> Iterator[tuple[HostRow, RowMistake]]:
    """Mistakes in the switches and names of hosts, each with its row.

    Args:
        rows: the lines of the file of hosts.
        switches: the names of the nodes that may have hosts.
        node_names: the names of all nodes, which no host may have.
    """
    names_of_nodes = {name.lower() for name in node_names}
    for row in rows:
        if row.switch and row.switch not in switches:
            required = "a node of the fabric as switch"
            is_spare = row.switch in node_names
            todo = SPARE if is_spare else did_you_mean(row.switch, switches)
            yield row, RowMistake(row.line, required, shown(row.switch), todo)
        name = row.host.name
        if name and name.lower() in names_of_nodes:
            yield row, RowMistake(row.line, "a name that no node has", name, "change one")


def _unknown_generated_switches(
    rows: Iterable[HostRow], patterns: Sequence[str]
) -> Iterator[RowMistake]:
    """Switches whose names no generated node can have; how many nodes there are is not known yet.

    Args:
        rows: the lines of the file of hosts.
        patterns: the names of generated nodes, with {} for the vertex.
    """
    numbered = "|".join(re.escape(pattern).replace(r"\{\}", "[0-9]+") for pattern in patterns)
    name = re.compile(f"(p[0-9]+-)?({numbered})")
    todo = f"generated nodes are called {' or '.join(patterns)}, with their vertex for {{}}"
    for row in rows:
        if row.switch and not name.fullmatch(row.switch):
            yield RowMistake(row.line, "a node of the fabric as switch", shown(row.switch), todo)


def _repeated_values(rows: Sequence[HostRow]) -> Iterator[RowMistake]:
    """Values that an earlier line has, too: names, addresses and ports."""
    first_line: dict[tuple[str, object], int] = {}
    for row in rows:
        host = row.host
        plug = f"{row.switch} {host.port}" if row.switch and host.port else None
        values = {"name": host.name, "mac": host.mac, "guid": host.guid, "port": plug}
        for column, value in values.items():
            if value is None:
                continue
            # Names that differ only in case are one name.
            key = value.lower() if column == "name" and isinstance(value, str) else value
            line = first_line.setdefault((column, key), row.line)
            if line != row.line:
                given = f"{value}, also in line {line}"
                yield RowMistake(row.line, f"a {column} of its own", given, "change one of them")


def _rows(text: str, file: str, mistakes: list[RowMistake]) -> Iterator[HostRow]:
    """The rows, without the cells that have mistakes.

    Args:
        text: the text of the file.
        file: the name of the file.
        mistakes: gets the mistakes.
    """
    lines = _lines(text, Path(file).name)
    _, heads = next(lines, (1, []))
    columns = _columns(heads, mistakes)
    required = [column for column in REQUIRED_COLUMNS if column in columns]
    for line, cells in lines:
        filled: dict[str, Any] = {}
        for column, cell in zip(columns, cells, strict=False):
            if column and cell.strip():
                filled[column] = cell.strip()
        if not filled:
            continue
        lacking = [column for column in required if column not in filled]
        mistakes += [RowMistake(line, f"a {column}", "none", "fill it in") for column in lacking]
        switch = filled.pop("switch", "")
        yield HostRow(file, line, switch, _host(filled, line, mistakes))


def _lines(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the line where each row ends, and the cells of the row."""
    lines = text.splitlines()
    first_line = lines[0] if lines else ""
    reader = csv.reader(lines, delimiter=max(",;\t", key=first_line.count), strict=True)
    first = 1
    try:
        for cells in reader:
            yield reader.line_num, cells
            first = reader.line_num + 1
    except csv.Error as error:
        given = f"{error} in the row from line {first} of {file}"
        raise refusal("rows of a CSV file", f"{given}; are its quotes closed?") from None


def _columns(heads: Sequence[str], mistakes: list[RowMistake]) -> list[str]:
    """The column of each heading; "" for a heading that is ignored.

    A heading that is nearly a column's name is read as that column, so that mistakes in its cells
    are reported, too.

    Args:
        heads: the cells of the first line.
        mistakes: gets the mistakes.
    """
    columns: list[str] = []
    todo = "for example name,switch,port"
    for head in heads:
        column = SYNONYMS.get(head.strip().lower(), head.strip().lower())
        if column not in COLUMNS:
            similar = nearest(column, COLUMNS)
            if similar:
                required = f"a column that is called {similar}, or has another name"
                mistakes.append(RowMistake(1, required, shown(head), todo))
            column = "" if similar in columns else similar
        elif column in columns:
            required = f"one column {column} (host, hostname and node are others' names)"
            mistakes.append(RowMistake(1, required, f"another one, {shown(head)}", todo))
            column = ""
        columns.append(column)
    lacking = [column for column in REQUIRED_COLUMNS if column not in columns]
    if lacking:
        noun = "columns" if len(lacking) > 1 else "column"
        required = f"a first line with the {noun} {' and '.join(lacking)}"
        mistakes.append(RowMistake(1, required, shown(",".join(heads)), todo))
    return columns


def _host(cells: Mapping[str, Any], line: int, mistakes: list[RowMistake]) -> Host:
    """The host of a row, without the cells that have mistakes.

    Args:
        cells: the cells of the row, by column.
        line: the number of the row's line.
        mistakes: gets the mistakes.
    """
    values = dict(cells)
    if "unit" in values and values["unit"].isdecimal():
        values["unit"] = int(values["unit"])
    try:
        return Host.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        column, context = detail["loc"][0], detail.get("ctx", {})
        required = context.get("required", detail["msg"])
        if column == "unit":
            required = f"a whole number from 1 to {LAST_UNIT}"
        given, todo = shown(detail["input"]), context.get("todo", "")
        mistakes.append(RowMistake(line, f"as {column} {required}", given, todo))
        values.pop(str(column), None)
    return Host.model_validate(values)


HostFile = Annotated[
    tuple[HostRow, ...], BeforeValidator(_read_host_file), WithJsonSchema({"type": "string"})
]
"""The rows of a CSV file of hosts; an inventory has the name of the file."""
