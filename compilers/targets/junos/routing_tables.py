"""`show route | display json` of Juniper Junos.

Every value is a list of `{"data": …}`; Juniper's Junos XML API explorer has the elements of
route-information. Only active entries forward.
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
)
from compilers.readers.devices.neighbour_facts import items, mapping

COMMANDS = "show route | display json"
FAMILIES = ("inet.0", "inet6.0")


def fits(document: Any) -> bool:
    """Whether Junos prints such."""
    return "route-information" in mapping(document)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The active routes of inet.0 and inet6.0, and of instances by their names."""
    held = HeldRoutes()
    for document in documents:
        for information in items(mapping(document).get("route-information")):
            for table in items(mapping(information).get("route-table")):
                instance, _, family = f".{_data(table, 'table-name')}".rpartition(".inet")
                if f"inet{family}" in FAMILIES:
                    _routes(held, instance[1:] or MAIN, table)
    return held


def _routes(held: HeldRoutes, name: str, table: Any) -> None:
    for route in items(mapping(table).get("rt")):
        for entry in items(mapping(route).get("rt-entry")):
            if _data(entry, "active-tag") == "*" and (hops := _hops(entry)):
                held.add(name, _data(route, "rt-destination"), 0, hops)


def _hops(entry: Any) -> Hops:
    if _data(entry, "nh-type") in ("Discard", "Reject"):
        return DISCARD
    return hops_of(
        (_data(hop, "to"), _data(hop, "via").removesuffix(".0"), 1)
        for hop in items(mapping(entry).get("nh"))
    )


def _data(entry: Any, key: str) -> str:
    """The text of an element, "" where there is none."""
    for value in items(mapping(entry).get(key)):
        found = mapping(value).get("data")
        if isinstance(found, str):
            return found
    return ""


FORM = RoutingTables(COMMANDS, fits, read)
