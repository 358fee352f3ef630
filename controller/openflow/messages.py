"""OpenFlow messages to and from one switch: errors, echoes, bundle replies, ports, packets.

The session of a switch (`controller.switches`) and link discovery (`controller.upkeep`) make and
read messages here. Layouts and numbers are those of `compilers.targets.openflow.protocol`.
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
ErrorNames = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code, such as `OFPET_GROUP_MOD_FAILED(6)` and
`OFPGMFC_BAD_TYPE(5)`."""


class SessionXid(IntEnum):
    """The xids of single requests; those of a program and of multipart requests are lower."""

    DISCARD = 0xFFFFFF01
    """A request to discard a bundle that was begun."""
    PROBE = 0xFFFFFF02
    """An echo request to a silent switch, to learn whether it is still there."""
    ROLE = 0xFFFFFF03
    """A request for this controller's role at the switch."""
    PACKET_OUT = 0xFFFFFF04
    """A frame that the switch is to send, such as one of LLDP."""
    TURN = 0xFFFFFF05
    """An echo request after the LLDP frames of a *turn* of link discovery (`turn_echo`). The reply
    says that the switch has sent these frames."""


OUR_ECHOES = frozenset({SessionXid.PROBE, SessionXid.TURN})
"""The xids of echo requests whose replies are looked at."""


def boundary(data: bytes | memoryview, start: int, least: int) -> int:
    """The end of the first message that ends `least` bytes or more after `start`.

    It is the end of the data where there is no such message. Successive messages of equal length
    are passed over in one step.

    Args:
        data: whole messages.
        start: the offset of a message.
        least: least bytes of the messages from `start` to the boundary.
    """
    if len(data) - start <= least:
        return len(data)
    offset, stop = start, start + least
    while offset < stop:
        _, length, _ = header(data, offset)
        most_messages = max(1, (stop - offset) // length)
        # Read as if all messages up to `stop` had this length; those before the first that has
        # another length do.
        run = np.frombuffer(data, np.uint8, most_messages * length, offset)
        differs = fields_at(run.reshape(-1, length), HEADER)["length"] != length
        equal_messages = int(differs.argmax()) or most_messages  # argmax is 0 where none differs
        offset += length * equal_messages
    return offset


def echo_reply(request: bytes) -> bytes:
    """The reply to an echo request: the same bytes with another type."""
    _, _, xid = header(request)
    return message(MessageType.ECHO_REPLY, xid, request[HEADER.size :])


def turn_echo(turn: int) -> bytes:
    """The echo request after the LLDP frames of this turn."""
    return message(MessageType.ECHO_REQUEST, SessionXid.TURN, turn.to_bytes(8, "big"))


def turn_of(reply: bytes) -> int:
    """The turn of the request that an echo reply answers."""
    return int.from_bytes(reply[HEADER.size : HEADER.size + 8], "big")


def datapath_id(features: bytes) -> int:
    """The datapath id in a features reply; 0 in one that is cut off."""
    padded_features = features.ljust(HEADER.size + FEATURES.size, b"\0")
    return int(FEATURES.read(padded_features, HEADER.size).datapath_id)


def port_status(message: bytes) -> Any:
    """The content of a port-status message, a `PORT_STATUS`.

    Raises:
        Malformed: it is too short or too long.
    """
    if len(message) != HEADER.size + PORT_STATUS.size:
        raise Malformed(f"a port status of {len(message)} bytes")
    return PORT_STATUS.read(message, HEADER.size)


def packets_out(ports: NDArray[np.integer], frames: NDArray[np.uint8]) -> bytes:
    """Packet-out messages, one for each frame.

    Args:
        ports: int[n], the port that each frame leaves by.
        frames: uint8[n, L], the bytes of each frame.
    """
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
    # The layout PACKET_IN ends with the head of the match, whose length counts that head, too.
    fields_start = HEADER.size + PACKET_IN.size
    match_start = fields_start - MATCH.size
    fields_end = match_start + head.match_length
    packet_start = match_start + padded(head.match_length) + PACKET_PAD
    is_cut_off = fields_end < fields_start or packet_start > len(message)
    if head.match_type != OXM_MATCH or is_cut_off:
        raise Malformed("a packet-in whose match does not fit")
    for field, value in match_fields(message[fields_start:fields_end]):
        if field == IN_PORT_FIELD:
            return int.from_bytes(value, "big"), memoryview(message)[packet_start:]
    raise Malformed("a packet-in without a port")


def committed_bundle(message: bytes) -> int | None:
    """The number of the bundle that this message confirms as committed; None if it does not."""
    kind, _, _ = header(message)
    if kind != MessageType.EXPERIMENTER:
        return None
    if len(message) < HEADER.size + BUNDLE_CONTROL.size:
        return None
    reply = BUNDLE_CONTROL.read(message, HEADER.size)
    reply_type = reply.experimenter, reply.kind, reply.request
    commit_reply = ONF, OnfMessage.BUNDLE_CONTROL, Bundle.COMMIT_REPLY
    return int(reply.bundle) if reply_type == commit_reply else None


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
        padded_message = message.ljust(HEADER.size + EXPERIMENTER_ERROR.size, b"\0")
        error = EXPERIMENTER_ERROR.read(padded_message, HEADER.size)
        is_experimenter = error.type == ErrorType.EXPERIMENTER
        layout = EXPERIMENTER_ERROR if is_experimenter else ERROR
        # An error ends with the first bytes of the message that failed.
        failed_message, xid = message[HEADER.size + layout.size :], 0
        if len(failed_message) >= HEADER.size:
            _, _, xid = header(failed_message)
        return cls(error.type, error.code, error.experimenter if is_experimenter else 0, xid)

    @property
    def timed_out(self) -> bool:
        """Whether a bundle is gone because its next message was late."""
        return (self.experimenter, self.code) == (ONF, BUNDLE_TIMEOUT)

    def words(self, names: ErrorNames) -> str:
        """The error as text, such as `group mod failed: bad type`."""
        if self.experimenter == ONF and 0 <= self.code - FIRST_BUNDLE_ERROR < len(BUNDLE_ERRORS):
            return f"bundle failed: {BUNDLE_ERRORS[self.code - FIRST_BUNDLE_ERROR]}"
        if self.experimenter:
            return f"error {self.code} of experimenter {self.experimenter:#x}"
        type_text, code_text = map(_in_words, names(self.type, self.code))
        return f"{type_text or f'error type {self.type}'}: {code_text or f'code {self.code}'}"


def _in_words(constant: str) -> str:
    """The name of a constant as text: `OFPGMFC_BAD_TYPE(5)` is "bad type"."""
    return constant.partition("_")[2].partition("(")[0].replace("_", " ").lower()
