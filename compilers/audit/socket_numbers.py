"""The sockets of a plan: their numbers, their names, and the planned cables between them.

A port has one socket, or several for parallel cables. The sockets of a node are numbered from 1 in
the order of its ports. Socket s of vertex v is the integer v·W + s, where W is one more than the
number of sockets of the largest node type. So a cable is a pair of integers. All modules of this
folder number sockets in this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.hardware import NodeTypeFacts
from compilers.wiring.wiring import Wiring

Pair = tuple[int, int]
"""A cable: its two sockets."""
Pairs = frozenset[Pair]
"""A set of cables."""


def mates(cables: Pairs) -> dict[int, int]:
    """The socket at the other end of each socket's cable."""
    mate_of: dict[int, int] = {}
    for a, b in cables:
        mate_of[a], mate_of[b] = b, a
    return mate_of


def _all_sockets(first: NDArray[np.int64], count: NDArray[np.int64]) -> list[int]:
    """The numbers of all sockets of n ports, port by port.

    Args:
        first: int64[n], the first socket of each port.
        count: int64[n], how many sockets each port has.
    """
    index_in_port = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    sockets: list[int] = (np.repeat(first, count) + index_in_port).tolist()
    return sockets


@dataclass(frozen=True)
class SocketNumbers:
    """The sockets of a plan: their numbers and their names."""

    wiring: Wiring
    """The ports of the planned links and hosts."""
    types: tuple[NodeTypeFacts, ...] = ()
    """The node types of the hardware; () where every port has one socket."""

    @cached_property
    def sockets(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The names of the sockets of each port, by node type and port."""
        if self.types:
            return tuple(facts.sockets for facts in self.types)
        return tuple(tuple((name,) for name in names) for names in self.wiring.port_names)

    @cached_property
    def width(self) -> int:
        """W, one more than the sockets of the largest type."""
        return 1 + max(sum(map(len, ports)) for ports in self.sockets)

    def socket_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first socket of each port, and its number of sockets: int64[T, ports + 1] each.

        T is the number of node types.
        """
        widest = 1 + max(map(len, self.wiring.port_names))
        first, count = np.zeros((2, len(self.sockets), widest), np.int64)
        for t, ports in enumerate(self.sockets):
            count[t, 1 : len(ports) + 1] = [len(names) for names in ports]
            first[t, 1 : len(ports) + 1] = 1 + np.cumsum(count[t, : len(ports)])
        return first, count

    def planned(self) -> Pairs:
        """The planned cables."""
        wiring = self.wiring
        switch, link = wiring.links()
        far, port = wiring.far[switch, link], wiring.port[switch, link]
        far_port = wiring.far_port[switch, link]
        first, count = self.socket_ranges()
        cables = count[wiring.node_type[switch], port]
        near_end = switch * self.width + first[wiring.node_type[switch], port]
        far_end = far.astype(np.int64) * self.width + first[wiring.node_type[far], far_port]
        near_sockets, far_sockets = _all_sockets(near_end, cables), _all_sockets(far_end, cables)
        return frozenset(zip(near_sockets, far_sockets, strict=True))

    def host_sockets(self) -> frozenset[int]:
        """The sockets of the host ports."""
        switch, host = np.nonzero(self.wiring.host_port)
        first, count = self.socket_ranges()
        port = self.wiring.node_type[switch], self.wiring.host_port[switch, host]
        return frozenset(_all_sockets(switch * self.width + first[port], count[port]))

    def between(self, pair: Pair) -> Pair:
        """The first sockets of the two ports that a cable joins.

        Parallel cables of a link join sockets with the same index in their ports. A cable that
        joins other sockets is returned as it is.
        """
        near, far = pair
        near_index, far_index = self._index_in_port(near), self._index_in_port(far)
        if near_index != far_index:
            return pair
        return near - near_index, far - far_index

    def _index_in_port(self, socket: int) -> int:
        """The index of a socket in its port, from 0."""
        vertex, number = divmod(socket, self.width)
        indexes = self._indexes_in_ports[int(self.wiring.node_type[vertex])]
        return indexes[number - 1]

    @cached_property
    def _indexes_in_ports(self) -> list[list[int]]:
        """The index of each socket in its port, by node type."""
        return [[k for names in ports for k in range(len(names))] for ports in self.sockets]

    def vertex(self, socket: int) -> int:
        """The vertex that has a socket."""
        return socket // self.width

    def node(self, socket: int) -> str:
        """The name of the node that has a socket."""
        return self.wiring.names[socket // self.width]

    def name(self, socket: int) -> str:
        """The name of a socket at its node."""
        vertex, number = divmod(socket, self.width)
        if not self.types:
            return self.wiring.port_name(vertex, number)
        names = chain.from_iterable(self.types[int(self.wiring.node_type[vertex])].sockets)
        return next(islice(names, number - 1, None))
