"""ROUTE_TABLE of SONiC's APPL_DB, which orchagent programs: `sonic-db-dump -n APPL_DB -k
"ROUTE_TABLE*" -y`, and NEXTHOP_GROUP_TABLE, to which routes may refer.

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

COMMANDS = (
    "sonic-db-dump -n APPL_DB -k 'ROUTE_TABLE*' -y; "
    "sonic-db-dump -n APPL_DB -k 'NEXTHOP_GROUP_TABLE*' -y"
)
KEY, GROUP_KEY = "ROUTE_TABLE:", "NEXTHOP_GROUP_TABLE:"
NO_GATEWAY = ("0.0.0.0", "::", "")  # noqa: S104


def fits(document: Any) -> bool:
    """Whether the database is dumped like this."""
    return any(key.startswith((KEY, GROUP_KEY)) for key in mapping(document))


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes; those with a group have the next hops of that."""
    held = HeldRoutes()
    entries = {key: _value(entry) for one in documents for key, entry in mapping(one).items()}
    if not any(key.startswith(KEY) for key in entries):
        raise ValueError("next-hop groups alone, without ROUTE_TABLE")
    for key, value in entries.items():
        if not key.startswith(KEY):
            continue
        table, prefix = MAIN, key.removeprefix(KEY)
        if prefix.startswith("Vrf"):
            table, _, prefix = prefix.partition(":")
        if group := value.get("nexthop_group"):
            if f"{GROUP_KEY}{group}" not in entries:
                raise ValueError(f"{prefix} has group {group}, which is not in the dump")
            value = {**value, **entries[f"{GROUP_KEY}{group}"]}
        if hops := _hops(value):
            held.add(table, whole_prefix(prefix), 0, hops)
    return held


def _value(entry: Any) -> dict[str, Any]:
    """The fields of an entry; -y prints what the database knows of it around them."""
    known = mapping(entry)
    return mapping(known.get("value", known))


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
