"""Encodes the groups and flows of each switch as OpenFlow 1.3 messages, for the controller.

`Pipeline` says which groups and *rows* (flows) a switch has. Most messages are the same bytes on
every switch except in one or two columns: a route differs only in its egress class. So each kind of
message is laid out once for a fabric (a `Template`), and the program of a switch is made of copies
with these columns filled (a `Block`).

A switch takes its program as one bundle (ONF extension 230): first groups, then rows, last the
marker whose cookie names the build. Class and group numbers have two *generations*, so that two
programs fit into a switch side by side during an update. Where a balance sends packets over an
*intermediate* switch, packets carry it as a MAC address (`carried_rows`). The xid of a message says
what the message is about: an error of a switch quotes the xid, and `Encoder.describe` puts it in
words.

In the methods here, a *layout* is the template of one kind of message.
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
from compilers.targets.openflow import answer_rows
from compilers.targets.openflow import group_and_flow_bytes as row_layouts
from compilers.targets.openflow.carried_rows import CarriedRows
from compilers.targets.openflow.class_groups import GroupRole, Groups, group_numbers, role_count
from compilers.targets.openflow.encoder_layouts import (
    IntermediateLayouts,
    PrefixTemplates,
    SingleTableLayouts,
    TwoTableLayouts,
)
from compilers.targets.openflow.flow_tables import (
    CLASS_MASK,
    GENERATIONS,
    GROUP_SPACE,
    MOST_BASIS,
    class_numbers,
    marker_cookie,
)
from compilers.targets.openflow.group_and_flow_bytes import IPV4, IPV6
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
from compilers.targets.openflow.message_words import message_words
from compilers.targets.openflow.pipeline import Pipeline, require
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
        """What each switch can do, by vertex; `restrict` changes it."""
        self.by_datapath_id: dict[int, int] = {
            int(build.wiring.datapath_id[vertex]): vertex
            for vertex in np.flatnonzero(build.topology.present).tolist()
        }
        """The vertex of each installed switch, by its datapath id."""
        self.discovers = False
        """Whether switches get the flow that sends LLDP frames to the controller."""
        self._pipeline = Pipeline(build, self.profiles)
        self._lay_out()

    def with_tables(self, tables: Tables, discovers: bool | None = None) -> Encoder:
        """An encoder of the same build with other tables.

        Both share one list of profiles: `restrict` of either changes both.

        Args:
            tables: the tables, with as many egress classes per switch.
            discovers: whether switches send LLDP frames to the controller; None: as this encoder.
        """
        encoder = copy(self)
        encoder.discovers = self.discovers if discovers is None else discovers
        encoder.set_tables(tables)
        return encoder

    def set_tables(self, tables: Tables) -> None:
        """Replace the tables by others whose class numbers mean the same ports."""
        self.build = replace(self.build, tables=tables)
        self._pipeline = Pipeline(self.build, self.profiles)

    @property
    def marks(self) -> bool:
        """Whether the balance marks packets from hosts that leave by an alternate."""
        return self._pipeline.marks

    def as_now(self) -> Encoder:
        """A copy with its own profiles, which a later `restrict` of this one does not change."""
        encoder = copy(self)
        encoder.profiles = list(self.profiles)
        return encoder.with_tables(self.build.tables)

    def profile(self, vertex: int) -> Profile:
        """What the switch can do."""
        return self.profiles[vertex]

    def restrict(self, vertex: int, limits: Profile) -> None:
        """Limit the profile of a switch to what the switch has turned out to be able to do.

        Args:
            vertex: the switch; negative: it is not in the build, and nothing happens.
            limits: the parts of OpenFlow that the switch has.
        """
        # A program that needs all of Open vSwitch stays as it is: other switches refuse it.
        if vertex >= 0 and not self._pipeline.needs_open_vswitch:
            self.profiles[vertex] = self._node_profiles[vertex].within(limits)

    def row_count(self, vertex: int) -> int:
        """The number of flows in the program of a switch."""
        return self._pipeline.row_count(vertex)

    def program(self, vertex: int, generation: int = 0) -> FlowProgram:
        """All groups and rows of a switch, wrapped for bundle `group_and_flow_bytes.BUNDLE`.

        Args:
            vertex: the switch.
            generation: 0 or 1, that of the class and group numbers.
        """
        groups, profile = self._pipeline.groups(vertex), self.profiles[vertex]
        added_groups = [
            self.group_messages(groups_of_form, generation)
            for groups_of_form in groups
            if groups_of_form.is_new
        ]
        flows = [row_layouts.discovery()] if self.discovers else []
        flows += self._answer_rows(vertex, profile)
        if profile.single:
            flows += self._single_table_rows(vertex, groups, generation)
        else:
            flows = [*self._forward_rows, *flows, *self._host_rows(vertex, profile)]
            flows += self._route_and_class_rows(vertex, groups, generation)
        return FlowProgram(tuple(added_groups), flows=(*flows, self._markers[generation]))

    def group_messages(self, groups: Groups, generation: int) -> Block:
        """Messages that add groups of any switches, which have one form (`by_buckets`)."""
        marks = tuple(groups.marks[0].tolist())
        layout = groups.role, groups.type, marks, generation
        if layout not in self._group_layouts:
            self._group_layouts[layout] = row_layouts.class_groups_of_role(
                self._class_count, *layout, self._marking_bucket
            )
        watched = groups.type != GroupType.INDIRECT
        port, output, weight = groups.port, groups.output, groups.weight
        columns = {
            name: buckets(template, port[:, run], output[:, run], weight[:, run], watched)
            for name, template, run in bucket_runs(marks, self._marking_bucket)
        }
        return self._group_layouts[layout].filled(groups.egress, **columns)

    def class_messages(self, groups: Groups, generation: int, profile: Profile = OVS) -> Block:
        """Messages that add the rows which lead to groups, at switches of one profile."""
        template = self._layouts(profile.masks).classes[generation][groups.role]
        egress = groups.egress[groups.has_row]
        if groups.role == GroupRole.TRANSIT or (groups.from_hosts and profile.masks):
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

    def spread_messages(
        self, vertex: int, generation: int, before: Encoder | None = None
    ) -> list[Block]:
        """Messages that add the rows which spread marked packets; [] where none is marked.

        Args:
            vertex: the switch.
            generation: the generation of its class numbers.
            before: the encoder of the rows that the switch has; only rows that differ are added.
                None: all rows are added.
        """
        added = self._pipeline.spread_rows(vertex, generation)
        if before:
            old = before._pipeline.spread_rows(vertex, generation)
            pairs = zip(old, added, strict=True)
            added = [row for held, row in pairs if not np.array_equal(held.ports, row.ports)]
        return row_layouts.spread_rows(added, vertex & MOST_BASIS)

    def carried_messages(
        self, vertex: int, generation: int, before: Encoder | None = None
    ) -> list[Block]:
        """Messages that add the rows for packets that carry an intermediate (`carried_rows`).

        A packet whose intermediate has no route goes on to its destination from here.

        Args:
            vertex: the switch.
            generation: the generation of its class numbers.
            before: the encoder of the rows that the switch has; only rows that differ are added.
                None: all rows are added.

        Returns:
            The messages; [] where packets carry no intermediate.
        """
        layouts = self._intermediate_layouts
        if not layouts:
            return []
        carried = CarriedRows.of(self.build, vertex)
        metadata = class_numbers(carried.egress, generation)
        # int64[n]: the numbers of the intermediates that get rows.
        numbers = carried.others
        if before:
            egress_before = CarriedRows.of(before.build, vertex).egress
            numbers = numbers[egress_before[numbers] != carried.egress[numbers]]
            if not len(numbers):
                return []
        has_route = carried.egress[numbers] >= 0
        is_neighbour = carried.port[numbers] > 0
        far = numbers[has_route & ~is_neighbour]
        near = numbers[has_route & is_neighbour]
        blocks = [
            layouts.to_far.filled(far, metadata=metadata[far]),
            layouts.to_neighbour.filled(near, metadata=metadata[near], port=carried.port[near]),
            layouts.to_destination.filled(numbers[~has_route]),
        ]
        if not before:
            own = [carried.own_number] if carried.own_number >= 0 else []
            blocks.append(layouts.to_destination.filled(np.array(own, np.int64)))
            if self.build.forwarding.repairs:
                blocks.append(layouts.port_down)
        return [block for block in blocks if len(block)]

    def describe(self, xid: int) -> str:
        """What the message with an xid is about, in words: `route 3 (10.0.0.12/30)`."""
        return message_words(xid, self.build.addressing)

    def _lay_out(self) -> None:
        """Lay out the messages of the fabric.

        Layouts that depend on profiles are made when a switch first needs them.
        """
        self._class_count = self.build.tables.classes.port.shape[1]
        self._group_layouts: dict[tuple[int, GroupType, tuple[int, ...], int], Template] = {}
        """The layout of groups, by role, type, which buckets mark packets, and generation."""
        self._layouts_by_masks: dict[bool, TwoTableLayouts] = {}
        """The layouts of routes and classes, by whether switches match parts of metadata."""
        self._entrance_layouts: dict[tuple[bool, bool], list[Template]] = {}
        """By the arguments of `_entrances`, what it returns."""
        self._single_table_layouts: SingleTableLayouts | None = None
        """The layouts for switches with one table, once a switch has needed them."""
        self._markers = [
            row_layouts.marker(marker_cookie(self.build, generation))
            for generation in range(GENERATIONS)
        ]
        """The marker of the build, by generation."""
        intermediates = self.build.forwarding.intermediates
        self._intermediate_layouts = IntermediateLayouts.of(self.build) if intermediates else None
        self._lay_out_dispatch()
        self._lay_out_hosts()

    def _lay_out_dispatch(self) -> None:
        """Lay out the rows for packets to the gateway, and the bucket that marks packets."""
        gateway, ipv6 = self.build.addressing.gateway_mac, self._pipeline.ipv6
        self._forward_rows = [row_layouts.gateway_rows(gateway, ipv6)]
        self._marking_bucket = PLAIN_BUCKET
        if marked := self._pipeline.marked_mac:
            self._forward_rows.append(row_layouts.marked_gateway_rows(marked, gateway, ipv6))
            self._marking_bucket = bucket(set_field("eth_dst", marked))
        if self._intermediate_layouts:
            self._forward_rows.append(
                row_layouts.intermediate_rows(self._intermediate_layouts.first_mac, ipv6)
            )

    def _lay_out_hosts(self) -> None:
        """Lay out the answers to hosts, the rows that deliver to hosts, and prefixes."""
        addressing, hosts = self.build.addressing, self.build.wiring.host_port.shape[1]
        gateway = addressing.gateway_mac
        self._ipv4_blocks = addressing.ipv4_blocks()
        self._arp_answer_by_moves = answer_rows.arp_answer_by_moves(gateway, addressing.ipv4_length)
        self._arp_answers_by_address = answer_rows.arp_answers_by_address(gateway, 1)
        self._guard_layout = row_layouts.guard_rows(hosts)
        self._prefixes = [row_layouts.Prefixes(IPV4, *addressing.ipv4_prefixes())]
        self._own_address_layouts = [answer_rows.own_arp(hosts)]
        self._host_layouts = [row_layouts.host_rows(gateway, hosts, IPV4, single=False)]
        if self._pipeline.ipv6:
            self._ipv6_blocks = addressing.ipv6_blocks()
            self._nd_answer = answer_rows.nd_answer()
            self._nd_finish = answer_rows.nd_finish(gateway)
            self._prefixes.append(row_layouts.Prefixes(IPV6, *addressing.ipv6_prefixes()))
            self._own_address_layouts.append(answer_rows.own_nd(hosts))
            self._host_layouts.append(row_layouts.host_rows(gateway, hosts, IPV6, single=False))

    def _layouts(self, masks: bool) -> TwoTableLayouts:
        """Routes and classes of switches that match parts of metadata, or of those that do not."""
        if masks not in self._layouts_by_masks:
            route_mask = CLASS_MASK if masks else row_layouts.ALL_METADATA
            roles = range(role_count(self.build.tables.classes, self.build.forwarding.every_hop))
            count, first_direct = self._class_count, self._pipeline.first_direct
            self._layouts_by_masks[masks] = TwoTableLayouts(
                routes=[
                    row_layouts.route_rows(prefixes, route_mask) for prefixes in self._prefixes
                ],
                classes=[
                    [
                        row_layouts.class_rows(count, role, generation, masks, first_direct)
                        for role in roles
                    ]
                    for generation in range(GENERATIONS)
                ],
            )
        return self._layouts_by_masks[masks]

    def _host_addresses(self, vertex: int) -> list[NDArray[np.integer]]:
        """The addresses of a switch's hosts, int64[n], and of IPv6 uint64[n, 2]."""
        hosts = FIRST_HOST + self._pipeline.hosts(vertex)
        addresses: list[NDArray[np.integer]] = [self._ipv4_blocks[vertex] + hosts]
        if self._pipeline.ipv6:
            upper_half = np.full(len(hosts), self._ipv6_blocks[vertex], np.uint64)
            addresses.append(np.column_stack((upper_half, hosts.astype(np.uint64))))
        return addresses

    def _host_ports(self, vertex: int) -> NDArray[np.int32]:
        """The ports of a switch's hosts, int32[n]."""
        ports: NDArray[np.int32] = self.build.wiring.host_port[vertex, self._pipeline.hosts(vertex)]
        return ports

    def _host_macs(self, vertex: int) -> NDArray[np.uint8]:
        """The MAC addresses of a switch's hosts, uint8[n, 6]."""
        hosts = self._pipeline.hosts(vertex)
        return mac_bytes(self.build.addressing.host_mac[vertex, hosts])

    def _answer_rows(self, vertex: int, profile: Profile) -> list[Block]:
        """The rows that answer ARP, and neighbour discovery if the switch can move fields."""
        if not profile.answers_by_moves:
            return [self._arp_rows_by_address(vertex)]
        hosts, port = self._pipeline.hosts(vertex), self._host_ports(vertex)
        blocks = [self._arp_answer_by_moves.filled([0], block=self._ipv4_blocks[vertex])]
        if self._pipeline.ipv6:
            blocks += [
                self._nd_answer.filled([0], block=(self._ipv6_blocks[vertex], 0)),
                self._nd_finish,
            ]
        for own, address in zip(
            self._own_address_layouts, self._host_addresses(vertex), strict=True
        ):
            blocks.append(own.filled(hosts, port=port, address=address))
        return blocks

    def _arp_rows_by_address(self, vertex: int) -> Block:
        """The rows that answer ARP without moves of fields: one for each host and each target.

        The targets are the addresses of the gateway and of the other hosts.
        """
        address, gateway = self._host_addresses(vertex)[0], int(self._ipv4_blocks[vertex]) + 1
        count = len(address)
        asking = np.repeat(np.arange(count), count)
        # Nobody answers a host that asks for its own address; the gateway takes this place.
        target = np.where(np.eye(count, dtype=np.bool_), gateway, address[None, :]).ravel()
        return self._arp_answers_by_address.filled(
            np.zeros(count * count, np.int64),
            port=self._host_ports(vertex)[asking],
            mac=self._host_macs(vertex)[asking],
            address=address[asking],
            target=target,
        )

    def _host_rows(self, vertex: int, profile: Profile) -> list[Block]:
        """The rows that deliver to hosts, and those for packets from hosts where these differ."""
        hosts = self._pipeline.hosts(vertex)
        port, mac = self._host_ports(vertex), self._host_macs(vertex)
        addresses, checks = self._host_addresses(vertex), self._pipeline.checks_sources(vertex)
        in_metadata = self._pipeline.separates_hosts and profile.masks
        blocks = []
        if self._intermediate_layouts and len(hosts):
            blocks = self._rows_to_draw(vertex, self._intermediate_layouts)
        elif in_metadata or checks:
            for enter, address in zip(self._entrances(in_metadata, checks), addresses, strict=True):
                blocks.append(enter.filled(hosts, port=port, **_source_column(address, checks)))
        if checks:
            blocks.append(self._guard_layout.filled(hosts, port=port))
        for local, address in zip(self._host_layouts, addresses, strict=True):
            blocks.append(local.filled(hosts, port=port, address=address, mac=mac))
        return blocks

    def _entrances(self, in_metadata: bool, checked: bool) -> list[Template]:
        """The layouts of rows that take packets from hosts, by address family.

        Args:
            in_metadata: whether metadata says that packets come from a host.
            checked: whether their source address has to be the host's.
        """
        if (in_metadata, checked) not in self._entrance_layouts:
            addressing, hosts = self.build.addressing, self.build.wiring.host_port.shape[1]
            families = [IPV4, IPV6] if addressing.ipv6 else [IPV4]
            self._entrance_layouts[in_metadata, checked] = [
                row_layouts.rows_from_hosts(
                    addressing.gateway_mac, hosts, family, in_metadata, checked
                )
                for family in families
            ]
        return self._entrance_layouts[in_metadata, checked]

    def _rows_to_draw(self, vertex: int, layouts: IntermediateLayouts) -> list[Block]:
        """The rows of a switch that draw an intermediate by a hash for packets from hosts.

        Packets to a host of the same switch get none.
        """
        hosts, port = self._pipeline.hosts(vertex), self._host_ports(vertex)
        basis = vertex & MOST_BASIS
        addresses, checks = self._host_addresses(vertex), self.build.addressing.source_checks
        networks: list[Any] = [self._ipv4_blocks[vertex]]
        if self._pipeline.ipv6:
            networks.append((self._ipv6_blocks[vertex], 0))
        blocks = []
        for layout, network, address in zip(
            layouts.to_same_switch, networks, addresses, strict=True
        ):
            if checks:
                blocks.append(layout.filled(hosts, port=port, address=address, block=network))
            else:
                blocks.append(layout.filled([0], block=network))
        for layout, address in zip(layouts.from_hosts, addresses, strict=True):
            columns = _source_column(address, checks)
            blocks.append(layout.filled(hosts, port=port, basis=basis, **columns))
        return blocks

    def _route_and_class_rows(
        self, vertex: int, groups: list[Groups], generation: int
    ) -> list[Block]:
        """The rows of a switch with tables of their own for routes and for classes."""
        profile = self.profiles[vertex]
        blocks = list(self.route_messages(*self._pipeline.routes(vertex), generation, profile))
        host_ports = self._host_ports(vertex)
        for groups_of_form in groups:
            # Without masks, a row for packets from hosts matches the port of one host.
            by_port = groups_of_form.from_hosts and not profile.masks
            with_rows = (
                groups_of_form.with_rows().from_ports(host_ports) if by_port else groups_of_form
            )
            blocks.append(self.class_messages(with_rows, generation, profile))
        blocks += self.spread_messages(vertex, generation)
        basis = vertex & MOST_BASIS
        blocks += [
            row_layouts.shared_class_row(egress, ports, basis, generation)
            for egress, ports in self._pipeline.shared_classes(vertex)
        ]
        return blocks + self.carried_messages(vertex, generation)

    def _single_table_rows(self, vertex: int, groups: list[Groups], generation: int) -> list[Block]:
        """The rows of the only table of a switch: hosts, then prefixes.

        A prefix has a row for packets from any port, and one for each ingress port that its class
        distinguishes.
        """
        layouts = self._layouts_of_single_table()
        hosts, port = self._pipeline.hosts(vertex), self._host_ports(vertex)
        blocks = [
            layout.filled(hosts, port=port, address=address, mac=self._host_macs(vertex))
            for layout, address in zip(layouts.hosts, self._host_addresses(vertex), strict=True)
        ]
        prefix, egress = self._pipeline.routes(vertex)
        for groups_of_form in groups:
            with_rows = groups_of_form.with_rows()
            if groups_of_form.from_hosts:
                with_rows = with_rows.from_ports(port)
            # Each pair of a route and a group of its class, as an index of each.
            is_pair = egress[:, None] == with_rows.egress[None, :]
            route, group = np.nonzero(is_pair)
            numbers = generation * GROUP_SPACE + group_numbers(
                with_rows.role, with_rows.egress[group], self._class_count
            )
            for templates in layouts.routes:
                if with_rows.role == GroupRole.TRANSIT:
                    block = templates.from_any_port.filled(prefix[route], group=numbers)
                else:
                    block = templates.from_one_port.filled(
                        prefix[route], group=numbers, port=with_rows.in_port[group]
                    )
                blocks.append(block)
        return blocks

    def _layouts_of_single_table(self) -> SingleTableLayouts:
        """The layouts for switches with one table."""
        if self._single_table_layouts is None:
            gateway = self.build.addressing.gateway_mac
            hosts = self.build.wiring.host_port.shape[1]
            self._single_table_layouts = SingleTableLayouts(
                routes=[
                    PrefixTemplates(
                        from_any_port=row_layouts.prefix_rows(prefixes, gateway, by_port=False),
                        from_one_port=row_layouts.prefix_rows(prefixes, gateway, by_port=True),
                    )
                    for prefixes in self._prefixes
                ],
                hosts=[
                    row_layouts.host_rows(gateway, hosts, prefixes.ethertype, single=True)
                    for prefixes in self._prefixes
                ],
            )
        return self._single_table_layouts


def _source_column(address: NDArray[np.integer], checks: bool) -> dict[str, NDArray[np.integer]]:
    """The column of source addresses, where they are checked."""
    return {"address": address} if checks else {}
