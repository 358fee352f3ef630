"""Finds foreign flow entries that shadow ours: they may take packets that ours are for.

A *row* is a flow entry of a switch. A *foreign* row is one that another program has added. The
session of a switch (`controller.switches`) calls `shadowing` after it has read the switch, and
reports the foreign rows that it returns. Rows are bytes in their canonical form,
`compilers.readers.openflow.rows.ROW`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import Field, FlowRow, Match, read_row

WORD = 8
"""Bytes of a word, by which matches are compared."""
_Words = NDArray[np.uint64]
"""The value and the mask of a match, in words."""


def shadowing(foreign: Iterable[bytes], ours: Iterable[bytes]) -> list[FlowRow]:
    """The foreign rows that a packet may match instead of our own.

    Such a row is in the table of our row, has the same priority or a higher one, and some packet
    matches both (OpenFlow 1.3.5, §5.3). Our table-miss rows are left out: they only count packets
    without a receiver. Only fields that our rows match are compared, as an overlap depends on no
    other.

    Raises:
        Malformed: a row cannot be read.
    """
    program = [row for row in map(read_row, ours) if row.match]
    fields = {field for row in program for field, _, _ in row.match}
    lengths = [length for _, _, length in fields]
    *offsets, end = accumulate(lengths, initial=0)
    offset_of = dict(zip(fields, offsets, strict=True))
    width = -(-end // WORD) * WORD  # bytes of all fields, in whole words
    priorities_of = defaultdict[int, list[int]](list)
    matches_of = defaultdict[int, list[_Words]](list)
    for row in program:
        priorities_of[row.table].append(row.priority)
        matches_of[row.table].append(_words(row.match, offset_of, width))
    # By table: the priorities of our rows, int[n], and their matches, uint64[n, 2, words].
    tables = {
        table: (np.array(priorities), np.array(matches_of[table]))
        for table, priorities in priorities_of.items()
    }
    overlapping: list[FlowRow] = []
    for row in map(read_row, sorted(foreign)):
        if row.table in tables:
            value, mask = _words(row.match, offset_of, width)
            priorities, matches = tables[row.table]
            our_values, our_masks = matches[:, 0], matches[:, 1]
            # No packet matches both where the values differ in a bit that both masks have.
            disjoint = ((our_values ^ value) & our_masks & mask).any(axis=1)
            if (~disjoint & (priorities <= row.priority)).any():
                overlapping.append(row)
    return overlapping


def _words(match: Match, offset_of: dict[Field, int], width: int) -> _Words:
    """A match as uint64[2, width / 8]: its value, and its mask.

    Args:
        match: the match.
        offset_of: the offset of each field in bytes; other fields are left out.
        width: the bytes of all fields.
    """
    words = np.zeros((2, width), np.uint8)
    for field, value, mask in match:
        offset = offset_of.get(field)
        if offset is not None:
            _, _, length = field
            value_and_mask = np.frombuffer(value + mask, np.uint8).reshape(2, -1)
            words[:, offset : offset + length] = value_and_mask
    return words.view(np.uint64)
