"""Rates of route rows: byte counters of all switches, read twice, as bit/s towards each prefix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.addressing import Addressing
from controller.openflow.row_counters import RouteKeys

WINDOW = 3.0
"""Seconds between the two readings of a switch."""
MOST_ROWS = 1 << 24
"""Rows of a fabric whose counters are read: PolarFly up to q = 61."""
ROWS_A_SECOND = 250_000
"""Rows that are asked for in a second, over all switches."""


class RowMeter:
    """The counters of S switches with rows for P prefixes each, a round at a time.

    rate: float32[S, P], bit/s that the row of a switch carries; 0 before its second reading.
    """

    def __init__(self, switches: int, addressing: Addressing) -> None:
        ipv6 = addressing.ipv6_prefixes() if addressing.ipv6 is not None else None
        self._keys = RouteKeys(addressing.ipv4_prefixes(), ipv6)
        self._shape = switches, self._keys.count
        self.rate = np.zeros((0, 0), np.float32)
        self._bytes: dict[int, NDArray[np.int64]] = {}
        self._at = np.full(switches, -np.inf)
        self._done = np.zeros(switches, np.bool_)
        self._room, self._last = 0.0, -np.inf

    @property
    def cells(self) -> int:
        """Rows of the fabric, at most."""
        return self._shape[0] * self._shape[1]

    def begin(self) -> None:
        """Begin a round: every switch is to be read twice."""
        self.rate = np.zeros(self._shape, np.float32)
        self._bytes.clear()
        self._at[:], self._done[:] = -np.inf, False

    def due(self, there: set[int], now: float) -> list[int]:
        """The switches of these to ask now; as many as the rows in a second allow, or one."""
        passed = min(now - self._last, 1.0)
        self._room, self._last = min(self._room + passed * ROWS_A_SECOND, ROWS_A_SECOND), now
        some: list[int] = []
        for vertex in sorted(there):
            if self._room <= 0:
                break
            if not self._done[vertex] and now - self._at[vertex] >= WINDOW:
                self._at[vertex] = now
                self._room -= self._shape[1]
                some.append(vertex)
        return some

    def complete(self, there: set[int]) -> bool:
        """Whether each of these switches has been read twice."""
        return all(self._done[vertex] for vertex in there)

    def counters(self, vertex: int, body: bytes, now: float) -> None:
        """A switch has sent its rows.

        Raises:
            Malformed: they cannot be read.
        """
        found, before = self._keys.bytes_of(body), self._bytes.pop(vertex, None)
        if before is None:
            self._bytes[vertex], self._at[vertex] = found, now
            return
        passed = max(now - self._at[vertex], 1e-3)
        self._done[vertex] = True
        self.rate[vertex] = 8 * np.maximum(found - before, 0) / passed

    def left(self, vertex: int) -> None:
        """A switch has left: it is to be read anew."""
        self._bytes.pop(vertex, None)
        self._at[vertex], self._done[vertex] = -np.inf, False
