"""The OpenFlow programs of switches during an update: their slots, and when each changes.

Three kinds of rounds: in round 0 all that no packet uses yet is added to what switches hold
(groups, classes, hosts, answers); then the routes, level by level; in the last round packets from
hosts get their alternates back, and what nothing uses any more goes. Where these are marked, the
rows that spread them come in a round before. Hosts' packets carry intermediates no more from round
0 on, and again from the last round on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import with_instructions
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import (
    DRAWN_NUMBER,
    FROM_HOSTS_NUMBER,
    IPV6_NUMBER,
    MARKED_NUMBER,
    ROLE_SHIFT,
    kind_of,
    xid_numbers,
)
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.move_plan import PREPARE, Update
from compilers.update.slots import (
    NO_ROW,
    Counts,
    Part,
    Slots,
    counts,
    in_round,
    matched,
    single_table_slots,
)

Numbers = NDArray[Any]
ENTERING = (GroupRole.ENTER, GroupRole.FALLBACK)


class SwitchPrograms:
    """What every switch of an update is sent, round by round.

    A switch is known by its place in `update.nodes`, and by the generation of numbers that it holds
    before the update.
    """

    def __init__(self, update: Update) -> None:
        self.update = update
        self._old, self._new = Encoder(update.old), Encoder(update.new)

    def generation(self, before: int) -> int:
        """The generation that a switch has after the update."""
        return before if self.update.in_place else 1 - before

    def slots(self, node: int, generation: int = 0) -> tuple[Slots, ...]:
        """The slots of a switch; none of one that the new build has not."""
        u = self.update
        old, new = int(u.nodes.before[node]), int(u.nodes.after[node])
        if new < 0:
            return ()
        program = self._new.program(new, self.generation(generation))
        if old < 0:
            blocks = [block for block in (*program.groups, *program.flows) if len(block)]
            rounds = [u.last if _draws(block) else PREPARE for block in blocks]
            return tuple(map(Slots.only_after, blocks, rounds))
        earlier = self._old.program(old, generation)
        if self._new.profile(new).single or self._old.profile(old).single:
            return tuple(self._of_single_table(new, earlier, program))
        return tuple(self._slots(node, new, _ProgramParts.of(earlier), _ProgramParts.of(program)))

    def profile(self, node: int) -> Profile:
        """What a switch can do, of its two node types the lesser one."""
        sides = (self._old, self.update.nodes.before), (self._new, self.update.nodes.after)
        return reduce(
            Profile.within, (e.profile(int(v[node])) for e, v in sides if int(v[node]) >= 0)
        )

    def restrict(self, node: int, able: Profile) -> None:
        """A switch has shown that it can do no more than this."""
        self._old.restrict(int(self.update.nodes.before[node]), able)
        self._new.restrict(int(self.update.nodes.after[node]), able)

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words."""
        return self._new.describe(number)

    def counts(self, node: int) -> dict[Part, Counts]:
        """What changes at a switch in all."""
        return counts(self.slots(node))

    def _slots(
        self, node: int, new: int, one: _ProgramParts, other: _ProgramParts
    ) -> Iterator[Slots]:
        u = self.update
        for v6 in (False, True):
            yield from self._routes(new, one.routes[v6], other.routes[v6], v6)
        if u.in_place:
            yield from self._in_place(node, one, other)
        else:
            yield from _in_both(one, other, u.last)
        yield from self._local(one.local, other.local)
        carrying = in_round(u.carrying)
        yield from matched(one.carried, other.carried, carrying, in_round(u.last))
        yield from matched(one.spread, other.spread, in_round(u.spreading), in_round(u.last))
        yield from matched([one.marker], [other.marker], in_round(u.last), in_round(u.last))

    def _local(self, before: Sequence[Block], after: Sequence[Block]) -> Iterator[Slots]:
        """Hosts, answers and entrances. Rows that draw intermediates go first and come last."""
        u, last = self.update, self.update.last

        def put(block: Block) -> Numbers:
            swapped = u.carrying if _addressed(block) else PREPARE
            return np.full(len(block), last if _draws(block) else swapped)

        def drop(block: Block) -> Numbers:
            swapped = u.carrying if u.swaps and _addressed(block) else last
            return np.full(len(block), PREPARE if _draws(block) else swapped)

        for slots in matched(before, after, put, drop):
            stays = slots.had.all() and slots.has.all() and _draws(slots.after)
            yield from slots.split(PREPARE, last) if u.pauses and stays else (slots,)

    def _of_single_table(
        self, new: int, before: FlowProgram, after: FlowProgram
    ) -> Iterator[Slots]:
        u = self.update

        def put(block: Block) -> Numbers:
            return u.rounds_of(new, xid_numbers(block) % IPV6_NUMBER)

        def drop(block: Block) -> Numbers:
            numbers = xid_numbers(block)
            return u.rounds_of_gone(new, numbers % IPV6_NUMBER, bool(numbers[0] >= IPV6_NUMBER))

        yield from single_table_slots(before, after, put, drop, u.last)

    def _routes(self, new: int, before: Block, after: Block, v6: bool) -> Iterator[Slots]:
        """The routes of one address family, old and new ones of a network in one slot."""
        u = self.update
        if not len(before) and not len(after):
            return
        none = np.zeros((0, max(before.shape[1], after.shape[1])), np.uint8)
        before, after = (block if len(block) else none for block in (before, after))
        was, now = (xid_numbers(block) % IPV6_NUMBER for block in (before, after))
        earlier = (u.nodes.prefix6 if v6 else u.nodes.prefix)[now]
        place = np.minimum(np.searchsorted(was, earlier), max(len(was) - 1, 0))
        kept = (was[place] == earlier) if len(was) else np.zeros(len(now), np.bool_)
        partner = np.where(kept, place, NO_ROW)
        gone = np.setdiff1d(np.arange(len(was)), partner)
        pair = (
            np.concatenate((partner, gone)),
            np.concatenate((np.arange(len(now)), np.full(len(gone), NO_ROW))),
        )
        rounds = np.concatenate((u.rounds_of(new, now), u.rounds_of_gone(new, was[gone], v6)))
        yield from self._split((before, after), (was, now), pair, rounds, v6)

    def _split(
        self,
        blocks: tuple[Block, Block],
        prefixes: tuple[Numbers, Numbers],
        pair: tuple[Numbers, Numbers],
        rounds: Numbers,
        v6: bool,
    ) -> Iterator[Slots]:
        """The same, where a new row's destination is served by an old aggregate in three steps.

        First it gets a row that does what the aggregate does, in its round the new one.
        """
        u, (before, after), (was, now) = self.update, blocks, prefixes
        routes, numbers = u.new.tables.routes, u.nodes.prefix6 if v6 else u.nodes.prefix
        split = np.zeros(len(rounds), np.bool_)
        if routes.aggregated and len(was):
            alone_now = np.flatnonzero((pair[0][: len(now)] < 0) & (now < len(routes.aggregate)))
            aggregate = routes.aggregate[now[alone_now]]
            old_prefix = np.where(aggregate >= 0, numbers[aggregate], NO_ROW)
            row = np.minimum(np.searchsorted(was, old_prefix), len(was) - 1)
            served = was[row] == old_prefix
            split[alone_now[served]] = True
            if served.any():
                fresh, due = after[alone_now[served]], rounds[alone_now[served]]
                meanwhile = with_instructions(fresh, before[row[served]])
                place = np.arange(len(fresh))
                alone = np.full(len(fresh), NO_ROW), place
                first = Slots.paired(before[:0], meanwhile, alone, np.full(len(fresh), PREPARE))
                yield replace(first, until=due)
                yield replace(Slots.paired(meanwhile, fresh, (place, place), due), since=PREPARE)
        yield Slots.paired(before, after, pair, rounds).take(~split)

    def _in_place(self, node: int, one: _ProgramParts, other: _ProgramParts) -> Iterator[Slots]:
        """Classes and groups of a switch whose numbers mean the same before and after."""
        u = self.update
        yield from matched(one.groups, other.groups, in_round(PREPARE), in_round(u.last))
        kept = u.new.tables.classes.port[u.nodes.after[node]] > 0
        prepare = in_round(PREPARE)
        for slots in matched(one.classes, other.classes, prepare, prepare):
            role, egress = np.divmod(slots.numbers, 1 << ROLE_SHIFT)
            again = np.isin(role, ENTERING) & u.affected[node][egress]
            yield slots.take(~again, np.where(kept[egress] | slots.has, PREPARE, u.last))
            yield from slots.take(again).split(PREPARE, u.last)


