"""Canonical forms of rows, independent of the order of fields, and which rows take others' packets.

A switch may report the fields of a match, or instructions, in another order than they were sent,
and a mask that is all ones or all zeros in another way (OpenFlow 1.3.5, §7.2.3.5). Rows are given
as `compilers.targets.openflow.bundled_blocks.ROW`. Overlap is looked for between arrays of matches
with the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


ROWS_AT_ONCE = 64
"""Foreign rows that are compared with all of ours at once, which bounds the memory used."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """Rows of one table whose matches have the same fields.

    priority: int64[n]; value, mask: uint8[n, L], of all fields together.
    """

    table: int
    fields: tuple[Field, ...]
    rows: list[bytes]
    priority: NDArray[np.int64]
    value: NDArray[np.uint8]
    mask: NDArray[np.uint8]

    def columns(self, chosen: list[Field]) -> list[int]:
        """The bytes of these fields in `value` and `mask`."""
        starts = dict(zip(self.fields, np.cumsum([0, *(f[2] for f in self.fields)]), strict=False))
        return [int(starts[field]) + i for field in chosen for i in range(field[2])]


def shadowing(foreign: Iterable[bytes], ours: Iterable[bytes]) -> list[bytes]:
    """The foreign rows that a packet may match instead of our own.

    They are in its table with the same priority or a higher one, and some packet matches both
    (OpenFlow 1.3.5, §5.3). Our table-miss rows lose nothing: they only count what has no receiver.

    Raises:
        Malformed: a row cannot be read.
    """
    others, own = _alike(foreign), [one for one in _alike(ours) if one.fields]
    found: set[bytes] = set()
    for other in others:
        over = np.zeros(len(other.rows), np.bool_)
        for one in own:
            if one.table == other.table and one.priority.min() <= other.priority.max():
                over |= _over(other, one)
        found.update(row for row, hit in zip(other.rows, over.tolist(), strict=True) if hit)
    return sorted(found)


def _over(other: _Alike, one: _Alike) -> NDArray[np.bool_]:
    """bool[n]: which rows of `other` take precedence over one of `one`."""
    common = [field for field in other.fields if field in one.fields]
    at, own_at = other.columns(common), one.columns(common)
    own_value, own_mask = one.value[:, own_at], one.mask[:, own_at]
    hits = []
    for place in range(0, len(other.rows), ROWS_AT_ONCE):
        some = slice(place, place + ROWS_AT_ONCE)
        value, mask = other.value[some, None, at], other.mask[some, None, at]
        apart = ((value ^ own_value) & mask & own_mask).any(axis=2)
        hits.append((~apart & (other.priority[some, None] >= one.priority)).any(axis=1))
    return np.concatenate(hits)


def _alike(rows: Iterable[bytes]) -> list[_Alike]:
    """Rows by table and fields of their matches."""
    groups: dict[tuple[int, tuple[Field, ...]], list[tuple[bytes, int, bytes, bytes]]] = {}
    for row in rows:
        table, priority, match = place(row)
        key = table, tuple(field for field, _, _ in match)
        value = b"".join(value for _, value, _ in match)
        mask = b"".join(mask for _, _, mask in match)
        groups.setdefault(key, []).append((row, priority, value, mask))
    return [
        _Alike(
            table,
            fields,
            [row for row, *_ in found],
            np.array([priority for _, priority, _, _ in found]),
            _bytes([value for _, _, value, _ in found]),
            _bytes([mask for _, _, _, mask in found]),
        )
        for (table, fields), found in groups.items()
    ]


def _bytes(rows: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
