"""Hosts as values, at their nodes or in a CSV file of all of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, WithJsonSchema

from inventory.problems import nearest
from inventory.values import Guid, Line, Mac, Model, Name, Whole, refusal

COLUMNS = ("name", "switch", "port", "mac", "guid", "rack", "unit")
SYNONYMS = {"host": "name", "hostname": "name", "node": "switch"}
ALIKE = 0.75
"""How much the head of an unknown column is like one that was meant: others are passed over."""


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
    """The rows of the file of this name, beside the inventory."""
    if not isinstance(value, str):
        raise refusal("the name of a CSV file", "one with the columns name, switch and port")
    try:
        path = Path((info.context or {}).get("folder", "")) / value
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal("a CSV file that can be read", getattr(error, "strerror", "") or "") from None
    rows = tuple(_rows(text))
    seen: dict[tuple[str, object], int] = {}
    for line, switch, host in rows:
        named = str(host.name).lower()
        plug = (switch, host.port) if host.port else None
        for what, own in (("name", named), ("mac", host.mac), ("guid", host.guid), ("port", plug)):
            if own is not None and (before := seen.setdefault((what, own), line)) != line:
                raise refusal(f"a {what} of its own in line {line}; line {before} has the same")
    return rows


def _rows(text: str) -> Iterator[HostRow]:
    lines = text.splitlines()
    head = lines[0] if lines else ""
    reader = csv.reader(lines, delimiter=max(",;\t", key=head.count))
    columns = [_column(word) for word in next(reader, [])]
    if missing := {"name", "switch"} - set(columns):
        raise refusal(
            f"a first line with the column {min(missing)}", "for example name,switch,port"
        )
    for cells in reader:
        found = {c: cell.strip() for c, cell in zip(columns, cells, strict=False) if c}
        given: dict[str, Any] = {name: cell for name, cell in found.items() if cell}
        if not given:
            continue
        if missing := {"name", "switch"} - set(given):
            raise refusal(f"a {min(missing)} in line {reader.line_num}")
        yield HostRow(reader.line_num, given.pop("switch"), _host(given, reader.line_num))


def _column(head: str) -> str:
    """The column that a head means, "" for one that is passed over."""
    word = head.strip().lower()
    word = SYNONYMS.get(word, word)
    if word not in COLUMNS and (meant := nearest(word, COLUMNS, ALIKE)):
        raise refusal(f"a column that is called {meant}, or has another name", f"it is {head}")
    return word if word in COLUMNS else ""


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
