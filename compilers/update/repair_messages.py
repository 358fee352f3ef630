"""The OpenFlow messages of a repair: only rows and groups that change, for each switch and round.

The controller computes new tables when links or switches fail, and `RepairRounds` says which rows
and classes differ. `repair_messages` encodes them:

- in round 0 groups are corrected, and packets from hosts keep to the minimal ports of the classes
  that change;
- then routes change, level by level;
- in the last round packets from hosts get the alternates of their class back, and groups that
  nothing uses are removed (docs/how-to/move.md). Where paths are shared at every hop, a class may
  gain next hops. In the last round a class starts using its new next hops; only then is a packet
  arriving from one treated as sent back by a repair.

Switches that can do the same and hold the same generation get their messages from one computation
over all their classes, role by role (`_ClassMessages`). A *generation* is one of two sets of class
and group numbers. A *role* says which packets of a class a group is for, such as packets from hosts
(`class_groups.GroupRole`). In shapes, m is the number of classes that change, A of the alternates
of a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.routing.link_repair import distinct_pairs
from compilers.tables.intermediate_form import Classes, Tables
from compilers.targets.openflow.bundled_blocks import flow_deletions, group_changes, group_deletions
from compilers.targets.openflow.class_groups import (
    FROM_HOSTS,
    NO_ROW,
    GroupRole,
    Groups,
    by_buckets,
    class_groups,
)
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.flow_tables import MOST_BASIS
from compilers.targets.openflow.group_and_flow_bytes import (
    IPV6_NUMBER,
    shared_class_row,
    xid_numbers,
)
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.difference import classes_differ
from compilers.update.move_plan import PREPARE
from compilers.update.repair_rounds import GONE, RepairRounds
from compilers.update.slots import messages, single_table_slots

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Round = dict[int, list[bytes]]
"""The messages of a round, by switch."""


class SwitchKind(NamedTuple):
    """What makes the messages of switches alike."""

    profile: Profile
    """What the switch can do."""
    generation: int
    """The generation of the class numbers that it holds."""


def repair_messages(
    encoder: Encoder, after: Tables, change: RepairRounds, generations: Numbers
) -> list[Round]:
    """The messages of every round that has any.

    Args:
        encoder: encodes the tables that are held.
        after: the tables that will be held; class numbers mean the same ports.
        change: the rows that change, and the classes that may change.
        generations: int64[S], the generation of class numbers that each switch holds.
    """
    rounds: list[Round] = [{} for _ in range(change.last_round + 1)]
    later = encoder.with_tables(after)
    for kind, switches in _switches_by_kind(encoder, change, generations).items():
        if kind.profile.single:
            for switch in switches:
                program_before = encoder.program(switch, kind.generation)
                program_after = later.program(switch, kind.generation)
                _add_single_table(program_before, program_after, change, switch, rounds)
            continue
        is_of_kind = np.zeros(len(generations), np.bool_)
        is_of_kind[switches] = True
        of_kind = _ClassMessages.of(encoder, after.classes, change.of_switches(is_of_kind), kind)
        for part in (*of_kind.groups_and_rows(), *of_kind.carried(later), *of_kind.spread(later)):
            if len(part.block):
                part.append_to(rounds)
    return [messages_of_switches for messages_of_switches in rounds if messages_of_switches]


def _switches_by_kind(
    encoder: Encoder, change: RepairRounds, generations: Numbers
) -> dict[SwitchKind, list[int]]:
    """The switches at which something changes, by profile and generation."""
    switches: dict[SwitchKind, list[int]] = {}
    for switch in change.switches.tolist():
        kind = SwitchKind(encoder.profile(switch), int(generations[switch]))
        switches.setdefault(kind, []).append(switch)
    return switches


def _add_single_table(
    before: FlowProgram, after: FlowProgram, change: RepairRounds, switch: int, rounds: list[Round]
) -> None:
    """Add the messages of a switch with one table, where a route is many rows.

    Args:
        before: its program now.
        after: its program after the repair.
        change: the rows that change.
        switch: its vertex.
        rounds: the messages so far, to which is added.
    """
    rows = change.rows.selected(change.rows.switch == switch)
    round_of_prefix = dict(zip(rows.prefix.tolist(), rows.round.tolist(), strict=True))

    def round_of(block: Block) -> Numbers:
        """The round of each message, by the prefix in its number."""
        prefixes = (xid_numbers(block) % IPV6_NUMBER).tolist()
        return np.array([round_of_prefix.get(prefix, PREPARE) for prefix in prefixes], np.int64)

    slots = list(single_table_slots(before, after, round_of, round_of, change.last_round))
    for round, sent in enumerate(rounds):
        if blocks := messages(slots, round):
            sent.setdefault(switch, []).extend(block.tobytes() for block in blocks)


@dataclass(frozen=True, slots=True, eq=False)
class _Messages:
    """n messages with the same layout, for several switches and rounds."""

    block: Block
    """uint8[n, L], the messages."""
    switch: Numbers
    """int64[n], the switch that each message is for."""
    round: Numbers
    """int64[n], the round in which each message is sent."""

    def append_to(self, rounds: list[Round]) -> None:
        """Append each switch's messages to those that it has in these rounds."""
        order = np.lexsort((self.switch, self.round))  # by round, then by switch
        round_in_order, switch_in_order = self.round[order], self.switch[order]
        is_new = (np.diff(round_in_order) != 0) | (np.diff(switch_in_order) != 0)
        starts = np.flatnonzero(is_new) + 1
        for start, end in pairwise((0, *starts.tolist(), len(order))):
            round, switch = int(round_in_order[start]), int(switch_in_order[start])
            of_switch = rounds[round].setdefault(switch, [])
            of_switch.append(self.block[order[start:end]].tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class _ClassMessages:
    """Makes the messages for the m classes that change at switches of one kind."""

    encoder: Encoder
    """Encodes rows and groups of the tables that are held."""
    kind: SwitchKind
    """The profile and the generation of these switches."""
    change: RepairRounds
    """The rows that change, in rounds."""
    switch: Numbers
    """int64[m], the switch of each class."""
    old: list[Groups]
    """The groups of the classes before the change, one entry for each role."""
    new: list[Groups]
    """The groups of the classes after the change, one entry for each role."""
    class_number: Numbers
    """int64[m], the number of each class."""
    next_hop_ports_before: Numbers
    """int[m, 1 + A], the ports of each class before the change, first the minimal port; 0 for a
    port without a weight."""
    next_hop_ports_after: Numbers
    """int[m, 1 + A], the ports of each class after the change."""

    @classmethod
    def of(
        cls, encoder: Encoder, after: Classes, change: RepairRounds, kind: SwitchKind
    ) -> _ClassMessages:
        """Look up the classes that differ, and the classes to which rows that change lead.

        A class to which such a row leads is needed even if it stays the same: while routes change,
        its packets from hosts keep to the minimal port.

        Args:
            encoder: encodes the tables that are held.
            after: the classes that will be held.
            change: the changes at the switches of this kind.
            kind: the profile and the generation of these switches.
        """
        before = encoder.build.tables.classes
        index = tuple(change.classes.T)  # the switch and the number of each class
        classes = change.classes[classes_differ(before, index, after, index)]
        if change.has_route_rounds:
            classes = distinct_pairs(np.concatenate((classes, change.entered_classes)))
        switch, class_number = classes.T
        marks, every_hop = encoder.marks, encoder.build.forwarding.every_hop
        old, new = (
            list(
                class_groups(
                    table,
                    switch=switch,
                    egress=class_number,
                    profile=kind.profile,
                    marking=marks,
                    every_hop=every_hop,
                )
            )
            for table in (before, after)
        )
        return cls(
            encoder=encoder,
            kind=kind,
            change=change,
            switch=switch,
            old=old,
            new=new,
            class_number=class_number,
            next_hop_ports_before=_next_hop_ports(before, switch, class_number),
            next_hop_ports_after=_next_hop_ports(after, switch, class_number),
        )

    def groups_and_rows(self) -> Iterator[_Messages]:
        """Yield groups, then rows, then removals of rows, and removals of groups.

        Groups lead to other groups. So a group that others lead to is added first and removed last.
        """
        all_roles = list(zip(self.old, self.new, strict=True))
        roles_with_groups = [(old, new) for old, new in all_roles if old.is_new]
        is_added, is_removed = self._changed_rows()
        for old, new in roles_with_groups:
            yield from self._corrected_groups(old, new)
        for (_, new), is_row in zip(all_roles, is_added, strict=True):
            comes_last = self._from_gained_hop(new)
            # While routes change, packets from hosts keep to the minimal ports.
            if new.from_hosts and self.change.has_route_rounds:
                comes_last = np.ones_like(is_row)
            yield self._rows(new, is_row & ~comes_last)
            yield self._rows(new, is_row & comes_last, self.change.last_round)
        if self.encoder.build.forwarding.every_hop:
            yield from self._shared_rows()
        yield from self._routes()
        for (old, _), is_row in zip(all_roles, is_removed, strict=True):
            added = self._rows(old, is_row)
            yield replace(added, block=flow_deletions(added.block))
        for old, new in reversed(roles_with_groups):
            for block, switch in self._groups(old, old.exists & ~new.exists):
                yield self._in_round(group_deletions(block), switch, self.change.last_round)

    def _corrected_groups(self, old: Groups, new: Groups) -> Iterator[_Messages]:
        """Yield the groups of a role that are added, then the groups that change."""
        for block, switch in self._groups(new, new.exists & ~old.exists):
            yield self._in_round(block, switch)
        differ = (old.port != new.port) | (old.weight != new.weight)
        is_changed = old.exists & new.exists & differ.any(axis=1)
        comes_last = self._from_gained_hop(new)
        for chosen, round in (
            (is_changed & ~comes_last, PREPARE),
            (is_changed & comes_last, self.change.last_round),
        ):
            for block, switch in self._groups(new, chosen):
                yield self._in_round(group_changes(block), switch, round)

    def _from_gained_hop(self, groups: Groups) -> Flags:
        """Which groups are for packets from a next hop that their class gains, bool[m].

        A class gains next hops only where paths are shared at every hop, and sends packets to them
        from the last round on. A packet that comes in from a new next hop in the last round has
        been sent back by a repair. A packet that comes in from it in an earlier round has not: the
        old rows of this neighbour lead here, and the class forwards the packet as before. So these
        groups change last.
        """
        if not self.encoder.build.forwarding.every_hop:
            return np.zeros(len(groups.in_port), np.bool_)
        after = self.next_hop_ports_after
        is_gained = (after > 0) & (self.next_hop_ports_before != after)
        return np.asarray((is_gained & (after == groups.in_port[:, None])).any(axis=1))

    def _rows(self, groups: Groups, chosen: Flags, round: int = PREPARE) -> _Messages:
        """The rows that lead to the chosen groups.

        A row for packets from hosts matches a bit of metadata. If a switch cannot match single bits
        (`Profile.masks`), there is a row for each port of a host instead.
        """
        profile, generation = self.kind
        chosen_groups, switch = groups.take(chosen), self.switch[chosen]
        if groups.from_hosts and not profile.masks:
            ports = self.encoder.build.wiring.host_port[switch]
            group, host = np.nonzero(ports > 0)  # of each row
            chosen_groups = replace(chosen_groups.take(group), in_port=ports[group, host])
            switch = switch[group]
        block = self.encoder.class_messages(chosen_groups, generation, profile)
        return self._in_round(block, switch, round)

    def _changed_rows(self) -> tuple[Flags, Flags]:
        """The groups whose rows are added or changed, and the groups whose rows are removed.

        Returns:
            bool[roles, m] twice.
        """
        # int[roles, m]: the ingress port of the row of each class, or NO_ROW.
        before = np.array([groups.ingress_of_row for groups in self.old])
        after = np.array([groups.ingress_of_row for groups in self.new])
        is_added = (after != NO_ROW) & (after != before)
        # A row stays if any role has a row for this ingress port afterwards, which replaces it.
        is_removed = (before != NO_ROW) & ~(before[:, None] == after).any(axis=1)
        if self.encoder.build.forwarding.every_hop:
            # The row of a class with several next hops (`_shared_rows`) matches the same packets as
            # the row that leads to the TRANSIT group, and replaces it.
            next_hop_count = np.count_nonzero(self.next_hop_ports_after, axis=1)
            is_removed[GroupRole.TRANSIT] &= next_hop_count <= 1
        if self.change.has_route_rounds:
            # Rows for packets from hosts are removed in round 0 and added in the last round, so
            # that these packets keep to the minimal ports in between.
            is_added |= after == FROM_HOSTS
            is_removed |= before == FROM_HOSTS
        return is_added, is_removed

    def _shared_rows(self) -> Iterator[_Messages]:
        """Yield rows of classes with several next hops, where paths are shared at every hop.

        Until the last round packets take only the next hops that the class has before and after.
        """
        before, after = self.next_hop_ports_before, self.next_hop_ports_after
        in_both = np.where(before == after, after, 0)
        has_several = np.count_nonzero(after, axis=1) > 1
        # From what a class has before to what it has in both, and from there to what it has after.
        for held, sent, round in (
            (before, in_both, PREPARE),
            (in_both, after, self.change.last_round),
        ):
            is_changed = (held != sent).any(axis=1) & has_several
            for index in np.flatnonzero(is_changed).tolist():
                switch, ports = self.switch[index : index + 1], sent[index]
                basis, class_number = int(switch[0]) & MOST_BASIS, int(self.class_number[index])
                row = shared_class_row(class_number, ports[ports > 0], basis, self.kind.generation)
                yield self._in_round(row, switch, round)

    def _routes(self) -> Iterator[_Messages]:
        """Yield the route rows that are added or changed, then the removals of route rows."""
        rows = self.change.rows
        profile, generation = self.kind
        added = rows.selected(rows.egress != GONE)
        for block in self.encoder.route_messages(added.prefix, added.egress, generation, profile):
            yield _Messages(block, added.switch, added.round)
        removed = rows.selected(rows.egress == GONE)
        any_class = np.zeros_like(removed.egress)
        for block in self.encoder.route_messages(removed.prefix, any_class, generation, profile):
            yield _Messages(flow_deletions(block), removed.switch, removed.round)

    def carried(self, later: Encoder) -> Iterator[_Messages]:
        """Yield the rows for packets that carry an intermediate.

        A row changes in the round of the route to its intermediate: of the intermediate's own route
        if that changes, otherwise of the route of its aggregate.

        Args:
            later: encodes the tables that will be held.
        """
        intermediate = intermediates(later.build)
        aggregate = later.build.tables.routes.aggregate[intermediate]
        for switch in np.union1d(self.change.rows.switch, self.change.avoiding_switches).tolist():
            blocks = later.carried_messages(switch, self.kind.generation, self.encoder)
            if not blocks:
                continue
            rows = self.change.rows.selected(self.change.rows.switch == switch)
            # The round of each prefix number, 0 if its row does not change. Index -1, for no
            # aggregate, finds the last entry, which is 0.
            highest = max(rows.prefix.max(initial=0), intermediate.max(), aggregate.max())
            round_of_prefix = np.zeros(highest + 2, np.int64)
            round_of_prefix[rows.prefix] = rows.round
            own_round, aggregate_round = round_of_prefix[intermediate], round_of_prefix[aggregate]
            rounds = np.where(own_round > 0, own_round, aggregate_round)
            for block in blocks:
                index = xid_numbers(block)  # of the intermediate in `intermediate`
                yield _Messages(block, np.full(len(block), switch), rounds[index])

    def spread(self, later: Encoder) -> Iterator[_Messages]:
        """Yield the rows that spread marked packets over other links than before, all in round 0.

        Args:
            later: encodes the tables that will be held.
        """
        for switch in self.change.avoiding_switches.tolist():
            for block in later.spread_messages(switch, self.kind.generation, self.encoder):
                yield self._in_round(block, np.full(len(block), switch))

    def _groups(self, groups: Groups, chosen: Flags) -> Iterator[tuple[Block, Numbers]]:
        """Yield the messages of the chosen groups, and the switch of each.

        Groups with the same number of buckets are in one block.
        """
        if not chosen.any():
            return
        switch = self.switch[chosen]
        for same_size in by_buckets(groups.take(chosen)):
            block = self.encoder.group_messages(same_size.groups, self.kind.generation)
            yield block, switch[same_size.index]

    def _in_round(self, block: Block, switch: Numbers, round: int = PREPARE) -> _Messages:
        """Messages that are all sent in one round."""
        return _Messages(block, switch, np.full(len(switch), round))


def _next_hop_ports(classes: Classes, switch: Numbers, class_number: Numbers) -> Numbers:
    """The ports of classes that have a weight, int[n, 1 + A]; 0 for the others.

    Args:
        classes: of the fabric.
        switch: int64[n], the switch of each class.
        class_number: int64[n], its number there.
    """
    ports = np.column_stack(
        (classes.port[switch, class_number], classes.alternate[switch, class_number])
    )
    return np.asarray(np.where(classes.weight[switch, class_number] > 0, ports, 0))
