"""The messages of a repair: only rows and groups that change, for each switch and round.

In round 0 groups are corrected, and packets from hosts keep to the minimal ports of the classes
that change; then routes change; in the last round these packets get their alternates back, and
groups that nothing uses go (docs/how-to/move.md). What all classes concerned do before and after is
compared role by role, and what differs is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.routing.link_repair import distinct
from compilers.tables.intermediate_form import Classes, Tables
from compilers.targets.openflow.bundled_blocks import flow_deletions, group_changes, group_deletions
from compilers.targets.openflow.class_groups import (
    FROM_HOSTS,
    NOT_LED,
    Groups,
    by_buckets,
    class_groups,
)
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import MOST_BASIS
from compilers.targets.openflow.group_and_flow_bytes import IPV6_NUMBER, shared, xid_numbers
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.difference import classes_differ
from compilers.update.move_plan import PREPARE
from compilers.update.repair_rounds import GONE, RepairRounds
from compilers.update.slots import messages, single_table_slots

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Round = dict[int, list[bytes]]
"""The messages of a round, by vertex."""
Shape = tuple[Profile, int]
"""What a switch can do, and the generation of its numbers."""


def repair_messages(
    encoder: Encoder, after: Tables, change: RepairRounds, generations: Numbers
) -> list[Round]:
    """The messages of every round that has any.

    Args:
        encoder: of the tables that are held.
        after: the tables that will be held, their classes with the same ports as those now.
        change: the rows that change, and the classes that may.
        generations: int64[S], of the numbers that each switch holds.
    """
    rounds: list[Round] = [{} for _ in range(change.last + 1)]
    for shape, switches in _shapes(encoder, change, generations).items():
        profile, generation = shape
        if profile.single:
            later = encoder.with_tables(after)
            for switch in switches:
                one, other = (
                    tables_encoder.program(switch, generation)
                    for tables_encoder in (encoder, later)
                )
                _single_table(one, other, change, switch, rounds)
            continue
        chosen = np.zeros(len(generations), np.bool_)
        chosen[switches] = True
        bundles = _Bundles.of(encoder, after.classes, change.at(chosen), shape)
        for part in (*bundles.parts(), *bundles.carried(encoder.with_tables(after))):
            if len(part.block):
                part.hand_out(rounds)
    return [messages for messages in rounds if messages]


def _shapes(encoder: Encoder, change: RepairRounds, generations: Numbers) -> dict[Shape, list[int]]:
    """The switches that change, by profile and generation."""
    switches: dict[Shape, list[int]] = {}
    for switch in change.switches.tolist():
        shape = encoder.profile(switch), int(generations[switch])
        switches.setdefault(shape, []).append(switch)
    return switches


def _single_table(
    before: FlowProgram, after: FlowProgram, change: RepairRounds, switch: int, rounds: list[Round]
) -> None:
    """Add the messages of a switch of one table, where a route is many rows."""
    of_switch = change.rows[change.rows[:, 0] == switch]
    when = dict(zip(of_switch[:, 1].tolist(), of_switch[:, 3].tolist(), strict=True))

    def round_of(block: Block) -> Numbers:
        prefixes = (xid_numbers(block) % IPV6_NUMBER).tolist()
        return np.array([when.get(prefix, PREPARE) for prefix in prefixes], np.int64)

    slots = list(single_table_slots(before, after, round_of, round_of, change.last))
    for number, round in enumerate(rounds):
        if sent := messages(slots, number):
            round.setdefault(switch, []).extend(block.tobytes() for block in sent)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """n messages of one layout."""

    block: Block
    """uint8[n, L], the messages."""
    switch: Numbers
    """int64[n], the switch that each message is for."""
    round: Numbers
    """int64[n], the round in which each message is sent."""

    def hand_out(self, rounds: list[Round]) -> None:
        """Put each switch's messages behind those that it has in these rounds."""
        key = self.round << 32 | self.switch
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        for start, end in pairwise((0, *cuts.tolist(), len(order))):
            round, switch = int(self.round[order[start]]), int(self.switch[order[start]])
            messages = rounds[round].setdefault(switch, [])
            messages.append(self.block[order[start:end]].tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class _Bundles:
    """What the bundles are made of, for switches whose numbers are of one generation."""

    encoder: Encoder
    """Writes the rows of this generation."""
    shape: Shape
    """The layout of the tables."""
    change: RepairRounds
    """The rows that change, in rounds."""
    switch: Numbers
    """int64[m], the switch of each class concerned."""
    old: list[Groups]
    """The groups before the change, one block a role."""
    new: list[Groups]
    """The groups after the change, one block a role."""
    number: Numbers
    """int64[m], the number of each class concerned."""
    next_hops: tuple[Numbers, Numbers]
    """int[m, 1 + A] before and after, the ports of each class that have a weight."""

    @classmethod
    def of(cls, encoder: Encoder, after: Classes, change: RepairRounds, shape: Shape) -> _Bundles:
        """Look up the classes that differ, and where rows change those that packets come to."""
        before = encoder.build.tables.classes
        places = tuple(change.classes.T)
        pairs = change.classes[classes_differ((before, after), (places, places))]
        if change.last > 1:
            pairs = distinct(np.concatenate((pairs, change.entered)))
        switch, number = pairs.T
        every_hop = encoder.build.forwarding.every_hop
        old, new = (
            list(class_groups(classes, switch, number, shape[0], encoder.marks, every_hop))
            for classes in (before, after)
        )
        next_hops = _next_hops(before, pairs), _next_hops(after, pairs)
        return cls(encoder, shape, change, pairs[:, 0], old, new, number, next_hops)

    def parts(self) -> Iterator[_Part]:
        """Groups, rows, then removals of rows and of groups: one that others lead to comes first,
        and goes last.
        """
        every = list(zip(self.old, self.new, strict=True))
        roles = [(one, other) for one, other in every if one.made]
        put, gone = self._class_rows()
        for one, other in roles:
            differ = (one.port != other.port) | (one.weight != other.weight)
            for block, switch in self._groups(other, other.there & ~one.there):
                yield self._part(block, switch)
            stale = one.there & other.there & differ.any(axis=1)
            for block, switch in self._groups(other, stale):
                yield self._part(group_changes(block), switch)
        for (_, other), chosen in zip(every, put, strict=True):
            late = other.entering and self.change.last > 1
            yield self._rows(other, chosen, self.change.last if late else PREPARE)
        if self.encoder.build.forwarding.every_hop:
            yield from self._shared_rows()
        yield from self._routes()
        for (one, _), chosen in zip(every, gone, strict=True):
            part = self._rows(one, chosen)
            yield replace(part, block=flow_deletions(part.block))
        for one, other in reversed(roles):
            for block, switch in self._groups(one, one.there & ~other.there):
                yield self._part(group_deletions(block), switch, self.change.last)

    def _rows(self, groups: Groups, chosen: Flags, round: int = PREPARE) -> _Part:
        """The rows that lead to groups, where metadata tells nothing one for each host's port."""
        profile, generation = self.shape
        chosen_groups, switch = groups.take(chosen), self.switch[chosen]
        if groups.entering and not profile.masks:
            ports = self.encoder.build.wiring.host_port[switch]
            option, host = np.nonzero(ports > 0)
            chosen_groups = replace(chosen_groups.take(option), in_port=ports[option, host])
            switch = switch[option]
        block = self.encoder.class_messages(chosen_groups, generation, profile)
        return self._part(block, switch, round)

    def _class_rows(self) -> tuple[Flags, Flags]:
        """bool[roles, m] twice: the groups whose rows are put, and those whose rows go."""
        before, after = (np.array([g.entry for g in side]) for side in (self.old, self.new))
        put = (after != NOT_LED) & (after != before)
        gone = (before != NOT_LED) & ~(before[:, None] == after).any(axis=1)
        if (
            self.encoder.build.forwarding.every_hop
        ):  # a row of several next hops is where that of a group was
            gone[0] &= np.count_nonzero(self.next_hops[1], axis=1) <= 1
        if self.change.last > 1:
            put, gone = put | (after == FROM_HOSTS), gone | (before == FROM_HOSTS)
        return put, gone

    def _shared_rows(self) -> Iterator[_Part]:
        """Rows of classes that packets from anywhere share over several next hops.

        Until the last round these are those that the class has before and after.
        """
        before, after = self.next_hops
        both = np.where(before == after, after, 0)
        for next_hops, held, round in (
            (both, before, PREPARE),
            (after, both, self.change.last),
        ):
            several = np.count_nonzero(after, axis=1) > 1
            for place in np.flatnonzero((next_hops != held).any(axis=1) & several).tolist():
                switch, ports = self.switch[place : place + 1], next_hops[place]
                basis, number = int(switch[0]) & MOST_BASIS, int(self.number[place])
                row = shared(number, ports[ports > 0], basis, self.shape[1])
                yield self._part(row, switch, round)

    def _routes(self) -> Iterator[_Part]:
        switch, prefix, egress, round = self.change.rows.T
        for stays in (True, False):
            chosen = (egress != GONE) == stays
            number = np.maximum(egress[chosen], 0)
            profile, generation = self.shape
            for block in self.encoder.route_messages(prefix[chosen], number, generation, profile):
                block = block if stays else flow_deletions(block)
                yield _Part(block, switch[chosen], round[chosen])

    def carried(self, later: Encoder) -> Iterator[_Part]:
        """Rows by intermediates, each in the round of the route to that switch."""
        ends, build = intermediates(later.build), later.build
        aggregate = build.tables.routes.aggregate[ends]
        for switch in np.unique(self.change.rows[:, 0]).tolist():
            blocks = later.carried_messages(switch, self.shape[1], self.encoder)
            if not blocks:
                continue
            rows = self.change.rows[self.change.rows[:, 0] == switch]
            when = np.zeros(max(rows[:, 1].max(), ends.max(), aggregate.max()) + 2, np.int64)
            when[rows[:, 1]] = rows[:, 3]  # the last place is for those without an aggregate
            rounds = np.where(when[ends] > 0, when[ends], when[aggregate])
            for block in blocks:
                number = xid_numbers(block)
                yield _Part(block, np.full(len(block), switch), rounds[number])

    def _groups(self, groups: Groups, chosen: Flags) -> Iterator[tuple[Block, Numbers]]:
        if not chosen.any():
            return
        switch = self.switch[chosen]
        for which, alike in by_buckets(groups.take(chosen)):
            yield self.encoder.group_messages(alike, self.shape[1]), switch[which]

    def _part(self, block: Block, switch: Numbers, round: int = PREPARE) -> _Part:
        return _Part(block, switch, np.full(len(switch), round))


def _next_hops(classes: Classes, pairs: Numbers) -> Numbers:
    """int[n, 1 + A]: the ports of classes (switch and number) that have a weight, 0 for others."""
    switch, number = pairs.T
    ports = np.column_stack((classes.port[switch, number], classes.alternate[switch, number]))
    return np.asarray(ports * (classes.weight[switch, number] > 0))
