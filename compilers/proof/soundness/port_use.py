"""What every port of a fabric is used for.

`PortUse` says for any port number of any switch whether the port exists, and whether it has a
cable, a host or nothing (`purposes`), and which link is behind it (`links`, `link_at`). It answers
for whole arrays of port numbers at once. The proofs and the soundness checks make one for a build.
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
WORDS = {
    ABSENT: "port {}, which the node type does not have",
    FREE: "port {}, without a cable",
    FABRIC: "port {}, a fabric port",
    HOST: "port {}, a host port",
}
"""A port of each purpose, in words."""
PORT_ROWS_AT_ONCE = 1 << 14
"""The most switches whose ports are looked at together."""
Ports = NDArray[Any]
"""Port numbers of switches, [S, …]; 0 is no port. A damaged build may have any number."""


@dataclass(frozen=True, slots=True, eq=False)
class PortUse:
    """The ports of S switches: two tables with a row a switch, and a column a port number."""

    purpose: NDArray[np.uint8]
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

        A port number of the wiring that the switch's type does not have stays ABSENT. The last
        result is kept, as several checks ask for the ports of one wiring.
        """
        count = np.array([len(names) for names in wiring.port_names])[wiring.node_type]
        shape = len(count), int(count.max(initial=0)) + 2
        ports = cls(np.full(shape, ABSENT, np.uint8), np.full(shape, -1, np.int32))
        for block in ports.blocks():
            ports.part(block)._fill(count[block], wiring.port[block], wiring.host_port[block])
        return ports

    def _fill(self, count: NDArray[np.int64], fabric: Ports, host: Ports) -> None:
        """Enter the ports of some switches.

        Args:
            count: int[S], how many ports each switch has.
            fabric: int[S, K], the ports of its links.
            host: int[S, H], the ports of its hosts.
        """
        number = np.arange(self.purpose.shape[1])
        is_port = (number > 0) & (number <= count[:, None])
        self.purpose[is_port] = FREE
        links = np.arange(fabric.shape[1])
        exists = self._enter(fabric, FABRIC)
        switch = np.arange(len(count))[:, None]
        self.link[switch, self._columns(fabric)] = np.where(exists, links, -1)
        self._enter(host, HOST)

    def _enter(self, ports: Ports, purpose: int) -> NDArray[np.bool_]:
        """Enter the purpose of some ports, [S, n].

        Returns:
            bool[S, n], which of them their switches have. The others stay ABSENT.
        """
        switch, column = np.arange(len(ports))[:, None], self._columns(ports)
        exists: NDArray[np.bool_] = self.purpose[switch, column] != ABSENT
        self.purpose[switch, column] = np.where(exists, purpose, ABSENT)
        return exists

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of switches that together are all switches."""
        for first in range(0, len(self.purpose), PORT_ROWS_AT_ONCE):
            yield slice(first, min(first + PORT_ROWS_AT_ONCE, len(self.purpose)))

    def part(self, switches: slice) -> PortUse:
        """The ports of some switches."""
        return PortUse(self.purpose[switches], self.link[switches])

    def purposes(self, ports: Ports) -> NDArray[np.uint8]:
        """What each port is used for, uint8 in the shape of `ports`, [S, …]: ABSENT to HOST."""
        return self._entries(self.purpose, ports)

    def links(self, ports: Ports) -> NDArray[np.int32]:
        """The link behind each port, int32 in the shape of `ports`, [S, …]; -1: there is none."""
        return self._entries(self.link, ports)

    def link_at(self, switch: NDArray[Any], port: Ports) -> NDArray[np.int32]:
        """The link behind a port of each of n switches, int32[n]; -1: there is none.

        Args:
            switch: int[n], the switches, in any order.
            port: int[n], a port number of each; or both arrays in any other shape.
        """
        link: NDArray[np.int32] = self.link[switch, self._columns(port)]
        return link

    def _entries(self, table: NDArray[Any], ports: Ports) -> NDArray[Any]:
        """The entries of a table, [S, ports + 2], for ports of any shape [S, …]."""
        width = table.shape[1]
        row_begins = np.arange(0, len(ports) * width, width)
        row_begins = row_begins.reshape(-1, *[1] * (ports.ndim - 1))
        entries: NDArray[Any] = table.take(row_begins + self._columns(ports))
        return entries

    def _columns(self, ports: Ports) -> NDArray[Any]:
        """The columns of port numbers: too large numbers have the last one, negative ones 0."""
        last = min(self.purpose.shape[1] - 1, np.iinfo(ports.dtype).max)
        columns: NDArray[Any] = np.minimum(ports, last)
        if ports.dtype.kind == "i":
            columns = np.maximum(columns, 0)
        return columns

    def words(self, switch: int, port: int) -> str:
        """A port of a switch with its use, as messages say it: `port 7, a host port`."""
        if port == 0:
            return "no port"
        column = self._columns(np.array(port))
        return WORDS[int(self.purpose[switch, column])].format(port)
