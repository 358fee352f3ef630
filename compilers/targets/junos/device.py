"""Pushes to Junos by NAPALM: lines of the form `set …`, each of which stands for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import LINES, DevicePlan
from compilers.targets.junos import routing_tables
from compilers.targets.junos.route_lines import junos_lines

SHUTS_PORT = re.compile(r"deactivate |set \S+ \S+ disable$")
"""`deactivate interfaces et-0/0/1`, `set interfaces et-0/0/1 disable`: lines that shut a port."""
DESCRIPTION = re.compile(r"\S+\s+\S+\s+\S+\s+description(\s|$)")
"""`set interfaces et-0/0/1 description "link to n7"`."""


class JunosDevice(NapalmDevice):
    """Target junos, over NETCONF: commit confirmed."""

    driver = "junos"
    file = "junos.set"
    form = "set"
    table_commands = routing_tables.COMMANDS

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return junos_lines(text)

    def section_plan(self, running: str) -> DevicePlan:
        """See `ConfiguredDevice.section_plan`: in the form of `set` every line stands for itself.

        Lines about the fabric's ports that were not rendered are of others. If such a line shuts a
        port, a push undoes it only if it opens ports. Any other it removes only if it overrules
        lines. A description needs neither, as the rendered one replaces it.
        """
        text = self.rendered()
        present = [line.strip() for line in running.splitlines() if line.strip()]
        rendered, routes = dict.fromkeys(text.splitlines()), self._route_lines(text)
        add = [line for line in rendered if line not in routes and line not in present]
        ports = {_port(line) for line in rendered if line.startswith("set interfaces ")}
        not_rendered = [line for line in present if _port(line) in ports and line not in rendered]
        shutting = [line for line in not_rendered if SHUTS_PORT.match(line)]
        foreign = [
            line
            for line in not_rendered
            if not SHUTS_PORT.match(line) and not DESCRIPTION.match(line)
        ]
        remove: list[str] = []
        kept: list[str] = []
        if self.opens_ports:
            add += map(_undoing_line, shutting)
        else:
            kept += shutting
        if LINES in self.overrule:
            remove += map(_undoing_line, foreign)
        else:
            kept += foreign
        still_shut = () if self.opens_ports else map(_port, shutting)
        return DevicePlan(
            add=tuple(add), remove=tuple(remove), kept=tuple(kept), shut=frozenset(still_shut)
        )


def _port(line: str) -> str:
    """The port that a line in the form of `set` is about; "" for other lines.

    >>> _port("set interfaces et-0/0/1 mtu 9192")
    'et-0/0/1'
    """
    match line.split():
        case [_command, "interfaces", port, *_]:
            return port
    return ""


def _undoing_line(line: str) -> str:
    """The line that undoes another: `activate` for `deactivate`, `delete` for `set`."""
    command, _, rest = line.partition(" ")
    return f"activate {rest}" if command == "deactivate" else f"delete {rest}"
