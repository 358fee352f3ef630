"""Routing tables and policy rules of Linux kernels, for the targets linux, frr and bird.

An *egress class* is the set of ports that lead to a prefix. Its *order* is the failover order: the
ports that the kernel tries one after the other (`static_routes`).

Table main has the orders for packets from any port. Classes that treat packets from one port in
another way are in a table for that port, which a policy rule `iif` has the kernel look up first;
where such a table has no route, main decides. Packets from hosts, which some balances share over
several ports, have a table as well, and so have marked packets (`kernel_marks`).

The targets ask for the orders and rules to print. `check routes` asks `kernel_tables` what the
kernel of a switch has to hold. A *family* is the index of an address family,
`IPV4_FAMILY` or `IPV6_FAMILY`; an *IP version* is 4 or 6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    MAIN_TABLE,
    THROW,
    Choices,
    RouteTables,
    canonical_hops,
    canonical_table,
)
from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import (
    IPV4,
    IPV6,
    KernelMarks,
    kernel_marks,
    marked_address,
)
from compilers.targets.routed.route_rows import RoutePart
from compilers.targets.routed.static_routes import (
    ALL_NEXT_HOPS,
    DISCARDED,
    BuildRouters,
    Numbers,
    PortHops,
    StaticSwitch,
)
from inventory.problems import InputError

KERNEL_MAIN = 254
"""The number of the kernel's main table, for packets from any port."""
INGRESS_TABLES = 5000
"""INGRESS_TABLES + p is the number of the table for packets that come in on port p, from 1."""
HOSTS_TABLE = INGRESS_TABLES
"""The number of the table for packets from hosts, whatever their port."""
RULE_PREFERENCE = 1000
"""The preference of policy rules: rules with a smaller preference are tried first."""
MARKED_RULE_PREFERENCE = 999
"""The preference of policy rules for marked packets, which go before other rules."""
IP_VERSIONS = (IPV4, IPV6)
"""The IP version of each address family, 0 and 1."""
ROUTE_PROTOCOL = 80
"""The protocol number of polarfab's routes and rules: others are never touched (rtnetlink(7))."""
LARGEST_WEIGHT = 256
"""The greatest weight in a nexthop group: iproute2, and kernels before 6.12, keep the weight less
one in a byte."""


@dataclass(frozen=True, slots=True)
class LookupRule:
    """A policy rule that has packets from an interface looked up in a table."""

    interface: str
    """The interface on which the packets come in."""
    table: int
    """The number of the table."""
    preference: int = RULE_PREFERENCE
    """The rule with the smallest preference is tried first."""


def orders_by_table(
    routers: BuildRouters, vertex: int, *, repeat_members: bool
) -> dict[int, Numbers]:
    """The order of every egress class in each table: int64[C, M], as in `BuildRouters.orders`.

    Args:
        routers: the routers of the build.
        vertex: the vertex of the switch.
        repeat_members: whether the members of the multipath group for packets in transit are
            listed again, singly, after the group, for when the kernel has removed the whole group.
    """
    orders = routers.orders(vertex)
    tables = {  # the order of port 0 is for packets from any port
        INGRESS_TABLES + port if port else KERNEL_MAIN: order for port, order in orders.items()
    }
    multipath_classes = routers.multipath_classes(vertex)
    if routers.build.forwarding.every_hop:
        # The first column of an order is the minimal port, which ALL_NEXT_HOPS replaces.
        minimal, protection = tables[KERNEL_MAIN][:, :1], tables[KERNEL_MAIN][:, 1:]
        members = [routers.transit_multipath_ports(vertex)] if repeat_members else []
        tables[KERNEL_MAIN] = np.column_stack((minimal, *members, protection))
        tables[KERNEL_MAIN][multipath_classes, 0] = ALL_NEXT_HOPS
    elif multipath_classes.size and routers.build.wiring.host_port[vertex].any():
        # Packets from hosts to prefixes of other classes have no route here, and main decides.
        tables[HOSTS_TABLE] = np.zeros((len(orders[0]), 1), np.int64)
        tables[HOSTS_TABLE][multipath_classes] = ALL_NEXT_HOPS
    return tables


def discard_routes(
    routers: BuildRouters,
    vertex: int,
    orders: Mapping[int, Numbers],
    first_prefixes: Iterable[int] = (0,),
) -> Iterator[RoutePart]:
    """The routes that discard packets for which no port of the class is up, with their tables.

    Args:
        routers: the routers of the build.
        vertex: the vertex of the switch.
        orders: the orders of classes, by table.
        first_prefixes: the number of the first prefix of each address family.

    Yields:
        The routes of each table and address family. In a line of such a route, only the number of
        the table follows the prefix.
    """
    prefix, egress = routers.routes(vertex)
    for table, order in orders.items():
        has_discard = (order == DISCARDED).any(axis=1)  # bool[C]
        if has_discard.any():
            discarded_prefixes = prefix[has_discard[egress]]
            first_tail = np.zeros_like(discarded_prefixes)  # all have the only tail
            for first_prefix in first_prefixes:
                yield RoutePart(discarded_prefixes + first_prefix, [(table,)], first_tail)


