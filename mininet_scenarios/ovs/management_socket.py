"""OpenFlow 1.3 over the management socket of each bridge, besides the connection of its controller.

A connection to this socket does not disturb the controller: it never becomes master, and it gets
packet-ins only when it asks for them. Many connections are served at once, in one thread.
`messages` sends what waits and reads until something arrives. `settle` goes on until the bridges
have carried out all that was sent.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compilers.targets.openflow.message_parts import output
from compilers.targets.openflow.protocol import (
    ANY,
    HEADER,
    LOCAL,
    PACKET_OUT,
    SET_CONFIG,
    WHOLE_PACKET,
    MessageType,
    header,
    message,
)
from controller.openflow import messages as openflow
from mininet_scenarios.ovs.openvswitch import DAEMON_PATIENCE, OpenVSwitchError

SOCKET_READ_BYTES = 1 << 20
"""The most bytes that are read at once."""
WHOLE_PACKETS = message(MessageType.SET_CONFIG, 0, SET_CONFIG.pack(most_bytes=WHOLE_PACKET))
"""Asks for packet-ins with all of the packet; Open vSwitch has no packet buffers."""


class ManagementConnection:
    """A connection to the management socket of a bridge.

    It sends its greeting at once, because Open vSwitch waits only a second for a greeting.
    """

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.sendall(message(MessageType.HELLO, 0))
        self.socket.setblocking(False)
        self.outgoing = bytearray()
        """Messages that wait to be sent."""
        self.incoming = bytearray()
        """The beginning of a message whose rest has not arrived yet."""

    def flush(self) -> None:
        """Send as much of `outgoing` as the switch takes now."""
        while self.outgoing:
            try:
                sent = self.socket.send(self.outgoing)
            except BlockingIOError:
                return
            del self.outgoing[:sent]

    def read(self) -> list[bytes]:
        """Whole messages that have arrived; echo requests are answered, too.

        Raises:
            OpenVSwitchError: the switch has hung up, or sent an error.
        """
        try:
            received = self.socket.recv(SOCKET_READ_BYTES)
        except BlockingIOError:
            return []
        if not received:
            raise OpenVSwitchError("Open vSwitch hung up a management connection")
        self.incoming += received
        arrived: list[bytes] = []
        start = 0
        while start + HEADER.size <= len(self.incoming):
            kind, length, _ = header(self.incoming, start)
            if start + length > len(self.incoming):
                break
            whole_message = bytes(self.incoming[start : start + length])
            start += length
            if kind == MessageType.ECHO_REQUEST:
                self.outgoing += openflow.echo_reply(whole_message)
            if kind == MessageType.ERROR:
                error = openflow.Error.read(whole_message)
                raise OpenVSwitchError(f"OpenFlow error of type {error.type}, code {error.code}")
            arrived.append(whole_message)
        del self.incoming[:start]
        return arrived


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message from a bridge."""

    connection: int
    """The number of the connection by which it came."""
    data: bytes
    """The whole message."""

    @property
    def kind(self) -> int:
        """Its type, a `MessageType`."""
        kind, _, _ = header(self.data)
        return kind


def messages(connections: Sequence[ManagementConnection], patience: float) -> list[ReceivedMessage]:
    """Send the messages that wait, and return the first messages that arrive.

    Args:
        connections: to the bridges.
        patience: the most seconds to wait for a message.

    Raises:
        OpenVSwitchError: a switch has hung up, or sent an error.
    """
    received = []
    with selectors.DefaultSelector() as selector:
        for number, connection in enumerate(connections):
            connection.flush()
            events = selectors.EVENT_READ
            if connection.outgoing:
                events |= selectors.EVENT_WRITE
            selector.register(connection.socket, events, number)
        for key, events in selector.select(patience):
            if events & selectors.EVENT_READ:
                number = key.data
                received += [ReceivedMessage(number, data) for data in connections[number].read()]
    return received


def settle(connections: Sequence[ManagementConnection], barriers: int = 2) -> list[ReceivedMessage]:
    """Send the messages that wait, and return what arrives until switches have carried all out.

    Args:
        connections: to the bridges.
        barriers: 1 to wait for replies, 2 to wait for packet-ins, too. A bridge sends its
            packet-ins before it reads the next messages. So when it answers the second barrier, it
            has sent all packet-ins that it had at the first.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    received: list[ReceivedMessage] = []
    for _ in range(barriers):
        unanswered, deadline = len(connections), time.monotonic() + DAEMON_PATIENCE
        for connection in connections:
            connection.outgoing += message(MessageType.BARRIER_REQUEST, 0)
        while unanswered:
            arrived = messages(connections, 1)
            unanswered -= sum(answer.kind == MessageType.BARRIER_REPLY for answer in arrived)
            received += arrived
            if time.monotonic() > deadline:
                raise OpenVSwitchError(f"{unanswered} bridges do not answer")
    return received


def frame_out(data: bytes, port: int, in_port: int = LOCAL) -> bytes:
    """A packet-out: the frame leaves by a port, or goes through the tables (`TABLES`)."""
    action = b"".join(part for part in output(port) if isinstance(part, bytes))
    head = PACKET_OUT.pack(buffer=ANY, in_port=in_port, actions_length=len(action))
    return message(MessageType.PACKET_OUT, 0, head + action + data)
