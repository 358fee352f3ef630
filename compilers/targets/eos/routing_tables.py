"""Reader of the routes of Arista EOS, from `show ip route vrf all | json` and the same of IPv6.

The form is that of the test data of Arista's network test automation (ANTA), routing.generic.
`check routes` and a push read the outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    MAIN_TABLE,
    ONE_PREFERENCE,
    HeldRoutes,
    Hops,
    RoutingTableForm,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import as_list, as_mapping

COMMANDS = "show ip route vrf all | json, show ipv6 route vrf all | json"
"""The commands that print the routes."""
REFUSED_TEXT = re.compile(r"^(?:VRF: \S|Codes: C - connected)", re.M)
"""How an output without `json` is recognized, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of EOS.

    It has routes by VRF, or the routes of one VRF. Routes of a BGP table have no `vias`.
    """
    fields = as_mapping(document)
    if "vrfs" in fields:
        return all("routes" in as_mapping(vrf) for vrf in as_mapping(fields["vrfs"]).values())
    routes = fields.get("routes")
    return isinstance(routes, dict) and all(
        "vias" in as_mapping(route) for route in routes.values()
    )


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes of all VRFs, or of the default one where no VRF is named."""
    held_routes = HeldRoutes()
    for document in documents:
        fields = as_mapping(document)
        for vrf, entry in as_mapping(fields.get("vrfs") or {"default": fields}).items():
            table = MAIN_TABLE if vrf == "default" else vrf
            for prefix, route in as_mapping(as_mapping(entry).get("routes")).items():
                if hops := _hops(as_mapping(route)):
                    held_routes.add(table, prefix, ONE_PREFERENCE, hops)
    return held_routes


def _hops(route: dict[str, Any]) -> Hops:
    """The next hops of a route; a route over Null0 discards."""
    vias = [as_mapping(via) for via in as_list(route.get("vias"))]
    if route.get("routeAction") == "drop" or any(via.get("interface") == "Null0" for via in vias):
        return DISCARD
    return hops_of(
        (str(via.get("nexthopAddr", "")), str(via.get("interface", "")), int(via.get("weight", 1)))
        for via in vias
    )


FORM = RoutingTableForm(COMMANDS, fits, read, text=REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target eos."""
