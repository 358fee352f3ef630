"""Rows and groups of OpenFlow 1.3, read from messages that add them and from what switches report.

A *row* is a flow entry. The layouts are stated here once more, from the OpenFlow Switch
Specification 1.3.5, §7, and ONF extension 230: the reader shares nothing with the writer,
`compilers.targets.openflow`.

What comes in are bytes: messages of bundles (`rows_and_groups_added`), or the entries of replies
(`blocks_of_one_length`). A message that adds a row and a reply that reports it have other layouts.
So both are copied to a *canonical form*, `ROW` or `GROUP`, in which equal rows have equal bytes.
Many entries are one array, uint8[n, L], of n entries of L bytes; `read_row` and `read_group` make
values of a single one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.uint8]
"""n entries of one length, uint8[n, L]."""
Field = tuple[int, int, int]
"""Class, number and length in bytes of a field."""
Match = tuple[tuple[Field, bytes, bytes], ...]
"""The value and the mask of each field, in order; fields whose mask is 0 are left out."""

ANY = 0xFFFFFFFF
"""Any port, any group, no buffer."""
FLOW_MOD, GROUP_MOD = 14, 15
"""Types of the messages that add a row and a group."""
ADDS_TO_BUNDLE = {"version": 4, "type": 4, "experimenter": 0x4F4E4600, "kind": 2301, "inner": 4}
"""Members of a message that adds another to a bundle: versions, types and the experimenter."""
ADDS_A_ROW = {"command": 0, "buffer": ANY, "out_port": ANY, "out_group": ANY}
"""Members of a message that adds a row, and does nothing else."""
EXPERIMENTER_CLASS = 0xFFFF
"""The class of fields whose experimenter is written before their value."""


class Malformed(Exception):
    """Bytes cannot be read as OpenFlow, or have a part that no row of polarfab has."""


def _layout(size: int, **members: tuple[int, str]) -> np.dtype[np.void]:
    """A structure of so many bytes.

    Args:
        size: the bytes of the structure.
        members: the byte offset and the type of each member that is read, by its name.
    """
    offsets, types = zip(*members.values(), strict=True)
    names = list(members)
    return np.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": size})


MESSAGE_IN_BUNDLE = _layout(
    32,
    version=(0, "u1"),
    type=(1, "u1"),
    experimenter=(8, ">u4"),
    kind=(12, ">u4"),
    inner=(24, "u1"),
    inner_type=(25, "u1"),
)
"""The header of a bundle's message, its own header and its body's first 16 bytes; then the message
that is added, which begins with its header."""
ADDED_ROW = _layout(
    76,
    cookie=(32, ">u8"),
    table=(48, "u1"),
    command=(49, "u1"),
    idle_timeout=(50, ">u2"),
    hard_timeout=(52, ">u2"),
    priority=(54, ">u2"),
    buffer=(56, ">u4"),
    out_port=(60, ">u4"),
    out_group=(64, ">u4"),
    flags=(68, ">u2"),
    match_type=(72, ">u2"),
    match_length=(74, ">u2"),
)
"""A bundled flow-mod (§7.3.4.1) up to the fields of its match."""
REPORTED_ROW = _layout(
    52,
    table=(2, "u1"),
    priority=(12, ">u2"),
    idle_timeout=(14, ">u2"),
    hard_timeout=(16, ">u2"),
    flags=(18, ">u2"),
    cookie=(24, ">u8"),
    packets=(32, ">u8"),
    match_type=(48, ">u2"),
    match_length=(50, ">u2"),
)
"""An entry of a reply about flows (§7.3.5.2) up to the fields of its match."""
ROW_ENTRY_BYTES = 56
"""The bytes of the shortest entry about a flow: no fields in the match, and no instructions."""
ROW = np.dtype(
    [
        ("table", "u1"),
        ("priority", ">u2"),
        ("idle_timeout", ">u2"),
        ("hard_timeout", ">u2"),
        ("flags", ">u2"),
        ("cookie", ">u8"),
        ("match_type", ">u2"),
        ("match_length", ">u2"),
    ]
)
"""The canonical form of a row, without what changes by itself (counters, ages); the fields of its
match and its instructions follow."""
ADDED_GROUP = _layout(40, command=(32, ">u2"), type=(34, "u1"), group=(36, ">u4"))
"""A bundled group-mod (§7.3.4.2) up to its buckets."""
REPORTED_GROUP = _layout(8, type=(2, "u1"), group=(4, ">u4"))
"""An entry of a reply that describes groups (§7.3.5.9) up to its buckets."""
GROUP = np.dtype([("type", "u1")])
"""The canonical form of a group, which its number is no part of; its buckets follow."""
MATCH_BYTES = 4
"""The bytes of type and length at the beginning of a match. The length counts them, too."""
ROW_HEAD = Struct(">BHHHHQHH")
"""The members of `ROW`, to read a single row."""


class RowMembers(NamedTuple):
    """The members of `ROW`, in their order."""

    table: int
    """The number of the table."""
    priority: int
    """The priority."""
    idle_timeout: int
    """The seconds after which the row is removed if no packet fits it; 0: never."""
    hard_timeout: int
    """The seconds after which the row is removed; 0: never."""
    flags: int
    """The flags."""
    cookie: int
    """The cookie."""
    match_type: int
    """The type of the match."""
    match_length: int
    """The bytes of the match without its padding."""


class RowParts(NamedTuple):
    """A row in the canonical form, cut into its parts."""

    members: RowMembers
    """The members of `ROW`."""
    fields: bytes
    """The fields of the match, with the padding after them."""
    instructions: bytes
    """The instructions."""


BUCKET = Struct(">HHLL4x")
"""Length, weight, and the port and the group that it watches (§7.3.4.2); actions follow."""
TYPED = Struct(">HH")
"""What instructions and actions begin with: type, and the length of the whole."""
FIELD = Struct(">HBB")
"""The header of a field (§7.2.3.2): class; twice the number, plus 1 with a mask; length."""


@dataclass(frozen=True, slots=True)
class FlowRow:
    """A row of a flow table, as a switch holds it.

    Rows that do the same are equal, in whatever order a switch reports fields and instructions.
    """

    table: int
    """The number of the flow table."""
    priority: int
    """The priority."""
    idle_timeout: int
    """The seconds without packets after which the switch removes the row; 0: it stays."""
    hard_timeout: int
    """The seconds after which the switch removes the row; 0: it stays."""
    flags: int
    """The flags of the flow-mod (§7.3.4.1)."""
    cookie: int
    """The number by which the controller knows the row."""
    match: Match
    """The fields that packets have to have."""
    instructions: tuple[bytes, ...]
    """The bytes of each on the wire, by ascending type."""

    @property
    def place(self) -> tuple[int, int, Match]:
        """The table, priority and match of the row, which no other row of the switch has."""
        return self.table, self.priority, self.match


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of a group, as a switch holds it."""

    weight: int
    """The weight in a select group."""
    watch_port: int
    """The port on which its liveness depends, or `ANY`."""
    watch_group: int
    """The group on which its liveness depends, or `ANY`."""
    actions: tuple[bytes, ...]
    """The bytes of each on the wire, in their order."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group, as a switch holds it."""

    number: int
    """The number of the group."""
    type: int
    """1: select, 2: indirect, 3: fast failover."""
    buckets: tuple[Bucket, ...]
    """The buckets, in order."""


