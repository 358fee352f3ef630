"""The inner process of the engines `linux` and `frr`: kernels forward by the rendered files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.targets.routed.interfaces import BRIDGE
from compilers.targets.routed.linux_ports import LINUX
from mininet_scenarios.engines.inner_child import RUN, InnerChild, prepare, serve
from mininet_scenarios.engines.routers import Routers
from mininet_scenarios.machine.netns import batch
from mininet_scenarios.scenario.engine import Event, PhysicalChange, Progress, Setup
from mininet_scenarios.verdict.predict import by_port

TABLE, PRIORITY = "5046", "1"
"""Of the kernel's routes that lead astray on purpose, and of the rule that leads to them."""


class RoutedChild(InnerChild):
    """A network namespace a router and host."""

    network: Routers

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.build = LINUX.named(self.build)
        self.diverted: int | None = None

    def start(self, target: str, rendered: Path) -> None:
        """Bring up every router and host, of files that were rendered for a target."""
        prepare()
        daemons = RUN / "daemons"
        daemons.mkdir()
        self.network = Routers(self.build, rendered, target, self.hosts, daemons)
        self.network.start()
        self.network.quieten()

    def divert(self, node: str, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port: by routes that come before its own."""
        plan, routes, switch = self.build.addressing, self.build.tables.routes, self.vertex[node]
        hops = self._next_hops(switch, port)
        wanted = routes.prefixes(switch)[routes.egress[switch] == egress].tolist()
        lines = [f"route add {plan.network(p)} {hops[0]} table {TABLE}" for p in wanted]
        if plan.ipv6:
            lines += [f"route add {plan.network6(p)} {hops[1]} table {TABLE}" for p in wanted]
        batch(lines, *self.network.switches[switch].inside, "ip")
        self._rule("add", switch)
        self.diverted = switch

    def restore(self) -> None:
        """Undo the last `divert`."""
        switch, self.diverted = self.diverted, None
        if switch is not None:
            self._rule("del", switch)
            for family in ("-4", "-6"):
                self.network.switches[switch].run("ip", family, "route", "flush", "table", TABLE)

    def loads(self) -> NDArray[np.int64]:
        """int64[S, ports + 1]: packets that left each switch, by the kernels' counters."""
        return by_port(self.build.wiring, self.network.sent())

    def apply(self, event: Event) -> None:
        """Take both ends of cables down, or up again."""
        if not isinstance(event, PhysicalChange):
            raise TypeError(f"an event that routers do not have: {event}")
        wiring = self.build.wiring
        for u, v in ((self.vertex[one], self.vertex[other]) for one, other in event.links):
            for near, far in ((u, v), (v, u)):
                link = int(np.flatnonzero(wiring.far[near] == far)[0])
                self.network.set_link(near, link, event.up)

    def settle(self, patience: float) -> None:
        """Wait until every router has the routes that it can have."""
        self.network.settle(patience)
        self.network.quieten()

    def _next_hops(self, switch: int, port: int) -> tuple[str, str]:
        """The switch or the host behind a port, as next hop of IPv4 and of IPv6."""
        plan, wiring = self.build.addressing, self.build.wiring
        for link in np.flatnonzero(wiring.port[switch] == port).tolist():
            hop = f"fe80::{wiring.far[switch, link] + 1:x} dev {self.network.name(switch, link)}"
            return f"via inet6 {hop}", f"via {hop}"
        number = int(np.flatnonzero(wiring.host_port[switch] == port)[0])
        several = np.count_nonzero(wiring.host_port[switch]) > 1
        device = BRIDGE if several else wiring.port_name(switch, port)
        addresses = plan.host(switch, number), plan.host6(switch, number) if plan.ipv6 else ""
        return f"via {addresses[0]} dev {device}", f"via {addresses[1]} dev {device}"

    def _rule(self, what: str, switch: int) -> None:
        words = ("rule", what, "priority", PRIORITY, "table", TABLE)
        for family in ("-4", "-6"):
            self.network.switches[switch].run("ip", family, *words)


if __name__ == "__main__":
    serve(RoutedChild)
