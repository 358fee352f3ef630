"""Packets between the first hosts of all switches of a fabric on real Open vSwitch."""

from __future__ import annotations

import numpy as np

from mininet_scenarios.ovs.frames import FrameWriter
from mininet_scenarios.ovs.ovsfabric import OvsFabric
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import SILENT
from mininet_scenarios.traffic.frame_exchange import CollectorProber


class Probe:
    """Sends a packet over every pair twice, and counts what does not arrive.

    without: a switch whose own hosts are not looked at.
    """

    def __init__(self, ovs, build, without=None):
        self.hosts, self.without = HostSample.of(build, 1), without
        self.fabric = OvsFabric(build, ovs, self.hosts)
        self.fabric.start()
        self.folder, self.numbered = ovs.folder, 0
        self.writer = FrameWriter(build, self.hosts, 4)
        self.pairs = np.repeat(np.argwhere(self.hosts.every_pair()), 2, axis=0)

    def lost(self):
        """The pairs of switches that have lost a packet."""
        first, self.numbered = self.numbered, self.numbered + len(self.pairs)
        prober = CollectorProber(self.folder, self.writer, self.pairs, first)
        hops = prober.run_round(lambda *_: None)
        lost = self.pairs[hops == SILENT].tolist()
        return {(a, b) for a, b in lost if self.without not in (a, b)}
