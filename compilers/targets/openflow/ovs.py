"""The ovs target: a switch's program as text for `ovs-ofctl add-groups` and `add-flows`.

The same rows as `compilers.targets.openflow.encoder` sends, from the same pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_check import EmittedCheck, Reader
from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.expected_forwarding import Ability
from compilers.readers.openflow.ovs_reader import PipelineParts, read_ovs
from compilers.readers.openflow.single_table_reader import read_single_table
from compilers.tables.build import Build
from compilers.targets.openflow.carried_rows import CarriedRows, carried_addresses
from compilers.targets.openflow.class_groups import GroupRole, Groups, group_numbers
from compilers.targets.openflow.flow_tables import CAPABILITIES as OPENFLOW
from compilers.targets.openflow.flow_tables import (
    MOST_BASIS,
    ClassPriority,
    Pipeline,
    class_metadata,
    class_numbers,
    marker_cookie,
)
from compilers.targets.openflow.flow_tables import require as require_openflow
from compilers.targets.openflow.group_and_flow_bytes import single_priority
from compilers.targets.openflow.profiles import Profile, profiles_of
from compilers.targets.openflow.protocol import IN_PORT, GroupType
from compilers.targets.options import Chosen
from compilers.targets.target import Target
from compilers.wiring.addressing import format_mac


@dataclass(frozen=True, slots=True)
class HostText:
    """A host as the templates print it; ipv6 is "" without an IPv6 pool."""

    port: int
    mac: str
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A row of the class table: what metadata is, where a packet comes in (0: anywhere).

    actions: to a group, or over the ports of a class with several next hops.
    """

    priority: int
    in_port: int
    metadata: str
    actions: str


@dataclass(frozen=True, slots=True)
class PrefixText:
    """A row of the only table: a prefix, and where a packet comes in (0: anywhere)."""

    priority: int
    in_port: int
    family: str
    prefix: str
    group: int


@dataclass(frozen=True, slots=True)
class SpreadText:
    """A row for marked packets: where they come in, what metadata is, and the ports by commas.

    mark: the MAC address that they keep, "" where the mark ends.
    """

    in_port: int
    metadata: str
    basis: int
    ports: str
    mark: str


@dataclass(frozen=True, slots=True)
class CarriedText:
    """A row by an intermediate: its MAC address, the class; a port that has to be up, or 0."""

    mac: str
    metadata: int
    port: int


@dataclass(frozen=True, slots=True)
class GroupText:
    """A group: its number, its type and its buckets, as ovs-ofctl writes them."""

    number: int
    type: str
    buckets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OvsVariables:
    """The variables of a switch's templates; a route is a prefix, its length and its class.

    marked_mac, carried_mac: of marked packets and of intermediates, "" without them; own_mac: of
    the switch as an intermediate. entering: whether there are alternates. every_hop: whether
    transit is shared, too. moves, masks, single: of the profile: ARP answered by moves, metadata
    under masks, one table. prefixes: the rows of one table. basis: of the hash. intermediates: how
    many. route_mask: the bits of metadata that routes write.
    """

    node: str
    identity: str
    marker_cookie: str
    gateway_mac: str
    marked_mac: str
    gateway: str
    ipv4_length: int
    ipv4_block: str
    ipv6_block: str
    route_mask: str
    ipv4_routes: list[tuple[str, int, int]]
    ipv6_routes: list[tuple[str, int, int]]
    hosts: list[HostText]
    entering: bool
    every_hop: bool
    moves: bool
    masks: bool
    single: bool
    prefixes: list[PrefixText]
    classes: list[ClassRow]
    spread: list[SpreadText]
    carried_mac: str
    own_mac: str
    basis: int
    intermediates: int
    carried: list[CarriedText]
    gives_up: bool
    groups: list[GroupText]


class Ovs(Target):
    """Open vSwitch, programmed from text instead of by the controller."""

    name = "ovs"
    summary = "groups.txt and flows.txt for ovs-ofctl -O OpenFlow13 add-groups, add-flows"
    files = dict.fromkeys(("groups.txt", "flows.txt"), OvsVariables)
    capabilities = OPENFLOW

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """See `Target.require`."""
        require_openflow(build, self.name)

    def reader(self, chosen: Chosen) -> Reader:  # noqa: ARG002
        """See `Target.reader`."""
        return read_ovs

    def emitted_check(
        self,
        build: Build,
        chosen: Chosen,  # noqa: ARG002
        folder: Path,
        accept: tuple[str, ...],
    ) -> EmittedCheck:
        """See `Target.emitted_check`."""
        return profiled_check(build, folder, profiles_of(build), accept)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], OvsVariables]:  # noqa: ARG002
        """See `Target.variables`."""
        return FabricTexts.of(build).variables


