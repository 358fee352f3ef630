"""Sends frames between hosts, and again those that do not arrive.

A slow machine may drop a frame, too. So `exchange`, which the exercise of rules calls, sends
missing frames several times. A frame that never arrives was lost by the fabric.

Frames are sent in one of two ways. `HostFrames` sends by a socket in each host. Without hosts,
`CollectorFrames` sends by collectors (`ovsfabric`), the bridges at the other ends of hosts' ports:
a packet-out at a collector enters the fabric as if the host had sent it, and a frame that the
fabric delivers to a host comes back as a packet-in with the host's port. `CollectorProber` sends
the packets of rounds and probes that way.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.protocol import MessageType
from controller.openflow.messages import packet_in
from mininet_scenarios.machine.netns import entered
from mininet_scenarios.ovs.frames import HASHED, FrameWriter, HostFrame, frame_number, links_of
from mininet_scenarios.ovs.management_socket import (
    WHOLE_PACKETS,
    ManagementConnection,
    ReceivedMessage,
    frame_out,
    messages,
    settle,
)
from mininet_scenarios.ovs.ovsfabric import HOSTS_PER_COLLECTOR, collector_name
from mininet_scenarios.traffic.probing import Arrival, Prober, widen_receive_buffer

PATIENCE = (0.1, 0.3, 1.0)
"""Seconds without any awaited frame, after which missing frames are sent again; after the last of
them, missing frames are lost. A frame takes the same path each time, because the headers that Open
vSwitch's hash takes in stay the same.
"""
WAVE_PATIENCE = 0.1
"""Seconds without any awaited frame, after which the next wave is sent."""
WAVE = 32
"""Frames sent at once: Open vSwitch drops packet-ins when more than a hundred wait."""
EVERY_PROTOCOL = 3
"""ETH_P_ALL of Linux."""
LARGEST_FRAME = 2048
"""The most bytes of a frame that a host receives."""
FIRST_PORT, PORTS = 1024, 1 << 15
"""The TCP source port of the first pair of hosts, and how many pairs have different ports."""
PROBE_NUMBERS = 1 << 31
"""The number of a probe's first packet. Packets of rounds, which are sent meanwhile, have lower
numbers."""


class HostEnds(Protocol):
    """Sends and receives frames as hosts do."""

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""

    def hear(self, patience: float) -> list[HostFrame]:
        """The first frames that hosts receive within so many seconds, if any."""


class ExchangedFrames(NamedTuple):
    """The result of an exchange of n frames."""

    received: list[HostFrame]
    """The frames that hosts have received, of any sender."""
    times_sent: list[int]
    """How many times each frame was sent."""


def exchange(
    ends: HostEnds,
    frames: Sequence[HostFrame],
    expected: Sequence[Hashable],
    identify: Callable[[HostFrame], Hashable],
) -> ExchangedFrames:
    """Send frames in waves, and again those for which nothing arrived.

    After the last wave, the missing frames of all waves are waited for. Hosts may receive other
    frames for ever, such as a controller's LLDP; they do not prolong the wait.

    Args:
        ends: the hosts.
        frames: n frames to send.
        expected: of each frame, the identity of the frame that has to arrive; None if none has to.
        identify: the identity of a frame that a host has received.
    """
    received: list[HostFrame] = []
    unsent, times_sent = list(range(len(frames))), [0] * len(frames)
    missing = {identity for identity in expected if identity is not None}
    for patience in PATIENCE:
        for first in range(0, len(unsent), WAVE):
            wave = unsent[first : first + WAVE]
            ends.send([frames[number] for number in wave])
            for number in wave:
                times_sent[number] += 1
            is_last = first + WAVE >= len(unsent)
            awaited = {expected[number] for number in (unsent if is_last else wave)}
            wave_patience = patience if is_last else WAVE_PATIENCE
            received += _receive(ends, awaited, missing, identify, wave_patience)
        unsent = [number for number in unsent if expected[number] in missing]
    return ExchangedFrames(received, times_sent)


def _receive(
    ends: HostEnds,
    awaited: Set[Hashable],
    missing: set[Hashable],
    identify: Callable[[HostFrame], Hashable],
    patience: float,
) -> list[HostFrame]:
    """The frames that hosts receive until the awaited ones have arrived.

    Args:
        ends: the hosts.
        awaited: the identities of frames to wait for.
        missing: the identities of all frames that have not arrived; those that arrive now are
            removed.
        identify: the identity of a frame that a host has received.
        patience: the seconds without any missing frame after which the wait ends.
    """
    received: list[HostFrame] = []
    seconds_left = patience
    while awaited & missing and seconds_left > 0:
        start = time.monotonic()
        frames = ends.hear(seconds_left)
        received += frames
        arrived = missing & set(map(identify, frames))
        missing -= arrived
        seconds_left = patience if arrived else seconds_left - (time.monotonic() - start)
        if not frames:
            break
    return received


class HostFrames:
    """Sends and receives frames by a socket at the interface `eth0` of each host."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        """Open the sockets.

        Args:
            processes: by name of a host, the id of a process in its network namespace.
        """
        self.sockets = {host: _raw_socket(process) for host, process in processes.items()}
        self.host = {sock.fileno(): host for host, sock in self.sockets.items()}
        """The host of each socket, by the socket's file descriptor."""
        self.poll = select.epoll()
        for file in self.host:
            self.poll.register(file, select.EPOLLIN)

    def close(self) -> None:
        """Close the sockets."""
        self.poll.close()
        for sock in self.sockets.values():
            sock.close()

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host."""
        for host, data in frames:
            with suppress(OSError):  # a frame that the interface refuses is lost
                self.sockets[host].send(data)

    def hear(self, patience: float) -> list[HostFrame]:
        """The first frames that hosts receive within so many seconds, without those they send."""
        heard, limit = list[HostFrame](), time.monotonic() + patience
        while not heard and time.monotonic() < limit:
            for file, _ in self.poll.poll(max(0.0, limit - time.monotonic())):
                host = self.host[file]
                while True:
                    try:
                        data, address = self.sockets[host].recvfrom(LARGEST_FRAME)
                    except BlockingIOError:
                        break
                    _, _, packet_type, *_ = address  # of a packet socket (packet(7))
                    if packet_type != socket.PACKET_OUTGOING:
                        heard.append((host, data))
        return heard


def _raw_socket(process: int) -> socket.socket:
    """A packet socket at `eth0` in the network namespace of a process."""
    with entered(process):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        sock.bind(("eth0", EVERY_PROTOCOL))
    widen_receive_buffer(sock)
    sock.setblocking(False)
    return sock


class CollectorFrames:
    """Sends and receives frames over the management sockets of the collectors."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        """Connect to the collectors.

        Args:
            folder: of Open vSwitch's sockets.
            hosts: the names of all hosts, in the order of the collectors' ports.
        """
        self.hosts, self.number = hosts, {name: i for i, name in enumerate(hosts)}
        names = map(collector_name, range(ceil(len(hosts) / HOSTS_PER_COLLECTOR)))
        self.connections = [ManagementConnection(folder / f"{name}.mgmt") for name in names]
        self.queue: list[HostFrame] = []
        """Frames that hosts have received and `hear` has not returned yet."""
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS
        settle(self.connections)  # from now on every collector passes frames on

    def close(self) -> None:
        """Close the connections."""
        for connection in self.connections:
            connection.socket.close()

    def send(self, frames: Sequence[HostFrame]) -> None:
        """Send each frame from its host; returns when Open vSwitch has forwarded them.

        Raises:
            OpenVSwitchError: Open vSwitch refused a frame, or does not answer.
        """
        for name, data in frames:
            collector, host = divmod(self.number[name], HOSTS_PER_COLLECTOR)
            self.connections[collector].outgoing += frame_out(data, host + 1)
        self.queue += self._packets(settle(self.connections))

    def hear(self, patience: float) -> list[HostFrame]:
        """The first frames that hosts receive within so many seconds, if any."""
        limit = time.monotonic() + patience
        while not self.queue and time.monotonic() < limit:
            seconds_left = max(0.0, limit - time.monotonic())
            self.queue = self._packets(messages(self.connections, seconds_left))
        received, self.queue = self.queue, []
        return received

    def _packets(self, received: Sequence[ReceivedMessage]) -> list[HostFrame]:
        """The frames of packet-ins from collectors, each with the host that receives it."""
        frames: list[HostFrame] = []
        for answer in received:
            if answer.kind == MessageType.PACKET_IN:
                port, frame = packet_in(answer.data)
                host = self.hosts[answer.connection * HOSTS_PER_COLLECTOR + port - 1]
                frames.append((host, bytes(frame)))
        return frames


class CollectorProber(Prober):
    """Sends TCP packets from collector to collector, with another source port for each pair.

    A packet that arrives at a wrong host counts as lost.
    """

    late = PATIENCE[-1]

    def __init__(
        self, folder: Path, writer: FrameWriter, pairs: NDArray[np.int64], first: int
    ) -> None:
        """Connect to the collectors.

        Args:
            folder: of Open vSwitch's sockets.
            writer: writes the frames.
            pairs: int64[n, 2], the sending and the receiving hosts.
            first: the number of the first packet.
        """
        super().__init__(len(pairs))
        self.writer, self.hosts_of_pair, self.first = writer, pairs, first
        self.names = writer.hosts.names
        self.ends = CollectorFrames(folder, self.names)
        self.under_way = WAVE * len(self.ends.connections)

    def close(self) -> None:
        """Close the connections."""
        self.ends.close()

    def send(self, count: int) -> None:
        """Send a packet over each of the next pairs at the same time."""
        begin = len(self.sent)
        number = np.arange(begin, begin + count) % self.pairs
        source, destination = self.hosts_of_pair[number].T
        ports = FIRST_PORT + number % PORTS
        frames = self.writer.of_kind(HASHED, source, destination, ports, self.first + begin)
        self.sent += [time.monotonic()] * len(frames)
        self.ends.send(frames.by_host(self.names))

    def hear(self, patience: float) -> None:
        """Note the frames that the collectors have received."""
        for host, data in self.ends.hear(patience):
            packet = (frame_number(data) or 0) - self.first
            if 0 <= packet < len(self.sent):
                destination = self.hosts_of_pair[packet % self.pairs, 1]
                if self.names[destination] == host:
                    self.arrivals.setdefault(packet, Arrival(time.monotonic(), links_of(data)))
