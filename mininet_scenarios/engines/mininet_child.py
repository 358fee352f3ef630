"""The inner process of the Mininet engine: the switches, the network and the controller."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mininet_scenarios.engines.host_flows import carry_tcp, carry_udp, ends
from mininet_scenarios.engines.inner_child import OpenFlowChild, Reply, prepare, serve
from mininet_scenarios.engines.network import FabricNetwork, Faults
from mininet_scenarios.engines.prompt import run as run_prompt
from mininet_scenarios.ovs.openvswitch import Port
from mininet_scenarios.scenario.engine import LinkChange, Miswire, NodeChange, Outage
from mininet_scenarios.scenario.timeline_events import as_cabled
from mininet_scenarios.traffic.frame_exchange import HostFrames
from mininet_scenarios.traffic.pinging import answer_rows, ping_all
from mininet_scenarios.traffic.probing import ProbeProcess
from mininet_scenarios.traffic.rule_exercise import PortsDown, RuleExercise

BYTES, PACKETS = 8, 9
"""The indices of the sent counters in /proc/net/dev."""


class MininetChild(OpenFlowChild):
    """Mininet's hosts, veth cables, bridges."""

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

    def suffer(self, event: LinkChange | NodeChange | Miswire) -> None:
        """Let it happen to cables and bridges."""
        self.faults.suffer(event)

    def send(self, requests: list[list[int]], version: int) -> dict[str, Any]:
        """Ping: a list of (from, to, count) by host number, and the version of the protocol.

        Returns answers as (at, from, count, shortest, longest), hops of the way to `at`, and the
        packets that left the fabric's ports meanwhile as (switch, port, count).
        """
        addresses = [self.network.address(i, version) for i in range(len(self.hosts))]
        pids = [host.pid for host in self.network.hosts]
        before = self._counters(PACKETS)
        answers = answer_rows(ping_all(pids, addresses, requests, self._progress))
        loads = self._counters(PACKETS) - before
        switch, link = np.nonzero(loads)
        ports = self.build.wiring.port[switch, link]
        packets = np.stack((switch, ports, loads[switch, link]), axis=1)
        return {"answers": answers, "loads": packets.tolist()}

    def probe_start(self, pairs: list[tuple[int, int]], interval: float) -> None:
        """Start a probe over pairs of hosts (`ProbeProcess`)."""
        self.probe = ProbeProcess(ends(self.network), pairs, interval)

    def exercise(self, repairs: bool, tolerance: float | None) -> dict[str, Any]:
        """Let packets reach every rule of the live build (`RuleExercise`), from host to host."""
        pids = [host.pid for host in self.network.hosts]
        with closing(HostFrames(dict(zip(self.hosts.names, pids, strict=True)))) as ends:
            ports = PortsDown(self.ovs, lambda v, p: Port(self.faults.interface(v, p), p))
            live, most = as_cabled(self.controller.build, self.build), self.most
            exercise = RuleExercise(live, self.vertex, most, ends, ports, self._progress)
            return asdict(exercise.run(repairs, tolerance))

    def carry(
        self, flows: list[tuple[int, int, float]], protocol: str, parallel: int, seconds: float
    ) -> dict[str, Any]:
        """Let flows (from, to, Mb/s) run: Mb/s that arrived, and out of each port."""
        self.network.widen()
        before = self._counters(BYTES)
        if protocol == "udp":
            arrived = carry_udp(self.network, flows, seconds)
        else:
            arrived = carry_tcp(self.network, flows, parallel, seconds, self.logs)
        sent = self._counters(BYTES) - before
        switch, link = np.nonzero(sent)
        rates = sent[switch, link] * 8 / 1e6 / seconds
        ports = self.build.wiring.port[switch, link]
        loads = [
            list(row) for row in zip(switch.tolist(), ports.tolist(), rates.tolist(), strict=True)
        ]
        return {"rates": arrived, "loads": loads}

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
