"""Reader of the routes of FRR, from `show ip route table all json` and the same for IPv6.

FRR's zebra manual documents the commands ("Administrative Commands"); the fields are those that FRR
8.4 prints. An output is a mapping from prefixes to routes: of all tables, or of one table where FRR
has no `table all`. Newer releases print such a mapping for each VRF, and in it for each table.
`check routes` and a push read the outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    MAIN_TABLE,
    HeldRoutes,
    Hops,
    RoutingTableForm,
    canonical_hops,
)
from compilers.readers.devices.neighbour_facts import as_mapping

COMMANDS = "vtysh -c 'show ip route table all json' -c 'show ipv6 route table all json'"
"""The commands that print the routes of all tables, one for each address family."""
KERNEL_MAIN = 254
"""The number of the kernel's main table."""
DEFAULT_VRF = "default"
"""The name of the default VRF."""
MOST_LEVELS = 2
"""How many mappings may surround the mapping from prefixes to routes: one from VRFs, and in it one
from tables."""
REFUSED_TEXT = re.compile(r"^Codes: K - kernel route", re.M)
"""How an output without `json` is recognized, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of zebra."""
    return _has_routes(document, MOST_LEVELS)


def _has_routes(document: Any, levels: int) -> bool:
    """Whether a document is a mapping from prefixes to routes, or from VRFs or tables to such.

    Args:
        document: the document.
        levels: how many mappings may surround the mapping from prefixes to routes.
    """
    values = list(as_mapping(document).values())
    is_nested = bool(values) and all(isinstance(value, dict) for value in values)
    if not levels or not is_nested:
        return _is_routes_by_prefix(document)
    if not any(values):  # all tables, or all VRFs, are empty: only their names tell the form
        return all(key.isdecimal() for key in document) or DEFAULT_VRF in document
    if any(map(_is_of_bgp, values)):
        return False
    return all(_has_routes(value, levels - 1) for value in values if value)


def _is_routes_by_prefix(document: Any) -> bool:
    """Whether a document is a mapping from prefixes to lists of routes with next hops."""
    values = as_mapping(document).values()
    return "nexthops" in _first_route(document) and all(isinstance(value, list) for value in values)


def _is_of_bgp(document: Any) -> bool:
    """Whether a mapping from prefixes to routes is of BGP, whose routes name no protocol."""
    route = _first_route(document)
    return bool(route) and "protocol" not in route


def _first_route(document: Any) -> dict[str, Any]:
    """The first route of a mapping from prefixes to routes; {} if it has none."""
    routes = next(iter(as_mapping(document).values()), None)
    return as_mapping(routes[0]) if isinstance(routes, list) and routes else {}


def routes_of(document: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each prefix of a document, with its routes.

    Since FRR 10.1 `vrf all` prints a mapping for each VRF, and since 10.8 `table all` for each
    table.
    """
    for key, value in as_mapping(document).items():
        if isinstance(value, dict):
            yield from routes_of(value)
        else:
            yield key, value


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes in use: without inactive next hops, and without routes that the kernel refused."""
    held_routes = HeldRoutes(all_choices=True)  # zebra also prints routes that are not the best
    for document in documents:
        for prefix, routes in routes_of(document):
            for route in routes:
                hops = _hops(route["nexthops"])
                # The selected route, the best one, has to be in the kernel; others only stand by.
                if hops and (route.get("installed") or not route.get("selected")):
                    number, vrf = route.get("table", KERNEL_MAIN), route.get("vrfName", DEFAULT_VRF)
                    held_routes.add(_table(number, vrf), prefix, route.get("distance", 0), hops)
    return held_routes


@lru_cache(1 << 12)
def _table(number: int, vrf: str) -> str:
    """The name of a routing table: its VRF, `MAIN_TABLE`, or its number.

    Number 0 stands for no table of its own, so for the main one.
    """
    if vrf != DEFAULT_VRF:
        return vrf
    return MAIN_TABLE if number in (KERNEL_MAIN, 0) else str(number)


def _hops(entries: list[dict[str, Any]]) -> Hops:
    """The active next hops of a route.

    A recursive next hop is left out: zebra also prints the next hops to which it has resolved it.
    """
    hops = []
    for entry in entries:
        if entry.get("blackhole") or entry.get("reject") or entry.get("unreachable"):
            return DISCARD
        if entry.get("active") and not entry.get("recursive") and not entry.get("duplicate"):
            hop = entry.get("ip", ""), entry.get("interfaceName", ""), entry.get("weight", 1)
            hops.append(hop)
    return canonical_hops(tuple(hops))


FORM = RoutingTableForm(COMMANDS, fits, read, text=REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target frr."""
