"""Routes, nexthop objects and policy rules of a Linux kernel as lines for `ip`.

What a kernel holds (`ip -json`) and the rendered files (`routes.batch`, `rules.batch`) are both
turned into `RouteLine`s, whose comparison gives the lines that a push types (`linux.device`). A
nexthop object is a next hop or a group of next hops. Routes name it by its number.

A line of the file replaces a line of the kernel that has the same table, `prefix` and
`unique_property`. What the fields of a `RouteLine` hold:

| field | route | policy rule | nexthop object |
|---|---|---|---|
| `table` | number of the table | "" | "" |
| `prefix` | prefix and metric | the whole text | `nexthop NUMBER` |
| `words` | its `RouteAction` | () | gateway or members, and interface |
| `unique_property` | `route` | "" | `nexthop` |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from compilers.readers.devices.held_routes import MAIN_TABLE, whole_prefix
from compilers.targets.devices.route_lines import Remediation, RouteLine, remediation
from compilers.targets.linux.routing_tables import POLARFAB_PROTOCOL

KERNEL_MAIN_TEXT = "254"
"""The number of a kernel's main table, as `ip` prints it."""


class RouteAction(NamedTuple):
    """What a kernel does with the packets of a route."""

    kind: str
    """`unreachable` or `throw`; "" if they are forwarded."""
    nexthop_object: str
    """The number of the nexthop object by which they are forwarded; "" if they are not."""


def kernel_remediation(routes: str, nexthops: str, batch: str) -> Remediation:
    """The lines for `ip -force -batch` that lead from a kernel's routes to those of a file.

    Entries of other protocols than polarfab's stay. A route replaces that of the same table and
    metric, so only routes of other metrics are deleted, then nexthop objects that no route uses.

    Args:
        routes: what `ip -json route show table all` prints.
        nexthops: what `ip -json nexthop` prints.
        batch: routes.batch.
    """
    # Groups have higher numbers than the next hops in them, and are deleted before these.
    objects = sorted(_polarfab_entries(nexthops), key=lambda entry: -int(entry["id"]))
    kernel_lines = (
        *map(_kernel_route_line, _polarfab_entries(routes)),
        *map(_kernel_nexthop_line, objects),
    )
    file_lines = filter(None, map(_batch_line, batch.splitlines()))
    return remediation(kernel_lines, file_lines)


def rule_remediation(ipv4_rules: str, ipv6_rules: str, batch: str) -> Remediation:
    """The lines that lead from a kernel's policy rules to those of a file, each behind -4 or -6.

    Args:
        ipv4_rules: what `ip -json -4 rule` prints.
        ipv6_rules: what `ip -json -6 rule` prints.
        batch: rules.batch, which has the rules of both families.
    """
    families = {"-4": ipv4_rules, "-6": ipv6_rules}
    kernel_rules = [
        f"{family} rule add iif {rule['iif']} lookup {rule['table']} pref {rule['priority']} "
        f"protocol {POLARFAB_PROTOCOL}"
        for family, output in families.items()
        for rule in _polarfab_entries(output)
        if "iif" in rule
    ]
    batch_rules = [line for line in batch.splitlines() if line.startswith("rule add ")]
    file_rules = (f"{family} {line}" for family in families for line in batch_rules)
    return remediation(map(_rule_line, kernel_rules), map(_rule_line, file_rules))


def _polarfab_entries(output: str) -> list[dict[str, Any]]:
    """The entries of an output of `ip -json` that have polarfab's protocol number."""
    entries: list[dict[str, Any]] = json.loads(output or "[]")
    return [entry for entry in entries if str(entry.get("protocol")) == POLARFAB_PROTOCOL]


def _rule_line(text: str) -> RouteLine:
    """A policy rule.

    Two rules with different texts are two lines, of which none replaces the other: a rule is added
    or deleted, and never changed.
    """
    return RouteLine(
        table="",
        prefix=text,
        words=(),
        unique_property="",
        add=text,
        remove=text.replace(" add ", " delete ", 1),
    )


def _batch_line(line: str) -> RouteLine | None:
    """A line of routes.batch; None for a comment, or a line that a user has added.

    A nexthop object is `nexthop replace id NUMBER via GATEWAY dev INTERFACE …`, or
    `nexthop replace id NUMBER group MEMBERS …`.
    """
    match line.split():
        case ["nexthop", "replace", "id", number, kind, next_hop, *rest]:
            interface = rest[1] if kind == "via" else ""
            return _nexthop_line(number, next_hop, interface, add=line)
        case ["route", "replace", *words]:
            kind = words.pop(0) if words[0] in ("unreachable", "throw") else ""
            prefix, *options = words
            # The options are pairs of a word and its value: `metric 1 table 254`.
            values = dict(zip(options[::2], options[1::2], strict=False))
            if "metric" in values and (kind or "nhid" in values):
                table = values.get("table", KERNEL_MAIN_TEXT)
                action = RouteAction(kind, values.get("nhid", ""))
                return _route_line(prefix, table, values["metric"], action, add=line)
    return None


def _kernel_route_line(entry: Mapping[str, Any]) -> RouteLine:
    """A route of the kernel, in the form of `ip -json route`."""
    kind, table_name = str(entry.get("type", "")), str(entry.get("table", MAIN_TABLE))
    table = KERNEL_MAIN_TEXT if table_name == MAIN_TABLE else table_name
    action = RouteAction("" if kind == "unicast" else kind, str(entry.get("nhid", "")))
    prefix, metric = whole_prefix(str(entry["dst"])), str(entry.get("metric", 0))
    kind_words = f"{kind} " if kind else ""
    return _route_line(prefix, table, metric, action, kind_words=kind_words)


def _kernel_nexthop_line(entry: Mapping[str, Any]) -> RouteLine:
    """A nexthop object of the kernel, in the form of `ip -json nexthop`."""
    group = entry.get("group", ())
    members = "/".join(f"{member['id']},{member.get('weight', 1)}" for member in group)
    next_hop = members or str(entry.get("gateway", ""))
    return _nexthop_line(str(entry["id"]), next_hop, str(entry.get("dev", "")))


def _route_line(
    prefix: str,
    table: str,
    metric: str,
    action: RouteAction,
    add: str = "",
    kind_words: str = "",
) -> RouteLine:
    """A route, with the metric as a part of its prefix.

    Routes to one prefix with different metrics do not replace each other.

    Args:
        prefix: the destination.
        table: the number of the table.
        metric: the metric.
        action: what the route does with packets.
        add: the line that adds the route, if it is in a file.
        kind_words: the type and a blank, if the kernel has the route and prints a type: a line
            that deletes it needs the type.
    """
    prefix_and_metric = f"{prefix} metric {metric}"
    selector = f"{prefix_and_metric} table {table} protocol {POLARFAB_PROTOCOL}"
    return RouteLine(
        table=table,
        prefix=prefix_and_metric,
        words=action,
        unique_property="route",
        add=add,
        remove=f"route delete {kind_words}{selector}",
    )


def _nexthop_line(number: str, next_hop: str, interface: str, add: str = "") -> RouteLine:
    """A nexthop object.

    Args:
        number: its number.
        next_hop: the gateway, or the members of a group, `ID,WEIGHT/ID,WEIGHT`, in any order.
        interface: the interface; "" for a group.
        add: the line that adds the object, if it is in a file.
    """
    members = "/".join(sorted(next_hop.split("/")))
    return RouteLine(
        table="",
        prefix=f"nexthop {number}",
        words=(members, interface),
        unique_property="nexthop",
        add=add,
        remove=f"nexthop delete id {number}",
    )
