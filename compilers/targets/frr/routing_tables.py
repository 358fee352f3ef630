"""`show ip route table all json` and `show ipv6 route table all json` of FRR, and of SONiC.

Documented in FRR's zebra manual, "Administrative Commands"; the fields are those of FRR 8.4 as run.
An older FRR without `table all` prints the main table, and one a `table N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    MAIN,
    HeldRoutes,
    Hops,
    RoutingTables,
    shared,
)
from compilers.readers.devices.neighbour_facts import mapping

COMMANDS = "vtysh -c 'show ip route table all json' -c 'show ipv6 route table all json'"
MAIN_TABLE, DEFAULT = 254, "default"
WITHIN = 2
"""The most keys above the routes: the VRF, and below it the table."""
TEXT = re.compile(r"^Codes: K - kernel route", re.M)


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of zebra."""
    return _holds(document, WITHIN)


def _holds(document: Any, within: int) -> bool:
    """Whether a document has routes by prefix, below at most `within` keys."""
    parts = list(mapping(document).values())
    if within and parts and all(isinstance(part, dict) for part in parts):
        if not any(parts):
            return all(key.isdecimal() for key in document) or "default" in document
        # Tables of BGP have the same form, but their routes name no protocol.
        of_bgp = (bool(first := _first(part)) and "protocol" not in first for part in parts)
        return not any(of_bgp) and all(_holds(part, within - 1) for part in parts if part)
    return "nexthops" in _first(document) and all(isinstance(part, list) for part in parts)


def _first(document: Any) -> dict[str, Any]:
    """The first route of a document of routes by prefix, {} if it has none."""
    routes = next(iter(mapping(document).values()), None)
    return mapping(routes[0]) if isinstance(routes, list) and routes else {}


def routes_of(document: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each prefix of a document with its routes.

    Since FRR 10.1 `vrf all` prints them below the VRF, and since 10.8 `table all` below the table.
    """
    for key, value in mapping(document).items():
        if isinstance(value, dict):
            yield from routes_of(value)
        else:
            yield key, value


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes in use: without inactive next hops, and without routes that the kernel refused."""
    held = HeldRoutes(whole=True)
    for document in documents:
        for prefix, routes in routes_of(document):
            for route in routes:
                get = route.get
                hops = _hops(route["nexthops"])
                if hops and (get("installed") or not get("selected")):
                    table = _table(get("table", MAIN_TABLE), get("vrfName", DEFAULT))
                    held.add(table, prefix, get("distance", 0), hops)
    return held


@lru_cache(1 << 12)
def _table(number: int, vrf: str) -> str:
    """The name of a routing table: its VRF, `MAIN`, or its number."""
    if vrf != DEFAULT:
        return vrf
    return MAIN if number in (MAIN_TABLE, 0) else str(number)


def _hops(entries: list[dict[str, Any]]) -> Hops:
    """The active next hops; for a recursive one, those to which zebra resolved it."""
    hops = []
    for entry in entries:
        get = entry.get
        if get("blackhole") or get("reject") or get("unreachable"):
            return DISCARD
        if get("active") and not get("recursive") and not get("duplicate"):
            hops.append((get("ip", ""), get("interfaceName", ""), get("weight", 1)))
    return shared(tuple(hops))


FORM = RoutingTables(COMMANDS, fits, read, text=TEXT)
