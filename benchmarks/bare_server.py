"""A socket server that sends every switch bytes made before: the least that a controller can take.

It knows hello, features, echo and barrier, and nothing else of OpenFlow. `benchmarks
controller` measures the controller against it.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compilers.targets.openflow.protocol import HEADER, MessageType, header, message
from controller.openflow.messages import datapath_id, echo_reply

BARE_RECEIVE_BYTES = 64 * 1024
"""Bytes received at once."""
GREETING = message(MessageType.HELLO, 0) + message(MessageType.FEATURES_REQUEST, 0)
"""What a switch is sent first."""


class PushError(Exception):
    """The push did not end well; the text says why."""


@dataclass(slots=True)
class _BarePeer:
    """A connection."""

    socket: socket.socket
    """The socket."""
    heard: bytes = b""
    """Bytes of a message that has not arrived in full."""
    sending: list[memoryview] = field(default_factory=list)
    """The bytes that are still to be sent."""
    stages: list[bytes] = field(default_factory=list)
    """The stages that are left, and the switch's datapath id at the end."""


class BareServer:
    """Sends each switch its stages, one after the answer to the barrier of the other.

    Args:
        address: where it listens.
        stages: by datapath id, each with a barrier request at its end.

    Attributes:
        left: the datapath ids of switches that are not done.
        errors: how many errors switches have reported.
        began: when the first switch named itself; None before.
    """

    def __init__(self, address: tuple[str, int], stages: Mapping[int, Sequence[bytes]]) -> None:
        self.stages = stages
        self.left = set(stages)
        self.errors = 0
        self.began: float | None = None
        self.poll = selectors.DefaultSelector()
        self.listener = socket.create_server(address, backlog=4096)
        self.listener.setblocking(False)
        self.poll.register(self.listener, selectors.EVENT_READ)

    def push(self, patience: float) -> float:
        """Seconds from the first switch that names itself to the last answer.

        Raises:
            PushError: it was not done within `patience` seconds, or a switch reported errors.
        """
        deadline = time.monotonic() + patience
        while self.left:
            for key, events in self.poll.select(1.0):
                if key.data is None:
                    self._accept()
                elif events & selectors.EVENT_READ:
                    self._read(key.data)
                else:
                    self._write(key.data)
            if time.monotonic() > deadline:
                raise PushError(f"{len(self.left)} switches not done after {patience:g} s")
        seconds = time.monotonic() - (self.began or 0.0)
        if self.errors:
            raise PushError(f"{self.errors} errors")
        return seconds

    def close(self) -> None:
        """Close all sockets."""
        for key in list(self.poll.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.poll.close()

    def _accept(self) -> None:
        """Accept and greet a switch."""
        connection, _ = self.listener.accept()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = _BarePeer(connection)
        self.poll.register(connection, selectors.EVENT_READ, peer)
        self._send(peer, GREETING)

    def _read(self, peer: _BarePeer) -> None:
        """Read what a switch has sent, and handle its messages."""
        data = peer.socket.recv(BARE_RECEIVE_BYTES)
        if not data:
            self.poll.unregister(peer.socket)
            peer.socket.close()
            return
        data = peer.heard + data
        place = 0
        while len(data) - place >= HEADER.size:
            kind, length, _ = header(data, place)
            if len(data) - place < length:
                break
            self._heard(peer, kind, data[place : place + length])
            place += length
        peer.heard = data[place:]

    def _heard(self, peer: _BarePeer, kind: int, message: bytes) -> None:
        """Handle a message."""
        if kind == MessageType.ECHO_REQUEST:
            self._send(peer, echo_reply(message))
        elif kind == MessageType.ERROR:
            self.errors += 1
        elif kind == MessageType.FEATURES_REPLY:
            self.began = self.began or time.monotonic()
            number = datapath_id(message)
            peer.stages = [*self.stages.get(number, ()), number.to_bytes(8, "big")]
            self._next(peer)
        elif kind == MessageType.BARRIER_REPLY:
            self._next(peer)

    def _next(self, peer: _BarePeer) -> None:
        """Send the next stage, or note that there is none."""
        stage = peer.stages.pop(0)
        if peer.stages:
            self._send(peer, stage)
        else:
            self.left.discard(int.from_bytes(stage, "big"))

    def _send(self, peer: _BarePeer, data: bytes) -> None:
        """Send bytes after those that wait."""
        peer.sending.append(memoryview(data))
        self._write(peer)

    def _write(self, peer: _BarePeer) -> None:
        """Send as much as the socket takes, and go on when it takes more."""
        try:
            while peer.sending:
                sent = peer.socket.send(peer.sending[0])
                if sent < len(peer.sending[0]):
                    peer.sending[0] = peer.sending[0][sent:]
                else:
                    peer.sending.pop(0)
        except BlockingIOError:
            self.poll.modify(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
            return
        self.poll.modify(peer.socket, selectors.EVENT_READ, peer)
