"""`show ip route vrf all | json` and `show ipv6 route vrf all | json` of Arista EOS.

The form is that of the test data of Arista's network test automation (ANTA), routing.generic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    MAIN,
    HeldRoutes,
    Hops,
    RoutingTables,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import items, mapping

COMMANDS = "show ip route vrf all | json, show ipv6 route vrf all | json"
TEXT = re.compile(r"^(?:VRF: \S|Codes: C - connected)", re.M)


def fits(document: Any) -> bool:
    """Whether EOS prints such; a table of BGP has other values."""
    known = mapping(document)
    if "vrfs" in known:
        return all("routes" in mapping(entry) for entry in mapping(known["vrfs"]).values())
    routes = known.get("routes")
    return isinstance(routes, dict) and all("vias" in mapping(one) for one in routes.values())


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes."""
    held = HeldRoutes()
    for document in documents:
        known = mapping(document)
        for vrf, entry in mapping(known.get("vrfs") or {"default": known}).items():
            table = MAIN if vrf == "default" else vrf
            for prefix, route in mapping(mapping(entry).get("routes")).items():
                if hops := _hops(mapping(route)):
                    held.add(table, prefix, 0, hops)
    return held


def _hops(route: dict[str, Any]) -> Hops:
    vias = [mapping(via) for via in items(route.get("vias"))]
    if route.get("routeAction") == "drop" or any(via.get("interface") == "Null0" for via in vias):
        return DISCARD
    return hops_of(
        (str(via.get("nexthopAddr", "")), str(via.get("interface", "")), int(via.get("weight", 1)))
        for via in vias
    )


FORM = RoutingTables(COMMANDS, fits, read, text=TEXT)
