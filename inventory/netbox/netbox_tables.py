"""Read the CSV files of NetBox and Nautobot: find the kind of table, and unify its columns.

`site_files` calls `read_table` with the text of each file. Columns have the same names whatever
list or import of NetBox they come from (`ALIASES`).
"""

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
        "primary_ip",
        "ip_address",
        "primary_ip4",
        "primary_ip4__host",
        "ipv4_address",
        "primary_ip6",
        "primary_ip6__host",
        "ipv6_address",
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
"""The columns of tables, with the other names that NetBox's lists, its imports and Nautobot use."""
TABLE_COLUMNS = {
    "cables": ("a_device", "a_name", "b_device", "b_name"),
    "interfaces": ("device", "name", "type"),
    "racks": ("name", "u_height"),
    "devices": ("name", "device_type"),
    "addresses": ("address", "device", "interface", "is_primary"),
}
"""The columns by which a table of each kind is known."""
DEVICE_COLUMNS = {
    "device_type",
    "device_type__model",
    "position",
    "face",
    "primary_ip",
    "ip_address",
    "primary_ip4",
    "primary_ip4__host",
    "ipv4_address",
}
"""The columns that tell a table of devices from one of racks, which also have types and heights."""
CABLES_BY_ID = "a_id", "b_id"
"""The columns of Nautobot's list of cables, which names interfaces by their ids."""
HEADINGS = {
    "cables": "Device A, Termination A, Device B, Termination B",
    "interfaces": "Device, Name, Type",
    "devices": "Name, Type",
    "racks": "Name, Height",
}
"""The headings of `TABLE_COLUMNS` in NetBox's lists, for messages."""
NETBOX_TABLES = (
    "a NetBox or Nautobot CSV of devices, racks, interfaces or cables, or a device type in YAML"
)
"""What a file should be, in messages."""
CABLE_COLUMNS = {"termination_a", "termination_b"}
"""The columns of a list of cables that lacks the devices."""
DELIMITERS = ",;|\t"
"""The delimiters that NetBox can export with (`CSVDelimiterChoices`)."""
NO_VALUE = {"NULL", "NoObject", "::4e6f:4f62:6a65:6374", "\N{EM DASH}"}
"""The texts that NetBox and Nautobot print for a missing value. The third is `NoObject` as an
address."""
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
    """The values by column, as named in `ALIASES` and `TABLE_COLUMNS`."""
    headings: Mapping[str, str]
    """By column, its heading in the file."""

    def get(self, column: str) -> str:
        """The value of a column without blanks around it; "" if it has none."""
        value = self.values.get(column, "").strip()
        return "" if value in NO_VALUE else value

    def problem(self, column: str, required: str, value: str, todo: str = "") -> Problem:
        """The problem of a value that is wrong, which the message shows."""
        return self.problem_in_words(column, required, shown(value), todo)

    def problem_in_words(self, column: str, required: str, actual: str, todo: str = "") -> Problem:
        """The problem of a value in a column; `actual` describes the value in words."""
        heading = self.headings.get(column, column)
        return Problem(required, actual, todo, self.file, self.line, heading)


def read_table(text: str, file: str) -> tuple[str, list[CsvRow]]:
    """The kind of table of a CSV text, a key of `TABLE_COLUMNS`, and its rows.

    Raises:
        InputError: the text is no such table, or a row has more or fewer values than columns.
    """
    previous_limit = csv.field_size_limit(FIELD_LIMIT)  # for the whole process
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    try:
        headings = [cell.strip() for cell in next(lines, [])]
        header = [re.sub(r"[^a-z0-9_]+", "_", cell.lower()) for cell in headings]
        kind = _kind(header)
        if kind is None:
            raise InputError(_unknown_table(text, file, header))
        columns = [_name(word, kind) for word in header]
        rows = list(_rows(lines, columns, headings, file))
    except csv.Error as error:
        raise InputError.of(NETBOX_TABLES, str(error), "", file, lines.line_num) from None
    finally:
        csv.field_size_limit(previous_limit)
    return kind, rows


def _delimiter(text: str) -> str:
    """The delimiter of the columns: the possible delimiter that is most frequent in the header."""
    header = text.partition("\n")[0]
    return max(DELIMITERS, key=header.count)


def _name(word: str, kind: str) -> str:
    """The name of a column, by the word in the header of a table."""
    if word in TABLE_COLUMNS[kind] or (kind in ("cables", "interfaces") and word == "type"):
        return word
    return next((name for name, aliases in ALIASES.items() if word in aliases), word)


def _kind(header: list[str]) -> str | None:
    """The kind of a table by the words of its header; None for an unknown table."""
    for kind in TABLE_COLUMNS:
        columns = {_name(word, kind) for word in header}
        if kind == "racks" and DEVICE_COLUMNS & set(header):
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
        lines: the reader of the file, after the header.
        columns: the names of the columns.
        headings: the headings of the columns in the file.
        file: the name of the file.

    Raises:
        InputError: a row has more or fewer values than there are columns.
    """
    # If several columns have one name, the heading of the first counts.
    heading_of = dict(zip(reversed(columns), reversed(headings), strict=True))
    last_line = getattr(lines, "line_num", 1)
    for cells in lines:
        # A value may have several lines, so a row begins after the last line of the row before.
        line = last_line + 1
        last_line = getattr(lines, "line_num", line)
        if not any(cells):
            continue
        if len(cells) != len(columns):
            required = f"{len(columns)} values, one a column"
            raise InputError.of(required, f"{len(cells)}", "quote values with commas", file, line)
        yield CsvRow(file, line, _values(columns, cells), heading_of)


def _values(columns: list[str], cells: list[str]) -> dict[str, str]:
    """The values of a row by column.

    If several columns have one name, the first value counts: an IPv6 address if there is no IPv4
    address.
    """
    values: dict[str, str] = {}
    for column, cell in zip(columns, cells, strict=True):
        if column not in values or (_is_empty(values[column]) and not _is_empty(cell)):
            values[column] = cell
    return values


def _is_empty(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip() in ("", *NO_VALUE)


HINTS = (
    (re.compile(r"cable,label,bundle,"), "a cable schedule", "write it as `format netbox`"),
    (re.compile(r"\s*<"), "HTML or XML", "export the table as CSV"),
    (re.compile(r"\s*[{\[]"), "JSON", "export the table as CSV"),
)
"""Other texts: how they begin, what they are, and what to do."""


def _unknown_table(text: str, file: str, header: list[str]) -> Problem:
    """The problem of a text that is no table of NetBox or Nautobot."""
    for pattern, kind, todo in HINTS:
        if pattern.match(text):
            return Problem(NETBOX_TABLES, kind, todo, file, 1)
    first = next((line for line in text.splitlines() if line.strip()), "")
    headings = "; ".join(f"{kind}: {names}" for kind, names in HEADINGS.items())
    actual = f"columns {shown(first, 100)}" if first else "an empty file"
    todo = f"columns that tell them: {headings}"
    if set(header) >= CABLE_COLUMNS:
        todo = "add the columns Device A and Device B to the list (Configure Table), then export it"
    return Problem(NETBOX_TABLES, actual, todo, file, 1)
