"""Reading OpenFlow 1.3 bytes: our own program, message by message, and what a switch answers.

Only what a session needs; layouts from the OpenFlow Switch Specification 1.3.5, §7, and from the
ONF extension 230 (bundles for OpenFlow 1.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

VERSION = 4
ERROR, EXPERIMENTER, FLOW_MOD, GROUP_MOD, BARRIER_REQUEST, BARRIER_REPLY = 1, 4, 14, 15, 20, 21
ONF = 0x4F4E4600
BUNDLE_CONTROL, BUNDLE_ADD = 2300, 2301
COMMIT_REQUEST, COMMIT_REPLY, DISCARD_REQUEST = 4, 5, 6
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
GROUP_TYPES = ("all", "select", "indirect", "fast failover")
_METADATA, _IPV4_DST, _IPV6_DST = 2, 12, 26

Names = Callable[[int, int], tuple[str, str]]
"""The framework's constants for an error's type and code: `OFPET_…`, `OFPGMFC_…`."""


def header(message: bytes | memoryview) -> tuple[int, int, int]:
    """Type, length in bytes and xid of the message that starts here."""
    _, kind, length, xid = _HEADER.unpack_from(message)
    return kind, length, xid


def barrier(xid: int) -> bytes:
    """A barrier request."""
    return _HEADER.pack(VERSION, BARRIER_REQUEST, 8, xid)


def bundle_control(kind: int, bundle: int, xid: int) -> bytes:
    """A bundle control message without properties, flags atomic and ordered."""
    return _CONTROL.pack(
        VERSION, EXPERIMENTER, _CONTROL.size, xid, ONF, BUNDLE_CONTROL, bundle, kind, 3
    )


def split_commit(program: bytes) -> tuple[bytes, bytes]:
    """A program in two parts: everything up to its commit, and the commit with its barrier.

    Raises:
        ValueError: it does not end in a bundle commit and a barrier.

    """
    tail = _CONTROL.size + _HEADER.size
    if len(program) >= tail:
        control = _CONTROL.unpack_from(program, len(program) - tail)
        said = (*control[1:3], *control[4:6], control[7], *header(program[-_HEADER.size :])[:2])
        bundle = (EXPERIMENTER, _CONTROL.size, ONF, BUNDLE_CONTROL, COMMIT_REQUEST)
        if said == (*bundle, BARRIER_REQUEST, _HEADER.size):
            return program[:-tail], program[-tail:]
    raise ValueError("a program ends in a bundle commit and a barrier")


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


def messages(program: bytes) -> Iterator[bytes]:
    """The messages of a program in order; a message added to a bundle without its envelope."""
    start = 0
    while start < len(program):
        kind, length, _ = header(memoryview(program)[start:])
        message = program[start : start + length]
        added = kind == EXPERIMENTER and struct.unpack_from("!II", message, 8) == (ONF, BUNDLE_ADD)
        yield message[24:] if added else message
        start += length


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


def locate(program: bytes, xid: int) -> str:
    """Which message of a program has this xid, in words; "" when none has."""
    total = 0
    found = ""
    for message in messages(program):
        total += 1
        if not found and header(message)[2] == xid:
            found, place = describe(message), total
    return f"message {place} of {total}, {found}" if found else ""


def describe(message: bytes) -> str:
    """A message in words: `flow of table 1, priority 24, to 10.0.0.0/24`."""
    kind, _, _ = header(message)
    if kind == GROUP_MOD:
        _, type_, group = struct.unpack_from("!HBxI", message, 8)
        known = GROUP_TYPES[type_] if type_ < len(GROUP_TYPES) else f"number {type_}"
        return f"group {group} of type {known}"
    if kind == FLOW_MOD:
        table, priority = message[24], struct.unpack_from("!H", message, 30)[0]
        return f"flow of table {table}, priority {priority}{_match(message)}"
    return {EXPERIMENTER: "bundle control", BARRIER_REQUEST: "barrier"}.get(kind, f"type {kind}")


def _match(flow_mod: bytes) -> str:
    """The fields that tell our rows apart: destination prefix and egress class."""
    length = struct.unpack_from("!H", flow_mod, 50)[0]
    at, end, text = 52, min(48 + length, len(flow_mod)), ""
    while at + 4 <= end:
        class_, field, size = struct.unpack_from("!HBB", flow_mod, at)
        value = flow_mod[at + 4 : at + 4 + size]
        if class_ == 0x8000 and field >> 1 in (_IPV4_DST, _IPV6_DST):
            text += f", to {_prefix(value, masked=bool(field & 1))}"
        elif class_ == 0x8000 and field >> 1 == _METADATA:
            text += f", class {int.from_bytes(value[:8], 'big')}"
        at += 4 + size
    return text


def _prefix(value: bytes, masked: bool) -> str:
    width = len(value) // 2 if masked else len(value)
    ones = int.from_bytes(value[width:], "big").bit_count() if masked else 8 * width
    return f"{ip_address(value[:width])}/{ones}"
