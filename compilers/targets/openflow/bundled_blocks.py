"""Blocks of bundled messages: their members by name, places of rows, and removals.

A block is uint8[n, L], n messages of one layout and length; bundled, each starts with the wrapper
that adds it to the bundle, its header and its body.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow import protocol
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.protocol import (
    BUNDLED,
    FLOW_MOD,
    GROUP_MOD,
    HEADER,
    MATCH,
    WRAPPER_BYTES,
    FlowCommand,
    GroupCommand,
    WireLayout,
)

PLACE = FLOW_MOD.only("table", "priority", *MATCH.formats)
"""What tells a row from the others of a switch; fields of its match follow."""


def heads(block: Block, layout: WireLayout, place: int = 0) -> NDArray[np.void]:
    """layout[n]: the structures at a place of each entry; to read, and to write into the block."""
    head: NDArray[np.void] = block[:, place : place + layout.size].view(layout.dtype)[:, 0]
    return head


def restated(block: Block, layout: WireLayout, form: WireLayout, place: int = 0) -> Block:
    """Entries with a layout at a place in another form: its members, then all that follows."""
    head, rest = heads(block, layout, place), block[:, place + layout.size :]
    result = np.empty((len(block), form.size + rest.shape[1]), np.uint8)
    fields = heads(result, form)
    for name in form.formats:
        fields[name] = head[name]
    result[:, form.size :] = rest
    return result


def entries(block: Block) -> list[bytes]:
    """A bytes object per entry."""
    data, length = block.tobytes(), block.shape[1]
    return [data[place : place + length] for place in range(0, len(data), length)]


def row_places(block: Block) -> list[bytes]:
    """What tells each row that a block adds from other rows: table, priority, match."""
    return entries(restated(block[:, : _match_end(block)], FLOW_MOD, PLACE, BUNDLED))


def added_groups(block: Block) -> list[int]:
    """The number of each group that a block adds."""
    numbers: list[int] = heads(block, GROUP_MOD, BUNDLED)["group"].tolist()
    return numbers


def same_but_xid(one: Block, other: Block) -> NDArray[np.bool_]:
    """bool[n]: pairs of messages of one length that differ in nothing but their xids."""
    unequal = (one != other).view(np.uint8)
    for place in (0, WRAPPER_BYTES):
        heads(unequal, HEADER, place)["xid"] = 0
    same: NDArray[np.bool_] = ~unequal.any(axis=1)
    return same


# Messages that add something, turned into such that change or remove it


def group_changes(block: Block) -> Block:
    """Turn messages that add groups into such that change groups of a switch."""
    changed = block.copy()
    heads(changed, GROUP_MOD, BUNDLED)["command"] = GroupCommand.MODIFY
    return changed


def group_deletions(block: Block) -> Block:
    """The deletion of the groups that a block adds; no error where there is none."""
    deletions = _cut(block, BUNDLED + GROUP_MOD.size)
    heads(deletions, GROUP_MOD, BUNDLED)["command"] = GroupCommand.DELETE
    return deletions


def flow_deletions(block: Block) -> Block:
    """The deletion of just the rows that a block adds, whatever they do."""
    if not len(block):
        return block
    deletions = _cut(block, _match_end(block))
    heads(deletions, FLOW_MOD, BUNDLED)["command"] = FlowCommand.DELETE_STRICT
    return deletions


def with_instructions(block: Block, other: Block) -> Block:
    """The rows that a block adds, but doing what those of another block of its layout do."""
    start = _match_end(block)
    return np.concatenate((block[:, :start], other[:, start:]), axis=1)


def _match_end(block: Block) -> int:
    """Where the match of bundled flow-mods ends, and their instructions begin."""
    length = int(heads(block[:1], FLOW_MOD, BUNDLED)["match_length"][0])
    return BUNDLED + FLOW_MOD.size - MATCH.size + protocol.padded(length)


def _cut(block: Block, size: int) -> Block:
    """The first bytes of each message, with its lengths corrected."""
    short = block[:, :size].copy()
    for place in (0, WRAPPER_BYTES):
        heads(short, HEADER, place)["length"] = size - place
    return short
