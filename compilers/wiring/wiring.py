"""Wiring: the node of each vertex, the port at both ends of each link, and the ports of hosts.

Link k of a switch leads to its k-th neighbour, in ascending order; `compilers.tables` numbers
classes by it. A switch and a vertex are the same number. `compilers.wiring.wire` makes a `Wiring`
of a topology and an inventory, and a build keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

SWITCHES_AT_ONCE = 1 << 14
"""The most switches whose ports are looked up together, so that temporary arrays stay small."""


class LinkAtSwitch(NamedTuple):
    """A link as a switch sees it."""

    port: int
    """The port of the switch."""
    far: int
    """The vertex at the far end."""
    far_port: int
    """The port there."""


class CableEnds(NamedTuple):
    """A cable, seen from the smaller of the two switches that it joins."""

    switch: int
    """The smaller switch."""
    port: int
    """Its port."""
    far: int
    """The larger switch."""
    far_port: int
    """The port of the larger switch."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Wiring:
    """The cables of S switches with at most K links and P hosts each."""

    names: Annotated[tuple[str, ...], "S", "name"]
    """The name of each switch."""
    management: Annotated[tuple[str, ...], "S"]
    """The management address of each switch; "" without one."""
    host_names: Annotated[tuple[str, ...], "hosts", "name"]
    """The names of all hosts, S·P texts, vertex by vertex."""
    datapath_id: Annotated[NDArray[np.uint64], "S"]
    """uint64[S]: the OpenFlow datapath id of each switch."""
    port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port of the k-th link, 0 beyond the last."""
    far: Annotated[NDArray[np.int32], "S K", "-1..S"]
    """int32[S, K]: the vertex at the other end, -1 beyond the last."""
    far_port: Annotated[NDArray[np.int32], "S K", "0..ports+1"]
    """int32[S, K]: the port at the other end, 0 beyond the last."""
    host_port: Annotated[NDArray[np.int32], "S P", "0..ports+1"]
    """int32[S, P]: the port of each host, 0 where there is no host."""
    node_type: Annotated[NDArray[np.uint16], "S", "0..types"]
    """uint16[S]: the type of each switch, an index into type_names and port_names."""
    type_names: Annotated[tuple[str, ...], "types"]
    """The names of node types."""
    port_names: Annotated[tuple[tuple[str, ...], ...], "types"]
    """port_names[t][n - 1] names port n of type t."""

    def __repr__(self) -> str:
        """`<Wiring: 57 switches, 224 cables, 57 hosts>`."""
        cables, hosts = (self.port > 0).sum() // 2, (self.host_port > 0).sum()
        return f"<Wiring: {len(self.names):,} switches, {cables:,} cables, {hosts:,} hosts>"

    def port_name(self, vertex: int, port: int) -> str:
        """Return the name that the operating system of the vertex's node gives the port."""
        return self.port_names[int(self.node_type[vertex])][port - 1]

    def port_name_numbers(self, number_of: dict[str, int]) -> NDArray[np.int64]:
        """Return a number for the name of each port, int64[types, ports + 1].

        Args:
            number_of: the number of each name, to which new names are added.
        """
        widest = max(len(names) for names in self.port_names)
        numbers = np.zeros((len(self.port_names), widest + 1), np.int64)
        for node_type, names in enumerate(self.port_names):
            type_numbers = [number_of.setdefault(name, len(number_of)) for name in names]
            numbers[node_type, 1 : len(names) + 1] = type_numbers
        return numbers

    def same_ports(self, other: Wiring) -> bool:
        """Whether every link uses the same ports as in another wiring."""
        fields = ("port", "far", "far_port")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in fields)

    def port_name_of_link(self) -> dict[tuple[int, int], str]:
        """Return the name of the port at each end of each link.

        The keys are the two vertices of the link. The port is at the first of them.
        """
        # Where ports have run out, a link has port 0.
        return {
            (u, int(self.far[u, k])): self.port_name(u, int(self.port[u, k]))
            for u, k in np.argwhere((self.far >= 0) & (self.port > 0)).tolist()
        }

    def port_name_of_host(self) -> dict[tuple[int, int], str]:
        """Return the name of each host's port, by its vertex and its number there."""
        hosts = np.argwhere(self.host_port > 0).tolist()
        return {(v, h): self.port_name(v, int(self.host_port[v, h])) for v, h in hosts}

    def host_numbers(self) -> dict[tuple[int, str], int]:
        """Return the number of each host at its switch, from 0, by its vertex and its name."""
        width = self.host_port.shape[1]
        return {(i // width, name): i % width for i, name in enumerate(self.host_names)}

    def links_of(self, vertex: int) -> list[LinkAtSwitch]:
        """Return the links of a vertex, by their numbers."""
        is_link = self.far[vertex] >= 0
        arrays = (self.port, self.far, self.far_port)
        columns = (array[vertex][is_link].tolist() for array in arrays)
        return [*map(LinkAtSwitch, *columns)]

    def each_cable(self) -> Iterator[CableEnds]:
        """Yield each cable once, in the order of `links`."""
        switch, link = self.links()
        arrays = (self.port, self.far, self.far_port)
        columns = (array[switch, link].tolist() for array in arrays)
        return map(CableEnds, switch.tolist(), *columns)

    def links(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all E links in order: the smaller switch of each, and the link's number there.

        Returns:
            The switches, int64[E], ascending, and the numbers of the links, int64[E].
        """
        switch, link = np.nonzero(self.far > np.arange(len(self.far))[:, None])
        return switch, link

    def link_ends(self) -> NDArray[np.int64]:
        """Return the switches that each link joins, int64[E, 2], the smaller first."""
        switch, link = self.links()
        return np.stack((switch, self.far[switch, link]), axis=1).astype(np.int64)

    def far_by_port(self) -> NDArray[np.int32]:
        """Return the vertex at the far end of each port, int32[S, ports + 1], -1 for none.

        Columns are port numbers, which begin with 1.
        """
        widest = max(len(names) for names in self.port_names)
        table = np.full((len(self.names), widest + 1), -1, np.int32)
        for first in range(0, len(table), SWITCHES_AT_ONCE):
            rows = slice(first, first + SWITCHES_AT_ONCE)
            far, port = self.far[rows], self.port[rows]
            switch, link = np.nonzero(far >= 0)
            table[rows][switch, port[switch, link]] = far[switch, link]
        return table


def links_by_port(far: NDArray[np.int32], port: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the number of the link at each port, int16[S, ports + 1], -1 for none.

    Args:
        far: `Wiring.far`.
        port: `Wiring.port`.
    """
    table = np.full((len(far), int(port.max(initial=0)) + 1), -1, np.int16)
    switch, link = np.nonzero(far >= 0)
    table[switch, port[switch, link]] = link
    return table
