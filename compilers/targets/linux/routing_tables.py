"""`ip -json route show table all`, `ip -json nexthop` and `ip -json rule` of iproute2."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from compilers.readers.devices.held_routes import (
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    MAIN,
    THROW,
    HeldRoutes,
    Hops,
    RoutingTables,
    hops_of,
    shared,
    whole_prefix,
)
from compilers.readers.devices.neighbour_facts import items, mapping

COMMANDS = "ip -json route show table all, ip -json nexthop, ip -json -4 rule, ip -json -6 rule"
RULES_KEY = "priority"
OURS = "80"
"""The protocol of the routes and rules of target linux, of which the kernel holds every choice."""
Tree = dict[str, Any]
NOT_FORWARDED = {"local", "broadcast", "multicast", "anycast", "nat"}
LOST = {"dead", "linkdown"}
DEAD_ENDS = {"throw": THROW}


TEXT = re.compile(
    r"^(?:(?:unreachable|blackhole|local|broadcast|anycast) )?(?:default|[\d.]+(?:/\d+)?"
    r"|[0-9a-f]*:[0-9a-f:]*(?:/\d+)?) (?:via|dev|nhid|proto) ",
    re.M,
)


def fits(document: Any) -> bool:
    """Whether iproute2 prints such."""
    first = mapping(document[0]) if isinstance(document, list) and document else {}
    return not first.keys().isdisjoint(("dst", "priority")) or "id" in first


def read(documents: Iterable[Any]) -> HeldRoutes:
    """The routes and rules; next hops that are objects of their own are looked up."""
    held = HeldRoutes()
    lists = [items(document) for document in documents]
    objects = {entry["id"]: entry for entries in lists if "id" in entries[0] for entry in entries}
    if objects and not any("dst" in entries[0] for entries in lists):
        raise ValueError("next hops alone, without routes")
    for entries in lists:
        if RULES_KEY in entries[0]:
            _rules(held, entries)
        elif "dst" in entries[0]:
            _routes(held, entries, objects)
    return held


def _routes(held: HeldRoutes, entries: list[Tree], objects: dict[Any, Tree]) -> None:
    add = held.add
    for entry in entries:
        get = entry.get
        kind, prefix = get("type", "unicast"), entry["dst"]
        if kind in NOT_FORWARDED or prefix == "default":
            continue
        hops = _hops(entry, objects) if kind == "unicast" else DEAD_ENDS.get(kind, DISCARD)
        if not hops:
            continue
        if get("protocol") == OURS:
            held.whole = True
        table = get("table", MAIN)
        table = MAIN if table == "254" else str(table)
        add(table, prefix if "/" in prefix else whole_prefix(prefix), get("metric", 0), hops)


def _hops(entry: Tree, objects: dict[Any, Tree]) -> Hops:
    """Where a route leads, less what is down."""
    if "dev" in entry:
        return _alone(*_hop(entry)) if not LOST.intersection(entry["flags"] or ()) else ()
    members = entry.get("nexthops")
    if members is None:
        found = objects.get(entry.get("nhid"), {})
        members = [
            {**objects.get(member.get("id"), {}), "weight": member.get("weight", 1)}
            for member in items(found.get("group"))
        ] or [found]
    return hops_of(
        (*_hop(member), int(member.get("weight", 1)))
        for member in members
        if "dev" in member and not LOST.intersection(member.get("flags", ()))
    )


def _hop(entry: Tree) -> tuple[str, str]:
    via = entry.get("via")
    return (via["host"] if via else entry.get("gateway", "")), entry["dev"]


@lru_cache(1 << 16)
def _alone(gateway: str, interface: str) -> Hops:
    return shared(((gateway, interface, 1),))


def _rules(held: HeldRoutes, entries: list[Tree]) -> None:
    """Our rules. Of the families only IPv4 has a rule for the table `default` (ip-rule(8))."""
    ipv4 = any(entry.get("table") in ("default", "253") for entry in entries)
    family = IPV4_RULES if ipv4 else IPV6_RULES
    held.rows.setdefault(family, {})
    for entry in entries:
        if "iif" in entry and str(entry.get("protocol")) == OURS:
            chain = ((f"table {entry.get('table')}", "", 1),)
            held.add(family, f"iif {entry['iif']}", int(entry["priority"]), chain)


FORM = RoutingTables(COMMANDS, fits, read, RULES_KEY, TEXT)
