"""Junos, as NAPALM reaches it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compilers.targets.devices.napalm_device import NapalmDevice
from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.devices.router_device import LINES, DevicePlan
from compilers.targets.junos import routing_tables
from compilers.targets.junos.route_lines import junos_lines


class JunosDevice(NapalmDevice):
    """Target junos, over NETCONF: commit confirmed."""

    driver = "junos"
    file = "junos.set"
    form = "set"
    held = routing_tables.COMMANDS

    def all_lines(self, text: str) -> Iterable[RouteLine]:
        """See `ConfiguredDevice.all_lines`."""
        return junos_lines(text)

    def compared(self, running: str) -> DevicePlan:
        """See `ConfiguredDevice.compared`: in the form of `set` every line stands for itself.

        Of the lines about the fabric's ports that were not rendered, those that shut a port are
        undone only by a push that opens ports, and others only by one that overrules lines.
        """
        text = self.rendered()
        held = [line.strip() for line in running.splitlines() if line.strip()]
        wanted, routes = dict.fromkeys(text.splitlines()), self._route_lines(text)
        ports = {line.split()[2] for line in wanted if line.startswith("set interfaces ")}
        of_interfaces = [line for line in held if line.split()[1:2] == ["interfaces"]]
        extra = [line for line in of_interfaces if line.split()[2] in ports and line not in wanted]
        closed = [line for line in extra if re.match(r"deactivate |set \S+ \S+ disable$", line)]
        foreign = [
            line for line in extra if line not in closed and line.split()[3:4] != ["description"]
        ]
        opened = closed if self.opens else []
        removed = foreign if LINES in self.overrule else []
        kept = [line for line in (*closed, *foreign) if line not in (*opened, *removed)]
        missing = [line for line in wanted if line not in routes and line not in held]
        return DevicePlan(
            add=(*missing, *map(_undone, opened)),
            remove=tuple(map(_undone, removed)),
            kept=tuple(kept),
            shut=frozenset(line.split()[2] for line in closed if line not in opened),
        )


def _undone(line: str) -> str:
    """The line that undoes another: `activate` for `deactivate`, `delete` for `set`."""
    command, _, rest = line.partition(" ")
    return f"activate {rest}" if command == "deactivate" else f"delete {rest}"
