"""Management in a configuration: its ports and their VRF, where no packet of the fabric gets to.

It is taken apart before what forwards is read. A port of the fabric in the VRF of management stays,
and is found to be wrong there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compilers.readers.expected_facts import port_text
from compilers.readers.routers.known_keys import line_of
from compilers.readers.routers.router_text import RouterText

PORT = re.compile(r"Management[0-9]+(/[0-9]+)*|mgmt0|re[01]:mgmt-0|fxp0|em[01]|me0|vme|eth0")
MENTION = re.compile(rf"^(set interfaces|interface) ({PORT.pattern})\b", re.MULTILINE)
JUNOS_VRF = "mgmt_junos"
"""The one that Junos has for management."""
EVERYWHERE = {"0.0.0.0/0", "::/0"}
Tree = dict[str, Any]
Numbered = list[tuple[int, str]]
"""Lines with their numbers."""


def is_port(name: str) -> bool:
    """Whether a port, or a logical part of one, is for management."""
    return PORT.fullmatch(name.partition(".")[0]) is not None


def apart_from_sections(text: str) -> tuple[str, str, Numbered]:
    """A configuration of EOS or NX-OS with comments in the place of management.

    Also the VRF of management, "" where there is none apart, and the lines about it.
    """
    if not MENTION.search(text):
        return text, "", []
    lines, vrf, inside = text.splitlines(), "", False
    for line in lines:
        words = line.split()
        if line[:1] != " ":
            inside = words[:1] == ["interface"] and is_port(words[-1])
        elif inside and words and words[0] == "vrf":
            vrf = words[-1]
    if vrf in ("", "default"):
        return text, "", []  # its routes are among those of the fabric
    heads = (["vrf", "instance", vrf], ["vrf", "context", vrf])
    taken = []
    for number, line in enumerate(lines):
        words = line.split()
        if line[:1] != " ":
            inside = words in heads or (words[:1] == ["interface"] and is_port(words[-1]))
        if inside or (vrf and words[1:4] == ["route", "vrf", vrf]):
            taken.append((number + 1, line))
            lines[number] = "!"
    return "\n".join(lines) + "\n", vrf, taken


def apart_from_commands(text: str) -> tuple[str, Numbered]:
    """`set` commands of Junos with empty lines in the place of management, and its lines."""
    if not MENTION.search(text) or "set system management-instance\n" not in text:
        return text, []
    kept, taken = text.splitlines(), []
    for number, line in enumerate(kept):
        _, first, second, *_ = *line.split(None, 3), "", "", ""
        if (first == "interfaces" and is_port(second)) or (
            first == "routing-instances" and second == JUNOS_VRF
        ):
            taken.append((number + 1, line))
            kept[number] = ""
    return "\n".join(kept) + "\n", taken


def read_management(router: RouterText, vrf: str, lines: Numbered) -> None:
    """Note the address and the gateway of management that lines say; others are faults."""
    port, declared = "", False
    for number, line in lines:
        match line.split():
            case [] | ["!"]:
                pass
            case ["interface", port]:
                pass
            case ["vrf", *words, name] if name == vrf:
                declared |= words == ["instance"]
            case ["ip" | "ipv6", "address", address]:
                router.fact(number, "management", port_text(port), address)
            case ["ip" | "ipv6", "route", "vrf", name, prefix, gateway] if name == vrf:
                read_gateway(router, number, prefix, gateway)
            case ["ip" | "ipv6", "route", prefix, gateway]:
                read_gateway(router, number, prefix, gateway)
            case _:
                router.unknown(number, line)
    if port.startswith("Management") and not declared:
        router.fault(lines[0][0], f"no line vrf instance {vrf}")


def read_gateway(router: RouterText, line: int, prefix: str, gateway: str) -> None:
    """Note the default route of management."""
    if prefix in EVERYWHERE:
        router.fact(line, "gateway of management", gateway)
    else:
        router.fault(line, f"{prefix} by {gateway}")


def read_server(router: RouterText, line: int, words: Sequence[str], vrf: str) -> bool:
    """Note a server of time or logs, which is reached in a VRF, "" for the default one."""
    match words:
        case ["ntp", "server", server] | ["logging", "host" | "server", server] if not vrf:
            pass
        case (
            ["ntp", "server", server, "use-vrf", name]
            | ["logging", "server", server, "use-vrf", name]
            | ["ntp", "server", "vrf", name, server]
            | ["logging", "vrf", name, "host", server]
        ) if vrf and name == vrf:
            pass
        case _:
            return False
    router.fact(line, "ntp server" if words[0] == "ntp" else "syslog server", server)
    return True


def read_servers(router: RouterText, key: str, names: list[str], inside: bool, text: str) -> None:
    """Note servers of time or logs by their key; inside: whether management gets to them."""
    kind = "ntp server" if "ntp" in key.lower() else "syslog server"
    for name in names:
        line = line_of(text, (key, name))
        router.fact(line, kind, name)
        if not inside:
            router.fault(line, f"{kind} {name} in another VRF than management")
