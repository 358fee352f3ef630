"""The inner process of the Mininet engine: the switches, the network and the controller."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.engines.host_flows import carry_tcp, carry_udp
from mininet_scenarios.engines.inner_child import OpenFlowChild, prepare, serve
from mininet_scenarios.engines.network import FabricNetwork, VethFabric
from mininet_scenarios.engines.prompt import run as run_prompt
from mininet_scenarios.scenario.engine import Flows, Progress, Setup
from mininet_scenarios.traffic.frame_exchange import HostFrames
from mininet_scenarios.verdict.predict import by_port

BYTES, PACKETS = 8, 9
"""The indices of the sent counters in /proc/net/dev."""


class MininetChild(OpenFlowChild):
    """Mininet's hosts, veth cables, bridges."""

    network: FabricNetwork

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.network = FabricNetwork(self.build, self.hosts, self.ovs)
        self.fabric: VethFabric = self.network.fabric

    def start(self) -> None:
        """Start the controller, Open vSwitch and the network."""
        prepare()
        self.controller.start()
        os.environ.update(self.ovs.env)
        with ThreadPoolExecutor(1) as meanwhile:
            running = meanwhile.submit(self.ovs.start)
            self.network.add_hosts(self.progress)
            running.result()
        self.network.start()
        if self.setup.rate:
            self.network.limit(self.setup.rate)

    def loads(self) -> NDArray[np.int64]:
        """By the kernel's counters."""
        return by_port(self.build.wiring, self._counters(PACKETS))

    def host_ends(self) -> HostFrames:
        """Sockets in the hosts' namespaces."""
        pids = (host.pid for host in self.network.hosts)
        return HostFrames(dict(zip(self.hosts.names, pids, strict=True)))

    def carry(self, flows: Flows, seconds: float) -> tuple[NDArray[np.float64], ...]:
        """Let flows run: Mb/s that arrived, and out of each port."""
        self.network.widen()
        before = self._counters(BYTES)
        if flows.protocol == "udp":
            arrived = carry_udp(self.network, flows, seconds)
        else:
            arrived = carry_tcp(self.network, flows, seconds, self.setup.work)
        sent = self._counters(BYTES) - before
        return arrived, by_port(self.build.wiring, sent * 8 / 1e6 / seconds)

    def prompt(self, terminal: str) -> None:
        """Mininet's prompt at a terminal, until its end."""
        run_prompt(self.network, lambda: self._counters(PACKETS), Path(terminal))

    def _counters(self, field: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """int64[S, K]: packets or bytes that have left each switch by its k-th link."""
        sent = {}
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, counters = line.partition(":")
            sent[name.strip()] = int(counters.split()[field])
        port = self.build.wiring.port
        loads = np.zeros(port.shape, np.int64)
        for switch, link in zip(*np.nonzero(port), strict=True):
            name = self.fabric.interface(int(switch), int(port[switch, link]))
            loads[switch, link] = sent[name]
        return loads


if __name__ == "__main__":
    serve(MininetChild)
