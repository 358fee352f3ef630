"""CSV files of NetBox and Nautobot: what each is, and its columns under one name."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from inventory.problems import InputError, Problem, shown

ALIASES = {
    "device": ("device__name",),
    "device_type": ("type", "device_type__model", "model", "device_type__display"),
    "manufacturer": ("device_type__manufacturer__name", "device_type__manufacturer"),
    "role": ("role__name", "device_role", "device_role__name", "role__display"),
    "status": ("status__name", "status__display"),
    "rack": ("rack__name",),
    "serial": ("serial_number",),
    "address": (
        *("primary_ip", "ip_address", "primary_ip4", "primary_ip4__host", "ipv4_address"),
        *("primary_ip6", "primary_ip6__host", "ipv6_address"),
    ),
    "u_height": ("height",),
    "mgmt_only": ("management_only",),
    "a_device": (
        "side_a_device",
        "device_a",
        "termination_a__device__name",
        "termination_a_device",
    ),
    "a_name": ("side_a_name", "termination_a__name", "termination_a_name", "termination_a"),
    "a_type": ("side_a_type", "termination_a_type"),
    "a_id": ("termination_a_id",),
    "b_device": (
        "side_b_device",
        "device_b",
        "termination_b__device__name",
        "termination_b_device",
    ),
    "b_name": ("side_b_name", "termination_b__name", "termination_b_name", "termination_b"),
    "b_type": ("side_b_type", "termination_b_type"),
    "b_id": ("termination_b_id",),
    "color": ("colour",),
}
"""Columns of a table, and the names that NetBox's lists, its imports and Nautobot give them."""
TABLE_COLUMNS = {
    "cables": ("a_device", "a_name", "b_device", "b_name"),
    "interfaces": ("device", "name", "type"),
    "racks": ("name", "u_height"),
    "devices": ("name", "device_type"),
    "addresses": ("address", "device", "interface", "is_primary"),
}
"""The columns by which a table of each kind is known."""
OF_DEVICES = {
    *("device_type", "device_type__model", "position", "face", "primary_ip", "ip_address"),
    *("primary_ip4", "primary_ip4__host", "ipv4_address"),
}
"""Columns that racks do not have, which may have a type and a height as devices do."""
CABLES_BY_ID = "a_id", "b_id"
"""Nautobot's list of cables names interfaces by their ids."""
HEADINGS = {
    "cables": "Device A, Termination A, Device B, Termination B",
    "interfaces": "Device, Name, Type",
    "devices": "Name, Type",
    "racks": "Name, Height",
}
"""`TABLE_COLUMNS` as NetBox heads them in its lists."""
NETBOX_TABLES = (
    "a NetBox or Nautobot CSV of devices, racks, interfaces or cables, or a device type in YAML"
)
"""What a file should be, in messages."""
CABLE_COLUMNS = {"termination_a", "termination_b"}
"""The columns of a list of cables without devices."""
DELIMITERS = ",;|\t"
"""Those that NetBox can be told to export with (`CSVDelimiterChoices`)."""
NOTHING = {"NULL", "NoObject", "::4e6f:4f62:6a65:6374", "\N{EM DASH}"}
"""What Nautobot prints for no value and no object, the last but one in a column of addresses."""
FIELD_LIMIT = 1 << 20
"""The most characters of a value."""


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A line of a CSV file."""

    file: str
    """The name of the file."""
    line: int
    """The number of the line."""
    values: dict[str, str]
    """The values by their columns' first names of ALIASES."""
    headings: Mapping[str, str]
    """What the file calls each of these columns."""

    def get(self, column: str) -> str:
        """A value without space around it, "" where there is none."""
        value = self.values.get(column, "").strip()
        return "" if value in NOTHING else value

    def problem(self, column: str, required: str, value: str, todo: str = "") -> Problem:
        """A mistake in a value, at the column as the file heads it."""
        return self.fault(column, required, shown(value), todo)

    def fault(self, column: str, required: str, given: str, todo: str = "") -> Problem:
        """A mistake in what a column says; given: in our words."""
        heading = self.headings.get(column, column)
        return Problem(required, given, todo, self.file, self.line, heading)


