"""The OpenFlow pipeline: its tables, priorities, cookies and metadata, and the rows of each switch.

The *program* of a switch is all its flows and groups; a *row* is a flow. The dispatch table takes
packets to the gateway, the MAC address that hosts send to. The table of routes writes the egress
class of the destination into metadata; an egress class is a forwarding equivalence class with its
next hops. The table of classes leads the packet to a group of the class (`class_groups`).

Some balances, that is load-balancing rules, *mark* packets of hosts in the MAC address, for the
next switch to *spread* them over its other links. Others let a packet carry an *intermediate*
switch there, to which it goes first (Valiant's routing).

`Pipeline` says which rows and groups a switch has, as numbers; `Encoder` makes messages of them for
the controller and for the files that targets write. docs/targets/openflow.md explains the pipeline
row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

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
from compilers.targets.openflow.profiles import Profile, profiles_of
from compilers.wiring.addressing import MARK_IN_MAC
from inventory.problems import InputError

GENERATIONS = 2
"""A program comes in two generations of class and group numbers, so that two builds can be in
one switch side by side while it moves from one to the other (docs/how-to/move.md)."""
GROUP_SPACE = 1024
"""The group numbers of a generation: generation 0 has 1 to 1,024, generation 1 has 1,025 to 2,048.
"""
OUR_GROUPS = GENERATIONS * GROUP_SPACE
"""Groups 1 to 2,048 of a switch are polarfab's; the controller deletes those that are not of the
build."""

CAPABILITIES = Capabilities(
    features=IN_PACKETS
    | frozenset({MULTIPATH, UNEQUAL_SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT}),
    groups=GROUP_SPACE,
)
"""What OpenFlow tables can do of a build."""
CLASS_MASK, INGRESS_BIT = 0xFFFF, 0x10000
"""The bits of metadata for the egress class, and the bit of packets that came from a host."""
GENERATION_BIT = 0x8000
"""Set in the metadata of the classes of generation 1; a switch has fewer classes than that."""

DIRECT_BIT = 0x4000
"""Set in the metadata of *direct* classes, which lead to a neighbour itself, where a balance marks
packets."""
MARKED_BIT = 0x20000
"""Set in the metadata of packets that came with a mark."""
SPREAD_MASK = MARKED_BIT | GENERATION_BIT | DIRECT_BIT
"""The bits of metadata that select the packets to spread over other links: those of a generation
that came with a mark, and whose class is not direct."""
MOST_BASIS = 0xFFFF
"""The largest seed (basis) of a hash. The number of the switch is the seed, so that neighbours hash
differently."""
NEVER_DIRECT = 1 << 16
"""In place of the number of the first direct class: no class is direct, as all numbers are smaller.
"""

ND_ANSWER_FLAGS = 0xE0000000
"""The flags of a neighbour advertisement: router, solicited, override (RFC 4861, §4.4)."""


class Table(IntEnum):
    """The tables, in the order a packet passes them; ND rewrites the answer to a solicitation."""

    DISPATCH, ROUTES, CLASSES, ND = range(4)


class FlowPriority(IntEnum):
    """Priorities in the dispatch table; a route's priority is its prefix length."""

    MARKER = 0
    """Packets that no other row takes."""
    FORWARD = 1
    """Packets for the gateway, marked or not, from any port."""
    GUARD = 2
    """All other packets from a host's port, which are dropped."""
    ENTER = 3
    """Packets for the gateway from a host's port."""
    WITHIN = 4
    """Packets for the gateway to a host of the same switch, which get no intermediate."""
    ANSWER = 5
    """Requests of ARP and neighbour discovery that the switch answers."""
    OWN = 6
    """A host's requests for its own address, and LLDP."""


class ClassPriority(IntEnum):
    """Priorities in the class table."""

    ANY = 1
    """Packets of a class from any port."""
    SOME = 2
    """Packets of a class from one port, or from hosts."""
    MARKED = 3
    """Packets that came in with a mark."""
    NO_WAY = 4
    """Packets whose intermediate is a neighbour behind a port that is down."""


