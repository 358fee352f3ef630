"""Management in trees of JSON and YAML: its ports, its default route, servers of time and logs."""

from __future__ import annotations

import re
from typing import Any

from compilers.readers.routers.known_keys import line_of
from compilers.readers.routers.router_text import RouterText

PORT = re.compile(r"Management[0-9]+(/[0-9]+)*|mgmt0|re[01]:mgmt-0|fxp0|em[01]|me0|vme|eth0")
EVERYWHERE = {"0.0.0.0/0", "::/0"}
Tree = dict[str, Any]


def is_port(name: str) -> bool:
    """Whether a port, or a logical part of one, is for management."""
    return PORT.fullmatch(name.partition(".")[0]) is not None


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
