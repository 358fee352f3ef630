"""The sockets of a plan: their numbers, their names, and the planned cables between them.

A *socket* is the place of one cable in a port. A port has one socket, or several for parallel
cables. The *local number* of a socket counts the sockets of its node, from 1 in the order of its
ports. The socket with local number s of vertex v is the integer v·W + s, where the *width* W is one
more than the number of sockets of the largest node type. So a cable is a pair of integers. All
modules of this folder number sockets in this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring

Cable = tuple[int, int]
"""The two sockets of a cable, the smaller number first."""
CableSet = frozenset[Cable]
"""A set of cables."""


def far_ends(cables: CableSet) -> dict[int, int]:
    """The socket at the other end of each socket's cable."""
    far_end: dict[int, int] = {}
    for a, b in cables:
        far_end[a], far_end[b] = b, a
    return far_end


def _all_sockets(first: NDArray[np.int64], count: NDArray[np.int64]) -> list[int]:
    """The sockets of n ports, port by port.

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

    def at(self, vertex: int, local_number: int) -> int:
        """The socket of a vertex by its local number."""
        return vertex * self.width + local_number

    def local_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sockets of each port: the local number of the first one, and how many there are.

        Returns:
            int64[T, ports + 1] each, by node type and port, of T node types.
        """
        widest = 1 + max(map(len, self.wiring.port_names))
        first, count = np.zeros((2, len(self.sockets), widest), np.int64)
        for node_type, ports in enumerate(self.sockets):
            count[node_type, 1 : len(ports) + 1] = [len(names) for names in ports]
            first[node_type, 1 : len(ports) + 1] = 1 + np.cumsum(count[node_type, : len(ports)])
        return first, count

    def planned(self) -> CableSet:
        """The planned cables."""
        wiring = self.wiring
        switch, link = wiring.links()
        far, port = wiring.far[switch, link], wiring.port[switch, link]
        far_port = wiring.far_port[switch, link]
        first, count = self.local_ranges()
        cables = count[wiring.node_type[switch], port]
        near_end = switch * self.width + first[wiring.node_type[switch], port]
        far_end = far.astype(np.int64) * self.width + first[wiring.node_type[far], far_port]
        near_sockets, far_sockets = _all_sockets(near_end, cables), _all_sockets(far_end, cables)
        return frozenset(zip(near_sockets, far_sockets, strict=True))

    def host_sockets(self) -> frozenset[int]:
        """The sockets of the host ports."""
        switch, host = np.nonzero(self.wiring.host_port)
        first, count = self.local_ranges()
        type_and_port = self.wiring.node_type[switch], self.wiring.host_port[switch, host]
        first_socket = switch * self.width + first[type_and_port]
        return frozenset(_all_sockets(first_socket, count[type_and_port]))

    def first_cable(self, cable: Cable) -> Cable:
        """The first of the parallel cables that a cable is one of.

        Parallel cables of a link join sockets with the same index in their ports. A cable that
        joins other sockets is returned as it is.
        """
        near, far = cable
        near_index, far_index = self._index_in_port(near), self._index_in_port(far)
        if near_index != far_index:
            return cable
        return near - near_index, far - far_index

    def _index_in_port(self, socket: int) -> int:
        """The index of a socket in its port, from 0."""
        vertex, local_number = divmod(socket, self.width)
        indices = self._indices_in_ports[int(self.wiring.node_type[vertex])]
        return indices[local_number - 1]

    @cached_property
    def _indices_in_ports(self) -> list[list[int]]:
        """The index of each socket in its port, by node type and local number less one."""
        return [[index for names in ports for index in range(len(names))] for ports in self.sockets]

    def vertex(self, socket: int) -> int:
        """The vertex that has a socket."""
        return socket // self.width

    def node(self, socket: int) -> str:
        """The name of the node that has a socket."""
        return self.wiring.names[socket // self.width]

    def name(self, socket: int) -> str:
        """The name of a socket at its node."""
        vertex, local_number = divmod(socket, self.width)
        if not self.types:  # every port has one socket, of the same number
            return self.wiring.port_name(vertex, local_number)
        names = chain.from_iterable(self.types[int(self.wiring.node_type[vertex])].sockets)
        return next(islice(names, local_number - 1, None))