@dataclass(frozen=True, slots=True)
class _ProgramParts:
    """The program of a switch, in parts that change in different rounds."""

    groups: list[Block]
    """The groups of its egress classes."""
    routes: tuple[Block, Block]
    """The route rows of IPv4, and those of IPv6."""
    classes: list[Block]
    """The rows of egress classes."""
    local: list[Block]
    """The rows for hosts at the switch itself."""
    spread: list[Block]
    """The rows for marked packets."""
    carried: list[Block]
    """The rows for packets that carry an intermediate."""
    marker: Block
    """The row that names the build."""

    @classmethod
    def of(cls, program: FlowProgram) -> _ProgramParts:
        """Sort the blocks of a program."""
        routes = [np.zeros((0, 0), np.uint8), np.zeros((0, 0), np.uint8)]
        kinds = (RowKind.CLASS, RowKind.SPREAD, RowKind.CARRIED, RowKind.MARKER)
        sorts: dict[RowKind, list[Block]] = {kind: [] for kind in kinds}
        local: list[Block] = []
        for block in program.flows:
            if not len(block):
                continue
            kind = kind_of(block)
            if kind == RowKind.ROUTE:
                routes[int(xid_numbers(block[:1])[0] >= IPV6_NUMBER)] = block
            else:
                sorts.get(kind, local).append(block)
        groups = [block for block in program.groups if len(block)]
        marker = sorts[RowKind.MARKER][0]
        classes, spread = sorts[RowKind.CLASS], sorts[RowKind.SPREAD]
        carried = sorts[RowKind.CARRIED]
        return cls(groups, (routes[0], routes[1]), classes, local, spread, carried, marker)


def _addressed(block: Block) -> bool:
    """Whether these rows let packets in that are sent to another MAC address than the gateway's."""
    number = int(xid_numbers(block[:1])[0])
    return kind_of(block) == RowKind.FORWARD and MARKED_NUMBER <= number < FROM_HOSTS_NUMBER


def _draws(block: Block) -> bool:
    """Whether these rows give hosts' packets an intermediate, or keep it from some."""
    return kind_of(block) == RowKind.FORWARD and bool(xid_numbers(block[:1])[0] >= DRAWN_NUMBER)


def _in_both(one: _ProgramParts, other: _ProgramParts, last: int) -> Iterator[Slots]:
    """Classes and groups in two generations: the new ones first, the old ones last."""
    for block in other.groups:
        yield Slots.only_after(block, PREPARE)
    for block in other.classes:
        role = int(xid_numbers(block[:1])[0]) >> ROLE_SHIFT
        yield Slots.only_after(block, last if role in ENTERING else PREPARE)
    for block in (*one.groups, *one.classes):
        yield Slots.only_before(block, last)