def read_table(text: str, file: str) -> tuple[str, list[CsvRow]]:
    """Which of TABLE_COLUMNS a CSV text is, and its rows.

    Raises:
        InputError: it is none of them, or a row has more or fewer values than there are columns.
    """
    before = csv.field_size_limit(FIELD_LIMIT)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    try:
        headings = [cell.strip() for cell in next(lines, [])]
        header = [re.sub(r"[^a-z0-9_]+", "_", cell.lower()) for cell in headings]
        kind = _kind(header)
        if kind is None:
            raise InputError(_stranger(text, file, header))
        columns = [_name(word, kind) for word in header]
        rows = list(_rows(lines, columns, headings, file))
    except csv.Error as error:
        raise InputError.of(NETBOX_TABLES, str(error), "", file, lines.line_num) from None
    finally:
        csv.field_size_limit(before)  # of the whole process
    return kind, rows


def _delimiter(text: str) -> str:
    """The sign between the columns: of the possible ones that which the header has most."""
    header = text.partition("\n")[0]
    return max(DELIMITERS, key=header.count)


def _name(word: str, kind: str) -> str:
    """Our name of a column of a table, by the word in its header."""
    if word in TABLE_COLUMNS[kind] or (kind in ("cables", "interfaces") and word == "type"):
        return word
    return next((name for name, others in ALIASES.items() if word in others), word)


def _kind(header: list[str]) -> str | None:
    """Which of TABLE_COLUMNS a table is by the words of its header; None for none."""
    for kind in TABLE_COLUMNS:
        columns = {_name(word, kind) for word in header}
        if kind == "racks" and OF_DEVICES & set(header):
            continue
        by_id = kind == "cables" and set(CABLES_BY_ID) <= columns
        if set(TABLE_COLUMNS[kind]) <= columns or by_id:
            return kind
    return None


def _rows(
    lines: Iterator[list[str]], columns: list[str], headings: list[str], file: str
) -> Iterator[CsvRow]:
    """Yield the rows that are not empty.

    Args:
        lines: a reader behind the header.
        columns: our names of the columns.
        headings: the file's names of them.
        file: its name.

    Raises:
        InputError: a row has more or fewer values than there are columns.
    """
    # Of columns with one name the first counts.
    heading_of = dict(zip(reversed(columns), reversed(headings), strict=True))
    last_line = getattr(lines, "line_num", 1)
    for cells in lines:
        # A row begins behind the last line of the row before: a value may have several lines.
        line = last_line + 1
        last_line = getattr(lines, "line_num", line)
        if not any(cells):
            continue
        if len(cells) != len(columns):
            required = f"{len(columns)} values, one a column"
            raise InputError.of(required, f"{len(cells)}", "quote values with commas", file, line)
        yield CsvRow(file, line, _values(columns, cells), heading_of)


def _values(columns: list[str], cells: list[str]) -> dict[str, str]:
    """Of columns with one name the first that has a value: an IPv6 address where no IPv4 one is."""
    values: dict[str, str] = {}
    for column, cell in zip(columns, cells, strict=True):
        if column not in values or (_is_empty(values[column]) and not _is_empty(cell)):
            values[column] = cell
    return values


def _is_empty(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip() in ("", *NOTHING)


HINTS = (
    (re.compile(r"cable,label,bundle,"), "a cable schedule", "write it as `format netbox`"),
    (re.compile(r"\s*<"), "HTML or XML", "export the table as CSV"),
    (re.compile(r"\s*[{\[]"), "JSON", "export the table as CSV"),
)
"""Texts that are no such table: how they begin, what they are, and what to do."""


def _stranger(text: str, file: str, header: list[str]) -> Problem:
    """The problem of a text that is no such table."""
    for pattern, given, todo in HINTS:
        if pattern.match(text):
            return Problem(NETBOX_TABLES, given, todo, file, 1)
    first = next((line for line in text.splitlines() if line.strip()), "")
    headings = "; ".join(f"{kind}: {names}" for kind, names in HEADINGS.items())
    given = f"columns {shown(first, 100)}" if first else "an empty file"
    todo = f"columns that tell them: {headings}"
    if set(header) >= CABLE_COLUMNS:
        todo = "add the columns Device A and Device B to the list (Configure Table), then export it"
    return Problem(NETBOX_TABLES, given, todo, file, 1)
