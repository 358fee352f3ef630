"""Hosts as values, at their nodes or in a CSV file of all of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, WithJsonSchema

from inventory.problems import nearest
from inventory.values import Guid, Line, Mac, Model, Name, Whole, refusal

COLUMNS = ("name", "switch", "port", "mac", "guid", "rack", "unit")
SYNONYMS = {"host": "name", "hostname": "name", "node": "switch"}


class Host(Model):
    """An endpoint at a node's host port: its name, its MAC address, its adapter's port GUID.

    port: the name of the node's port that it is plugged into. What is left out is made up, or stays
    unknown. Where its rack is known, its cable has a length; unit is the one that its adapter is
    at.
    """

    absent: ClassVar[bool] = False

    name: Name | None = None
    port: Line | None = None
    mac: Mac | None = None
    guid: Guid | None = None
    rack: Name | None = None
    unit: Annotated[Whole, Field(ge=1, le=1000)] | None = None


class NoHost(Host):
    """A place without a host among those of a node: hosts behind it keep theirs."""

    absent: ClassVar[bool] = True


class HostRow(NamedTuple):
    """A line of the file: the host, and the name of its switch."""

    line: int
    switch: str
    host: Host


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
    rows = tuple(_rows(text, value))
    if not rows:
        todo = "for a fabric without hosts leave hosts out, and write host_count: 0 in each type"
        raise refusal("a line for each host below the first line; there is none", todo)
    seen: dict[tuple[str, object], int] = {}
    for line, switch, host in rows:
        named = str(host.name).lower()
        plug = (switch, host.port) if host.port else None
        for what, own in (("name", named), ("mac", host.mac), ("guid", host.guid), ("port", plug)):
            if own is not None and (before := seen.setdefault((what, own), line)) != line:
                raise refusal(f"a {what} of its own in line {line}; line {before} has the same")
    return rows


def _rows(text: str, file: str) -> Iterator[HostRow]:
    lines = _lines(text, file)
    columns = _columns(next(lines, (0, []))[1])
    for line, cells in lines:
        found = {c: cell.strip() for c, cell in zip(columns, cells, strict=False) if c}
        given: dict[str, Any] = {name: cell for name, cell in found.items() if cell}
        if not given:
            continue
        if missing := {"name", "switch"} - set(given):
            raise refusal(f"a {min(missing)} in line {line}")
        yield HostRow(line, given.pop("switch"), _host(given, line))


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
    known = [word if word in COLUMNS else "" for word in words]
    wrong, meant = [], []
    for head, word in zip(heads, words, strict=True):
        if word not in COLUMNS and (near := nearest(word, COLUMNS)):
            wrong.append(f"a column that is called {near}, or has another name: it is {head}")
            meant.append(near)
    lacking = [word for word in ("name", "switch") if word not in (*known, *meant)]
    if lacking:
        columns = f"column{'s' * (len(lacking) > 1)} {' and '.join(lacking)}"
        wrong.append(f"a first line with the {columns}")
    wrong += [
        f"one column {word}, not {known.count(word)} (host, hostname and node are others' names)"
        for word in COLUMNS
        if known.count(word) > 1
    ]
    if wrong:
        raise refusal("; ".join(wrong), "for example name,switch,port")
    return known


def _host(given: Mapping[str, Any], line: int) -> Host:
    unit = given.get("unit", "")
    values = {**given, "unit": int(unit)} if unit.isdecimal() else given
    try:
        return Host.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise refusal(f"in line {line} as {first['loc'][0]}: {first['msg']}") from None


HostFile = Annotated[
    tuple[HostRow, ...], BeforeValidator(_read), WithJsonSchema({"type": "string"})
]
