"""Hosts' ends of a fabric without hosts, and a probe over them.

Each collector (`ovsfabric`) is a bridge with the other ends of some hosts' ports. A packet-out at a
collector enters the fabric as if the host had sent it, and what the fabric delivers to a host comes
to us from its collector as a packet-in, with the port it came to.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import MessageType
from controller.openflow.messages import packet_in
from mininet_scenarios.ovs.frames import HASHED, FrameWriter, HostFrame, links_of, marked
from mininet_scenarios.ovs.management_socket import (
    WHOLE_PACKETS,
    ManagementConnection,
    frame_out,
    messages,
    settle,
)
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError
from mininet_scenarios.ovs.ovsfabric import COLLECTED, collector_name
from mininet_scenarios.scenario.engine import SILENT, Probed, Progress
from mininet_scenarios.traffic.frame_exchange import PATIENCE, WAVE, send_all
from mininet_scenarios.traffic.probing import PROBE_LATE, probed

BLOCK, FIRST_PORT = 1 << 15, 1024
"""Packets of a round that are in memory at the same time, and the TCP port of the first."""

PROBE_FROM, PROBE_NUMBERS = 1023, 1 << 31
"""The TCP port of a probe, and the first number of its packets: others are sent meanwhile."""


class CollectorFrames:
    """Sends frames over the collectors' management sockets; hosts in the collectors' order."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        """folder: of Open vSwitch's sockets."""
        self.hosts, self.number = hosts, {name: i for i, name in enumerate(hosts)}
        names = map(collector_name, range(-(-len(hosts) // COLLECTED)))
        self.connections = [ManagementConnection(folder / f"{name}.mgmt") for name in names]
        self.came: list[HostFrame] = []
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS
        settle(self.connections)  # from now on all of them get what is collected

    def close(self) -> None:
        """Hang up."""
        for connection in self.connections:
            connection.socket.close()

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host; returns when Open vSwitch has dealt with them.

        Raises:
            OpenVSwitchError: Open vSwitch refused a frame, or does not answer.
        """
        for name, data in frames:
            collector, host = divmod(self.number[name], COLLECTED)
            self.connections[collector].outgoing += frame_out(data, host + 1)
        self.came += self._packets(settle(self.connections))

    def hear(self, patience: float) -> list[HostFrame]:
        """What hosts get first within so many seconds; nothing where that is nothing."""
        limit = time.monotonic() + patience
        while not self.came and (left := limit - time.monotonic()) > 0:
            self.came = self._packets(messages(self.connections, left))
        came, self.came = self.came, []
        return came

    def send_pairs(
        self, writer: FrameWriter, pairs: NDArray[np.int64], progress: Progress, first: int = 0
    ) -> NDArray[np.int16]:
        """A packet over each pair, int64[n, 2]; int16[n], links that it crossed, SILENT if lost.

        One that comes to another host than it should is lost. first: the number of the first one.
        """
        hops = np.full(len(pairs), SILENT, np.int16)
        # By chance: so each collector gets a few of a wave.
        order = np.random.default_rng(1).permutation(len(pairs))
        source, destination = pairs[order].T

        def place(frame: HostFrame) -> int:
            number = (marked(frame[1]) or 0) - first
            return number if 0 <= number < len(pairs) else SILENT

        for begin in range(0, len(pairs), BLOCK):
            numbers = np.arange(begin, min(begin + BLOCK, len(pairs)))
            ends, ports = (source[numbers], destination[numbers]), FIRST_PORT + numbers % BLOCK
            frames = writer.of_kind(HASHED, *ends, ports, first + begin).by_host(self.hosts)
            wave = WAVE * len(self.connections)
            for frame in send_all(
                self, frames, lambda f: place(f) >= 0, len(frames), PATIENCE[-1], wave
            ):
                at = place(frame)
                if at >= 0 and frame[0] == self.hosts[destination[at]]:
                    hops[order[at]] = links_of(frame[1])
            progress(begin + len(frames), len(pairs))
        return hops

    def _packets(self, heard: Sequence[tuple[int, int, bytes]]) -> list[HostFrame]:
        """Packet-ins of collectors, by the hosts that they are for."""
        return [
            (self.hosts[number * COLLECTED + port - 1], bytes(frame))
            for number, kind, data in heard
            if kind == MessageType.PACKET_IN
            for port, frame in [packet_in(data)]
        ]


class FabricProbe(Thread):
    """Sends a packet over each pair of hosts (int64[n, 2]) every `interval` seconds."""

    def __init__(
        self, ends: CollectorFrames, writer: FrameWriter, pairs: NDArray[np.int64], interval: float
    ) -> None:
        super().__init__(daemon=True)
        self.ends, self.writer, self.pairs, self.interval = ends, writer, pairs, interval
        self.sent: list[float] = []
        self.heard: dict[int, tuple[float, int]] = {}
        self.over, self.failure = Event(), ""

    def run(self) -> None:
        """Until `stop`, and then until the last packets are there or late."""
        begin, rounds = time.monotonic(), 0
        try:
            while not self.over.is_set():
                due = begin + rounds * self.interval
                if time.monotonic() >= due:
                    self._send()
                    rounds += 1
                self._hear(max(0.0, min(due - time.monotonic(), PROBE_LATE)))
            end = time.monotonic() + PROBE_LATE
            while len(self.heard) < len(self.sent) and (left := end - time.monotonic()) > 0:
                self._hear(left)
        except OpenVSwitchError as error:
            self.failure = str(error)

    def stop(self) -> Probed:
        """What it saw.

        Raises:
            OpenVSwitchError: Open vSwitch hung up meanwhile.
        """
        self.over.set()
        self.join()
        self.ends.close()
        if self.failure:
            raise OpenVSwitchError(self.failure)
        return probed(self.sent, self.heard, len(self.pairs))

    def _send(self) -> None:
        source, destination = self.pairs.T
        first = PROBE_NUMBERS + len(self.sent)
        frames = self.writer.of_kind(HASHED, source, destination, PROBE_FROM, first)
        self.sent += [time.monotonic()] * len(self.pairs)
        self.ends.send(frames.by_host(self.ends.hosts))

    def _hear(self, patience: float) -> None:
        for host, data in self.ends.hear(patience):
            place = (marked(data) or 0) - PROBE_NUMBERS
            if 0 <= place < len(self.sent):
                destination = self.pairs[place % len(self.pairs), 1]
                if self.ends.hosts[destination] == host:
                    self.heard.setdefault(place, (time.monotonic(), links_of(data)))