class RowKind(IntEnum):
    """What a message is about. A row has the kind of the message that adds it.

    The upper 8 bits of a message's xid are its kind, and so are the lower 48 bits of the cookie of
    a row.
    """

    OWN = 1
    """A host's request for its own address, which is dropped."""
    ANSWER = 2
    """An answer to ARP or neighbour discovery."""
    FORWARD = 3
    """Packets to the gateway, in the dispatch table."""
    ROUTE = 4
    """The route to a prefix."""
    HOST = 5
    """The route to a host of the switch."""
    CLASS = 6
    """An egress class, in the table of classes."""
    MARKER = 7
    """The marker of the build, a row whose cookie names the build."""
    GROUP = 8
    """A message that adds or changes a group."""
    CLEAR = 9
    """A message that deletes what a build does not have."""
    OPEN = 10
    """The message that opens a bundle."""
    BARRIER = 11
    """A barrier request."""
    COMMIT = 12
    """The message that commits a bundle."""
    DISCOVERY = 13
    """LLDP frames, which go to the controller."""
    SPREAD = 14
    """Marked packets, which are spread over other links."""
    CARRIED = 15
    """Packets that carry an intermediate switch in their MAC address."""
    GUARD = 16
    """All other packets from a host's port, which are dropped."""


COOKIE_SHIFT = 48
"""The lower 48 bits of a cookie tell the kind of the row, or the build of a marker."""
COOKIE = 0x5046 << COOKIE_SHIFT
"""The upper 16 bits of the cookie of a row: "PF"."""
MARKERS = 0x5047 << COOKIE_SHIFT, 0x5045 << COOKIE_SHIFT
"""The upper 16 bits of the marker's cookie, by generation."""
OURS, COOKIE_MASK = 0x5044 << COOKIE_SHIFT, 0xFFFC << COOKIE_SHIFT
"""The value that all cookies of polarfab have under the mask."""


def cookie(kind: RowKind) -> int:
    """The cookie of a row."""
    return COOKIE | kind


def class_numbers(
    egress: NDArray[np.integer], generation: int, first_direct: int = NEVER_DIRECT
) -> NDArray[np.int64]:
    """int64[n]: the metadata that routes write for these egress classes.

    Args:
        egress: int[n], the classes.
        generation: 0 or 1.
        first_direct: the number k of the first direct class. The direct classes have the numbers k
            to 2k - 1, k being the most links of a switch.
    """
    number = egress.astype(np.int64)
    is_direct = (number >= first_direct) & (number < 2 * first_direct)
    number[is_direct] |= DIRECT_BIT
    return number | (GENERATION_BIT if generation else 0)


def class_metadata(
    egress: NDArray[np.int64],
    from_hosts: bool,
    generation: int = 0,
    first_direct: int = NEVER_DIRECT,
) -> tuple[NDArray[np.int64], int]:
    """The metadata that packets of these egress classes have: int64[n], and its mask.

    Args:
        egress: int64[n], the classes.
        from_hosts: whether only packets from hosts match, not packets from any port.
        generation: 0 or 1.
        first_direct: the number of the first direct class (`class_numbers`).
    """
    number = class_numbers(egress, generation, first_direct)
    if from_hosts:
        return number | INGRESS_BIT, CLASS_MASK | INGRESS_BIT
    return number, CLASS_MASK


def marker_cookie(build: Build, generation: int = 0) -> int:
    """The cookie of the build's marker.

    It has 16 bits for the generation, and the first 48 of the 64 bits of the build's identity.

    Raises:
        ValueError: the build has not been saved, so it has no identity.
    """
    return MARKERS[generation] | int(build.identity, 16) >> 16


