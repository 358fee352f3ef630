"""What every port of a fabric is used for.

`PortUse` says for any port number of any switch whether the port exists, and whether it has a
cable, a host or nothing. It answers for whole arrays of port numbers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """uint8[S, ports + 2]: ABSENT, FREE, FABRIC or HOST, by port number.

    Column 0 is ABSENT, as port 0 is no port. So is the last column, which stands for all numbers
    that are too large.
    """
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
        ports = cls(np.full(shape, ABSENT, np.uint8), np.full(shape, -1, np.int32))
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
        is_port = (number > 0) & (number <= count[:, None])
        self.use[is_port] = FREE
        links = np.arange(fabric.shape[1])
        exists = self._enter(fabric, FABRIC)
        switch = np.arange(len(count))[:, None]
        self.link[switch, self.in_table(fabric)] = np.where(exists, links, -1)
        self._enter(host, HOST)

    def _enter(self, ports: Ports, use: int) -> NDArray[np.bool_]:
        """Enter the use of some ports, [S, n]; which of them the node types have, bool[S, n]."""
        switch, number = np.arange(len(ports))[:, None], self.in_table(ports)
        exists: NDArray[np.bool_] = self.use[switch, number] != ABSENT
        self.use[switch, number] = np.where(exists, use, ABSENT)
        return exists

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of switches that together are all switches."""
        for first in range(0, len(self.use), PORT_ROWS_AT_ONCE):
            yield slice(first, min(first + PORT_ROWS_AT_ONCE, len(self.use)))

    def part(self, switches: slice) -> PortUse:
        """The use of the ports of some switches."""
        return PortUse(self.use[switches], self.link[switches])

    def at(self, ports: Ports) -> NDArray[np.uint8]:
        """The use of each port, uint8 in the shape of `ports`."""
        return self._entries(self.use, ports)

    def links(self, ports: Ports) -> NDArray[np.int32]:
        """The link behind each port, int32 in the shape of `ports`; -1 where there is none."""
        return self._entries(self.link, ports)

    def _entries(self, table: NDArray[Any], ports: Ports) -> NDArray[Any]:
        """The entries of a table, [S, ports + 2], for ports of any shape [S, …]."""
        width = table.shape[1]
        row_begins = np.arange(0, len(ports) * width, width)
        row_begins = row_begins.reshape(-1, *[1] * (ports.ndim - 1))
        return table.take(row_begins + self.in_table(ports))

    def in_table(self, ports: Ports) -> Ports:
        """The ports, with numbers that no type has replaced by one that is ABSENT."""
        last = min(self.use.shape[1] - 1, np.iinfo(ports.dtype).max)
        below: Ports = np.minimum(ports, last)
        return np.maximum(below, 0) if ports.dtype.kind == "i" else below

    def words(self, switch: int, port: int) -> str:
        """A port of a switch with its use, as messages say it: `port 7, a host port`."""
        if port == 0:
            return "no port"
        number = self.in_table(np.array(port))
        return WORDS[int(self.use[switch, number])].format(port)
