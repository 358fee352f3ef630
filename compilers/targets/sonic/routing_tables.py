"""Reader of the routes of a SONiC switch, from a dump of ROUTE_TABLE in APPL_DB.

`sonic-db-dump -n APPL_DB -k "ROUTE_TABLE*" -y` prints what orchagent programs into the chip. Routes
may refer to groups in NEXTHOP_GROUP_TABLE. Keys are `ROUTE_TABLE:[VRF:]PREFIX`, without a VRF for
the default one. Fields are those of the schema in sonic-swss-common: nexthop, ifname and weight are
lists with commas. `check routes` and a push read the dumps by `FORM`.
"""

from __future__ import annotations

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
    whole_prefix,
)
from compilers.readers.devices.neighbour_facts import as_mapping

COMMANDS = (
    "sonic-db-dump -n APPL_DB -k 'ROUTE_TABLE*' -y; "
    "sonic-db-dump -n APPL_DB -k 'NEXTHOP_GROUP_TABLE*' -y"
)
"""The commands that print the routes of SONiC's database, and their groups of next hops."""
ROUTE_KEY, GROUP_KEY = "ROUTE_TABLE:", "NEXTHOP_GROUP_TABLE:"
"""How the keys of routes and of next-hop groups begin."""

NO_GATEWAY = ("0.0.0.0", "::", "")  # noqa: S104
"""The values of `nexthop` that stand for a next hop without a gateway."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a dump of these tables of APPL_DB."""
    return any(key.startswith((ROUTE_KEY, GROUP_KEY)) for key in as_mapping(document))


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes of the documents; a route with a group has the next hops of the group.

    Raises:
        ValueError: ROUTE_TABLE is missing, or a route names a group that is missing.
    """
    held_routes = HeldRoutes()
    entries = {
        key: _fields(entry) for document in documents for key, entry in as_mapping(document).items()
    }
    if not any(key.startswith(ROUTE_KEY) for key in entries):
        raise ValueError("next-hop groups alone, without ROUTE_TABLE")
    for key, fields in entries.items():
        if not key.startswith(ROUTE_KEY):
            continue
        table, prefix = MAIN_TABLE, key.removeprefix(ROUTE_KEY)
        if prefix.startswith("Vrf"):  # SONiC requires that names of VRFs begin so
            table, _, prefix = prefix.partition(":")
        if group := fields.get("nexthop_group"):
            if f"{GROUP_KEY}{group}" not in entries:
                raise ValueError(f"{prefix} has group {group}, which is not in the dump")
            fields = {**fields, **entries[f"{GROUP_KEY}{group}"]}
        if hops := _hops(fields):
            held_routes.add(table, whole_prefix(prefix), ONE_PREFERENCE, hops)
    return held_routes


def _fields(entry: Any) -> dict[str, Any]:
    """The fields of an entry, which `-y` prints below the key `value`."""
    printed = as_mapping(entry)
    return as_mapping(printed.get("value", printed))


def _hops(fields: dict[str, Any]) -> Hops:
    """The next hops in the fields of a route; () if it has none.

    The lists `nexthop` and `weight` may be shorter than `ifname`. A next hop that is missing there
    has no gateway, or weight 1.
    """
    if fields.get("blackhole") == "true":
        return DISCARD
    interfaces = str(fields.get("ifname", "")).split(",")
    gateways = str(fields.get("nexthop", "")).split(",")
    weights = str(fields.get("weight", "")).split(",")
    gateways += [""] * (len(interfaces) - len(gateways))
    weights += [""] * (len(interfaces) - len(weights))
    return hops_of(
        ("" if gateway in NO_GATEWAY else gateway, interface, int(weight or 1))
        for gateway, interface, weight in zip(gateways, interfaces, weights, strict=False)
        if interface or gateway
    )


FORM = RoutingTableForm(COMMANDS, fits, read)
"""The form of these outputs, which is `Target.routing_tables` of target sonic."""
