"""From what a switch holds to what it should hold: the difference, as messages. No I/O.

Rows are compared as bytes in one form, which a row has both as the switch reports it and as the
encoder adds it: table, priority, timeouts, flags, cookie, match, instructions. What changes by
itself (counters, ages) is not in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import message_rows as rows
from compilers.targets.openflow.encoder import Program
from compilers.targets.openflow.flow_tables import COOKIE, COOKIE_MASK, OUR_GROUPS, OURS, RowKind
from compilers.targets.openflow.protocol import Block
from controller.openflow import messages, multipart, row_forms
from controller.settings import ForeignRows

FLOW_ENTRY, GROUP_ENTRY = 48, 8
"""Bytes of `ofp_flow_stats` before its match, of `ofp_group_desc` before its buckets."""
WRAPPED = 24
"""Bytes of a bundle-add before the message that it adds."""
_FLOW_MOD = struct.Struct("!QQBBHHHLLLHxx")
_GROUP_MOD = struct.Struct("!HBxL")
DELETE_STRICT, GROUP_MODIFY, GROUP_DELETE = 4, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What a switch holds: rows in the one form, ours and those of others; groups by number.

    A group is its type and its buckets. marker is the cookie of the build
    marker, None without one.
    """

    rows: frozenset[bytes] = frozenset()
    foreign: frozenset[bytes] = frozenset()
    groups: dict[int, bytes] = field(default_factory=dict)
    marker: int | None = None

    @property
    def foreign_groups(self) -> list[int]:
        """The numbers of groups of others."""
        return [number for number in self.groups if not 0 < number <= OUR_GROUPS]


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """What a switch lacks and has too much, and the bundled messages that put it right.

    added, changed and removed count rows and groups together, but for the marker; foreign counts
    those of others that it holds, whatever becomes of them.
    """

    parts: tuple[bytes, ...]
    added: int
    changed: int
    removed: int
    foreign: int


def held(flows: bytes, groups: bytes) -> Held:
    """What a switch holds, by the bodies of its replies.

    Raises:
        reading.Malformed: they cannot be read.
    """
    ours: list[bytes] = []
    others: list[bytes] = []
    marker = None
    for block in multipart.blocks(flows, FLOW_ENTRY + 8):
        cookies = np.ascontiguousarray(block[:, 24:32]).view(">u8")[:, 0].astype(np.uint64)
        mine = cookies & np.uint64(COOKIE_MASK) == np.uint64(OURS)
        form = _form_of_entries(block)
        ours += _bytes(form[mine])
        others += _bytes(form[~mine])
        if (marked := cookies[mine & (cookies >> np.uint64(48) != np.uint64(COOKIE >> 48))]).size:
            marker = int(marked[0])
    return Held(frozenset(ours), frozenset(others), _groups(groups), marker)


def difference(program: Program, held: Held, foreign: ForeignRows = "keep") -> Difference:
    """The difference between a program and what a switch holds.

    The order of its messages is one that breaks no path even without a bundle around them: groups
    before the rows that lead to them, new rows before old ones go, groups last.

    Raises:
        reading.Malformed: a row that the switch reports cannot be read.
    """
    groups, counts, surplus = _group_part(program.groups, held.groups)
    flows, added, changed, removed = _flow_part(program.flows, held.rows)
    parts = [*groups, *flows, *(_delete_flow(row) for row in removed)]
    if foreign == "remove":
        # First: one of them may stand where a row of ours is to be.
        parts = [*(_delete_flow(row) for row in sorted(held.foreign)), *parts]
        surplus += held.foreign_groups
    parts += [_delete_group(number) for number in surplus]
    return Difference(
        parts=tuple(parts),
        added=added + counts[0],
        changed=changed + counts[1],
        removed=len(removed) + len(surplus) + (len(held.foreign) if foreign == "remove" else 0),
        foreign=len(held.foreign) + len(held.foreign_groups),
    )


def _groups(body: bytes) -> dict[int, bytes]:
    found = {}
    for block in multipart.blocks(body, GROUP_ENTRY):
        for entry in _bytes(block):
            found[int.from_bytes(entry[4:8], "big")] = entry[2:3] + entry[8:]
    return found


