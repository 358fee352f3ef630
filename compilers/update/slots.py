"""The rows and groups of one switch during an update, each with the round in which it changes.

A *slot* is a place for a row (its table, priority and match) or for a group (its number), with what
is there before and after; either may be nothing. So the program of every moment, and the
messages that lead from one to the next or back, are selections from the same columns. Slots of
small blocks, and those of a switch of one table, are known by their places.
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
    row_places,
    same_but_xid,
)
from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of, xid_numbers
from compilers.targets.openflow.message_parts import Block
from compilers.update.move_plan import PREPARE

Numbers = NDArray[Any]
Part = Literal["groups", "classes", "routes", "local"]
BEGINNING = -1
"""The round before the first."""
SLOT_PARTS: dict[RowKind, Part] = {
    RowKind.GROUP: "groups",
    RowKind.CLASS: "classes",
    RowKind.ROUTE: "routes",
}
"""What a kind of message is counted as; all others are `local`, but for the marker."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """n slots of one kind, alike in their layouts."""

    kind: RowKind
    """Which rows or groups they are."""
    before: Block
    """uint8[n, L], the bundled messages that add the old row; zeros where there is none."""
    after: Block
    """uint8[n, L'], the bundled messages that add the new row; zeros where there is none."""
    had: NDArray[np.bool_]
    """bool[n], whether there is an old row."""
    has: NDArray[np.bool_]
    """bool[n], whether there is a new row."""
    round: Numbers
    """int[n], the round in which each slot changes."""
    since: int = BEGINNING
    """The round from which `before` is held."""
    until: Numbers | None = None
    """int[n], the rounds in which other slots of the same places change; None where there are none.
    """

    @classmethod
    def only_after(cls, block: Block, round: int) -> Slots:
        """What is added in a round."""
        return cls._alone(block, round, new=True)

    @classmethod
    def only_before(cls, block: Block, round: int) -> Slots:
        """What is removed in a round."""
        return cls._alone(block, round, new=False)

    @classmethod
    def unchanged(cls, block: Block) -> Slots:
        """What is there before and after."""
        held = np.full(len(block), True)
        return cls(kind_of(block), block, block, held, held, np.zeros(len(block), np.int64))

    @classmethod
    def paired(
        cls, before: Block, after: Block, pair: tuple[Numbers, Numbers], round: Numbers
    ) -> Slots:
        """Slots whose messages are rows of two blocks.

        Args:
            before: uint8[., L], messages that are held.
            after: uint8[., L'], messages that will be held.
            pair: int[n] twice, the row of each slot in these blocks; -1 where nothing is.
            round: int[n].
        """
        sides = []
        for block, row in zip((before, after), pair, strict=True):
            present = row >= 0
            values = np.zeros((len(row), block.shape[1]), np.uint8)
            values[present] = block[row[present]]
            sides.append((values, present))
        kind = kind_of(before if len(before) else after)
        return cls(kind, sides[0][0], sides[1][0], sides[0][1], sides[1][1], round)

    @classmethod
    def _alone(cls, block: Block, round: int, new: bool) -> Slots:
        held = np.full(len(block), True)
        rounds = np.full(len(block), round)
        return cls(kind_of(block), block, block, held & (not new), held & new, rounds)

    @property
    def differ(self) -> NDArray[np.bool_]:
        """bool[n]: slots in which something changes. Numbers of messages do not count."""
        one, other = self.before, self.after
        differ: NDArray[np.bool_] = self.had != self.has
        if one is other:
            return differ
        if one.shape[1] != other.shape[1]:
            return differ | (self.had & self.has)
        return differ | (self.had & self.has & ~same_but_xid(one, other))

    def held_after(self, round: int) -> Iterator[Block]:
        """What is held when this round is over; -1: before the update."""
        later = self.round > round
        before = self.had & later & (self.since <= round)
        after = self.has & ~later
        if self.until is not None:
            after &= self.until > round
        for block, held in ((self.before, before), (self.after, after)):
            if held.any():
                yield block[held]

    def turned(self) -> Slots:
        """The way back, from after to before, of which only the messages are used."""
        return Slots(self.kind, self.after, self.before, self.has, self.had, self.round)

    def take(self, chosen: NDArray[np.bool_], round: Numbers | None = None) -> Slots:
        """Some of them, in another round if one is given."""
        rounds = self.round if round is None else round
        return Slots(
            kind=self.kind,
            before=self.before[chosen],
            after=self.after[chosen],
            had=self.had[chosen],
            has=self.has[chosen],
            round=rounds[chosen],
        )

    def split(self, removed: int, added: int) -> tuple[Slots, Slots]:
        """Removal in one round and addition in another, in the place of a change."""
        none = np.zeros(len(self.round), np.bool_)
        return (
            replace(self, has=none, round=np.full(len(none), removed)),
            replace(self, had=none, round=np.full(len(none), added)),
        )

    @property
    def numbers(self) -> NDArray[np.int64]:
        """int64[n], the lower 24 bits of each message's xid."""
        return np.where(self.has, xid_numbers(self.after), xid_numbers(self.before))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows or groups of a switch change."""

    added: int = 0
    """Rows and groups that are new."""
    changed: int = 0
    """Rows and groups that do something else."""
    removed: int = 0
    """Rows and groups that go."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.added + other.added, self.changed + other.changed, self.removed + other.removed
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def messages(slots: Sequence[Slots], round: int) -> list[Block]:
    """What one switch is sent in a round: groups, rows, then removals of rows and of groups."""
    puts: dict[bool, list[Block]] = {True: [], False: []}
    drops: dict[bool, list[Block]] = {True: [], False: []}
    for s in slots:
        chosen = (s.round == round) & s.differ
        if not chosen.any():
            continue
        groups = s.kind == RowKind.GROUP
        if groups:
            fresh, stale = chosen & s.has & ~s.had, chosen & s.has & s.had
            puts[True] += [s.after[fresh], group_changes(s.after[stale])]
            drops[True].append(group_deletions(s.before[chosen & ~s.has]))
        else:
            puts[False].append(s.after[chosen & s.has])
            drops[False].append(flow_deletions(s.before[chosen & ~s.has]))
    # A group that others lead to comes first, and goes last.
    ordered = (*puts[True], *puts[False], *drops[False], *reversed(drops[True]))
    return [block for block in ordered if len(block)]


def counts(slots: Iterable[Slots], round: int | None = None) -> dict[Part, Counts]:
    """What changes at a switch, in one round or in all."""
    totals: dict[Part, Counts] = {
        part: Counts() for part in ("groups", "classes", "routes", "local")
    }
    for s in slots:
        if s.kind == RowKind.MARKER:
            continue
        chosen = s.differ if round is None else s.differ & (s.round == round)
        totals[SLOT_PARTS.get(s.kind, "local")] += Counts(
            int(np.count_nonzero(chosen & s.has & ~s.had)),
            int(np.count_nonzero(chosen & s.has & s.had)),
            int(np.count_nonzero(chosen & s.had & ~s.has)),
        )
    return totals


def changes_by_round(slots: Iterable[Slots], rounds: int) -> NDArray[np.int64]:
    """int64[rounds]: how many rows and groups of a switch change in each; without its marker."""
    changes = np.zeros(rounds, np.int64)
    for s in slots:
        if s.kind != RowKind.MARKER:
            changes += np.bincount(s.round[s.differ], minlength=rounds)
    return changes


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
        places = np.array([place.get(key, (NO_ROW, NO_ROW)) for key in _keys(block)])
        for b in np.unique(places[:, 0]).tolist():
            row = np.flatnonzero(places[:, 0] == b)
            earlier = places[row, 1]
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
