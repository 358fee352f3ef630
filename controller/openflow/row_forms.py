"""Canonical forms of rows, independent of the order of fields: the slow path of a comparison.

A switch may report the fields of a match, or instructions, in another order than they were sent,
and a mask that is all ones or all zeros in another way (OpenFlow 1.3.5, §7.2.3.5). Rows are given
as `compilers.targets.openflow.bundled_blocks.ROW`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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

Form = tuple[bytes, ...]


def place(row: bytes) -> tuple[int, int, Form]:
    """What tells a row from others of a switch: its table, priority and match."""
    head, fields, _ = split(row)
    return head.table, head.priority, _fields(head, fields)


def row(row: bytes) -> tuple[bytes, Form, Form]:
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


def _fields(head: Any, fields: bytes) -> Form:
    body = fields[: head.match_length - MATCH.size]
    return tuple(sorted(filter(None, map(_unmasked, match_fields(body)))))


def _unmasked(field: tuple[bytes, bytes]) -> bytes:
    """A field without a mask of ones; nothing of one that is masked out.

    Raises:
        Malformed: the mask is not as long as the value.
    """
    header, value = field
    oxm = OXM.read(header)
    if not oxm.field & 1 or oxm.space == EXPERIMENTER_CLASS:
        return header + value
    if len(value) % 2:
        raise Malformed("a field whose mask has another length than its value")
    value, mask = value[: len(value) // 2], value[len(value) // 2 :]
    if not any(mask):
        return b""
    if all(byte == 0xFF for byte in mask):
        return OXM.pack(space=oxm.space, field=oxm.field - 1, length=len(value)) + value
    return header + bytes(a & b for a, b in zip(value, mask, strict=True)) + mask
