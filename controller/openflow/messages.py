"""OpenFlow 1.3 bytes on the way to and from a switch: headers, errors, bundle and barrier replies.

Layouts from the OpenFlow Switch Specification 1.3.5, §7, and from the
ONF extension 230 (bundles for OpenFlow 1.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

VERSION = 4
HEADER_SIZE = 8


class Type(IntEnum):
    """`ofp_type` (§7.1), as far as it is used here."""

    HELLO = 0
    ERROR = 1
    ECHO_REQUEST = 2
    ECHO_REPLY = 3
    EXPERIMENTER = 4
    FEATURES_REQUEST = 5
    FEATURES_REPLY = 6
    PACKET_IN = 10
    FLOW_REMOVED = 11
    PORT_STATUS = 12
    PACKET_OUT = 13
    FLOW_MOD = 14
    GROUP_MOD = 15
    MULTIPART_REQUEST = 18
    MULTIPART_REPLY = 19
    BARRIER_REQUEST = 20
    BARRIER_REPLY = 21
    ROLE_REQUEST = 24
    ROLE_REPLY = 25


ERROR, EXPERIMENTER = Type.ERROR, Type.EXPERIMENTER
BARRIER_REQUEST, BARRIER_REPLY = Type.BARRIER_REQUEST, Type.BARRIER_REPLY
ONF, BUNDLE_CONTROL = 0x4F4E4600, 2300
COMMIT_REPLY, DISCARD_REQUEST = 5, 6
EXPERIMENTER_ERROR = 0xFFFF
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
"""Words for the error codes 2300, 2301, … of ONF extension 230, §3.5."""

_LENGTH = struct.Struct("!H")
_HEADER = struct.Struct("!BBHI")
_CONTROL = struct.Struct("!BBHIIIIHH")

Names = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code: `OFPET_…`, `OFPGMFC_…`."""


def header(message: bytes | memoryview) -> tuple[int, int, int]:
    """Type, length in bytes and xid of the message that starts here."""
    _, kind, length, xid = _HEADER.unpack_from(message)
    return kind, length, xid


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A message with its header."""
    return _HEADER.pack(VERSION, kind, HEADER_SIZE + len(body), xid) + body


def boundary(data: bytes | memoryview, start: int, least: int) -> int:
    """The end of the first message that ends `least` bytes or more after start, or of them all.

    data: whole messages, one of which starts at `start`.
    """
    place, stop = start, min(start + least, len(data))
    while place < stop:
        place += _LENGTH.unpack_from(data, place + 2)[0]
    return place


def echo_reply(request: bytes) -> bytes:
    """The answer to an echo request: the same, but for its type."""
    return bytes((VERSION, Type.ECHO_REPLY)) + request[2:]


def datapath_id(features: bytes) -> int:
    """The datapath id in a features reply; 0 in one that is cut off."""
    return int.from_bytes(features[HEADER_SIZE : HEADER_SIZE + 8].ljust(8, b"\0"), "big")


def barrier(xid: int) -> bytes:
    """A barrier request."""
    return message(BARRIER_REQUEST, xid)


def discard(bundle: int, xid: int) -> bytes:
    """The request to drop a bundle that is not committed, flags atomic and ordered."""
    body = (ONF, BUNDLE_CONTROL, bundle, DISCARD_REQUEST, 3)
    return _CONTROL.pack(VERSION, EXPERIMENTER, _CONTROL.size, xid, *body)


def commits(message: bytes) -> int | None:
    """The bundle that a message says is committed, None for any other message."""
    if len(message) < _CONTROL.size:
        return None
    _, kind, _, _, experimenter, exp_type, bundle, what, _ = _CONTROL.unpack_from(message)
    said = (kind, experimenter, exp_type, what)
    return int(bundle) if said == (EXPERIMENTER, ONF, BUNDLE_CONTROL, COMMIT_REPLY) else None


@dataclass(frozen=True, slots=True)
class Error:
    """An OpenFlow error: type and code, the experimenter (0 if none), xid of what it answers."""

    type: int
    code: int
    experimenter: int
    xid: int

    @classmethod
    def read(cls, message: bytes) -> Error:
        """The error in a message of type `ERROR`; a cut-off one reads as zeros."""
        body = message[8:].ljust(16, b"\0")
        type_, code = struct.unpack_from("!HH", body)
        experimenter = struct.unpack_from("!I", body, 4)[0] if type_ == EXPERIMENTER_ERROR else 0
        failed = message[16 if experimenter else 12 :]
        return cls(type_, code, experimenter, header(failed)[2] if len(failed) >= 8 else 0)

    def words(self, names: Names) -> str:
        """The error in words: `group mod failed: bad type`."""
        if self.experimenter == ONF and 0 <= self.code - 2300 < len(BUNDLE_ERRORS):
            return f"bundle failed: {BUNDLE_ERRORS[self.code - 2300]}"
        if self.experimenter:
            return f"error {self.code} of experimenter {self.experimenter:#x}"
        type_, code = (
            name.partition("_")[2].partition("(")[0].replace("_", " ").lower()
            for name in names(self.type, self.code)
        )
        return f"{type_ or f'error type {self.type}'}: {code or f'code {self.code}'}"
