"""What to do on a switch so that it holds the routes of its build: what to add, what to take away.

Of Linux it is computed from what the kernel holds and what was rendered: lines for `ip -batch`.
Nothing that is not of polarfab's protocol is touched. For systems with a configuration see
`route_lines`; here, what a person types on them, from the differences of their tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compilers.audit.route_differences import RouteDifference
from inventory.route_tables.held_routes import MAIN, Hop
from inventory.route_tables.kernel_routes import OURS

SINGLE = ("/32", "/128")
"""The ends of prefixes of one address."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """Lines to type: those that add, then those that take away."""

    add: tuple[str, ...]
    remove: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.add or self.remove)


def kernel_remediation(routes: str, nexthops: str, batch: str) -> Remediation:
    """Lines for `ip -force -batch`.

    A route of the same table and metric is replaced, so only those of other metrics are taken away,
    then next hops that nobody uses any more.

    Args:
        routes: what `ip -json route show table all` prints.
        nexthops: what `ip -json nexthop` prints.
        batch: routes.batch.
    """
    add: list[str] = []
    remove: list[str] = []
    objects = {_nexthop(entry) for entry in json.loads(nexthops or "[]") if _ours(entry)}
    there = {_route(entry): entry for entry in json.loads(routes or "[]") if _ours(entry)}
    wanted_ids: set[int] = set()
    wanted_routes: set[tuple[str, str, int]] = set()
    for line in batch.splitlines():
        match line.split():
            case ["nexthop", "replace", "id", number, kind, way, *rest]:
                wanted_ids.add(int(number))
                device = rest[1] if kind == "via" else ""
                members = _members(way) if kind == "group" else way
                if (int(number), members, device) not in objects:
                    add.append(line)
            case ["route", "replace", "unreachable", prefix, "metric", metric, *rest]:
                key = prefix, rest[1] if rest[0] == "table" else "254", int(metric)
                wanted_routes.add(key)
                if key not in there:
                    add.append(line)
            case ["route", "replace", "throw", prefix, "metric", metric, "table", table, *_]:
                key = prefix, table, int(metric)
                wanted_routes.add(key)
                if there.get(key, {}).get("type") != "throw":
                    add.append(line)
            case ["route", "replace", prefix, "nhid", number, "metric", metric, "table", table, *_]:
                key = prefix, table, int(metric)
                wanted_routes.add(key)
                if there.get(key, {}).get("nhid") != int(number):
                    add.append(line)
    for key, entry in there.items():
        if key not in wanted_routes:
            kind = f"{entry['type']} " if "type" in entry else ""
            remove.append(f"route delete {kind}{key[0]} metric {key[2]} table {key[1]} protocol 80")
    stale = {number for number, _, _ in objects} - wanted_ids
    # Groups have higher numbers than the links that they consist of.
    remove += [f"nexthop delete id {number}" for number in sorted(stale, reverse=True)]
    return Remediation(tuple(add), tuple(remove))


def rule_remediation(rules4: str, rules6: str, batch: str) -> tuple[Remediation, Remediation]:
    """Policy rules of IPv4 and of IPv6, as lines for `ip -batch` of each.

    Args:
        rules4: what `ip -json -4 rule` prints.
        rules6: what `ip -json -6 rule` prints.
        batch: rules.batch, for both.
    """
    wanted = [line for line in batch.splitlines() if line.startswith("rule add ")]
    return _rules(rules4, wanted), _rules(rules6, wanted)


def _rules(shown: str, wanted: list[str]) -> Remediation:
    there = [
        f"rule add iif {entry['iif']} lookup {entry['table']} pref {entry['priority']} protocol 80"
        for entry in json.loads(shown or "[]")
        if _ours(entry) and "iif" in entry
    ]
    add = (line for line in wanted if line not in there)
    remove = (line.replace(" add ", " delete ", 1) for line in there if line not in wanted)
    return Remediation(tuple(add), tuple(remove))


def _ours(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("protocol")) == OURS


def _route(entry: Mapping[str, Any]) -> tuple[str, str, int]:
    """Prefix, table and metric: what tells one route of the kernel from another."""
    prefix, table = str(entry["dst"]), str(entry.get("table", "254"))
    if "/" not in prefix:
        prefix = f"{prefix}/{128 if ':' in prefix else 32}"
    return prefix, "254" if table == MAIN else table, int(entry.get("metric", 0))


def _nexthop(entry: Mapping[str, Any]) -> tuple[int, str, str]:
    """Its number, where it leads, and the device."""
    members = "/".join(f"{m['id']},{m.get('weight', 1)}" for m in entry.get("group", ()))
    way = _members(members) if members else str(entry.get("gateway", ""))
    return int(entry["id"]), way, str(entry.get("dev", ""))


def _members(text: str) -> str:
    """The members of a group in one order."""
    return "/".join(sorted(text.split("/")))


def typed(system: str, differences: Iterable[RouteDifference], hosts: str = "") -> Remediation:
    """What a person types on a system whose routes have one choice each.

    Args:
        system: one of TYPED.
        differences: of one switch.
        hosts: the VRF of the hosts, to whose single addresses the main table leads.
    """
    line = TYPED[system]
    add: list[str] = []
    remove: list[str] = []
    for one in differences:
        wanted, found = (
            [hop for hops in choices for hop in hops] for choices in (one.wanted, one.found)
        )
        towards = "default" if one.table != MAIN else ""
        back = hosts if one.table == MAIN and one.prefix.endswith(SINGLE) else towards
        add += [line(True, one, hop, back) for hop in wanted if hop not in found]
        remove += [line(False, one, hop, towards) for hop in found if hop not in wanted]
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


Line = Callable[[bool, RouteDifference, Hop, str], str]
"""The line that adds a next hop, or takes it away; it may be in another VRF, "" if it is not."""


def _eos(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    vrf = "" if one.table == MAIN else f" vrf {one.table}"
    egress = f"egress-vrf {towards} " if towards else ""
    way = "Null0 254" if hop[0] == "discard" else f"{egress}{hop[1]} {hop[0]}"
    return f"{'' if add else 'no '}{_family(one)} route{vrf} {one.prefix} {way}"


def _nxos(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    context = "" if one.table == MAIN else f"vrf context {one.table}\n  "
    end = "\n  exit" if context else ""
    other = f" vrf {towards}" if towards else ""
    way = "Null0 254" if hop[0] == "discard" else f"{hop[1]} {hop[0]}{other}"
    return f"{context}{'' if add else 'no '}{_family(one)} route {one.prefix} {way}{end}"


def _family(one: RouteDifference) -> str:
    return "ipv6" if ":" in one.prefix else "ip"


def _junos(add: bool, one: RouteDifference, hop: Hop, _: str) -> str:
    instance = "" if one.table == MAIN else f"routing-instances {one.table} "
    six = ":" in one.prefix
    rib = (f"rib {'' if one.table == MAIN else f'{one.table}.'}inet6.0 ") * six
    word = "set" if add else "delete"
    route = f"{word} {instance}routing-options {rib}static route {one.prefix}"
    if hop[0] != "discard":
        return f"{route} next-hop {hop[0]}"
    return f"{route} discard\n{route} preference 254" if add else route


def _sonic(add: bool, one: RouteDifference, hop: Hop, towards: str) -> str:
    """`config route` overwrites a share in a VRF (sonic-utilities issue 2690): by the file only."""
    if towards:
        key = f"STATIC_ROUTE|{'default' if one.table == MAIN else one.table}|{one.prefix}"
        return "config load config_db.json" if add else f"sonic-db-cli CONFIG_DB del '{key}'"
    way = "dev null" if hop[0] == "discard" else f"nexthop {hop[0]} dev {hop[1]}"
    return f"config route {'add' if add else 'del'} prefix {one.prefix} {way}"


def _srlinux(add: bool, one: RouteDifference, hop: Hop, _: str) -> str:
    instance = "default" if one.table == MAIN else one.table
    route = f"/ network-instance {instance} static-routes route {one.prefix}"
    if not add:
        return f"delete {route}"
    family = "ipv6" if ":" in one.prefix else "ipv4"
    group = "nowhere" if hop[0] == "discard" else f"{hop[1]}-{family}"
    return f"set {route} next-hop-group {group}"


TYPED: Mapping[str, Line] = {
    "eos": _eos,
    "nxos": _nxos,
    "junos": _junos,
    "sonic": _sonic,
    "srlinux": _srlinux,
}
