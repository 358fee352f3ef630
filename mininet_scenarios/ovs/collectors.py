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
)
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError
from mininet_scenarios.ovs.ovsfabric import COLLECTED, collector_name
from mininet_scenarios.traffic.probing import PROBE_LATE, columns, encoded

WAVE = 32
"""Frames of a collector at once: Open vSwitch drops packet-ins when more than a hundred wait."""

PROBE_FROM, PROBE_NUMBERS = 1023, 1 << 31
"""The TCP port of a probe, and the first number of its packets: others are sent meanwhile."""


class CollectorFrames:
    """Sends frames over the collectors' management sockets; hosts in the collectors' order."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        """folder: of Open vSwitch's sockets."""
        self.hosts, self.number = hosts, {name: i for i, name in enumerate(hosts)}
        names = map(collector_name, range(-(-len(hosts) // COLLECTED)))
        self.connections = [ManagementConnection(folder / f"{name}.mgmt") for name in names]
        self.wave = WAVE * len(self.connections)
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS

    def close(self) -> None:
        """Hang up."""
        for connection in self.connections:
            connection.socket.close()

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host.

        Raises:
            OpenVSwitchError: Open vSwitch refused a frame, or hung up.
        """
        for name, data in frames:
            collector, host = divmod(self.number[name], COLLECTED)
            self.connections[collector].outgoing += frame_out(data, host + 1)
        for connection in self.connections:
            connection.flush()

    def hear(self, patience: float) -> list[HostFrame]:
        """What hosts get first within so many seconds; nothing where that is nothing."""
        limit = time.monotonic() + patience
        while True:
            heard = [
                (self.hosts[number * COLLECTED + port - 1], bytes(frame))
                for number, kind, data in messages(self.connections, patience)
                if kind == MessageType.PACKET_IN
                for port, frame in [packet_in(data)]
            ]
            if heard or time.monotonic() > limit:
                return heard


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

    def stop(self) -> str:
        """What it saw, as `probing.decode` takes it.

        Raises:
            OpenVSwitchError: Open vSwitch hung up meanwhile.
        """
        self.over.set()
        self.join()
        self.ends.close()
        if self.failure:
            raise OpenVSwitchError(self.failure)
        return encoded(columns(self.sent, self.heard, len(self.pairs)))

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
