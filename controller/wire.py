"""Reading what a switch answers, as OpenFlow 1.3 bytes: errors, bundle replies, barrier replies.

Layouts from the OpenFlow Switch Specification 1.3.5, §7, and from the
ONF extension 230 (bundles for OpenFlow 1.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

VERSION = 4
ERROR, EXPERIMENTER, BARRIER_REQUEST, BARRIER_REPLY = 1, 4, 20, 21
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

_HEADER = struct.Struct("!BBHI")
_CONTROL = struct.Struct("!BBHIIIIHH")

Names = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code: `OFPET_…`, `OFPGMFC_…`."""


def header(message: bytes | memoryview) -> tuple[int, int, int]:
    """Type, length in bytes and xid of the message that starts here."""
    _, kind, length, xid = _HEADER.unpack_from(message)
    return kind, length, xid


def last_xid(messages: bytes) -> int:
    """The xid of the barrier request that messages end in."""
    return header(messages[-_HEADER.size :])[2]


def barrier(xid: int) -> bytes:
    """A barrier request."""
    return _HEADER.pack(VERSION, BARRIER_REQUEST, _HEADER.size, xid)


def discard(bundle: int, xid: int) -> bytes:
    """The request to drop a bundle that is not committed, flags atomic and ordered."""
    body = (ONF, BUNDLE_CONTROL, bundle, DISCARD_REQUEST, 3)
    return _CONTROL.pack(VERSION, EXPERIMENTER, _CONTROL.size, xid, *body)


def bundle_of(commit: bytes) -> int:
    """The bundle that a commit (with whatever follows it) commits."""
    return int(_CONTROL.unpack_from(commit)[6])


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
