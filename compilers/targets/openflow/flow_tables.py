"""The OpenFlow pipeline: which tables, priorities and cookies, and which rows a switch has.

docs/targets/openflow.md explains the pipeline row by row.
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
    REPAIR,
    SHARES,
    TRANSIT,
    WEIGHTS,
)
from compilers.spec.policy import EVERY_HOP
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.openflow.carried_rows import require_numbers
from compilers.targets.openflow.class_groups import Groups, groups_of_switch, roles
from compilers.targets.openflow.profiles import Profile, profiles_of
from compilers.wiring.addressing import MARK_IN_MAC
from inventory.problems import InputError

GENERATIONS = 2
"""A program comes in two generations of class and group numbers, so that two builds can be in
one switch side by side while it moves from one to the other (docs/how-to/move.md)."""
GROUP_SPACE = 1024
"""Groups of one generation: 1 to 1,024 are those of generation 0, the next as many of 1."""
OUR_GROUPS = GENERATIONS * GROUP_SPACE
"""Groups 1 to 2,048 of a switch are ours; the controller deletes those that a build has not."""

CAPABILITIES = Capabilities(
    features=IN_PACKETS
    | frozenset({WEIGHTS, SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT}),
    groups=GROUP_SPACE,
)
CLASS_MASK, INGRESS_BIT = 0xFFFF, 0x10000
"""The bits of metadata that carry the egress class, and the one that says: came from a host."""
GENERATION_BIT = 0x8000
"""Set in the metadata of the classes of generation 1; a switch has fewer classes than that."""

DIRECT_BIT, MARKED_BIT = 0x4000, 0x20000
"""Where packets are marked: set in the numbers of classes to a neighbour itself, and in the
metadata of packets that came with a mark."""
SPREAD_MASK = MARKED_BIT | GENERATION_BIT | DIRECT_BIT
"""Of metadata: packets that came with a mark, and go to no neighbour, of a generation."""
MOST_BASIS = 0xFFFF
"""The basis of a hash has 16 bits: the switch's number, as neighbours must not deal alike."""
NEVER_DIRECT = 1 << 16
"""Beyond all classes: none is marked as a neighbour's."""

ND_ANSWER_FLAGS = 0xE0000000
"""Router, solicited, override (RFC 4861, §4.4)."""


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
    """Those to a host of the same switch, which get no intermediate."""
    ANSWER = 5
    """Questions that the switch answers."""
    OWN = 6
    """Questions for the host's own address, and LLDP."""


class ClassPriority(IntEnum):
    """Priorities in the class table."""

    ANY = 1
    """Packets from any port."""
    SOME = 2
    """Packets from one port, or from hosts."""
    MARKED = 3
    """Packets that came with a mark."""
    NO_WAY = 4
    """Packets whose intermediate is a neighbour behind a port that is down."""


class RowKind(IntEnum):
    """Kinds of rows and messages: the lower 48 bits of a cookie, the upper 8 of a message's xid."""

    OWN = 1
    ANSWER = 2
    FORWARD = 3
    ROUTE = 4
    HOST = 5
    CLASS = 6
    MARKER = 7
    GROUP = 8
    CLEAR = 9
    OPEN = 10
    BARRIER = 11
    COMMIT = 12
    DISCOVERY = 13
    SPREAD = 14
    CARRIED = 15
    GUARD = 16


COOKIE_SHIFT = 48
"""The lower 48 bits of a cookie tell the kind of the row, or the build of a marker."""
COOKIE = 0x5046 << COOKIE_SHIFT
"""The upper 16 bits of the cookie of a row: "PF"."""
MARKERS = 0x5047 << COOKIE_SHIFT, 0x5045 << COOKIE_SHIFT
"""The upper 16 bits of the marker's cookie, by generation."""
OURS, COOKIE_MASK = 0x5044 << COOKIE_SHIFT, 0xFFFC << COOKIE_SHIFT
"""What all cookies of polarfab are under the mask."""


def cookie(kind: RowKind) -> int:
    """The cookie of a row."""
    return COOKIE | kind


