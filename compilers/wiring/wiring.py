"""Wiring: the node of each vertex, the port at both ends of each link, and the ports of hosts.

Link k of a switch leads to its k-th neighbour, in ascending order; `compilers.tables` numbers
classes by it. `compilers.wiring.wire` makes a `Wiring` of a topology and an inventory, and a build
keeps it. Here are also the inventory that a fabric without one gets, and the choice of the node of
each vertex.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, NodeType

CABLE_ROWS_AT_ONCE = 1 << 14
"""The most switches whose cables are looked up together."""
GENERATED = "generated"
"""The node type of fabrics without an inventory."""


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

    def link_ports(self) -> dict[tuple[int, int], str]:
        """Return the name of each link's port at the first of the two vertices that it joins."""
        return {
            (u, int(self.far[u, k])): self.port_name(u, int(self.port[u, k]))
            for u, k in np.argwhere((self.far >= 0) & (self.port > 0)).tolist()
        }

    def host_ports(self) -> dict[tuple[int, int], str]:
        """Return the name of each host's port, by its vertex and its number there."""
        hosts = np.argwhere(self.host_port > 0).tolist()
        return {(v, h): self.port_name(v, int(self.host_port[v, h])) for v, h in hosts}

    def host_numbers(self) -> dict[tuple[int, str], int]:
        """Return the number of each host at its switch, from 0, by its vertex and its name."""
        width = self.host_port.shape[1]
        return {(i // width, name): i % width for i, name in enumerate(self.host_names)}

    def ends(self, vertex: int) -> list[tuple[int, int, int]]:
        """Return the links of a vertex: its port, the vertex at the far end, and the port there."""
        cabled = self.far[vertex] >= 0
        arrays = (self.port, self.far, self.far_port)
        columns = (array[vertex][cabled].tolist() for array in arrays)
        return list(zip(*columns, strict=True))

    def each_cable(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each cable once: a switch, its port, the larger switch at the far end, its port."""
        switch, link = self.links()
        arrays = (self.port, self.far, self.far_port)
        ends = (array[switch, link].tolist() for array in arrays)
        return zip(switch.tolist(), *ends, strict=True)

    def links(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all links in order, int64[E] twice: the smaller switch, and the number there."""
        switch, link = np.nonzero(self.far > np.arange(len(self.far))[:, None])
        return switch, link

    def link_ends(self) -> NDArray[np.int64]:
        """Return the switches that each link joins, int64[E, 2], the smaller first."""
        switch, link = self.links()
        return np.stack((switch, self.far[switch, link]), axis=1).astype(np.int64)

    def cables(self) -> NDArray[np.int32]:
        """Return the vertex at the other end of each port, int32[S, ports + 1], -1 for none.

        Columns are port numbers, which begin with 1.
        """
        widest = max(len(names) for names in self.port_names)
        table = np.full((len(self.names), widest + 1), -1, np.int32)
        for first in range(0, len(table), CABLE_ROWS_AT_ONCE):
            block = slice(first, first + CABLE_ROWS_AT_ONCE)
            switch, link = np.nonzero(self.far[block] >= 0)
            table[block][switch, self.port[block][switch, link]] = self.far[block][switch, link]
        return table


def links_by_port(far: NDArray[np.int32], port: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return the link at each port, int16[S, ports + 1], -1 for a port without a cable.

    Args:
        far: `Wiring.far`.
        port: `Wiring.port`.
    """
    table = np.full((len(far), int(port.max(initial=0)) + 1), -1, np.int16)
    switch, link = np.nonzero(far >= 0)
    table[switch, port[switch, link]] = link
    return table


def generated_inventory(
    topology: Topology, hosts_per_node: int, plane: int = 0, names: Sequence[str] = ()
) -> Inventory:
    """Return an inventory that just fits a topology: one node type, and a node for each vertex.

    Fabric ports come first and are as many as the largest degree, so the host ports have the same
    numbers on every switch.

    Args:
        topology: the fabric.
        hosts_per_node: the host ports of a node.
        plane: from 1, where there are several; the names of nodes begin with it.
        names: the names that a graph's file gives the vertices, () to number nodes.
    """
    from inventory.model import Inventory, Node

    template = Node.model_construct(name="", type=GENERATED)
    return Inventory.model_construct(
        node_types={GENERATED: generated_type(int(topology.graph.degrees.max()), hosts_per_node)},
        nodes=tuple(
            template.model_copy(update={"name": f"{plane_prefix(plane)}{name}", "vertex": v})
            for v, name in enumerate(names or range(topology.graph.order))
        ),
    )


def generated_type(links: int, hosts: int, more: int = 0) -> NodeType:
    """Return the node type `generated`: ports for links, then for hosts, then for more links."""
    from inventory.model import NodeType, PortBlock, PortRole

    counts: tuple[tuple[PortRole, int], ...] = (
        ("fabric", links),
        ("host", hosts),
        ("fabric", more),
    )
    firsts = (1, links + 1, links + hosts + 1)
    return NodeType.model_construct(
        ports=tuple(
            PortBlock.model_construct(name="eth{}", first=first, count=count, role=role)
            for first, (role, count) in zip(firsts, counts, strict=True)
            if count
        )
    )


def plane_prefix(plane: int) -> str:
    """Return the prefix of the names of a plane's nodes and racks; "" for 0, the only plane.

    >>> plane_prefix(2)
    'p2-'
    """
    return f"p{plane}-" if plane else ""


def first_datapath_id(plane: int) -> int:
    """Return the datapath id of vertex 0.

    The plane is above the lower 48 bits, which Open vSwitch takes as a MAC address.
    """
    return ((max(plane, 1) - 1) << 48) + 1


def node_indexes(vertex_count: int, inventory: Inventory) -> list[int]:
    """Return the node of each vertex, as an index into the inventory's list of nodes.

    Nodes that name a vertex are there; others get the vertices that are left, in order. There are
    enough nodes, and they name existing vertices (`compilers.spec.cross_checks`).
    """
    fixed = {node.vertex: i for i, node in enumerate(inventory.nodes) if node.vertex is not None}
    free = iter(waiting_nodes(vertex_count, inventory))
    return [fixed[v] if v in fixed else next(free) for v in range(vertex_count)]


def waiting_nodes(vertex_count: int, inventory: Inventory) -> list[int]:
    """Return the nodes without a vertex that can get one, as indexes into the list of nodes.

    If there are more nodes than vertices, planned nodes stay spares, the last first.
    """
    free = [i for i, node in enumerate(inventory.nodes) if node.vertex is None]
    planned = [i for i in free if inventory.nodes[i].state == "planned"]
    surplus = max(len(inventory.nodes) - vertex_count, 0)
    spares = {*planned[max(len(planned) - surplus, 0) :]} if surplus else set()
    return [i for i in free if i not in spares]
