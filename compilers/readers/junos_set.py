"""A reader of Junos's set commands, filter-based forwarding included."""

from __future__ import annotations

import shlex
from collections import defaultdict

from compilers.readers.router_text import DISCARD, LAST_RESORT, RouterText, StaticRows

TABLES = {
    "set routing-options static route ": (False, False),
    "set routing-options rib inet6.0 static route ": (False, True),
    "set routing-instances polarfab routing-options static route ": (True, False),
    "set routing-instances polarfab routing-options rib polarfab.inet6.0 static route ": (
        True,
        True,
    ),
}
"""How a static route begins: whether it is for packets that enter, and whether it is IPv6."""
ROUTE = " static route "
STEERING = {"interfaces", "vlans", "forwarding-options", "bridge-domains", "protocols"}
"""What lines may change where packets go; others are passed over."""
REACHED = ("then", "routing-instance", "polarfab")
RIBS = {"inet": "inet.0", "inet6": "inet6.0"}
Words = tuple[str, ...]


def read_junos(text: str, file: str) -> RouterText:
    """The configuration of a Junos device."""
    router = RouterText(file)
    others: dict[Words, int] = {}
    discards: dict[tuple[bool, str], dict[str, int]] = defaultdict(dict)
    known: dict[tuple[bool, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        head, found, rest = line.partition(ROUTE)
        table = TABLES.get(f"{head}{ROUTE}") if found else None
        if table is None:
            _other(router, others, number, line)
            continue
        entering, six = table
        prefix, _, way = rest.partition(" ")
        if (":" in prefix) != six:
            router.fault(number, line)
        elif way.startswith("next-hop "):
            rows = router.entering if entering else router.transit
            hop = known.get((entering, way))
            if hop is None:
                hop = known[entering, way] = rows.number(way[9:])
            rows.add(prefix, hop, number)
        elif way in ("discard", f"preference {LAST_RESORT}"):
            discards[entering, prefix][way] = number
        else:
            router.fault(number, line)
    _discards(router, discards)
    _forwarding_by_filter(router, others)
    return router


def _discards(router: RouterText, found: dict[tuple[bool, str], dict[str, int]]) -> None:
    """A route that discards has a preference of its own, or it would be before the others."""
    for (entering, prefix), lines in found.items():
        rows: StaticRows = router.entering if entering else router.transit
        if len(lines) == 2:
            rows.add(prefix, rows.number(DISCARD), min(lines.values()))
        else:
            router.fault(*next((number, f"{prefix} {way} alone") for way, number in lines.items()))


def _other(router: RouterText, others: dict[Words, int], number: int, line: str) -> None:
    """A line that is no static route."""
    match shlex.split(line):
        case [] | ["set", "protocols", "lldp", *_]:
            pass
        case ["set", "system", "host-name", name]:
            router.hostname = name
        case ["set", "interfaces", _, "description" | "mtu" | "speed", _]:
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
    if router.ingress or router.entering.prefix:
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
    ends = [
        p for p, hop in zip(rows.prefix, rows.hop, strict=True) if rows.hops.get(DISCARD) == hop
    ]
    for family, rib in RIBS.items():
        six = family == "inet6"
        if (
            not any((":" in prefix) == six for prefix in rows.prefix)
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
