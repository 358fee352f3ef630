"""The addresses of the hosts that take part, and what a host's kernel is told of them."""

from __future__ import annotations

from compilers.tables.build import Build
from mininet_scenarios.scenario.engine import HostSample


class HostAddresses:
    """Hosts by their numbers in `who`."""

    def __init__(self, build: Build, who: HostSample) -> None:
        self.build, self.who = build, who

    def address(self, host: int, version: int) -> str:
        """The address of a host, of version 4 or 6 of the Internet protocol."""
        plan, at = self.build.addressing, (int(self.who.switch[host]), int(self.who.number[host]))
        return str(plan.host(*at) if version == 4 else plan.host6(*at))

    def gateway(self, host: int, version: int) -> str:
        """The address of a host's gateway, of the same version."""
        plan, vertex = self.build.addressing, int(self.who.switch[host])
        return str(plan.gateway(vertex) if version == 4 else plan.network6(vertex)[1])

    def setup(self, host: int) -> list[str]:
        """What `ip -batch` configures in a host."""
        plan = self.build.addressing
        lines = ["link set lo up", "link set eth0 up"]
        lines.append(f"address add {self.address(host, 4)}/{plan.ipv4_length} dev eth0")
        lines.append(f"route add default via {self.gateway(host, 4)}")
        if plan.ipv6:
            lines.append(f"address add {self.address(host, 6)}/64 dev eth0 nodad")
            lines.append(f"route add default via {self.gateway(host, 6)}")
        return lines
