"""Routing tables and policy rules of Linux kernels, for the targets linux, frr and bird.

Table main has the order of ports for packets from anywhere. Classes that treat packets from one
port in another way are in a table for that port, which a rule `iif` has the kernel look up first;
where such a table has no route, main decides.
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
    THROW,
    Choices,
    RouteTables,
    comparable,
    shared,
)
from compilers.readers.devices.held_routes import MAIN as MAIN_TABLE
from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import KernelMarks, kernel_marks, marked_address
from compilers.targets.routed.route_rows import RoutePart
from compilers.targets.routed.static_routes import (
    DISCARDED,
    SHARED,
    Numbers,
    PortHops,
    RoutedFabric,
    StaticSwitch,
)
from inventory.problems import InputError

MAIN, ENTER = 254, 5000
"""Tables: for packets from anywhere, and from hosts; ENTER + p is for packets from port p."""
RULE, MARKED_RULE = 1000, 999
"""The preferences of policy rules, and of those for marked packets."""
PROTOCOL = 80
"""The protocol number of polarfab's routes and rules: others are never touched (rtnetlink(7))."""
LARGEST_WEIGHT = 256
"""The greatest weight in a nexthop group: iproute2, and kernels before 6.12, keep the weight less
one in a byte."""


@dataclass(frozen=True, slots=True)
class LookupRule:
    """A policy rule that has packets from an interface looked up in a table."""

    interface: str
    table: int
    preference: int = RULE


def in_order(routed: RoutedFabric, vertex: int, each: bool = True) -> dict[int, Numbers]:
    """What every class tries in order in each table: int64[C, M], as `RoutedFabric.orders`.

    Args:
        routed: the routers of the build.
        vertex: of the switch.
        each: whether next hops that share packets in transit follow one by one behind their group.
    """
    orders = routed.orders(vertex)
    tables = {ENTER + port if port else MAIN: order for port, order in orders.items()}
    shares = routed.sharing(vertex)
    if routed.build.forwarding.every_hop:
        main, members = tables[MAIN], routed.ingress(vertex)
        if not each:
            members = members[:, :0]
        tables[MAIN] = np.column_stack((main[:, :1], members, main[:, 1:]))
        tables[MAIN][shares, 0] = SHARED
    elif shares.size and routed.build.wiring.host_port[vertex].any():
        tables[ENTER] = np.zeros((len(orders[0]), 1), np.int64)
        tables[ENTER][shares] = SHARED
    return tables


def discards(
    routed: RoutedFabric, vertex: int, orders: Mapping[int, Numbers], firsts: Iterable[int] = (0,)
) -> Iterator[RoutePart]:
    """The routes that discard packets for which no port of the class is up, with their tables.

    Args:
        routed: the routers of the build.
        vertex: of the switch.
        orders: what classes try, by table.
        firsts: the number of each address family's first prefix.
    """
    prefix, egress = routed.routes(vertex)
    for table, order in orders.items():
        if (dropped := (order == DISCARDED).any(axis=1)).any():
            prefixes = prefix[dropped[egress]]
            for first in firsts:
                yield prefixes + first, [(table,)], np.zeros_like(prefixes)


def rules(
    switch: StaticSwitch, tables: Collection[int], marks: KernelMarks | None = None
) -> list[LookupRule]:
    """The policy rules of a switch.

    A device for marked packets has a rule to its own table, and then the rule of its port, for
    packets that the table has `throw` routes for.

    Args:
        switch: the switch.
        tables: the tables that it has.
        marks: its configuration for marked packets.
    """
    ports = [
        (switch.hosts, ENTER),
        *((link.interface, ENTER + link.port) for link in switch.links),
    ]
    marked = marks.ports if marks else ()
    return [
        *(LookupRule(port.device, port.table, MARKED_RULE) for port in marked),
        *(LookupRule(interface, table) for interface, table in ports if table in tables),
        *(LookupRule(p.device, ENTER + p.port) for p in marked if ENTER + p.port in tables),
    ]


def kernel_tables(
    routed: RoutedFabric, vertex: int, gateway: Mapping[int, str], batches: bool = True
) -> RouteTables:
    """The routes and rules that the kernel of a switch holds.

    Args:
        routed: the routers of the build.
        vertex: of the switch.
        gateway: by address family, 4 and 6, the field of a link with the neighbour's address, or
            ANY where that is not known.
        batches: whether `ip -batch` loads them. A routing daemon has no `throw` routes, and does
            not repeat the members of a group behind the group.
    """
    switch, marks = routed.switch(vertex), kernel_marks(routed, vertex)
    orders = in_order(routed, vertex, each=batches)
    widest = int(routed.build.wiring.port[vertex].max(initial=0))
    tables: RouteTables = {str(ENTER + port): {} for port in range(widest + 1)}
    tables[MAIN_TABLE] = {}
    for family, pool in enumerate(routed.pools()):
        field = gateway[(4, 6)[family]]
        if field == ANY:
            hops: PortHops = {link.port: (ANY, link.interface) for link in switch.links}
        else:
            hops = switch.hops(field)
        marked = marked_hops(routed, vertex, hops, field) if marks else {}
        for table, order in orders.items():
            of_table = tables[MAIN_TABLE if table == MAIN else str(table)]
            of_table |= comparable(routed.table(vertex, family, order, hops, marked))
        for port in marks.ports if marks else ():
            onward = shared(tuple((*hops[p], 1) for p in port.onward))
            tables.setdefault(str(port.table), {})[pool] = (onward,)
            kept = marks.kept if marks and batches else ()
            tables[str(port.table)] |= dict.fromkeys(kept, (THROW,))
        tables[MAIN_TABLE][pool] = (*tables[MAIN_TABLE].get(pool, ()), DISCARD)
    rule_table: dict[str, Choices] = {}
    for rule in rules(switch, orders, marks):
        lookup = ((f"table {rule.table}", "", 1),)
        interface = f"iif {rule.interface}"
        rule_table[interface] = (*rule_table.get(interface, ()), lookup)
    return tables | {IPV4_RULES: rule_table, IPV6_RULES: rule_table}


def marked_hops(routed: RoutedFabric, vertex: int, hops: PortHops, gateway: str) -> PortHops:
    """Next hops with the neighbours' addresses for marked packets.

    Args:
        routed: the routers of the build.
        vertex: of the switch.
        hops: the next hop at every port.
        gateway: `ipv4` or `ipv6`, the field of a link with the neighbour's address.
    """
    family = 4 if gateway == "ipv4" else 6
    ends = routed.build.wiring.ends(vertex)
    return {port: (marked_address(far, family), hops[port][1]) for port, far, _ in ends}


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
