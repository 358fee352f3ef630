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
CABLE_COLUMNS = {"termination_a", "termination_b"}
DELIMITERS = ",;|\t"
"""Those that NetBox can be told to export with (`CSVDelimiterChoices`)."""
NOTHING = {"NULL", "NoObject", "::4e6f:4f62:6a65:6374", "\N{EM DASH}"}
"""What Nautobot prints for no value and no object, the last but one in a column of addresses."""
FIELD_LIMIT = 1 << 20


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

    def get(self, word: str) -> str:
        """A value without space around it, "" where there is none."""
        value = self.values.get(word, "").strip()
        return "" if value in NOTHING else value

    def problem(self, word: str, required: str, value: str, todo: str = "") -> Problem:
        """A mistake in a value, at the column as the file heads it."""
        return self.fault(word, required, shown(value), todo)

    def fault(self, word: str, required: str, given: str, todo: str = "") -> Problem:
        """A mistake in what a column says; given: in our words."""
        heading = self.headings.get(word, word)
        return Problem(required, given, todo, self.file, self.line, heading)


def read_table(text: str, file: str) -> tuple[str, list[CsvRow]]:
    """Which of KINDS a CSV text is, and its rows.

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
    if word in TABLE_COLUMNS[kind] or (kind in ("cables", "interfaces") and word == "type"):
        return word
    return next((name for name, others in ALIASES.items() if word in others), word)


def _kind(header: list[str]) -> str | None:
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
    line, after = 1, getattr(lines, "line_num", 1)
    heads = dict(zip(reversed(columns), reversed(headings), strict=True))
    for cells in lines:
        line, after = after + 1, getattr(lines, "line_num", after + 1)
        if not any(cells):
            continue
        if len(cells) != len(columns):
            given = f"{len(cells)}"
            required = f"{len(columns)} values, one a column"
            raise InputError.of(required, given, "quote values with commas", file, line)
        yield CsvRow(file, line, _values(columns, cells), heads)


def _values(columns: list[str], cells: list[str]) -> dict[str, str]:
    """Of columns with one name the first that has a value: an IPv6 address where no IPv4 one is."""
    pairs = list(zip(reversed(columns), reversed(cells), strict=True))
    return dict(pairs) | {
        column: cell for column, cell in pairs if cell.strip() and cell.strip() not in NOTHING
    }


HINTS = (
    (re.compile(r"cable,label,bundle,"), "a cable schedule", "write it as `format netbox`"),
    (re.compile(r"\s*<"), "HTML or XML", "export the table as CSV"),
    (re.compile(r"\s*[{\[]"), "JSON", "export the table as CSV"),
)


def _stranger(text: str, file: str, header: list[str]) -> Problem:
    for pattern, given, todo in HINTS:
        if pattern.match(text):
            return Problem(NETBOX_TABLES, given, todo, file, 1)
    first = next((line for line in text.splitlines() if line.strip()), "")
    wanted = "; ".join(f"{kind}: {names}" for kind, names in HEADINGS.items())
    given = f"columns {shown(first, 100)}" if first else "an empty file"
    todo = f"columns that tell them: {wanted}"
    if set(header) >= CABLE_COLUMNS:
        todo = "add the columns Device A and Device B to the list (Configure Table), then export it"
    return Problem(NETBOX_TABLES, given, todo, file, 1)
