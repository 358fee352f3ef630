"""How fast a controller answers echo requests while it works: a peer that asks all the time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType

from compilers.targets.openflow.protocol import (
    FEATURES,
    HEADER,
    MessageType,
    header,
    message,
)

EVERY, CONNECT = 0.05, 0.005
"""Seconds between two requests, and between two attempts to connect."""
NOBODY = 0x5046_FFFF_FFFF_FFFE
"""The datapath id that it gives: no switch has it."""


class EchoProbe:
    """Asks while the context lasts.

    Args:
        address: of the controller.
        patience: seconds that an answer may take.
        began: called as soon as the controller listens.

    Attributes:
        waits: the seconds that answers took.
        slowest: the most of them.
        answers: how many there were.
    """

    def __init__(
        self,
        address: tuple[str, int],
        patience: float,
        began: Callable[[], object] = lambda: None,
    ) -> None:
        self.address, self.patience, self.slowest, self.answers = address, patience, 0.0, 0
        self.waits: list[float] = []
        self._began = began
        self._done = Event()
        """Set once the context has ended."""
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> EchoProbe:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        """Ask, in a thread."""
        connected = self._connect()
        if connected is None:
            return
        self._began()
        with connected as peer:
            peer.settimeout(self.patience)
            peer.sendall(message(MessageType.HELLO, 0))
            while not self._done.is_set():
                began = time.monotonic()
                peer.sendall(message(MessageType.ECHO_REQUEST, 0))
                self._answer(peer)
                self.waits.append(time.monotonic() - began)
                self.slowest = max(self.slowest, self.waits[-1])
                self.answers += 1
                self._done.wait(EVERY)

    def _connect(self) -> socket.socket | None:
        """As soon as the controller listens; None where the context ends before."""
        while not self._done.is_set():
            try:
                return socket.create_connection(self.address)
            except OSError:
                self._done.wait(CONNECT)
        return None

    def _answer(self, peer: socket.socket) -> None:
        """Read up to the echo reply, and say who we are where that is asked."""
        while True:
            kind, length, xid = header(_exactly(peer, HEADER.size))
            _exactly(peer, length - HEADER.size)
            if kind == MessageType.ECHO_REPLY:
                return
            if kind == MessageType.FEATURES_REQUEST:
                body = FEATURES.pack(datapath_id=NOBODY, tables=4)
                peer.sendall(message(MessageType.FEATURES_REPLY, xid, body))
            elif kind == MessageType.ECHO_REQUEST:
                peer.sendall(message(MessageType.ECHO_REPLY, xid))


def _exactly(peer: socket.socket, size: int) -> bytes:
    """So many bytes."""
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError("the controller has hung up")
        data += more
    return data
