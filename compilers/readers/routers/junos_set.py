"""A reader of Junos's set commands, filter-based forwarding included."""

from __future__ import annotations

import shlex

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.expected_facts import port_text
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.management import JUNOS_VRF, apart_from_commands, read_gateway
from compilers.readers.routers.router_text import DISCARD, LAST_RESORT, RouterText
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
FEC = {"fec91": "rs", "fec74": "fc", "none": "off"}
ETHERNET_HEADER = 14
"""Counted in the MTU of a port, not in that of IP."""
REACHED = ("then", "routing-instance", "polarfab")
RIBS = {"inet": "inet.0", "inet6": "inet6.0"}
Words = tuple[str, ...]


def read_junos(text: str, file: str) -> RouterText:
    """The configuration of a Junos device."""
    router = RouterText(file)
    others: dict[Words, int] = {}
    text, management = apart_from_commands(text)
    router.told |= {"fec", "cage", *["syslog by management"] * bool(management)}
    router.transit, lines = router.routes(TextLines.of(text.encode()), TRANSIT, _hop)
    router.entering, lines = router.routes(lines, ENTERING, _hop)
    router.transit = _discarded(router, router.transit)
    router.entering = _discarded(router, router.entering)
    cages: dict[str, dict[str, tuple[str, int]]] = {}
    for number, line in lines:
        words = tuple(shlex.split(line))
        if not (_service(router, number, words, bool(management)) or _cage(cages, number, words)):
            _other(router, others, number, line)
    for number, line in management:
        _management(router, number, line)
    for name, said in cages.items():
        speed, first = said.get("speed", ("0g", 0))
        parts, last = said.get("number-of-sub-ports", ("0", 0))
        router.fact(
            max(first, last), "cage", name, _number(parts), _number(speed.removesuffix("g"))
        )
    _forwarding_by_filter(router, others)
    for name, found in router.interfaces.items():
        if ("access" in found.words) != bool(found.vlan):
            router.fault(found.line, f"interface {name} with only one of mode access and a VLAN")
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


def _cage(cages: dict[str, dict[str, tuple[str, int]]], line: int, words: Words) -> bool:
    """Note what a line says of the parts of a cage; False where it says nothing of them."""
    match words:
        case ("set", "interfaces", name, "speed" | "number-of-sub-ports" as word, value):
            cages.setdefault(name, {})[word] = value, line
            return True
    return False


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _service(router: RouterText, line: int, words: Words, management: bool) -> bool:
    """Note a line about time, logs, or the switch itself; False where it is of none of these."""
    match words[1:] if words[:1] == ("set",) else ():
        case ("apply-macro", "polarfab", "build", _):
            return True
        case ("system", "management-instance"):
            return management
        case ("system", "host-name", name):
            router.fact(line, "hostname", name)
            return True
        case ("system", "ntp", "server", server, *vrf):
            router.fact(line, "ntp server", server)
            return vrf == ["routing-instance", JUNOS_VRF] * management
        case ("system", "syslog", "host", server, "any", "any"):
            router.fact(line, "syslog server", server)
            return True
        case ("system", "syslog", "host", server, "routing-instance", vrf):
            router.fact(line, "syslog by management", server)
            return management and vrf == JUNOS_VRF
    return False


def _management(router: RouterText, number: int, line: str) -> None:
    """A line about the port of management, or its routing instance."""
    match line.split()[1:] if line.startswith("set ") else []:
        case ["interfaces", port, "unit", "0", "family", "inet" | "inet6", "address", address]:
            router.fact(number, "management", port_text(port), address)
        case [_, _, "routing-options", *rib, "static", "route", prefix, "next-hop", gateway] if (
            rib in ([], ["rib", f"{JUNOS_VRF}.inet6.0"])
        ):
            read_gateway(router, number, prefix, gateway)
        case ["routing-instances", _, "description", "management"]:
            pass
        case _:
            router.unknown(number, line)


def _other(router: RouterText, others: dict[Words, int], number: int, line: str) -> None:
    """A line that is no static route."""
    match shlex.split(line):
        case []:
            pass
        case ["set", "interfaces", "irb", "mtu", size] if size.isdecimal():
            router.fact(number, "mtu of the hosts", int(size) - ETHERNET_HEADER)
        case ["set", "interfaces", name, "mtu", size] if size.isdecimal():
            router.fact(number, "mtu", Interface(name), int(size) - ETHERNET_HEADER)
        case ["set", "interfaces", name, "description", text]:
            router.fact(number, "description", Interface(name), text)
        case ["set", "interfaces", name, "gigether-options", "fec", code] if code in FEC:
            router.fact(number, "fec", Interface(name), FEC[code])
        case ["set", "interfaces", "irb", "unit", unit, "description", "hosts"]:
            router.interface(f"irb.{unit}", number)
        case ["set", "interfaces", name, "unit", unit, "family", family, "address", address]:
            if family != ("inet6" if ":" in address else "inet"):
                router.fault(number, line)
            interface = router.interface(_unit(name, unit), number)
            interface.addresses.append((address, number))
        case ["set", "interfaces", name, "unit", "0", "family", "ethernet-switching", *rest]:
            if rest[:2] == ["vlan", "members"]:
                router.interface(name, number).vlan = rest[2]
            elif rest == ["interface-mode", "access"]:
                router.interface(name, number).words.add("access")
            else:
                router.fault(number, line)
        case ["set", "vlans", vlan, "vlan-id", tag]:
            others["vlans", vlan, "vlan-id", tag] = number
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
        case ["set", "interfaces", *_, "disable"]:
            router.fault(number, line)
        case _:
            router.unknown(number, line)


def _unit(name: str, unit: str) -> str:
    return name if unit == "0" else f"{name}.{unit}"


def _forwarding_by_filter(router: RouterText, others: dict[Words, int]) -> None:
    """Everything that forwarding by filter needs is there, or nothing of it; so are VLANs."""
    wanted: set[Words] = {
        ("vlans", vlan, "vlan-id", name.removeprefix("irb."))
        for vlan, name in router.shared.items()
    }
    if router.ingress or router.entering.ways:
        wanted |= {
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
    if len({*router.ingress.values()}) > 1:
        router.fault(1, f"filters at {' and '.join(sorted(router.ingress.values()))}")
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
        router.unknown(others[words], " ".join(words))
    for words, number in others.items():
        if "others" in words and number < others.get((*words[:-3], "fabric", *REACHED), 0):
            router.fault(number, "the filter accepts before it looks for the fabric")
