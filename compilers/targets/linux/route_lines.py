"""Routes, nexthop objects and policy rules of a Linux kernel as lines for `ip`.

A kernel's state (`ip -json`) and the rendered files (`routes.batch`, `rules.batch`) are both turned
into `RouteLine`s, whose comparison gives the lines to type.
"""

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
    """The lines for `ip -force -batch` that lead from a kernel's routes to those of a file.

    Entries of other protocols than polarfab's stay. A route replaces that of the same table and
    metric, so only routes of other metrics are taken away, then nexthop objects without a use.

    Args:
        routes: what `ip -json route show table all` prints.
        nexthops: what `ip -json nexthop` prints.
        batch: routes.batch.
    """
    # Groups have higher numbers than the links that they consist of.
    objects = sorted(_ours(nexthops), key=lambda entry: -int(entry["id"]))
    held = (*map(_held_route, _ours(routes)), *map(_held_nexthop, objects))
    return remediation(held, filter(None, map(_batch_line, batch.splitlines())))


def rule_remediation(rules4: str, rules6: str, batch: str) -> Remediation:
    """The lines that lead from a kernel's policy rules to those of a file, each behind -4 or -6.

    Args:
        rules4: what `ip -json -4 rule` prints.
        rules6: what `ip -json -6 rule` prints.
        batch: rules.batch, which has the rules of both families.
    """
    families = {"-4": rules4, "-6": rules6}
    wanted = [line for line in batch.splitlines() if line.startswith("rule add ")]
    held = [
        f"{family} rule add iif {rule['iif']} lookup {rule['table']} pref {rule['priority']} "
        "protocol 80"
        for family, shown in families.items()
        for rule in _ours(shown)
        if "iif" in rule
    ]
    return remediation(
        map(_rule, held), (_rule(f"{family} {line}") for family in families for line in wanted)
    )


def _ours(shown: str) -> list[dict[str, Any]]:
    """The entries of polarfab's protocol."""
    return [entry for entry in json.loads(shown or "[]") if str(entry.get("protocol")) == OURS]


def _rule(text: str) -> RouteLine:
    """A policy rule; it differs from another in any word."""
    return RouteLine("", text, (), "", text, text.replace(" add ", " delete ", 1))


def _batch_line(line: str) -> RouteLine | None:
    """A line of routes.batch; None: it is a comment, or the user added it."""
    match line.split():
        case ["nexthop", "replace", "id", number, kind, next_hop, *rest]:
            device = rest[1] if kind == "via" else ""
            return _nexthop(number, next_hop, device, line)
        case ["route", "replace", *words]:
            kind = words.pop(0) if words[0] in ("unreachable", "throw") else ""
            prefix, values = words[0], dict(zip(words[1::2], words[2::2], strict=False))
            if "metric" in values and (kind or "nhid" in values):
                table, action = values.get("table", KERNEL_MAIN), (kind, values.get("nhid", ""))
                return _kernel_route(prefix, table, values["metric"], action, line)
    return None


def _held_route(entry: Mapping[str, Any]) -> RouteLine:
    """A route of the kernel, in the form of `ip -json route`."""
    kind, table = str(entry.get("type", "")), str(entry.get("table", KERNEL_MAIN))
    table = KERNEL_MAIN if table == MAIN else table
    action = kind.replace("unicast", ""), str(entry.get("nhid", ""))
    prefix, metric = whole_prefix(str(entry["dst"])), str(entry.get("metric", 0))
    return _kernel_route(prefix, table, metric, action, kind=f"{kind} ".lstrip())


def _held_nexthop(entry: Mapping[str, Any]) -> RouteLine:
    """A nexthop object of the kernel, in the form of `ip -json nexthop`."""
    group = entry.get("group", ())
    members = "/".join(f"{member['id']},{member.get('weight', 1)}" for member in group)
    next_hop = members or str(entry.get("gateway", ""))
    return _nexthop(str(entry["id"]), next_hop, str(entry.get("dev", "")))


def _kernel_route(
    prefix: str, table: str, metric: str, action: tuple[str, str], add: str = "", kind: str = ""
) -> RouteLine:
    """A route.

    Args:
        prefix: the destination.
        table: the number of the table.
        metric: routes of one prefix with several metrics do not replace each other.
        action: `unreachable` or `throw` and "", or "" and the number of the nexthop object.
        add: the line that adds it; "" for a route that the kernel has.
        kind: the type and a blank, where `ip route delete` needs it.
    """
    key = f"{prefix} metric {metric}"
    drop = f"route delete {kind}{key} table {table} protocol {OURS}"
    return RouteLine(table, key, action, "route", add, drop)


def _nexthop(number: str, next_hop: str, device: str, add: str = "") -> RouteLine:
    """A nexthop object; the members of a group are sorted, as their order means nothing."""
    words = "/".join(sorted(next_hop.split("/"))), device
    return RouteLine("", f"nexthop {number}", words, "nexthop", add, f"nexthop delete id {number}")
