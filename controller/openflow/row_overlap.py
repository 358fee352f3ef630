"""Which rows of others take packets that our rows are for.

Rows are given in their one form, `compilers.readers.openflow.rows.ROW`.
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


def shadowing(foreign: Iterable[bytes], ours: Iterable[bytes]) -> list[FlowRow]:
    """The foreign rows that a packet may match instead of our own.

    They are in its table with the same priority or a higher one, and some packet matches both
    (OpenFlow 1.3.5, §5.3). Our table-miss rows lose nothing: they only count what has no receiver.
    Only fields that ours have are compared: a foreign row costs the same whatever it matches.

    Raises:
        Malformed: a row cannot be read.
    """
    program = [row for row in map(read_row, ours) if row.match]
    fields = {field for row in program for field, _, _ in row.match}
    starts = dict(zip(fields, accumulate((f[2] for f in fields), initial=0), strict=False))
    width = -(-sum(f[2] for f in fields) // WORD) * WORD
    rows = defaultdict[int, list[tuple[int, NDArray[np.uint64]]]](list)
    for row in program:
        rows[row.table].append((row.priority, _words(row.match, starts, width)))
    tables = {
        table: (np.array([priority for priority, _ in some]), np.array([one for _, one in some]))
        for table, some in rows.items()
    }
    over: list[FlowRow] = []
    for row in map(read_row, sorted(foreign)):
        if row.table in tables:
            value, mask = _words(row.match, starts, width)
            priorities, matches = tables[row.table]
            apart = ((matches[:, 0] ^ value) & matches[:, 1] & mask).any(axis=1)
            if (~apart & (priorities <= row.priority)).any():
                over.append(row)
    return over


def _words(match: Match, starts: dict[Field, int], width: int) -> NDArray[np.uint64]:
    """uint64[2, width / 8]: the value and the mask of a match, of the fields that have a start."""
    words = np.zeros((2, width), np.uint8)
    for field, value, mask in match:
        if (start := starts.get(field)) is not None:
            both = np.frombuffer(value + mask, np.uint8)
            words[:, start : start + field[2]] = both.reshape(2, -1)
    return words.view(np.uint64)
