"""Static routes as lines of a configuration, and what to type to get from some to others.

A configuration says more than routes. Only lines inside the fabric's address pools and in its own
tables are looked at: others belong to other owners.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inventory.neighbours.facts import mapping
from inventory.route_tables.held_routes import MAIN, Place, inside, prefix_text, whole_prefix
from inventory.route_tables.kernel_routes import OURS

JUNOS_ROUTE = re.compile(
    r"set (?P<at>(?:routing-instances (?P<table>\S+) )?routing-options (?:rib \S+ )?static route "
    r"(?P<prefix>\S+)) (?P<leaf>\S+)(?P<value>.*)"
)
DEFAULTS = ("default", "")
"""What systems call the table of everybody."""
STATIC_ROUTE = "STATIC_ROUTE"
KERNEL_MAIN = "254"
"""The number of a kernel's main table."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """Lines to type: those that add, then those that take away."""

    add: tuple[str, ...]
    remove: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.add or self.remove)


@dataclass(frozen=True, slots=True)
class RouteLine:
    """A line about a static route.

    table: the VRF or the number, MAIN for that of everybody. words: what tells the line from others
    about the prefix, in one order. leaf: what the prefix has once only, so that another line
    replaces this one; "" for a next hop of several. add: types the line; drop takes it away, clear
    the whole prefix ("" where lines go one by one).
    """

    table: str
    prefix: str
    words: tuple[str, ...]
    leaf: str
    add: str
    drop: str
    clear: str = ""

    @property
    def place(self) -> Place:
        """Table and prefix."""
        return self.table, self.prefix

    def moved(self, prefix: str) -> RouteLine:
        """The same of another prefix."""
        add, drop, clear = (
            text.replace(self.prefix, prefix) for text in (self.add, self.drop, self.clear)
        )
        return replace(self, prefix=prefix, add=add, drop=drop, clear=clear)


def remediation(there: Iterable[RouteLine], wanted: Iterable[RouteLine]) -> Remediation:
    """What to type on a device that has some lines so that it has the wanted ones."""
    wanted = list(wanted)
    there = list(there)
    held = {(*line.place, line.words) for line in there}
    kept: dict[Place, set[str]] = {}
    for line in wanted:
        kept.setdefault(line.place, set()).add(line.leaf)
    asked = {(*line.place, line.words) for line in wanted}
    add = [line.add for line in wanted if (*line.place, line.words) not in held]
    remove = []
    for line in there:
        if (*line.place, line.words) not in asked:
            leaves = kept.get(line.place)
            if leaves is None:
                remove.append(line.clear or line.drop)
            elif not line.leaf or line.leaf not in leaves:
                remove.append(line.drop)
    return Remediation(tuple(dict.fromkeys(add)), tuple(dict.fromkeys(remove)))


def fabric_lines(
    lines: Iterable[RouteLine], pools: tuple[str, ...], vrf: str = ""
) -> Iterator[RouteLine]:
    """Those of the fabric's tables (MAIN, numbers, the VRF of the hosts) inside its pools."""
    for line in lines:
        if (line.table in (MAIN, vrf) or line.table.isdecimal()) and inside(line.prefix, pools):
            yield line


def section_lines(text: str) -> Iterator[RouteLine]:
    """Those of FRR, EOS and NX-OS; the words behind a prefix may be printed in another order."""
    section = ""
    for line in text.splitlines():
        words, inside = line.split(), line[:1] == " "
        if not inside:
            section = line.rstrip() if words[:1] == ["vrf"] else ""
        if words[:2] not in (["ip", "route"], ["ipv6", "route"]) or (inside and not section):
            continue
        table, rest = section.split()[-1] if inside else MAIN, words[2:]
        if rest[0] == "vrf":
            table, rest = rest[1], rest[2:]
        elif "table" in rest:
            table = rest[rest.index("table") + 1]
        # Without `exit` the next line of the main table would be about the VRF.
        typed = f"{section}\n  {{}}{' '.join(words)}\n  exit" if inside else f"{{}}{line.rstrip()}"
        yield RouteLine(
            table,
            prefix_text(rest[0]),
            tuple(sorted(rest[1:])),
            leaf="",
            add=typed.format(""),
            drop=typed.format("no "),
        )


def junos_lines(text: str) -> Iterator[RouteLine]:
    """Those of `show configuration | display set`."""
    for line in text.splitlines():
        if found := JUNOS_ROUTE.fullmatch(line.strip()):
            at, leaf, value = found["at"], found["leaf"], found["value"]
            many, table = leaf == "next-hop", found["table"] or ""
            yield RouteLine(
                MAIN if table in DEFAULTS else table,
                prefix_text(found["prefix"]),
                (leaf, value.strip()),
                leaf="" if many else leaf,
                add=line.strip(),
                drop=f"delete {at} {leaf}{value if many else ''}",
                clear=f"delete {at}",
            )


