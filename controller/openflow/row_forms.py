"""One form of a row whatever order its fields are in: the slow path of a comparison.

A switch may report the fields of a match, or instructions, in another order than they were sent,
and a mask that is all ones or all zeros in another way (OpenFlow 1.3.5, §7.2.3.5).
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.openflow.multipart import Malformed

ROW_HEAD = 17
"""Where a row's match begins: behind table, priority, timeouts, flags and cookie."""
EXPERIMENTER_CLASS = 0xFFFF


def place(row: bytes) -> bytes:
    """What tells a row from others of a switch: its table, priority and match."""
    return row[:3] + _fields(match(row))


def row(row: bytes) -> bytes:
    """The row with its fields and instructions in one order."""
    return row[:ROW_HEAD] + _fields(match(row)) + b"|" + _instructions(row)


def match(row: bytes) -> bytes:
    """The match of a row, with its padding.

    Raises:
        Malformed: it is cut off.
    """
    length = int.from_bytes(row[ROW_HEAD + 2 : ROW_HEAD + 4], "big")
    end = ROW_HEAD + -(-length // 8) * 8
    if length < 4 or end > len(row):
        raise Malformed(f"a match of {length} bytes in a row of {len(row)}")
    return row[ROW_HEAD:end]


def _fields(match: bytes) -> bytes:
    length = int.from_bytes(match[2:4], "big")
    return b"".join(sorted(_oxms(match[4:length])))


def _oxms(body: bytes) -> Iterator[bytes]:
    """The fields of a match; a mask of ones is left out, and a field that is masked out."""
    start = 0
    while start < len(body):
        end = start + 4 + body[start + 3] if start + 4 <= len(body) else len(body) + 1
        if end > len(body):
            raise Malformed("a field of a match is cut off")
        field, value = body[start : start + 4], body[start + 4 : end]
        start = end
        if field[2] & 1 and int.from_bytes(field[:2], "big") != EXPERIMENTER_CLASS:
            value, mask = value[: len(value) // 2], value[len(value) // 2 :]
            if not any(mask):
                continue
            if all(byte == 0xFF for byte in mask):
                yield bytes((*field[:2], field[2] & 0xFE, len(value))) + value
                continue
            value = bytes(a & b for a, b in zip(value, mask, strict=True)) + mask
        yield field + value


def _instructions(row: bytes) -> bytes:
    start = ROW_HEAD + len(match(row))
    found = []
    while start < len(row):
        length = int.from_bytes(row[start + 2 : start + 4], "big")
        if length < 8 or start + length > len(row):
            raise Malformed(f"an instruction of {length} bytes")
        found.append(row[start : start + length])
        start += length
    return b"".join(sorted(found))
