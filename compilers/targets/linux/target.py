"""The linux target: files for `ip -batch`, sysctl settings, a systemd unit (docs/targets/frr.md).

Each link is a nexthop object for IPv4 and IPv6 alike; a class that shares packets from hosts is a
group of these. Table main has the order of ports as routes of rising metric: when a link goes down,
the kernel removes its nexthop object with every route that uses it, and the next metric takes over.
`linux_tables` describes the tables for packets from single ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from compilers.readers.devices.held_routes import RouteTables
from compilers.readers.emitted_check import Reader
from compilers.spec.features import (
    AGGREGATES,
    BOUNCES,
    INGRESS,
    INTERMEDIATES,
    MARKS,
    REPAIR,
    SHARES,
    TRANSIT,
    WEIGHTS,
)
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection
from compilers.targets.linux import neighbours, routing_tables
from compilers.targets.linux.device import LinuxDevice
from compilers.targets.linux.reader import read_linux
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.kernel_marks import (
    KernelMarks,
    hash_seed,
    kernel_marks,
    require_devices,
)
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import (
    PROTOCOL,
    LookupRule,
    discards,
    in_order,
    kernel_tables,
    marked_hops,
    require_weights,
    rules,
)
from compilers.targets.routed.route_rows import RoutePart, RouteRows, RouteTail
from compilers.targets.routed.static_routes import (
    FIXED,
    SHARED,
    IngressShare,
    Numbers,
    RoutedFabric,
    StaticSwitch,
)
from compilers.targets.target import Target
from inventory.problems import InputError

LINK, GROUP, MARKED_LINK, ONWARD = 500_000, 600_000, 700_000, 800_000
"""Nexthop objects: LINK + p is the link at port p, MARKED_LINK + p the same for marked packets,
GROUP + k the share of class k, ONWARD + p what spreads packets that came in marked on port p."""


@dataclass(frozen=True, slots=True)
class NexthopGroup:
    """A nexthop group."""

    id: int
    """Its number among the nexthop objects."""
    members: str
    """As iproute2 writes them: `ID,WEIGHT/ID,WEIGHT`."""


@dataclass(frozen=True, slots=True)
class MarkedHop:
    """A nexthop object for marked packets."""

    id: int
    """Its number among the nexthop objects."""
    address: str
    """The neighbour's address for marked packets."""
    interface: str
    """The interface of the link."""


@dataclass(frozen=True, slots=True)
class LinuxVariables:
    """The variables of a switch's templates."""

    switch: StaticSwitch
    """The links and hosts of the switch."""
    seed: int
    """The seed of the hash, 0 for any."""
    marks: KernelMarks | None
    """The configuration for marked packets; None where the balance marks none."""
    marked_hops: list[MarkedHop]
    onward_group: int
    """The number of the group that spreads marked packets from port 0. Port p has this plus p."""
    identity: str
    """The identity of the build."""
    protocol: int
    """The protocol number of polarfab's routes and rules."""
    link_nexthop: int
    """The number of the nexthop object of port 0. Port p has this number plus p."""
    groups: list[NexthopGroup]
    """The groups of classes that share packets, and those that spread marked packets."""
    routes: RouteRows
    """Prefix, nexthop, metric and table.

    All lines at once are `routes.lines("… {} … {} … {} …")`.
    """
    discards: RouteRows
    """Prefix and table of routes that discard."""
    rules: list[LookupRule]
    """The rules that say in which tables packets are looked up."""
    pools: list[str]
    """For each address family, the smallest network that contains all blocks of the fabric."""


