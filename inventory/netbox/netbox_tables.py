"""CSV files of NetBox and Nautobot: what each is, and its columns under one name."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from inventory.problems import InputError, Problem, shown

ALIASES = {
    "device": ("device__name",),
    "device_type": ("type", "device_type__model", "model", "device_type__display"),
    "manufacturer": ("device_type__manufacturer__name", "device_type__manufacturer"),
    "rack": ("rack__name",),
    "serial": ("serial_number",),
    "address": ("primary_ip", "ip_address", "primary_ip4", "primary_ip4__host", "primary_ip6"),
    "u_height": ("height",),
    "a_device": (
        "side_a_device",
        "device_a",
        "termination_a__device__name",
        "termination_a_device",
    ),
    "a_name": ("side_a_name", "termination_a__name", "termination_a_name", "termination_a"),
    "a_type": ("side_a_type", "termination_a_type"),
    "b_device": (
        "side_b_device",
        "device_b",
        "termination_b__device__name",
        "termination_b_device",
    ),
    "b_name": ("side_b_name", "termination_b__name", "termination_b_name", "termination_b"),
    "b_type": ("side_b_type", "termination_b_type"),
    "color": ("colour",),
}
TABLE_COLUMNS = {
    "cables": ("a_device", "a_name", "b_device", "b_name"),
    "interfaces": ("device", "name", "type"),
    "devices": ("name", "device_type"),
    "racks": ("name", "u_height"),
}
NETBOX_TABLES = (
    "a NetBox or Nautobot CSV of devices, racks, interfaces or cables, or a device type in YAML"
)
FIELD_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a CSV file, its values by the first names of ALIASES."""

    file: str
    line: int
    values: dict[str, str]

    def get(self, word: str) -> str:
        """A value without space around it, "" where there is none."""
        return self.values.get(word, "").strip()

    def problem(self, word: str, required: str, given: str, todo: str = "") -> Problem:
        """A mistake in a value."""
        return Problem(required, shown(given), todo, self.file, self.line, word)


def read_table(text: str, file: str) -> tuple[str, list[Row]]:
    """Which of KINDS a CSV text is, and its rows.

    Raises:
        InputError: it is none of them, or a row has more or fewer values than there are columns.
    """
    before = csv.field_size_limit(FIELD_LIMIT)
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [re.sub(r"[^a-z0-9_]+", "_", cell.strip().lower()) for cell in next(lines, [])]
        kind = _kind(header)
        if kind is None:
            raise InputError(_stranger(text, file))
        columns = [_name(word, kind) for word in header]
        rows = list(_rows(lines, columns, file))
    except csv.Error as error:
        raise InputError.of(NETBOX_TABLES, str(error), "", file, lines.line_num) from None
    finally:
        csv.field_size_limit(before)  # of the whole process
    return kind, rows


def _name(word: str, kind: str) -> str:
    if word in TABLE_COLUMNS[kind] or (kind in ("cables", "interfaces") and word == "type"):
        return word
    return next((name for name, others in ALIASES.items() if word in others), word)


def _kind(header: list[str]) -> str | None:
    for kind in TABLE_COLUMNS:
        if set(TABLE_COLUMNS[kind]) <= {_name(word, kind) for word in header}:
            return kind
    return None


def _rows(lines: Iterator[list[str]], columns: list[str], file: str) -> Iterator[Row]:
    line, after = 1, getattr(lines, "line_num", 1)
    for cells in lines:
        line, after = after + 1, getattr(lines, "line_num", after + 1)
        if not any(cells):
            continue
        if len(cells) != len(columns):
            given = f"{len(cells)}"
            required = f"{len(columns)} values, one a column"
            raise InputError.of(required, given, "quote values with commas", file, line)
        yield Row(file, line, dict(zip(reversed(columns), reversed(cells), strict=True)))


HINTS = (
    (re.compile(r"cable,label,bundle,"), "a cable schedule", "write it as `format netbox`"),
    (re.compile(r"\s*<"), "HTML or XML", "export the table as CSV"),
    (re.compile(r"\s*[{\[]"), "JSON", "export the table as CSV"),
    (re.compile(r"[^,\n]*;[^,\n]*(\n|$)"), "values between semicolons", "save it with commas"),
    (re.compile(r"[^,\n]*\t[^,\n]*(\n|$)"), "values between tabs", "save it with commas"),
)


def _stranger(text: str, file: str) -> Problem:
    for pattern, given, todo in HINTS:
        if pattern.match(text):
            return Problem(NETBOX_TABLES, given, todo, file, 1)
    first = next((line for line in text.splitlines() if line.strip()), "")
    wanted = "; ".join(f"{kind}: {', '.join(words)}" for kind, words in TABLE_COLUMNS.items())
    given = f"columns {shown(first, 100)}" if first else "an empty file"
    return Problem(NETBOX_TABLES, given, f"columns that tell them: {wanted}", file, 1)
