"""The use of every port of a fabric: a cable to a switch, a host, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.packed_alternates import AlternateLinks, AlternatePorts
from compilers.wiring.wiring import Wiring

ABSENT, FREE, FABRIC, HOST = range(4)
WORDS = (
    "port {}, which its type has not",
    "port {}, without a cable",
    "port {}, a fabric port",
    "port {}, a host port",
)
PORT_ROWS_AT_ONCE = 1 << 14
Ports = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PortUse:
    """The ports of S switches by their numbers.

    use: uint8[S, ports + 2], ABSENT, FREE, FABRIC or HOST; port 0 and the last are ABSENT. link:
    int32[S, ports + 2], the place in `Wiring.port`, -1 where there is no cable to a switch.
    """

    use: NDArray[np.uint8]
    link: NDArray[np.int32]

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, wiring: Wiring) -> PortUse:
        """The ports of a wiring whose node types exist; numbers beyond them are left out."""
        count = np.array([len(names) for names in wiring.port_names])[wiring.node_type]
        shape = len(count), int(count.max(initial=0)) + 2
        result = cls(np.zeros(shape, np.uint8), np.full(shape, -1, np.int32))
        for some in result.blocks():
            result.part(some)._fill(count[some], wiring.port[some], wiring.host_port[some])
        return result

    def _fill(self, count: Ports, fabric: Ports, host: Ports) -> None:
        """Enter the ports of switches with so many ports each."""
        number = np.arange(self.use.shape[1])
        self.use[...] = (number > 0) & (number <= count[:, None])
        switch = np.arange(len(count))[:, None]
        for ports, use in ((fabric, FABRIC), (host, HOST)):
            known = self.known(ports)
            there = self.use[switch, known] != ABSENT
            self.use[switch, known] = np.where(there, use, ABSENT)
            if use == FABRIC:
                self.link[switch, known] = np.where(there, np.arange(ports.shape[1]), -1)

    def blocks(self) -> Iterator[slice]:
        """All switches, some at a time."""
        for first in range(0, len(self.use), PORT_ROWS_AT_ONCE):
            yield slice(first, min(first + PORT_ROWS_AT_ONCE, len(self.use)))

    def part(self, some: slice) -> PortUse:
        """The use of the ports of some switches."""
        return PortUse(self.use[some], self.link[some])

    def at(self, ports: Ports) -> NDArray[np.uint8]:
        """The use of ports[s, …] of each switch s, in the same shape."""
        return self._of(self.use, ports)

    def links(self, ports: Ports) -> NDArray[np.int32]:
        """The link behind ports[s, …] of each switch s, -1 where there is none."""
        return self._of(self.link, ports)

    def _of(self, table: NDArray[Any], ports: Ports) -> NDArray[Any]:
        width = table.shape[1]
        switch = np.arange(0, len(ports) * width, width).reshape(-1, *[1] * (ports.ndim - 1))
        return table.take(self.known(ports) + switch)

    def known(self, ports: Ports) -> Ports:
        """The ports, those that no type has as one that is ABSENT."""
        last = min(self.use.shape[1] - 1, np.iinfo(ports.dtype).max)
        below: Ports = np.minimum(ports, last)
        return np.maximum(below, 0) if ports.dtype.kind == "i" else below

    def words(self, switch: int, port: int) -> str:
        """A port and its use, as messages say it."""
        if port == 0:
            return "no port"
        known = self.known(np.array(port))
        return WORDS[int(self.use[switch, known])].format(port)


Numbers = NDArray[Any]
Bits = NDArray[np.bool_]
Sets = NDArray[np.uint8]
"""uint8[S, C, ⌈K/8⌉], the highest bit of the first byte for the first of K links."""


def has(sets: Sets, link: NDArray[np.integer]) -> Bits:
    """bool[S, C, n]: whether the sets have these links, int[S, C, n]; -1 is none."""
    place = np.maximum(link, 0)
    byte = np.take_along_axis(sets, place >> 3, axis=2)
    found: Bits = ((byte >> (7 - (place & 7))) & 1 > 0) & (link >= 0)
    return found


def bits(link: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.uint8]]:
    """The byte of each link in its set, and its bit there."""
    return link >> 3, (128 >> (link & 7)).astype(np.uint8)


def packed_alternates(build: Build, use: PortUse) -> AlternateLinks | None:
    """The alternates of a build, where they are packed as sets of its own, cabled links."""
    alternate = build.tables.classes.alternate
    if not isinstance(alternate, AlternatePorts):
        return None
    spread = alternate.packed
    some = np.bitwise_or.reduce(spread.links, axis=1)
    s, k = np.nonzero(np.unpackbits(some, axis=1, count=spread.port.shape[1]))
    own = (use.links(spread.port)[s, k] == k) & (use.at(spread.port)[s, k] == FABRIC)
    return spread if own.all() else None


def given_alternates(build: Build, use: PortUse) -> Sets:
    """The links of the alternates of each class."""
    if spread := packed_alternates(build, use):
        return spread.links
    ports = np.asarray(build.tables.classes.alternate)
    order, classes, _ = ports.shape
    width = build.wiring.port.shape[1] + 1
    result = np.zeros(order * classes * width, np.bool_)
    # What is no link, -1, is the last place of the row before, which belongs to no switch.
    row = np.arange(0, len(result), width).reshape(order, classes, 1)
    result[use.links(ports) + row] = True
    return np.packbits(result.reshape(order, classes, width)[..., :-1], axis=2)
