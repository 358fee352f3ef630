"""The rules of a build's OpenFlow program, and the packets that must reach each of them.

A rule is a flow or a bucket of a group. It is *due* if packets between the hosts that take part
reach it while every port is up, by some of the paths that the tables allow (`Prediction.visits`).
The other rules are used only after a port fails. `traffic.rule_exercise` sends the packets of the
due rules and reads the switches' counters; `traffic.repair_packets` exercises the others.
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
from compilers.targets.openflow.class_groups import GroupRole, group_numbers
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
    """The role of the group's class."""
    entry: int
    """The port on which packets come that rows lead to the group; 0 for any port."""
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
        return self.flows[switch, RowKind.CLASS, egress + (role << ROLE_SHIFT)]

    def _add_flows(self, encoder: Encoder, switch: int) -> None:
        """Add the flows of a switch, without the marker if no packet of a host can reach it."""
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
        classes = self.build.tables.classes.port.shape[1]
        first_number = self.generation.get(switch, 0) * GROUP_SPACE
        for groups in self.pipeline.groups(switch):
            if not groups.is_new:  # they only have ports on which packets come to earlier groups
                for egress, entry in zip(groups.egress, groups.in_port.tolist(), strict=True):
                    key = switch, groups.role, int(egress)
                    if entry and key in self.groups:
                        self.groups[key] = replace(self.groups[key], entry=entry)
                continue
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
                    entry=int(groups.in_port[i]),
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
            for family, version in enumerate(self.versions):
                pairs = {SwitchPair(version, switch, switch)}
                number = _number_of_host(0, family, host)
                # The row by which the host's packets enter: one for all hosts, or the host's own.
                entrance = family
                if has_own_rows:
                    entrance = _number_of_host(FROM_HOSTS_NUMBER, family, host)
                self._add_due(switch, RowKind.OWN, number, pairs)
                self._add_due(switch, RowKind.ANSWER, family, pairs)
                self._add_due(switch, RowKind.HOST, number, pairs)
                self._add_due(switch, RowKind.FORWARD, entrance, pairs)
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
            for family, version in enumerate(self.versions):
                drawn = _number_of_host(DRAWING_NUMBER, family, host)
                sent = {pair for pair in _of_version(pairs, version) if pair.source == switch}
                self._add_due(switch, RowKind.FORWARD, drawn, sent)
                if hosts_at[switch] == 1:  # no packets are sent within the switch
                    continue
                within = SAME_SWITCH_NUMBER + family
                if self.pipeline.checks_sources(switch):
                    within = _number_of_host(SAME_SWITCH_HOSTS_NUMBER, family, host)
                within_switch = {SwitchPair(version, switch, switch)}
                self._add_due(switch, RowKind.FORWARD, within, within_switch)

    def _add_due_first_legs(
        self, legs: Prediction, ends: NDArray[np.int64], pairs: SwitchPairs
    ) -> None:
        """Add the rules of packets on their way to an intermediate as due.

        Args:
            legs: the minimal routes.
            ends: the switches with hosts.
            pairs: the pairs that packets are sent between.
        """
        middles = intermediates(self.build)
        index = {int(middle): i for i, middle in enumerate(middles)}
        for visit in self._visits(legs, ends, middles):
            sent = {pair for pair in pairs if pair.source == visit.source}
            self._add_due_on_leg(visit, sent)
            if visit.in_port:
                for family, version in enumerate(self.versions):
                    self._add_due(
                        visit.switch,
                        RowKind.FORWARD,
                        CARRIED_NUMBER + family,
                        _of_version(sent, version),
                    )
            self._add_due(visit.switch, RowKind.CARRIED, index[visit.destination], sent)
        for middle in middles.tolist():
            self._add_due(middle, RowKind.CARRIED, index[middle], _of_version(pairs, 4))

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
            for family, version in enumerate(self.versions):
                of_version = _of_version(sent, version)
                if visit.in_port:
                    self._add_due(visit.switch, RowKind.FORWARD, family, of_version)
                route = int(self._routes[version][visit.switch, visit.destination])
                self._add_due(visit.switch, RowKind.ROUTE, route, of_version)

    def _add_due_on_leg(self, visit: Visit, sent: SwitchPairs) -> None:
        """Add the class and the bucket that a packet on a leg reaches as due."""
        egress = int(self.prediction.egress[visit.switch, visit.destination])
        group = self._groups_from_row(visit.switch, egress, visit.in_port).group
        if group is None:
            return
        self._add_due(visit.switch, RowKind.CLASS, egress + (group.role << ROLE_SHIFT), sent)
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
        for family, version in enumerate(self.versions):
            pairs = {SwitchPair(version, visit.source, visit.destination)}
            if in_port:
                number = family + (MARKED_NUMBER if visit.marked else 0)
                self._add_due(switch, RowKind.FORWARD, number, pairs)
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
        self._add_due(switch, RowKind.CLASS, egress + (group.role << ROLE_SHIFT), pairs)
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
        # The roles of packets that came in by one certain port: BOUNCE, and ASIDE for each port of
        # protection.
        protection_ports: int = self.build.tables.classes.protection.shape[2]
        end = GroupRole.ASIDE + protection_ports
        if self.build.forwarding.every_hop:
            end += 1
        for role in range(GroupRole.BOUNCE, end):
            group = self.groups.get((switch, role, egress))
            if group and in_port and role != GroupRole.FALLBACK and group.entry == in_port:
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
        """int64[S, S]: the number of the row by which a switch routes to another; -1 if none."""
        plan, switches = self.build.addressing, self.build.tables.switches
        blocks = plan.ipv4_blocks() if version == 4 else plan.ipv6_blocks()
        network, length = plan.ipv4_prefixes() if version == 4 else plan.ipv6_prefixes()
        bits = np.uint64(32 if version == 4 else 64)
        shift = bits - np.minimum(length.astype(np.uint64), bits)
        # A block is inside a prefix if both are equal in the bits of the prefix's length.
        inside = (blocks.astype(np.uint64)[:, None] >> shift) == network.astype(np.uint64) >> shift
        first_number = 0 if version == 4 else IPV6_NUMBER
        numbers = np.full((switches, switches), -1, np.int64)
        for switch in np.flatnonzero(self.build.topology.present).tolist():
            prefix = self.pipeline.routes(switch)[0]
            # The longest matching prefix routes: of the longest first, argmax is the first match.
            longest_first = prefix[np.argsort(-length[prefix].astype(np.int64), kind="stable")]
            if len(longest_first):
                matches = inside[:, longest_first]
                longest_match = longest_first[matches.argmax(axis=1)].astype(np.int64)
                numbers[switch] = np.where(matches.any(axis=1), first_number + longest_match, -1)
        return numbers


def _of_version(pairs: SwitchPairs, version: int) -> SwitchPairs:
    """The pairs of one version of the Internet protocol."""
    return {pair for pair in pairs if pair.version == version}


def _number_of_host(first: int, family: int, host: int) -> int:
    """The number of a host's row, among rows that each host has one of in each address family.

    Args:
        first: the number of the first of these rows.
        family: 0 for IPv4, 1 for IPv6.
        host: the number of the host at its switch.
    """
    return first + family * FAMILY_NUMBERS + host
