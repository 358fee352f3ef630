"""The rows and groups of OpenFlow switches as numbers, and the check that they can run a build.

`Encoder` makes messages of what `Pipeline` says, for the controller and for the files that targets
write. `require` refuses a build that asks for more than OpenFlow switches can do.

An *egress class* is a forwarding equivalence class of a switch; a *group* holds its next hops. Some
balances *mark* packets of hosts in the destination MAC address, so that the next switch *spreads*
them over its other links. Others give each packet an *intermediate*, a switch to which the packet
goes first. `flow_tables` describes the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intermediates import intermediates
from compilers.routing.marked_spread import onward_ports
from compilers.spec.features import (
    AGGREGATES,
    BOUNCES,
    IN_PACKETS,
    INGRESS,
    MULTIPATH,
    REPAIR,
    TRANSIT,
    UNEQUAL_SHARES,
)
from compilers.spec.policy import EVERY_HOP
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.openflow.carried_rows import require_numbers
from compilers.targets.openflow.class_groups import Groups, groups_of_switch, role_count
from compilers.targets.openflow.flow_tables import (
    GENERATION_BIT,
    GROUP_SPACE,
    MARKED_BIT,
    NO_DIRECT_CLASSES,
    class_numbers,
)
from compilers.targets.openflow.profiles import Profile, profiles_of
from compilers.wiring.mac_addresses import MARK_IN_MAC
from inventory.problems import InputError

CAPABILITIES = Capabilities(
    features=IN_PACKETS
    | frozenset({MULTIPATH, UNEQUAL_SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT}),
    groups=GROUP_SPACE,
)
"""What a build may ask of OpenFlow tables."""


@dataclass(frozen=True, slots=True, eq=False)
class SpreadRow:
    """A row that spreads marked packets from one link over the switch's other links."""

    in_port: int
    """The ingress port of the packets."""
    metadata: int
    """The metadata of the packets, under `SPREAD_MASK`."""
    ports: NDArray[np.uint16]
    """The ports over which the packets are spread (`onward_ports`)."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The rows of every switch of a build as numbers, from which `Encoder` makes messages."""

    build: Build
    """The build."""
    profiles: Sequence[Profile] = ()
    """What each switch can do, by vertex; (): what its node type says."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "profiles", self.profiles or profiles_of(self.build))

    @property
    def ipv6(self) -> bool:
        """Whether there are rows for IPv6."""
        return self.build.addressing.ipv6 is not None

    def routes(self, vertex: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """Prefix numbers and egress classes of a switch's routes; its own prefix is no route."""
        return self.build.tables.routes.of(vertex)

    def hosts(self, vertex: int) -> NDArray[np.int64]:
        """The numbers, from 0, of the hosts of a switch."""
        hosts: NDArray[np.int64] = (self.build.wiring.host_port[vertex] > 0).nonzero()[0]
        return hosts

    def groups(self, vertex: int) -> list[Groups]:
        """The groups of a switch, each before the groups that forward to it."""
        classes = self.build.tables.classes
        profile, every_hop = self.profiles[vertex], self.build.forwarding.every_hop
        return list(groups_of_switch(classes, vertex, profile, self.marks, every_hop))

    @property
    def marks(self) -> bool:
        """Whether packets of hosts are marked, so that the next switch spreads them."""
        return self.build.forwarding.marks

    @property
    def needs_open_vswitch(self) -> bool:
        """Whether the balance needs the extensions of Open vSwitch at every switch."""
        return self.marks or self.build.forwarding.intermediates or self.build.forwarding.every_hop

    def route_metadata(self, egress: NDArray[np.integer], generation: int = 0) -> NDArray[np.int64]:
        """int64[n]: the metadata that routes write for these classes, under `CLASS_MASK`."""
        return class_numbers(egress, generation, self.first_direct)

    @property
    def first_direct(self) -> int:
        """K, the number of the first direct class; `NO_DIRECT_CLASSES` where no packet is marked.

        A switch has up to K links. Direct class K + k leads to the neighbour at link k, and class k
        to the destinations behind this neighbour. Marked packets of direct classes are not spread.
        """
        return self.build.wiring.port.shape[1] if self.marks else NO_DIRECT_CLASSES

    @property
    def marked_mac(self) -> int:
        """The MAC address to which marked packets are sent; 0 where no packet is marked."""
        return self.build.addressing.gateway_mac ^ MARK_IN_MAC if self.marks else 0

    def spread_rows(self, vertex: int, generation: int = 0) -> list[SpreadRow]:
        """The rows of a switch that spread marked packets, one for each port with a link."""
        wiring = self.build.wiring
        if not self.marks:
            return []
        avoided = self.build.tables.avoided
        onward = onward_ports(wiring, vertex, avoided)
        metadata = MARKED_BIT | (GENERATION_BIT if generation else 0)
        return [
            SpreadRow(int(wiring.port[vertex, link]), metadata, onward[link][onward[link] > 0])
            for link in np.flatnonzero(wiring.far[vertex] >= 0).tolist()
        ]

    def shared_classes(self, vertex: int) -> list[tuple[int, NDArray[np.integer]]]:
        """The classes that balance packets over several next hops at every hop.

        Returns:
            For each class its number, and int[n], the ports of its next hops.
        """
        if not self.build.forwarding.every_hop:
            return []
        classes = self.build.tables.classes
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ports = np.where(classes.weight[vertex] > 0, ports, 0)
        with_several = np.flatnonzero((ports > 0).sum(axis=1) > 1).tolist()
        return [(egress, ports[egress][ports[egress] > 0]) for egress in with_several]

    def checks_sources(self, vertex: int) -> bool:
        """Whether a switch drops packets of a host with another source address than the host's.

        A switch with a single table does not check sources: the check would need a row for each
        pair of a host and a prefix.
        """
        return self.build.addressing.source_checks and not self.profiles[vertex].single

    @property
    def separates_hosts(self) -> bool:
        """Whether packets from hosts have other groups than packets in transit."""
        return (
            bool(self.build.tables.classes.alternate.shape[2])
            and not self.build.forwarding.every_hop
        )

    @property
    def family_count(self) -> int:
        """The number of address families."""
        return 2 if self.ipv6 else 1

    def row_count(self, vertex: int) -> int:
        """The number of rows in the program of a switch, without the one for LLDP frames."""
        marker_row = 1  # the row whose cookie names the build
        if self.profiles[vertex].single:
            return marker_row + self._answer_count(vertex) + self._single_table_count(vertex)
        hosts, routes = len(self.hosts(vertex)), len(self.routes(vertex)[0])
        # One summand for each method of `Encoder` that makes rows.
        return (
            marker_row
            + self._answer_count(vertex)
            + self._dispatch_count(vertex)
            + self.family_count * (routes + hosts)
            + self._class_count(vertex)
            + self._carried_count()
        )

    def _answer_count(self, vertex: int) -> int:
        """The number of rows that answer ARP and neighbour discovery."""
        hosts = len(self.hosts(vertex))
        if not self.profiles[vertex].answers_by_moves:
            return hosts * hosts  # each host may ask for the gateway and for every other host
        # In each family one row answers all requests, and each host has a row that drops its
        # requests for its own address. An answer of neighbour discovery takes a second row.
        return self.family_count * (1 + hosts) + (1 if self.ipv6 else 0)

    def _dispatch_count(self, vertex: int) -> int:
        """The number of rows that forward packets, and of rows that drop forged source addresses.

        All these rows are in the dispatch table.
        """
        hosts, checks = len(self.hosts(vertex)), self.checks_sources(vertex)
        has_intermediates = self.build.forwarding.intermediates
        # The row of a host checks the source address, writes into metadata that the packet comes
        # from a host, or draws an intermediate. One row may do several of these.
        needs_row_for_each_host = (
            has_intermediates or checks or (self.separates_hosts and self.profiles[vertex].masks)
        )
        rows = 1  # for packets to the gateway
        if self.marks:
            rows += 1  # for marked packets
        if needs_row_for_each_host:
            rows += hosts
        if has_intermediates:
            to_any_intermediate, to_same_switch = 1, hosts if checks else int(hosts > 0)
            rows += to_any_intermediate + to_same_switch
        # At each host's port a single row, for both address families, drops the packets that no
        # other row takes: the host has forged the source address, a mark or an intermediate.
        guards = hosts if checks else 0
        return self.family_count * rows + guards

    def _class_count(self, vertex: int) -> int:
        """The number of rows of the table of classes, except those for intermediates."""
        rows_from_hosts = self._rows_from_hosts(vertex)
        to_groups = sum(
            int(groups.has_row.sum()) * (rows_from_hosts if groups.from_hosts else 1)
            for groups in self.groups(vertex)
        )
        return to_groups + len(self.spread_rows(vertex)) + len(self.shared_classes(vertex))

    def _carried_count(self) -> int:
        """The number of rows for packets that carry an intermediate."""
        forwarding = self.build.forwarding
        if not forwarding.intermediates:
            return 0
        port_down = 1 if forwarding.repairs else 0
        return len(intermediates(self.build)) + port_down

    def _single_table_count(self, vertex: int) -> int:
        """The number of rows for hosts and routes of a switch with one table."""
        rows_from_hosts = self._rows_from_hosts(vertex)
        routes = sum(
            self._route_count(vertex, groups) * (rows_from_hosts if groups.from_hosts else 1)
            for groups in self.groups(vertex)
        )
        return self.family_count * (len(self.hosts(vertex)) + routes)

    def _rows_from_hosts(self, vertex: int) -> int:
        """How many rows lead packets from hosts to a group.

        A row matches the port of one host. If metadata says that a packet comes from a host, one
        row with a mask matches the packets of all hosts.
        """
        profile = self.profiles[vertex]
        return 1 if profile.masks and not profile.single else len(self.hosts(vertex))

    def _route_count(self, vertex: int, groups: Groups) -> int:
        """The number of routes of a switch whose classes have a row that leads to their group."""
        return int(np.isin(self.routes(vertex)[1], groups.egress[groups.has_row]).sum())


