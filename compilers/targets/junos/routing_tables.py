"""Reader of the routes of Juniper Junos, from `show route | display json`.

Juniper's Junos XML API explorer documents the elements of route-information. Only active entries
forward packets. `check routes` and a push read the output by `FORM`.
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
    RoutingTables,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import as_list, as_mapping
from compilers.targets.junos.outputs import has_output, outputs, text

COMMANDS = "show route | display json"
"""The command that prints the routes."""
TABLE_NAME = re.compile(r"(?:(?P<instance>.+)\.)?inet6?\.0")
"""`inet.0`, `inet6.0`: the main tables; `hosts.inet.0`: the table of routing instance `hosts`."""
INFORMATION = "route-information"
"""The element with the routing tables."""
TEXT = re.compile(rf"^\S*inet6?\.0: \d+ destinations|<{INFORMATION}", re.M)
"""The output as text or XML, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of Junos."""
    return has_output(document, INFORMATION)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The active routes of inet.0 and inet6.0, and of instances by their names."""
    routes = HeldRoutes()
    for document in documents:
        for information in outputs(document, INFORMATION):
            for table in as_list(as_mapping(information).get("route-table")):
                if name := TABLE_NAME.fullmatch(text(table, "table-name")):
                    _add_routes(routes, name["instance"] or MAIN_TABLE, table)
    return routes


def _add_routes(routes: HeldRoutes, name: str, table: Any) -> None:
    """Add the active routes of a routing table.

    Args:
        routes: gets the routes.
        name: the name of the instance, or MAIN_TABLE.
        table: the element of the table.
    """
    for route in as_list(as_mapping(table).get("rt")):
        for entry in as_list(as_mapping(route).get("rt-entry")):
            if text(entry, "active-tag") == "*" and (hops := _hops(entry)):
                routes.add(name, _prefix(route), ONE_PREFERENCE, hops)


def _prefix(route: Any) -> str:
    """The prefix of a route; with `detail` its length is an element of its own."""
    length = text(route, "rt-prefix-length")
    destination = text(route, "rt-destination")
    return f"{destination}/{length}" if length else destination


def _hops(entry: Any) -> Hops:
    """The next hops of an entry, by the physical interface: ge-0/0/1 for ge-0/0/1.0."""
    if text(entry, "nh-type") in ("Discard", "Reject"):
        return DISCARD
    return hops_of(
        (text(hop, "to"), text(hop, "via").removesuffix(".0"), 1)
        for hop in as_list(as_mapping(entry).get("nh"))
    )


FORM = RoutingTables(COMMANDS, fits, read, text=TEXT)
