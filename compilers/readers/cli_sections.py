"""Readers of configurations in sections: EOS, NX-OS, and the static routes of FRR under SONiC."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compilers.readers.management import without_sections
from compilers.readers.router_text import (
    DISCARD,
    LAST_RESORT,
    InterfaceText,
    RouterText,
    from_inside,
)
from compilers.readers.text_lines import TextLines

ROUTES = {"ip route ": False, "ipv6 route ": True}
STEERING = {"ip", "ipv6", "no", "router", "route-map", "vrf", "policy-map", "vlan", "default"} | {
    *("traffic-policies", "maintenance", "class-map", "qos")
}
"""First words of lines that may change where packets go; lines with others are passed over."""
HARMLESS = {"description", "speed", "error-correction", "fec", "lldp", "logging"} | {
    *("load-interval", "snmp", "sflow")
}
"""First words of lines about an interface that do not change where packets go."""
UNADVERTISED = "2"
"""The tag that bgpcfgd gives routes with `advertise: false`."""


def read_eos(text: str, file: str) -> RouterText:
    """The configuration of an EOS device, whose ports are switched and which does not route."""
    router, said = _sections(text, file, "vrf instance ", eos_routes)
    needed = {"ip routing"}
    if any(":" in address for i in router.interfaces.values() for address, _ in i.addresses):
        needed.add("ipv6 unicast-routing")
    if router.vrf:
        needed |= {f"{line} vrf {router.vrf}" for line in needed}
        needed.add("service routing protocols model multi-agent")
    for missing in sorted(needed - said):
        router.fault(1, f"no line {missing}")
    _usable(router, set())
    return router


def read_nxos(text: str, file: str) -> RouterText:
    """The configuration of an NX-OS device, whose routed ports are down until `no shutdown`."""
    router, said = _sections(text, file, "vrf context ", _nxos_routes)
    if router.shared and "feature interface-vlan" not in said:
        router.fault(1, "no line feature interface-vlan")
    _usable(router, {"no shutdown"})
    return router


def read_frr_under_sonic(text: str, file: str) -> RouterText:
    """The static routes of an frr.conf, which have bgpcfgd's tag; addresses are SONiC's."""
    return _sections(text, file, "vrf ", _frr_routes)[0]


def eos_routes(router: RouterText, lines: TextLines) -> TextLines:
    """Read the routes of EOS, those of the other VRF by name; the other lines are returned."""
    inside = {f"{head}vrf {router.vrf} ": six for head, six in ROUTES.items()}
    return _routes(router, lines, inside if router.vrf else {}, _eos_hop)


def _nxos_routes(router: RouterText, lines: TextLines) -> TextLines:
    """The same of NX-OS, where those of the other VRF stand in its section."""
    return _routes(router, lines, {f"  {head}": six for head, six in ROUTES.items()}, _nxos_hop)


def _frr_routes(router: RouterText, lines: TextLines) -> TextLines:
    """The same of FRR."""
    return _routes(router, lines, {f" {head}": six for head, six in ROUTES.items()}, _tagged)


def _routes(
    router: RouterText,
    lines: TextLines,
    inside: Mapping[str, bool | None],
    hop_of: Callable[[str], str | None],
) -> TextLines:
    router.entering, lines = router.routes(lines, inside, lambda text: from_inside(hop_of(text)))
    router.transit, lines = router.routes(lines, ROUTES, hop_of)
    router.part_back()
    return lines


def _eos_hop(text: str) -> str | None:
    match text.split():
        case ["Null0", distance] if distance == LAST_RESORT:
            return DISCARD
        case ["egress-vrf", vrf, interface, gateway]:
            return f"{gateway} {interface} {vrf}"
        case [interface, gateway] if interface != "Null0":
            return f"{gateway} {interface}"
    return None


def _nxos_hop(text: str) -> str | None:
    match text.split():
        case ["Null0", distance] if distance == LAST_RESORT:
            return DISCARD
        case [interface, gateway, "vrf", vrf]:
            return f"{gateway} {interface} {vrf}"
        case [interface, gateway] if interface != "Null0":
            return f"{gateway} {interface}"
    return None


def _tagged(text: str) -> str | None:
    match text.split():
        case ["blackhole", distance, "tag", tag] if (distance, tag) == (LAST_RESORT, UNADVERTISED):
            return DISCARD
        case [gateway, interface, "nexthop-vrf", vrf, "tag", tag] if tag == UNADVERTISED:
            return f"{gateway} {interface} {vrf}"
        case [gateway, interface, "tag", tag] if tag == UNADVERTISED:
            return f"{gateway} {interface}"
    return None


def _sections(
    text: str, file: str, vrf: str, routes: Callable[[RouterText, TextLines], TextLines]
) -> tuple[RouterText, set[str]]:
    """The lines of a configuration, and those that stand alone and say how the router works.

    A line that is indented is about the last one that is not.

    Args:
        text: of the file.
        file: its name.
        vrf: how the line begins that names the VRF beside the default one.
        routes: reads the routes and returns the other lines.
    """
    router = RouterText(file)
    said: set[str] = set()
    here: InterfaceText | str | None = None
    lines = TextLines.of(without_sections(text).encode())
    named = next(iter(lines[lines.beginning(vrf)]), (0, vrf))[1]
    router.vrf = named.removeprefix(vrf).strip()
    for number, line in routes(router, lines):
        if line[:1] == " ":
            if isinstance(here, InterfaceText):
                _about(router, here, number, line)
            elif here and not (here.startswith("vlan ") and line.split()[0] == "name"):
                router.fault(number, line)
        elif line and line[0] != "!":
            here = _alone(router, said, number, line)
    return router, said


def _alone(
    router: RouterText, said: set[str], number: int, line: str
) -> InterfaceText | str | None:
    """A line that is not indented; the interface, or the VRF, that the next ones are about."""
    match line.split():
        case ["hostname", name]:
            router.hostname = name
        case ["interface", name]:
            if name.startswith("Vlan"):
                router.shared[name.removeprefix("Vlan")] = name
            return router.interface(name, number)
        case (
            ["ip", "routing", *_]
            | ["ipv6", "unicast-routing", *_]
            | ["feature", "interface-vlan"]
            | ["service", "routing", *_]
        ):
            said.add(" ".join(line.split()))
        case ["vrf", *_, name] if name == router.vrf:
            return name
        case ["vlan", vlan]:
            router.vlans.add(vlan)
            return line
        case ["system", "mode" | "qos", *_]:
            router.fault(number, line)
        case [first, *_] if first in STEERING:
            router.fault(number, line)
    return None


def _about(router: RouterText, here: InterfaceText, number: int, line: str) -> None:
    """A line of an interface's section."""
    words = line.split()
    match words:
        case ["ip" | "ipv6" as family, "address", address]:
            if (":" in address) != (family == "ipv6"):
                router.fault(number, line)
            here.addresses.append((address, number))
        case ["mtu", size] if size.isdecimal():
            here.mtu = int(size)
        case ["switchport", "access", "vlan", vlan]:
            here.vlan = vlan
        case ["vrf", "member", name] | ["vrf", name]:
            if here.addresses:
                router.fault(number, f"{line}, which takes the addresses above away")
            here.vrf = name
        case ["switchport"] | ["switchport", "mode", "access"] | ["no", "switchport" | "shutdown"]:
            here.words.add(" ".join(words))
        case ["no", "error-correction", "encoding"]:
            pass
        case [first, *_] if first not in HARMLESS:
            router.fault(number, line)


def _usable(router: RouterText, needed: set[str]) -> None:
    """Note the interfaces that lack a word without which they have no addresses, or are down."""
    for name, found in router.interfaces.items():
        if found.vlan and found.vlan not in router.vlans:
            router.fault(found.line, f"interface {name} in VLAN {found.vlan}, which is not there")
        wanted = set(needed) if "oopback" not in name else set()
        if name.startswith("Ethernet"):
            wanted.add("switchport" if found.vlan else "no switchport")
            if bool(found.vlan) == bool(found.addresses):
                router.fault(found.line, f"interface {name} is neither routed nor a port of a VLAN")
        for word in sorted(wanted - found.words):
            router.fault(found.line, f"interface {name} without {word}")
