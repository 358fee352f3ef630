"""`show ip route table all json` and `show ipv6 route table all json` of FRR, and of SONiC.

Documented in FRR's zebra manual, "Administrative Commands"; the fields are those of FRR 8.4 as run.
An older FRR without `table all` prints the main table, and one a `table N`.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def fits(document: Any) -> bool:
    """Whether zebra prints such."""
    first = next(iter(mapping(document).values()), None)
    return isinstance(first, list) and "nexthops" in mapping(first[0] if first else None)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes; next hops that are not active, and routes that the kernel refused, are none."""
    held = HeldRoutes(whole=True)
    for document in documents:
        for prefix, routes in document.items():
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


FORM = RoutingTables(COMMANDS, fits, read)
