"""The inner process of the engine `ovs-fabric`: all switches in one Open vSwitch, no hosts.

In the place of hosts there are *collectors*: bridges at the other ends of the hosts' ports, which
send frames as hosts would, and record the frames that they receive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.mac_addresses import format_mac
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
from mininet_scenarios.traffic.probing import Prober

ENTERED_BRIDGE = re.compile(r'^ *bridge\("s(\d+)"\)', re.MULTILINE)
"""A line of a trace that names the bridge of a switch that the packet enters: `bridge("s12")`."""


class FabricChild(OpenFlowChild):
    """Switches as bridges, cables as patch ports, and collectors that stand in for hosts."""

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.fabric = OvsFabric(self.build, self.ovs, self.hosts)
        versions = (4, 6) if self.build.addressing.ipv6 else (4,)
        self.writers = {v: FrameWriter(self.build, self.hosts, v) for v in versions}
        self.next_number = 0
        """The number of the next frame of a round."""

    def start(self) -> None:
        """Start the controller, and Open vSwitch with all its bridges."""
        prepare()
        self.controller.start()
        self.ovs.start()
        self.fabric.start(CONTROLLER_ADDRESS)

    def prober(
        self, pairs: NDArray[np.int64], version: int, is_probe: bool
    ) -> Callable[[], Prober]:
        """A function that makes the `Prober` which sends frames from collector to collector.

        Frames of a round and of a probe may be under way at once, so their numbers differ.
        """
        first = PROBE_NUMBERS if is_probe else self.next_number
        self.next_number += len(pairs)
        return partial(CollectorProber, self.ovs.folder, self.writers[version], pairs, first)

    def frames_of_hosts(self) -> CollectorFrames:
        """Connections to all collectors, over which frames are sent and received."""
        return CollectorFrames(self.ovs.folder, self.hosts.names)

    def paths(self, pairs: list[list[int]]) -> list[list[str]]:
        """The switches that a packet of each pair of hosts passes, as Open vSwitch traces it."""
        return [self._path(source, destination) for source, destination in pairs]

    def _path(self, source: int, destination: int) -> list[str]:
        """The names of the switches that a TCP packet between two hosts passes."""
        plan, hosts, wiring = self.build.addressing, self.hosts, self.build.wiring
        near, near_host = int(hosts.switch[source]), int(hosts.number[source])
        far, far_host = int(hosts.switch[destination]), int(hosts.number[destination])
        packet = (
            f"in_port={wiring.host_port[near, near_host]},tcp,dl_src={plan.mac(near, near_host)},"
            f"dl_dst={format_mac(plan.gateway_mac)},nw_src={plan.host(near, near_host)},"
            f"nw_dst={plan.host(far, far_host)},nw_ttl=64"
        )
        trace = self.ovs.appctl("ofproto/trace", bridge_name(near), packet)
        return [wiring.names[int(vertex)] for vertex in ENTERED_BRIDGE.findall(trace)]


if __name__ == "__main__":
    serve(FabricChild)