def lookup_rules(
    switch: StaticSwitch, tables: Collection[int], marks: KernelMarks | None = None
) -> list[LookupRule]:
    """The policy rules of a switch.

    A device for marked packets has a rule to its own table, and then a rule like that of its port,
    for packets to which the table has `throw` routes.

    Args:
        switch: the switch.
        tables: the numbers of its tables.
        marks: its configuration for marked packets; None: it marks none.
    """
    ports = [
        (switch.hosts, HOSTS_TABLE),
        *((link.interface, INGRESS_TABLES + link.port) for link in switch.links),
    ]
    marked = marks.ports if marks else ()
    marked_port_tables = [(port.device, INGRESS_TABLES + port.port) for port in marked]
    return [
        *(LookupRule(port.device, port.table, MARKED_RULE_PREFERENCE) for port in marked),
        *(LookupRule(interface, table) for interface, table in ports if table in tables),
        *(LookupRule(device, table) for device, table in marked_port_tables if table in tables),
    ]


def kernel_tables(
    routers: BuildRouters, vertex: int, gateway_fields: Mapping[int, str], by_batch: bool = True
) -> RouteTables:
    """The routes and rules that the kernel of a switch holds.

    Args:
        routers: the routers of the build.
        vertex: the vertex of the switch.
        gateway_fields: by IP version, the field of a link with the neighbour's address, `ipv4` or
            `ipv6`; ANY where the address is not known.
        by_batch: whether `ip -batch` loads the routes. A routing daemon installs no `throw` routes,
            and does not repeat the members of a group behind the group.
    """
    switch, marks = routers.switch(vertex), kernel_marks(routers, vertex)
    orders = orders_by_table(routers, vertex, repeat_members=by_batch)
    # Every table that a rule may name is compared, also those without routes.
    last_port = int(routers.build.wiring.port[vertex].max(initial=0))
    port_tables = range(INGRESS_TABLES + 1, INGRESS_TABLES + last_port + 1)
    tables: RouteTables = {str(table): {} for table in (HOSTS_TABLE, *port_tables)}
    tables[MAIN_TABLE] = {}
    for family, pool in enumerate(routers.pools()):
        field = gateway_fields[IP_VERSIONS[family]]
        if field == ANY:
            hops: PortHops = {link.port: (ANY, link.interface) for link in switch.links}
        else:
            hops = switch.hops(field)
        hops_for_marked = marked_hops(routers, vertex, hops, field) if marks else {}
        for table, order in orders.items():
            routes = tables[MAIN_TABLE if table == KERNEL_MAIN else str(table)]
            routes |= canonical_table(routers.table(vertex, family, order, hops, hops_for_marked))
        if marks:
            _add_spreading_routes(tables, marks, pool, hops, has_throws=by_batch)
        # What no route above took is discarded, and does not follow a default route.
        tables[MAIN_TABLE][pool] = (*tables[MAIN_TABLE].get(pool, ()), DISCARD)
    rules = rules_as_routes(lookup_rules(switch, orders, marks))
    return tables | {IPV4_RULES: rules, IPV6_RULES: rules}


def _add_spreading_routes(
    tables: RouteTables, marks: KernelMarks, pool: str, hops: PortHops, *, has_throws: bool
) -> None:
    """Add the routes of one address family to the tables of marked packets.

    Args:
        tables: gets the routes.
        marks: the configuration for marked packets.
        pool: the smallest network that contains all blocks of the fabric.
        hops: the next hop at every port.
        has_throws: whether the tables have `throw` routes.
    """
    for port in marks.ports:
        routes = tables.setdefault(str(port.table), {})
        routes[pool] = (canonical_hops(tuple((*hops[onward], 1) for onward in port.onward)),)
        if has_throws:
            routes |= dict.fromkeys(marks.kept, (THROW,))


def rules_as_routes(rules: Iterable[LookupRule]) -> dict[str, Choices]:
    """Policy rules in the form of routes, so that they are compared with a device as routes are.

    In the place of a prefix is an interface, and each choice is a table to look up, in order.
    """
    tables_of: dict[str, Choices] = {}
    for rule in rules:
        table = ((f"table {rule.table}", "", 1),)
        interface = f"iif {rule.interface}"
        tables_of[interface] = (*tables_of.get(interface, ()), table)
    return tables_of


def marked_hops(routers: BuildRouters, vertex: int, hops: PortHops, gateway_field: str) -> PortHops:
    """The next hop at every port for marked packets: the neighbour's address for these.

    Args:
        routers: the routers of the build.
        vertex: the vertex of the switch.
        hops: the next hop at every port.
        gateway_field: `ipv4` or `ipv6`, the field of a link with the neighbour's address.
    """
    ip_version = IPV4 if gateway_field == "ipv4" else IPV6
    marked = {}
    for port, far, _ in routers.build.wiring.links_of(vertex):
        _, interface = hops[port]
        marked[port] = marked_address(far, ip_version), interface
    return marked


def require_weights(build: Build, target: str) -> None:
    """Check that a kernel can hold the weights of the build.

    Raises:
        InputError: a weight is too great.
    """
    heaviest = int(build.tables.classes.weight.max(initial=0))
    if heaviest > LARGEST_WEIGHT:
        raise InputError.of(
            key="routing.minimal_share",
            required=f"a share whose weights are at most {LARGEST_WEIGHT} for target {target}",
            given=f"one that makes a weight of {heaviest:,}",
            todo="choose a share nearer to those of the alternates",
        )
