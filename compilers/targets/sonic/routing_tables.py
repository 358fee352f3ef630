"""ROUTE_TABLE of SONiC's APPL_DB, which orchagent programs: `sonic-db-dump -n APPL_DB -k
"ROUTE_TABLE*" -y`.

The keys are `ROUTE_TABLE:[VRF:]PREFIX`, the fields those of SONiC's sonic-swss-common schema:
nexthop, ifname and weight are lists with commas. No form of the tool names the VRF `default`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    MAIN,
    HeldRoutes,
    Hops,
    RoutingTables,
    hops_of,
    whole_prefix,
)
from compilers.readers.devices.neighbour_facts import mapping

COMMANDS = "sonic-db-dump -n APPL_DB -k 'ROUTE_TABLE*' -y"
KEY = "ROUTE_TABLE:"
NO_GATEWAY = ("0.0.0.0", "::", "")  # noqa: S104


def fits(document: Any) -> bool:
    """Whether the database is dumped like this."""
    return next(iter(mapping(document)), "").startswith(KEY)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes."""
    held = HeldRoutes()
    for document in documents:
        for key, entry in mapping(document).items():
            table, prefix = MAIN, key.removeprefix(KEY)
            if prefix.startswith("Vrf"):
                table, _, prefix = prefix.partition(":")
            known = mapping(entry)
            if hops := _hops(mapping(known.get("value", known))):
                held.add(table, whole_prefix(prefix), 0, hops)
    return held


def _hops(value: dict[str, Any]) -> Hops:
    if value.get("blackhole") == "true":
        return DISCARD
    interfaces = str(value.get("ifname", "")).split(",")
    gateways = str(value.get("nexthop", "")).split(",")
    weights = str(value.get("weight", "")).split(",")
    gateways += [""] * (len(interfaces) - len(gateways))
    weights += [""] * (len(interfaces) - len(weights))
    return hops_of(
        ("" if gateway in NO_GATEWAY else gateway, interface, int(weight or 1))
        for gateway, interface, weight in zip(gateways, interfaces, weights, strict=False)
        if interface or gateway
    )


FORM = RoutingTables(COMMANDS, fits, read)
