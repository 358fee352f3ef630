"""Reconciliation: the messages that turn a switch's actual rows into its program. No I/O.

`controller.switches.switch` passes the replies of a switch that it has read (`read_content`), and
sends the messages of the `difference`. Rows are compared as bytes in one canonical form
(`compilers.readers.openflow.rows`), whether the switch reports them or the encoder adds them:
table, priority, timeouts, flags, cookie, match, instructions. Counters and ages, which change by
themselves, are left out.

A *block* is an array with a line of bytes for each row, group or message, all of one length. A
*form* is a row or a group in canonical form. A *part* is the bytes of one or more bundled messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from compilers.readers.openflow.rows import (
    GROUP,
    REPORTED_GROUP,
    REPORTED_ROW,
    ROW_ENTRY_BYTES,
    actions_of,
    added_groups,
    added_rows,
    blocks_of_one_length,
    entries,
    heads,
    read_row,
    reported_groups,
    reported_rows,
    split_row,
)
from compilers.targets.openflow.bundled_blocks import ROW_KEY, fields_at
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import (
    COOKIE,
    COOKIE_MASK,
    COOKIE_SHIFT,
    OUR_GROUPS,
    OURS,
    RowKind,
)
from compilers.targets.openflow.group_and_flow_bytes import bundled_add, xid
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.protocol import (
    AGGREGATE_STATS,
    ANY,
    BUNDLED,
    FLOW_MOD,
    GROUP_MOD,
    HEADER,
    WRAPPER_BYTES,
    Action,
    FlowCommand,
    GroupCommand,
    Instruction,
    MessageType,
)
from controller.openflow import multipart
from controller.openflow.row_overlap import shadowing
from controller.settings import ForeignRows

MARKER_SHIFT = np.uint64(COOKIE_SHIFT)
"""The bits of a cookie from this one on say whether its row is a build marker."""
IDENTITY_DIGITS = COOKIE_SHIFT // 4
"""How many hexadecimal digits of a build's identity are in the cookie of its marker."""
INSTRUCTIONS_WITH_ACTIONS = (Instruction.WRITE_ACTIONS, Instruction.APPLY_ACTIONS)
"""The types of instructions that contain an action list."""
ACTION_LIST_AT = 8
"""The offset of the action list in WRITE_ACTIONS and APPLY_ACTIONS, in bytes (§7.2.4)."""
TYPE, GROUP_NUMBER = slice(0, 2), slice(4, 8)
"""The bytes of the type in an instruction or an action, and of the group in an action GROUP."""
RowOrNumber = TypeVar("RowOrNumber")
"""A row in canonical form, or the number of a group, that the program lacks."""


@dataclass(frozen=True, slots=True, eq=False)
class SwitchContent:
    """The content of a switch."""

    blocks: tuple[Block, ...] = ()
    """Our rows in canonical form; rows of one length that follow each other are one block."""
    foreign: frozenset[bytes] = frozenset()
    """The rows without our cookie, in canonical form."""
    groups: dict[int, bytes] = field(default_factory=dict)
    """The groups by number: a group's type and its buckets."""
    marker: int | None = None
    """The cookie of the build marker; None without one."""

    @property
    def rows(self) -> frozenset[bytes]:
        """Our rows."""
        return frozenset(row for block in self.blocks for row in entries(block))

    def has_marker_of(self, build: str) -> bool:
        """Whether the marker names the build of this identity."""
        marker = self.marker
        return marker is not None and named_identity(marker) == build[:IDENTITY_DIGITS]

    @property
    def foreign_groups(self) -> list[int]:
        """The numbers of foreign groups."""
        return [number for number in self.groups if not 0 < number <= OUR_GROUPS]


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """The difference between a switch and its program."""

    parts: tuple[bytes, ...]
    """The bundled messages that remove the difference."""
    added: int
    """How many rows and groups are added."""
    changed: int
    """How many rows and groups are changed."""
    removed: int
    """How many rows and groups are removed."""
    foreign: int
    """How many rows and groups are others', whether they are kept or removed."""
    shadowing: tuple[tuple[int, int], ...] = ()
    """Table and priority of each foreign row that is kept and has precedence over a row of the
    program.
    """
    borrowed: tuple[int, ...] = ()
    """The numbers of groups in our range that foreign rows, which are kept, lead to."""


