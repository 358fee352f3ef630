"""Management in a configuration: its ports and their VRF, where no packet of the fabric gets to.

It is taken apart before what forwards is read. A port of the fabric in the VRF of management stays,
and is found to be wrong there.
"""

from __future__ import annotations

import re
from typing import Any

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


def read_gateway(router: RouterText, line: int, prefix: str, gateway: str) -> None:
    """Note the default route of management."""
    if prefix in EVERYWHERE:
        router.fact(line, "gateway of management", gateway)
    else:
        router.fault(line, f"{prefix} by {gateway}")


def read_servers(router: RouterText, key: str, names: list[str], inside: bool, text: str) -> None:
    """Note servers of time or logs by their key; inside: whether management gets to them."""
    kind = "ntp server" if "ntp" in key.lower() else "syslog server"
    for name in names:
        line = line_of(text, (key, name))
        router.fact(line, kind, name)
        if not inside:
            router.fault(line, f"{kind} {name} in another VRF than management")
