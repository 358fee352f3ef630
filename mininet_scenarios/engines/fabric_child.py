"""The inner process of the engine `ovs-fabric`: all switches in one Open vSwitch, no hosts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.addressing import format_mac
from mininet_scenarios.engines.inner_child import OpenFlowChild, prepare, serve
from mininet_scenarios.ovs.controller_process import CONTROLLER_ADDRESS
from mininet_scenarios.ovs.frames import FrameWriter
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import Progress, Setup
from mininet_scenarios.traffic.frame_exchange import (
    PROBE_NUMBERS,
    CollectorFrames,
    CollectorProber,
)

PASSED = re.compile(r'^ *bridge\("s(\d+)"\)', re.MULTILINE)
"""In a trace: a switch that the packet enters."""


class FabricChild(OpenFlowChild):
    """Bridges, patch ports, collectors in the place of hosts."""

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.fabric = OvsFabric(self.build, self.ovs, self.hosts)
        versions = (4, 6) if self.build.addressing.ipv6 else (4,)
        self.writers = {v: FrameWriter(self.build, self.hosts, v) for v in versions}
        self.numbered = 0

    def start(self) -> None:
        """Start the controller, and Open vSwitch with all its bridges."""
        prepare()
        self.controller.start()
        self.ovs.start()
        self.fabric.start(CONTROLLER_ADDRESS)

    def job(self, pairs: NDArray[np.int64], version: int, probe: bool) -> tuple[Any, ...]:
        """The class that sends frames from collector to collector, and its arguments."""
        first = PROBE_NUMBERS if probe else self.numbered
        self.numbered += len(pairs)
        return CollectorProber, self.ovs.folder, self.writers[version], pairs, first

    def host_ends(self) -> CollectorFrames:
        """The collectors."""
        return CollectorFrames(self.ovs.folder, self.hosts.names)

    def paths(self, pairs: list[list[int]]) -> list[list[str]]:
        """The switches that a packet of each pair of hosts passes, as Open vSwitch traces it."""
        return [self._path(source, destination) for source, destination in pairs]

    def _path(self, source: int, destination: int) -> list[str]:
        plan, hosts = self.build.addressing, self.hosts
        at, to = ((int(hosts.switch[i]), int(hosts.number[i])) for i in (source, destination))
        packet = (
            f"in_port={self.build.wiring.host_port[at]},tcp,dl_src={plan.mac(*at)},"
            f"dl_dst={format_mac(plan.gateway_mac)},nw_src={plan.host(*at)},"
            f"nw_dst={plan.host(*to)},nw_ttl=64"
        )
        text = self.ovs.appctl("ofproto/trace", bridge_name(at[0]), packet)
        return [self.build.wiring.names[int(number)] for number in PASSED.findall(text)]


if __name__ == "__main__":
    serve(FabricChild)
