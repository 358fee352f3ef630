"""Hosts as values, at their nodes or in a CSV file of all of them."""

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
REQUIRED_COLUMNS = ("name", "switch")
LAST_UNIT = 1000
SYNONYMS = {"host": "name", "hostname": "name", "node": "switch"}


class Host(Model):
    """An endpoint at a node's host port. What is left out is made up, or stays unknown."""

    absent: ClassVar[bool] = False

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


def _read(value: Any, info: ValidationInfo) -> Any:
    """The rows of the file of this name, next to the inventory."""
    if not isinstance(value, str):
        raise refusal("the name of a CSV file", "one with the columns name, switch and port")
    try:
        path = Path((info.context or {}).get("folder", "")) / value
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise refusal("a CSV file that can be read", error.strerror or "") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise refusal(f"a CSV file in UTF-8: line {line} is not", "save it as UTF-8") from None
    mistakes: list[RowMistake] = []
    rows = tuple(_rows(text, str(path), mistakes))
    if not rows and not mistakes:
        todo = "for a fabric without hosts leave hosts out, and write host_count: 0 in each type"
        raise refusal("a line for each host below the first line; there is none", todo)
    mistakes += _repeated(rows)
    if nodes := info.data.get("nodes"):
        node_names = {node.name for node in nodes}
        mistakes += [mistake for _, mistake in switch_mistakes(rows, node_names, node_names)]
    elif generate := info.data.get("generate"):
        patterns = [part.name or generate.name for part in generate.parts]
        mistakes += _not_generated(rows, patterns)
    if mistakes:
        raise refused_rows(str(path), sorted(mistakes))
    return rows


def switch_mistakes(
    rows: Iterable[HostRow], switches: Collection[str], node_names: Iterable[str]
) -> Iterator[tuple[HostRow, RowMistake]]:
    """Mistakes in which switch a host is at, and in whose name it has, with the row of each.

    Args:
        rows: the lines of the file of hosts.
        switches: the names of the nodes that may have hosts.
        node_names: the names of all nodes, which no host may have.
    """
    taken = {name.lower() for name in node_names}
    for row in rows:
        if row.switch and row.switch not in switches:
            required, todo = "a node with a vertex as switch", did_you_mean(row.switch, switches)
            yield row, RowMistake(row.line, required, shown(row.switch), todo)
        name = row.host.name
        if name and name.lower() in taken:
            yield row, RowMistake(row.line, "a name that no node has", name, "change one")


def _not_generated(rows: Iterable[HostRow], patterns: Sequence[str]) -> Iterator[RowMistake]:
    """Switches that no generated node can be called; how many nodes there are is not known yet.

    Args:
        rows: the lines of the file of hosts.
        patterns: the names of generated nodes, with {} for the vertex.
    """
    numbered = "|".join(re.escape(pattern).replace(r"\{\}", "[0-9]+") for pattern in patterns)
    name = re.compile(f"(p[0-9]+-)?({numbered})")
    todo = f"generated nodes are called {' or '.join(patterns)}, with their vertex for {{}}"
    for row in rows:
        if row.switch and not name.fullmatch(row.switch):
            yield RowMistake(row.line, "a node with a vertex as switch", shown(row.switch), todo)


def _repeated(rows: Sequence[HostRow]) -> Iterator[RowMistake]:
    """Values that an earlier line has, too."""
    seen: dict[tuple[str, object], int] = {}
    for _, line, switch, host in rows:
        plug = f"{switch} {host.port}" if switch and host.port else None
        values = (("name", host.name), ("mac", host.mac), ("guid", host.guid), ("port", plug))
        for what, value in values:
            # Names that differ only in case are one name.
            key = value.lower() if what == "name" and value else value
            before = line if key is None else seen.setdefault((what, key), line)
            if before != line:
                given = f"{value}, also in line {before}"
                yield RowMistake(line, f"a {what} of its own", given, "change one of them")


def _rows(text: str, file: str, mistakes: list[RowMistake]) -> Iterator[HostRow]:
    """The rows without the cells that have mistakes; the mistakes are added to `mistakes`."""
    lines = _lines(text, Path(file).name)
    columns = _columns(next(lines, (1, []))[1], mistakes)
    required = [word for word in REQUIRED_COLUMNS if word in columns]
    for line, cells in lines:
        values = {c: cell.strip() for c, cell in zip(columns, cells, strict=False) if c}
        filled: dict[str, Any] = {name: cell for name, cell in values.items() if cell}
        if not filled:
            continue
        lacking = [word for word in required if word not in filled]
        mistakes += [RowMistake(line, f"a {word}", "none", "fill it in") for word in lacking]
        switch = filled.pop("switch", "")
        yield HostRow(file, line, switch, _host(filled, line, mistakes))


def _lines(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, and the line where it ends."""
    lines = text.splitlines()
    head = lines[0] if lines else ""
    reader = csv.reader(lines, delimiter=max(",;\t", key=head.count), strict=True)
    first = 1
    try:
        for cells in reader:
            yield reader.line_num, cells
            first = reader.line_num + 1
    except csv.Error as error:
        given = f"{error} in the row from line {first} of {file}"
        raise refusal("rows of a CSV file", f"{given}; are its quotes closed?") from None


def _columns(heads: Sequence[str], mistakes: list[RowMistake]) -> list[str]:
    """The column that each head means, "" for one that is passed over.

    Mistakes are added to `mistakes`. A head that is nearly a column's name is read as that column,
    so that the mistakes in its cells are reported, too.
    """
    columns: list[str] = []
    wrong = []
    for head in heads:
        word = SYNONYMS.get(head.strip().lower(), head.strip().lower())
        if word not in COLUMNS:
            near = nearest(word, COLUMNS) or ""
            if near:
                required = f"a column that is called {near}, or has another name"
                wrong.append((required, shown(head)))
            word = "" if near in columns else near
        elif word in columns:
            required = f"one column {word} (host, hostname and node are others' names)"
            wrong.append((required, f"another one, {shown(head)}"))
            word = ""
        columns.append(word)
    if lacking := [word for word in REQUIRED_COLUMNS if word not in columns]:
        noun = "columns" if len(lacking) > 1 else "column"
        required = f"a first line with the {noun} {' and '.join(lacking)}"
        wrong.append((required, shown(",".join(heads))))
    todo = "for example name,switch,port"
    mistakes += [RowMistake(1, required, given, todo) for required, given in wrong]
    return columns


def _host(cells: Mapping[str, Any], line: int, mistakes: list[RowMistake]) -> Host:
    """The host of a row without the cells that have mistakes, which are added to `mistakes`."""
    unit = cells.get("unit", "")
    values = {**cells, "unit": int(unit)} if unit.isdecimal() else cells
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
    wrong = {detail["loc"][0] for detail in details}
    return Host.model_validate({name: cell for name, cell in values.items() if name not in wrong})


HostFile = Annotated[
    tuple[HostRow, ...], BeforeValidator(_read), WithJsonSchema({"type": "string"})
]