COUNT_REQUEST = multipart.flows_body(OURS, COOKIE_MASK)
"""The body of a request for the number of our rows."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A summary of our rows and groups in a switch."""

    row_count: int
    """The number of our rows."""
    groups_digest: int
    """A hash over the number, type and buckets of all our groups."""

    @classmethod
    def of(cls, program: FlowProgram) -> Fingerprint:
        """The summary of a switch that holds this program."""
        groups = (group for block in program.groups for group in added_groups(block))
        return cls(sum(map(len, program.flows)), hash(frozenset(groups)))

    @classmethod
    def read(cls, row_count: bytes, groups: bytes) -> Fingerprint:
        """Read the replies to `COUNT_REQUEST` and to a request for groups.

        Raises:
            Malformed: they cannot be read.
        """
        ours = (
            (number, form)
            for number, form in _described(groups).items()
            if 0 < number <= OUR_GROUPS
        )
        return cls(AGGREGATE_STATS.read(row_count).flows, hash(frozenset(ours)))


def named_identity(marker: int) -> str:
    """The first digits of the identity of the build that a marker's cookie names."""
    return f"{marker % (1 << COOKIE_SHIFT):0{IDENTITY_DIGITS}x}"


def read_content(flows: bytes, groups: bytes) -> SwitchContent:
    """The content of a switch, from the bodies of its replies.

    Raises:
        Malformed: they cannot be read.
    """
    ours: list[Block] = []
    others: list[bytes] = []
    marker = None
    for block in blocks_of_one_length(flows, ROW_ENTRY_BYTES):
        cookies = heads(block, REPORTED_ROW)["cookie"].astype(np.uint64)
        is_ours = cookies & np.uint64(COOKIE_MASK) == np.uint64(OURS)
        form = reported_rows(block)
        if is_ours.any():
            ours.append(form[is_ours])
        others += entries(form[~is_ours])
        is_marker = cookies >> MARKER_SHIFT != np.uint64(COOKIE) >> MARKER_SHIFT
        markers = cookies[is_ours & is_marker]
        if markers.size:
            marker = int(markers[0])
    return SwitchContent(tuple(ours), frozenset(others), _described(groups), marker)


def difference(
    program: FlowProgram, content: SwitchContent, foreign: ForeignRows = "keep"
) -> Difference:
    """The difference between a program and the content of a switch.

    The order of the messages would break no path even without a bundle: new groups before the rows
    that use them, new rows before old ones are deleted, old groups last.

    Raises:
        Malformed: a row that the switch reports cannot be read.
    """
    group_changes = _group_changes(program.groups, content.groups)
    row_changes = _row_changes(program.flows, content)
    surplus_rows, surplus_groups = list(row_changes.surplus), list(group_changes.surplus)
    parts = [*group_changes.parts, *row_changes.parts, *map(_delete_flow, surplus_rows)]
    borrowed = _borrowed(content.foreign) if foreign == "keep" else frozenset[int]()
    # A switch that deletes a group deletes all rows that lead to it (OpenFlow 1.3.5, §6.7). So the
    # groups stay that foreign rows lead to.
    surplus_groups = [number for number in surplus_groups if number not in borrowed]
    if foreign == "remove":
        # First: a foreign row may occupy the place of one of our rows.
        parts = [*map(_delete_flow, sorted(content.foreign)), *parts]
        surplus_rows += content.foreign
        surplus_groups += content.foreign_groups
    parts += map(_delete_group, surplus_groups)
    return Difference(
        parts=tuple(parts),
        added=group_changes.added + row_changes.added,
        changed=group_changes.changed + row_changes.changed,
        removed=len(surplus_rows) + len(surplus_groups),
        foreign=len(content.foreign) + len(content.foreign_groups),
        shadowing=_shadowing(program, content) if foreign == "keep" else (),
        borrowed=tuple(sorted(borrowed)),
    )


