"""What every port of a fabric is used for, and sets of links as bits.

Two things that the soundness checks share. `PortUse` says for any port number of any switch whether
it exists and whether it has a cable, a host or nothing, for whole arrays at once. The functions
below it store the links of a class as a set: one bit a link, `Sets`.
"""

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
"""What a port is used for: the node type has no such port; nothing; a cable to a switch; a host."""
WORDS = (
    "port {}, which its type has not",
    "port {}, without a cable",
    "port {}, a fabric port",
    "port {}, a host port",
)
"""A port with each use, in words."""
PORT_ROWS_AT_ONCE = 1 << 14
"""The most switches whose ports are looked at together."""
Ports = NDArray[Any]
"""Port numbers of switches, [S, …]; 0 is no port."""


@dataclass(frozen=True, slots=True, eq=False)
class PortUse:
    """The ports of S switches by their numbers."""

    use: NDArray[np.uint8]
    """uint8[S, ports + 2]: ABSENT, FREE, FABRIC or HOST. Port 0 and the last one are ABSENT."""
    link: NDArray[np.int32]
    """int32[S, ports + 2], the link behind the port, its place in `Wiring.port`; -1: no cable to a
    switch."""

    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, wiring: Wiring) -> PortUse:
        """The ports of a wiring whose node types exist.

        Port numbers of the wiring that its node types do not have are left out.
        """
        count = np.array([len(names) for names in wiring.port_names])[wiring.node_type]
        shape = len(count), int(count.max(initial=0)) + 2
        ports = cls(np.zeros(shape, np.uint8), np.full(shape, -1, np.int32))
        for block in ports.blocks():
            ports.part(block)._fill(count[block], wiring.port[block], wiring.host_port[block])
        return ports

    def _fill(self, count: Ports, fabric: Ports, host: Ports) -> None:
        """Enter the ports of some switches.

        Args:
            count: int[S], how many ports each switch has.
            fabric: int[S, K], the ports of its links.
            host: int[S, H], the ports of its hosts.
        """
        number = np.arange(self.use.shape[1])
        self.use[...] = (number > 0) & (number <= count[:, None])
        switch = np.arange(len(count))[:, None]
        for ports, use in ((fabric, FABRIC), (host, HOST)):
            number = self.known(ports)
            exists = self.use[switch, number] != ABSENT
            self.use[switch, number] = np.where(exists, use, ABSENT)
            if use == FABRIC:
                self.link[switch, number] = np.where(exists, np.arange(ports.shape[1]), -1)

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of switches that together are all switches."""
        for first in range(0, len(self.use), PORT_ROWS_AT_ONCE):
            yield slice(first, min(first + PORT_ROWS_AT_ONCE, len(self.use)))

    def part(self, switches: slice) -> PortUse:
        """The use of the ports of some switches."""
        return PortUse(self.use[switches], self.link[switches])

    def at(self, ports: Ports) -> NDArray[np.uint8]:
        """The use of each port, uint8 in the shape of `ports`."""
        return self._of(self.use, ports)

    def links(self, ports: Ports) -> NDArray[np.int32]:
        """The link behind each port, int32 in the shape of `ports`; -1 where there is none."""
        return self._of(self.link, ports)

    def _of(self, table: NDArray[Any], ports: Ports) -> NDArray[Any]:
        """The entries of a table, [S, ports + 2], for ports of any shape [S, …]."""
        width = table.shape[1]
        switch = np.arange(0, len(ports) * width, width).reshape(-1, *[1] * (ports.ndim - 1))
        return table.take(self.known(ports) + switch)

    def known(self, ports: Ports) -> Ports:
        """The ports, with numbers that no type has replaced by one that is ABSENT."""
        last = min(self.use.shape[1] - 1, np.iinfo(ports.dtype).max)
        below: Ports = np.minimum(ports, last)
        return np.maximum(below, 0) if ports.dtype.kind == "i" else below

    def words(self, switch: int, port: int) -> str:
        """A port of a switch with its use, as messages say it: `port 7, a host port`."""
        if port == 0:
            return "no port"
        number = self.known(np.array(port))
        return WORDS[int(self.use[switch, number])].format(port)


Numbers = NDArray[Any]
Bits = NDArray[np.bool_]
Sets = NDArray[np.uint8]
"""uint8[S, C, ⌈K/8⌉], the highest bit of the first byte for the first of K links."""


def has(sets: Sets, link: NDArray[np.integer]) -> Bits:
    """Whether links are in the sets of their classes.

    Args:
        sets: uint8[S, C, ⌈K/8⌉].
        link: int[S, C, n], links; -1 is in no set.

    Returns:
        bool[S, C, n].

    >>> has(np.array([[[0b10100000]]], np.uint8), np.array([[[0, 1, 2, -1]]])).tolist()
    [[[True, False, True, False]]]
    """
    place = np.maximum(link, 0)
    byte = np.take_along_axis(sets, place >> 3, axis=2)
    contains: Bits = ((byte >> (7 - (place & 7))) & 1 > 0) & (link >= 0)
    return contains


def bits(link: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.uint8]]:
    """The byte of each link in a set, and its bit in this byte.

    >>> byte, bit = bits(np.array([0, 9]))
    >>> byte.tolist(), bit.tolist()
    ([0, 1], [128, 64])
    """
    return link >> 3, (128 >> (link & 7)).astype(np.uint8)


def packed_alternates(build: Build, use: PortUse) -> AlternateLinks | None:
    """The alternates of a build as sets of links, if it stores them so.

    None if it stores ports, or if a set has a port that is not the switch's own cabled link.
    """
    alternate = build.tables.classes.alternate
    if not isinstance(alternate, AlternatePorts):
        return None
    packed = alternate.packed
    of_any_class = np.bitwise_or.reduce(packed.links, axis=1)
    s, k = np.nonzero(np.unpackbits(of_any_class, axis=1, count=packed.port.shape[1]))
    is_link = (use.links(packed.port)[s, k] == k) & (use.at(packed.port)[s, k] == FABRIC)
    return packed if is_link.all() else None


def alternate_sets(build: Build, use: PortUse) -> Sets:
    """The links of the alternates of each class, uint8[S, C, ⌈K/8⌉]."""
    if packed := packed_alternates(build, use):
        return packed.links
    ports = np.asarray(build.tables.classes.alternate)
    order, classes, _ = ports.shape
    # One place more than there are links: a port without a link has link -1, and so marks the last
    # place of the row before, which belongs to no link.
    width = build.wiring.port.shape[1] + 1
    is_alternate = np.zeros(order * classes * width, np.bool_)
    row = np.arange(0, len(is_alternate), width).reshape(order, classes, 1)
    is_alternate[use.links(ports) + row] = True
    return np.packbits(is_alternate.reshape(order, classes, width)[..., :-1], axis=2)
