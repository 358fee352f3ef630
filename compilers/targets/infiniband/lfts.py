"""OpenSM's LFT file: linear forwarding tables as its `file` routing engine reads them.

A block per switch: a line `Unicast lids … guid 0xGUID`, then a line per destination, `0xLID PORT
portguid 0xGUID`. By the port GUID OpenSM finds the LID that it has really given. It takes most
broken files without a word, so what is written is read back (`read`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

MOST_LIDS = 0xBFFF
"""The last unicast LID (InfiniBand Architecture Specification, volume 1, section 4.1.3)."""
_LINE = b"0x%04x 000 portguid 0x%016x\n"
_PORT = 7
_HEAD = b"Unicast lids guid 0x%016x\n"
_BLOCK = re.compile(rb"Unicast lids guid 0x([0-9a-f]{16})\n((?:0x.*\n)*)")
_ENTRY = re.compile(rb"0x[0-9a-f]{4} (\d{3}) portguid 0x([0-9a-f]{16})\n")
_DIGITS = np.array([[*b"%03d" % port] for port in range(256)], np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """What a switch does: its GUID; port GUIDs, uint64[n], and the port towards each, int64[n]."""

    switch: int
    guid: NDArray[np.uint64]
    port: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LftLayout:
    """The lines of a switch's block, but for the ports.

    guid: uint64[L], the port GUID of each destination; text: uint8[L, W].
    """

    guid: NDArray[np.uint64]
    text: NDArray[np.uint8]

    @classmethod
    def of(cls, guid: NDArray[np.uint64]) -> LftLayout:
        """Destinations get LIDs from 1 on, in this order; OpenSM gives them others if it likes."""
        lines = b"".join(_LINE % pair for pair in enumerate(guid.tolist(), start=1))
        return cls(guid, np.frombuffer(lines, np.uint8).reshape(len(guid), -1))

    def block(self, switch: int, port: NDArray[np.integer]) -> bytes:
        """The block of a switch: its GUID, and the port, 0 to 255, towards each destination.

        A negative port leaves the destination out.
        """
        known = port >= 0
        lines = self.text[known]
        lines[:, _PORT : _PORT + 3] = _DIGITS[port[known]]
        return _HEAD % switch + lines.tobytes()


def read(text: bytes | mmap) -> Iterator[Block]:
    """The blocks of a file, after its first line.

    Raises:
        ValueError: something is no block.
    """
    at = text.find(b"\n") + 1
    for match in _BLOCK.finditer(text, at):
        if match.start() != at:
            raise ValueError(f"byte {at} is no start of a switch")
        at = match.end()
        entries = _ENTRY.findall(match[2])
        if len(entries) != match[2].count(b"\n"):
            raise ValueError(f"a line of switch 0x{match[1].decode()} is no entry")
        port = np.array([int(port) for port, _ in entries], np.int64)
        guid = np.array([int(guid, 16) for _, guid in entries], np.uint64)
        yield Block(int(match[1], 16), guid, port)
    if at != len(text):
        raise ValueError(f"byte {at} is no start of a switch")