@dataclass(frozen=True, slots=True)
class FabricTexts:
    """What the templates of all switches share: every prefix as text and its length, once."""

    pipeline: Pipeline
    networks: list[tuple[str, int]]
    networks6: list[tuple[str, int]]

    @classmethod
    def of(cls, build: Build) -> FabricTexts:
        """The texts of a build's prefixes."""
        every = build.addressing.prefix_texts()
        lengths = [[(text, int(text.partition("/")[2])) for text in texts] for texts in every]
        return cls(Pipeline(build), lengths[0], [*lengths, []][1])

    def variables(self, vertex: int) -> OvsVariables:
        """The variables of a switch's templates."""
        build = self.pipeline.build
        prefixes, egress = self.pipeline.routes(vertex)
        groups, profile = self.pipeline.groups(vertex), self.pipeline.profiles[vertex]
        single, marked = profile.single, self.pipeline.marked_mac
        prefix = prefixes.tolist()
        number = self.pipeline.route_metadata(prefixes, egress).tolist()
        return OvsVariables(
            node=build.wiring.names[vertex],
            identity=build.identity,
            marker_cookie=f"{marker_cookie(build):#x}",
            gateway_mac=format_mac(build.addressing.gateway_mac),
            marked_mac=format_mac(marked) if marked else "",
            gateway=str(build.addressing.gateway(vertex)),
            ipv4_length=build.addressing.ipv4_length,
            ipv4_block=self.networks[vertex][0],
            ipv6_block=self.networks6[vertex][0] if self.networks6 else "",
            route_mask=f"{self.pipeline.route_mask:#x}",
            ipv4_routes=[(*self.networks[p], k) for p, k in zip(prefix, number, strict=True)],
            ipv6_routes=[(*self.networks6[p], k) for p, k in zip(prefix, number, strict=True)]
            if self.networks6
            else [],
            hosts=[self._host(vertex, host) for host in self.pipeline.hosts(vertex).tolist()],
            entering=self.pipeline.entering,
            every_hop=build.every_hop,
            moves=profile.answers_by_moves,
            masks=profile.masks,
            single=single,
            prefixes=list(self._prefix_rows(vertex, groups)) if single else [],
            classes=[]
            if single
            else [
                *self._shared_rows(vertex),
                *(row for group in groups for row in self._class_rows(vertex, group)),
            ],
            spread=[
                SpreadText(
                    in_port=row.in_port,
                    metadata=f"{row.metadata}/{row.mask:#x}",
                    basis=vertex & MOST_BASIS,
                    ports=",".join(map(str, row.ports.tolist())),
                    mark=format_mac(marked) if row.keeps else "",
                )
                for row in self.pipeline.spread(vertex)
            ],
            **self._carried(vertex),
            groups=[row for group in groups if group.made for row in self._groups(group)],
        )

    def _carried(self, vertex: int) -> dict[str, Any]:
        """What is said of packets that carry their intermediate; empty where none does."""
        build = self.pipeline.build
        basis = vertex & MOST_BASIS
        if not build.carries:
            return {"carried_mac": "", "own_mac": "", "basis": basis, "intermediates": 0} | {
                "carried": [],
                "gives_up": False,
            }
        rows, mac = CarriedRows.of(build, vertex), carried_addresses(build)
        number = class_numbers(rows.egress, 0).tolist()
        return {
            "carried_mac": format_mac(mac[0]),
            "own_mac": format_mac(mac[rows.own]) if rows.own >= 0 else "",
            "basis": basis,
            "intermediates": len(mac),
            "carried": [
                CarriedText(format_mac(mac[n]), number[n], int(rows.port[n]))
                for n in rows.others.tolist()
            ],
            "gives_up": build.protect != "none",
        }

    def _led(self, vertex: int, groups: Groups, masks: bool) -> Groups:
        """The groups that rows lead to, once for each port by which they are matched."""
        led = groups.led_here()
        if not led.entering or masks:
            return led
        ports = self.pipeline.build.wiring.host_port[vertex, self.pipeline.hosts(vertex)]
        return led.from_ports(ports)

    def _class_rows(self, vertex: int, groups: Groups) -> list[ClassRow]:
        masks = self.pipeline.profiles[vertex].masks
        led = self._led(vertex, groups, masks)
        value, mask = class_metadata(
            led.classes, led.entering and masks, direct=self.pipeline.direct
        )
        priority = ClassPriority.ANY if groups.role == GroupRole.TRANSIT else ClassPriority.SOME
        columns = led.in_port, value, self._numbers(groups.role, led.classes)
        under = f"/{mask:#x}" if masks else ""
        return [
            ClassRow(int(priority), port, f"{metadata}{under}", f"group:{number}")
            for port, metadata, number in zip(*(c.tolist() for c in columns), strict=True)
        ]

    def _shared_rows(self, vertex: int) -> Iterator[ClassRow]:
        """The rows of classes with several next hops, by a hash that no two switches have alike.

        Where they had, all packets that a neighbour sends here would take one of the next hops.
        """
        for egress, ports in self.pipeline.shared(vertex):
            value, mask = class_metadata(np.array([egress]), entering=False)
            members = ",".join(map(str, ports.tolist()))
            hashed = f"symmetric_l3l4+udp,{vertex & MOST_BASIS},hrw,ofport"
            actions = f"bundle({hashed},members:{members})"
            yield ClassRow(int(ClassPriority.ANY), 0, f"{value[0]}/{mask:#x}", actions)

    def _prefix_rows(self, vertex: int, groups: list[Groups]) -> Iterator[PrefixText]:
        prefix, egress = self.pipeline.routes(vertex)
        known = [("ip", self.networks), ("ipv6", self.networks6)][: 1 + self.pipeline.ipv6]
        for group in groups:
            led = self._led(vertex, group, masks=False)
            by_port = led.role != GroupRole.TRANSIT
            numbers = self._numbers(led.role, led.classes).tolist()
            for route, place in np.argwhere(egress[:, None] == led.classes[None, :]).tolist():
                for family, networks in known:
                    text, length = networks[prefix[route]]
                    priority = single_priority(length) + by_port
                    port = int(led.in_port[place])
                    yield PrefixText(priority, port, family, text, numbers[place])

    def _groups(self, groups: Groups) -> list[GroupText]:
        buckets = [
            tuple(self._bucket(*bucket, groups.type) for bucket in zip(*columns, strict=True))
            for columns in zip(
                groups.port.tolist(),
                groups.output.tolist(),
                groups.weight.tolist(),
                groups.marks.tolist(),
                strict=True,
            )
        ]
        if groups.role == GroupRole.FALLBACK:
            enter = self._numbers(GroupRole.ENTER, groups.classes).tolist()
            first = [f"watch_group:{number},actions=group:{number}" for number in enter]
            buckets = [(before, *rest) for before, rest in zip(first, buckets, strict=True)]
        numbers = self._numbers(groups.role, groups.classes).tolist()
        kind = groups.type.name.lower()
        return [
            GroupText(number, kind, these) for number, these in zip(numbers, buckets, strict=True)
        ]

    def _numbers(self, role: int, egress: NDArray[np.int64]) -> NDArray[np.int64]:
        return group_numbers(role, egress, self.pipeline.build.tables.classes.port.shape[1])

    def _host(self, vertex: int, host: int) -> HostText:
        build = self.pipeline.build
        a = build.addressing
        return HostText(
            port=int(build.wiring.host_port[vertex, host]),
            mac=a.mac(vertex, host),
            ipv4=str(a.host(vertex, host)),
            ipv6=str(a.host6(vertex, host)) if a.ipv6 else "",
        )

    def _bucket(self, port: int, to: int, weight: int, marks: bool, kind: GroupType) -> str:
        output = "in_port" if to == IN_PORT else f"output:{to}"
        mark = f"set_field:{format_mac(self.pipeline.marked_mac)}->eth_dst," if marks else ""
        output = f"actions={mark}{output}"
        if kind == GroupType.INDIRECT:
            return output
        watched = f"watch_port:{port},{output}"
        return f"weight:{weight},{watched}" if kind == GroupType.SELECT else watched


def profiled_check(
    build: Build,
    folder: Path,
    profiles: Sequence[Profile],
    accept: tuple[str, ...] = (),
    write: Callable[[Path], None] = lambda _: None,
) -> EmittedCheck:
    """The check of a folder of flows.txt and groups.txt for each switch.

    Args:
        build: that was emitted.
        folder: of all switches.
        profiles: of each vertex.
        accept: see `DifferenceList`.
        write: called with the folder of a switch before that is read.
    """
    by_name = dict(zip(build.wiring.names, profiles, strict=True))

    def read(folder: Path) -> EmittedSwitch:
        write(folder)
        profile = by_name[folder.name]
        if profile.single:
            return read_single_table(folder)
        return read_ovs(folder, PipelineParts(profile.answers_by_moves, profile.masks))

    able = [Ability(profile.repairs, profile.buckets) for profile in profiles]
    return EmittedCheck(build, folder, read, accept, able)
