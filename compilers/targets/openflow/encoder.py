"""The OpenFlow target: every switch's program as OpenFlow 1.3 messages in one buffer.

A row is the same bytes on every switch but for a column or two (a route but for its class), so each
kind of message is laid out once a fabric, and a switch's program is copies with columns filled.

A program is one bundle: add groups, then rows, the marker last. The xid of a message tells what it
is about (`Encoder.describe`), and an error quotes it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.class_groups import GroupRole, Groups, roles
from compilers.targets.openflow.flow_tables import (
    GENERATIONS,
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
    Records,
)
from compilers.targets.openflow.message_parts import Block, filled, mac_bytes, output_buckets
from compilers.targets.openflow.protocol import GroupType


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What a switch is to hold, as bundled messages that add it, in the order to send them.

    groups and flows: blocks of messages of one length. A group that others lead to comes first; the
    last flow is the build marker.
    """

    groups: tuple[Block, ...]
    flows: tuple[Block, ...]

    @property
    def parts(self) -> list[bytes]:
        """The bytes, a block each."""
        return [block.tobytes() for block in (*self.groups, *self.flows)]


class Encoder:
    """The programs of all switches of a build.

    Raises:
        InputError: the build asks for something that this target cannot do.
        ValueError: the build was never saved, so it has no identity.
    """

    def __init__(self, build: Build) -> None:
        require(build)
        self.build = build
        self.by_datapath_id: dict[int, int] = {
            int(build.wiring.datapath_id[vertex]): vertex
            for vertex in np.flatnonzero(build.topology.present).tolist()
        }
        self._pipeline = Pipeline(build)
        self._layout()

    def with_tables(self, tables: Tables) -> Encoder:
        """The encoder of the same build with other tables, as many classes per switch."""
        other = copy(self)
        other.build = replace(self.build, tables=tables)
        other._pipeline = Pipeline(other.build)
        return other

    def rows(self, vertex: int) -> int:
        """How many flows the switch has once programmed."""
        return self._pipeline.rows(vertex)

    def program(self, vertex: int, generation: int = 0) -> Program:
        """All groups and rows of a switch, wrapped for bundle `rows.BUNDLE`.

        Args:
            vertex: the switch.
            generation: 0 or 1, which numbers its classes and groups have.
        """
        groups = self._pipeline.groups(vertex)
        flows = [
            self._forward,
            filled(self._arp, [0], block=self._blocks[vertex]),
            *self._ipv4_of(vertex, generation),
        ]
        if self._pipeline.ipv6:
            flows += [
                filled(self._nd, [0], block=(self._blocks6[vertex], 0)),
                self._nd_finish,
                *self._ipv6_of(vertex, generation),
            ]
        flows += [self.class_messages(group, generation) for group in groups]
        return Program(
            groups=tuple(self.group_messages(group, generation) for group in groups),
            flows=(*flows, self._markers[generation]),
        )

    def group_messages(self, groups: Groups, generation: int) -> Block:
        """Messages that add these groups, whatever switches they are for."""
        count = groups.port.shape[1]
        layout = groups.role, groups.type, count, generation
        if layout not in self._groups:
            self._groups[layout] = rows.groups(self._width, *layout)
        watched = groups.type != GroupType.INDIRECT
        made = output_buckets(groups.port, groups.output, groups.weight, watched)
        return filled(self._groups[layout], groups.classes, buckets=made)

    def class_messages(self, groups: Groups, generation: int) -> Block:
        """Messages that add the rows that lead to these groups."""
        layout, egress = self._classes[generation][groups.role], groups.classes[groups.led]
        if groups.entering or groups.role == GroupRole.TRANSIT:
            return filled(layout, egress)
        return filled(layout, egress, in_port=groups.in_port)

    def route_messages(
        self, prefix: NDArray[np.integer], egress: NDArray[np.integer], generation: int
    ) -> tuple[Block, ...]:
        """Messages that add routes, of IPv4 and of IPv6 if the build has it."""
        metadata = class_numbers(egress, generation)
        families = (self._ipv4, self._ipv6) if self._pipeline.ipv6 else (self._ipv4,)
        return tuple(filled(family.routes, prefix, metadata=metadata) for family in families)

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
        classes, gateway = self.build.tables.classes, a.gateway_mac
        self._width = classes.port.shape[1]
        self._groups: dict[tuple[int, GroupType, int, int], Records] = {}
        self._classes = [
            [rows.classes(self._width, role, generation) for role in range(roles(classes))]
            for generation in range(GENERATIONS)
        ]
        self._markers = [
            rows.marker(marker_cookie(self.build, generation)) for generation in range(GENERATIONS)
        ]
        self._forward = rows.forward(gateway, self._pipeline.ipv6)
        self._blocks = a.ipv4_blocks()
        self._arp = rows.arp_answer(gateway, a.ipv4_length)
        self._ipv4 = _Family(
            routes=rows.ipv4_routes(*a.ipv4_prefixes()),
            own=rows.own_arp(hosts),
            enter=rows.enter(gateway, hosts, IPV4),
            local=rows.ipv4_hosts(gateway, hosts),
        )
        if self._pipeline.ipv6:
            self._blocks6 = a.ipv6_blocks()
            self._nd, self._nd_finish = rows.nd_answer(), rows.nd_finish(gateway)
            self._ipv6 = _Family(
                routes=rows.ipv6_routes(*a.ipv6_prefixes()),
                own=rows.own_nd(hosts),
                enter=rows.enter(gateway, hosts, IPV6),
                local=rows.ipv6_hosts(gateway, hosts),
            )

    def _ipv4_of(self, vertex: int, generation: int) -> tuple[Block, ...]:
        hosts = self._pipeline.hosts(vertex)
        address = self._blocks[vertex] + FIRST_HOST + hosts
        return self._addressed(vertex, generation, self._ipv4, address)

    def _ipv6_of(self, vertex: int, generation: int) -> tuple[Block, ...]:
        hosts = self._pipeline.hosts(vertex)
        address = np.empty((len(hosts), 2), np.uint64)
        address[:, 0], address[:, 1] = self._blocks6[vertex], FIRST_HOST + hosts
        return self._addressed(vertex, generation, self._ipv6, address)

    def _addressed(
        self, vertex: int, generation: int, family: _Family, address: NDArray[np.integer]
    ) -> tuple[Block, ...]:
        """Routes, silences, entrances and hosts of one address family."""
        prefix, egress = self._pipeline.routes(vertex)
        hosts = self._pipeline.hosts(vertex)
        port = self.build.wiring.host_port[vertex, hosts]
        mac = mac_bytes(self.build.addressing.host_mac[vertex, hosts])
        return (
            filled(family.own, hosts, port=port, address=address),
            *([filled(family.enter, hosts, port=port)] if self._pipeline.entering else []),
            filled(family.routes, prefix, metadata=class_numbers(egress, generation)),
            filled(family.local, hosts, port=port, address=address, mac=mac),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """The layouts of the rows of one address family."""

    routes: Records
    own: Records
    enter: Records
    local: Records


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
    RowKind.DISCOVERY: "discovery frames to the controller",
}
