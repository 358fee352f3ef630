"""Port loads: counters of switches as parts of the ports' rates, smoothed."""

from __future__ import annotations

import numpy as np

from compilers.targets.openflow.protocol import PORT, PORT_STATS
from controller.openflow.multipart import records

HALF_LIFE = 2.0
"""Seconds in which an old load counts for half (an exponentially weighted moving average)."""
BITS = 8
KILO = 1000.0


class Meter:
    """The load of every port of S switches.

    load: float64[S, ports + 1], outwards, a part of the port's rate; NaN before the second reading.
    rate: bit/s of every port, NaN where nobody has told; asked for with None, what switches report.
    """

    def __init__(self, switches: int, ports: int, rate: float | None = None) -> None:
        shape = switches, ports + 1
        self.load = np.full(shape, np.nan)
        self._given = rate
        self.rate = np.full(shape, np.nan if rate is None else rate)
        self._bytes = np.zeros(shape, np.uint64)
        self._at = np.full(switches, -np.inf)

    def ports(self, vertex: int, body: bytes) -> None:
        """A switch has described its ports.

        Raises:
            Malformed: it cannot be read.
        """
        if self._given is None:
            known = records(body, PORT)
            known = known[known["port"] < self.rate.shape[1]]
            speed = known["current_speed"] * KILO
            self.rate[vertex, known["port"]] = np.where(speed > 0, speed, np.nan)

    def counters(self, vertex: int, body: bytes, now: float) -> None:
        """A switch has sent its counters.

        Raises:
            Malformed: they cannot be read.
        """
        known = records(body, PORT_STATS)
        known = known[known["port"] < self.load.shape[1]]
        port, sent = known["port"], known["sent_bytes"].astype(np.uint64)
        passed, before = now - self._at[vertex], self._bytes[vertex, port]
        self._bytes[vertex, port], self._at[vertex] = sent, now
        if not 0 < passed < np.inf:
            return
        grown = np.where(sent >= before, sent - before, 0).astype(np.float64)
        new = grown * BITS / passed / self.rate[vertex, port]
        old = self.load[vertex, port]
        fresh = 1 - 0.5 ** (passed / HALF_LIFE)
        self.load[vertex, port] = np.where(np.isnan(old), new, old + fresh * (new - old))

    def left(self, vertex: int) -> None:
        """A switch has left: its loads are unknown."""
        self.load[vertex] = np.nan
        self._at[vertex] = -np.inf