def without_borrowed_deletions(
    parts: Iterable[bytes], borrowed: Collection[int]
) -> Iterator[bytes]:
    """The bundled messages of a round without deletions of *borrowed* groups.

    Foreign rows lead to these groups, and a switch would remove the rows with the group. Where a
    later round adds the group again, it is changed instead.

    Args:
        parts: bundled messages, any number of them in each.
        borrowed: the numbers of these groups.
    """
    for part in parts:
        start = 0
        while start < len(part):
            end = start + HEADER.read(part, start).length
            message = bytearray(part[start:end])
            start = end
            if HEADER.read(message, WRAPPER_BYTES).type == MessageType.GROUP_MOD:
                group = GROUP_MOD.read(message, BUNDLED)
                if group.group in borrowed and group.command == GroupCommand.DELETE:
                    continue
                if group.group in borrowed and group.command == GroupCommand.ADD:
                    changed = GROUP_MOD.pack(
                        command=GroupCommand.MODIFY, type=group.type, group=group.group
                    )
                    message[BUNDLED : BUNDLED + GROUP_MOD.size] = changed
            yield bytes(message)


def _borrowed(foreign: Iterable[bytes]) -> frozenset[int]:
    """The numbers of groups in our range that foreign rows lead to."""
    return frozenset(
        group
        for row in foreign
        for instruction in read_row(row).instructions
        if int.from_bytes(instruction[TYPE], "big") in INSTRUCTIONS_WITH_ACTIONS
        for action in actions_of(instruction[ACTION_LIST_AT:])
        if int.from_bytes(action[TYPE], "big") == Action.GROUP
        if 0 < (group := int.from_bytes(action[GROUP_NUMBER], "big")) <= OUR_GROUPS
    )


def restoring_messages(before: SwitchContent, now: SwitchContent) -> tuple[bytes, ...]:
    """The bundled messages that bring a switch back to its earlier content.

    Rows and groups that others have added since stay.

    Args:
        before: the earlier content.
        now: the content now.

    Raises:
        Malformed: a row that the switch reports cannot be read.
    """
    groups_then = before.groups | {number: now.groups[number] for number in now.foreign_groups}
    groups = (_put_group(*group) for group in sorted(groups_then.items()))
    flows = map(_put_flow, sorted(before.rows | before.foreign - now.foreign))
    return difference(FlowProgram(_blocks(groups), _blocks(flows)), now).parts


def _blocks(messages: Iterable[bytes]) -> tuple[Block, ...]:
    """A block for each message."""
    return tuple(np.frombuffer(message, np.uint8)[None] for message in messages)


def _shadowing(program: FlowProgram, content: SwitchContent) -> tuple[tuple[int, int], ...]:
    """Table and priority of each foreign row that takes precedence over a row of the program."""
    if not content.foreign:
        return ()
    ours = (row for block in program.flows for row in _added_rows(block))
    return tuple((row.table, row.priority) for row in shadowing(content.foreign, ours))


def _described(groups: bytes) -> dict[int, bytes]:
    """The groups of a switch by number, as it describes them."""
    blocks = blocks_of_one_length(groups, REPORTED_GROUP.itemsize)
    return {number: form for block in blocks for number, form in reported_groups(block)}


def _added_rows(block: Block) -> list[bytes]:
    """The canonical form of each row that a block adds."""
    return entries(added_rows(block))


def _block_messages(blocks: Iterable[Block]) -> list[bytes]:
    """The messages of these blocks; each adds all rows or groups of its block."""
    return [block.tobytes() for block in blocks if len(block)]


@dataclass(frozen=True, slots=True)
class _Changes(Generic[RowOrNumber]):
    """The changes of a switch's rows, or of its groups."""

    parts: Sequence[bytes]
    """The messages that add and change rows or groups, one or more in each part."""
    added: int
    """How many rows or groups are added."""
    changed: int
    """How many rows or groups are changed."""
    surplus: Sequence[RowOrNumber]
    """The rows, or the numbers of the groups, that are to be removed."""


@dataclass(frozen=True, slots=True)
class _RowSets:
    """The rows that a switch lacks, and its surplus rows: those that its program has not."""

    lacking: frozenset[bytes]
    """The rows that are added."""
    surplus: frozenset[bytes]
    """The rows that are removed."""
    replacing: int = 0
    """How many of the lacking rows overwrite an old row with the same table, priority and match;
    such an old row is not in `surplus`.
    """