# Many entries at once


def blocks_of_one_length(data: bytes, shortest: int, length_at: int = 0) -> Iterator[Block]:
    """Cut a list of entries into blocks of entries of one length that follow each other.

    Args:
        data: the entries, each with its length in two of its bytes.
        shortest: the bytes of the shortest entry.
        length_at: the byte offset of the length in an entry.

    Raises:
        Malformed: lengths do not fit together.
    """
    all_bytes, offset = np.frombuffer(data, np.uint8), 0
    while offset < len(data):
        start = offset + length_at
        length = int.from_bytes(data[start : start + 2], "big")
        most = (len(data) - offset) // length if length >= shortest else 0
        if not most:
            raise Malformed(f"an entry of {length} bytes at byte {offset} of {len(data)}")
        # All that is left is first cut as if every entry had this length. Then the block ends
        # before the first entry that has another length.
        run = all_bytes[offset : offset + most * length].reshape(most, length)
        lengths = run[:, length_at : length_at + 2].view(np.uint16)
        # The index of the first entry of another length; 0 if there is none.
        count = int((lengths != lengths[0]).argmax()) or most
        yield run[:count]
        offset += count * length


def heads(block: Block, layout: np.dtype[np.void]) -> NDArray[np.void]:
    """layout[n]: the members of the structure at the beginning of each entry."""
    return block[:, : layout.itemsize].view(layout)[:, 0]


