"""Routes, next hops and policy rules of a kernel as lines for `ip`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compilers.readers.devices.held_routes import MAIN, whole_prefix
from compilers.targets.devices.route_lines import Remediation, RouteLine, remediation
from compilers.targets.linux.routing_tables import OURS

KERNEL_MAIN = "254"
"""The number of a kernel's main table."""


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
