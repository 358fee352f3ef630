"""Packet-in and packet-out messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.message_parts import Column, column, oxm, packet_out, unbundled
from compilers.targets.openflow.protocol import (
    CONTROLLER,
    HEADER,
    MATCH,
    OXM_MATCH,
    PACKET_IN,
    PACKET_PAD,
    padded,
)
from controller.openflow.messages import Malformed, SessionXid, read
from controller.openflow.row_forms import match_fields

IN_PORT_FIELD = oxm("in_port", 0)[0]


def packets_out(ports: NDArray[np.integer], frames: NDArray[np.uint8]) -> bytes:
    """One packet-out a frame, uint8[n, L]: out of its port, int[n]."""
    message = packet_out(CONTROLLER, column("port", ports, 4), (Column("frame", frames),))
    return unbundled(message, SessionXid.PACKET_OUT).tobytes()


def packet_in(message: bytes) -> tuple[int, memoryview]:
    """The port that a packet came in on, and its bytes.

    Raises:
        Malformed: it is cut off, or does not say the port.
    """
    match = read(PACKET_IN, message)["match"]
    fields = HEADER.itemsize + PACKET_IN.itemsize
    end = fields - MATCH.itemsize + int(match["length"])
    packet = fields - MATCH.itemsize + padded(int(match["length"])) + PACKET_PAD
    if match["type"] != OXM_MATCH or end < fields or packet > len(message):
        raise Malformed("a packet-in whose match does not fit")
    for field, value in match_fields(message[fields:end]):
        if field == IN_PORT_FIELD:
            return int.from_bytes(value, "big"), memoryview(message)[packet:]
    raise Malformed("a packet-in without a port")