def _group_part(
    blocks: Iterable[Block], held: dict[int, bytes]
) -> tuple[list[bytes], tuple[int, int], list[int]]:
    """Messages that add and change groups, how many of each, and the numbers of those too many."""
    parts: list[bytes] = []
    added = changed = 0
    surplus = {number for number in held if 0 < number <= OUR_GROUPS}
    for block in blocks:
        inner = block[:, WRAPPED:]
        kept = []
        for place, message in enumerate(_bytes(inner)):
            number = int.from_bytes(message[12:16], "big")
            surplus.discard(number)
            there = held.get(number)
            if there == message[10:11] + message[16:]:
                continue
            kept.append(place)
            added, changed = added + (there is None), changed + (there is not None)
        if kept:
            chosen = block[kept]
            known = [int.from_bytes(m[12:16], "big") in held for m in _bytes(chosen[:, WRAPPED:])]
            chosen[known, WRAPPED + 9] = GROUP_MODIFY
            parts.append(chosen.tobytes())
    return parts, (added, changed), sorted(surplus, reverse=True)


def _flow_part(
    blocks: Iterable[Block], held: frozenset[bytes]
) -> tuple[list[bytes], int, int, list[bytes]]:
    """Messages that add rows, how many are new and how many replace one, and the rows too many."""
    forms = [(block, _bytes(_form_of_mods(block))) for block in blocks]
    lacking = {row for _, form in forms for row in form if row not in held}
    surplus = held.difference(*(form for _, form in forms)) if held else frozenset()
    changed = 0
    if lacking and surplus:
        lacking, surplus, changed = _alike(lacking, surplus)
    parts: list[bytes] = []
    if lacking:
        for block, form in forms:
            if kept := [place for place, row in enumerate(form) if row in lacking]:
                parts.append((block if len(kept) == len(block) else block[kept]).tobytes())
    return parts, len(lacking) - changed, changed, sorted(surplus)


def _alike(
    lacking: set[bytes], surplus: frozenset[bytes]
) -> tuple[set[bytes], frozenset[bytes], int]:
    """Without rows that only look different, and without those that adding replaces.

    Returns what lacks, what is too much, and how many of the first replace a row.
    """
    there = {row_forms.row(row): row for row in surplus}
    same = {row for row in lacking if row_forms.row(row) in there}
    lacking = lacking - same
    surplus = surplus - {there[row_forms.row(row)] for row in same}
    places = {row_forms.place(row) for row in lacking}
    replaced = {row for row in surplus if row_forms.place(row) in places}
    return lacking, surplus - replaced, len(replaced)


def _form_of_entries(block: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The one form of flows as a switch reports them, uint8[n, L]."""
    return np.concatenate(
        (block[:, 2:3], block[:, 12:20], block[:, 24:32], block[:, FLOW_ENTRY:]), axis=1
    )


def _form_of_mods(block: Block) -> NDArray[np.uint8]:
    """The one form of flows as bundled flow-mods add them."""
    mod = block[:, WRAPPED + messages.HEADER_SIZE :]
    head = (mod[:, 16:17], mod[:, 22:24], mod[:, 18:22], mod[:, 36:38], mod[:, :8])
    return np.concatenate((*head, mod[:, 40:]), axis=1)


def _bytes(block: NDArray[np.uint8]) -> list[bytes]:
    """A bytes object a row."""
    if not len(block):
        return []
    data, length = block.tobytes(), block.shape[1]
    return [data[place : place + length] for place in range(0, len(data), length)]


def _delete_flow(row: bytes) -> bytes:
    """A bundled flow-mod that deletes just this row."""
    table, priority = row[0], int.from_bytes(row[1:3], "big")
    mod = _FLOW_MOD.pack(*(0, 0, table, DELETE_STRICT, 0, 0, priority), *(multipart.ANY,) * 3, 0)
    return rows.bundled_add(
        messages.Type.FLOW_MOD, mod + row_forms.match(row), rows.xid(RowKind.CLEAR)
    )


def _delete_group(number: int) -> bytes:
    """A bundled group-mod that deletes a group; no error where there is none."""
    mod = _GROUP_MOD.pack(GROUP_DELETE, 0, number)
    return rows.bundled_add(messages.Type.GROUP_MOD, mod, rows.xid(RowKind.CLEAR, number))