def sonic_lines(tree: Mapping[str, Any]) -> Iterator[RouteLine]:
    """Those of CONFIG_DB: an entry is written in one command, or readers would see half of it."""
    for key, entry in mapping(tree.get(STATIC_ROUTE)).items():
        vrf, _, prefix = key.rpartition("|")
        at = shlex.quote(f"{STATIC_ROUTE}|{key}")
        pairs = sorted((name, str(value)) for name, value in mapping(entry).items())
        values = " ".join(f"{name} {shlex.quote(value)}" for name, value in pairs)
        yield RouteLine(
            MAIN if vrf in DEFAULTS else vrf,
            prefix_text(prefix),
            tuple(f"{name}={value}" for name, value in pairs),
            leaf="entry",
            add=f"sonic-db-cli CONFIG_DB HSET {at} {values}",
            drop=f"sonic-db-cli CONFIG_DB DEL {at}",
        )


def kernel_remediation(routes: str, nexthops: str, batch: str) -> Remediation:
    """Lines for `ip -force -batch`; nothing that is not of polarfab's protocol is touched.

    A route of the same table and metric is replaced, so only those of other metrics are taken away,
    then next hops that nothing uses any more.

    Args:
        routes: what `ip -json route show table all` prints.
        nexthops: what `ip -json nexthop` prints.
        batch: routes.batch.
    """
    # Groups have higher numbers than the links that they consist of.
    objects = sorted(_ours(nexthops), key=lambda entry: -int(entry["id"]))
    there = (*map(_held_route, _ours(routes)), *map(_held_nexthop, objects))
    return remediation(there, filter(None, map(_batch_line, batch.splitlines())))


def rule_remediation(rules4: str, rules6: str, batch: str) -> Remediation:
    """Policy rules of IPv4 and of IPv6, as lines for `ip -batch` behind -4 and -6.

    Args:
        rules4: what `ip -json -4 rule` prints.
        rules6: what `ip -json -6 rule` prints.
        batch: rules.batch, for both.
    """
    families = {"-4": rules4, "-6": rules6}
    wanted = [line for line in batch.splitlines() if line.startswith("rule add ")]
    held = [
        f"{family} rule add iif {e['iif']} lookup {e['table']} pref {e['priority']} protocol 80"
        for family, shown in families.items()
        for e in _ours(shown)
        if "iif" in e
    ]
    return remediation(
        map(_rule, held), (_rule(f"{family} {line}") for family in families for line in wanted)
    )


def _ours(shown: str) -> list[dict[str, Any]]:
    """The entries of polarfab's protocol."""
    return [entry for entry in json.loads(shown or "[]") if str(entry.get("protocol")) == OURS]


def _rule(text: str) -> RouteLine:
    return RouteLine("", text, (), "", text, text.replace(" add ", " delete ", 1))


def _batch_line(line: str) -> RouteLine | None:
    """A line of routes.batch; None: it is a comment, or of the user's own."""
    match line.split():
        case ["nexthop", "replace", "id", number, kind, next_hop, *rest]:
            device = rest[1] if kind == "via" else ""
            return _nexthop(number, next_hop, device, line)
        case ["route", "replace", *words]:
            kind = words.pop(0) if words[0] in ("unreachable", "throw") else ""
            prefix, said = words[0], dict(zip(words[1::2], words[2::2], strict=False))
            if "metric" in said and (kind or "nhid" in said):
                table, does = said.get("table", KERNEL_MAIN), (kind, said.get("nhid", ""))
                return _kernel_route(prefix, table, said["metric"], does, line)
    return None


def _held_route(entry: Mapping[str, Any]) -> RouteLine:
    kind, table = str(entry.get("type", "")), str(entry.get("table", KERNEL_MAIN))
    table = KERNEL_MAIN if table == MAIN else table
    does = kind.replace("unicast", ""), str(entry.get("nhid", ""))
    prefix = whole_prefix(str(entry["dst"]))
    return _kernel_route(prefix, table, str(entry.get("metric", 0)), does, kind=f"{kind} ".lstrip())


def _held_nexthop(entry: Mapping[str, Any]) -> RouteLine:
    members = "/".join(f"{m['id']},{m.get('weight', 1)}" for m in entry.get("group", ()))
    next_hop = members or str(entry.get("gateway", ""))
    return _nexthop(str(entry["id"]), next_hop, str(entry.get("dev", "")))


def _kernel_route(
    prefix: str, table: str, metric: str, does: tuple[str, str], add: str = "", kind: str = ""
) -> RouteLine:
    at = f"{prefix} metric {metric}"
    drop = f"route delete {kind}{at} table {table} protocol {OURS}"
    return RouteLine(table, at, does, "route", add, drop)


def _nexthop(number: str, next_hop: str, device: str, add: str = "") -> RouteLine:
    """A nexthop object; the members of a group are in one order."""
    does = "/".join(sorted(next_hop.split("/"))), device
    return RouteLine("", f"nexthop {number}", does, "nexthop", add, f"nexthop delete id {number}")
