"""Routing tables by where a packet came in, for targets that are Linux kernels or feed one.

Table main holds the order of ports for packets from anywhere. What depends on where a packet came
in stands in tables of its own, looked up before main by `ip rule iif`; where such a table has no
route, main decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import KernelMarks, kernel_marks, marked_address
from compilers.targets.routed.static_routes import (
    DISCARDED,
    IngressShare,
    Numbers,
    RoutedFabric,
    StaticSwitch,
)
from inventory.problems import InputError
from inventory.route_tables.held_routes import (
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    THROW,
    Choices,
    Hops,
    RouteTables,
    hops_of,
)
from inventory.route_tables.held_routes import MAIN as MAIN_TABLE

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


def in_order(routed: RoutedFabric, vertex: int) -> Iterator[tuple[int, Numbers]]:
    """Tables with an order of ports: their numbers and int[C, M], ports by class, 0: none."""
    for chain in routed.chains(vertex):
        yield (ENTER + chain.in_port if chain.in_port else MAIN), chain.port


def discarding(orders: Mapping[int, Numbers]) -> Iterator[tuple[int, Numbers]]:
    """Tables where packets of some classes are dropped if no port is up, and these: int[n]."""
    for table, port in orders.items():
        if (classes := np.flatnonzero((port == DISCARDED).any(axis=1))).size:
            yield table, classes


def enters(routed: RoutedFabric, switch: StaticSwitch) -> bool:
    """Whether packets of hosts are looked up in a table of their own, if any class shares them."""
    return bool(switch.hosts) and not routed.build.every_hop


def rules(
    switch: StaticSwitch, tables: set[int], marks: KernelMarks | None = None
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
        gateway: by address family, 4 and 6, the field of a link with the neighbour's address.
        batches: `ip -batch` loads all of it, so with what FRR has not: the prefixes that tables of
            marked packets throw on, and the ways of a group each by itself behind it.
    """
    switch, marks = routed.switch(vertex), kernel_marks(routed, vertex)
    orders = dict(in_order(routed, vertex))
    shares, apart = list(routed.shares(vertex)), enters(routed, switch)
    widest = int(routed.build.wiring.port[vertex].max(initial=0))
    tables: RouteTables = {str(ENTER + port): {} for port in range(widest + 1)}
    tables[MAIN_TABLE] = {}
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    for family, texts in zip((4, 6), routed.prefixes, strict=False):
        hop = {link.port: (getattr(link, gateway[family]), link.interface) for link in switch.links}
        marked = _marked_hops(routed, vertex, hop, gateway[family]) if marks else {}
        named = [texts[number] for number in prefix]
        for table, port in orders.items():
            choices: list[Choices] = [_in_order(ports, hop) for ports in port.tolist()]
            for share in shares if table == MAIN and routed.build.every_hop else ():
                alone = _in_order(share.port * batches, hop)
                repair = choices[share.egress][1:]
                choices[share.egress] = (_shared(share, hop, marked), *alone, *repair)
            _fill(tables[MAIN_TABLE if table == MAIN else str(table)], named, egress, choices)
        entering: list[Choices] = [()] * len(routed.build.tables.classes.port[vertex])
        for share in shares * apart:
            entering[share.egress] = (_shared(share, hop, marked),)
        _fill(tables[str(ENTER)], named, egress, entering)
        pool = routed.pools()[family == 6]
        for each in marks.ports if marks else ():
            onward = hops_of((*hop[p], 1) for p in each.onward)
            tables.setdefault(str(each.table), {})[pool] = (onward,)
            kept = marks.kept if marks and batches else ()
            tables[str(each.table)] |= dict.fromkeys(kept, (THROW,))
    for pool in routed.pools():
        tables[MAIN_TABLE][pool] = (*tables[MAIN_TABLE].get(pool, ()), DISCARD)
    ours = rules(switch, {*orders, *([ENTER] if shares and apart else [])}, marks)
    led: dict[str, Choices] = {}
    for rule in ours:
        way = ((f"table {rule.table}", "", 1),)
        led[f"iif {rule.interface}"] = (*led.get(f"iif {rule.interface}", ()), way)
    return tables | {IPV4_RULES: led, IPV6_RULES: led}


def _in_order(ports: Iterable[int], hop: Mapping[int, tuple[str, str]]) -> Choices:
    """A choice a port, and the end where there is one."""
    return tuple(DISCARD if p == DISCARDED else ((*hop[p], 1),) for p in ports if p)


def _shared(
    share: IngressShare,
    hop: Mapping[int, tuple[str, str]],
    marked: Mapping[int, tuple[str, str]],
) -> Hops:
    ways = zip(share.port, share.weight, share.marks, strict=True)
    return hops_of((*(marked if mark else hop)[p], weight) for p, weight, mark in ways)


def _marked_hops(
    routed: RoutedFabric, vertex: int, hop: Mapping[int, tuple[str, str]], gateway: str
) -> dict[int, tuple[str, str]]:
    """By port the neighbour's address for marked packets, and the interface."""
    w = routed.build.wiring
    far = zip(w.port[vertex].tolist(), w.far[vertex].tolist(), strict=True)
    family = 4 if gateway == "ipv4" else 6
    return {p: (marked_address(v, family), hop[p][1]) for p, v in far if v >= 0}


def _fill(
    table: dict[str, Choices], prefixes: list[str], egress: list[int], choices: Sequence[Choices]
) -> None:
    """Add the routes of the classes that have choices in this table."""
    found = zip(prefixes, map(choices.__getitem__, egress), strict=True)
    table.update(route for route in found if route[1])


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
