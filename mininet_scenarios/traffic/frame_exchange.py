"""Frames exchanged until they have arrived: a slow machine loses none, only a fabric does.

Hosts have a socket each. Where there are none, collectors (`ovsfabric`) are in their place: bridges
with the other ends of hosts' ports. A packet-out at a collector enters the fabric as if the host
had sent it, and what the fabric delivers to a host comes to us as a packet-in, with its port.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import MessageType
from controller.openflow.messages import packet_in
from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.frames import HASHED, FrameWriter, HostFrame, links_of, marked
from mininet_scenarios.ovs.management_socket import (
    WHOLE_PACKETS,
    ManagementConnection,
    Received,
    frame_out,
    messages,
    settle,
)
from mininet_scenarios.ovs.ovsfabric import COLLECTED, collector_name
from mininet_scenarios.traffic.probing import Prober, widen_receiving

PATIENCE = (0.1, 0.3, 1.0)
"""Seconds without any frame after which those that are missing are sent again, the last time lost.

A frame takes the same path each time: Open vSwitch's hash does not look behind the ports.
"""


STILL = 0.1
"""Seconds without any awaited frame after which the next are sent."""
WAVE = 32
"""Frames sent at once: Open vSwitch drops packet-ins when more than a hundred wait."""


class HostEnds(Protocol):
    """Sends frames as hosts, and gets theirs."""

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""

    def hear(self, patience: float) -> list[HostFrame]:
        """What hosts get first within so many seconds; nothing where that is nothing."""


def exchanged(
    ends: HostEnds,
    frames: Sequence[HostFrame],
    due: Sequence[Hashable],
    came: Callable[[HostFrame], Hashable],
) -> tuple[list[HostFrame], list[int]]:
    """Send frames, and again those of which nothing came; what hosts got, and how often each went.

    Others, like a controller's LLDP, may come for ever. What is lost is waited for when all are
    sent, not after each wave.

    due: what has to come of each frame; None where nothing has to. came: what a frame that a host
    gets is of those.
    """
    heard: list[HostFrame] = []
    waiting, times = list(range(len(frames))), [0] * len(frames)
    missing = {what for what in due if what is not None}
    for patience in PATIENCE:
        for first in range(0, len(waiting), WAVE):
            wave = waiting[first : first + WAVE]
            ends.send([frames[number] for number in wave])
            for number in wave:
                times[number] += 1
            last = first + WAVE >= len(waiting)
            awaited = missing & {due[number] for number in (waiting if last else wave)}
            left = still = patience if last else STILL
            while awaited & missing and left > 0:
                since = time.monotonic()
                heard += (more := ends.hear(left))
                new = missing & set(map(came, more))
                missing -= new
                left = still if new else left - (time.monotonic() - since)
                if not more:
                    break
        waiting = [number for number in waiting if due[number] in missing]
    return heard, times


EVERY_PROTOCOL = 3
"""ETH_P_ALL of Linux."""
LARGEST_FRAME = 2048


class HostFrames:
    """A socket at the interface `eth0` of each host, by the id of a process in its namespace."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self.sockets = {host: _raw_socket(process) for host, process in processes.items()}
        self.host = {end.fileno(): host for host, end in self.sockets.items()}
        self.poll = select.epoll()
        for file in self.host:
            self.poll.register(file, select.EPOLLIN)

    def close(self) -> None:
        """Close them."""
        self.poll.close()
        for end in self.sockets.values():
            end.close()

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""
        for host, data in frames:
            with suppress(OSError):  # one that an interface does not take is lost
                self.sockets[host].send(data)

    def hear(self, patience: float) -> list[HostFrame]:
        """What comes first within so many seconds; what hosts themselves send is not heard."""
        heard, limit = list[HostFrame](), time.monotonic() + patience
        while not heard and (left := limit - time.monotonic()) > 0:
            for file, _ in self.poll.poll(left):
                host = self.host[file]
                while True:
                    try:
                        data, address = self.sockets[host].recvfrom(LARGEST_FRAME)
                    except BlockingIOError:
                        break
                    if address[2] != socket.PACKET_OUTGOING:
                        heard.append((host, data))
        return heard


def _raw_socket(process: int) -> socket.socket:
    with entered(process):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        end.bind(("eth0", EVERY_PROTOCOL))
    widen_receiving(end)
    end.setblocking(False)
    return end


FIRST_PORT, PORTS = 1024, 1 << 15
"""The TCP port of the first pair, and of how many pairs it is another one."""
PROBE_NUMBERS = 1 << 31
"""The first number of a probe's packets: others are sent meanwhile."""


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

    def _packets(self, received: Sequence[Received]) -> list[HostFrame]:
        """Packet-ins of collectors, by the hosts that they are for."""
        frames: list[HostFrame] = []
        for answer in received:
            if answer.kind == MessageType.PACKET_IN:
                port, frame = packet_in(answer.data)
                host = self.hosts[answer.connection * COLLECTED + port - 1]
                frames.append((host, bytes(frame)))
        return frames


class CollectorProber(Prober):
    """Sends TCP from collector to collector, over each pair of hosts, int64[n, 2], by a port of
    its own. One that comes to another host than it should is lost.
    """

    late = PATIENCE[-1]

    def __init__(
        self, folder: Path, writer: FrameWriter, pairs: NDArray[np.int64], first: int
    ) -> None:
        """folder: of Open vSwitch's sockets; first: the number of the first packet."""
        super().__init__(len(pairs))
        self.writer, self.at, self.first = writer, pairs, first
        self.names = writer.hosts.names
        self.ends = CollectorFrames(folder, self.names)
        self.under_way = WAVE * len(self.ends.connections)

    def close(self) -> None:
        """Hang up."""
        self.ends.close()

    def send(self, count: int) -> None:
        """Send a packet over each of the next pairs at the same time."""
        begin = len(self.sent)
        number = np.arange(begin, begin + count) % self.pairs
        (source, destination), ports = self.at[number].T, FIRST_PORT + number % PORTS
        frames = self.writer.of_kind(HASHED, source, destination, ports, self.first + begin)
        self.sent += [time.monotonic()] * len(frames)
        self.ends.send(frames.by_host(self.names))

    def hear(self, patience: float) -> None:
        """Note the frames that the collectors have received."""
        for host, data in self.ends.hear(patience):
            place = (marked(data) or 0) - self.first
            if 0 <= place < len(self.sent):
                destination = self.at[place % self.pairs, 1]
                if self.names[destination] == host:
                    self.heard.setdefault(place, (time.monotonic(), links_of(data)))
