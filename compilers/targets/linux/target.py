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
    FIXED_LINK_LOCAL,
    BuildRouters,
    Numbers,
    StaticSwitch,
)
from compilers.targets.target import Target
from inventory.problems import InputError

LINK_OBJECTS = 500_000
"""LINK_OBJECTS + p is the number of the nexthop object of the link at port p."""
CLASS_GROUPS = 600_000
"""CLASS_GROUPS + k is the number of the nexthop group of egress class k, whose ports share
packets."""
MARKED_LINK_OBJECTS = 700_000
"""MARKED_LINK_OBJECTS + p is the number of the nexthop object for packets that port p marks."""
ONWARD_GROUPS = 800_000
"""ONWARD_GROUPS + p is the number of the nexthop group that spreads marked packets from port p."""
NO_OBJECT = 0
"""In the place of the number of a nexthop object: a class has no further one to try."""


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
    unnumbered = MappingProxyType({"static": FIXED_LINK_LOCAL})
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
        return partial(
            kernel_tables, BuildRouters.of(build), gateway_fields={IPV4: "ipv6", IPV6: "ipv6"}
        )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], LinuxVariables]:  # noqa: ARG002
        """See `Target.variables`."""
        return partial(_variables, BuildRouters.of(build))


def _variables(routers: BuildRouters, vertex: int) -> LinuxVariables:
    """The variables of the switch at a vertex."""
    switch = routers.switch(vertex)
    orders = orders_by_table(routers, vertex, repeat_members=True)
    # `all_prefix_texts` has the prefixes of IPv4, and then as many of IPv6.
    families = range(len(routers.prefixes))
    first_prefixes = [family * len(routers.prefixes[0]) for family in families]
    marks = kernel_marks(routers, vertex)
    marked = marked_hops(routers, vertex, switch.hops("ipv6"), "ipv6") if marks else {}
    return LinuxVariables(
        switch=switch,
        seed=hash_seed(routers.build, vertex),
        marks=marks,
        marked_hops=[
            MarkedHop(MARKED_LINK_OBJECTS + port, address, interface)
            for port, (address, interface) in marked.items()
        ],
        onward_group=ONWARD_GROUPS,
        identity=routers.build.identity,
        protocol=ROUTE_PROTOCOL,
        link_nexthop=LINK_OBJECTS,
        groups=[*_class_groups(routers, vertex), *_onward_groups(marks)],
        routes=RouteRows.of(
            routers.all_prefix_texts, _routes(routers, vertex, orders, first_prefixes)
        ),
        discards=RouteRows.of(
            routers.all_prefix_texts, discard_routes(routers, vertex, orders, first_prefixes)
        ),
        rules=lookup_rules(switch, orders, marks),
        pools=routers.pools(),
    )


def _class_groups(routers: BuildRouters, vertex: int) -> Iterator[NexthopGroup]:
    """The nexthop groups of the egress classes of a switch that share packets."""
    for group in routers.multipath_groups(vertex):
        members = [
            f"{(MARKED_LINK_OBJECTS if marks else LINK_OBJECTS) + port},{weight}"
            for port, weight, marks in zip(group.ports, group.weights, group.marks, strict=True)
        ]
        yield NexthopGroup(CLASS_GROUPS + group.egress, "/".join(members))


def _onward_groups(marks: KernelMarks | None) -> Iterator[NexthopGroup]:
    """The nexthop groups that spread marked packets, equally over the links onward."""
    for marked_port in marks.ports if marks else ():
        members = [f"{LINK_OBJECTS + port},1" for port in marked_port.onward]
        yield NexthopGroup(ONWARD_GROUPS + marked_port.port, "/".join(members))


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
    prefix, egress = routers.routes(vertex)  # int[n]: the prefix and the egress class of each route
    for table, order in orders.items():
        objects_of_route = _objects_of_classes(order)[egress]  # int[n, M]
        route, position = np.nonzero(objects_of_route != NO_OBJECT)
        objects, index = np.unique(objects_of_route[route, position], return_inverse=True)

        # All objects with metric 1, then all with metric 2, and so on. A route at position m - 1 of
        # the order has metric m. So metric m at the i-th of H objects is tail (m - 1) * H + i.
        metrics = range(1, order.shape[1] + 1)
        tails: list[RouteTail] = [
            (nexthop_object, metric, table)
            for metric in metrics
            for nexthop_object in objects.tolist()
        ]
        tail = position * len(objects) + index
        for first_prefix in first_prefixes:
            yield RoutePart(prefix[route] + first_prefix, tails, tail)


def _objects_of_classes(order: Numbers) -> Numbers:
    """int[C, M]: the numbers of the nexthop objects that each egress class tries; or NO_OBJECT.

    Args:
        order: int64[C, M], the ports that each class tries. ALL_NEXT_HOPS stands for the group of
            the class, and 0 for no port.
    """
    group_of_class = CLASS_GROUPS + np.arange(len(order))[:, None]
    return np.select(
        [order > 0, order == ALL_NEXT_HOPS],
        [LINK_OBJECTS + order, np.broadcast_to(group_of_class, order.shape)],
        NO_OBJECT,
    )
