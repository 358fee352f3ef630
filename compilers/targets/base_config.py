"""The base configuration of a switch for templates of routers: management, time, logs.

It comes from `base` of fabric.yaml and the inventory. `P2pVariables` gives it to templates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """The base configuration of a switch; "" and () for what fabric.yaml does not say.

    The fields of management are "" where fabric.yaml or the inventory says no management address.
    """

    interface: str
    """The name of the management port, over which no system forwards packets of the fabric."""
    vrf: str
    """The name of the management VRF."""
    address: str
    """The management address of the switch, with its prefix length."""
    gateway: str
    """The next hop of the default route in the management VRF."""
    ntp: tuple[str, ...]
    """The addresses of NTP servers."""
    syslog: tuple[str, ...]
    """The addresses of syslog servers."""

    @classmethod
    def of(cls, build: Build, vertex: int, interface: str, vrf: str) -> BaseConfig:
        """The base configuration of a switch.

        Args:
            build: what is rendered.
            vertex: the vertex of the switch.
            interface: the management port of the system, unless fabric.yaml names another.
            vrf: the management VRF of the system.
        """
        management: dict[str, Any] = build.base.get("management", {})
        address = build.wiring.management[vertex]
        is_managed = bool(management and address)
        return cls(
            interface=management.get("interface", interface) if is_managed else "",
            vrf=vrf if is_managed else "",
            address=f"{address}/{management['length']}" if is_managed else "",
            gateway=management.get("gateway", "") if is_managed else "",
            ntp=tuple(build.base.get("ntp", ())),
            syslog=tuple(build.base.get("syslog", ())),
        )

    @property
    def six(self) -> bool:
        """Whether the management address is IPv6."""
        return ":" in self.address

    @property
    def everywhere(self) -> str:
        """The prefix of the default route, in the address family of the management address."""
        return "::/0" if self.six else "0.0.0.0/0"
