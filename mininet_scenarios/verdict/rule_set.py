"""The rules of a build's OpenFlow program, and the packets that must reach each of them.

A rule is a flow or a bucket of a group. It is *due* if packets between the hosts that take part
reach it while every port is up, by some of the paths that the tables allow (`Prediction.visits`).
The other rules are used only after a port fails. `traffic.rule_exercise` sends the packets of the
due rules and reads the switches' counters; `traffic.repair_packets` exercises the others.

A `RuleSet` first collects all rules (`_add_flows`, `_add_groups`). Then it follows packets to those
that are due: at the switch of a host (`_add_due_at_hosts`), and from switch to switch. The latter
packets follow the tables (`_add_due_between_switches`) or go over intermediates
(`_add_due_over_intermediates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import added_rows, entries, read_row
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.targets.openflow.answer_rows import ND_FINISH_NUMBER
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.class_groups import GroupRole, Groups, group_numbers, role_count
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import GROUP_SPACE, RowKind
from compilers.targets.openflow.group_and_flow_bytes import (
    CARRIED_NUMBER,
    DRAWING_NUMBER,
    FAMILY_NUMBERS,
    FROM_HOSTS_NUMBER,
    IPV6_NUMBER,
    MARKED_NUMBER,
    MOST_NUMBER,
    ROLE_SHIFT,
    SAME_SWITCH_HOSTS_NUMBER,
    SAME_SWITCH_NUMBER,
    XID_BITS,
)
from compilers.targets.openflow.hash_shares import MORE_VALUES
from compilers.targets.openflow.pipeline import Pipeline
from compilers.targets.openflow.protocol import HEADER
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.verdict.predict import Prediction

TO_ENTER_GROUP = 0
"""In place of a port: the bucket that leads packets to the enter group of the same class."""
NO_ROW = -1
"""In place of the number of a row: there is none. No flow has this number."""


class SwitchPair(NamedTuple):
    """Two switches, and the version of the Internet protocol of packets between their hosts."""

    version: int
    """The version: 4 or 6."""
    source: int
    """The switch of the sending hosts."""
    destination: int
    """The switch of the receiving hosts."""


SwitchPairs = set[SwitchPair]
"""Pairs of switches that packets are sent between."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A flow of a switch, or a bucket of one of its groups."""

    switch: int
    """The switch."""
    key: tuple[object, ...]
    """A flow's table, priority and match; or a bucket's group and number."""
    words: str = field(compare=False)
    """The rule in words."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupRules:
    """A group: its ports, weights and buckets."""

    role: int
    """The role of the group, a `GroupRole` or a number from ASIDE on."""
    in_port: int
    """The port on which packets come in that rows lead to the group; 0 for any port."""
    port: tuple[int, ...]
    """The ports that the buckets watch, or `TO_ENTER_GROUP`."""
    weight: tuple[int, ...]
    """The weights of the buckets."""
    buckets: tuple[Rule, ...]
    """The rules of the buckets."""


class _NextGroups(NamedTuple):
    """The groups that a packet comes to from a row."""

    group: GroupRules | None
    """The group that the row names; None for none."""
    nested: GroupRules | None
    """The group that a bucket of `group` leads to; None for none."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The passage of a packet through a switch."""

    source: int
    """The first switch of the packet's path."""
    destination: int
    """The last switch of the packet's path."""
    switch: int
    """The switch that the packet passes."""
    in_port: int
    """The port by which the packet comes in; 0 from a host."""
    out_port: int
    """The port by which the packet goes out."""
    marked: bool
    """Whether the packet is marked when it comes in."""


