"""Blocks of bundled messages: their members by name, one form of a row, and removals.

A block is uint8[n, L], n messages of one layout and length; bundled, each starts with the wrapper
that adds it to the bundle (`protocol.BUNDLED`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import protocol
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.protocol import (
    BUNDLED,
    BUNDLED_FLOW_MOD,
    BUNDLED_GROUP_MOD,
    FLOW_MOD,
    GROUP_MOD,
    MATCH,
    WRAPPER_BYTES,
    FlowCommand,
    GroupCommand,
    Layout,
)


def _members(layout: Layout, *names: str) -> Layout:
    return np.dtype([(name, layout[name]) for name in names])


PLACE = _members(FLOW_MOD, "table", "priority", "match")
"""What tells a row from the others of a switch; fields of its match follow."""
ROW = _members(
    FLOW_MOD, *("table", "priority", "idle_timeout", "hard_timeout", "flags", "cookie", "match")
)
"""One form of a row, however a switch or a flow-mod puts it: without what changes by itself
(counters, ages). Fields of its match and instructions follow."""
GROUP_FORM = _members(GROUP_MOD, "type")
"""The same of a group; its buckets follow."""


def heads(block: Block, layout: Layout) -> NDArray[np.void]:
    """layout[n]: what each entry of a block begins with; to read, and to write into the block."""
    head: NDArray[np.void] = block[:, : layout.itemsize].view(layout)[:, 0]
    return head


def restated(block: Block, layout: Layout, form: Layout) -> Block:
    """Entries of a layout in another form: its members, by name, then all that follows."""
    head = heads(block, layout)
    result = np.empty((len(block), form.itemsize + block.shape[1] - layout.itemsize), np.uint8)
    fields = heads(result, form)
    for name in form.names or ():
        fields[name] = head[name]
    result[:, form.itemsize :] = block[:, layout.itemsize :]
    return result


def entries(block: Block) -> list[bytes]:
    """A bytes object per entry."""
    data, length = block.tobytes(), block.shape[1]
    return [data[place : place + length] for place in range(0, len(data), length)]


def row_places(block: Block) -> list[bytes]:
    """What tells each row that a block adds from other rows: table, priority, match."""
    return entries(restated(block[:, : _match_end(block)], BUNDLED_FLOW_MOD, PLACE))


def added_groups(block: Block) -> list[int]:
    """The number of each group that a block adds."""
    numbers: list[int] = heads(block, BUNDLED_GROUP_MOD)["group"].tolist()
    return numbers


def same_but_xid(one: Block, other: Block) -> NDArray[np.bool_]:
    """bool[n]: pairs of messages of one length that differ in nothing but their xids."""
    unequal = (one != other).view(np.uint8)
    where = heads(unequal, BUNDLED)
    for part in ("header", "message"):
        where[part]["xid"] = 0
    same: NDArray[np.bool_] = ~unequal.any(axis=1)
    return same


# Messages that add something, turned into such that change or remove it


def group_changes(block: Block) -> Block:
    """The same groups with these buckets, where they are already."""
    changed = block.copy()
    heads(changed, BUNDLED_GROUP_MOD)["command"] = GroupCommand.MODIFY
    return changed


def group_deletions(block: Block) -> Block:
    """The deletion of the groups that a block adds; no error where there is none."""
    deletions = _cut(block, BUNDLED_GROUP_MOD.itemsize)
    heads(deletions, BUNDLED_GROUP_MOD)["command"] = GroupCommand.DELETE
    return deletions


def flow_deletions(block: Block) -> Block:
    """The deletion of just the rows that a block adds, whatever they do."""
    if not len(block):
        return block
    deletions = _cut(block, _match_end(block))
    heads(deletions, BUNDLED_FLOW_MOD)["command"] = FlowCommand.DELETE_STRICT
    return deletions


def with_instructions(block: Block, other: Block) -> Block:
    """The rows that a block adds, but doing what those of another block of its layout do."""
    start = _match_end(block)
    return np.concatenate((block[:, :start], other[:, start:]), axis=1)


def _match_end(block: Block) -> int:
    """Where the match of bundled flow-mods ends, and their instructions begin."""
    length = int(heads(block[:1], BUNDLED_FLOW_MOD)["match"]["length"][0])
    return BUNDLED_FLOW_MOD.itemsize - MATCH.itemsize + protocol.padded(length)


def _cut(block: Block, size: int) -> Block:
    """The first bytes of each message, with its lengths put right."""
    short = block[:, :size].copy()
    head = heads(short, BUNDLED)
    head["header"]["length"], head["message"]["length"] = size, size - WRAPPER_BYTES
    return short
