"""The inner process of the Mininet engine: the switches, the network and the controller.

`mininet_scenarios.engines.inner_engine` starts it and sends it requests, which are the methods of
`MininetChild`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mininet_scenarios.engines.host_flows import carry_tcp, carry_udp
from mininet_scenarios.engines.inner_child import OpenFlowChild, prepare, serve
from mininet_scenarios.engines.network import FabricNetwork, VethFabric
from mininet_scenarios.engines.prompt import run as run_prompt
from mininet_scenarios.scenario.engine import Progress, Setup
from mininet_scenarios.scenario.observations import FlowRates, Flows
from mininet_scenarios.traffic.frame_exchange import HostFrames


class MininetChild(OpenFlowChild):
    """A network of Mininet's hosts, veth cables and bridges."""

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
        with ThreadPoolExecutor(1) as thread:  # Open vSwitch and the hosts start at the same time
            ovs_start = thread.submit(self.ovs.start)
            self.network.add_hosts(self.progress)
            ovs_start.result()
        self.network.start()
        if self.setup.rate:
            self.network.limit(self.setup.rate)

    def frames_of_hosts(self) -> HostFrames:
        """Sockets in the hosts' namespaces."""
        pids = (host.pid for host in self.network.hosts)
        return HostFrames(dict(zip(self.hosts.names, pids, strict=True)))

    def flow(self, flows: Flows, seconds: float) -> FlowRates:
        """Let flows run for some seconds."""
        self.network.widen_send_buffers()
        before = self.sent("bytes")
        if flows.protocol == "udp":
            arrived = carry_udp(self.network, flows, seconds)
        else:
            arrived = carry_tcp(self.network, flows, seconds, self.setup.work)
        sent = self.sent("bytes") - before
        megabits = sent * 8 / 1e6
        return FlowRates(arrived, megabits / seconds)

    def prompt(self, terminal: str) -> None:
        """Run Mininet's prompt at a terminal, until its end."""
        repairs = self.setup.repair and self.controller.process is not None
        run_prompt(self.network, self.loads, Path(terminal), repairs)


if __name__ == "__main__":
    serve(MininetChild)
