"""An independent reader of what the linux and frr targets write, and of what a kernel holds.

All of them become {table: {prefix: [{interface: weight}, …]}}: a list in the order of metrics.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from ipaddress import ip_network

MAIN = 254


def read_linux(folder):
    """Tables of the batch file, and {interface: table} of the rules."""
    devices, tables = {}, defaultdict(lambda: defaultdict(dict))
    for words in _lines(folder / "routes.batch"):
        head, *rest = words
        if words[:3] == ["nexthop", "replace", "id"]:
            given = dict(zip(words[4::2], words[5::2], strict=True))
            if "group" in given:
                members = (member.split(",") for member in given["group"].split("/"))
                devices[words[3]] = {_only(devices[i]): int(weight) for i, weight in members}
            else:
                devices[words[3]] = {given["dev"]: 1}
        elif rest[1] != "unreachable":
            assert (head, rest[0]) == ("route", "replace")
            given = dict(zip(rest[2::2], rest[3::2], strict=True))
            place = tables[int(given["table"])][_full(rest[1])]
            assert int(given["metric"]) not in place, words
            place[int(given["metric"])] = devices[given["nhid"]]
    return _by_metric(tables), _rules(folder)


def read_frr(folder):
    """The static routes of an frr.conf by table and distance, and {interface: table} of rules."""
    tables = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for words in _lines(folder / "frr.conf"):
        if words[:2] not in (["ip", "route"], ["ipv6", "route"]) or words[3] == "reject":
            continue
        _, _, prefix, _, interface, *rest = words
        distance = int(rest.pop(0)) if rest and rest[0].isdecimal() else 1
        rest = [word for word in rest if word not in ("onlink", "bfd")]
        given = dict(zip(rest[::2], map(int, rest[1::2]), strict=True))
        table, weight = given.pop("table", MAIN), given.pop("weight", 1)
        assert not given, words
        place = tables[table][_full(prefix)][distance]
        assert interface not in place, words
        place[interface] = weight
    return _by_metric(tables), _rules(folder)


def read_kernel(ipv4, ipv6, protocols):
    """The same from `ip -details -json route show table all` of both families."""
    tables = defaultdict(lambda: defaultdict(dict))
    for route in [*json.loads(ipv4), *json.loads(ipv6)]:
        if route["protocol"] not in protocols or route["type"] != "unicast":
            continue
        table = MAIN if route.get("table", "main") == "main" else int(route["table"])
        hops = route.get("nexthops") or [route]
        weights = {hop["dev"]: hop.get("weight", 1) for hop in hops}
        tables[table][_full(route["dst"])][route.get("metric", 0)] = weights
    return _by_metric(tables)


def choices(tables, rules, prefix, interface=""):
    """The sets of ports tried one after the other for what comes in on an interface."""
    before = tables.get(rules.get(interface), {}).get(prefix, [])
    return [*before, *tables[MAIN].get(prefix, [])]


def _by_metric(tables):
    return {
        table: {prefix: [found for _, found in sorted(by.items())] for prefix, by in rows.items()}
        for table, rows in tables.items()
    }


def _rules(folder):
    rules = {}
    for words in _lines(folder / "rules.batch"):
        given = dict(zip(words[2::2], words[3::2], strict=True))
        rules[given["iif"]] = int(given["lookup"])
    return rules


@cache
def _full(prefix):
    """One text for every prefix, whoever wrote it."""
    return str(ip_network(prefix))


def _lines(path):
    lines = path.read_text().splitlines()
    return [line.split() for line in lines if line and line[0] not in "#!"]


def _only(found):
    (device,) = found
    return device


def transit(build, vertex, egress, in_port):
    """The ports that a packet in transit tries, in order: the rule of `Classes`, spelt out."""
    c = build.tables.classes
    minimal = int(c.port[vertex, egress])
    order = [minimal, *c.protection[vertex, egress].tolist()]
    tried = c.bounce[vertex, egress].tolist() if in_port == minimal else order
    result = [port for port in tried if port and port != in_port]
    return result + [in_port] * (in_port in order and in_port != 0)


def entering(build, vertex, egress):
    """{port: weight} of a class for packets from hosts; {} where they go as in transit."""
    c = build.tables.classes
    ports = [int(c.port[vertex, egress]), *c.alternate[vertex, egress].tolist()]
    weights = c.weight[vertex, egress].tolist()
    return {port: weight for port, weight in zip(ports, weights, strict=True) if port and weight}
