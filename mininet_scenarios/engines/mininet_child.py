"""The inner process of the Mininet engine: the switches, the network and the controller."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from compilers.tables.build_folder import load
from mininet_scenarios.engines.faults import Faults
from mininet_scenarios.engines.host_flows import carry_tcp, carry_udp, ends
from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.engines.prompt import run as run_prompt
from mininet_scenarios.machine.serving import RUN, Reply, prepare, serve
from mininet_scenarios.ovs.controller_process import ControllerProcess
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsdb import Port
from mininet_scenarios.ovs.ports_down import PortsDown
from mininet_scenarios.ovs.wrong_table import Diverter
from mininet_scenarios.scenario.engine import HostSample, hops_of
from mininet_scenarios.traffic.host_frames import HostFrames
from mininet_scenarios.traffic.pinging import ping_all
from mininet_scenarios.traffic.probing import ProbeProcess
from mininet_scenarios.traffic.rule_exercise import RuleExercise

BYTES, PACKETS = 8, 9
"""The indices of the sent counters in /proc/net/dev."""


class MininetChild:
    """The requests: every public method is one, with the arguments that the outer process sends."""

    def __init__(self, job: dict[str, Any], reply: Reply) -> None:
        self.job, self.reply = job, reply
        self.logs = Path(job["logs"])
        self.build = load(Path(job["build"]))
        self.most = job["hosts"]
        self.hosts = HostSample.of(self.build, self.most)
        self.ovs = PrivateOvs(RUN / "ovs", logs=self.logs)
        self.network = FabricNetwork(self.build, self.hosts, self.ovs)
        self.controller = ControllerProcess(job)
        self.faults = Faults(self.network)
        self.probe: ProbeProcess | None = None
        self.diverter = Diverter(self.ovs)

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

    def program(self, patience: float) -> None:
        """Wait until the controller says that every switch has its program."""
        expected = int(self.controller.build.topology.present.sum())
        self.controller.wait(expected, patience, self._progress)

    def send(self, requests: list[list[int]], version: int) -> dict[str, Any]:
        """Ping: a list of (from, to, count) by host number, and the version of the protocol.

        Returns answers as (at, from, count, shortest, longest), hops of the way to `at`, and the
        packets that left the fabric's ports meanwhile as (switch, port, count).
        """
        wanted: dict[int, dict[str, int]] = {}
        number = {self.network.address(i, version): i for i in range(len(self.hosts))}
        address = list(number)
        for here, there, count in requests:
            wanted.setdefault(here, {})[address[there]] = count
        before = self._counters(PACKETS)
        rounds = [(self.network.hosts[i].popen, addresses) for i, addresses in wanted.items()]
        seen = ping_all(rounds, self._progress)
        loads = self._counters(PACKETS) - before
        answers = [
            [here, number[source], a.count, hops_of(a.highest), hops_of(a.lowest)]
            for here, heard in zip(wanted, seen, strict=True)
            for source, a in heard.items()
        ]
        switch, link = np.nonzero(loads)
        ports = self.build.wiring.port[switch, link]
        packets = np.stack((switch, ports, loads[switch, link]), axis=1)
        return {"answers": answers, "loads": packets.tolist()}

    def divert(self, switch: int, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port, in the switch itself."""
        self.diverter.divert(switch, egress, port)

    def restore(self) -> None:
        """Undo the last `divert`."""
        self.diverter.restore()

    def links(self, links: list[list[int]], up: bool) -> None:
        """Cut or mend cables."""
        self.faults.links([(u, v) for u, v in links], up)

    def nodes(self, switches: list[int], up: bool) -> None:
        """Take power from switches or give it back."""
        self.faults.nodes(switches, up)

    def swap(self, one: list[int], other: list[int], repaired: bool) -> None:
        """Let two cables change places."""
        self.faults.swap((one[0], one[1]), (other[0], other[1]), repaired)

    def run_controller(self, running: bool, round: int | None) -> None:
        """Kill the controller, in a round of a move, or start one."""
        self.controller.kill(round)
        if running:
            self.controller.start()

    def move(self, folder: str) -> None:
        """Let the controller move the fabric to another build."""
        self.controller.move(folder)

    def settle(self, patience: float) -> str:
        """Wait until switches with power have their programs, and packets follow all changes."""
        identity = self.build.wiring.datapath_id
        dark = {int(identity[v]) for v in self.faults.outage.switches}
        refused = self.controller.settle(dark, patience)
        self.faults.settle()
        return refused

    def probe_start(self, pairs: list[tuple[int, int]], interval: float) -> None:
        """Start a probe over pairs of hosts (`ProbeProcess`)."""
        self.probe = ProbeProcess(ends(self.network), pairs, interval)

    def probe_stop(self) -> str:
        """End it, and tell what it saw (`probing.decode`)."""
        assert self.probe is not None  # noqa: S101
        return self.probe.stop()

    def exercise(self, repairs: bool, tolerance: float | None) -> dict[str, Any]:
        """Let packets reach every rule of the live build (`RuleExercise`), from host to host."""
        with closing(HostFrames([host.pid for host in self.network.hosts])) as ends:
            ports = PortsDown(self.ovs, lambda v, p: Port(self.faults.interface(v, p), p))
            live, most = self.controller.build, self.most
            exercise = RuleExercise(live, self.build, most, ends, ports, self._progress)
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

    def _progress(self, done: int, total: int) -> None:
        self.reply({"progress": [done, total]})


if __name__ == "__main__":
    serve(MininetChild)
