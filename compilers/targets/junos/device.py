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
        port, only a push that opens ports undoes it; any other only a push that overrules lines.
        """
        text = self.rendered()
        present = [line.strip() for line in running.splitlines() if line.strip()]
        rendered, routes = dict.fromkeys(text.splitlines()), self._route_lines(text)
        missing = [line for line in rendered if line not in routes and line not in present]
        ports = {_port(line) for line in rendered if line.startswith("set interfaces ")}
        not_rendered = [line for line in present if _port(line) in ports and line not in rendered]
        shutting = [line for line in not_rendered if SHUTS_PORT.match(line)]
        foreign = [
            line
            for line in not_rendered
            if not SHUTS_PORT.match(line) and not DESCRIPTION.match(line)
        ]
        removes_foreign = LINES in self.overrule
        return DevicePlan(
            add=(*missing, *(map(_undoing_line, shutting) if self.opens_ports else ())),
            remove=tuple(map(_undoing_line, foreign)) if removes_foreign else (),
            kept=(*(() if self.opens_ports else shutting), *(() if removes_foreign else foreign)),
            shut=frozenset(() if self.opens_ports else map(_port, shutting)),
        )


def _port(line: str) -> str:
    """The port that a line of the form of `set` is about; "" for other lines.

    >>> _port("set interfaces et-0/0/1 mtu 9192")
    'et-0/0/1'
    """
    words = line.split()
    return words[2] if words[1:2] == ["interfaces"] else ""


def _undoing_line(line: str) -> str:
    """The line that undoes another: `activate` for `deactivate`, `delete` for `set`."""
    command, _, rest = line.partition(" ")
    return f"activate {rest}" if command == "deactivate" else f"delete {rest}"