def generation_of(marker: int | None) -> int:
    """The generation in a marker's cookie; 0 if the switch has no marker."""
    return int(marker is not None and marker >> COOKIE_SHIFT == MARKERS[1] >> COOKIE_SHIFT)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadRow:
    """A row that spreads marked packets over the switch's other links (`onward_ports`)."""

    in_port: int
    """The ingress port of the packets."""
    metadata: int
    """The metadata of the packets, under `SPREAD_MASK`."""
    ports: NDArray[np.uint16]
    """The ports over which the packets are spread."""


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
        """Whether every switch needs the extensions of Open vSwitch."""
        return self.marks or self.build.forwarding.intermediates or self.build.forwarding.every_hop

    def route_metadata(self, egress: NDArray[np.integer], generation: int = 0) -> NDArray[np.int64]:
        """int64[n]: the metadata that routes write for these classes, under `CLASS_MASK`."""
        return class_numbers(egress, generation, self.first_direct)

    @property
    def first_direct(self) -> int:
        """The number of the first direct class; `NEVER_DIRECT` where no packets are marked."""
        return self.build.wiring.port.shape[1] if self.marks else NEVER_DIRECT

    @property
    def marked_mac(self) -> int:
        """The MAC address to which marked packets are sent; 0 where none is marked."""
        return self.build.addressing.gateway_mac ^ MARK_IN_MAC if self.marks else 0

    def spread(self, vertex: int, generation: int = 0) -> list[SpreadRow]:
        """The rows of a switch that spread marked packets, one for each port with a link."""
        wiring = self.build.wiring
        if not self.marks:
            return []
        avoided = self.build.tables.avoided
        onward = onward_ports(wiring, vertex, avoided)
        metadata = MARKED_BIT | (GENERATION_BIT if generation else 0)
        return [
            SpreadRow(int(wiring.port[vertex, k]), metadata, onward[k][onward[k] > 0])
            for k in np.flatnonzero(wiring.far[vertex] >= 0).tolist()
        ]

    def shared(self, vertex: int) -> list[tuple[int, NDArray[np.integer]]]:
        """The classes that balance all packets over several next hops, also those in transit.

        Returns:
            For each one its number, and int[n], the ports of its next hops.
        """
        if not self.build.forwarding.every_hop:
            return []
        classes = self.build.tables.classes
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ports = np.where(classes.weight[vertex] > 0, ports, 0)
        with_several = np.flatnonzero((ports > 0).sum(axis=1) > 1).tolist()
        return [(number, ports[number][ports[number] > 0]) for number in with_several]

    def checks(self, vertex: int) -> bool:
        """Whether a switch drops packets of a host with another source address than the host's.

        A switch with a single table does not: it would need a row for each host and prefix.
        """
        return self.build.addressing.source_checks and not self.profiles[vertex].single

    @property
    def separates_hosts(self) -> bool:
        """Whether packets from hosts have other groups than those in transit."""
        return (
            bool(self.build.tables.classes.alternate.shape[2])
            and not self.build.forwarding.every_hop
        )

    @property
    def families(self) -> int:
        """The number of address families."""
        return 2 if self.ipv6 else 1

    def rows(self, vertex: int) -> int:
        """The number of rows in the program of a switch, without the one for LLDP frames."""
        marker = 1
        if self.profiles[vertex].single:
            return marker + self._answer_count(vertex) + self._single_table_count(vertex)
        hosts, routes = len(self.hosts(vertex)), len(self.routes(vertex)[0])
        return (
            marker
            + self._answer_count(vertex)
            + self._dispatch_count(vertex)
            + self.families * (routes + hosts)
            + self._class_count(vertex)
            + self._carried_count()
        )

    def _answer_count(self, vertex: int) -> int:
        """The number of rows that answer ARP and neighbour discovery."""
        hosts = len(self.hosts(vertex))
        if not self.profiles[vertex].answers_by_moves:
            return hosts * hosts
        # For each family one row answers, and a row a host drops questions for its own address.
        # An answer of neighbour discovery takes a second row.
        return self.families * (1 + hosts) + (1 if self.ipv6 else 0)

    def _dispatch_count(self, vertex: int) -> int:
        """The number of rows of the dispatch table that forward packets, and that guard ports."""
        hosts, checks = len(self.hosts(vertex)), self.checks(vertex)
        has_intermediates = self.build.forwarding.intermediates
        rows = 1  # to the gateway
        if self.marks:
            rows += 1
        if has_intermediates or checks or (self.separates_hosts and self.profiles[vertex].masks):
            rows += hosts
        if has_intermediates:
            to_any_intermediate, to_same_switch = 1, hosts if checks else int(hosts > 0)
            rows += to_any_intermediate + to_same_switch
        guards = hosts if checks else 0
        return self.families * rows + guards

    def _class_count(self, vertex: int) -> int:
        """The number of rows of the table of classes, except those for intermediates."""
        rows_from_hosts = self._rows_from_hosts(vertex)
        to_groups = sum(
            int(groups.has_row.sum()) * (rows_from_hosts if groups.from_hosts else 1)
            for groups in self.groups(vertex)
        )
        return to_groups + len(self.spread(vertex)) + len(self.shared(vertex))

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
        return self.families * (len(self.hosts(vertex)) + routes)

    def _rows_from_hosts(self, vertex: int) -> int:
        """How many rows lead packets from hosts to a group.

        That is one for the port of each host, unless a mask of metadata covers all these ports.
        """
        profile = self.profiles[vertex]
        return 1 if profile.masks and not profile.single else len(self.hosts(vertex))

    def _route_count(self, vertex: int, groups: Groups) -> int:
        """The number of routes of a switch whose classes have a row that leads to their group."""
        return int(np.isin(self.routes(vertex)[1], groups.egress[groups.has_row]).sum())


