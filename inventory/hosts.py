"""Hosts as values, at their nodes or in a CSV file of all of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, WithJsonSchema

from inventory.problems import nearest, shown
from inventory.values import Guid, Line, Mac, Model, Name, Whole, refusal, refused_rows

COLUMNS = ("name", "switch", "port", "mac", "guid", "rack", "unit")
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
    if mistakes:
        raise refused_rows(str(path), sorted(mistakes))
    return rows


def _repeated(rows: Sequence[HostRow]) -> Iterator[RowMistake]:
    """Values that an earlier line has, too."""
    seen: dict[tuple[str, object], int] = {}
    for _, line, switch, host in rows:
        plug = f"{switch} {host.port}" if host.port else None
        name = str(host.name).lower()
        values = (("name", name), ("mac", host.mac), ("guid", host.guid), ("port", plug))
        for what, value in values:
            before = line if value is None else seen.setdefault((what, value), line)
            if before != line:
                given = f"{value}, also in line {before}"
                yield RowMistake(line, f"a {what} of its own", given, "change one of them")


def _rows(text: str, file: str, mistakes: list[RowMistake]) -> Iterator[HostRow]:
    """The rows without mistakes; those of the others are added to `mistakes`."""
    lines = _lines(text, Path(file).name)
    columns = _columns(next(lines, (0, []))[1])
    for line, cells in lines:
        values = {c: cell.strip() for c, cell in zip(columns, cells, strict=False) if c}
        filled: dict[str, Any] = {name: cell for name, cell in values.items() if cell}
        if not filled:
            continue
        lacking = sorted({"name", "switch"} - set(filled))
        mistakes += [RowMistake(line, f"a {word}", "none", "fill it in") for word in lacking]
        switch = filled.pop("switch", "")
        host = _host(filled, line, mistakes)
        if host and not lacking:
            yield HostRow(file, line, switch, host)


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


def _columns(heads: Sequence[str]) -> list[str]:
    """The column that each head means, "" for one that is passed over; all mistakes at once."""
    words = [SYNONYMS.get(head.strip().lower(), head.strip().lower()) for head in heads]
    columns = [word if word in COLUMNS else "" for word in words]
    wrong, meant = [], []
    for head, word in zip(heads, words, strict=True):
        if word not in COLUMNS and (near := nearest(word, COLUMNS)):
            wrong.append(f"a column that is called {near}, or has another name: it is {head}")
            meant.append(near)
    lacking = [word for word in ("name", "switch") if word not in (*columns, *meant)]
    if lacking:
        noun = "columns" if len(lacking) > 1 else "column"
        wrong.append(f"a first line with the {noun} {' and '.join(lacking)}")
    wrong += [
        f"one column {word}, not {columns.count(word)} (host, hostname and node are others' names)"
        for word in COLUMNS
        if columns.count(word) > 1
    ]
    if wrong:
        raise refusal("; ".join(wrong), "for example name,switch,port")
    return columns


def _host(cells: Mapping[str, Any], line: int, mistakes: list[RowMistake]) -> Host | None:
    """The host of a row; None where it has mistakes, which are added to `mistakes`."""
    unit = cells.get("unit", "")
    values = {**cells, "unit": int(unit)} if unit.isdecimal() else cells
    try:
        return Host.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            column, context = detail["loc"][0], detail.get("ctx", {})
            required = context.get("required", detail["msg"])
            if column == "unit":
                required = f"a whole number from 1 to {LAST_UNIT}"
            given, todo = shown(detail["input"]), context.get("todo", "")
            mistakes.append(RowMistake(line, f"as {column} {required}", given, todo))
        return None


HostFile = Annotated[
    tuple[HostRow, ...], BeforeValidator(_read), WithJsonSchema({"type": "string"})
]
