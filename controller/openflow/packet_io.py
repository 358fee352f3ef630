"""Packet-in and packet-out: what comes from a port, and what is to leave by ports.

Layouts from the OpenFlow Switch Specification 1.3.5, §7.3.7 and §7.4.1.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from controller.openflow.messages import VERSION, Type
from controller.openflow.multipart import Malformed

CONTROLLER = 0xFFFFFFFD
NO_BUFFER = 0xFFFFFFFF
XID = 0xFFFFFF03
"""The xid of every packet-out: nobody answers it, but with an error."""
_OUT = struct.Struct("!BBHILLH6xHHLH6x")
_PORT_AT = 28
_IN_HEAD = 24
_MATCH = struct.Struct("!HH")
IN_PORT_FIELD = b"\x80\x00\x00\x04"
"""OXM header of in_port: basic class, field 0, no mask, four bytes (§7.2.3.7)."""


def packets_out(ports: NDArray[np.integer], frames: NDArray[np.uint8]) -> bytes:
    """One packet-out a frame, uint8[n, L]: out of its port, int[n]."""
    size = _OUT.size + frames.shape[1]
    head = _OUT.pack(
        *(VERSION, Type.PACKET_OUT, size, XID, NO_BUFFER, CONTROLLER, 16),
        *(0, 16, 0, 0),  # one action: output
    )
    messages = np.empty((len(frames), size), np.uint8)
    messages[:, : _OUT.size] = np.frombuffer(head, np.uint8)
    number = np.ascontiguousarray(ports.astype(">u4")).view(np.uint8).reshape(-1, 4)
    messages[:, _PORT_AT : _PORT_AT + 4] = number
    messages[:, _OUT.size :] = frames
    return messages.tobytes()


def packet_in(message: bytes) -> tuple[int, memoryview]:
    """The port that a packet came in on, and its bytes.

    Raises:
        Malformed: it is cut off, or does not say the port.
    """
    if len(message) < _IN_HEAD + _MATCH.size:
        raise Malformed("a packet-in is cut off")
    kind, length = _MATCH.unpack_from(message, _IN_HEAD)
    end = _IN_HEAD + length
    start = _IN_HEAD + -(-length // 8) * 8 + 2
    if kind != 1 or length < _MATCH.size or start > len(message):
        raise Malformed("a packet-in whose match does not fit")
    place = _IN_HEAD + _MATCH.size
    while place + 4 <= end:
        if message[place : place + 4] == IN_PORT_FIELD and place + 8 <= end:
            port = int.from_bytes(message[place + 4 : place + 8], "big")
            return port, memoryview(message)[start:]
        place += 4 + message[place + 3]
    raise Malformed("a packet-in that does not say its port")
