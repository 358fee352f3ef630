"""Facts about a node for templates: computed when a template asks for one, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compilers.tables.build import Build


@dataclass(frozen=True, slots=True)
class NodeLink:
    """A link at a node: number and name of its port, and the same at the other end."""

    number: int
    port: str
    far: str
    far_number: int
    far_port: str


@dataclass(frozen=True, slots=True)
class NodeHost:
    """A host at a node: the number and name of the node's port; ipv6 is "" without a pool."""

    name: str
    number: int
    port: str
    mac: str
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """A node of a build; "" stands for what is not known."""

    build: Build
    vertex: int

    @property
    def name(self) -> str:
        """The name in the inventory."""
        return self.build.wiring.names[self.vertex]

    @property
    def kind(self) -> str:
        """The kind of the vertex in the words of the topology, such as `quadric`."""
        topology = self.build.topology
        return topology.kinds[int(topology.kind[self.vertex])]

    @property
    def type(self) -> str:
        """The node type."""
        wiring = self.build.wiring
        return wiring.type_names[int(wiring.node_type[self.vertex])]

    @property
    def datapath_id(self) -> str:
        """The OpenFlow datapath id, 16 hexadecimal digits."""
        return f"{int(self.build.wiring.datapath_id[self.vertex]):016x}"

    @property
    def management(self) -> str:
        """The management address."""
        return self.build.wiring.management[self.vertex]

    @property
    def rack(self) -> str:
        """The name of the rack."""
        known = self.build.hardware
        rack = int(known.rack[self.vertex]) if known else -1
        return known.rack_names[rack] if known and rack >= 0 else ""

    @property
    def unit(self) -> int:
        """The lowest rack unit that the node fills; 0 where none is known."""
        known = self.build.hardware
        return int(known.unit[self.vertex]) if known else 0

    @property
    def serial(self) -> str:
        """The serial number."""
        known = self.build.hardware
        return known.serial[self.vertex] if known else ""

    @property
    def ipv4(self) -> str:
        """The gateway address of its hosts with the length of their network, such as 10.0.0.1/24"""
        a = self.build.addressing
        return f"{a.gateway(self.vertex)}/{a.ipv4_length}"

    @property
    def ipv6(self) -> str:
        """The same for IPv6; "" without a pool."""
        a = self.build.addressing
        return f"{a.network6(self.vertex)[1]}/64" if a.ipv6 else ""

    @property
    def links(self) -> list[NodeLink]:
        """The links in the order of the neighbours."""
        w, vertex = self.build.wiring, self.vertex
        there = w.far[vertex] >= 0
        columns = (column[vertex][there].tolist() for column in (w.port, w.far, w.far_port))
        return [
            NodeLink(
                number=port,
                port=w.port_name(vertex, port),
                far=w.names[far],
                far_number=far_port,
                far_port=w.port_name(far, far_port),
            )
            for port, far, far_port in zip(*columns, strict=True)
        ]

    @property
    def hosts(self) -> list[NodeHost]:
        """The hosts in the order of their numbers."""
        w, a, vertex = self.build.wiring, self.build.addressing, self.vertex
        first = vertex * w.host_port.shape[1]
        return [
            NodeHost(
                name=w.host_names[first + host],
                number=int(w.host_port[vertex, host]),
                port=w.port_name(vertex, int(w.host_port[vertex, host])),
                mac=a.mac(vertex, host),
                ipv4=str(a.host(vertex, host)),
                ipv6=str(a.host6(vertex, host)) if a.ipv6 else "",
            )
            for host in np.flatnonzero(w.host_port[vertex]).tolist()
        ]


@dataclass(frozen=True, slots=True, eq=False)
class FabricFacts:
    """A fabric: what its build is called, and its nodes."""

    build: Build

    @property
    def name(self) -> str:
        """The name in fabric.yaml."""
        return self.build.name

    @property
    def identity(self) -> str:
        """The build's 16 hexadecimal digits."""
        return self.build.identity

    @property
    def nodes(self) -> Iterator[NodeFacts]:
        """Every node with a program, in the order of the vertices."""
        return map(self.node, np.flatnonzero(self.build.topology.present).tolist())

    def node(self, vertex: int) -> NodeFacts:
        """The node at a vertex."""
        return NodeFacts(self.build, vertex)