def added_rows(block: Block) -> Block:
    """The rows that bundled messages add, in the canonical form."""
    return _in_canonical_form(block, ADDED_ROW, ROW)


def reported_rows(block: Block) -> Block:
    """The rows that a switch reports, in the canonical form."""
    return _in_canonical_form(block, REPORTED_ROW, ROW)


def added_groups(block: Block) -> Iterator[tuple[int, bytes]]:
    """The number of each group that bundled messages add, and the group in the canonical form."""
    return _groups(block, ADDED_GROUP)


def reported_groups(block: Block) -> Iterator[tuple[int, bytes]]:
    """The number of each group that a switch describes, and the group in the canonical form."""
    return _groups(block, REPORTED_GROUP)


def entries(block: Block) -> list[bytes]:
    """The bytes of each entry."""
    data, length = block.tobytes(), block.shape[1]
    return [data[start : start + length] for start in range(0, len(data), length)]


def _groups(block: Block, layout: np.dtype[np.void]) -> Iterator[tuple[int, bytes]]:
    """The number of each group in a block of entries, and the group in the canonical form."""
    numbers: list[int] = heads(block, layout)["group"].tolist()
    return zip(numbers, entries(_in_canonical_form(block, layout, GROUP)), strict=True)


def _in_canonical_form(block: Block, layout: np.dtype[np.void], form: np.dtype[np.void]) -> Block:
    """Entries with the structure `form` in the place of `layout`; the bytes behind it stay."""
    members, tail = heads(block, layout), block[:, layout.itemsize :]
    result = np.empty((len(block), form.itemsize + tail.shape[1]), np.uint8)
    head = heads(result, form)
    for name in form.names or ():
        head[name] = members[name]
    result[:, form.itemsize :] = tail
    return result


# What a bundle adds


def rows_and_groups_added(data: bytes) -> tuple[list[bytes], list[tuple[int, bytes]]]:
    """The rows that messages in a bundle add, and the groups with their numbers.

    Both are in the canonical form.

    Raises:
        Malformed: a message is another, or cannot be read.
    """
    rows: list[bytes] = []
    groups: list[tuple[int, bytes]] = []
    for block in blocks_of_one_length(data, MESSAGE_IN_BUNDLE.itemsize, length_at=2):
        _require_members(block, MESSAGE_IN_BUNDLE, ADDS_TO_BUNDLE, "adds a message to a bundle")
        kinds = heads(block, MESSAGE_IN_BUNDLE)["inner_type"]
        of_rows, of_groups = block[kinds == FLOW_MOD], block[kinds == GROUP_MOD]
        if len(of_rows) + len(of_groups) < len(block):
            raise Malformed("required messages that add rows and groups")
        if len(of_rows):
            _require_members(of_rows, ADDED_ROW, ADDS_A_ROW, "adds a row")
            rows += entries(added_rows(of_rows))
        if len(of_groups):
            _require_members(of_groups, ADDED_GROUP, {"command": 0}, "adds a group")
            groups += added_groups(of_groups)
    return rows, groups


def _require_members(
    block: Block, layout: np.dtype[np.void], required: dict[str, int], verb: str
) -> None:
    """Pass if all messages have the required values of some members.

    Args:
        block: the messages.
        layout: their structure.
        required: the values, by the name of the member.
        verb: what such a message does, in words.

    Raises:
        Malformed: a message is too short, or has another value.
    """
    if block.shape[1] < layout.itemsize:
        raise Malformed(f"a message of {block.shape[1]} bytes, where {layout.itemsize} are least")
    members = heads(block, layout)
    for name, value in required.items():
        if (wrong := members[name] != value).any():
            given = int(members[name][wrong][0])
            raise Malformed(f"required a message that {verb}, given {name} {given:#x}")


