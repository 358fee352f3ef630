"""The linux target: files for `ip -batch`, sysctl settings, a systemd unit (docs/targets/frr.md).

Each link is a nexthop object for IPv4 and IPv6 alike. An *egress class* (the ports that lead to a
prefix) that shares packets over several ports is a group of these objects. Table main has the order
in which a class tries its ports as routes of rising metric: when a link goes down, the kernel
removes its nexthop object with every route that uses it, and the next metric takes over.
`linux_tables` describes the tables for packets from single ports, and `kernel_marks` marked
packets. `render` asks `Linux` for the variables of the templates, `verify --emitted` for the reader
of the files.
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
    MULTIPATH,
    REPAIR,
    TRANSIT,
    UNEQUAL_SHARES,
)
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection
from compilers.targets.linux import neighbours, routing_tables
from compilers.targets.linux.device import LinuxDevice
from compilers.targets.linux.reader import read_linux
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.kernel_marks import (
    IPV4,
    IPV6,
    KernelMarks,
    hash_seed,
    kernel_marks,
    require_devices,
)
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import (
    ROUTE_PROTOCOL,
    LookupRule,
    discard_routes,
    kernel_tables,
    lookup_rules,
    marked_hops,
    orders_by_table,
    require_weights,
)
from compilers.targets.routed.route_rows import RoutePart, RouteRows, RouteTail
from compilers.targets.routed.static_routes import (
    ALL_NEXT_HOPS,
    FIXED,
    BuildRouters,
    MultipathGroup,
    Numbers,
    StaticSwitch,
)
from compilers.targets.target import Target
from inventory.problems import InputError

LINK = 500_000
"""LINK + p is the number of the nexthop object of the link at port p."""
GROUP = 600_000
"""GROUP + k is the number of the nexthop group of egress class k, whose ports share packets."""
MARKED_LINK = 700_000
"""MARKED_LINK + p is the number of the nexthop object for packets that port p marks."""
ONWARD = 800_000
"""ONWARD + p is the number of the nexthop group that spreads marked packets from port p."""


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
    """The nexthop objects for marked packets, one for each link."""
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
        frozenset({MULTIPATH, UNEQUAL_SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, MARKS, TRANSIT})
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
        hosts_add_intermediates = chosen["intermediates"] == "hosts"
        if build.forwarding.intermediates and not hosts_add_intermediates:
            raise InputError.of(
                key="routing.balance",
                required=f"another balance, as target {self.name} cannot do {INTERMEDIATES} itself",
                given=build.balance,
                todo="add `set intermediates=hosts` where hosts write them, by target srv6; or "
                "choose target ovs",
            )
        features = self.capabilities.features
        if hosts_add_intermediates:
            features |= {INTERMEDIATES}
        replace(self.capabilities, features=features).require(build, self.name)
        require_weights(build, self.name)
        require_devices(build, self.name)

    def reader(self, chosen: Chosen) -> Reader:  # noqa: ARG002
        """See `Target.reader`."""
        return read_linux

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:  # noqa: ARG002
        """See `Target.routes_held`."""
        return partial(kernel_tables, BuildRouters.of(build), gateway={IPV4: "ipv6", IPV6: "ipv6"})

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], LinuxVariables]:  # noqa: ARG002
        """See `Target.variables`."""
        return partial(_variables, BuildRouters.of(build))


def _variables(routers: BuildRouters, vertex: int) -> LinuxVariables:
    """The variables of the switch at a vertex."""
    switch = routers.switch(vertex)
    orders = orders_by_table(routers, vertex, repeat_members=True)
    # `all_prefix_texts` has the prefixes of IPv4, and then as many of IPv6.
    first_prefixes = range(0, len(routers.all_prefix_texts.texts), len(routers.prefixes[0]))
    marks = kernel_marks(routers, vertex)
    marked = marked_hops(routers, vertex, switch.hops("ipv6"), "ipv6") if marks else {}
    return LinuxVariables(
        switch=switch,
        seed=hash_seed(routers.build, vertex),
        marks=marks,
        marked_hops=[MarkedHop(MARKED_LINK + port, *hop) for port, hop in marked.items()],
        onward_group=ONWARD,
        identity=routers.build.identity,
        protocol=ROUTE_PROTOCOL,
        link_nexthop=LINK,
        groups=[
            *(
                NexthopGroup(GROUP + group.egress, _members(group))
                for group in routers.multipath_groups(vertex)
            ),
            *(
                NexthopGroup(ONWARD + marked_port.port, _equal_members(marked_port.onward))
                for marked_port in (marks.ports if marks else ())
            ),
        ],
        routes=RouteRows.of(
            routers.all_prefix_texts, _routes(routers, vertex, orders, first_prefixes)
        ),
        discards=RouteRows.of(
            routers.all_prefix_texts, discard_routes(routers, vertex, orders, first_prefixes)
        ),
        rules=lookup_rules(switch, orders, marks),
        pools=routers.pools(),
    )


def _members(group: MultipathGroup) -> str:
    """The members of the nexthop group of an egress class that shares packets."""
    members = zip(group.ports, group.weights, group.marks, strict=True)
    return "/".join(
        f"{(MARKED_LINK if marks else LINK) + port},{weight}" for port, weight, marks in members
    )


def _equal_members(ports: Iterable[int]) -> str:
    """The members of a group that spreads packets equally over some ports."""
    return "/".join(f"{LINK + port},1" for port in ports)


def _routes(
    routers: BuildRouters,
    vertex: int,
    orders: Mapping[int, Numbers],
    first_prefixes: Iterable[int],
) -> Iterator[RoutePart]:
    """All routes of a switch, table by table and family by family, except those that discard.

    Behind its prefix a route has its nexthop object, metric and table.

    Args:
        routers: the routers of the build.
        vertex: of the switch.
        orders: the orders of egress classes, by table.
        first_prefixes: the number of the first prefix of each address family.
    """
    prefix, egress = routers.routes(vertex)
    for table, order in orders.items():
        # int[C, M]: for each egress class the nexthop objects that it tries, in order; 0 for none.
        # An order has a port (> 0), ALL_NEXT_HOPS for the group of the class, or 0 for no port.
        group = GROUP + np.arange(len(order))[:, None]
        is_group = order == ALL_NEXT_HOPS
        nexthop_of_class = np.where(order > 0, LINK + order, np.where(is_group, group, 0))
        nexthop = nexthop_of_class[egress]  # int[n, M]: the same for each of n routes
        row, place = np.nonzero(nexthop)
        objects, number = np.unique(nexthop[row, place], return_inverse=True)
        # Metric m stands for place m - 1 in the order. `tails` has the objects once for each
        # metric, so those of an earlier place stand before those of a later one.
        metrics = range(1, nexthop.shape[1] + 1)
        tails: list[RouteTail] = [
            (nexthop_object, metric, table)
            for metric in metrics
            for nexthop_object in objects.tolist()
        ]
        tail_of_row = place * len(objects) + number
        for first_prefix in first_prefixes:
            yield RoutePart(prefix[row] + first_prefix, tails, tail_of_row)
