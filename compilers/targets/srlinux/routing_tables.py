"""Reader of the routes of Nokia SR Linux, from its state as JSON.

`info from state network-instance * route-table | as json` prints the YANG model
srl_nokia-ip-route-tables: a route names a next-hop group by the group's index, and a group names
its next hops by their indices. `check routes` reads the output by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
from compilers.readers.devices.neighbour_facts import as_list
from compilers.targets.srlinux.outputs import without_modules

COMMANDS = "info from state network-instance * route-table | as json"
"""The command that prints the routes."""
Tree = dict[str, Any]
"""A mapping of the model, whose keys have no names of YANG modules (`without_modules`)."""
REFUSED_TEXT = re.compile(r"route table of network instance ", re.M)
"""How an output without `as json` is recognized, which is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document has the state of network instances."""
    return "network-instance" in without_modules(document)


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The active routes of all network instances.

    The routes and the groups of a network instance may be in several documents.
    """
    held_routes = HeldRoutes()
    instances: dict[str, list[Tree]] = {}
    for document in documents:
        for instance in as_list(without_modules(document).get("network-instance")):
            properties = without_modules(instance)
            tables = instances.setdefault(str(properties.get("name", "default")), [])
            tables.append(without_modules(properties.get("route-table")))
    groups = {name: _groups(tables) for name, tables in instances.items()}
    for name, tables in instances.items():
        for family in ("ipv4", "ipv6"):
            for route in _active_routes(tables, family):
                # A route may use a group of another network instance.
                instance_of_group = str(route.get("next-hop-group-network-instance", name))
                hops = groups.get(instance_of_group, {}).get(str(route.get("next-hop-group")), ())
                if hops:
                    table_name = MAIN_TABLE if name == "default" else name
                    prefix = str(route.get(f"{family}-prefix"))
                    held_routes.add(table_name, prefix, ONE_PREFERENCE, hops)
    return held_routes


def _active_routes(tables: list[Tree], family: str) -> Iterator[Tree]:
    """The routes of a family that are in the forwarding table."""
    for table in tables:
        unicast = without_modules(table.get(f"{family}-unicast"))
        for route in map(without_modules, as_list(unicast.get("route"))):
            if route.get("active", True):
                yield route


def _groups(tables: list[Tree]) -> dict[str, Hops]:
    """The next hops of every group, by the group's index.

    A next hop is usable if it has an address or a subinterface. A group without usable next hops
    discards packets.
    """
    hop_by_index = {str(hop.get("index")): hop for hop in _entries(tables, "next-hop")}
    hops_by_group: dict[str, Hops] = {}
    for group in _entries(tables, "next-hop-group"):
        members = [without_modules(member) for member in as_list(group.get("next-hop"))]
        # A member without `next-hop` has the index of the next hop as its own.
        indices = [str(member.get("next-hop", member.get("index"))) for member in members]
        hops = [hop_by_index[index] for index in indices if index in hop_by_index]
        usable = [hop for hop in hops if "ip-address" in hop or "subinterface" in hop]
        gateways_and_interfaces = (
            (str(hop.get("ip-address", "")), _interface(hop), 1) for hop in usable
        )
        group_index = str(group.get("index"))
        hops_by_group[group_index] = hops_of(gateways_and_interfaces) if usable else DISCARD
    return hops_by_group


def _entries(tables: list[Tree], key: str) -> list[Tree]:
    """The entries of a list of the model, such as `next-hop`, over all tables."""
    return [without_modules(entry) for table in tables for entry in as_list(table.get(key))]


def _interface(hop: Tree) -> str:
    """The interface of a next hop; ANY for a next hop that another route resolves.

    Subinterface 0 of a port is the port itself.
    """
    return str(hop.get("subinterface", ANY)).removesuffix(".0")


FORM = RoutingTableForm(COMMANDS, fits, read, text=REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target srlinux."""
