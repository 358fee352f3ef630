"""Slots of rows and groups that are known by their places, and those of a switch of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import added_groups, row_places
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.targets.openflow.message_parts import Block
from compilers.update.move_plan import PREPARE
from compilers.update.slots import Slots

Numbers = NDArray[Any]
Rounds = Callable[[Block], Numbers]
"""int[n], the rounds in which the n messages of a block change."""
NO_ROW = -1


def in_round(round: int) -> Rounds:
    """All in one round."""
    return lambda block: np.full(len(block), round)


def matched(
    before: Sequence[Block], after: Sequence[Block], put: Rounds, drop: Rounds
) -> Iterator[Slots]:
    """The slots of small blocks.

    Args:
        before: messages that are held.
        after: those that will be held.
        put: the rounds of these.
        drop: the rounds of what goes, and of which nothing is left afterwards.
    """
    if len(before) == len(after) and all(map(np.array_equal, before, after)):
        yield from map(Slots.unchanged, after)
        return
    place = {key: (b, r) for b, block in enumerate(before) for r, key in enumerate(_keys(block))}
    left = [np.full(len(block), True) for block in before]
    for block in after:
        found = np.array([place.get(key, (NO_ROW, NO_ROW)) for key in _keys(block)])
        for b in np.unique(found[:, 0]).tolist():
            row = np.flatnonzero(found[:, 0] == b)
            earlier = found[row, 1]
            if b >= 0:
                left[b][earlier] = False
            one = before[b] if b >= 0 else np.zeros((0, block.shape[1]), np.uint8)
            yield Slots.paired(one, block, (earlier, row), put(block[row]))
    for block, gone in zip(before, left, strict=True):
        if gone.any():
            yield replace(Slots.only_before(block[gone], 0), round=drop(block[gone]))


def single_table_slots(
    before: FlowProgram, after: FlowProgram, rounds: Rounds, gone: Rounds, last: int
) -> Iterator[Slots]:
    """The slots of a switch of one table: every row of a prefix in the round of its route.

    Args:
        before: what is held.
        after: what will be held.
        rounds: those of rows of prefixes.
        gone: the same of rows that go.
        last: the last round.
    """
    prepare, end = in_round(PREPARE), in_round(last)
    yield from matched(_filled(before.groups), _filled(after.groups), prepare, end)
    kinds = {kind_of(block) for block in _filled((*before.flows, *after.flows))}
    for kind in sorted(kinds):
        put, drop = (rounds, gone) if kind == RowKind.ROUTE else (prepare, end)
        one, other = (
            [block for block in _filled(program.flows) if kind_of(block) == kind]
            for program in (before, after)
        )
        yield from matched(one, other, end if kind == RowKind.MARKER else put, drop)


def _filled(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if len(block)]


def _keys(block: Block) -> Sequence[bytes | int]:
    """What tells each message's row or group from others: its place, or its number."""
    return added_groups(block) if kind_of(block) == RowKind.GROUP else row_places(block)
