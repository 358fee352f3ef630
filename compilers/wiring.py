"""Wiring: vertex to node, edge to a port at each end, hosts to the ports left over.

The k-th neighbour of a vertex (ascending) is cabled to its node's k-th fabric port, so egress class
k of a switch leaves by that port. Deterministic: the same topology and inventory give the same
wiring on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.topologies.topology import Topology
from compilers.wiring_checks import Locate, Shortage, Site, nowhere
from inventory.problems import InputError, Problem, few

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node, NodeType


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """Who is cabled to whom, S switches with at most K links and P hosts each.

    names, management: a text a vertex ("" without a management address). datapath_id: uint64[S].
    port: int32[S, K], the port of the k-th link, 0 beyond the last; far: int32[S, K], the vertex at
    its other end, -1 beyond the last; far_port: int32[S, K], the port there.
    host_port: int32[S, P], 0 where there is no host; host_names: S·P texts, vertex by vertex.
    node_type: uint16[S] into type_names and port_names; port_names[t][n - 1] names port n.
    """

    names: tuple[str, ...]
    management: tuple[str, ...]
    host_names: tuple[str, ...]
    datapath_id: NDArray[np.uint64]
    port: NDArray[np.int32]
    far: NDArray[np.int32]
    far_port: NDArray[np.int32]
    host_port: NDArray[np.int32]
    node_type: NDArray[np.uint16]
    type_names: tuple[str, ...]
    port_names: tuple[tuple[str, ...], ...]

    def port_name(self, vertex: int, port: int) -> str:
        """The name that the operating system of the vertex's node gives the port."""
        return self.port_names[int(self.node_type[vertex])][port - 1]

    def cables(self) -> NDArray[np.int32]:
        """int32[S, ports + 1]: the vertex that a port is cabled to, by its number; -1: none."""
        widest = max(len(names) for names in self.port_names)
        table = np.full((len(self.names), widest + 1), -1, np.int32)
        switch, link = np.nonzero(self.far >= 0)
        table[switch, self.port[switch, link]] = self.far[switch, link]
        return table


def generated_inventory(topology: Topology, hosts_per_node: int) -> Inventory:
    """An inventory that just fits: one node type, a node a vertex, named by its vertex.

    Fabric ports come first and are as many as the largest degree, so the host ports have the same
    numbers on every switch; a quadric leaves one fabric port free.
    """
    from inventory.model import Inventory, Node, NodeType, PortBlock

    widest = int(topology.graph.degrees.max())
    blocks = [PortBlock(name="eth{}", count=widest, role="fabric")]
    if hosts_per_node:
        blocks.append(PortBlock(name="eth{}", first=widest + 1, count=hosts_per_node, role="host"))
    return Inventory.model_construct(
        node_types={"generated": NodeType(ports=tuple(blocks))},
        nodes=tuple(
            Node.model_construct(name=str(v), type="generated", vertex=v)
            for v in range(topology.graph.order)
        ),
    )


