"""Peers that should not be there: idle connections, and some that take a switch's datapath id."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

HELLO, FEATURES_REPLY = 0, 6


class Crowd:
    """Peers of one controller, until they leave."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._peers: list[socket.socket] = []

    def idle(self, count: int) -> None:
        """Connect so often, and say nothing."""
        for _ in range(count):
            self._come()

    def impersonate(self, datapath_id: int) -> None:
        """Say that we are this switch, and nothing else."""
        body = struct.pack("!QIBBxxII", datapath_id, 0, 254, 0, 0, 0)
        hello = struct.pack("!BBHI", 4, HELLO, 8, 1)
        reply = struct.pack("!BBHI", 4, FEATURES_REPLY, 8 + len(body), 2) + body
        if peer := self._come():
            with suppress(OSError):
                peer.sendall(hello + reply)

    def leave(self) -> None:
        """All of them end."""
        for peer in self._peers:
            peer.close()
        self._peers.clear()

    def _come(self) -> socket.socket | None:
        with suppress(OSError):  # the controller may be away
            self._peers.append(socket.create_connection(("127.0.0.1", self._port), timeout=5))
            return self._peers[-1]
        return None
