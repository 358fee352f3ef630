"""Encodes the groups and flows of each switch as OpenFlow 1.3 messages, for the controller.

Most messages are the same bytes on every switch except in one or two columns: a route differs only
in its class of egress ports. So each kind of message is laid out once for a fabric (a `Template`),
and the program of a switch is made of copies with these columns filled (a `Block`).

A switch takes its program as one bundle (ONF extension 230): first groups, then flows, last the
marker that tells which build the switch has. The xid of a message says what the message is about;
where a switch answers with an error, that quotes the xid, and `Encoder.describe` puts it in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.carried_rows import (
    CarriedRows,
    carried_addresses,
)
from compilers.targets.openflow.class_groups import GroupRole, Groups, group_numbers, roles
from compilers.targets.openflow.flow_tables import (
    CLASS_MASK,
    GENERATIONS,
    GROUP_SPACE,
    MOST_BASIS,
    Pipeline,
    RowKind,
    class_numbers,
    marker_cookie,
    require,
)
from compilers.targets.openflow.group_and_flow_bytes import (
    IPV4,
    IPV6,
    IPV6_NUMBER,
    MOST_NUMBER,
    ROLE_SHIFT,
    XID_BITS,
)
from compilers.targets.openflow.message_parts import (
    PLAIN_BUCKET,
    Block,
    Template,
    bucket,
    bucket_runs,
    buckets,
    mac_bytes,
    set_field,
)
from compilers.targets.openflow.profiles import OVS, Profile, profiles_of
from compilers.targets.openflow.protocol import GroupType


@dataclass(frozen=True, slots=True, eq=False)
class FlowProgram:
    """The messages that add all groups and flows of a switch to a bundle, in sending order."""

    groups: tuple[Block, ...]
    """Blocks of messages of equal length; a group precedes the groups that forward to it."""
    flows: tuple[Block, ...]
    """Blocks of messages of equal length; the last flow is the marker of the build."""

    @property
    def parts(self) -> list[bytes]:
        """The bytes of each block."""
        return [block.tobytes() for block in (*self.groups, *self.flows)]


class Encoder:
    """Makes the programs of the switches of a build.

    Args:
        build: the build; it was saved, so it has an identity.
        profiles: what each switch can do, by vertex; None: what its node type says.

    Raises:
        InputError: the build asks for something that this target cannot do.
        ValueError: the build was never saved, so it has no identity.
    """

    def __init__(self, build: Build, profiles: Sequence[Profile] | None = None) -> None:
        require(build)
        self.build = build
        self._node_profiles = profiles_of(build) if profiles is None else tuple(profiles)
        self.profiles = list(self._node_profiles)
        self.by_datapath_id: dict[int, int] = {
            int(build.wiring.datapath_id[vertex]): vertex
            for vertex in np.flatnonzero(build.topology.present).tolist()
        }
        self.discovers = False
        """Whether switches get the flow that sends LLDP frames to the controller."""
        self._pipeline = Pipeline(build, self.profiles)
        self._layout()

    def with_tables(self, tables: Tables, discovers: bool | None = None) -> Encoder:
        """An encoder of the same build with other tables.

        Both share one list of profiles: `restrict` of either changes both.

        Args:
            tables: the other tables, with as many classes of egress ports per switch.
            discovers: whether switches send LLDP frames to the controller; None: as here.
        """
        other = copy(self)
        other.discovers = self.discovers if discovers is None else discovers
        other.hold(tables)
        return other

    def hold(self, tables: Tables) -> None:
        """Replace the tables; their class numbers mean the same ports."""
        self.build = replace(self.build, tables=tables)
        self._pipeline = Pipeline(self.build, self.profiles)

    @property
    def marks(self) -> bool:
        """Whether packets of hosts that leave by an alternate are marked."""
        return self._pipeline.marks

    def as_now(self) -> Encoder:
        """A copy that a later `restrict` of this encoder does not change."""
        other = copy(self)
        other.profiles = list(self.profiles)
        return other.with_tables(self.build.tables)

    def profile(self, vertex: int) -> Profile:
        """What the switch can do."""
        return self.profiles[vertex]

    def restrict(self, vertex: int, able: Profile) -> None:
        """Limit the profile of a switch to what it has shown that it can do.

        Args:
            vertex: the switch; below 0 it is none of the build, and nothing happens.
            able: what it can do.
        """
        if vertex >= 0 and not self._pipeline.whole:  # what that needs it has, or refuses
            self.profiles[vertex] = self._node_profiles[vertex].within(able)

    def rows(self, vertex: int) -> int:
        """The number of flows in the program of a switch."""
        return self._pipeline.rows(vertex)

    def program(self, vertex: int, generation: int = 0) -> FlowProgram:
        """All groups and rows of a switch, wrapped for bundle `rows.BUNDLE`.

        Args:
            vertex: the switch.
            generation: 0 or 1, which numbers its classes and groups have.
        """
        groups, profile = self._pipeline.groups(vertex), self.profiles[vertex]
        flows = self._answers(vertex, profile)
        if self.discovers:
            flows.insert(0, rows.discovery())
        if profile.single:
            flows += self._single_table(vertex, groups, generation)
        else:
            flows = [*self._forward, *flows, *self._local(vertex, profile)]
            flows += self.route_messages(*self._pipeline.routes(vertex), generation, profile)
            ports = self.build.wiring.host_port[vertex, self._pipeline.hosts(vertex)]
            for group in groups:
                by_port = group.entering and not profile.masks
                with_rows = group.with_rows().from_ports(ports) if by_port else group
                flows.append(self.class_messages(with_rows, generation, profile))
            basis = vertex & MOST_BASIS
            flows += [rows.spread(row, basis) for row in self._pipeline.spread(vertex, generation)]
            flows += [
                rows.shared(number, ports, basis, generation)
                for number, ports in self._pipeline.shared(vertex)
            ]
            flows += self.carried_messages(vertex, generation)
        return FlowProgram(
            groups=tuple(
                self.group_messages(group, generation) for group in groups if group.is_new
            ),
            flows=(*flows, self._markers[generation]),
        )

    def group_messages(self, groups: Groups, generation: int) -> Block:
        """Messages that add these groups, alike as `by_buckets` has them, of whatever switches."""
        marks = tuple(groups.marks[0].tolist())
        layout = groups.role, groups.type, marks, generation
        if layout not in self._groups:
            self._groups[layout] = rows.groups(self._width, *layout, self._marking)
        watched = groups.type != GroupType.INDIRECT
        port, output, weight = groups.port, groups.output, groups.weight
        columns = {
            name: buckets(form, port[:, run], output[:, run], weight[:, run], watched)
            for name, form, run in bucket_runs(marks, self._marking)
        }
        return self._groups[layout].filled(groups.classes, **columns)

    def class_messages(self, groups: Groups, generation: int, profile: Profile = OVS) -> Block:
        """Messages that add the rows that lead to these groups, of switches of a profile."""
        template = self._layouts(profile.masks).classes[generation][groups.role]
        egress = groups.classes[groups.has_row]
        if groups.role == GroupRole.TRANSIT or (groups.entering and profile.masks):
            return template.filled(egress)
        return template.filled(egress, in_port=groups.in_port[groups.has_row])

    def route_messages(
        self,
        prefix: NDArray[np.integer],
        egress: NDArray[np.integer],
        generation: int,
        profile: Profile = OVS,
    ) -> tuple[Block, ...]:
        """Messages that add routes, of IPv4 and of IPv6 if the build has it."""
        metadata = self._pipeline.route_metadata(egress, generation)
        routes = self._layouts(profile.masks).routes
        return tuple(family.filled(prefix, metadata=metadata) for family in routes)

    def carried_messages(
        self, vertex: int, generation: int, before: Encoder | None = None
    ) -> list[Block]:
        """Messages that add the rows by intermediates; none where packets carry none.

        A packet for an intermediate to which no route leads goes on from here to its destination.

        Args:
            vertex: the switch.
            generation: of its numbers.
            before: the encoder of the rows that the switch has; only rows that differ are added.
                None: all rows are added.
        """
        layouts = self._carried
        if not layouts:
            return []
        carried = CarriedRows.of(self.build, vertex)
        number, others = class_numbers(carried.egress, generation), carried.others
        if before:
            egress_before = CarriedRows.of(before.build, vertex).egress
            others = others[(egress_before != carried.egress)[others]]
            if not len(others):
                return []
        has_route, is_neighbour = carried.egress[others] >= 0, carried.port[others] > 0
        far, near = others[has_route & ~is_neighbour], others[has_route & is_neighbour]
        unreachable = others[~has_route]
        blocks = [
            layouts.far.filled(far, metadata=number[far]),
            layouts.near.filled(near, metadata=number[near], port=carried.port[near]),
            layouts.reached.filled(unreachable),
        ]
        if not before:
            own = [carried.own] if carried.own >= 0 else []
            blocks.append(layouts.reached.filled(np.array(own, np.int64)))
            if self.build.forwarding.repairs:
                blocks.append(layouts.given_up)
        return [block for block in blocks if len(block)]

    def describe(self, number: int) -> str:
        """What the message with this xid is about, in words: `route 3 (10.0.0.12/30)`."""
        kind, which = number >> XID_BITS, number & MOST_NUMBER
        a = self.build.addressing
        if kind == RowKind.ROUTE:
            v6, prefix = divmod(which, IPV6_NUMBER)
            return f"route {prefix} ({a.network6(prefix) if v6 else a.network(prefix)})"
        if kind not in _WORDS:
            return f"message {number:#x}"
        words = _WORDS[RowKind(kind)].format(which % (1 << ROLE_SHIFT))
        if kind in (RowKind.GROUP, RowKind.CLASS):
            words += _ROLES[GroupRole(min(which >> ROLE_SHIFT, GroupRole.ASIDE))]
        return words

    def _layout(self) -> None:
        a, hosts = self.build.addressing, self.build.wiring.host_port.shape[1]
        gateway = a.gateway_mac
        self._width = self.build.tables.classes.port.shape[1]
        self._groups: dict[tuple[int, GroupType, tuple[int, ...], int], Template] = {}
        self._markers = [
            rows.marker(marker_cookie(self.build, generation)) for generation in range(GENERATIONS)
        ]
        self._by_masks: dict[bool, _Layouts] = {}
        self._only: _SingleTable | None = None
        self._forward, self._marking = [rows.forward(gateway, self._pipeline.ipv6)], PLAIN_BUCKET
        if marked := self._pipeline.marked_mac:
            self._forward.append(rows.forward_marked(marked, gateway, self._pipeline.ipv6))
            self._marking = bucket(set_field("eth_dst", marked))
        self._blocks = a.ipv4_blocks()
        self._arp = rows.arp_answer(gateway, a.ipv4_length)
        self._arp_reply = rows.arp_reply(gateway, 1)
        self._prefixes = [rows.Prefixes(IPV4, *a.ipv4_prefixes())]
        self._guard, self._own = rows.guard(hosts), [rows.own_arp(hosts)]
        self._by_entrance: dict[tuple[bool, bool], list[Template]] = {}
        self._hosts = [rows.hosts(gateway, hosts, IPV4, single=False)]
        if self._pipeline.ipv6:
            self._blocks6 = a.ipv6_blocks()
            self._nd, self._nd_finish = rows.nd_answer(), rows.nd_finish(gateway)
            self._prefixes.append(rows.Prefixes(IPV6, *a.ipv6_prefixes()))
            self._own.append(rows.own_nd(hosts))
            self._hosts.append(rows.hosts(gateway, hosts, IPV6, single=False))
        self._carried = _Carried.of(self.build) if self.build.forwarding.intermediates else None
        if self._carried:
            self._forward.append(rows.forward_carried(self._carried.first, self._pipeline.ipv6))

    def _layouts(self, masks: bool) -> _Layouts:
        """Routes and classes of switches that match parts of metadata, or of those that do not."""
        if masks not in self._by_masks:
            self._by_masks[masks] = _Layouts(
                [
                    rows.routes(prefixes, CLASS_MASK if masks else rows.ALL_METADATA)
                    for prefixes in self._prefixes
                ],
                [
                    [
                        rows.classes(self._width, role, generation, masks, self._pipeline.direct)
                        for role in range(
                            roles(self.build.tables.classes, self.build.forwarding.every_hop)
                        )
                    ]
                    for generation in range(GENERATIONS)
                ],
            )
        return self._by_masks[masks]

    def _addresses(self, vertex: int) -> list[NDArray[np.integer]]:
        """The addresses of a switch's hosts, int64[n], and of IPv6 uint64[n, 2]."""
        hosts = FIRST_HOST + self._pipeline.hosts(vertex)
        addresses: list[NDArray[np.integer]] = [self._blocks[vertex] + hosts]
        if self._pipeline.ipv6:
            address = np.empty((len(hosts), 2), np.uint64)
            address[:, 0], address[:, 1] = self._blocks6[vertex], hosts
            addresses.append(address)
        return addresses

    def _ports(self, vertex: int) -> NDArray[np.int32]:
        """The ports of a switch's hosts."""
        ports: NDArray[np.int32] = self.build.wiring.host_port[vertex, self._pipeline.hosts(vertex)]
        return ports

    def _macs(self, vertex: int) -> NDArray[np.uint8]:
        hosts = self._pipeline.hosts(vertex)
        return mac_bytes(self.build.addressing.host_mac[vertex, hosts])

    def _answers(self, vertex: int, profile: Profile) -> list[Block]:
        """The answers to ARP, and to ND from a switch that moves fields."""
        if not profile.answers_by_moves:
            return [self._arp_replies(vertex)]
        hosts, port = self._pipeline.hosts(vertex), self._ports(vertex)
        blocks = [self._arp.filled([0], block=self._blocks[vertex])]
        if self._pipeline.ipv6:
            blocks += [self._nd.filled([0], block=(self._blocks6[vertex], 0)), self._nd_finish]
        for own, address in zip(self._own, self._addresses(vertex), strict=True):
            blocks.append(own.filled(hosts, port=port, address=address))
        return blocks

    def _arp_replies(self, vertex: int) -> Block:
        """A row for each host and address that it asks for: the gateway's, other hosts'."""
        own, gateway = self._addresses(vertex)[0], int(self._blocks[vertex]) + 1
        count = len(own)
        asks = np.repeat(np.arange(count), count)
        # A host that asks for its own address gets no answer: the gateway's is in its place.
        target = np.where(np.eye(count, dtype=np.bool_), gateway, own[None, :]).ravel()
        return self._arp_reply.filled(
            np.zeros(count * count, np.int64),
            port=self._ports(vertex)[asks],
            mac=self._macs(vertex)[asks],
            own=own[asks],
            target=target,
        )

    def _local(self, vertex: int, profile: Profile) -> list[Block]:
        """Entrances, where metadata tells them, and hosts."""
        hosts, port, mac = self._pipeline.hosts(vertex), self._ports(vertex), self._macs(vertex)
        addresses, checks = self._addresses(vertex), self._pipeline.checks(vertex)
        told = self._pipeline.entering and profile.masks
        blocks = []
        if self._carried and len(hosts):
            blocks = self._drawn(vertex, self._carried)
        elif told or checks:
            for enter, address in zip(self._entrances(told, checks), addresses, strict=True):
                blocks.append(enter.filled(hosts, port=port, **_checked(address, checks)))
        if checks:
            blocks.append(self._guard.filled(hosts, port=port))
        for local, address in zip(self._hosts, addresses, strict=True):
            blocks.append(local.filled(hosts, port=port, address=address, mac=mac))
        return blocks

    def _entrances(self, told: bool, checked: bool) -> list[Template]:
        """The layouts of packets from hosts, by address family; see `rows.enter`."""
        if (told, checked) not in self._by_entrance:
            a, hosts = self.build.addressing, self.build.wiring.host_port.shape[1]
            families = [IPV4, IPV6] if a.ipv6 else [IPV4]
            self._by_entrance[told, checked] = [
                rows.enter(a.gateway_mac, hosts, family, told, checked) for family in families
            ]
        return self._by_entrance[told, checked]

    def _drawn(self, vertex: int, carried: _Carried) -> list[Block]:
        """The rows of a switch by which hosts' packets draw an intermediate, or get none."""
        hosts, port, basis = self._pipeline.hosts(vertex), self._ports(vertex), vertex & MOST_BASIS
        addresses, checks = self._addresses(vertex), self.build.addressing.source_checks
        networks: list[Any] = [self._blocks[vertex]]
        if self._pipeline.ipv6:
            networks.append((self._blocks6[vertex], 0))
        blocks = []
        for within, network, address in zip(carried.within, networks, addresses, strict=True):
            if checks:
                blocks.append(within.filled(hosts, port=port, address=address, block=network))
            else:
                blocks.append(within.filled([0], block=network))
        for draw, address in zip(carried.draw, addresses, strict=True):
            columns = _checked(address, checks)
            blocks.append(draw.filled(hosts, port=port, basis=basis, **columns))
        return blocks

    def _single_table(self, vertex: int, groups: list[Groups], generation: int) -> list[Block]:
        """Hosts, and for each ingress port that a class distinguishes a row a prefix."""
        if self._only is None:
            a, hosts = self.build.addressing, self.build.wiring.host_port.shape[1]
            self._only = _SingleTable(
                [
                    [rows.prefix_rows(p, a.gateway_mac, by_port) for by_port in (False, True)]
                    for p in self._prefixes
                ],
                [
                    rows.hosts(a.gateway_mac, hosts, p.ethertype, single=True)
                    for p in self._prefixes
                ],
            )
        only, hosts, port = self._only, self._pipeline.hosts(vertex), self._ports(vertex)
        blocks = [
            local.filled(hosts, port=port, address=address, mac=self._macs(vertex))
            for local, address in zip(only.hosts, self._addresses(vertex), strict=True)
        ]
        prefix, egress = self._pipeline.routes(vertex)
        for group in groups:
            led_to = group.with_rows()
            if group.entering:
                led_to = led_to.from_ports(port)
            route, place = np.nonzero(egress[:, None] == led_to.classes[None, :])
            numbers = generation * GROUP_SPACE + group_numbers(
                led_to.role, led_to.classes[place], self._width
            )
            by_port = led_to.role != GroupRole.TRANSIT
            columns = {"port": led_to.in_port[place]} if by_port else {}
            blocks += [
                family[by_port].filled(prefix[route], group=numbers, **columns)
                for family in only.routes
            ]
        return blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Carried:
    """The layouts of flows for packets that carry an intermediate switch in their MAC address."""

    first: int
    """The MAC address of the first intermediate."""
    within: list[Template]
    """By address family: packets from a host to another host of its switch."""
    draw: list[Template]
    """By address family: packets from a host, which draw an intermediate."""
    far: Template
    """Packets to an intermediate that is no neighbour."""
    near: Template
    """Packets to an intermediate behind a port, as long as that port is up."""
    reached: Template
    """Packets whose intermediate is reached or has no route: the destination decides from here."""
    given_up: Block
    """Packets whose intermediate is a neighbour behind a port that is down: likewise."""

    @classmethod
    def of(cls, build: Build) -> _Carried:
        a, hosts = build.addressing, build.wiring.host_port.shape[1]
        addresses = carried_addresses(build)
        first, macs = addresses[0], mac_bytes(np.array(addresses, np.uint64))
        families = [IPV4, IPV6] if a.ipv6 else [IPV4]
        gateway, count, checked = a.gateway_mac, len(addresses), a.source_checks
        return cls(
            first=first,
            within=[
                rows.within(gateway, hosts, family, a.ipv4_length, checked) for family in families
            ],
            draw=[rows.draw(gateway, first, hosts, family, count, checked) for family in families],
            far=rows.towards(macs, watched=False),
            near=rows.towards(macs, watched=True),
            reached=rows.reached(macs, gateway),
            given_up=rows.given_up(gateway),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Layouts:
    """The layouts of routes, by family, and of classes, by generation and role."""

    routes: list[Template]
    classes: list[list[Template]]


@dataclass(frozen=True, slots=True, eq=False)
class _SingleTable:
    """The layouts of the only table, by family: prefixes, those with an ingress port, and hosts."""

    routes: list[list[Template]]
    hosts: list[Template]


def _checked(address: NDArray[np.integer], checks: bool) -> dict[str, NDArray[np.integer]]:
    """The column of source addresses, where they are checked."""
    return {"address": address} if checks else {}


_ROLES = {
    GroupRole.TRANSIT: "",
    GroupRole.ENTER: ", entering",
    GroupRole.BOUNCE: ", bouncing",
    GroupRole.FALLBACK: ", entering or repaired",
    GroupRole.ASIDE: ", repaired elsewhere",
}
_WORDS = {
    RowKind.OWN: "silence about the own address of host {}",
    RowKind.ANSWER: "answer to ARP or neighbour discovery",
    RowKind.FORWARD: "dispatch of IP packets",
    RowKind.HOST: "host {}",
    RowKind.CLASS: "egress class {}",
    RowKind.MARKER: "build marker",
    RowKind.GROUP: "group of egress class {}",
    RowKind.CLEAR: "removal of what this build has not",
    RowKind.OPEN: "start of the bundle",
    RowKind.BARRIER: "barrier",
    RowKind.COMMIT: "commit of the bundle",
    RowKind.SPREAD: "marked packets of port {}",
    RowKind.CARRIED: "packets by way of intermediate {}",
    RowKind.DISCOVERY: "discovery frames to the controller",
    RowKind.GUARD: "drop of what host {} may not send",
}
