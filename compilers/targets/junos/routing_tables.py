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
    RoutingTableForm,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import as_list, as_mapping
from compilers.targets.junos.outputs import elements, first_text, has_element

COMMANDS = "show route | display json"
"""The command that prints the routes."""
TABLE_NAME = re.compile(r"(?:(?P<instance>.+)\.)?inet6?\.0")
"""`inet.0`, `inet6.0`: the main tables; `hosts.inet.0`: the table of routing instance `hosts`."""
INFORMATION = "route-information"
"""The element with the routing tables."""
REFUSED_TEXT = re.compile(rf"^\S*inet6?\.0: \d+ destinations|<{INFORMATION}", re.M)
"""How an output as text or XML is recognized, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is a routing table of Junos."""
    return has_element(document, INFORMATION)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The active routes of inet.0 and inet6.0, and of instances by their names."""
    held_routes = HeldRoutes()
    for document in documents:
        for information in elements(document, INFORMATION):
            for table in as_list(as_mapping(information).get("route-table")):
                if name := TABLE_NAME.fullmatch(first_text(table, "table-name")):
                    _add_routes(held_routes, name["instance"] or MAIN_TABLE, table)
    return held_routes


def _add_routes(held_routes: HeldRoutes, name: str, table: Any) -> None:
    """Add the active routes of a routing table.

    Args:
        held_routes: gets the routes.
        name: the name of the instance, or MAIN_TABLE.
        table: the element of the table.
    """
    for route in as_list(as_mapping(table).get("rt")):
        for entry in as_list(as_mapping(route).get("rt-entry")):
            if first_text(entry, "active-tag") == "*" and (hops := _hops(entry)):
                held_routes.add(name, _prefix(route), ONE_PREFERENCE, hops)


def _prefix(route: Any) -> str:
    """The prefix of a route; with `detail` its length is an element of its own."""
    length = first_text(route, "rt-prefix-length")
    destination = first_text(route, "rt-destination")
    return f"{destination}/{length}" if length else destination


def _hops(entry: Any) -> Hops:
    """The next hops of an entry, each of weight 1, as Junos prints none.

    The interface of a next hop is the port: ge-0/0/1 for its logical interface ge-0/0/1.0.
    """
    if first_text(entry, "nh-type") in ("Discard", "Reject"):
        return DISCARD
    return hops_of(
        (first_text(hop, "to"), first_text(hop, "via").removesuffix(".0"), 1)
        for hop in as_list(as_mapping(entry).get("nh"))
    )


FORM = RoutingTableForm(COMMANDS, fits, read, text=REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target junos."""
