"""The steps of a change at a switch without bundles, in the order that loses no packet. No I/O.

1. Groups come before the rows that use them.
2. Rows are added from the last table to the first: rows that lead to a later table find it ready.
3. The build marker follows, once the program is there.
4. Then old rows are removed, from the first table to the last.
5. Old groups are removed at the end.

Before all these, the rows are removed that lead packets from hosts to groups of their own: these
packets then take the paths of transit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import MOST_NUMBER, ROLE_SHIFT, XID_BITS
from compilers.targets.openflow.protocol import (
    ALL_TABLES,
    FLOW_MOD,
    GROUP_MOD,
    HEADER,
    WRAPPER_BYTES,
    FlowCommand,
    GroupCommand,
    MessageType,
    header,
)

PREPARATION, GROUPS, ROWS, MARKER, OLD_ROWS, OLD_GROUPS = range(6)
"""The steps of a change without bundles, in order."""


def unbundled_steps(parts: Sequence[bytes]) -> list[bytes]:
    """Bundled messages as plain ones: for each step, in order, the bytes of its messages."""
    by_step: dict[tuple[int, int], list[bytes]] = {}
    has_addition = False
    for message in _plain(parts):
        step = _step(message, has_addition)
        has_addition |= step[0] in (GROUPS, ROWS, MARKER)
        by_step.setdefault(step, []).append(message)
    return [b"".join(by_step[step]) for step in sorted(by_step)]


def _plain(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The messages in bundled adds."""
    for part in parts:
        offset = 0
        while offset < len(part):
            _, length, _ = header(part, offset)
            yield part[offset + WRAPPER_BYTES : offset + length]
            offset += length


def _step(message: bytes, follows_addition: bool) -> tuple[int, int]:
    """The step of a message, and its order within the step.

    Args:
        message: a flow-mod or a group-mod.
        follows_addition: whether a message before it adds something. A removal before all additions
            makes room in a full table.
    """
    kind, _, xid = header(message)
    if kind == MessageType.GROUP_MOD:
        removed = GROUP_MOD.read(message, HEADER.size).command == GroupCommand.DELETE
        return (OLD_GROUPS if removed else GROUPS, 0)
    row = FLOW_MOD.read(message, HEADER.size)
    row_kind, role = xid >> XID_BITS, (xid & MOST_NUMBER) >> ROLE_SHIFT
    if row.command == FlowCommand.ADD:
        return (MARKER, 0) if row_kind == RowKind.MARKER else (ROWS, ALL_TABLES - row.table)
    is_for_hosts = row_kind == RowKind.CLASS and role in (GroupRole.ENTER, GroupRole.FALLBACK)
    makes_room = row_kind == RowKind.CLEAR and not follows_addition
    return (PREPARATION, 0) if is_for_hosts or makes_room else (OLD_ROWS, row.table)
