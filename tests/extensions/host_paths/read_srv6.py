"""An independent reader of what the srv6 target writes, and a kernel of its own on paper."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv6Network
from socket import AF_INET6, inet_pton
from struct import unpack

BLOCK = IPv6Network("fc00::/32")


def usids(address):
    """The uSIDs of a carrier, up to the first that is 0."""
    packed = inet_pton(AF_INET6, address)
    assert packed[:4] == BLOCK.network_address.packed[:4]
    found = list(unpack("!6H", packed[4:]))
    return tuple(found[: found.index(0)] if 0 in found else found)


def read_host(folder):
    """{prefix: {uSIDs: weight}} of a host's batch file."""
    carriers, groups, routes = {}, {}, {}
    for words in _lines(folder / "host.batch"):
        if words[:2] == ["nexthop", "replace"]:
            given = dict(zip(words[4::2], words[5::2], strict=True)) if "group" in words else {}
            if given:
                members = (member.split(",") for member in given["group"].split("/"))
                groups[words[3]] = {carriers[n]: int(weight) for n, weight in members}
            else:
                carriers[words[3]] = usids(words[words.index("segs") + 1])
        elif words[2] != "local":
            assert words[3] == "nhid"
            routes[words[2]] = groups.get(words[4]) or {carriers[words[4]]: 1}
    return routes


def read_switch(folder):
    """{prefix: ("End",) | ("End.X", interface) | ("End.DT6",) | ("via", address, interface)}."""
    table = {}
    for words in _lines(folder / "srv6.batch"):
        if words[2] == "local":
            action = words[words.index("action") + 1]
            assert action == "End.DT6" or words[words.index("flavors") :][:6] == [
                *("flavors", "next-csid", "lblen", "32", "nflen", "16")
            ]
            where = (words[words.index("oif") + 1],) if action == "End.X" else ()
            assert words[3] not in table
            table[words[3]] = (action, *where)
        else:
            given = dict(zip(words[3::2], words[4::2], strict=True))
            assert words[2] not in table
            table[words[2]] = ("via", given["via"], given["dev"])
    return {IPv6Network(prefix): row for prefix, row in table.items()}


def read_frr(folder):
    """The same from the file for FRR."""
    table = {}
    for words in _lines(folder / "srv6.conf"):
        if words[0] == "sid":
            behaviour = {"uN": "End", "uA": "End.X", "uDT6": "End.DT6"}[words[5]]
            table[words[1]] = (behaviour, *([words[7]] if words[5] == "uA" else []))
        elif words[:2] == ["ipv6", "route"]:
            table[words[2]] = ("via", *words[3:])
    return {IPv6Network(prefix): row for prefix, row in table.items()}


def cables(build):
    """{(switch, interface): switch at the other end}."""
    w = build.wiring
    return {
        (v, w.port_name(v, int(port))): int(far)
        for v in range(len(w.names))
        for port, far in zip(w.port[v], w.far[v], strict=True)
        if port
    }


def carried(cable, tables, source, carrier):
    """The switches that a carrier visits after the source, and the uSIDs that its host sees."""
    at, path = source, []
    left = list(carrier)
    while len(path) < 16:
        row = tables[at].get(_network(left[:2])) or tables[at][_network(left[:1])]
        if row[0] == "End":
            left.pop(0)
            continue
        if row[0] == "End.X":
            left.pop(0)
        if row[0] == "End.DT6":
            return path, tuple(left)
        there = cable.get((at, row[-1]))
        if there is None:
            return path, tuple(left)
        at = there
        path.append(at)
    raise AssertionError(path)


@cache
def _prefix(usids):
    address = sum(usid << (80 - 16 * place) for place, usid in enumerate(usids))
    return IPv6Network((int(BLOCK.network_address) | address, 32 + 16 * len(usids)))


def _network(usids):
    """What the first uSIDs are routed by, the longest prefix of which is two of them."""
    return _prefix(tuple(usids))


def _lines(path):
    lines = path.read_text().splitlines()
    return [line.split() for line in lines if line.strip() and line[0] not in "#!"]
