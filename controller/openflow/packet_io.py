"""Packet-in and packet-out messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.message_parts import Column, oxm, packet_out, unbundled
from compilers.targets.openflow.protocol import (
    CONTROLLER,
    HEADER,
    MATCH,
    OXM_MATCH,
    PACKET_IN,
    PACKET_PAD,
    Malformed,
    padded,
)
from controller.openflow.messages import SessionXid
from controller.openflow.row_forms import match_fields

IN_PORT_FIELD = oxm("in_port", 0)[0]


def packets_out(ports: NDArray[np.integer], frames: NDArray[np.uint8]) -> bytes:
    """One packet-out a frame, uint8[n, L]: out of its port, int[n]."""
    frame = Column("frame", np.dtype((np.uint8, frames.shape[1])))
    message = packet_out(CONTROLLER, "port", (frame,))
    out = unbundled(message, SessionXid.PACKET_OUT, len(frames), port=ports, frame=frames)
    return out.block.tobytes()


def packet_in(message: bytes) -> tuple[int, memoryview]:
    """The port that a packet came in on, and its bytes.

    Raises:
        Malformed: it is cut off, or does not say the port.
    """
    said = PACKET_IN.read(message, HEADER.size)
    fields = HEADER.size + PACKET_IN.size
    end = fields - MATCH.size + said.match_length
    packet = fields - MATCH.size + padded(said.match_length) + PACKET_PAD
    if said.match_type != OXM_MATCH or end < fields or packet > len(message):
        raise Malformed("a packet-in whose match does not fit")
    for field, value in match_fields(message[fields:end]):
        if field == IN_PORT_FIELD:
            return int.from_bytes(value, "big"), memoryview(message)[packet:]
    raise Malformed("a packet-in without a port")
