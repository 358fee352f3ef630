"""What a switch says of itself: multipart requests, and their replies as numpy columns.

Layouts from the OpenFlow Switch Specification 1.3.5, §7.2.1 and §7.3.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from controller.openflow import messages

ANY = 0xFFFFFFFF
ALL_TABLES = 0xFF
MORE = 1
BODY = 16
"""Where the body of a multipart message begins."""


class Multipart(IntEnum):
    """`ofp_multipart_type`, as far as it is used here."""

    FLOW = 1
    PORT_STATS = 4
    GROUP_DESC = 7
    PORT_DESC = 13


PORT = np.dtype(
    [
        ("port", ">u4"),
        ("pad", "V4"),
        ("mac", "u1", 6),
        ("pad2", "V2"),
        ("name", "S16"),
        ("config", ">u4"),
        ("state", ">u4"),
        ("current", ">u4"),
        ("advertised", ">u4"),
        ("supported", ">u4"),
        ("peer", ">u4"),
        ("current speed", ">u4"),
        ("most speed", ">u4"),
    ]
)
"""`ofp_port`; speeds are in kb/s. Bit 0 of config: taken down; of state: no link."""
PORT_STATS = np.dtype(
    [
        ("port", ">u4"),
        ("pad", "V4"),
        ("received packets", ">u8"),
        ("sent packets", ">u8"),
        ("received bytes", ">u8"),
        ("sent bytes", ">u8"),
        ("received dropped", ">u8"),
        ("sent dropped", ">u8"),
        ("errors", ">u8", 6),
        ("seconds", ">u4"),
        ("nanoseconds", ">u4"),
    ]
)
"""`ofp_port_stats`; errors: received, sent, then frame, overrun, CRC and collisions."""


class Malformed(Exception):
    """A switch has sent what cannot be read; the connection is of no use any more."""


def request(kind: Multipart, xid: int, body: bytes = b"") -> bytes:
    """A multipart request in one part."""
    return messages.message(
        messages.Type.MULTIPART_REQUEST, xid, struct.pack("!HH4x", kind, 0) + body
    )


def flows_wanted(cookie: int = 0, mask: int = 0) -> bytes:
    """The body of a request for the flows of all tables whose cookie is this one under `mask`."""
    match = struct.pack("!HH4x", 1, 4)
    return struct.pack("!B3xLL4xQQ", ALL_TABLES, ANY, ANY, cookie, mask) + match


def ports_wanted() -> bytes:
    """The body of a request for the counters of all ports."""
    return struct.pack("!L4x", ANY)


def part(message: bytes) -> tuple[int, bytes, bool]:
    """The type and body of a multipart reply, and whether it is the last part.

    Raises:
        Malformed: it is too short.
    """
    if len(message) < BODY:
        raise Malformed("a multipart reply is cut off")
    kind, flags = struct.unpack_from("!HH", message, messages.HEADER_SIZE)
    return kind, message[BODY:], not flags & MORE


def records(body: bytes, layout: np.dtype[np.void]) -> NDArray[np.void]:
    """The body as records of one layout: `PORT` or `PORT_STATS`.

    Raises:
        Malformed: it is not a whole number of them.
    """
    if len(body) % layout.itemsize:
        raise Malformed(f"{len(body)} bytes are no whole number of {layout.itemsize}")
    return np.frombuffer(body, layout)


def blocks(body: bytes, least: int) -> Iterator[NDArray[np.uint8]]:
    """Entries that begin with their length (`least` bytes or more), runs of one length at a time.

    Yields uint8[n, L], in their order.

    Raises:
        Malformed: lengths do not fit together.
    """
    whole, place = np.frombuffer(body, np.uint8), 0
    while place < len(body):
        length = int.from_bytes(body[place : place + 2], "big")
        most = (len(body) - place) // length if length >= least else 0
        if not most:
            raise Malformed(f"an entry of {length} bytes at byte {place} of {len(body)}")
        run = whole[place : place + most * length].reshape(most, length)
        other = (run[:, 0] != run[0, 0]) | (run[:, 1] != run[0, 1])
        count = int(other.argmax()) or most
        yield run[:count]
        place += count * length
