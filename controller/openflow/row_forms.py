"""Canonical forms of rows, independent of the order of fields, and which rows take others' packets.

A switch may report the fields of a match, or instructions, in another order than they were sent,
and a mask that is all ones or all zeros in another way (OpenFlow 1.3.5, §7.2.3.5). Rows are given
as `compilers.targets.openflow.bundled_blocks.ROW`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import ROW
from compilers.targets.openflow.protocol import (
    EXPERIMENTER_CLASS,
    MATCH,
    OXM,
    TYPED,
    Malformed,
    listed,
    padded,
)

Field = tuple[int, int, int]
"""Class, number and length in bytes of a field."""
Match = tuple[tuple[Field, bytes, bytes], ...]
"""The value and the mask of each field, in order."""


def place(row: bytes) -> tuple[int, int, Match]:
    """What tells a row from others of a switch: its table, priority and match."""
    head, fields, _ = split(row)
    return head.table, head.priority, _fields(head, fields)


def row(row: bytes) -> tuple[bytes, Match, tuple[bytes, ...]]:
    """The row with its fields and instructions in one order."""
    head, fields, instructions = split(row)
    done = (whole for _, whole in listed(instructions, TYPED))
    start = row[: ROW.size - MATCH.size]
    return start, _fields(head, fields), tuple(sorted(done))


def split(row: bytes) -> tuple[Any, bytes, bytes]:
    """The head of a row, `ROW`, the fields of its match with their padding, its instructions.

    Raises:
        Malformed: the match is cut off.
    """
    head = ROW.read(row)
    length = head.match_length
    end = ROW.size - MATCH.size + padded(length)
    if length < MATCH.size or end > len(row):
        raise Malformed(f"a match of {length} bytes in a row of {len(row)}")
    return head, row[ROW.size : end], row[end:]


def match_fields(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The header (`OXM`) and value of each field of a match.

    Raises:
        Malformed: one is cut off.
    """
    place = 0
    while place < len(body):
        start = place + OXM.size
        end = start + OXM.read(body, place).length
        if end > len(body):
            raise Malformed("a field of a match is cut off")
        yield body[place:start], body[start:end]
        place = end


def _fields(head: Any, fields: bytes) -> Match:
    """The fields of a match, but those that are masked out."""
    found = []
    for header, value in match_fields(fields[: head.match_length - MATCH.size]):
        oxm = OXM.read(header)
        mask = b"\xff" * len(value)
        if oxm.field & 1 and oxm.space != EXPERIMENTER_CLASS:
            if len(value) % 2:
                raise Malformed("a field whose mask has another length than its value")
            value, mask = value[: len(value) // 2], value[len(value) // 2 :]
            value = bytes(a & b for a, b in zip(value, mask, strict=True))
        if any(mask):
            found.append(((oxm.space, oxm.field >> 1, len(value)), value, mask))
    return tuple(sorted(found))


def shadowing(foreign: Iterable[bytes], ours: Iterable[bytes]) -> list[bytes]:
    """The foreign rows that a packet may match instead of our own.

    They are in its table with the same priority or a higher one, and some packet matches both
    (OpenFlow 1.3.5, §5.3). Our table-miss rows lose nothing: they only count what has no receiver.
    Only fields that ours have are compared: a foreign row costs the same whatever it matches.

    Raises:
        Malformed: a row cannot be read.
    """
    own = [one for one in map(place, ours) if one[-1]]
    fields = {field for *_, match in own for field, _, _ in match}
    starts = dict(zip(fields, accumulate((f[2] for f in fields), initial=0), strict=False))
    width = padded(sum(f[2] for f in fields))
    rows = defaultdict[int, list[tuple[int, NDArray[np.uint64]]]](list)
    for table, priority, match in own:
        rows[table].append((priority, _words(match, starts, width)))
    tables = {
        table: (np.array([priority for priority, _ in some]), np.array([one for _, one in some]))
        for table, some in rows.items()
    }
    found: list[bytes] = []
    for row in foreign:
        table, priority, match = place(row)
        if table in tables:
            (value, mask), (priorities, there) = _words(match, starts, width), tables[table]
            apart = ((there[:, 0] ^ value) & there[:, 1] & mask).any(axis=1)
            if (~apart & (priorities <= priority)).any():
                found.append(row)
    return sorted(found)


def _words(match: Match, starts: dict[Field, int], width: int) -> NDArray[np.uint64]:
    """uint64[2, width / 8]: the value and the mask of a match, of the fields that have a start."""
    words = np.zeros((2, width), np.uint8)
    for field, value, mask in match:
        if (start := starts.get(field)) is not None:
            both = np.frombuffer(value + mask, np.uint8)
            words[:, start : start + field[2]] = both.reshape(2, -1)
    return words.view(np.uint64)
