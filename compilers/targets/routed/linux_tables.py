"""Routing tables by where a packet came in, for targets that are Linux kernels or feed one.

Table main holds the order of ports for packets from anywhere. What depends on where a packet came
in is in tables of its own, looked up before main by `ip rule iif`; where such a table has no
route, main decides.
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
"""Tables: for packets from anywhere, from hosts; ENTER + p: for those that came in on port p."""
RULE, MARKED_RULE = 1000, 999
"""The preference of our rules; of those for packets that come in marked."""
PROTOCOL = 80
"""Marks what is ours in the kernel, so that we never touch anything else (rtnetlink(7))."""
LARGEST_WEIGHT = 256
"""Of a member of a nexthop group: iproute2 and kernels before 6.12 hold the weight less one in a
byte."""


@dataclass(frozen=True, slots=True)
class LookupRule:
    """A rule that sends what comes in on an interface to a table."""

    interface: str
    table: int
    preference: int = RULE


def in_order(routed: RoutedFabric, vertex: int, each: bool = True) -> dict[int, Numbers]:
    """By table int64[C, M], what every class tries in order (`RoutedFabric.orders`).

    Args:
        routed: the routers of the build.
        vertex: which.
        each: where the next hops of a class are shared in transit, each of them follows by itself.
    """
    found = routed.orders(vertex)
    tables = {ENTER + port if port else MAIN: order for port, order in found.items()}
    shares = routed.sharing(vertex)
    if routed.build.forwarding.every_hop:
        main, ingress = tables[MAIN], routed.ingress(vertex)[:, : None if each else 0]
        tables[MAIN] = np.column_stack((main[:, :1], ingress, main[:, 1:]))
        tables[MAIN][shares, 0] = SHARED
    elif shares.size and routed.build.wiring.host_port[vertex].any():
        tables[ENTER] = np.zeros((len(found[0]), 1), np.int64)
        tables[ENTER][shares] = SHARED
    return tables


def discards(
    routed: RoutedFabric, vertex: int, orders: Mapping[int, Numbers], firsts: Iterable[int] = (0,)
) -> Iterator[RoutePart]:
    """Routes of packets that are dropped where no port is up: their prefixes and tables.

    Args:
        routed: the routers of the build.
        vertex: which.
        orders: what classes try, by table.
        firsts: the number of each address family's first prefix.
    """
    prefix, egress = routed.routes(vertex)
    for table, order in orders.items():
        if (dropped := (order == DISCARDED).any(axis=1)).any():
            these = prefix[dropped[egress]]
            yield from ((these + first, [(table,)], np.zeros_like(these)) for first in firsts)


def rules(
    switch: StaticSwitch, tables: Collection[int], marks: KernelMarks | None = None
) -> list[LookupRule]:
    """The rules for these tables, and those for marked packets before the others.

    What the table of a device throws on goes as others of its port do.
    """
    origins = [
        (switch.hosts, ENTER),
        *((link.interface, ENTER + link.port) for link in switch.links),
    ]
    devices = marks.ports if marks else ()
    return [
        *(LookupRule(each.device, each.table, MARKED_RULE) for each in devices),
        *(LookupRule(interface, table) for interface, table in origins if table in tables),
        *(LookupRule(d.device, ENTER + d.port) for d in devices if ENTER + d.port in tables),
    ]


def kernel_tables(
    routed: RoutedFabric, vertex: int, gateway: Mapping[int, str], batches: bool = True
) -> RouteTables:
    """The routes and rules of a switch that is a Linux kernel, or feeds one.

    Args:
        routed: the routers of the build.
        vertex: which.
        gateway: by address family, 4 and 6, the field of a link with the neighbour's address, or
            ANY where that is not known.
        batches: `ip -batch` loads all of it, so with what FRR has not: the prefixes that tables of
            marked packets throw on, and the next hops of a group each by itself behind it.
    """
    switch, marks = routed.switch(vertex), kernel_marks(routed, vertex)
    orders = in_order(routed, vertex, each=batches)
    widest = int(routed.build.wiring.port[vertex].max(initial=0))
    tables: RouteTables = {str(ENTER + port): {} for port in range(widest + 1)}
    tables[MAIN_TABLE] = {}
    for family, pool in enumerate(routed.pools()):
        field = gateway[(4, 6)[family]]
        known = {link.port: (ANY, link.interface) for link in switch.links}
        hops = known if field == ANY else switch.hops(field)
        marked = marked_hops(routed, vertex, hops, field) if marks else {}
        for table, order in orders.items():
            of_table = tables[MAIN_TABLE if table == MAIN else str(table)]
            of_table |= comparable(routed.table(vertex, family, order, hops, marked))
        for each in marks.ports if marks else ():
            onward = shared(tuple((*hops[p], 1) for p in each.onward))
            tables.setdefault(str(each.table), {})[pool] = (onward,)
            kept = marks.kept if marks and batches else ()
            tables[str(each.table)] |= dict.fromkeys(kept, (THROW,))
        tables[MAIN_TABLE][pool] = (*tables[MAIN_TABLE].get(pool, ()), DISCARD)
    led: dict[str, Choices] = {}
    for rule in rules(switch, orders, marks):
        chain = ((f"table {rule.table}", "", 1),)
        led[f"iif {rule.interface}"] = (*led.get(f"iif {rule.interface}", ()), chain)
    return tables | {IPV4_RULES: led, IPV6_RULES: led}


def marked_hops(routed: RoutedFabric, vertex: int, hops: PortHops, gateway: str) -> PortHops:
    """The same with the neighbours' addresses for marked packets."""
    family = 4 if gateway == "ipv4" else 6
    ends = routed.build.wiring.ends(vertex)
    return {port: (marked_address(far, family), hops[port][1]) for port, far, _ in ends}


def require_weights(build: Build, target: str) -> None:
    """Pass when the kernel can hold the weights of the build.

    Raises:
        InputError: it cannot.
    """
    heaviest = int(build.tables.classes.weight.max(initial=0))
    if heaviest > LARGEST_WEIGHT:
        raise InputError.of(
            key="routing.minimal_share",
            required=f"a share whose weights are at most {LARGEST_WEIGHT} for target {target}",
            given=f"one that makes a weight of {heaviest:,}",
            todo="choose a share nearer to those of the alternates",
        )
