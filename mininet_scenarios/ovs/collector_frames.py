"""Frames of any kind between collectors: what hosts would send, and what they would get."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compilers.targets.openflow.message_parts import output
from compilers.targets.openflow.protocol import (
    ANY,
    LOCAL,
    PACKET_OUT,
    MessageType,
    message,
)
from controller.openflow.messages import packet_in
from mininet_scenarios.ovs.frames import HostFrame
from mininet_scenarios.ovs.management_socket import WHOLE_PACKETS, ManagementConnection, headers
from mininet_scenarios.ovs.openvswitch import DAEMON_PATIENCE, OpenVSwitchError
from mininet_scenarios.ovs.ovsfabric import COLLECTED

Awaited = Callable[[HostFrame], bool]
"""Whether a frame that a host gets is one of those that are waited for."""
WAVE = 32
"""Frames sent at once: Open vSwitch drops packet-ins when more than a hundred wait."""
STILL = 0.1
"""Seconds without any frame after which the next are sent."""
BARRIER_POLL = 0.1


def frame_out(data: bytes, port: int, in_port: int = LOCAL) -> bytes:
    """A packet-out: the frame leaves by a port, or goes through the tables (`TABLES`)."""
    action = b"".join(part for part in output(port) if isinstance(part, bytes))
    head = PACKET_OUT.pack(buffer=ANY, in_port=in_port, actions_length=len(action))
    return message(MessageType.PACKET_OUT, 0, head + action + data)


class CollectorFrames:
    """Exchanges frames over the collectors' management sockets; hosts in the collectors' order."""

    def __init__(self, sockets: Sequence[Path], hosts: Sequence[str]) -> None:
        self.hosts, self.number = hosts, {name: i for i, name in enumerate(hosts)}
        self.connections = [ManagementConnection(path) for path in sockets]
        for connection in self.connections:
            connection.outgoing += WHOLE_PACKETS

    def close(self) -> None:
        """Hang up."""
        for connection in self.connections:
            connection.socket.close()

    def exchange(
        self, frames: Sequence[HostFrame], awaited: Awaited, answers: int, patience: float
    ) -> list[HostFrame]:
        """Send each frame from its host; what hosts get until so many awaited ones have come.

        One that comes twice, as it was sent again, counts once.

        patience: seconds without any frame after which it ends, too.

        Raises:
            OpenVSwitchError: Open vSwitch refused a frame, or does not answer.
        """
        heard: list[HostFrame] = []
        for first in range(0, len(frames), WAVE):
            for name, data in frames[first : first + WAVE]:
                collector, host = divmod(self.number[name], COLLECTED)
                self.connections[collector].outgoing += frame_out(data, host + 1)
            heard += self._heard(settled(self.connections))
        came = set(filter(awaited, heard))
        while len(came) < answers and (more := self._heard(_waiting(self.connections, patience))):
            heard += more
            came.update(filter(awaited, more))
        return heard

    def _heard(self, packets: list[tuple[int, bytes]]) -> list[HostFrame]:
        """Packet-ins of collectors, by the hosts that they are for."""
        return [
            (self.hosts[number * COLLECTED + port - 1], bytes(data))
            for number, packet in packets
            for port, data in [packet_in(packet)]
        ]


def settled(connections: Sequence[ManagementConnection]) -> list[tuple[int, bytes]]:
    """Send all that waits, and a barrier; packet-ins until all have answered, with their sender.

    Raises:
        OpenVSwitchError: one does not answer.
    """
    found: list[tuple[int, bytes]] = []
    unanswered, deadline = len(connections), time.monotonic() + DAEMON_PATIENCE
    for connection in connections:
        connection.outgoing += message(MessageType.BARRIER_REQUEST, 0)
    while unanswered:
        heard = _messages(connections, BARRIER_POLL)
        unanswered -= sum(kind == MessageType.BARRIER_REPLY for _, kind, _ in heard)
        found += _packets(heard)
        if time.monotonic() > deadline:
            raise OpenVSwitchError(f"{unanswered} bridges do not answer")
    return found


def _waiting(
    connections: Sequence[ManagementConnection], patience: float
) -> list[tuple[int, bytes]]:
    """Packet-ins that come within so many seconds."""
    return _packets(_messages(connections, patience))


def _packets(heard: list[tuple[int, int, bytes]]) -> list[tuple[int, bytes]]:
    return [(number, data) for number, kind, data in heard if kind == MessageType.PACKET_IN]


def _messages(
    connections: Sequence[ManagementConnection], patience: float
) -> list[tuple[int, int, bytes]]:
    """Messages that come within so many seconds: which connection's, their type, and whole."""
    found = []
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            connection.flush()
            events = selectors.EVENT_READ | selectors.EVENT_WRITE * bool(connection.outgoing)
            selector.register(connection.socket, events, number)
        for key, events in selector.select(patience):
            if events & selectors.EVENT_READ:
                data = connections[key.data].read()
                found += [(key.data, k, data[at : at + size]) for at, k, size in headers(data)]
    return found