def require(build: Build, target: str = "openflow") -> None:
    """Pass when OpenFlow switches can do all that the build asks for.

    Args:
        build: the build.
        target: the name for messages, as several targets have this program.

    Raises:
        InputError: they cannot; the error names every reason at once.
    """
    classes = build.tables.classes
    group_count = role_count(classes, build.forwarding.every_hop) * classes.port.shape[1]
    CAPABILITIES.require(build, target, group_count)
    require_numbers(build)
    without_marks = [profile.name for profile in profiles_of(build) if not profile.marks]
    if not without_marks:
        return
    if build.forwarding.every_hop:
        raise _beyond_profile("transit", "minimal", without_marks[0], EVERY_HOP, "remove it")
    if build.forwarding.marks or build.forwarding.intermediates:
        todo = "write compact-valiant"
        raise _beyond_profile("balance", "another balance", without_marks[0], build.balance, todo)


def _beyond_profile(key: str, possible: str, profile: str, given: str, todo: str) -> InputError:
    """The error of a policy that switches of a profile cannot have.

    Args:
        key: of the policy.
        possible: the value that such switches can have.
        profile: the name of the profile.
        given: the value of the build.
        todo: what to do about the policy.
    """
    return InputError.of(
        key=f"routing.{key}",
        required=f"{possible} with profile {profile}, which has no metadata masks, "
        "extensions or tables of their own",
        given=given,
        todo=f"{todo}, or openflow: {{profile: openflow13-ovs}} in the node type",
    )


@dataclass(frozen=True, slots=True)
class Entries:
    """How many entries, flows and groups together, a switch has."""

    emitted: int
    """The number in its program, which has groups for each egress class."""
    naive: int
    """The number that a program with groups for each destination would have."""


def entries(build: Build) -> Entries:
    """Count the entries of the fullest switch, with and without egress classes.

    Without classes each destination has groups of its own, and for each address family rows of its
    own that lead to them.
    """
    pipeline = Pipeline(build)
    counts = [_entries(pipeline, vertex) for vertex in _vertices_that_differ(build)]
    emitted, naive = max(c.emitted for c in counts), max(c.naive for c in counts)
    return Entries(emitted, naive)


def _entries(pipeline: Pipeline, vertex: int) -> Entries:
    """The entries of one switch."""
    build, families = pipeline.build, pipeline.families
    # int64[C] each: the groups of every egress class, and the rows that lead to them.
    group_count, row_count = np.zeros((2, build.tables.classes.port.shape[1]), np.int64)
    for group in pipeline.groups(vertex):
        group_count[group.egress] += group.is_new
        row_count[group.egress] += group.has_row
    prefix, egress = pipeline.routes(vertex)
    # A prefix is that of one switch, or an aggregate of several.
    destinations = np.where(prefix < build.tables.switches, 1, build.addressing.hierarchy)
    emitted = pipeline.rows(vertex) + int(group_count.sum())
    # Without classes, entries of each destination replace those of routes and classes.
    with_classes = families * len(prefix) + group_count.sum() + row_count.sum()
    per_destination = (group_count + families * row_count)[egress]
    without_classes = (destinations * per_destination).sum()
    return Entries(emitted, int(emitted - with_classes + without_classes))


def _vertices_that_differ(build: Build) -> NDArray[np.intp]:
    """A switch for each combination of numbers of routes, hosts, classes and ports.

    Switches with the same numbers have equally many entries.
    """
    classes = build.tables.classes
    numbers = (
        build.tables.routes.rows(),
        np.count_nonzero(build.wiring.host_port, axis=1),
        np.count_nonzero(classes.port, axis=1),
        np.count_nonzero(classes.protection, axis=(1, 2)),
        np.count_nonzero(classes.bounce, axis=(1, 2)),
    )
    return np.unique(np.stack(numbers), axis=1, return_index=True)[1]
