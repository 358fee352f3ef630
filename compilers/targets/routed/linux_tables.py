"""Routing tables by where a packet came in, for targets that are Linux kernels or feed one.

Table main holds the order of ports for packets from anywhere. What depends on where a packet came
in stands in tables of its own, looked up before main by `ip rule iif`; where such a table has no
route, main decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilers.tables.build import Build
from compilers.targets.routed.static_routes import Numbers, RoutedFabric, StaticSwitch
from inventory.problems import InputError, Problem

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


def require_weights(build: Build, target: str) -> None:
    """Pass when the kernel can hold the weights of the build.

    Raises:
        InputError: it cannot.
    """
    heaviest = int(build.tables.classes.weight.max(initial=0))
    if heaviest > LARGEST_WEIGHT:
        raise InputError(
            Problem(
                key="routing.minimal_share",
                required=f"a share whose weights are at most {LARGEST_WEIGHT} for target {target}",
                given=f"one that makes a weight of {heaviest:,}",
                todo="choose a share nearer to those of the alternates",
            )
        )
