"""OpenFlow messages to and from one switch: errors, echoes, bundle replies, port status.

Layouts and numbers are those of `compilers.targets.openflow.protocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from compilers.targets.openflow.protocol import (
    BUNDLE_CONTROL,
    ERROR,
    EXPERIMENTER_ERROR,
    FEATURES,
    HEADER,
    ONF,
    PORT_STATUS,
    Bundle,
    ErrorType,
    Layout,
    MessageType,
    OnfMessage,
    header,
    message,
)

FIRST_BUNDLE_ERROR = 2300
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


Names = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code: `OFPET_…`, `OFPGMFC_…`."""


class SessionXid(IntEnum):
    """The xids of single requests; those of a program and of multipart requests are lower."""

    DISCARD = 0xFFFFFF01
    PROBE = 0xFFFFFF02
    ROLE = 0xFFFFFF03
    PACKET_OUT = 0xFFFFFF04


class Malformed(Exception):
    """A switch has sent malformed data; its connection cannot be used any more."""


def read(layout: Layout, data: bytes, place: int = HEADER.itemsize) -> Any:
    """The structure at `place`, by default the first of a message behind its header.

    Raises:
        Malformed: it is cut off.
    """
    if len(data) < place + layout.itemsize:
        raise Malformed(f"{len(data)} bytes, where {place + layout.itemsize} are the least")
    return np.frombuffer(data, layout, 1, place)[0]


def boundary(data: bytes | memoryview, start: int, least: int) -> int:
    """The end of the first message that ends `least` bytes or more after start, or of them all.

    data: whole messages, one of which starts at `start`. Those of one length, one after the other,
    are passed over in one step.
    """
    if len(data) - start <= least:
        return len(data)
    place, stop = start, start + least
    while place < stop:
        length = header(data, place)[1]
        most = max(1, (stop - place) // length)
        run = np.frombuffer(data, np.uint8, most * length, place).reshape(most, length)
        other = run[:, : HEADER.itemsize].view(HEADER)["length"] != length
        place += length * (int(other.argmax()) or most)
    return place


def echo_reply(request: bytes) -> bytes:
    """The reply to an echo request: the same bytes with another type."""
    return message(MessageType.ECHO_REPLY, header(request)[2], request[HEADER.itemsize :])


def datapath_id(features: bytes) -> int:
    """The datapath id in a features reply; 0 in one that is cut off."""
    least = HEADER.itemsize + FEATURES.itemsize
    return int(read(FEATURES, features.ljust(least, b"\0"))["datapath_id"])


def port_status(message: bytes) -> Any:
    """The content of a port-status message, a `PORT_STATUS`.

    Raises:
        Malformed: it is too short or too long.
    """
    if len(message) != HEADER.itemsize + PORT_STATUS.itemsize:
        raise Malformed(f"a port status of {len(message)} bytes")
    return read(PORT_STATUS, message)


def commits(message: bytes) -> int | None:
    """The number of the bundle that this message confirms as committed, else None."""
    if header(message)[0] != MessageType.EXPERIMENTER:
        return None
    if len(message) < HEADER.itemsize + BUNDLE_CONTROL.itemsize:
        return None
    said = read(BUNDLE_CONTROL, message)
    about = said["experimenter"], said["kind"], said["request"]
    committed = ONF, OnfMessage.BUNDLE_CONTROL, Bundle.COMMIT_REPLY
    return int(said["bundle"]) if about == committed else None


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
        least = HEADER.itemsize + EXPERIMENTER_ERROR.itemsize
        said = read(EXPERIMENTER_ERROR, message.ljust(least, b"\0"))
        own = said["type"] == ErrorType.EXPERIMENTER
        failed = message[HEADER.itemsize + (EXPERIMENTER_ERROR if own else ERROR).itemsize :]
        return cls(
            int(said["type"]),
            int(said["code"]),
            int(said["experimenter"]) if own else 0,
            header(failed)[2] if len(failed) >= HEADER.itemsize else 0,
        )

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
        type_, code = (
            name.partition("_")[2].partition("(")[0].replace("_", " ").lower()
            for name in names(self.type, self.code)
        )
        return f"{type_ or f'error type {self.type}'}: {code or f'code {self.code}'}"
