"""The rules of a build's OpenFlow program, flows and group buckets, and the packets to reach each.

A rule is *due* when packets between the hosts that take part reach it while every port is up, by
some of the paths that the tables allow (`Prediction.visits`). The others wait for a port to fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import added_rows, entries, read_row
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.class_groups import GroupRole, group_numbers
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import GROUP_SPACE, Pipeline, RowKind
from compilers.targets.openflow.group_and_flow_bytes import (
    CARRIED_NUMBER,
    DRAWN_NUMBER,
    IPV6_NUMBER,
    MARKED_NUMBER,
    MOST_NUMBER,
    ROLE_SHIFT,
    WITHIN_NUMBER,
    XID_BITS,
)
from compilers.targets.openflow.hash_shares import MORE_VALUES
from compilers.targets.openflow.protocol import HEADER
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.verdict.predict import Prediction

FAMILY_SHIFT = 16
"""Where in the number of a row its family is; entrances count from 1, hosts from 0."""
Pairs = set[tuple[int, int, int]]
"""Version of the Internet protocol, source and destination switch."""


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
    """The port on which the packets come that are led here; 0 for any."""
    port: tuple[int, ...]
    """The ports that the buckets watch; 0 for the bucket that leads to the enter group."""
    weight: tuple[int, ...]
    """The weights of the buckets."""
    buckets: tuple[Rule, ...]
    """The rules of the buckets."""


@dataclass(frozen=True, order=True, slots=True)
class Visit:
    """A packet passes a switch."""

    source: int
    """The switch that the packet comes from at first."""
    target: int
    """The switch that it goes to at last."""
    switch: int
    """The switch that it passes."""
    came: int
    """The port by which it comes in; 0 from a host."""
    left: int
    """The port by which it goes out."""
    marked: bool
    """Whether it comes marked."""


class RuleSet:
    """All rules of a build: `flows` by switch, kind and number, `groups` by switch, role, class."""

    def __init__(
        self, build: Build, hosts: HostSample, generation: Mapping[int, int] | None = None
    ) -> None:
        """Collect the rules.

        Args:
            build: the build.
            hosts: the hosts that take part.
            generation: of each switch's class and group numbers; 0 if it is missing.
        """
        self.build, self.hosts, self.generation = build, hosts, generation or {}
        self.prediction = Prediction.of(build)
        self.versions = (4, 6) if build.addressing.ipv6 else (4,)
        self.flows: dict[tuple[int, int, int], Rule] = {}
        self.groups: dict[tuple[int, int, int], GroupRules] = {}
        encoder, self.pipeline = Encoder(build), Pipeline(build)
        for switch in np.flatnonzero(build.topology.present).tolist():
            self._add_flows(encoder, switch)
            self._add_groups(switch)
        self.due: dict[Rule, Pairs] = {}
        self._need_of_hosts()
        self._routes = {version: self._prefixes(version) for version in self.versions}
        if build.forwarding.intermediates:
            self._need_over_intermediates()
        else:
            self._need_between_switches()

    @property
    def all(self) -> list[Rule]:
        """Every flow and every bucket."""
        buckets = (rule for group in self.groups.values() for rule in group.buckets)
        return [*self.flows.values(), *buckets]

    def led_by(self, switch: int, role: int, egress: int) -> Rule:
        """The row that leads packets to a group."""
        return self.flows[switch, RowKind.CLASS, egress + (role << ROLE_SHIFT)]

    def _add_flows(self, encoder: Encoder, switch: int) -> None:
        """Add the flows of a switch, but for the marker where no packet of a host reaches it."""
        name = self.build.wiring.names[switch]
        guards = self.pipeline.checks(switch) and len(self.pipeline.hosts(switch))
        for block in encoder.program(switch, self.generation.get(switch, 0)).flows:
            xids = heads(block, HEADER)["xid"].tolist()
            for xid, row in zip(xids, entries(added_rows(block)), strict=True):
                key = switch, xid >> XID_BITS, xid & MOST_NUMBER
                if guards and key[1] == RowKind.MARKER:
                    continue
                self.flows[key] = Rule(
                    switch, read_row(row).place, f"{name}: {encoder.describe(xid)}"
                )

    def _add_groups(self, switch: int) -> None:
        """Add the groups of a switch, with their buckets."""
        count = self.build.tables.classes.port.shape[1]
        first = self.generation.get(switch, 0) * GROUP_SPACE
        for groups in self.pipeline.groups(switch):
            if not groups.is_new:  # other ports on which packets come to a group made before
                for egress, entry in zip(groups.classes, groups.in_port.tolist(), strict=True):
                    key = switch, groups.role, int(egress)
                    if entry and key in self.groups:
                        self.groups[key] = replace(self.groups[key], entry=entry)
                continue
            numbers = (first + group_numbers(groups.role, groups.classes, count)).tolist()
            for i, (number, egress) in enumerate(
                zip(numbers, groups.classes.tolist(), strict=True)
            ):
                ports, weights = tuple(groups.port[i].tolist()), tuple(groups.weight[i].tolist())
                if groups.role == GroupRole.FALLBACK:
                    ports, weights = (0, *ports), (0, *weights)
                elif ports[-1] in ports[:-1] and weights[-1] * MORE_VALUES[0] < sum(weights):
                    ports, weights = ports[:-1], weights[:-1]  # too small to get a packet
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
        """The buckets of a group as rules."""
        wiring = self.build.wiring
        kind = GroupRole(min(role, GroupRole.ASIDE)).name.lower()
        of = f"{wiring.names[switch]}: bucket {{}} of the {kind} group of class {egress}, {{}}"
        return tuple(
            Rule(
                switch,
                (number, place),
                of.format(place + 1, f"port {wiring.port_name(switch, port)}" if port else "enter"),
            )
            for place, port in enumerate(ports)
        )

    def _need_of_hosts(self) -> None:
        """Note the rows that hosts reach by what they ask of their switch, or get from it."""
        for switch, host in zip(
            self.hosts.switch.tolist(), self.hosts.number.tolist(), strict=True
        ):
            unknown = (RowKind.GUARD, host) if self.pipeline.checks(switch) else (RowKind.MARKER, 0)
            self._need(switch, *unknown, 4, switch, switch)
            for family, version in enumerate(self.versions):
                number = host + (family << FAMILY_SHIFT)
                here = version, switch, switch
                self._need(switch, RowKind.OWN, number, *here)
                self._need(switch, RowKind.ANSWER, family, *here)
                self._need(switch, RowKind.HOST, number, *here)
                if version == 6:
                    self._need(switch, RowKind.ANSWER, 2, *here)
                own_rows = self.pipeline.entering or self.pipeline.checks(switch)
                entrance = host + (family + 1 << FAMILY_SHIFT) if own_rows else family
                self._need(switch, RowKind.FORWARD, entrance, *here)

    def _need_over_intermediates(self) -> None:
        """Note what packets reach that go by intermediates: both legs take minimal routes."""
        ends, middles = np.unique(self.hosts.switch).tolist(), intermediates(self.build)
        number = {int(middle): n for n, middle in enumerate(middles)}
        pairs = {v: {(v, s, d) for s in ends for d in ends if s != d} for v in self.versions}
        for switch, host in zip(
            self.hosts.switch.tolist(), self.hosts.number.tolist(), strict=True
        ):
            for family, version in enumerate(self.versions):
                drawn = DRAWN_NUMBER + host + (family + 1 << FAMILY_SHIFT)
                sent = {pair for pair in pairs[version] if pair[1] == switch}
                self._needs(switch, RowKind.FORWARD, drawn, sent)
                here = {(version, switch, switch)}
                within = DRAWN_NUMBER + family
                if self.pipeline.checks(switch):
                    within = WITHIN_NUMBER + host + (family << FAMILY_SHIFT)
                self._needs(switch, RowKind.FORWARD, within, here)
        legs = Prediction.of(
            replace(self.build, forwarding=replace(self.build.forwarding, intermediates=False))
        )
        for visit in self._visits(legs, np.array(ends), middles):
            sent = {pair for v in self.versions for pair in pairs[v] if pair[1] == visit.source}
            self._need_on_leg(visit, sent)
            for family, version in enumerate(self.versions) if visit.came else ():
                of_version = {pair for pair in sent if pair[0] == version}
                self._needs(visit.switch, RowKind.FORWARD, CARRIED_NUMBER + family, of_version)
            self._needs(visit.switch, RowKind.CARRIED, number[visit.target], sent)
        for middle in middles.tolist():
            self._needs(middle, RowKind.CARRIED, number[middle], pairs[4])
        for visit in self._visits(legs, middles, np.array(ends)):
            sent = {pair for v in self.versions for pair in pairs[v] if pair[2] == visit.target}
            self._need_on_leg(visit, sent)
            for family, version in enumerate(self.versions):
                of_version = {pair for pair in sent if pair[0] == version}
                if visit.came:
                    self._needs(visit.switch, RowKind.FORWARD, family, of_version)
                prefix = self._routes[version][visit.switch, visit.target] + family * IPV6_NUMBER
                self._needs(visit.switch, RowKind.ROUTE, int(prefix), of_version)

    def _need_on_leg(self, visit: Visit, sent: Pairs) -> None:
        """Note the class and the bucket that a packet on a leg reaches."""
        egress = int(self.prediction.egress[visit.switch, visit.target])
        group, _ = self._led(visit.switch, egress, visit.came)
        if group is None:
            return
        self._needs(visit.switch, RowKind.CLASS, egress + (group.role << ROLE_SHIFT), sent)
        for port, rule in zip(group.port, group.buckets, strict=True):
            if port == visit.left:
                self.due.setdefault(rule, set()).update(sent)

    def _need_between_switches(self) -> None:
        """Note the rules that packets from switch to switch reach, over all their paths."""
        ends = np.unique(self.hosts.switch)
        for visit in self._visits(self.prediction, ends, ends):
            self._need_of(visit)

    def _visits(
        self, prediction: Prediction, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> list[Visit]:
        """How packets between these switches pass all switches."""
        order = self.build.tables.switches
        talks = np.zeros((order, order), np.int64)
        talks[np.ix_(begins, ends)] = 1
        talks[np.diag_indices(order)] = 0
        rows: set[tuple[Any, ...]] = set()
        for visits in prediction.visits(talks):
            rows.update(zip(*(column.tolist() for column in visits), strict=True))
        return [Visit(*row) for row in sorted(rows)]

    def _need_of(self, visit: Visit) -> None:
        """Note the rules that a packet reaches in a switch that it passes."""
        at, came, left = visit.switch, visit.came, visit.left
        egress = int(self.prediction.egress[at, visit.target])
        group, nested = self._led(at, egress, came)
        spread = visit.marked and egress < self.pipeline.direct
        for family, version in enumerate(self.versions):
            pair = version, visit.source, visit.target
            if came:
                number = family + (MARKED_NUMBER if visit.marked else 0)
                self._need(at, RowKind.FORWARD, number, *pair)
            prefix = self._routes[version][at, visit.target]
            self._need(at, RowKind.ROUTE, prefix + family * IPV6_NUMBER, *pair)
            if spread:
                self._need(at, RowKind.SPREAD, came, *pair)
        pair = 4, visit.source, visit.target
        if group is None and not spread:  # over several paths, from anywhere
            self._need(at, RowKind.CLASS, egress, *pair)
        if group is None or spread:
            return
        self._need(at, RowKind.CLASS, egress + (group.role << ROLE_SHIFT), *pair)
        taken = [(nested, left), (group, 0)] if nested else [(group, left)]
        for reached, port in taken:
            for number, rule in zip(reached.port, reached.buckets, strict=True):
                if number == port:
                    self.due.setdefault(rule, set()).add(pair)

    def _led(self, at: int, egress: int, came: int) -> tuple[GroupRules | None, GroupRules | None]:
        """The group that a row leads to, and the one that this leads to."""
        enter = self.groups.get((at, GroupRole.ENTER, egress))
        if not came and enter:
            fallback = self.groups.get((at, GroupRole.FALLBACK, egress))
            return (fallback, enter) if fallback else (enter, None)
        repairs: int = self.build.tables.classes.protection.shape[2]
        roles = range(GroupRole.BOUNCE, GroupRole.ASIDE + repairs)
        if self.build.forwarding.every_hop:
            roles = range(GroupRole.BOUNCE, GroupRole.ASIDE + repairs + 1)
        for role in roles:
            group = self.groups.get((at, role, egress))
            if group and came and role != GroupRole.FALLBACK and group.entry == came:
                return group, None
        return self.groups.get((at, GroupRole.TRANSIT, egress)), None

    def _need(self, at: int, kind: int, number: int, *pair: int) -> None:
        """Note that packets of a pair must reach a flow."""
        version, source, target = pair
        self._needs(at, kind, number, {(version, source, target)})

    def _needs(self, at: int, kind: int, number: int, pairs: Pairs) -> None:
        """Note that packets of pairs must reach a flow, if there is such a flow."""
        if (rule := self.flows.get((at, kind, number))) and pairs:
            self.due.setdefault(rule, set()).update(pairs)

    def _prefixes(self, version: int) -> NDArray[np.int64]:
        """int64[S, S]: the number of the prefix by which a switch routes to another; -1: none."""
        plan, order = self.build.addressing, self.build.tables.switches
        blocks = plan.ipv4_blocks() if version == 4 else plan.ipv6_blocks()
        network, length = plan.ipv4_prefixes() if version == 4 else plan.ipv6_prefixes()
        bits = np.uint64(32 if version == 4 else 64)
        shift = bits - np.minimum(length.astype(np.uint64), bits)
        # Cut to a prefix's length: shifts of 64 bits are none.
        wanted = network.astype(np.uint64) >> shift
        numbers = np.full((order, order), -1, np.int64)
        inside = (blocks.astype(np.uint64)[:, None] >> shift) == wanted
        for switch in np.flatnonzero(self.build.topology.present).tolist():
            prefix = self.pipeline.routes(switch)[0]
            ranked = prefix[np.argsort(-length[prefix].astype(np.int64), kind="stable")]
            if len(ranked):
                matches = inside[:, ranked]
                numbers[switch] = np.where(matches.any(axis=1), ranked[matches.argmax(axis=1)], -1)
        return numbers
