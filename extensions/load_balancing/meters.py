"""Counters of switches: what rows carry towards each prefix, what ports carry of their rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.flow_tables import RowKind, cookie
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.protocol import FIELDS, FLOW_STATS, OXM, PORT, PORT_STATS, padded
from compilers.wiring.addressing import Addressing
from controller.openflow.multipart import blocks, records

HALF_LIFE = 2.0
"""Seconds in which an old load counts for half (an exponentially weighted moving average)."""
BITS = 8
KILO = 1000.0


class Meter:
    """The load of every port of S switches.

    load: float64[S, ports + 1], outwards, a part of the port's rate; NaN before the second reading.
    rate: bit/s of every port, NaN where unknown; asked for with None, what switches report.
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


HALVES = 8
"""Bytes of an IPv6 address that tell its block."""


class RouteKeys:
    """The prefixes of a fabric, to be found by what rows match.

    ipv4, ipv6: the networks and lengths of `Addressing.ipv4_prefixes` and `ipv6_prefixes`; None
    where there are none.
    """

    def __init__(
        self,
        ipv4: tuple[NDArray[np.uint32], NDArray[np.uint8]],
        ipv6: tuple[NDArray[np.uint64], NDArray[np.uint8]] | None,
    ) -> None:
        self.count = len(ipv4[0])
        self._families = {FIELDS["ipv4_dst"][:2]: _Family.of(*ipv4)}
        if ipv6 is not None:
            self._families[FIELDS["ipv6_dst"][:2]] = _Family.of(*ipv6)

    def bytes_of(self, body: bytes) -> NDArray[np.int64]:
        """int64[P]: the bytes that the rows of each prefix have carried, over both families.

        Raises:
            Malformed: the reply cannot be read.
        """
        total = np.zeros(self.count, np.int64)
        for block in blocks(body, padded(FLOW_STATS.size)):
            head = heads(block, FLOW_STATS)
            routes = head["cookie"] == cookie(RowKind.ROUTE)
            if routes.any():
                number, known = self._numbers(block[routes])
                count = head["bytes"][routes].astype(np.int64)
                np.add.at(total, number[known], count[known])
        return total

    def _numbers(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """int64[n], bool[n]: the prefix of each row, and whether there is such a one."""
        place = FLOW_STATS.size
        while place + OXM.size <= block.shape[1]:
            of_row = heads(block, OXM, place)
            space, field, size = of_row[0].tolist()
            if family := self._families.get((space, field >> 1)):
                value = block[:, place + OXM.size :][:, :size]
                number, known = family.find(value, bool(field & 1))
                return number, known & (of_row == of_row[0])
            place += OXM.size + size
        return np.zeros(len(block), np.int64), np.zeros(len(block), np.bool_)


class _Family:
    """Prefixes of a family, in the order of their keys: the network, then the length."""

    def __init__(self, network: NDArray[np.uint64], length: NDArray[np.uint8]) -> None:
        self.order = np.lexsort((length, network))
        self.network, self.length = network[self.order], length[self.order]
        self.longest = int(length.max(initial=0))

    @classmethod
    def of(cls, network: NDArray[np.integer], length: NDArray[np.uint8]) -> _Family:
        return cls(network.astype(np.uint64), length)

    def find(
        self, value: NDArray[np.uint8], masked: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The number of each prefix, as bytes of a field, and whether there is such a one."""
        size = value.shape[1] // (2 if masked else 1)
        network = _number(value[:, : min(size, HALVES)])
        length = np.full(len(value), min(8 * size, 8 * HALVES))
        if masked:
            length = np.unpackbits(value[:, size:], axis=1).sum(axis=1)
        low = np.searchsorted(self.network, network, side="left")
        # A supernode and its first member have one network; few lengths, so one step or none.
        found, known = np.zeros(len(value), np.int64), np.zeros(len(value), np.bool_)
        for step in range(2):
            at = np.minimum(low + step, len(self.network) - 1)
            good = (self.network[at] == network) & (self.length[at] == length)
            found[good], known[good] = self.order[at[good]], True
        return found, known


def _number(octets: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64[n]: big-endian octets as numbers."""
    result = np.zeros(len(octets), np.uint64)
    for column in octets.T:
        result = (result << np.uint64(8)) | column
    return result


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
