"""The inner process of the Mininet engine: the switches, the network and the controller."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.engines.host_flows import carry_tcp, carry_udp
from mininet_scenarios.engines.inner_child import OpenFlowChild, Reply, prepare, serve
from mininet_scenarios.engines.network import FabricNetwork, Faults
from mininet_scenarios.engines.prompt import run as run_prompt
from mininet_scenarios.ovs.openvswitch import Port
from mininet_scenarios.scenario.engine import Miswire, Outage, PhysicalChange
from mininet_scenarios.traffic.frame_exchange import HostFrames
from mininet_scenarios.verdict.predict import by_port

BYTES, PACKETS = 8, 9
"""The indices of the sent counters in /proc/net/dev."""


class MininetChild(OpenFlowChild):
    """Mininet's hosts, veth cables, bridges."""

    network: FabricNetwork

    def __init__(self, job: dict[str, Any], reply: Reply) -> None:
        super().__init__(job, reply)
        self.network = FabricNetwork(self.build, self.hosts, self.ovs)
        self.faults = Faults(self.network)

    def start(self) -> None:
        """Start the controller, Open vSwitch and the network."""
        prepare()
        self.controller.start()
        os.environ.update(self.ovs.env)
        with ThreadPoolExecutor(1) as meanwhile:
            running = meanwhile.submit(self.ovs.start)
            self.network.add_hosts(self._progress)
            running.result()
        self.network.start()
        if rate := self.job.get("rate"):
            self.network.limit(rate)

    @property
    def outage(self) -> Outage:
        """As `Faults` has it."""
        return self.faults.outage

    def suffer(self, event: PhysicalChange | Miswire) -> None:
        """Let it happen to cables and bridges."""
        self.faults.suffer(event)

    def loads(self) -> NDArray[np.int64]:
        """By the kernel's counters."""
        return by_port(self.build.wiring, self._counters(PACKETS))

    def port(self, switch: int, number: int) -> Port:
        """The interface that is cabled there now."""
        return Port(self.faults.interface(switch, number), number)

    def host_ends(self) -> HostFrames:
        """Sockets in the hosts' namespaces."""
        pids = (host.pid for host in self.network.hosts)
        return HostFrames(dict(zip(self.hosts.names, pids, strict=True)))

    def carry(
        self, flows: list[tuple[int, int, float]], protocol: str, parallel: int, seconds: float
    ) -> tuple[list[float], list[list[float]]]:
        """Let flows (from, to, Mb/s) run: Mb/s that arrived, and out of each port."""
        self.network.widen()
        before = self._counters(BYTES)
        if protocol == "udp":
            arrived = carry_udp(self.network, flows, seconds)
        else:
            arrived = carry_tcp(self.network, flows, parallel, seconds, self.logs)
        sent = self._counters(BYTES) - before
        return arrived, by_port(self.build.wiring, sent * 8 / 1e6 / seconds).tolist()

    def prompt(self, terminal: str) -> None:
        """Mininet's prompt at a terminal, until its end."""
        run_prompt(self.build, self.faults, lambda: self._counters(PACKETS), Path(terminal))

    def _counters(self, field: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """int64[S, K]: packets or bytes that have left each switch by its k-th link."""
        sent = {}
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            sent[name.strip()] = int(counters.split()[field])
        port = self.build.wiring.port
        loads = np.zeros(port.shape, np.int64)
        for switch, link in zip(*np.nonzero(port), strict=True):
            name = self.faults.interface(int(switch), int(port[switch, link]))
            loads[switch, link] = sent[name]
        return loads


if __name__ == "__main__":
    serve(MininetChild)
