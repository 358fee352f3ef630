"""The base configuration of a switch for templates of routers: management, time, logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """The base configuration of a switch; "" and () where the spec says nothing."""

    interface: str
    """The port of management, which every system keeps apart from forwarding."""
    vrf: str
    """The VRF of management."""
    address: str
    """The address of management, with its length."""
    gateway: str
    """The next hop of the default route in that VRF."""
    ntp: tuple[str, ...]
    """The addresses of time servers."""
    syslog: tuple[str, ...]
    """The addresses of log servers."""

    @classmethod
    def of(cls, build: Build, vertex: int, interface: str, vrf: str) -> BaseConfig:
        """The base configuration of a switch.

        Args:
            build: what is rendered.
            vertex: of the switch.
            interface: the usual port of management on the system.
            vrf: the system's VRF of management.
        """
        network: dict[str, Any] = build.base.get("management", {})
        address = build.wiring.management[vertex]
        managed = bool(network and address)
        return cls(
            interface=network.get("interface", interface) if managed else "",
            vrf=vrf if managed else "",
            address=f"{address}/{network['length']}" if managed else "",
            gateway=network.get("gateway", "") if managed else "",
            ntp=tuple(build.base.get("ntp", ())),
            syslog=tuple(build.base.get("syslog", ())),
        )

    @property
    def six(self) -> bool:
        """Whether the address of management is IPv6."""
        return ":" in self.address

    @property
    def everywhere(self) -> str:
        """The prefix of the default route, in the family of the address of management."""
        return "::/0" if self.six else "0.0.0.0/0"
