"""Readers of configurations in sections: EOS, NX-OS, and the static routes of FRR under SONiC."""

from __future__ import annotations

from collections.abc import Callable

from compilers.readers.router_text import DISCARD, LAST_RESORT, InterfaceText, RouterText
from compilers.readers.text_lines import TextLines

ROUTES = {"ip route ": False, "ipv6 route ": True}
STEERING = {"ip", "ipv6", "no", "router", "route-map", "vrf", "policy-map", "vlan", "default"}
"""First words of lines that may change where packets go; lines with others are passed over."""
HARMLESS = {"description", "mtu", "speed", "error-correction", "fec", "lldp", "logging"} | {
    *("load-interval", "snmp", "sflow")
}
"""First words of lines about an interface that do not change where packets go."""
UNADVERTISED = "2"
"""The tag that bgpcfgd gives routes with `advertise: false`."""


def read_eos(text: str, file: str) -> RouterText:
    """The configuration of an EOS device, whose ports are switched and which does not route."""
    router, said = _sections(text, file, _interface_and_gateway)
    needed = {"ip routing"}
    if any(":" in address for i in router.interfaces.values() for address, _ in i.addresses):
        needed.add("ipv6 unicast-routing")
    for missing in sorted(needed - said):
        router.fault(1, f"no line {missing}")
    _usable(router, set())
    return router


def read_nxos(text: str, file: str) -> RouterText:
    """The configuration of an NX-OS device, whose routed ports are down until `no shutdown`."""
    router, said = _sections(text, file, _interface_and_gateway)
    if router.shared and "feature interface-vlan" not in said:
        router.fault(1, "no line feature interface-vlan")
    _usable(router, {"no shutdown"})
    return router


def read_frr_under_sonic(text: str, file: str) -> RouterText:
    """The static routes of an frr.conf, which have bgpcfgd's tag; addresses are SONiC's."""
    return _sections(text, file, _tagged)[0]


def _interface_and_gateway(text: str) -> str | None:
    match text.split():
        case ["Null0", distance] if distance == LAST_RESORT:
            return DISCARD
        case [interface, gateway] if interface != "Null0":
            return f"{gateway} {interface}"
    return None


def _tagged(text: str) -> str | None:
    match text.split():
        case ["blackhole", distance, "tag", tag] if (distance, tag) == (LAST_RESORT, UNADVERTISED):
            return DISCARD
        case [gateway, interface, "tag", tag] if tag == UNADVERTISED:
            return f"{gateway} {interface}"
    return None


def _sections(
    text: str, file: str, hop_of: Callable[[str], str | None]
) -> tuple[RouterText, set[str]]:
    """The lines of a configuration, and those that stand alone and say how the router works.

    A line that is indented is about the last one that is not. hop_of: see `RouterText.routes`.
    """
    router = RouterText(file)
    said: set[str] = set()
    here: InterfaceText | None = None
    router.transit, lines = router.routes(TextLines.of(text.encode()), ROUTES, hop_of)
    for number, line in lines:
        if line[:1] == " ":
            if here is not None:
                _about(router, here, number, line)
        elif line and line[0] != "!":
            here = _alone(router, said, number, line)
    return router, said


def _alone(router: RouterText, said: set[str], number: int, line: str) -> InterfaceText | None:
    """A line that is not indented; the interface that the next ones are about."""
    match line.split():
        case ["hostname", name]:
            router.hostname = name
        case ["interface", name]:
            if name.startswith("Vlan"):
                router.shared[name.removeprefix("Vlan")] = name
            return router.interface(name, number)
        case ["ip", "routing"] | ["ipv6", "unicast-routing"] | ["feature", "interface-vlan"]:
            said.add(" ".join(line.split()))
        case ["vlan", _]:
            pass
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
        case ["switchport", "access", "vlan", vlan]:
            here.vlan = vlan
        case ["switchport"] | ["switchport", "mode", "access"] | ["no", "switchport" | "shutdown"]:
            here.words.add(" ".join(words))
        case ["no", "error-correction", "encoding"]:
            pass
        case [first, *_] if first not in HARMLESS:
            router.fault(number, line)


def _usable(router: RouterText, needed: set[str]) -> None:
    """Note the interfaces that lack a word without which they have no addresses, or are down."""
    for name, found in router.interfaces.items():
        wanted = set(needed) if "oopback" not in name else set()
        if name.startswith("Ethernet"):
            wanted.add("switchport" if found.vlan else "no switchport")
            if bool(found.vlan) == bool(found.addresses):
                router.fault(found.line, f"interface {name} is neither routed nor a port of a VLAN")
        for word in sorted(wanted - found.words):
            router.fault(found.line, f"interface {name} without {word}")
