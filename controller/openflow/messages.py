"""OpenFlow messages to and from one switch: errors, echoes, bundle replies, ports, packets.

Layouts and numbers are those of `compilers.targets.openflow.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.readers.openflow.rows import Malformed, match_fields
from compilers.targets.openflow.bundled_blocks import fields_at
from compilers.targets.openflow.message_parts import Column, oxm, packet_out, unbundled
from compilers.targets.openflow.protocol import (
    BUNDLE_CONTROL,
    CONTROLLER,
    ERROR,
    EXPERIMENTER_ERROR,
    FEATURES,
    HEADER,
    MATCH,
    ONF,
    OXM_MATCH,
    PACKET_IN,
    PACKET_PAD,
    PORT_STATUS,
    Bundle,
    ErrorType,
    MessageType,
    OnfMessage,
    header,
    message,
    padded,
)

FIRST_BUNDLE_ERROR = 2300
"""The lowest error code of bundles."""
BUNDLE_ERRORS = (
    "unknown error",
    "not permitted",
    "bad bundle id",
    "bundle exists",
    "bundle closed",
    "out of bundles",
    "bad type",
    "bad flags",
    "message of bad length",
    "message with bad xid",
    "message not supported in bundles",
    "messages conflict",
    "too many messages",
    "a message in it failed",
    "timeout",
    "bundle in progress",
)
"""Texts of the error codes 2300, 2301, … (`FIRST_BUNDLE_ERROR`) of ONF extension 230, §3.5."""
BUNDLE_TIMEOUT = FIRST_BUNDLE_ERROR + BUNDLE_ERRORS.index("timeout")
"""The error code of a bundle whose next message was late."""
IN_PORT_FIELD = oxm("in_port", 0)[0]
"""The field of a packet-in's match that has the port."""
Names = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code: `OFPET_…`, `OFPGMFC_…`."""


class SessionXid(IntEnum):
    """The xids of single requests; those of a program and of multipart requests are lower."""

    DISCARD = 0xFFFFFF01
    PROBE = 0xFFFFFF02
    ROLE = 0xFFFFFF03
    PACKET_OUT = 0xFFFFFF04
    TURN = 0xFFFFFF05


OUR_ECHOES = frozenset({SessionXid.PROBE, SessionXid.TURN})
"""The xids of echo requests whose replies are looked at."""


def boundary(data: bytes | memoryview, start: int, least: int) -> int:
    """The end of the first message that ends `least` bytes or more after start, or of them all.

    Messages of one length, one after the other, are passed over in one step.

    Args:
        data: whole messages.
        start: where one of them starts.
        least: the bytes that the messages from there on have at least.
    """
    if len(data) - start <= least:
        return len(data)
    place, stop = start, start + least
    while place < stop:
        length = header(data, place)[1]
        most = max(1, (stop - place) // length)
        run = np.frombuffer(data, np.uint8, most * length, place).reshape(most, length)
        differs = fields_at(run, HEADER)["length"] != length
        alike = int(differs.argmax()) or most  # the first has this length
        place += length * alike
    return place


def echo_reply(request: bytes) -> bytes:
    """The reply to an echo request: the same bytes with another type."""
    return message(MessageType.ECHO_REPLY, header(request)[2], request[HEADER.size :])


def turn_echo(turn: int) -> bytes:
    """The echo request after the LLDP frames of this turn."""
    return message(MessageType.ECHO_REQUEST, SessionXid.TURN, turn.to_bytes(8, "big"))


def turn_of(reply: bytes) -> int:
    """The turn of the request that an echo reply answers."""
    return int.from_bytes(reply[HEADER.size : HEADER.size + 8], "big")


def datapath_id(features: bytes) -> int:
    """The datapath id in a features reply; 0 in one that is cut off."""
    whole = features.ljust(HEADER.size + FEATURES.size, b"\0")
    return int(FEATURES.read(whole, HEADER.size).datapath_id)


def port_status(message: bytes) -> Any:
    """The content of a port-status message, a `PORT_STATUS`.

    Raises:
        Malformed: it is too short or too long.
    """
    if len(message) != HEADER.size + PORT_STATUS.size:
        raise Malformed(f"a port status of {len(message)} bytes")
    return PORT_STATUS.read(message, HEADER.size)


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
    head = PACKET_IN.read(message, HEADER.size)
    fields = HEADER.size + PACKET_IN.size
    end = fields - MATCH.size + head.match_length
    packet = fields - MATCH.size + padded(head.match_length) + PACKET_PAD
    if head.match_type != OXM_MATCH or end < fields or packet > len(message):
        raise Malformed("a packet-in whose match does not fit")
    for field, value in match_fields(message[fields:end]):
        if field == IN_PORT_FIELD:
            return int.from_bytes(value, "big"), memoryview(message)[packet:]
    raise Malformed("a packet-in without a port")


def commits(message: bytes) -> int | None:
    """The number of the bundle that this message confirms as committed, else None."""
    if header(message)[0] != MessageType.EXPERIMENTER:
        return None
    if len(message) < HEADER.size + BUNDLE_CONTROL.size:
        return None
    reply = BUNDLE_CONTROL.read(message, HEADER.size)
    about = reply.experimenter, reply.kind, reply.request
    committed = ONF, OnfMessage.BUNDLE_CONTROL, Bundle.COMMIT_REPLY
    return int(reply.bundle) if about == committed else None


@dataclass(frozen=True, slots=True)
class Error:
    """An OpenFlow error message."""

    type: int
    """The error's type."""
    code: int
    """The error's code."""
    experimenter: int
    """The experimenter that defines type and code; 0 if OpenFlow does."""
    xid: int
    """The transaction id of the message that it answers."""

    @classmethod
    def read(cls, message: bytes) -> Error:
        """The error in a message of type `ERROR`; a cut-off one reads as zeros."""
        whole = message.ljust(HEADER.size + EXPERIMENTER_ERROR.size, b"\0")
        error = EXPERIMENTER_ERROR.read(whole, HEADER.size)
        of_experimenter = error.type == ErrorType.EXPERIMENTER
        body = EXPERIMENTER_ERROR if of_experimenter else ERROR
        failed = message[HEADER.size + body.size :]
        xid = header(failed)[2] if len(failed) >= HEADER.size else 0
        return cls(error.type, error.code, error.experimenter if of_experimenter else 0, xid)

    @property
    def timed_out(self) -> bool:
        """Whether a bundle is gone because its next message was late."""
        return (self.experimenter, self.code) == (ONF, BUNDLE_TIMEOUT)

    def words(self, names: Names) -> str:
        """The error as text: `group mod failed: bad type`."""
        if self.experimenter == ONF and 0 <= self.code - FIRST_BUNDLE_ERROR < len(BUNDLE_ERRORS):
            return f"bundle failed: {BUNDLE_ERRORS[self.code - FIRST_BUNDLE_ERROR]}"
        if self.experimenter:
            return f"error {self.code} of experimenter {self.experimenter:#x}"
        type_text, code_text = map(_in_words, names(self.type, self.code))
        return f"{type_text or f'error type {self.type}'}: {code_text or f'code {self.code}'}"


def _in_words(constant: str) -> str:
    """The name of a constant as text: `OFPGMFC_BAD_TYPE(5)` is "bad type"."""
    return constant.partition("_")[2].partition("(")[0].replace("_", " ").lower()