class RuleSet:
    """All rules of a build, and the rules that are due."""

    def __init__(
        self, build: Build, hosts: HostSample, generation: Mapping[int, int] | None = None
    ) -> None:
        """Collect the rules.

        Args:
            build: the build.
            hosts: the hosts that take part.
            generation: by switch, the generation of its class and group numbers; 0 if missing.
        """
        self.build, self.hosts, self.generation = build, hosts, generation or {}
        self.prediction = Prediction.of(build)
        self.versions = (4, 6) if build.addressing.ipv6 else (4,)
        self.flows: dict[tuple[int, int, int], Rule] = {}
        """The flows by switch, `RowKind`, and number of the row."""
        self.groups: dict[tuple[int, int, int], GroupRules] = {}
        """The groups by switch, role, and egress class."""
        encoder, self.pipeline = Encoder(build), Pipeline(build)
        for switch in np.flatnonzero(build.topology.present).tolist():
            self._add_flows(encoder, switch)
            self._add_groups(switch)
        self.due: dict[Rule, SwitchPairs] = {}
        """The rules that are due, with the pairs whose packets reach them."""
        self._add_due_at_hosts()
        self._routes = {version: self._route_numbers(version) for version in self.versions}
        """By version of the Internet protocol, the numbers of the rows by which switches route."""
        if build.forwarding.intermediates:
            self._add_due_over_intermediates()
        else:
            self._add_due_between_switches()

    @property
    def all_rules(self) -> list[Rule]:
        """Every flow and every bucket."""
        buckets = (rule for group in self.groups.values() for rule in group.buckets)
        return [*self.flows.values(), *buckets]

    def row_to_group(self, switch: int, role: int, egress: int) -> Rule:
        """The row that leads packets to a group."""
        return self.flows[switch, RowKind.CLASS, _class_row_number(role, egress)]

    def _add_flows(self, encoder: Encoder, switch: int) -> None:
        """Add the flows of a switch, without the marker if no packet of a host can reach it.

        Where rows check the sources of packets (`RowKind.GUARD`), these take all packets of hosts.
        """
        name = self.build.wiring.names[switch]
        has_guards = self.pipeline.checks_sources(switch) and len(self.pipeline.hosts(switch))
        for block in encoder.program(switch, self.generation.get(switch, 0)).flows:
            xids = fields_at(block, HEADER)["xid"].tolist()
            for xid, row in zip(xids, entries(added_rows(block)), strict=True):
                kind, number = xid >> XID_BITS, xid & MOST_NUMBER
                if has_guards and kind == RowKind.MARKER:
                    continue
                self.flows[switch, kind, number] = Rule(
                    switch, read_row(row).place, f"{name}: {encoder.describe(xid)}"
                )

    def _add_groups(self, switch: int) -> None:
        """Add the groups of a switch, with their buckets."""
        for groups in self.pipeline.groups(switch):
            if groups.is_new:
                self._add_new_groups(switch, groups)
            else:
                self._set_in_ports(switch, groups)

    def _set_in_ports(self, switch: int, groups: Groups) -> None:
        """Enter the ports on which packets come in for groups that were added before."""
        for egress, in_port in zip(groups.egress.tolist(), groups.in_port.tolist(), strict=True):
            key = switch, groups.role, egress
            if in_port and key in self.groups:
                self.groups[key] = replace(self.groups[key], in_port=in_port)

    def _add_new_groups(self, switch: int, groups: Groups) -> None:
        """Add the groups of one role of a switch, with their buckets."""
        classes = self.build.tables.classes.port.shape[1]
        first_number = self.generation.get(switch, 0) * GROUP_SPACE
        numbers = first_number + group_numbers(groups.role, groups.egress, classes)
        for i, (number, egress) in enumerate(
            zip(numbers.tolist(), groups.egress.tolist(), strict=True)
        ):
            ports, weights = tuple(groups.port[i].tolist()), tuple(groups.weight[i].tolist())
            if groups.role == GroupRole.FALLBACK:
                ports, weights = (TO_ENTER_GROUP, *ports), (0, *weights)
            elif ports[-1] in ports[:-1] and weights[-1] * MORE_VALUES[0] < sum(weights):
                # The last bucket repeats a port, with a weight of less than one of the 256 hash
                # values that Open vSwitch takes at most: it gets no packet.
                ports, weights = ports[:-1], weights[:-1]
            self.groups[switch, groups.role, egress] = GroupRules(
                role=groups.role,
                in_port=int(groups.in_port[i]),
                port=ports,
                weight=weights,
                buckets=self._buckets(switch, groups.role, egress, number, ports),
            )

    def _buckets(
        self, switch: int, role: int, egress: int, number: int, ports: tuple[int, ...]
    ) -> tuple[Rule, ...]:
        """The buckets of a group as rules.

        Args:
            switch: the switch.
            role: the role of the group.
            egress: the class of the group.
            number: the number of the group in the switch.
            ports: the ports that the buckets watch, or `TO_ENTER_GROUP`.
        """
        wiring = self.build.wiring
        kind = GroupRole(min(role, GroupRole.ASIDE)).name.lower()
        group = f"the {kind} group of class {egress}"
        rules = []
        for bucket, port in enumerate(ports):
            is_to_port = port != TO_ENTER_GROUP
            target = f"port {wiring.port_name(switch, port)}" if is_to_port else "enter"
            words = f"{wiring.names[switch]}: bucket {bucket + 1} of {group}, {target}"
            rules.append(Rule(switch, (number, bucket), words))
        return tuple(rules)

    def _add_due_at_hosts(self) -> None:
        """Add the rows that packets between a host and its switch, such as ARP, reach as due."""
        for switch, host in self._hosts():
            to_itself = SwitchPair(4, switch, switch)
            if self.pipeline.checks_sources(switch):
                self._add_due(switch, RowKind.GUARD, host, {to_itself})
            else:
                self._add_due(switch, RowKind.MARKER, 0, {to_itself})
            has_own_rows = self.pipeline.separates_hosts or self.pipeline.checks_sources(switch)
            for version in self.versions:
                pairs = {SwitchPair(version, switch, switch)}
                host_row = _host_row_number(0, version, host)
                # The row by which the host's packets enter: one for all hosts, or the host's own.
                entrance_row = _version_row_number(0, version)
                if has_own_rows:
                    entrance_row = _host_row_number(FROM_HOSTS_NUMBER, version, host)
                self._add_due(switch, RowKind.OWN, host_row, pairs)
                self._add_due(switch, RowKind.ANSWER, _version_row_number(0, version), pairs)
                self._add_due(switch, RowKind.HOST, host_row, pairs)
                self._add_due(switch, RowKind.FORWARD, entrance_row, pairs)
                if version == 6:
                    self._add_due(switch, RowKind.ANSWER, ND_FINISH_NUMBER, pairs)

    def _hosts(self) -> Iterator[tuple[int, int]]:
        """The hosts that take part, by switch and number there."""
        return zip(self.hosts.switch.tolist(), self.hosts.number.tolist(), strict=True)

    def _add_due_over_intermediates(self) -> None:
        """Add the rules of packets over intermediates as due: both legs are minimal routes."""
        ends = np.unique(self.hosts.switch)
        switches = ends.tolist()
        pairs = {
            SwitchPair(version, source, destination)
            for version in self.versions
            for source in switches
            for destination in switches
            if source != destination
        }
        self._add_due_draws(pairs)
        minimal = replace(self.build.forwarding, intermediates=False)
        legs = Prediction.of(replace(self.build, forwarding=minimal))
        self._add_due_first_legs(legs, ends, pairs)
        self._add_due_second_legs(legs, ends, pairs)

    def _add_due_draws(self, pairs: SwitchPairs) -> None:
        """Add the rows that draw an intermediate for the packets of a host, or none, as due."""
        hosts_at = np.bincount(self.hosts.switch)
        for switch, host in self._hosts():
            for version in self.versions:
                drawing_row = _host_row_number(DRAWING_NUMBER, version, host)
                sent = {pair for pair in _of_version(pairs, version) if pair.source == switch}
                self._add_due(switch, RowKind.FORWARD, drawing_row, sent)
                if hosts_at[switch] == 1:  # no packets are sent within the switch
                    continue
                same_switch_row = _version_row_number(SAME_SWITCH_NUMBER, version)
                if self.pipeline.checks_sources(switch):
                    same_switch_row = _host_row_number(SAME_SWITCH_HOSTS_NUMBER, version, host)
                within_switch = {SwitchPair(version, switch, switch)}
                self._add_due(switch, RowKind.FORWARD, same_switch_row, within_switch)

    def _add_due_first_legs(
        self, legs: Prediction, ends: NDArray[np.int64], pairs: SwitchPairs
    ) -> None:
        """Add the rules of packets on their way to an intermediate as due.

        Args:
            legs: the minimal routes.
            ends: the switches with hosts.
            pairs: the pairs that packets are sent between.
        """
        switches = intermediates(self.build)
        index = {intermediate: i for i, intermediate in enumerate(switches.tolist())}
        for visit in self._visits(legs, ends, switches):
            sent = {pair for pair in pairs if pair.source == visit.source}
            self._add_due_on_leg(visit, sent)
            if visit.in_port:
                for version in self.versions:
                    row = _version_row_number(CARRIED_NUMBER, version)
                    self._add_due(visit.switch, RowKind.FORWARD, row, _of_version(sent, version))
            self._add_due(visit.switch, RowKind.CARRIED, index[visit.destination], sent)
        # Each intermediate has a row for itself, which takes the intermediate off packets.
        for intermediate, i in index.items():
            self._add_due(intermediate, RowKind.CARRIED, i, _of_version(pairs, 4))

    def _add_due_second_legs(
        self, legs: Prediction, ends: NDArray[np.int64], pairs: SwitchPairs
    ) -> None:
        """Add the rules of packets on their way from an intermediate as due.

        Args:
            legs: the minimal routes.
            ends: the switches with hosts.
            pairs: the pairs that packets are sent between.
        """
        for visit in self._visits(legs, intermediates(self.build), ends):
            sent = {pair for pair in pairs if pair.destination == visit.destination}
            self._add_due_on_leg(visit, sent)
            for version in self.versions:
                sent_by_version = _of_version(sent, version)
                if visit.in_port:
                    row = _version_row_number(0, version)
                    self._add_due(visit.switch, RowKind.FORWARD, row, sent_by_version)
                route = int(self._routes[version][visit.switch, visit.destination])
                self._add_due(visit.switch, RowKind.ROUTE, route, sent_by_version)

    def _add_due_on_leg(self, visit: Visit, sent: SwitchPairs) -> None:
        """Add the class and the bucket that a packet on a leg reaches as due."""
        egress = int(self.prediction.egress[visit.switch, visit.destination])
        group = self._groups_from_row(visit.switch, egress, visit.in_port).group
        if group is None:
            return
        self._add_due(visit.switch, RowKind.CLASS, _class_row_number(group.role, egress), sent)
        self._add_due_bucket(group, visit.out_port, sent)

    def _add_due_between_switches(self) -> None:
        """Add the rules that packets from switch to switch reach, over all their paths, as due."""
        ends = np.unique(self.hosts.switch)
        for visit in self._visits(self.prediction, ends, ends):
            self._add_due_of_visit(visit)

    def _visits(
        self, prediction: Prediction, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> list[Visit]:
        """The passages of packets from some switches to others through all switches."""
        switches = self.build.tables.switches
        packets = np.zeros((switches, switches), np.int64)
        packets[np.ix_(begins, ends)] = 1
        packets[np.diag_indices(switches)] = 0
        rows: set[tuple[Any, ...]] = set()
        for visits in prediction.visits(packets):
            rows.update(zip(*(column.tolist() for column in visits), strict=True))
        return [Visit(*row) for row in sorted(rows)]

    def _add_due_of_visit(self, visit: Visit) -> None:
        """Add the rules that a packet reaches in a switch that it passes as due."""
        switch, in_port = visit.switch, visit.in_port
        egress = int(self.prediction.egress[switch, visit.destination])
        is_spread = visit.marked and egress < self.pipeline.first_direct
        for version in self.versions:
            pairs = {SwitchPair(version, visit.source, visit.destination)}
            if in_port:
                row = _version_row_number(MARKED_NUMBER if visit.marked else 0, version)
                self._add_due(switch, RowKind.FORWARD, row, pairs)
            route = int(self._routes[version][switch, visit.destination])
            self._add_due(switch, RowKind.ROUTE, route, pairs)
            if is_spread:
                self._add_due(switch, RowKind.SPREAD, in_port, pairs)
        if is_spread:
            return
        pairs = {SwitchPair(4, visit.source, visit.destination)}
        group, nested = self._groups_from_row(switch, egress, in_port)
        if group is None:  # the row of the class forwards, from any port
            self._add_due(switch, RowKind.CLASS, egress, pairs)
            return
        self._add_due(switch, RowKind.CLASS, _class_row_number(group.role, egress), pairs)
        if nested is None:
            self._add_due_bucket(group, visit.out_port, pairs)
        else:
            self._add_due_bucket(nested, visit.out_port, pairs)
            self._add_due_bucket(group, TO_ENTER_GROUP, pairs)

    def _groups_from_row(self, switch: int, egress: int, in_port: int) -> _NextGroups:
        """The groups that a packet comes to from the row of a class.

        Args:
            switch: the switch.
            egress: the class.
            in_port: the port by which the packet comes in; 0 from a host.
        """
        enter = self.groups.get((switch, GroupRole.ENTER, egress))
        if not in_port and enter:
            fallback = self.groups.get((switch, GroupRole.FALLBACK, egress))
            return _NextGroups(fallback, enter) if fallback else _NextGroups(enter, None)
        # Groups for packets that come in by one certain port: BOUNCE, and the roles from ASIDE on.
        role_end = role_count(self.build.tables.classes, self.build.forwarding.every_hop)
        for role in (GroupRole.BOUNCE, *range(GroupRole.ASIDE, role_end)):
            group = self.groups.get((switch, role, egress))
            if group and in_port and group.in_port == in_port:
                return _NextGroups(group, None)
        return _NextGroups(self.groups.get((switch, GroupRole.TRANSIT, egress)), None)

    def _add_due(self, switch: int, kind: int, number: int, pairs: SwitchPairs) -> None:
        """Add a flow, if there is one, as due: packets of these pairs must reach it."""
        rule = self.flows.get((switch, kind, number))
        if rule and pairs:
            self.due.setdefault(rule, set()).update(pairs)

    def _add_due_bucket(self, group: GroupRules, port: int, pairs: SwitchPairs) -> None:
        """Add the buckets of a group that watch a port (or `TO_ENTER_GROUP`) as due."""
        for watched, rule in zip(group.port, group.buckets, strict=True):
            if watched == port:
                self.due.setdefault(rule, set()).update(pairs)

    def _route_numbers(self, version: int) -> NDArray[np.int64]:
        """int64[S, S]: the number of the row by which a switch routes to another, or NO_ROW."""
        plan, switches = self.build.addressing, self.build.tables.switches
        blocks = plan.ipv4_blocks() if version == 4 else plan.ipv6_blocks()
        network, length = plan.ipv4_prefixes() if version == 4 else plan.ipv6_prefixes()
        bits = np.uint64(32 if version == 4 else 64)  # of IPv6 only the upper half is routed by
        shift = bits - np.minimum(length.astype(np.uint64), bits)
        # bool[S, prefixes]: a block is inside a prefix if both have the same first `length` bits.
        inside = (blocks.astype(np.uint64)[:, None] >> shift) == network.astype(np.uint64) >> shift
        first_number = 0 if version == 4 else IPV6_NUMBER
        numbers = np.full((switches, switches), NO_ROW, np.int64)
        for switch in np.flatnonzero(self.build.topology.present).tolist():
            prefix = self.pipeline.routes(switch)[0]
            # The longest matching prefix routes: of the longest first, argmax is the first match.
            longest_first = prefix[np.argsort(-length[prefix].astype(np.int64), kind="stable")]
            if len(longest_first):
                matches = inside[:, longest_first]
                longest_match = longest_first[matches.argmax(axis=1)].astype(np.int64)
                row = first_number + longest_match
                numbers[switch] = np.where(matches.any(axis=1), row, NO_ROW)
        return numbers


def _of_version(pairs: SwitchPairs, version: int) -> SwitchPairs:
    """The pairs of one version of the Internet protocol."""
    return {pair for pair in pairs if pair.version == version}


def _version_row_number(first: int, version: int) -> int:
    """The number of a row, of two consecutive rows for the versions of the Internet protocol.

    Args:
        first: the number of the row of IPv4.
        version: 4 or 6.
    """
    return first + (1 if version == 6 else 0)


def _host_row_number(first: int, version: int, host: int) -> int:
    """The number of a host's row, among rows that each host has one of by version.

    Args:
        first: the number of the first of these rows.
        version: of the Internet protocol, 4 or 6.
        host: the number of the host at its switch.
    """
    return first + (FAMILY_NUMBERS if version == 6 else 0) + host


def _class_row_number(role: int, egress: int) -> int:
    """The number of the row that leads packets of a role to the group of a class."""
    return egress + (role << ROLE_SHIFT)
