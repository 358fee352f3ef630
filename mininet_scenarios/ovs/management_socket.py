"""OpenFlow 1.3 by the management socket that each bridge has, beside its controller.

Such a connection disturbs no controller and is disturbed by none: it never becomes master, and it
gets packet-ins only when it asks for them. Many connections are served at once, in one thread.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.ovs.openvswitch import DAEMON_PATIENCE, OpenVSwitchError

VERSION = 4
HELLO, ERROR, ECHO, ECHO_REPLY, SET_CONFIG, PACKET_IN, PACKET_OUT = 0, 1, 2, 3, 9, 10, 13
BARRIER_REQUEST, BARRIER_REPLY = 20, 21
MULTIPART_REQUEST, MULTIPART_REPLY, PORT_STATS = 18, 19, 4
NO_BUFFER = 0xFFFF
"""For a packet-in: all of the packet. OVS has no packet buffers."""
SOCKET_READ_BYTES = 1 << 20
PORT_STATS_ROW = np.dtype(
    {"names": ["port", "sent"], "formats": [">u4", ">u8"], "offsets": [0, 16], "itemsize": 112}
)
"""`ofp_port_stats`: a port and the packets that left by it (§7.3.5.6)."""


def message(kind: int, body: bytes = b"", xid: int = 0) -> bytes:
    """A message with its header."""
    return struct.pack(">BBHL", VERSION, kind, 8 + len(body), xid) + body


class ManagementConnection:
    """To the management socket of one bridge. What is to be sent waits in `outgoing`.

    Open vSwitch waits a second for our greeting, so that goes at once.
    """

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.sendall(message(HELLO))
        self.socket.setblocking(False)
        self.outgoing = bytearray()
        self.incoming = bytearray()

    def __enter__(self) -> ManagementConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        """Send as much of `outgoing` as the switch takes now."""
        while self.outgoing:
            try:
                sent = self.socket.send(self.outgoing)
            except BlockingIOError:
                return
            del self.outgoing[:sent]

    def read(self) -> bytes:
        """Whole messages that have arrived; echo requests are answered, and left in.

        Raises:
            OpenVSwitchError: the switch has hung up, or sent an error.
        """
        try:
            data = self.socket.recv(SOCKET_READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            raise OpenVSwitchError("Open vSwitch hung up a management connection")
        self.incoming += data
        end = 0
        for start, kind, length in headers(self.incoming):
            end = start + length
            if kind == ECHO:
                self.outgoing += message(ECHO_REPLY, bytes(self.incoming[start + 8 : end]))
            if kind == ERROR:
                kind, code = struct.unpack_from(">HH", self.incoming, start + 8)
                raise OpenVSwitchError(f"OpenFlow error of type {kind}, code {code}")
        whole = bytes(self.incoming[:end])
        del self.incoming[:end]
        return whole


def headers(data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """(start, type, length) of each whole message in the data."""
    start = 0
    while start + 8 <= len(data):
        kind, length = struct.unpack_from(">xBH", data, start)
        if start + length > len(data):
            return
        yield start, kind, length
        start += length


def port_counters(folder: Path, bridges: Iterable[str]) -> dict[str, NDArray[Any]]:
    """PORT_STATS_ROW[ports] of each bridge: the packets that have left by each port.

    Raises:
        OpenVSwitchError: a bridge does not answer.
    """
    request = message(MULTIPART_REQUEST, struct.pack(">HH4xL4x", PORT_STATS, 0, 0xFFFFFFFF))
    found: dict[str, NDArray[Any]] = {}
    with selectors.DefaultSelector() as selector:
        for bridge in bridges:
            connection = ManagementConnection(folder / f"{bridge}.mgmt")
            connection.outgoing += request
            connection.flush()
            selector.register(connection.socket, selectors.EVENT_READ, (bridge, connection))
            found[bridge] = np.zeros(0, PORT_STATS_ROW)
        deadline = time.monotonic() + DAEMON_PATIENCE
        while waiting := len(selector.get_map()):
            if time.monotonic() > deadline:
                raise OpenVSwitchError(f"no answer from {waiting} bridges")
            for key, _ in selector.select(1):
                bridge, connection = key.data
                rows, more = _port_stats(connection.read())
                found[bridge] = np.concatenate((found[bridge], rows))
                if not more:
                    selector.unregister(connection.socket)
                    connection.socket.close()
    return found


def _port_stats(data: bytes) -> tuple[NDArray[Any], bool]:
    """The rows of the replies in the data, and whether more will come."""
    rows, more = [np.zeros(0, PORT_STATS_ROW)], True
    for start, kind, length in headers(data):
        if kind == MULTIPART_REPLY:
            rows.append(np.frombuffer(data[start + 16 : start + length], PORT_STATS_ROW))
            more = bool(struct.unpack_from(">H", data, start + 10)[0] & 1)
    return np.concatenate(rows), more
