"""`info from state network-instance * route-table | as json` of Nokia SR Linux.

The model is srl_nokia-ip-route-tables: routes name a next hop group by its index, a group its next
hops by theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    MAIN,
    HeldRoutes,
    Hops,
    RoutingTables,
    hops_of,
)
from compilers.readers.devices.neighbour_facts import items
from compilers.targets.srlinux.outputs import bare

COMMANDS = "info from state network-instance * route-table | as json"
Tree = dict[str, Any]
TEXT = re.compile(r"route table of network instance ", re.M)


def fits(document: Any) -> bool:
    """Whether SR Linux prints such."""
    return "network-instance" in bare(document)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The active routes of all network instances; each part may be a document of its own."""
    held = HeldRoutes()
    instances: dict[str, list[Tree]] = {}
    for document in documents:
        for instance in items(bare(document).get("network-instance")):
            known = bare(instance)
            tables = instances.setdefault(str(known.get("name", "default")), [])
            tables.append(bare(known.get("route-table")))
    groups = {name: _groups(tables) for name, tables in instances.items()}
    for name, tables in instances.items():
        for table in tables:
            for family in ("ipv4", "ipv6"):
                unicast = bare(table.get(f"{family}-unicast"))
                for route in map(bare, items(unicast.get("route"))):
                    where = str(route.get("next-hop-group-network-instance", name))
                    group = groups.get(where, {}).get(str(route.get("next-hop-group")), ())
                    if group and route.get("active", True):
                        table_name = MAIN if name == "default" else name
                        held.add(table_name, str(route.get(f"{family}-prefix")), 0, group)
    return held


def _groups(tables: list[Tree]) -> dict[str, Hops]:
    """The next hops of every group, by its index."""
    hops = {str(hop.get("index")): hop for hop in _all(tables, "next-hop")}
    found = {}
    for group in _all(tables, "next-hop-group"):
        members = [bare(member) for member in items(group.get("next-hop"))]
        numbers = [str(member.get("next-hop", member.get("index"))) for member in members]
        listed = [hops[number] for number in numbers if number in hops]
        direct = [hop for hop in listed if "ip-address" in hop or "subinterface" in hop]
        found[str(group.get("index"))] = (
            hops_of((str(hop.get("ip-address", "")), _interface(hop), 1) for hop in direct)
            if direct
            else DISCARD
        )
    return found


def _all(tables: list[Tree], key: str) -> list[Tree]:
    return [bare(entry) for table in tables for entry in items(table.get(key))]


def _interface(hop: Tree) -> str:
    """A next hop that leads to another route says no interface."""
    return str(hop.get("subinterface", ANY)).removesuffix(".0")


FORM = RoutingTables(COMMANDS, fits, read, text=TEXT)
