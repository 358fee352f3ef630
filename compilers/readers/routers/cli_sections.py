"""Readers of configurations in sections: EOS, NX-OS, and the static routes of FRR under SONiC."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.routers.management import apart_from_sections, read_management, read_server
from compilers.readers.routers.router_text import (
    DISCARD,
    LAST_RESORT,
    RouterText,
    from_inside,
)
from compilers.readers.text_lines import TextLines

ROUTES = {"ip route ": False, "ipv6 route ": True}
FEC = {"reed-solomon": "rs", "fire-code": "fc", "rs-fec": "rs", "fc-fec": "fc", "off": "off"}
BREAKOUT = re.compile(r"interface breakout module (\d+) port (\d+) map (\d+)g-(\d+)x")
MULTI_AGENT = "service routing protocols model multi-agent"
UNADVERTISED = "2"
"""The tag that bgpcfgd gives routes with `advertise: false`."""


def read_eos(text: str, file: str) -> RouterText:
    """The configuration of an EOS device, whose ports are switched and which does not route."""
    router, said = _sections(text, file, "vrf instance ", eos_routes)
    router.told |= {"fec", "speed and lanes"}
    needed = {"ip routing"}
    if any(":" in address for i in router.interfaces.values() for address, _ in i.addresses):
        needed.add("ipv6 unicast-routing")
    if router.vrf:
        needed |= {f"{line} vrf {router.vrf}" for line in needed}
        needed.add(MULTI_AGENT)
    _alike(router, said, needed)
    _usable(router, {"no shutdown"})
    return router


def read_nxos(text: str, file: str) -> RouterText:
    """The configuration of an NX-OS device, whose routed ports are down until `no shutdown`."""
    router, said = _sections(text, file, "vrf context ", _nxos_routes)
    router.told |= {"fec", "cage"}
    _alike(router, said, {"feature interface-vlan"} if router.shared else set())
    _usable(router, {"no shutdown"})
    return router


def read_frr_under_sonic(text: str, file: str) -> RouterText:
    """The static routes of an frr.conf, which have bgpcfgd's tag; addresses are SONiC's."""
    router, said = _sections(text, file, "vrf ", _frr_routes)
    router.told = frozenset({"hostname"})
    lines = {"service integrated-vtysh-config", "end"}
    _alike(router, said, lines | {"exit-vrf"} if router.vrf else lines)
    return router


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
) -> tuple[RouterText, dict[str, int]]:
    """The lines of a configuration, and those that stand alone and have no value.

    A line that is indented is about the last one that is not.

    Args:
        text: of the file.
        file: its name.
        vrf: how the line begins that names the VRF beside the default one.
        routes: reads the routes and returns the other lines.
    """
    router = RouterText(file)
    said: dict[str, int] = {}
    here = ""
    text, management, apart = apart_from_sections(text)
    read_management(router, management, apart)
    lines = TextLines.of(text.encode())
    named = next(iter(lines[lines.beginning(vrf)]), (0, vrf))[1]
    router.vrf = named.removeprefix(vrf).strip()
    for number, line in routes(router, lines):
        if line[:1] == " ":
            if here in router.interfaces:
                _about(router, here, number, line)
            elif not (here.startswith("vlan ") and line.split() == ["name", "hosts"]):
                router.unknown(number, line)
        elif line and line[0] != "!":
            here = _alone(router, management, number, line)
            if not here:
                said[line.rstrip()] = number
    return router, said


def _alone(router: RouterText, management: str, number: int, line: str) -> str:
    """A line that is not indented: the section that it begins, "" where it has no value at all."""
    words = line.split()
    match words:
        case ["hostname", name]:
            router.fact(number, "hostname", name)
        case ["interface", name]:
            if name.startswith("Vlan"):
                router.shared[name.removeprefix("Vlan")] = name
            router.interface(name, number)
            return name
        case ["interface", "breakout", *_] if found := BREAKOUT.fullmatch(line):
            slot, cage, speed, parts = found.groups()
            router.fact(number, "cage", f"Ethernet{slot}/{cage}", int(parts), int(speed))
        case ["vrf", *_, name] if name == router.vrf:
            pass
        case ["vlan", vlan]:
            router.vlans.add(vlan)
        case _ if not read_server(router, number, words, management):
            return ""
    return line


def _alike(router: RouterText, said: Mapping[str, int], needed: set[str]) -> None:
    """Note the lines without a value that are missing, and those that nobody knows."""
    for missing in sorted(needed - said.keys()):
        router.fault(1, f"no line {missing}")
    for line in sorted(said.keys() - needed, key=said.__getitem__):
        note = router.fault if line.removeprefix("no ") in needed else router.unknown
        note(said[line], line)
    router.strange.sort()


def _about(router: RouterText, name: str, number: int, line: str) -> None:
    """A line of an interface's section."""
    here, words, port = router.interfaces[name], line.split(), Interface(name)
    match words:
        case ["ip" | "ipv6" as family, "address", address]:
            if (":" in address) != (family == "ipv6"):
                router.fault(number, line)
            here.addresses.append((address, number))
        case ["description", *_]:
            router.described(number, name, line.split(None, 1)[1])
        case ["mtu", size] if size.isdecimal():
            router.sized(number, name, int(size))
        case ["speed", speed]:
            router.fact(number, "speed and lanes", port, speed)
        case ["fec", code] | ["error-correction", "encoding", code] if code in FEC:
            router.fact(number, "fec", port, FEC[code])
        case ["no", "error-correction", "encoding"]:
            router.fact(number, "fec", port, "off")
        case ["switchport", "access", "vlan", vlan]:
            here.vlan = vlan
        case ["vrf", "member", vrf] | ["vrf", vrf]:
            if here.addresses:
                router.fault(number, f"{line}, which takes the addresses above away")
            here.vrf = vrf
        case ["switchport"] | ["switchport", "mode", "access"] | ["no", "switchport" | "shutdown"]:
            here.words.add(" ".join(words))
        case ["shutdown"]:
            router.fault(number, line)
        case _:
            router.unknown(number, line)


def _usable(router: RouterText, needed: set[str]) -> None:
    """Note the interfaces that lack a word without which they have no addresses, or are down."""
    for name, found in router.interfaces.items():
        if found.vlan and found.vlan not in router.vlans:
            router.fault(found.line, f"interface {name} in VLAN {found.vlan}, which is not there")
        wanted = set(needed) if "oopback" not in name else set()
        if name.startswith("Ethernet"):
            access = {"switchport", "switchport mode access"}
            wanted |= access if found.vlan else {"no switchport"}
        for word in sorted(wanted - found.words):
            router.fault(found.line, f"interface {name} without {word}")