def require(build: Build, target: str = "openflow") -> None:
    """Check that OpenFlow switches can do all that the build asks for.

    Args:
        build: the build.
        target: the name for messages, as several targets have this program.

    Raises:
        InputError: OpenFlow switches cannot; the error names every reason at once.
    """
    classes = build.tables.classes
    group_count = role_count(classes, build.forwarding.every_hop) * classes.port.shape[1]
    CAPABILITIES.require(build, target, group_count)
    require_numbers(build)
    without_marks = [profile for profile in profiles_of(build) if not profile.marks]
    if not without_marks:
        return
    if build.forwarding.every_hop:
        raise _beyond_profile(
            "transit",
            possible="minimal",
            profile=without_marks[0],
            value=EVERY_HOP,
            todo="remove it",
        )
    if build.forwarding.marks or build.forwarding.intermediates:
        raise _beyond_profile(
            "balance",
            possible="another balance",
            profile=without_marks[0],
            value=build.balance,
            todo="write compact-valiant",
        )


def _beyond_profile(key: str, possible: str, profile: Profile, value: str, todo: str) -> InputError:
    """The error of a policy that switches of a profile cannot have, as it needs marks.

    Args:
        key: the key of the policy.
        possible: the value that such switches can have.
        profile: the profile.
        value: the value that the build has.
        todo: what to do about the policy.
    """
    return InputError.of(
        key=f"routing.{key}",
        required=f"{possible} with profile {profile.name}, which has no "
        f"{' or '.join(profile.missing_for_marks)}",
        given=value,
        todo=f"{todo}, or openflow: {{profile: openflow13-ovs}} in the node type",
    )