# Values of a single entry


def read_row(row: bytes) -> FlowRow:
    """A row, from the canonical form.

    Raises:
        Malformed: it cannot be read.
    """
    members, fields, instructions = split_row(row)
    return FlowRow(
        table=members.table,
        priority=members.priority,
        idle_timeout=members.idle_timeout,
        hard_timeout=members.hard_timeout,
        flags=members.flags,
        cookie=members.cookie,
        match=_match(fields[: members.match_length - MATCH_BYTES]),
        instructions=_instructions(instructions),
    )


def read_group(number: int, group_bytes: bytes) -> Group:
    """A group, from the canonical form.

    Raises:
        Malformed: it cannot be read.
    """
    buckets = []
    for bucket in _structures(group_bytes[GROUP.itemsize :], BUCKET, length_index=0):
        _, weight, port, group = BUCKET.unpack_from(bucket)
        actions = tuple(_structures(bucket[BUCKET.size :], TYPED, length_index=1))
        buckets.append(Bucket(weight, port, group, actions))
    return Group(number, group_bytes[0], tuple(buckets))


def split_row(row: bytes) -> RowParts:
    """Cut a row in the canonical form into its parts.

    Raises:
        Malformed: the match is cut off.
    """
    if len(row) < ROW_HEAD.size:
        raise Malformed(f"a row of {len(row)} bytes")
    members = RowMembers._make(ROW_HEAD.unpack_from(row))
    length = members.match_length
    end = ROW_HEAD.size - MATCH_BYTES + -(-length // 8) * 8
    if length < MATCH_BYTES or end > len(row):
        raise Malformed(f"a match of {length} bytes in a row of {len(row)}")
    return RowParts(members, row[ROW_HEAD.size : end], row[end:])


def match_fields(fields: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The header and the value, with its mask, of each field of a match.

    Raises:
        Malformed: one is cut off.
    """
    offset = 0
    while offset < len(fields):
        start = offset + FIELD.size
        if start > len(fields) or (end := start + fields[start - 1]) > len(fields):
            raise Malformed("a field of a match is cut off")
        yield fields[offset:start], fields[start:end]
        offset = end


def _match(fields: bytes) -> Match:
    """The fields of a match, sorted, each with its value under its mask."""
    match = []
    for header, value in match_fields(fields):
        oxm_class, number, _ = FIELD.unpack(header)
        mask = b"\xff" * len(value)
        if number & 1 and oxm_class != EXPERIMENTER_CLASS:
            if len(value) % 2:
                raise Malformed("a field whose mask has another length than its value")
            value, mask = value[: len(value) // 2], value[len(value) // 2 :]
            value = bytes(a & b for a, b in zip(value, mask, strict=True))
        if any(mask):
            match.append(((oxm_class, number >> 1, len(value)), value, mask))
    return tuple(sorted(match))


def _instructions(data: bytes) -> tuple[bytes, ...]:
    """The instructions of a list, sorted by type, each as it is on the wire."""
    return tuple(sorted(_structures(data, TYPED, length_index=1)))


def _structures(data: bytes, layout: Struct, length_index: int) -> Iterator[bytes]:
    """The structures of a list.

    Args:
        data: the list.
        layout: the structure that each begins with.
        length_index: the index of the member of the layout that is the length of the whole.

    Raises:
        Malformed: one is cut off.
    """
    start = 0
    while start < len(data):
        if len(data) < start + layout.size:
            raise Malformed(f"{len(data) - start} bytes, where {layout.size} are the least")
        length = layout.unpack_from(data, start)[length_index]
        end = start + length
        if length < layout.size or end > len(data):
            raise Malformed(f"a structure of {length} bytes at byte {start} of {len(data)}")
        yield data[start:end]
        start = end


def actions_of(data: bytes) -> tuple[bytes, ...]:
    """The actions of a list, each as it is on the wire.

    Raises:
        Malformed: one is cut off.
    """
    return tuple(_structures(data, TYPED, length_index=1))