def _group_changes(blocks: Sequence[Block], reported: dict[int, bytes]) -> _Changes[int]:
    """The changes that give a switch these groups instead of those that it holds."""
    if not reported:
        return _Changes(_block_messages(blocks), sum(map(len, blocks)), 0, [])
    parts: list[bytes] = []
    added = changed = 0
    surplus = {number for number in reported if 0 < number <= OUR_GROUPS}
    for block in blocks:
        groups = dict(added_groups(block))
        surplus -= groups.keys()
        differs = [reported.get(number) != group for number, group in groups.items()]
        replaces = np.array([number in reported for number in groups], np.bool_)[differs]
        if any(differs):
            messages = block[differs]
            fields_at(messages, GROUP_MOD, BUNDLED)["command"][replaces] = GroupCommand.MODIFY
            parts.append(messages.tobytes())
            added += int(np.count_nonzero(~replaces))
            changed += int(np.count_nonzero(replaces))
    return _Changes(parts, added, changed, sorted(surplus, reverse=True))


def _row_changes(blocks: Sequence[Block], content: SwitchContent) -> _Changes[bytes]:
    """The changes that give a switch these rows instead of ours that it holds.

    A row that overwrites an old row with the same table, priority and match counts as changed.
    """
    if not content.blocks:
        return _Changes(_block_messages(blocks), sum(map(len, blocks)), 0, [])
    rows_before, rows_of_blocks = content.rows, [(block, _added_rows(block)) for block in blocks]
    ours = frozenset(row for _, rows in rows_of_blocks for row in rows)
    sets = _RowSets(ours - rows_before, rows_before - ours)
    if sets.lacking and sets.surplus:
        sets = _without_equal_rows(sets)
    parts: list[bytes] = []
    if sets.lacking:
        for block, rows in rows_of_blocks:
            indices = [index for index, row in enumerate(rows) if row in sets.lacking]
            if indices:
                lacking_rows = block if len(indices) == len(block) else block[indices]
                parts.append(lacking_rows.tobytes())
    added = len(sets.lacking) - sets.replacing
    return _Changes(parts, added, sets.replacing, sorted(sets.surplus))


def _without_equal_rows(sets: _RowSets) -> _RowSets:
    """Drop rows that differ in bytes only, and surplus rows that an added row overwrites."""
    surplus_forms = {read_row(form): form for form in sets.surplus}
    same = {form for form in sets.lacking if read_row(form) in surplus_forms}
    lacking = sets.lacking - same
    surplus = sets.surplus - {surplus_forms[read_row(form)] for form in same}
    # The place of a row is its table, priority and match.
    lacking_places = {read_row(form).place for form in lacking}
    replaced = {form for form in surplus if read_row(form).place in lacking_places}
    return _RowSets(lacking, surplus - replaced, len(replaced))


def _put_flow(row: bytes) -> bytes:
    """A bundled flow-mod that adds a row as a switch has reported it."""
    members, fields, instructions = split_row(row)
    return _flow_mod(FlowCommand.ADD, fields + instructions, members._asdict())


def _delete_flow(row: bytes) -> bytes:
    """A bundled flow-mod that deletes exactly this row."""
    parts = split_row(row)
    members = parts.members._asdict()
    table_and_priority = {name: members[name] for name in ROW_KEY.formats}
    return _flow_mod(FlowCommand.DELETE_STRICT, parts.fields, table_and_priority)


def _flow_mod(command: FlowCommand, tail: bytes, members: dict[str, Any]) -> bytes:
    """A bundled flow-mod.

    Args:
        command: what it does.
        tail: the bytes after the `FLOW_MOD`: of the match, and of the instructions.
        members: the members of a `FLOW_MOD` that the row has.
    """
    unused = {"buffer": ANY, "out_port": ANY, "out_group": ANY}
    mod = FLOW_MOD.pack(command=command, **unused, **members)
    return bundled_add(MessageType.FLOW_MOD, mod + tail, xid(RowKind.CLEAR))


def _put_group(number: int, form: bytes) -> bytes:
    """A bundled group-mod that adds a group as a switch has reported it."""
    group_type = form[0]
    head = GROUP_MOD.pack(command=GroupCommand.ADD, type=group_type, group=number)
    body = head + form[GROUP.itemsize :]
    return bundled_add(MessageType.GROUP_MOD, body, xid(RowKind.CLEAR, number))


def _delete_group(number: int) -> bytes:
    """A bundled group-mod that deletes a group; no error if it does not exist."""
    mod = GROUP_MOD.pack(command=GroupCommand.DELETE, group=number)
    return bundled_add(MessageType.GROUP_MOD, mod, xid(RowKind.CLEAR, number))