def class_numbers(
    egress: NDArray[np.integer], generation: int, direct: int = NEVER_DIRECT
) -> NDArray[np.int64]:
    """What routes write into metadata for these classes, int64[n].

    Args:
        egress: int[n], the classes.
        generation: 0 or 1.
        direct: the first of `direct` classes that lead to a neighbour itself, and get `DIRECT_BIT`.
    """
    number = egress.astype(np.int64)
    is_direct = (number >= direct) & (number < 2 * direct)
    number[is_direct] |= DIRECT_BIT
    return number | (GENERATION_BIT if generation else 0)


def class_metadata(
    egress: NDArray[np.int64], entering: bool, generation: int = 0, direct: int = NEVER_DIRECT
) -> tuple[NDArray[np.int64], int]:
    """The metadata of packets of these classes, int64[n], and the mask under which it is that.

    Args:
        egress: int64[n], the classes.
        entering: whether only packets from hosts are meant, and not those from any port.
        generation: see `class_numbers`.
        direct: see `class_numbers`.
    """
    number = class_numbers(egress, generation, direct)
    if entering:
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
    """The generation that a marker's cookie tells; 0 without a marker."""
    return int(marker is not None and marker >> COOKIE_SHIFT == MARKERS[1] >> COOKIE_SHIFT)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadRow:
    """A row that spreads marked packets over the links that lead on."""

    in_port: int
    """The ingress port of the packets."""
    metadata: int
    """The metadata of the packets, under `SPREAD_MASK`."""
    ports: NDArray[np.uint16]
    """The ports that share the packets."""


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
        """Whether hosts' packets are marked for the next switch, which spreads them."""
        return self.build.forwarding.marks

    @property
    def whole(self) -> bool:
        """Whether the build needs switches that can do all that Open vSwitch can."""
        return self.marks or self.build.forwarding.intermediates or self.build.forwarding.every_hop

    def route_metadata(self, egress: NDArray[np.integer], generation: int = 0) -> NDArray[np.int64]:
        """int64[n]: what routes write into metadata for these classes, under `CLASS_MASK`."""
        return class_numbers(egress, generation, self.direct)

    @property
    def direct(self) -> int:
        """The first class of a switch that leads to a neighbour itself, where that is marked."""
        return self.build.wiring.port.shape[1] if self.marks else NEVER_DIRECT

    @property
    def marked_mac(self) -> int:
        """The MAC address that marked packets are sent to, 0 where none is marked."""
        return self.build.addressing.gateway_mac ^ MARK_IN_MAC if self.marks else 0

    def spread(self, vertex: int, generation: int = 0) -> list[SpreadRow]:
        """The rows of a switch that spread marked packets, by the fabric ports they come in on."""
        wiring = self.build.wiring
        if not self.marks:
            return []
        onward = onward_ports(wiring, vertex)
        metadata = MARKED_BIT | GENERATION_BIT * generation
        return [
            SpreadRow(int(wiring.port[vertex, k]), metadata, onward[k][onward[k] > 0])
            for k in np.flatnonzero(wiring.far[vertex] >= 0).tolist()
        ]

    def shared(self, vertex: int) -> list[tuple[int, NDArray[np.integer]]]:
        """The classes whose next hops share packets from hosts and switches, with the ports."""
        if not self.build.forwarding.every_hop:
            return []
        classes = self.build.tables.classes
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ports = np.where(classes.weight[vertex] > 0, ports, 0)
        several = np.flatnonzero((ports > 0).sum(axis=1) > 1).tolist()
        return [(number, ports[number][ports[number] > 0]) for number in several]

    def checks(self, vertex: int) -> bool:
        """Whether a switch takes packets from a host only with the host's own source address.

        A switch with one table does not, as that would take a row for each host and prefix.
        """
        return self.build.addressing.source_checks and not self.profiles[vertex].single

    @property
    def entering(self) -> bool:
        """Whether packets from hosts are distinguished from those in transit."""
        return (
            bool(self.build.tables.classes.alternate.shape[2])
            and not self.build.forwarding.every_hop
        )

    def rows(self, vertex: int) -> int:
        """The number of flows in the program of a switch."""
        profile, families = self.profiles[vertex], 1 + self.ipv6
        hosts, routes = len(self.hosts(vertex)), len(self.routes(vertex)[0])
        answers = hosts * hosts
        if profile.answers_by_moves:
            answers = families * (1 + hosts) + self.ipv6
        # Rows that lead to a group: for packets from hosts one for each port of a host, unless a
        # mask covers these ports.
        rows_from_hosts = 1 if profile.masks and not profile.single else hosts
        groups = [(g, rows_from_hosts if g.entering else 1) for g in self.groups(vertex)]
        if profile.single:
            route_rows = sum(self._routed(vertex, group) * rows for group, rows in groups)
            return 1 + answers + families * (hosts + route_rows)
        classes = sum(int(group.has_row.sum()) * rows for group, rows in groups)
        checks, draws = self.checks(vertex), self.build.forwarding.intermediates
        admitted = draws or checks or (self.entering and profile.masks)
        dispatch = 1 + hosts * admitted
        marked = families * self.marks + len(self.spread(vertex)) + len(self.shared(vertex))
        if draws:
            dispatch += 1 + (hosts if checks else hosts > 0)
            marked += len(intermediates(self.build)) + self.build.forwarding.repairs
        guards = hosts * checks
        return 1 + answers + families * (dispatch + routes + hosts) + guards + classes + marked

    def _routed(self, vertex: int, groups: Groups) -> int:
        """The number of routes of a switch to the classes of those groups to which a row leads."""
        return int(np.isin(self.routes(vertex)[1], groups.classes[groups.has_row]).sum())


