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
"""Routes may be by VRF, and in there by table."""
TEXT = re.compile(r"^Codes: K - kernel route", re.M)


def fits(document: Any) -> bool:
    """Whether zebra prints such."""
    return _holds(document, WITHIN)


def _holds(document: Any, within: int) -> bool:
    """Whether these are routes, or tables of them by so many keys at most."""
    parts = list(mapping(document).values())
    if within and parts and all(isinstance(part, dict) for part in parts):
        if not any(parts):
            return all(key.isdecimal() for key in document) or "default" in document
        of_bgp = (bool(first := _first(part)) and "protocol" not in first for part in parts)
        return not any(of_bgp) and all(_holds(part, within - 1) for part in parts if part)
    return "nexthops" in _first(document) and all(isinstance(part, list) for part in parts)


def _first(document: Any) -> dict[str, Any]:
    """The first route, which tables of BGP have, too, but without a protocol."""
    routes = next(iter(mapping(document).values()), None)
    return mapping(routes[0]) if isinstance(routes, list) and routes else {}


def routes_of(document: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The prefixes and their routes.

    Since FRR 10.1 `vrf all` has them by VRF, and since 10.8 `table all` by table.
    """
    for key, value in mapping(document).items():
        if isinstance(value, dict):
            yield from routes_of(value)
        else:
            yield key, value


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes; next hops that are not active, and routes that the kernel refused, are none."""
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
    if vrf != DEFAULT:
        return vrf
    return MAIN if number in (MAIN_TABLE, 0) else str(number)


def _hops(entries: list[dict[str, Any]]) -> Hops:
    """The active next hops; of those that other routes resolve, what they resolve to."""
    found = []
    for entry in entries:
        get = entry.get
        if get("blackhole") or get("reject") or get("unreachable"):
            return DISCARD
        if get("active") and not get("recursive") and not get("duplicate"):
            found.append((get("ip", ""), get("interfaceName", ""), get("weight", 1)))
    return shared(tuple(found))


FORM = RoutingTables(COMMANDS, fits, read, text=TEXT)
