"""Reader of the routes of a Linux kernel, as iproute2 prints them in JSON.

The outputs are those of `ip -json route show table all`, `ip -json nexthop` and `ip -json rule`. A
route may name a *nexthop object* by its number: a next hop, or a group of next hops. `check routes`
and a push read the outputs by `FORM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    MAIN_TABLE,
    THROW,
    HeldRoutes,
    Hops,
    RoutingTableForm,
    canonical_hops,
    hops_of,
    whole_prefix,
)
from compilers.readers.devices.neighbour_facts import as_list, as_mapping

COMMANDS = "ip -json route show table all, ip -json nexthop, ip -json -4 rule, ip -json -6 rule"
"""The commands whose outputs are read, in messages."""
RULES_KEY = "priority"
"""The key that policy rules have, and routes do not have."""
POLARFAB_PROTOCOL = "80"
"""The protocol number of polarfab's routes and rules in the kernel."""
Entry = dict[str, Any]
"""A route, a policy rule or a nexthop object in an output."""
NOT_FORWARDED = {"local", "broadcast", "multicast", "anycast", "nat"}
"""The types of routes that lead to no neighbour."""
DOWN = {"dead", "linkdown"}
"""The flags of next hops whose link is down."""
REFUSED_TEXT = re.compile(
    r"^(?:(?:unreachable|blackhole|local|broadcast|anycast) )?(?:default|[\d.]+(?:/\d+)?"
    r"|[0-9a-f]*:[0-9a-f:]*(?:/\d+)?) (?:via|dev|nhid|proto) ",
    re.M,
)
"""A route as `ip` prints it without `-json`. Such an output is refused."""


def fits(document: Any) -> bool:
    """Whether a JSON document is an output of iproute2 about routes, rules or nexthop objects.

    An empty list is none: it does not say what it is about.
    """
    first = as_mapping(document[0]) if isinstance(document, list) and document else {}
    return not first.keys().isdisjoint(("dst", RULES_KEY)) or "id" in first


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes and rules of the documents.

    A route that names a nexthop object has the next hops of the object.

    Args:
        documents: lists with at least one entry each, see `fits`.

    Raises:
        ValueError: there are nexthop objects, but no routes.
    """
    held_routes = HeldRoutes()
    # The first entry of a list tells whether it has routes, rules or nexthop objects.
    lists = [as_list(document) for document in documents]
    objects = {entry["id"]: entry for entries in lists if "id" in entries[0] for entry in entries}
    if objects and not any("dst" in entries[0] for entries in lists):
        raise ValueError("next hops alone, without routes")
    for entries in lists:
        if RULES_KEY in entries[0]:
            _add_rules(held_routes, entries)
        elif "dst" in entries[0]:
            _add_routes(held_routes, entries, objects)
    return held_routes


def _add_routes(held_routes: HeldRoutes, entries: list[Entry], objects: dict[Any, Entry]) -> None:
    """Add the routes of an output that forward, discard or throw packets.

    Default routes are left out: no route of a fabric is one, and `default` does not say the address
    family.

    Args:
        held_routes: gets the routes.
        entries: the routes of the output.
        objects: the nexthop objects by number.
    """
    for entry in entries:
        kind, prefix = entry.get("type", "unicast"), entry["dst"]
        if kind in NOT_FORWARDED or prefix == "default":
            continue
        hops = _hops(entry, kind, objects)
        if not hops:
            continue
        if entry.get("protocol") == POLARFAB_PROTOCOL:
            # Target linux puts all choices into the kernel. Daemons put only the best one there.
            held_routes.all_choices = True
        table = entry.get("table", MAIN_TABLE)
        table_name = MAIN_TABLE if table == "254" else str(table)
        prefix = prefix if "/" in prefix else whole_prefix(prefix)
        held_routes.add(table_name, prefix, entry.get("metric", 0), hops)


def _hops(entry: Entry, kind: str, objects: dict[Any, Entry]) -> Hops:
    """The next hops of a route that are up; () if none is.

    Args:
        entry: the route.
        kind: the type of the route, such as `unicast`.
        objects: the nexthop objects by number.
    """
    if kind != "unicast":
        return THROW if kind == "throw" else DISCARD
    if "dev" in entry:
        return () if DOWN.intersection(entry["flags"] or ()) else _single_hop(*_hop(entry))
    members = entry.get("nexthops")
    if members is None:
        members = _members_of_object(objects.get(entry.get("nhid"), {}), objects)
    return hops_of(
        (*_hop(member), int(member.get("weight", 1)))
        for member in members
        if "dev" in member and not DOWN.intersection(member.get("flags", ()))
    )


def _members_of_object(nexthop_object: Entry, objects: dict[Any, Entry]) -> list[Entry]:
    """The next hops of a nexthop object.

    They are the members of a group, each with its weight, or the object itself.
    """
    members = []
    for member in as_list(nexthop_object.get("group")):
        weight = member.get("weight", 1)
        members.append({**objects.get(member.get("id"), {}), "weight": weight})
    return members or [nexthop_object]


def _hop(entry: Entry) -> tuple[str, str]:
    """The gateway and the interface of a next hop; the gateway is "" if there is none.

    The gateway of another address family than the route's is in `via`.
    """
    via = entry.get("via")
    gateway = via["host"] if via else entry.get("gateway", "")
    return gateway, entry["dev"]


@lru_cache(1 << 16)
def _single_hop(gateway: str, interface: str) -> Hops:
    """A choice with one next hop; cached, as a switch has many routes over few next hops."""
    return canonical_hops(((gateway, interface, 1),))


def _add_rules(held_routes: HeldRoutes, entries: list[Entry]) -> None:
    """Add polarfab's policy rules of one address family.

    An output does not say its family, but only IPv4 has a rule for the table `default`
    (ip-rule(8)).
    """
    is_ipv4 = any(entry.get("table") in ("default", "253") for entry in entries)
    family = IPV4_RULES if is_ipv4 else IPV6_RULES
    held_routes.by_table.setdefault(family, {})  # all rules are missing if there are none
    for entry in entries:
        if "iif" in entry and str(entry.get("protocol")) == POLARFAB_PROTOCOL:
            table = ((f"table {entry.get('table')}", "", 1),)  # in the form of a next hop
            held_routes.add(family, f"iif {entry['iif']}", int(entry[RULES_KEY]), table)


FORM = RoutingTableForm(COMMANDS, fits, read, RULES_KEY, REFUSED_TEXT)
"""The form of these outputs, which is `Target.routing_tables` of target linux."""