def require(build: Build, target: str = "openflow") -> None:
    """Pass when the target, or another with the same program, can do all that the build asks for.

    Raises:
        InputError: it cannot; every reason at once.
    """
    classes = build.tables.classes
    needed = roles(classes, build.forwarding.every_hop) * classes.port.shape[1]
    CAPABILITIES.require(build, target, needed)
    require_numbers(build)
    limited = [profile.name for profile in profiles_of(build) if not profile.marks]
    if not limited:
        return
    if build.forwarding.every_hop:
        raise _beyond_profile("transit", "minimal", limited[0], EVERY_HOP, "remove it")
    if build.forwarding.marks or build.forwarding.intermediates:
        todo = "write compact-valiant"
        raise _beyond_profile("balance", "another balance", limited[0], build.balance, todo)


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
    """How many flows and groups the switch has that has most."""

    emitted: int
    """As emitted, with groups for each class."""
    naive: int
    """With groups for each destination."""


def entries(build: Build) -> Entries:
    """Count what the program needs, against an emitter that serves each destination by itself.

    Such an emitter has no classes: each destination has groups of its own, and for each address
    family rows of its own that lead to them.
    """
    pipeline = Pipeline(build)
    counts = [_entries(pipeline, vertex) for vertex in _examples(build)]
    emitted, naive = max(c.emitted for c in counts), max(c.naive for c in counts)
    return Entries(emitted, naive)


def _entries(pipeline: Pipeline, vertex: int) -> Entries:
    """How many rows and groups one switch has."""
    build, families = pipeline.build, 1 + pipeline.ipv6
    group_count, row_count = np.zeros((2, build.tables.classes.port.shape[1]), np.int64)
    for group in pipeline.groups(vertex):
        group_count[group.classes] += group.is_new
        row_count[group.classes] += group.has_row
    prefix, egress = pipeline.routes(vertex)
    behind = np.where(prefix < build.tables.switches, 1, build.addressing.hierarchy)
    emitted = pipeline.rows(vertex) + int(group_count.sum())
    shared = families * len(prefix) + group_count.sum() + row_count.sum()
    for_destination = (group_count + families * row_count)[egress]
    return Entries(emitted, int(emitted - shared + (behind * for_destination).sum()))


def _examples(build: Build) -> NDArray[np.intp]:
    """A switch for each combination of how many routes, hosts, classes and ports these have."""
    classes = build.tables.classes
    shape = (
        build.tables.routes.rows(),
        np.count_nonzero(build.wiring.host_port, axis=1),
        np.count_nonzero(classes.port, axis=1),
        np.count_nonzero(classes.protection, axis=(1, 2)),
        np.count_nonzero(classes.bounce, axis=(1, 2)),
    )
    return np.unique(np.stack(shape), axis=1, return_index=True)[1]
