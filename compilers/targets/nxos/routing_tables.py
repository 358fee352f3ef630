"""Reader of the routes of Cisco NX-OS, from `show ip route vrf all | json` and the same of IPv6.

Interface names are short: Eth1/1. A next hop in another VRF is GATEWAY%VRF. `check routes` and a
push read the outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    MAIN_TABLE,
    ONE_PREFERENCE,
    HeldRoutes,
    Hops,
    RoutingTableForm,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import as_mapping
from compilers.targets.nxos.outputs import rows

COMMANDS = "show ip route vrf all | json, show ipv6 route vrf all | json"
"""The commands that print the routes."""
REFUSED_TEXT = re.compile(r"^IP(?:v6)? Rout(?:e|ing) Table for VRF", re.M)
"""How an output without `json` is recognized, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of NX-OS."""
    return "TABLE_vrf" in as_mapping(document)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes of all VRFs.

    Raises:
        ValueError: a document is a table of BGP, whose JSON begins in the same way.
    """
    held_routes = HeldRoutes()
    for document in documents:
        for vrf in rows(document, "vrf"):
            name = vrf.get("vrf-name-out", "default")
            table = MAIN_TABLE if name == "default" else name
            other_tables = [key for key in vrf if key.startswith("TABLE_") and key != "TABLE_addrf"]
            if other_tables:
                raise ValueError(f"{other_tables[0]} of VRF {name} in place of TABLE_addrf")
            for family in rows(vrf, "addrf"):
                for route in rows(family, "prefix"):
                    if (hops := _hops(route)) and (prefix := route.get("ipprefix")):
                        held_routes.add(table, prefix, ONE_PREFERENCE, hops)
    return held_routes


def _hops(route: dict[str, Any]) -> Hops:
    """The next hops of the best paths of a route; a path over Null0 discards.

    Of a unicast route NX-OS says by `ubest` which paths are the best ones.
    """
    best = [path for path in rows(route, "path") if str(path.get("ubest", "true")) == "true"]
    if any(path.get("ifname") == "Null0" for path in best):
        return DISCARD
    return hops_of((*_gateway_and_interface(path), 1) for path in best)


def _gateway_and_interface(path: dict[str, Any]) -> tuple[str, str]:
    """The gateway of a path, without its VRF, and the interface.

    A path of BGP names a gateway and no interface, as another route resolves it: ANY.
    """
    gateway = str(path.get("ipnexthop", "")).partition("%")[0]
    any_interface = ANY if gateway else ""
    return gateway, _interface(path) or any_interface


def _interface(path: dict[str, Any]) -> str:
    """The interface of a path by its long name, as in configurations: Ethernet1/1 for Eth1/1."""
    name = str(path.get("ifname", ""))
    number = name.removeprefix("Eth")
    return f"Ethernet{number}" if number != name and number[:1].isdecimal() else name


FORM = RoutingTableForm(COMMANDS, fits, read, text=REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target nxos."""
