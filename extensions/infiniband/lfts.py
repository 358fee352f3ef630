"""OpenSM's LFT file: linear forwarding tables as its `file` routing engine reads them.

Target opensm makes an `LftLayout` once, and the `block` of each switch from it. The block of a
switch is a line `Unicast lids … guid 0xGUID`, then a line per destination, `0xLID PORT portguid
0xGUID`. By the port GUID OpenSM finds the LID that it has really given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LFTS = "lfts.txt"
"""The name of the file."""
MOST_LIDS = 0xBFFF
"""The last unicast LID (InfiniBand Architecture Specification, volume 1, section 4.1.3)."""
_LINE = b"0x%04x 000 portguid 0x%016x\n"
"""The line of a destination, with 000 for the port."""
_PORT = 7
"""Where the port begins in the line."""
_HEAD = b"Unicast lids guid 0x%016x\n"
"""The first line of a switch's block."""
_DIGITS = np.array([[*b"%03d" % port] for port in range(256)], np.uint8)
"""uint8[256, 3], the digits of each port."""


@dataclass(frozen=True, slots=True, eq=False)
class LftLayout:
    """The lines of a switch's block of an LFT dump, without the ports."""

    guid: NDArray[np.uint64]
    """uint64[L], the port GUID of each destination."""
    text: NDArray[np.uint8]
    """uint8[L, W], the characters of each line."""

    @classmethod
    def of(cls, lid: NDArray[np.int64], guid: NDArray[np.uint64]) -> LftLayout:
        """Make the lines of all destinations.

        OpenSM may give other LIDs. Only the last LMC bits of a LID count: they say which of the
        LIDs of its port it is.

        Args:
            lid: int64[L], the LID of each destination.
            guid: uint64[L], its port GUID.
        """
        lines = b"".join(_LINE % pair for pair in zip(lid.tolist(), guid.tolist(), strict=True))
        return cls(guid, np.frombuffer(lines, np.uint8).reshape(len(guid), -1))

    def block(self, switch: int, port: NDArray[np.integer]) -> bytes:
        """The block of a switch: its GUID, and the port, 0 to 255, towards each destination.

        A negative port leaves the destination out.
        """
        reached = port >= 0
        lines = self.text[reached]
        lines[:, _PORT : _PORT + 3] = _DIGITS[port[reached]]
        return _HEAD % switch + lines.tobytes()
