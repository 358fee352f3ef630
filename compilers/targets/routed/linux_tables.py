"""Routing tables by where a packet came in, for targets that are Linux kernels or feed one.

Table main holds the order of ports for packets from anywhere. What depends on where a packet came
in stands in tables of its own, looked up before main by `ip rule iif`; where such a table has no
route, main decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compilers.tables.build import Build
from compilers.targets.routed.static_routes import Numbers, RoutedFabric, StaticSwitch
from inventory.problems import InputError
from inventory.route_tables.held_routes import (
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    Choices,
    RouteTables,
    hops_of,
)
from inventory.route_tables.held_routes import MAIN as MAIN_TABLE

MAIN, ENTER = 254, 5000
"""Tables: for packets from anywhere, from hosts; ENTER + p: for those that came in on port p."""
RULE = 1000
"""The preference of our rules."""
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


def in_order(routed: RoutedFabric, vertex: int) -> Iterator[tuple[int, Numbers]]:
    """Tables with an order of ports: their numbers and int[C, M], ports by class, 0: none."""
    for chain in routed.chains(vertex):
        yield (ENTER + chain.in_port if chain.in_port else MAIN), chain.port


def rules(switch: StaticSwitch, tables: set[int]) -> list[LookupRule]:
    """The rules for these tables."""
    origins = [
        (switch.hosts, ENTER),
        *((link.interface, ENTER + link.port) for link in switch.links),
    ]
    return [LookupRule(interface, table) for interface, table in origins if table in tables]


def kernel_tables(routed: RoutedFabric, vertex: int, gateway: Mapping[int, str]) -> RouteTables:
    """The routes and rules of a switch that is a Linux kernel, or feeds one.

    Args:
        routed: the routers of the build.
        vertex: which.
        gateway: by address family, 4 and 6, the field of a link with the neighbour's address.
    """
    switch = routed.switch(vertex)
    orders = dict(in_order(routed, vertex))
    shares = list(routed.shares(vertex)) if switch.hosts else []
    widest = int(routed.build.wiring.port[vertex].max(initial=0))
    tables: RouteTables = {str(ENTER + port): {} for port in range(widest + 1)}
    tables[MAIN_TABLE] = {}
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    for family, texts in zip((4, 6), routed.prefixes, strict=False):
        hop = {link.port: (getattr(link, gateway[family]), link.interface) for link in switch.links}
        named = [texts[number] for number in prefix]
        for table, port in orders.items():
            choices = [tuple(((*hop[p], 1),) for p in ports if p) for ports in port.tolist()]
            _fill(tables[MAIN_TABLE if table == MAIN else str(table)], named, egress, choices)
        entering: list[Choices] = [()] * len(routed.build.tables.classes.port[vertex])
        for share in shares:
            pairs = zip(share.port, share.weight, strict=True)
            entering[share.egress] = (hops_of((*hop[p], weight) for p, weight in pairs),)
        _fill(tables[str(ENTER)], named, egress, entering)
    for pool in routed.pools():
        tables[MAIN_TABLE][pool] = (*tables[MAIN_TABLE].get(pool, ()), DISCARD)
    ours = rules(switch, {*orders, *([ENTER] if shares else [])})
    led: dict[str, Choices] = {
        f"iif {rule.interface}": (((f"table {rule.table}", "", 1),),) for rule in ours
    }
    return tables | {IPV4_RULES: led, IPV6_RULES: led}


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