class Linux(Target):
    """A Linux kernel that forwards."""

    name = "linux"
    summary = "batches for ip, sysctl.conf, a unit, and load.sh, which does it all"
    files = dict.fromkeys(
        (
            "addresses.batch",
            "links.batch",
            "load.sh",
            "polarfab.service",
            "routes.batch",
            "rules.batch",
            "sysctl.conf",
        ),
        LinuxVariables,
    )
    capabilities = Capabilities(
        frozenset({WEIGHTS, SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, MARKS, TRANSIT})
    )
    interfaces = LINUX
    unnumbered = MappingProxyType({"static": FIXED})
    only_unnumbered = frozenset({"static"})
    policy_rules = True
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = LinuxDevice
    ansible = AnsibleConnection("ssh", root=True)
    description = "{node}:{port}"
    options = MappingProxyType(
        {
            "intermediates": Option.choice(
                "Who sends packets over intermediates: nobody, or hosts with target srv6.",
                "none",
                "hosts",
            )
        }
    )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        by_hosts = chosen["intermediates"] == "hosts"
        if build.forwarding.intermediates and not by_hosts:
            raise InputError.of(
                key="routing.balance",
                required=f"another balance, as target {self.name} cannot do {INTERMEDIATES} itself",
                given=build.balance,
                todo="add `set intermediates=hosts` where hosts write them, by target srv6; or "
                "choose target ovs",
            )
        carried = frozenset({INTERMEDIATES} if by_hosts else ())
        able = replace(self.capabilities, features=self.capabilities.features | carried)
        able.require(build, self.name)
        require_weights(build, self.name)
        require_devices(build, self.name)

    def reader(self, chosen: Chosen) -> Reader:  # noqa: ARG002
        """See `Target.reader`."""
        return read_linux

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:  # noqa: ARG002
        """See `Target.routes_held`."""
        return partial(kernel_tables, RoutedFabric.of(build), gateway={4: "ipv6", 6: "ipv6"})

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], LinuxVariables]:  # noqa: ARG002
        """See `Target.variables`."""
        return partial(_variables, RoutedFabric.of(build))


def _variables(routed: RoutedFabric, vertex: int) -> LinuxVariables:
    """The variables of the switch at a vertex."""
    switch = routed.switch(vertex)
    orders = in_order(routed, vertex)
    firsts = range(0, len(routed.all_prefix_texts.texts), len(routed.prefixes[0]))
    marks = kernel_marks(routed, vertex)
    marked = marked_hops(routed, vertex, switch.hops("ipv6"), "ipv6") if marks else {}
    return LinuxVariables(
        switch=switch,
        seed=hash_seed(routed.build, vertex),
        marks=marks,
        marked_hops=[MarkedHop(MARKED_LINK + port, *hop) for port, hop in marked.items()],
        onward_group=ONWARD,
        identity=routed.build.identity,
        protocol=PROTOCOL,
        link_nexthop=LINK,
        groups=[
            *(
                NexthopGroup(GROUP + share.egress, _members(share))
                for share in routed.shares(vertex)
            ),
            *(
                NexthopGroup(ONWARD + marked_port.port, _equally(marked_port.onward))
                for marked_port in (marks.ports if marks else ())
            ),
        ],
        routes=RouteRows.of(routed.all_prefix_texts, _routes(routed, vertex, orders, firsts)),
        discards=RouteRows.of(routed.all_prefix_texts, discards(routed, vertex, orders, firsts)),
        rules=rules(switch, orders, marks),
        pools=routed.pools(),
    )


def _members(share: IngressShare) -> str:
    """The members of the group of a class."""
    members = zip(share.port, share.weight, share.marks, strict=True)
    return "/".join(
        f"{(MARKED_LINK if marks else LINK) + port},{weight}" for port, weight, marks in members
    )


def _equally(ports: Iterable[int]) -> str:
    """The members of a group that spreads packets over ports equally."""
    return "/".join(f"{LINK + port},1" for port in ports)


def _routes(
    routed: RoutedFabric, vertex: int, orders: Mapping[int, Numbers], firsts: Iterable[int]
) -> Iterator[RoutePart]:
    """Every route, table by table, in both families: its nexthop object, metric and table."""
    prefix, egress = routed.routes(vertex)
    for table, order in orders.items():
        group = GROUP + np.arange(len(order))[:, None]
        nexthop = np.select([order > 0, order == SHARED], [order + LINK, group], 0)[egress]
        row, place = np.nonzero(nexthop)
        objects, number = np.unique(nexthop[row, place], return_inverse=True)
        metrics = range(1, nexthop.shape[1] + 1)
        tails: list[RouteTail] = [
            (nexthop_object, metric, table)
            for metric in metrics
            for nexthop_object in objects.tolist()
        ]
        for first in firsts:
            yield prefix[row] + first, tails, place * len(objects) + number
