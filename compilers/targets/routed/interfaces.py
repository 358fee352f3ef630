"""Names of ports in each system."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from compilers.tables.build import Build

BRIDGE = "hosts"
"""The interface that stands for the host ports of a Linux switch where it has several."""


@dataclass(frozen=True, slots=True)
class Interfaces:
    """The names that a system has for ports.

    pattern: a whole name; required and example: the same for people. usual: the name of port n
    where no inventory says one, {} its number, first + step·(n - 1); "" keeps the build's own.
    """

    pattern: re.Pattern[str]
    required: str
    example: str
    usual: str = ""
    first: int = 1
    step: int = 1

    def named(self, build: Build) -> Build:
        """The build; without an inventory its ports have the system's own names."""
        if not self.usual or "inventory" in build.inputs:
            return build
        names = tuple(
            tuple(self.usual.format(self.first + self.step * n) for n in range(len(ports)))
            for ports in build.wiring.port_names
        )
        return replace(build, wiring=replace(build.wiring, port_names=names))


LINUX = Interfaces(
    re.compile(r"(?!(?:lo|all|default|hosts)$)[A-Za-z0-9][A-Za-z0-9._-]{0,14}"),
    "interface names of at most 15 letters, digits and . _ -, "
    f"and none of lo, all, default, {BRIDGE}",
    "as Linux does",
)
"""Names that Linux takes for an interface (dev_valid_name), less those that need quoting."""
EOS = Interfaces(
    re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){0,2}"),
    "interface names of EOS",
    "like Ethernet1 or Ethernet1/1",
    "Ethernet{}",
)
NXOS = Interfaces(
    re.compile(r"Ethernet[1-9][0-9]{0,2}(/[1-9][0-9]{0,2}){1,2}"),
    "interface names of NX-OS",
    "like Ethernet1/1",
    "Ethernet1/{}",
)
JUNOS = Interfaces(
    re.compile(r"(ge|mge|xe|et)-[0-9]{1,2}/[0-9]/[0-9]{1,3}(:[0-9])?"),
    "interface names of Junos",
    "like et-0/0/0 or et-0/0/0:0",
    "et-0/0/{}",
    first=0,
)
SRLINUX = Interfaces(
    re.compile(r"ethernet-[1-9][0-9]?(/[1-9][0-9]?)?/([1-9][0-9]?|1[01][0-9]|12[0-8])"),
    "interface names of SR Linux, whose last number is at most 128",
    "like ethernet-1/1",
    "ethernet-1/{}",
)
SONIC = Interfaces(
    re.compile(r"Ethernet(0|[1-9][0-9]{0,3})"),
    "interface names of SONiC",
    "like Ethernet0",
    "Ethernet{}",
    first=0,
    step=4,
)
"""Without an inventory every fourth number, as on the virtual switch and on ports of four lanes."""
