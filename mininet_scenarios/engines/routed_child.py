"""The inner process of the engines `linux` and `frr`: kernels forward by the rendered files.

`mininet_scenarios.engines.inner_engine` starts it and sends it requests, which are the methods of
`RoutedChild`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.targets.routed.interfaces import BRIDGE
from compilers.targets.routed.linux_ports import LINUX
from mininet_scenarios.engines.inner_child import RUN, InnerChild, prepare, serve
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.machine.netns import batch
from mininet_scenarios.scenario.engine import Progress, Setup
from mininet_scenarios.scenario.outage import Event, PhysicalChange
from mininet_scenarios.verdict.predict import by_port

TABLE = "5046"
"""The kernel's routing table for the routes of `divert`."""
PRIORITY = "1"
"""The priority of the rule by which the kernel looks routes up in that table first."""


@dataclass(frozen=True, slots=True)
class PortNextHop:
    """What is behind a port, as a next hop of the kernel's routes."""

    ipv4: str
    """The words of `ip route` for an IPv4 route."""
    ipv6: str
    """The words of `ip route` for an IPv6 route."""


class RoutedChild(InnerChild):
    """A network of routers and hosts, each in a network namespace of its own."""

    network: Routers

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.build = LINUX.named(self.build)
        self.diverted: int | None = None
        """The switch that `divert` has changed and `restore` has not."""

    def start(self, target: str, rendered: Path) -> None:
        """Bring up every router and host from files that were rendered for a target."""
        prepare()
        daemons = RUN / "daemons"
        daemons.mkdir()
        self.network = Routers(self.build, rendered, target, self.hosts, daemons)
        self.network.start()
        self.network.quieten()

    def divert(self, node: str, egress: int, port: int) -> None:
        """Make packets of one egress class leave a switch by a wrong port, as a planted fault.

        A rehearsal does so to see that its checks notice it. The wrong routes are in a table that
        the kernel looks up before the switch's own.
        """
        plan, routes, switch = self.build.addressing, self.build.tables.routes, self.vertex[node]
        hop = self._next_hop(switch, port)
        prefixes = routes.prefixes(switch)[routes.egress[switch] == egress].tolist()
        lines = [f"route add {plan.network(p)} {hop.ipv4} table {TABLE}" for p in prefixes]
        if plan.ipv6:
            lines += [f"route add {plan.network6(p)} {hop.ipv6} table {TABLE}" for p in prefixes]
        batch(lines, *self.network.switches[switch].command_prefix, "ip")
        self._change_rule("add", switch)
        self.diverted = switch

    def restore(self) -> None:
        """Undo the last `divert`."""
        switch, self.diverted = self.diverted, None
        if switch is not None:
            self._change_rule("del", switch)
            for family in ("-4", "-6"):
                self.network.switches[switch].run("ip", family, "route", "flush", "table", TABLE)

    def loads(self) -> NDArray[np.int64]:
        """Packets that have left each switch, by the kernels' counters, int64[S, ports + 1]."""
        return by_port(self.build.wiring, self.network.sent())

    def apply(self, event: Event) -> None:
        """Take both ends of cables down, or up again."""
        if not isinstance(event, PhysicalChange):
            raise TypeError(f"an event that routers do not have: {event}")
        wiring = self.build.wiring
        for names in event.links:
            u, v = (self.vertex[name] for name in names)
            for near, far in ((u, v), (v, u)):
                link = int(np.flatnonzero(wiring.far[near] == far)[0])
                self.network.set_link(near, link, event.up)

    def settle(self, patience: float) -> None:
        """Wait until every router has the routes that it can have, and no link carries packets.

        With a probe links always carry packets, and nobody compares their counters.
        """
        self.network.settle(patience)
        if self.probe is None:
            self.network.quieten()

    def _next_hop(self, switch: int, port: int) -> PortNextHop:
        """The switch or the host behind a port."""
        plan, wiring = self.build.addressing, self.build.wiring
        links = np.flatnonzero(wiring.port[switch] == port).tolist()
        if links:
            device = self.network.interface_name(switch, links[0])
            # Rendered files give vertex v the link-local address fe80::(v + 1).
            hop = f"fe80::{wiring.far[switch, links[0]] + 1:x} dev {device}"
            return PortNextHop(f"via inet6 {hop}", f"via {hop}")
        host = int(np.flatnonzero(wiring.host_port[switch] == port)[0])
        has_bridge = np.count_nonzero(wiring.host_port[switch]) > 1
        device = BRIDGE if has_bridge else wiring.port_name(switch, port)
        address6 = plan.host6(switch, host) if plan.ipv6 else ""
        return PortNextHop(
            f"via {plan.host(switch, host)} dev {device}", f"via {address6} dev {device}"
        )

    def _change_rule(self, action: str, switch: int) -> None:
        """Add or delete the rule that leads to the diverted routes of a switch."""
        words = ("rule", action, "priority", PRIORITY, "table", TABLE)
        for family in ("-4", "-6"):
            self.network.switches[switch].run("ip", family, *words)


if __name__ == "__main__":
    serve(RoutedChild)
