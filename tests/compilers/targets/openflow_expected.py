"""The rules of a switch, written out by hand a row at a time, after docs/targets/openflow.md."""

from __future__ import annotations

import base64

import numpy as np

from compilers.targets.openflow.class_groups import _finely
from compilers.wiring.addressing import format_mac

# Ericsson's class 0x1000 and the field: neither parser knows these two by name.
ND_RESERVED, ND_OPTIONS_TYPE = f"field_{0x1000 << 7 | 1}", f"field_{0x1000 << 7 | 2}"
ANY = 0xFFFFFFFF


def b64(value):
    return base64.b64encode(value).decode()


def class_rules(build, vertex):
    """(groups, rules) of the classes of a switch, one class after the other."""
    c = build.tables.classes
    width = c.port.shape[1]
    groups, rules = [], []
    halved = (("move", "nw_ttl", 1, "nw_ttl", 0, 7), ("load", "nw_ttl", 7, 1, 0))

    def group(role, kind, *made):
        number = 1 + role * width + k
        groups.append((number, kind, list(made)))
        return number

    def failover(role, ports, *first, back=0):
        ways = [(p, p) for p in ports] + [(back, 0xFFFFFFF8)] * bool(back)
        if len(ways) == 1 and not first:
            return group(role, 2, (0, ANY, ANY, ("output", ways[0][1])))
        direct = c.port[vertex, :k].tolist().count(port) == 1  # the second class of a port
        made = [
            (0, p, ANY, *(halved if direct and p != port else ()), ("output", to)) for p, to in ways
        ]
        return group(role, 3, *first, *made)

    def rule(priority, match, number):
        rules.append((2, priority, 0x5046 << 48 | 6, match, [("group", number)]))

    for k, port in enumerate(c.port[vertex].tolist()):
        if not port:
            continue
        protection = [p for p in c.protection[vertex, k].tolist() if p]
        bounce = [p for p in c.bounce[vertex, k].tolist() if p]
        alternates = c.alternate[vertex, k].tolist()
        ways = zip([port, *alternates], c.weight[vertex, k].tolist(), strict=True)
        weighted = {p: w for p, w in ways if p and w}
        order = [port, *protection]
        rule(1, {"metadata": (k, 0xFFFF)}, failover(0, order))
        if set(weighted) - {port}:
            split = _finely(*(np.array([list(part)]) for part in (weighted, weighted.values())))
            ways = [(p, w) for p, w in zip(*(part[0].tolist() for part in split), strict=True) if w]
            way = [(w, p, ANY, ("output", p)) for p, w in ways]
            enter = group(1, 1, *way)
            if set(order) - set(weighted):
                enter = failover(3, order, (0, ANY, enter, ("group", enter)))
            rule(2, {"metadata": (0x10000 | k, 0x1FFFF)}, enter)
        if c.bounce.shape[2] or c.alternate.shape[2]:
            number = failover(2, bounce, back=port)
            rule(2, {"in_port": port, "metadata": (k, 0xFFFF)}, number)
        for place, came in enumerate(c.protection[vertex, k].tolist()):
            if came:
                number = failover(4 + place, [p for p in order if p != came], back=came)
                rule(2, {"in_port": came, "metadata": (k, 0xFFFF)}, number)
    return groups, rules


def expected(build, vertex):
    """The rules of a switch, a row at a time, in the pipeline of docs/targets/openflow.md."""
    a, w, t = build.addressing, build.wiring, build.tables
    pf = 0x5046 << 48
    gateway = format_mac(a.gateway_mac)
    back = [("move", "eth_src", "eth_dst", 48), ("set", "eth_src", gateway), ("output", 0xFFFFFFF8)]
    arp, ip, ip6 = {"eth_type": 0x806}, {"eth_type": 0x800}, {"eth_type": 0x86DD}
    ask = {**arp, "arp_op": 1}
    ask6 = {**ip6, "ip_proto": 58, "icmpv6_type": 135}
    rules = [(0, 0, 0x5047 << 48 | 0x0123456789AB, {}, [])]

    def network(v):
        return (str(a.network(v).network_address), str(a.network(v).netmask))

    def network6(v):
        return (str(a.network6(v).network_address), str(a.network6(v).netmask))

    answer = [
        ("move", "arp_tpa", "reg0", 32),
        ("move", "arp_spa", "arp_tpa", 32),
        ("move", "reg0", "arp_spa", 32),
        ("move", "arp_sha", "arp_tha", 48),
        ("set", "arp_sha", gateway),
        ("set", "arp_op", 2),
    ]
    rules.append((0, 3, pf | 2, {**ask, "arp_tpa": network(vertex)}, answer + back))
    down = [("dec_ttl",), ("goto", 1)]
    rules.append((0, 1, pf | 3, {**ip, "eth_dst": gateway}, down))
    if a.ipv6:
        rules.append((0, 1, pf | 3, {**ip6, "eth_dst": gateway}, down))
        answer = [
            ("move", "ipv6_src", "ipv6_dst", 128),
            ("move", "ipv6_nd_target", "ipv6_src", 128),
            ("set", "icmpv6_type", 136),
            ("set", ND_OPTIONS_TYPE, b64(bytes([2]))),
            ("set", ND_RESERVED, b64(bytes([0xE0, 0, 0, 0]))),
            ("goto", 3),
        ]
        rules.append((0, 3, pf | 2, {**ask6, "ipv6_nd_target": network6(vertex)}, answer))
        say = {**ip6, "ip_proto": 58, "icmpv6_type": 136}
        rules.append((3, 3, pf | 2, say, [("set", "ipv6_nd_tll", gateway), *back]))
    for d in range(t.switches):
        if d == vertex:
            continue
        k = int(t.routes.egress[vertex, d])
        to = [("metadata", k, 0xFFFF), ("goto", 2)]
        rules.append((1, a.ipv4_length, pf | 4, {**ip, "ipv4_dst": network(d)}, to))
        if a.ipv6:
            rules.append((1, 64, pf | 4, {**ip6, "ipv6_dst": network6(d)}, to))
    for h, port in enumerate(w.host_port[vertex].tolist()):
        out = [("set", "eth_src", gateway), ("set", "eth_dst", a.mac(vertex, h)), ("output", port)]
        own, own6 = str(a.host(vertex, h)), a.ipv6 and str(a.host6(vertex, h))
        rules.append((0, 4, pf | 1, {"in_port": port, **ask, "arp_tpa": own}, []))
        rules.append((1, 32, pf | 5, {**ip, "ipv4_dst": own}, out))
        if a.ipv6:
            rules.append((0, 4, pf | 1, {"in_port": port, **ask6, "ipv6_nd_target": own6}, []))
            rules.append((1, 128, pf | 5, {**ip6, "ipv6_dst": own6}, out))
        for family in (ip, ip6)[: 2 if a.ipv6 else 1] if t.classes.alternate.shape[2] else ():
            here = {"in_port": port, **family, "eth_dst": gateway}
            enters = [("dec_ttl",), ("metadata", 0x10000, 0x10000), ("goto", 1)]
            rules.append((0, 2, pf | 3, here, enters))
    return rules + class_rules(build, vertex)[1]
