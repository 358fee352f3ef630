"""Reads and changes many messages at once that add groups and flows.

The messages of a block, uint8[n, L], have one layout and length, and each is wrapped in a
bundle-add (ONF extension 230), as `Encoder` makes them. An update of a switch compares its old
blocks with the new ones (`compilers.update`), and turns adds into changes and deletions by the
functions here.
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

ROW_KEY = FLOW_MOD.only("table", "priority", *MATCH.formats)
"""The key of a flow in a switch, without the fields of its match, which follow: two flows with one
table, priority and match replace each other."""


def fields_at(block: Block, layout: WireLayout, offset: int = 0) -> NDArray[np.void]:
    """layout[n]: the structure at a byte offset of each message, as a view that can be written."""
    structures: NDArray[np.void] = block[:, offset : offset + layout.size].view(layout.dtype)[:, 0]
    return structures


def in_other_layout(
    block: Block, layout: WireLayout, new_layout: WireLayout, offset: int = 0
) -> Block:
    """Messages cut before a structure, with the structure in another layout.

    Args:
        block: the messages.
        layout: the layout of the structure.
        new_layout: a layout of some of its members; all bytes behind the structure follow.
        offset: the byte where the structure begins.
    """
    old_fields, rest = fields_at(block, layout, offset), block[:, offset + layout.size :]
    result = np.empty((len(block), new_layout.size + rest.shape[1]), np.uint8)
    new_fields = fields_at(result, new_layout)
    for name in new_layout.formats:
        new_fields[name] = old_fields[name]
    result[:, new_layout.size :] = rest
    return result


def entries(block: Block) -> list[bytes]:
    """The bytes of each message."""
    data, length = block.tobytes(), block.shape[1]
    return [data[start : start + length] for start in range(0, len(data), length)]


def row_keys(block: Block) -> list[bytes]:
    """The key of each flow that a block adds: table, priority and match."""
    without_instructions = block[:, : _match_end(block)]
    return entries(in_other_layout(without_instructions, FLOW_MOD, ROW_KEY, BUNDLED))


def added_groups(block: Block) -> list[int]:
    """The number of each group that a block adds."""
    numbers: list[int] = fields_at(block, GROUP_MOD, BUNDLED)["group"].tolist()
    return numbers


def same_but_xid(first: Block, second: Block) -> NDArray[np.bool_]:
    """bool[n]: whether messages of two blocks differ in nothing but their xids, pair by pair."""
    unequal = (first != second).view(np.uint8)
    for offset in (0, WRAPPER_BYTES):  # the header of the wrapper, and of the message in it
        fields_at(unequal, HEADER, offset)["xid"] = 0
    same: NDArray[np.bool_] = ~unequal.any(axis=1)
    return same


def group_changes(block: Block) -> Block:
    """The messages that change the groups which a block adds, in a switch that has them."""
    changes = block.copy()
    fields_at(changes, GROUP_MOD, BUNDLED)["command"] = GroupCommand.MODIFY
    return changes


def group_deletions(block: Block) -> Block:
    """The messages that delete the groups which a block adds; no error where there is none."""
    deletions = _shortened(block, BUNDLED + GROUP_MOD.size)
    fields_at(deletions, GROUP_MOD, BUNDLED)["command"] = GroupCommand.DELETE
    return deletions


def flow_deletions(block: Block) -> Block:
    """The messages that delete just the flows which a block adds, whatever these do."""
    if not len(block):
        return block
    deletions = _shortened(block, _match_end(block))
    fields_at(deletions, FLOW_MOD, BUNDLED)["command"] = FlowCommand.DELETE_STRICT
    return deletions


def with_instructions(block: Block, instructions_of: Block) -> Block:
    """The flows that a block adds, with the instructions of another block of the same layout."""
    start = _match_end(block)
    return np.concatenate((block[:, :start], instructions_of[:, start:]), axis=1)


def _match_end(block: Block) -> int:
    """The byte where the match of bundled flow-mods ends, and their instructions begin."""
    length = int(fields_at(block[:1], FLOW_MOD, BUNDLED)["match_length"][0])
    return BUNDLED + FLOW_MOD.size - MATCH.size + protocol.padded(length)


def _shortened(block: Block, size: int) -> Block:
    """The first bytes of each message, with the length in both headers corrected."""
    short = block[:, :size].copy()
    for offset in (0, WRAPPER_BYTES):
        fields_at(short, HEADER, offset)["length"] = size - offset
    return short
