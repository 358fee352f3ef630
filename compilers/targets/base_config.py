"""Configuration of a switch besides forwarding: management, time, logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """What a switch needs besides forwarding; "" and () where it is not given.

    interface, vrf: of management, which is separate from forwarding on every system. address: with
    its length. gateway: the default route of the VRF. ntp, syslog: addresses of servers.
    """

    interface: str
    vrf: str
    address: str
    gateway: str
    ntp: tuple[str, ...]
    syslog: tuple[str, ...]

    @classmethod
    def of(cls, build: Build, vertex: int, interface: str, vrf: str) -> BaseConfig:
        """That of a switch.

        Args:
            build: what is rendered.
            vertex: the switch.
            interface: the usual one of the system.
            vrf: that of management on the system.
        """
        said: dict[str, Any] = build.base.get("management", {})
        own = build.wiring.management[vertex]
        there = bool(said and own)
        return cls(
            interface=said.get("interface", interface) if there else "",
            vrf=vrf if there else "",
            address=f"{own}/{said['length']}" if there else "",
            gateway=said.get("gateway", "") if there else "",
            ntp=tuple(build.base.get("ntp", ())),
            syslog=tuple(build.base.get("syslog", ())),
        )

    @property
    def six(self) -> bool:
        """Whether the address of management is IPv6."""
        return ":" in self.address

    @property
    def everywhere(self) -> str:
        """The prefix of the default route of management."""
        return "::/0" if self.six else "0.0.0.0/0"
