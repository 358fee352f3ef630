"""The OpenFlow rows and groups of one switch during a move, with the rounds that change them.

A *slot* is a place for a row (its table, priority and match) or for a group (its number), with the
row or group that is there before the move and the one that is there after it; either may be
missing. `Slots` keeps many of them as arrays. What comes in are the messages that add the old and
the new rows; what goes out are the rows that the switch holds after any round (`held_after`),
and the messages of a round (`messages`). Both are selections from the same arrays.

In shapes, n is the number of slots and L the bytes of a message. `programs` makes the slots of a
switch, and the controller sends their messages. `slots_by_place` pairs the old and the new rows
that have the same place. Each message of a block adds one row or one group, and is named by its
index in the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import (
    added_groups,
    flow_deletions,
    group_changes,
    group_deletions,
    row_keys,
    same_but_xid,
)
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of, xid_numbers
from compilers.targets.openflow.message_parts import Block
from compilers.update.move_plan import PREPARE

Numbers = NDArray[Any]
Part = Literal["groups", "classes", "routes", "local"]
"""A part of a switch's program, in which changes are counted."""
BEGINNING = -1
"""In place of a round: before the first one."""
NO_MESSAGE = -1
"""In place of the index of a message in a block: there is none."""
NO_BLOCK = -1
"""In place of the index of an old block: no old block has a row for the slot."""
RoundRule = Callable[[Block], Numbers]
"""A rule that says for n messages of a block, int[n], the rounds in which they change."""
SLOT_PARTS: dict[RowKind, Part] = {
    RowKind.GROUP: "groups",
    RowKind.CLASS: "classes",
    RowKind.ROUTE: "routes",
}
"""The part in which rows of a kind are counted. All other kinds are `local`; the marker, which
names the build, is not counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """n slots of one kind, whose messages have the same layout.

    Most rows or groups change once: until `round` a switch holds the old one, and from then on the
    new one. A row that changes twice has two slots with the same place: the first with
    `end_rounds`, the second with `begin_round`. So in no round both say what the place holds.
    """

    kind: RowKind
    """The kind of rows or groups."""
    before: Block
    """uint8[n, L], the bundled messages that add the old row; zeros where there is none."""
    after: Block
    """uint8[n, L'], the bundled messages that add the new row; zeros where there is none."""
    exists_before: NDArray[np.bool_]
    """bool[n], whether there is an old row."""
    exists_after: NDArray[np.bool_]
    """bool[n], whether there is a new row."""
    round: Numbers
    """int[n], the round in which each slot changes."""
    begin_round: int = BEGINNING
    """The round from which `before` is held; BEGINNING unless the row changes twice."""
    end_rounds: Numbers | None = None
    """int[n], the rounds from which `after` is no longer held, as the place changes again; None if
    it does not."""

    @classmethod
    def of_added(cls, block: Block, round: int | Numbers) -> Slots:
        """Slots for n rows that are added, in one round or in the rounds int[n]."""
        return cls._one_sided(block, round, is_new=True)

    @classmethod
    def of_removed(cls, block: Block, round: int | Numbers) -> Slots:
        """Slots for n rows that are removed, in one round or in the rounds int[n]."""
        return cls._one_sided(block, round, is_new=False)

    @classmethod
    def of_unchanged(cls, block: Block) -> Slots:
        """Slots for rows that stay as they are."""
        exists = np.full(len(block), True)
        return cls(
            kind=kind_of(block),
            before=block,
            after=block,
            exists_before=exists,
            exists_after=exists,
            round=np.full(len(block), PREPARE),  # nothing differs, so nothing is sent in any round
        )

    @classmethod
    def of_pairs(
        cls, before: Block, after: Block, old_index: Numbers, new_index: Numbers, round: Numbers
    ) -> Slots:
        """Slots that pair messages of two blocks.

        Args:
            before: uint8[m, L], messages that are held.
            after: uint8[m', L'], messages that will be held.
            old_index: int[n], the message of each slot in `before`, or NO_MESSAGE.
            new_index: int[n], the message of each slot in `after`, or NO_MESSAGE.
            round: int[n], the round in which each slot changes.
        """
        return cls(
            kind=kind_of(before if len(before) else after),
            before=_messages_or_zeros(before, old_index),
            after=_messages_or_zeros(after, new_index),
            exists_before=old_index != NO_MESSAGE,
            exists_after=new_index != NO_MESSAGE,
            round=round,
        )

    @classmethod
    def _one_sided(cls, block: Block, round: int | Numbers, is_new: bool) -> Slots:
        """Slots with a row after the move only, or before it only (`is_new` is False)."""
        return cls(
            kind=kind_of(block),
            before=block,
            after=block,
            exists_before=np.full(len(block), not is_new),
            exists_after=np.full(len(block), is_new),
            round=np.full(len(block), round),
        )

    @property
    def is_changed(self) -> NDArray[np.bool_]:
        """bool[n], the slots whose row changes; the numbers of messages (xid) do not count."""
        comes_or_goes: NDArray[np.bool_] = self.exists_before != self.exists_after
        stays = self.exists_before & self.exists_after
        if self.before is self.after:
            return comes_or_goes
        if self.before.shape[1] != self.after.shape[1]:
            return comes_or_goes | stays
        return comes_or_goes | (stays & ~same_but_xid(self.before, self.after))

    def held_after(self, round: int) -> Iterator[Block]:
        """Yield the messages of the rows that are held after a round; BEGINNING: before all."""
        changes_later = self.round > round
        holds_before = self.exists_before & changes_later & (self.begin_round <= round)
        holds_after = self.exists_after & ~changes_later
        if self.end_rounds is not None:
            holds_after &= self.end_rounds > round
        for block, is_held in ((self.before, holds_before), (self.after, holds_after)):
            if is_held.any():
                yield block[is_held]

    def opposite_move(self) -> Slots:
        """The slots of the opposite move, from the new rows to the old ones.

        Only `messages` and counts may be asked of them. Each slot keeps the number of its round,
        but the opposite move carries out the rounds from the last to the first. `held_after` takes
        them from the first to the last, so its answers would be wrong.
        """
        return replace(
            self,
            before=self.after,
            after=self.before,
            exists_before=self.exists_after,
            exists_after=self.exists_before,
            begin_round=BEGINNING,
            end_rounds=None,
        )

    def selected(self, chosen: NDArray[np.bool_], round: Numbers | None = None) -> Slots:
        """Some of the slots.

        Args:
            chosen: bool[n].
            round: int[n], the rounds in which they change instead; None: their own.
        """
        rounds = self.round if round is None else round
        return Slots(
            kind=self.kind,
            before=self.before[chosen],
            after=self.after[chosen],
            exists_before=self.exists_before[chosen],
            exists_after=self.exists_after[chosen],
            round=rounds[chosen],
        )

    def split(self, removed_in: int, added_in: int) -> tuple[Slots, Slots]:
        """Slots that remove the old rows in one round, and add the new ones in another."""
        nowhere = np.zeros(len(self.round), np.bool_)
        return (
            replace(self, exists_after=nowhere, round=np.full(len(nowhere), removed_in)),
            replace(self, exists_before=nowhere, round=np.full(len(nowhere), added_in)),
        )

    @property
    def numbers(self) -> NDArray[np.int64]:
        """int64[n], the number in the xid of each slot's message, the new one if there is one."""
        return np.where(self.exists_after, xid_numbers(self.after), xid_numbers(self.before))


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many rows or groups of a switch change."""

    added: int = 0
    """Rows and groups that are new."""
    changed: int = 0
    """Rows and groups that do something else."""
    removed: int = 0
    """Rows and groups that are removed."""

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        return ChangeCounts(
            self.added + other.added, self.changed + other.changed, self.removed + other.removed
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def messages(slots: Sequence[Slots], round: int) -> list[Block]:
    """The messages that one switch is sent in a round.

    Rows lead to groups, and groups to other groups. So groups come first, then rows, then removals
    of rows, and removals of groups in the opposite order at last.

    Args:
        slots: all slots of the switch.
        round: the round.
    """
    groups, rows = list[Block](), list[Block]()
    row_removals, group_removals = list[Block](), list[Block]()
    for kind_slots in slots:
        changes = (kind_slots.round == round) & kind_slots.is_changed
        if not changes.any():
            continue
        is_added = changes & kind_slots.exists_after
        is_removed = changes & ~kind_slots.exists_after
        if kind_slots.kind == RowKind.GROUP:
            new_groups = kind_slots.after[is_added & ~kind_slots.exists_before]
            changed_groups = kind_slots.after[is_added & kind_slots.exists_before]
            groups += [new_groups, group_changes(changed_groups)]
            group_removals.append(group_deletions(kind_slots.before[is_removed]))
        else:
            rows.append(kind_slots.after[is_added])
            row_removals.append(flow_deletions(kind_slots.before[is_removed]))
    ordered = (*groups, *rows, *row_removals, *reversed(group_removals))
    return [block for block in ordered if len(block)]


def change_counts(slots: Iterable[Slots], round: int | None = None) -> dict[Part, ChangeCounts]:
    """How many rows and groups of a switch change, by part.

    Args:
        slots: the slots of the switch.
        round: the round that is counted; None: all rounds.
    """
    totals: dict[Part, ChangeCounts] = {
        part: ChangeCounts() for part in ("groups", "classes", "routes", "local")
    }
    for kind_slots in slots:
        if kind_slots.kind == RowKind.MARKER:
            continue
        before, after = kind_slots.exists_before, kind_slots.exists_after
        changes = kind_slots.is_changed
        if round is not None:
            changes = changes & (kind_slots.round == round)
        totals[SLOT_PARTS.get(kind_slots.kind, "local")] += ChangeCounts(
            added=int(np.count_nonzero(changes & after & ~before)),
            changed=int(np.count_nonzero(changes & after & before)),
            removed=int(np.count_nonzero(changes & before & ~after)),
        )
    return totals


def changes_by_round(slots: Iterable[Slots], rounds: int) -> NDArray[np.int64]:
    """How many rows and groups of a switch change in each round, without its marker.

    Returns:
        int64[rounds].
    """
    changes = np.zeros(rounds, np.int64)
    for kind_slots in slots:
        if kind_slots.kind != RowKind.MARKER:
            changing_rounds = kind_slots.round[kind_slots.is_changed]
            changes += np.bincount(changing_rounds, minlength=rounds)
    return changes


def constant_round(round: int) -> RoundRule:
    """The rule by which all messages change in one round."""
    return lambda block: np.full(len(block), round)


def slots_by_place(
    before: Sequence[Block], after: Sequence[Block], added_in: RoundRule, removed_in: RoundRule
) -> Iterator[Slots]:
    """Yield the slots of small blocks. An old and a new row for one place share a slot.

    Args:
        before: messages that are held.
        after: messages that will be held.
        added_in: the rounds in which rows are added or changed.
        removed_in: the rounds in which rows are removed.
    """
    if len(before) == len(after) and all(map(np.array_equal, before, after)):
        yield from map(Slots.of_unchanged, after)
        return
    # By the key of a slot: the old block that has a message for it, and the message's index there.
    old_places = {
        key: (old_block, old_index)
        for old_block, block in enumerate(before)
        for old_index, key in enumerate(_slot_keys(block))
    }
    is_removed = [np.full(len(block), True) for block in before]
    for block in after:
        matches = [old_places.get(key, (NO_BLOCK, NO_MESSAGE)) for key in _slot_keys(block)]
        # By message of this block: the index of the old block, and of the message there.
        old_blocks, old_indexes = np.array(matches).T
        # Slots have one old block, so there are slots for each old block that matches.
        for old_block in np.unique(old_blocks).tolist():
            message_index = np.flatnonzero(old_blocks == old_block)
            old_index = old_indexes[message_index]
            old_messages = np.zeros((0, block.shape[1]), np.uint8)
            if old_block != NO_BLOCK:
                old_messages = before[old_block]
                is_removed[old_block][old_index] = False
            rounds = added_in(block[message_index])
            yield Slots.of_pairs(old_messages, block, old_index, message_index, rounds)
    for block, is_removed_message in zip(before, is_removed, strict=True):
        removed = block[is_removed_message]
        if len(removed):
            yield Slots.of_removed(removed, removed_in(removed))


def _messages_or_zeros(block: Block, index: Numbers) -> Block:
    """The messages of a block with these indexes; zeros in place of NO_MESSAGE."""
    present = index != NO_MESSAGE
    messages_or_zeros = np.zeros((len(index), block.shape[1]), np.uint8)
    messages_or_zeros[present] = block[index[present]]
    return messages_or_zeros


def single_table_slots(
    before: FlowProgram, after: FlowProgram, added_in: RoundRule, removed_in: RoundRule, last: int
) -> Iterator[Slots]:
    """Yield the slots of a switch with one table, where a route is many rows.

    Args:
        before: the program that is held.
        after: the program that will be held.
        added_in: the rounds of rows for a prefix: those of its route.
        removed_in: the rounds of rows for a prefix that are removed.
        last: the last round.
    """
    prepare, end = constant_round(PREPARE), constant_round(last)
    yield from slots_by_place(_nonempty(before.groups), _nonempty(after.groups), prepare, end)
    kinds = {kind_of(block) for block in _nonempty((*before.flows, *after.flows))}
    for kind in sorted(kinds):
        old_rows, new_rows = (
            [block for block in _nonempty(program.flows) if kind_of(block) == kind]
            for program in (before, after)
        )
        if kind == RowKind.ROUTE:
            yield from slots_by_place(old_rows, new_rows, added_in, removed_in)
        else:
            yield from slots_by_place(
                old_rows, new_rows, end if kind == RowKind.MARKER else prepare, end
            )


def _nonempty(blocks: Sequence[Block]) -> list[Block]:
    """The blocks that have messages."""
    return [block for block in blocks if len(block)]


def _slot_keys(block: Block) -> Sequence[bytes | int]:
    """The identity of each message's slot: the place of its row, or the number of its group."""
    return added_groups(block) if kind_of(block) == RowKind.GROUP else row_keys(block)
