"""Reader of `lfts.txt`: the linear forwarding tables of all switches, as OpenSM gets them.

Tables of a whole fabric have the same lines but for their ports. So once a table has been read line
by line, the others are read as arrays of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import exact_lines

HEAD = re.compile(rb"^Unicast lids guid 0x([0-9a-f]{16})\n", re.MULTILINE)
"""The first line of a switch's table: `Unicast lids guid 0x0250460000010000`."""
ENTRY = re.compile(r"0x([0-9a-f]{4}) ([0-9]{3}) portguid 0x([0-9a-f]{16})")
"""A line of a table: `0x0001 005 portguid 0x0250460000010003`."""
ROW_WIDTH = 39
"""The characters of a line of a table."""
PORT_DIGITS = slice(7, 10)
"""The characters of the port in a line of a table."""
FIRST_MULTICAST = 0xC000
"""The first LID that is not unicast."""


@dataclass(frozen=True, slots=True, eq=False)
class TableText:
    """The forwarding table of a switch, as a file has it."""

    switch: int
    """The node GUID of the switch."""
    line: int
    """The number of the first line of its block."""
    lid: NDArray[np.int64]
    """int64[n], the LIDs."""
    guid: NDArray[np.uint64]
    """uint64[n], the port GUID of each LID."""
    port: NDArray[np.int64]
    """int64[n], the egress port of each LID."""

    @classmethod
    def of(cls, switch: int, line: int, entries: list[TableEntry]) -> TableText:
        """The table of a switch with these entries."""
        return cls(
            switch=switch,
            line=line,
            lid=np.array([entry.lid for entry in entries], np.int64),
            guid=np.array([entry.guid for entry in entries], np.uint64),
            port=np.array([entry.port for entry in entries], np.int64),
        )


def read_tables(file: Path, differences: DifferenceList) -> Iterator[TableText]:
    """The forwarding tables of all switches."""
    data = file.read_bytes()
    heads = list(HEAD.finditer(data))
    first_table = heads[0].start() if heads else len(data)
    for number, text in enumerate(data[:first_table].split(b"\n"), 1):
        if text and not text.startswith(b"#"):
            differences.add_unread(file, number, text.decode(errors="replace"))
    # The last table that was read line by line, and its characters. None if there is none yet, or
    # if a line of it could not be read.
    read_table: TableText | None = None
    read_rows: NDArray[np.uint8] | None = None
    line = data.count(b"\n", 0, first_table) + 1
    # Each table ends where the next one begins, the last one with the file.
    next_heads = [head.start() for head in heads[1:]]
    for head, end in zip(heads, [*next_heads, len(data)], strict=False):
        switch, body = int(head[1], 16), data[head.end() : end]
        rows = _byte_rows(body)
        if (
            read_table is not None
            and read_rows is not None
            and rows is not None
            and _differ_in_ports_only(rows, read_rows)
        ):
            port = (rows[:, PORT_DIGITS].astype(np.int64) - ord("0")) @ np.array([100, 10, 1])
            yield TableText(switch, line, read_table.lid, read_table.guid, port)
        else:
            entries = list(_entries(file, body, line, differences))
            read_table = TableText.of(switch, line, entries)
            read_rows = rows if rows is not None and len(rows) == len(entries) else None
            yield read_table
        line += 1 + body.count(b"\n")


def _byte_rows(body: bytes) -> NDArray[np.uint8] | None:
    """The characters of a table, uint8[n, ROW_WIDTH]; None unless all lines may have this width."""
    rows = np.frombuffer(body, np.uint8)
    return None if len(rows) % ROW_WIDTH else rows.reshape(-1, ROW_WIDTH)


def _differ_in_ports_only(rows: NDArray[np.uint8], others: NDArray[np.uint8]) -> bool:
    """Whether lines are those of another table, with other ports of three digits."""
    if rows.shape != others.shape:
        return False
    digits = rows[:, PORT_DIGITS]
    differs = rows != others
    # A port may be any, if it is three digits.
    differs[:, PORT_DIGITS] = (digits < ord("0")) | (digits > ord("9"))
    return not differs.any()


class TableEntry(NamedTuple):
    """A line of a table."""

    lid: int
    """The LID."""
    guid: int
    """The port GUID of the LID."""
    port: int
    """The egress port."""


def _entries(
    file: Path, body: bytes, line: int, differences: DifferenceList
) -> Iterator[TableEntry]:
    """The entries of a table, and differences for lines that are none.

    Args:
        file: the file, for messages.
        body: the lines of the table below its head.
        line: the number of the line of the head.
        differences: gets the lines that cannot be read.
    """
    lids: set[int] = set()
    for number, text in enumerate(exact_lines(body.decode(errors="replace")), line + 1):
        entry = ENTRY.fullmatch(text)
        if entry is None:
            differences.add_unread(file, number, text)
            continue
        lid = int(entry[1], 16)
        if lid in lids or not 0 < lid < FIRST_MULTICAST:
            differences.add(file, number, text, "a unicast LID that no other line has")
        lids.add(lid)
        yield TableEntry(lid, int(entry[3], 16), int(entry[2]))
