"""A reader of Junos's set commands, filter-based forwarding included."""

from __future__ import annotations

import shlex

from compilers.readers.management import without_commands
from compilers.readers.route_tables import RouteLines
from compilers.readers.router_text import DISCARD, LAST_RESORT, RouterText
from compilers.readers.text_lines import TextLines

TRANSIT = {
    "set routing-options static route ": False,
    "set routing-options rib inet6.0 static route ": True,
}
ENTERING = {
    "set routing-instances polarfab routing-options static route ": False,
    "set routing-instances polarfab routing-options rib polarfab.inet6.0 static route ": True,
}
"""How static routes begin, those for packets that enter apart; whether they are IPv6."""
LAST = f"preference {LAST_RESORT}"
STEERING = {"interfaces", "vlans", "forwarding-options", "bridge-domains", "protocols"} | {
    *("groups", "apply-groups", "logical-systems", "class-of-service", "security")
}
"""What lines may change where packets go; others are passed over."""
ETHERNET_HEADER = 14
"""Counted in the MTU of a port, not in that of IP."""
REACHED = ("then", "routing-instance", "polarfab")
RIBS = {"inet": "inet.0", "inet6": "inet6.0"}
Words = tuple[str, ...]


def read_junos(text: str, file: str) -> RouterText:
    """The configuration of a Junos device."""
    router = RouterText(file)
    others: dict[Words, int] = {}
    router.transit, lines = router.routes(
        TextLines.of(without_commands(text).encode()), TRANSIT, _hop
    )
    router.entering, lines = router.routes(lines, ENTERING, _hop)
    router.transit = _discarded(router, router.transit)
    router.entering = _discarded(router, router.entering)
    for number, line in lines:
        _other(router, others, number, line)
    _forwarding_by_filter(router, others)
    return router


def _hop(text: str) -> str | None:
    """The next hop of a static route, LAST for the line that goes with one that discards."""
    if text in ("discard", LAST):
        return DISCARD if text == "discard" else LAST
    return text[9:] if text.startswith("next-hop ") else None


def _discarded(router: RouterText, rows: RouteLines) -> RouteLines:
    """The routes; one that discards has a preference of its own, or it would be before others."""
    last = {prefix: line for prefix, _, line in rows.rows(LAST)}
    ends = {prefix: line for prefix, _, line in rows.rows(DISCARD)}
    for prefix in last.keys() ^ ends.keys():
        line = last.get(prefix) or ends[prefix]
        router.fault(line, f"{prefix} with only one of discard and {LAST}")
    return rows.reworded({way: way for way in rows.ways if way != LAST})


def _other(router: RouterText, others: dict[Words, int], number: int, line: str) -> None:
    """A line that is no static route."""
    match shlex.split(line):
        case [] | ["set", "protocols", "lldp", *_]:
            pass
        case ["set", "system", "host-name", name]:
            router.hostname = name
        case ["set", "interfaces", name, "mtu", size] if size.isdecimal():
            if name != "irb":
                router.interface(name, number).mtu = int(size) - ETHERNET_HEADER
        case ["set", "interfaces", _, "description" | "speed" | "number-of-sub-ports", _]:
            pass
        case ["set", "interfaces", _, "gigether-options", "fec", _]:
            pass
        case ["set", "interfaces", "irb", "unit", _, "description", _]:
            pass
        case ["set", "interfaces", name, "unit", unit, "family", family, "address", address]:
            if (":" in address) != (family == "inet6"):
                router.fault(number, line)
            interface = router.interface(_unit(name, unit), number)
            interface.addresses.append((address, number))
        case ["set", "interfaces", name, "unit", "0", "family", "ethernet-switching", *rest]:
            if rest[:2] == ["vlan", "members"]:
                router.interface(name, number).vlan = rest[2]
            elif rest != ["interface-mode", "access"]:
                router.fault(number, line)
        case ["set", "vlans", _, "vlan-id", _]:
            pass
        case ["set", "vlans", vlan, "l3-interface", name]:
            router.shared[vlan] = name
        case ["set", "interfaces", name, "unit", unit, "family", family, "filter", "input", used]:
            router.ingress[family] = _unit(name, unit)
            others["filter", family, used] = number
        case [
            "set",
            "routing-instances" | "firewall" | "policy-options" | "routing-options" as first,
            *rest,
        ]:
            others[first, *rest] = number
        case ["set", first, *_] if first in STEERING:
            router.fault(number, line)
        case ["set", *_]:
            pass
        case _:
            router.fault(number, line)


def _unit(name: str, unit: str) -> str:
    return name if unit == "0" else f"{name}.{unit}"


def _forwarding_by_filter(router: RouterText, others: dict[Words, int]) -> None:
    """Everything that forwarding by filter needs is there, or nothing of it."""
    wanted: set[Words] = set()
    if router.ingress or router.entering.ways:
        wanted = {
            (
                "policy-options",
                "policy-statement",
                "polarfab",
                "then",
                "load-balance",
                "per-packet",
            ),
            ("routing-options", "forwarding-table", "export", "polarfab"),
            ("routing-instances", "polarfab", "instance-type", "forwarding"),
        }
    rows = router.entering
    ends = [prefix for prefix, _, _ in rows.rows(DISCARD)]
    for family, rib in RIBS.items():
        six = family == "inet6"
        if (
            not any((":" in prefix) == six for prefix in rows.prefixes)
            and family not in router.ingress
        ):
            continue
        group = f"polarfab-{family}"
        term = ("firewall", "family", family, "filter", group, "term")
        wanted |= {
            ("routing-options", "rib-groups", group, "import-rib", rib),
            ("routing-options", "rib-groups", group, "import-rib", f"polarfab.{rib}"),
            ("routing-options", "interface-routes", "rib-group", family, group),
            (*term, "fabric", *REACHED),
            (*term, "others", "then", "accept"),
            ("filter", family, group),
        }
        for prefix in ends:
            if (":" in prefix) == six:
                wanted.add((*term, "fabric", "from", "destination-address", prefix))
    for words in sorted(wanted - set(others)):
        router.fault(1, f"no line with {' '.join(words)}")
    for words in set(others) - wanted:
        router.fault(others[words], " ".join(words))
    for words, number in others.items():
        if "others" in words and number < others.get((*words[:-3], "fabric", *REACHED), 0):
            router.fault(number, "the filter accepts before it looks for the fabric")