def wire(
    topology: Topology, inventory: Inventory, hosts_per_node: int, locate: Locate = nowhere
) -> Wiring:
    """Place the topology on the inventory's nodes and ports.

    Args:
        topology: the fabric graph.
        inventory: nodes and their types.
        hosts_per_node: P; vertices that are not endpoints get none.
        locate: finds the inventory's values in their file, for messages.

    Raises:
        InputError: too few nodes, nodes short of ports, or names and datapath ids that clash with
            those that nodes and hosts get where the inventory gives none.
    """
    placed = place(topology.graph.order, inventory, locate)
    nodes = [inventory.nodes[i] for i in placed]
    type_names = tuple(inventory.node_types)
    type_index = {name: t for t, name in enumerate(type_names)}
    node_type = np.array([type_index[node.type] for node in nodes], np.uint16)
    types = [_ports(inventory.node_types[name]) for name in type_names]

    degrees = topology.graph.degrees
    hosts = np.where(topology.endpoints, hosts_per_node, 0)
    port = np.zeros((len(nodes), int(degrees.max())), np.int32)
    host_port = np.zeros((len(nodes), hosts_per_node), np.int32)
    shape = np.stack((node_type.astype(np.int64), degrees, hosts), axis=1)
    short: dict[int, Shortage] = {}
    for t, degree, count in np.unique(shape, axis=0).tolist():
        alike = (shape == (t, degree, count)).all(axis=1)
        links, ends = types[t].split(degree, count)
        if len(links) < degree or len(ends) < count:
            lack = Shortage(len(types[t].names), len(links), degree, len(ends), count)
            short |= dict.fromkeys(np.flatnonzero(alike).tolist(), lack)
        else:
            port[alike, :degree] = links
            host_port[alike, :count] = ends

    host_names = tuple(
        name for v, node in enumerate(nodes) for name in _host_names(v, node, hosts_per_node)
    )
    site = Site(nodes, placed, locate)
    problems = [
        *site.short_of_ports(short),
        *site.hosts_beyond(hosts),
        *site.clashing_names(host_names, hosts_per_node),
        *site.clashing_ids(),
    ]
    if problems:
        raise InputError(few(problems))

    far = topology.graph.padded()
    far_port = np.zeros_like(port)
    present = far >= 0
    far_port[present] = port[present][topology.graph.reverse()]
    return Wiring(
        names=tuple(node.name for node in nodes),
        management=tuple(str(node.management or "") for node in nodes),
        host_names=host_names,
        datapath_id=np.array(
            [node.datapath_id or v + 1 for v, node in enumerate(nodes)], np.uint64
        ),
        port=port,
        far=far,
        far_port=far_port,
        host_port=host_port,
        node_type=node_type,
        type_names=type_names,
        port_names=tuple(t.names for t in types),
    )


@dataclass(frozen=True, slots=True)
class _TypePorts:
    """The ports of a node type: names by number, and the numbers each use may take, in order."""

    names: tuple[str, ...]
    fabric: tuple[int, ...]
    host: tuple[int, ...]

    def split(self, degree: int, hosts: int) -> tuple[list[int], list[int]]:
        """The first `degree` fabric ports, and `hosts` of the host ports that are left."""
        links = list(self.fabric[:degree])
        taken = set(links)
        return links, [n for n in self.host if n not in taken][:hosts]


def _ports(node_type: NodeType) -> _TypePorts:
    names: list[str] = []
    fabric: list[int] = []
    either: list[int] = []
    host: list[int] = []
    for block in node_type.ports:
        numbers = range(len(names) + 1, len(names) + block.count + 1)
        names += block.names()
        if block.role != "host":
            fabric += numbers
        if block.role != "fabric":
            (host if block.role == "host" else either).extend(numbers)
    # Host-only ports first, so that ports of either use stay free for links as long as they can.
    return _TypePorts(tuple(names), tuple(fabric), (*host, *either))


def place(order: int, inventory: Inventory, locate: Locate = nowhere) -> list[int]:
    """Which of the inventory's nodes each vertex is: those that name one first, others in order.

    Raises:
        InputError: too few nodes, or a node at a vertex that is not there.
    """
    nodes = inventory.nodes
    problems = []
    if len(nodes) < order:
        file, line = locate(("nodes",))
        missing = order - len(nodes)
        problems.append(
            Problem(
                file=file,
                line=line,
                key="nodes",
                required=f"{order:,} nodes, one a vertex",
                given=f"{len(nodes):,}",
                todo=f"add {missing:,} node{'s' * (missing > 1)} or choose a smaller fabric",
            )
        )
    fixed = {node.vertex: i for i, node in enumerate(nodes) if node.vertex is not None}
    for vertex, i in fixed.items():
        if vertex >= order:
            file, line = locate(("nodes", i, "vertex"))
            problems.append(
                Problem(
                    file=file,
                    line=line,
                    key=f"nodes[{i}].vertex",
                    required=f"a vertex from 0 to {order - 1}",
                    given=str(vertex),
                    todo="correct it, or leave it out for a spare node",
                )
            )
    if problems:
        raise InputError(few(problems))
    free = (i for i, node in enumerate(nodes) if node.vertex is None)
    return [fixed[v] if v in fixed else next(free) for v in range(order)]


def _host_names(vertex: int, node: Node, hosts: int) -> list[str]:
    """The inventory's names, else h<vertex>, with the host's number where there are several."""
    given = [host.name for host in node.hosts] + [None] * hosts
    usual = [f"h{vertex}"] if hosts == 1 else [f"h{vertex}-{i}" for i in range(hosts)]
    return [name or default for name, default in zip(given, usual, strict=False)]
