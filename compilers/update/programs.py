"""The OpenFlow programs of switches during a move: their slots, and when each changes.

What comes in is an `Update`, a move in rounds. What goes out are slots: the places of rows and
groups of one switch, with the old and the new content, and the round in which each changes. The
controller sends their messages round by round.

There are three kinds of rounds. In round 0 switches get all that no packet uses yet. Then the
routes change, level by level (`order`). In the last round packets from hosts get their alternates
back, and rows and groups that nothing uses are removed. The parts of a program (`_ProgramParts`)
change in these rounds:

| part | added or changed in | removed in |
|---|---|---|
| groups, and rows of classes | round 0 | the last round |
| routes | the round of their level | the last round, or that of their aggregate |
| local rows: hosts, answers to ARP and neighbour discovery, LLDP frames | round 0 | the last |
| spread rows, which spread marked packets | `Update.learn_marks_round` | the last round |
| carried rows, for packets with an intermediate | `Update.learn_intermediates_round` | the last |
| the marker, a row that names the build | the last round | |

Rows for packets from hosts are the exception: some of them are removed in round 0 and come back in
the last round, so that these packets take the minimal port, or no intermediate, in between
(`SwitchPrograms._local_slots` and `_class_slots`).

`SwitchPrograms.slots` makes the slots of a switch (`compilers.update.slots`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import with_instructions
from compilers.targets.openflow.class_groups import GroupRole
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import (
    IPV6_NUMBER,
    ROLE_SHIFT,
    is_number_of_intermediate_choice,
    is_number_of_other_macs,
    kind_of,
    xid_numbers,
)
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.matching import NO_NUMBER, find_numbers
from compilers.update.move_plan import PREPARE, Update
from compilers.update.slots import (
    NO_MESSAGE,
    ChangeCounts,
    Part,
    Slots,
    change_counts,
    constant_round,
    single_table_slots,
    slots_by_place,
)

Numbers = NDArray[Any]
ENTERING = (GroupRole.ENTER, GroupRole.FALLBACK)
"""The roles of groups for packets from hosts, which enter the fabric at the switch."""
MOST_CACHED = 64
"""The most switches that an update may have for their slots to be cached between rounds. Slots take
memory, so in larger updates they are computed for each round."""


class SwitchPrograms:
    """The programs of all switches of an update, round by round.

    A switch is a `node`, its number in `update.nodes`. Its vertex in the old build is `old_vertex`,
    and that in the new build is `new_vertex`. Switches hold class and group numbers in one of two
    *generations*, 0 or 1. An argument `generation` is always the one that a switch holds before the
    update; `generation_after` returns the one that it holds afterwards.
    """

    def __init__(self, update: Update, discovers: bool = False) -> None:
        """Begin without slots.

        Args:
            update: the move.
            discovers: whether switches send LLDP frames to the controller, in all rounds.
        """
        self.update = update
        self._old, self._new = Encoder(update.old), Encoder(update.new)
        self._old.discovers = self._new.discovers = discovers
        self._cached: dict[tuple[int, int, Profile | None, Profile | None], tuple[Slots, ...]] = {}
        """By node, generation and its profiles in the old and the new build."""

    def generation_after(self, generation: int) -> int:
        """The generation that a switch has after the update: 0 or 1.

        Args:
            generation: the one that it has before the update.
        """
        return generation if self.update.is_in_place else 1 - generation

    def slots(self, node: int, generation: int = 0) -> tuple[Slots, ...]:
        """The slots of a switch; () if the new build does not have the switch.

        Args:
            node: the switch.
            generation: the one that it holds. To count changes, any will do.
        """
        nodes = self.update.nodes
        if len(nodes.new_vertex) > MOST_CACHED:
            return self._compute_slots(node, generation)
        old_vertex, new_vertex = int(nodes.old_vertex[node]), int(nodes.new_vertex[node])
        profiles = (
            self._old.profile(old_vertex) if old_vertex >= 0 else None,
            self._new.profile(new_vertex) if new_vertex >= 0 else None,
        )
        key = node, generation, *profiles
        if key not in self._cached:
            self._cached[key] = self._compute_slots(node, generation)
        return self._cached[key]

    def _compute_slots(self, node: int, generation: int) -> tuple[Slots, ...]:
        """The slots of a switch, from its programs in both builds."""
        update = self.update
        nodes = update.nodes
        old_vertex, new_vertex = int(nodes.old_vertex[node]), int(nodes.new_vertex[node])
        if new_vertex < 0:
            return ()
        program = self._new.program(new_vertex, self.generation_after(generation))
        if old_vertex < 0:
            # A new switch gets its program before any packet comes to it. Only its hosts' packets
            # have to wait until all switches know intermediates.
            blocks = [block for block in (*program.groups, *program.flows) if len(block)]
            rounds = [
                update.last_round if _chooses_intermediate(block) else PREPARE for block in blocks
            ]
            return tuple(map(Slots.of_added, blocks, rounds))
        old_program = self._old.program(old_vertex, generation)
        if self._new.profile(new_vertex).single or self._old.profile(old_vertex).single:
            return tuple(self._single_table_slots(new_vertex, old_program, program))
        old_parts, new_parts = _ProgramParts.of(old_program), _ProgramParts.of(program)
        return tuple(self._slots_of_parts(node, new_vertex, old_parts, new_parts))

    def profile(self, node: int) -> Profile:
        """What a switch can do in both builds, in which its node type may differ."""
        nodes = self.update.nodes
        old_vertex, new_vertex = int(nodes.old_vertex[node]), int(nodes.new_vertex[node])
        profiles = []
        if old_vertex >= 0:
            profiles.append(self._old.profile(old_vertex))
        if new_vertex >= 0:
            profiles.append(self._new.profile(new_vertex))
        return reduce(Profile.within, profiles)

    def restrict(self, node: int, profile: Profile) -> None:
        """Note that a switch of both builds has shown that it can do no more than this profile."""
        self._old.restrict(int(self.update.nodes.old_vertex[node]), profile)
        self._new.restrict(int(self.update.nodes.new_vertex[node]), profile)

    def describe(self, number: int) -> str:
        """What the message with this number (xid) is about, in words."""
        return self._new.describe(number)

    def counts(self, node: int) -> dict[Part, ChangeCounts]:
        """How many rows and groups of a switch change in all rounds, by part."""
        return change_counts(self.slots(node))

    def _slots_of_parts(
        self, node: int, new_vertex: int, before: _ProgramParts, after: _ProgramParts
    ) -> Iterator[Slots]:
        """Yield the slots of a switch that both builds have, part by part.

        Args:
            node: the switch.
            new_vertex: its vertex in the new build.
            before: its old program.
            after: its new program.
        """
        update = self.update
        for v6 in (False, True):
            old_routes, new_routes = before.routes[v6], after.routes[v6]
            yield from self._route_family_slots(new_vertex, old_routes, new_routes, v6)
        if update.is_in_place:
            yield from self._class_slots(node, before, after)
        else:
            yield from _slots_of_both_generations(before, after, update.last_round)
        yield from self._local_slots(before.local, after.local)
        last = constant_round(update.last_round)
        yield from slots_by_place(
            before.carried, after.carried, constant_round(update.learn_intermediates_round), last
        )
        yield from slots_by_place(
            before.spread, after.spread, constant_round(update.learn_marks_round), last
        )
        yield from slots_by_place([before.marker], [after.marker], last, last)

    def _local_slots(self, before: Sequence[Block], after: Sequence[Block]) -> Iterator[Slots]:
        """Yield the slots of rows for hosts, for answers, and for packets that hosts send.

        Rows that choose intermediates are removed in round 0 and added in the last round. Packets
        from hosts are then taken by the rows for packets from any port. So rows that drop all else
        that hosts send, which come before these, are out for the same time.

        Args:
            before: the old rows.
            after: the new rows.
        """
        update, last = self.update, self.update.last_round

        def added_in(block: Block) -> Numbers:
            """The round in which rows are added or changed."""
            round_of_rows = PREPARE
            if _is_out_during_move(block):
                round_of_rows = last
            elif _admits_other_macs(block):
                round_of_rows = update.learn_intermediates_round
            return np.full(len(block), round_of_rows)

        def removed_in(block: Block) -> Numbers:
            """The round in which rows are removed.

            Rows that admit other MAC addresses than the gateway's go before the last round if such
            an address gets another meaning (`Update.swaps_mac_meaning`).
            """
            round_of_rows = last
            if _is_out_during_move(block):
                round_of_rows = PREPARE
            elif update.swaps_mac_meaning and _admits_other_macs(block):
                round_of_rows = update.learn_intermediates_round
            return np.full(len(block), round_of_rows)

        for slots in slots_by_place(before, after, added_in, removed_in):
            stays = slots.exists_before.all() and slots.exists_after.all()
            if update.pauses_intermediates and stays and _is_out_during_move(slots.after):
                yield from slots.split(removed_in=PREPARE, added_in=last)
            else:
                yield slots

    def _single_table_slots(
        self, new_vertex: int, before: FlowProgram, after: FlowProgram
    ) -> Iterator[Slots]:
        """Yield the slots of a switch that has one table in either build.

        Args:
            new_vertex: the vertex of the switch in the new build.
            before: its old program.
            after: its new program.
        """
        update = self.update

        def added_in(block: Block) -> Numbers:
            """The rounds of rows that are added or changed."""
            return update.change_rounds(new_vertex, xid_numbers(block) % IPV6_NUMBER)

        def removed_in(block: Block) -> Numbers:
            """The rounds of rows that are removed."""
            numbers = xid_numbers(block)
            return update.removal_rounds(
                new_vertex, numbers % IPV6_NUMBER, bool(numbers[0] >= IPV6_NUMBER)
            )

        yield from single_table_slots(before, after, added_in, removed_in, update.last_round)

    def _route_family_slots(
        self, new_vertex: int, before: Block, after: Block, v6: bool
    ) -> Iterator[Slots]:
        """Yield the slots of the routes of one address family.

        The old and the new row of a network share a slot.

        Args:
            new_vertex: the vertex of the switch in the new build.
            before: its old rows.
            after: its new rows.
            v6: whether they are IPv6.
        """
        update = self.update
        if not len(before) and not len(after):
            return
        no_rows = np.zeros((0, max(before.shape[1], after.shape[1])), np.uint8)
        before, after = (block if len(block) else no_rows for block in (before, after))
        prefix_before, prefix_after = (
            xid_numbers(block) % IPV6_NUMBER for block in (before, after)
        )
        # Of each new row, the old row of the same network, found by its prefix number.
        old_prefix = update.nodes.old_prefix6 if v6 else update.nodes.old_prefix
        index, has_old_row = find_numbers(prefix_before, old_prefix[prefix_after])
        old_row = np.where(has_old_row, index, NO_MESSAGE)
        removed = np.setdiff1d(np.arange(len(prefix_before)), old_row)
        rounds = (
            update.change_rounds(new_vertex, prefix_after),
            update.removal_rounds(new_vertex, prefix_before[removed], v6),
        )
        rows = _RouteRows(
            before=before,
            after=after,
            prefix_before=prefix_before,
            prefix_after=prefix_after,
            old_row=np.concatenate((old_row, removed)),
            new_row=np.concatenate(
                (np.arange(len(prefix_after)), np.full(len(removed), NO_MESSAGE))
            ),
            round=np.concatenate(rounds),
        )
        yield from self._route_slots(rows, old_prefix)

    def _route_slots(self, rows: _RouteRows, old_prefix: Numbers) -> Iterator[Slots]:
        """Yield the slots of routes; destinations that leave an old aggregate have two slots.

        Args:
            rows: the routes, with their rounds.
            old_prefix: by prefix number of the new build the number in the old build.
        """
        leaving = self._leaving_aggregates(rows, old_prefix)
        if len(leaving.slot):
            yield from _slots_in_two_steps(rows, leaving)
        in_one_step = np.ones(len(rows.round), np.bool_)
        in_one_step[leaving.slot] = False
        all_slots = Slots.of_pairs(rows.before, rows.after, rows.old_row, rows.new_row, rows.round)
        yield all_slots.selected(in_one_step)

    def _leaving_aggregates(self, rows: _RouteRows, old_prefix: Numbers) -> _LeavingAggregates:
        """The destinations with a row of their own that an aggregate served before.

        Args:
            rows: the routes.
            old_prefix: by prefix number of the new build the number in the old build.
        """
        routes = self.update.new.tables.routes
        if not routes.aggregated:
            none = np.zeros(0, np.int64)
            return _LeavingAggregates(none, none)
        # The slots of rows that are new, and those of them that are for a destination.
        added = rows.added
        added = added[rows.prefix_after[added] < len(routes.aggregate)]
        aggregate = routes.aggregate[rows.prefix_after[added]]
        old_aggregate = np.where(aggregate >= 0, old_prefix[aggregate], NO_NUMBER)
        old_row, was_served = find_numbers(rows.prefix_before, old_aggregate)
        return _LeavingAggregates(added[was_served], old_row[was_served])

    def _class_slots(
        self, node: int, before: _ProgramParts, after: _ProgramParts
    ) -> Iterator[Slots]:
        """Yield the slots of classes and groups whose numbers mean the same before and after.

        Rows for packets from hosts are removed in round 0 and added in the last round, if the
        packets of their class have to keep to the minimal port in between (`Update.keeps_minimal`).

        Args:
            node: the switch.
            before: its old program.
            after: its new program.
        """
        update = self.update
        yield from slots_by_place(
            before.groups, after.groups, constant_round(PREPARE), constant_round(update.last_round)
        )
        # bool[C], the classes that the switch has in the new build.
        in_new_build = update.new.tables.classes.port[update.nodes.new_vertex[node]] > 0
        prepare = constant_round(PREPARE)
        for slots in slots_by_place(before.classes, after.classes, prepare, prepare):
            # The number of a message (xid) holds the role of the group, then the class.
            role, egress = np.divmod(slots.numbers, 1 << ROLE_SHIFT)
            is_out = np.isin(role, ENTERING) & update.keeps_minimal[node][egress]
            # Rows of classes that are gone are removed last, as packets use them until then.
            rounds = np.where(in_new_build[egress] | slots.exists_after, PREPARE, update.last_round)
            yield slots.selected(~is_out, rounds)
            yield from slots.selected(is_out).split(removed_in=PREPARE, added_in=update.last_round)


@dataclass(frozen=True, slots=True, eq=False)
class _RouteRows:
    """The route rows of a switch and one address family, as n slots.

    First come the slots of all new rows, in their order, then those of old rows that are removed.
    """

    before: Block
    """The messages of the old rows."""
    after: Block
    """The messages of the new rows."""
    prefix_before: Numbers
    """The prefix number of each old row in the old build, ascending."""
    prefix_after: Numbers
    """The prefix number of each new row in the new build."""
    old_row: Numbers
    """int[n], the old row of each slot, or NO_MESSAGE."""
    new_row: Numbers
    """int[n], the new row of each slot, or NO_MESSAGE."""
    round: Numbers
    """int[n], the round in which each slot changes."""

    @property
    def added(self) -> Numbers:
        """The slots of new rows whose network had no old row; each is also the new row."""
        return np.flatnonzero(self.old_row[: len(self.prefix_after)] == NO_MESSAGE)


class _LeavingAggregates(NamedTuple):
    """The m destinations that leave an old aggregate."""

    slot: Numbers
    """int[m], the slot of each among the `_RouteRows`, some of `_RouteRows.added`."""
    old_row: Numbers
    """int[m], the old row of its aggregate."""


def _slots_in_two_steps(rows: _RouteRows, leaving: _LeavingAggregates) -> Iterator[Slots]:
    """Yield two slots for each destination that leaves an old aggregate.

    It first gets a row of its own that does what the aggregate does, and in its round the new row.

    Args:
        rows: the routes.
        leaving: these destinations.
    """
    new_rows, change_round = rows.after[leaving.slot], rows.round[leaving.slot]
    as_aggregate = with_instructions(new_rows, rows.before[leaving.old_row])
    every_row = np.arange(len(new_rows))
    no_row = np.full(len(new_rows), NO_MESSAGE)
    prepare = np.full(len(new_rows), PREPARE)
    first = Slots.of_pairs(rows.before[:0], as_aggregate, no_row, every_row, prepare)
    yield replace(first, end_rounds=change_round)
    second = Slots.of_pairs(as_aggregate, new_rows, every_row, every_row, change_round)
    yield replace(second, begin_round=PREPARE)


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
        by_kind: dict[RowKind, list[Block]] = {kind: [] for kind in kinds}
        local: list[Block] = []
        for block in program.flows:
            if not len(block):
                continue
            kind = kind_of(block)
            if kind == RowKind.ROUTE:
                routes[int(xid_numbers(block[:1])[0] >= IPV6_NUMBER)] = block
            else:
                by_kind.get(kind, local).append(block)
        return cls(
            groups=[block for block in program.groups if len(block)],
            routes=(routes[0], routes[1]),
            classes=by_kind[RowKind.CLASS],
            local=local,
            spread=by_kind[RowKind.SPREAD],
            carried=by_kind[RowKind.CARRIED],
            marker=by_kind[RowKind.MARKER][0],
        )


def _is_out_during_move(block: Block) -> bool:
    """Whether rows are removed in round 0 and added in the last round (`_local_slots`).

    If the rows are the same in both builds, they are out only if intermediates pause.
    """
    return _chooses_intermediate(block) or _drops_spoofed(block)


def _admits_other_macs(block: Block) -> bool:
    """Whether rows admit packets to another MAC address than the gateway's.

    Such an address means a mark or an intermediate.
    """
    number = int(xid_numbers(block[:1])[0])
    return kind_of(block) == RowKind.FORWARD and is_number_of_other_macs(number)


def _drops_spoofed(block: Block) -> bool:
    """Whether rows drop what hosts may not send."""
    return kind_of(block) == RowKind.GUARD


def _chooses_intermediate(block: Block) -> bool:
    """Whether rows give hosts' packets an intermediate, or exempt some packets from that."""
    number = int(xid_numbers(block[:1])[0])
    return kind_of(block) == RowKind.FORWARD and is_number_of_intermediate_choice(number)


def _slots_of_both_generations(
    before: _ProgramParts, after: _ProgramParts, last: int
) -> Iterator[Slots]:
    """Yield the slots of classes and groups that change their generation.

    The new ones are added in round 0, next to the old ones, which are removed in the last round.
    """
    for block in after.groups:
        yield Slots.of_added(block, PREPARE)
    for block in after.classes:
        role = int(xid_numbers(block[:1])[0]) >> ROLE_SHIFT
        yield Slots.of_added(block, last if role in ENTERING else PREPARE)
    for block in (*before.groups, *before.classes):
        yield Slots.of_removed(block, last)
