"""The ports that the links of an expansion take, so that no installed plug is moved.

`LinkPorts` lists the ports that links may take. The functions count how many an expansion needs,
and give each new link a port. A new vertex is a *copy* of an old one, its *origin*, and has a node
of the same type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class LinkPorts:
    """The ports that links may take, by node type and by switch.

    A new switch can use all of its node type, and an installed switch those that are unused.
    """

    ports_of_type: tuple[tuple[int, ...], ...]
    """The ports of each node type that are not for hosts, in order."""
    unused_ports: tuple[tuple[int, ...], ...]
    """The unused ports of each switch that are not for hosts, in order."""

    @classmethod
    def of(
        cls,
        wiring: Wiring,
        types: Sequence[NodeTypeFacts],
        disabled: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> LinkPorts:
        """Return the ports for links of a fabric whose ports have roles.

        Args:
            wiring: the ports that are used.
            types: the node types.
            disabled: the names of ports that get no cable, by the node's name.
        """
        ports_of_type = tuple(
            tuple(port for port, role in enumerate(facts.role, 1) if role != "host")
            for facts in types
        )
        used = np.concatenate((wiring.port, wiring.host_port), axis=1).tolist()
        node_types = wiring.node_type.tolist()
        used_or_disabled = [set(ports) for ports in used]
        for vertex, name in enumerate(wiring.names):
            names = wiring.port_names[node_types[vertex]]
            used_or_disabled[vertex] |= {names.index(port) + 1 for port in disabled.get(name, ())}
        unused = tuple(
            tuple(port for port in ports_of_type[node_type] if port not in excluded)
            for node_type, excluded in zip(node_types, used_or_disabled, strict=True)
        )
        return cls(ports_of_type, unused)

    def unused_counts(self) -> NDArray[np.int64]:
        """Return how many unused ports each switch has, int64[S]."""
        return np.array([len(ports) for ports in self.unused_ports], np.int64)


def links_to_add(expansion: Expansion) -> NDArray[np.int64]:
    """Return how many links an expansion adds at each vertex, int64[S']."""
    added = np.bincount(expansion.added.ravel(), minlength=len(expansion.origin))
    return np.asarray(added, np.int64)


def ports_for_links(
    link_ports: LinkPorts, expansion: Expansion, wiring: Wiring
) -> NDArray[np.int64]:
    """Return how many ports for new links each vertex has, int64[S'].

    An old vertex has its unused ports, and a new one all ports for links of its node type.
    """
    copies = [len(ports) for ports in _ports_of_copies(link_ports, expansion, wiring)]
    return np.concatenate((link_ports.unused_counts(), np.array(copies, np.int64)))


def _ports_of_copies(
    link_ports: LinkPorts, expansion: Expansion, wiring: Wiring
) -> list[tuple[int, ...]]:
    """Return the ports for links of each new node, which has the type of its origin."""
    origin = expansion.origin[len(wiring.names) :]
    return [link_ports.ports_of_type[t] for t in wiring.node_type[origin].tolist()]


def grown_ports(link_ports: LinkPorts, expansion: Expansion, wiring: Wiring) -> NDArray[np.int32]:
    """Return the port of each link of the larger fabric, int32[S', K'].

    Old links keep their ports, and new links take unused ones.
    """
    graph = expansion.topology.graph
    port = np.zeros(graph.padded().shape, np.int32)
    is_link = wiring.far >= 0
    unused = (*link_ports.unused_ports, *_ports_of_copies(link_ports, expansion, wiring))
    for vertex, degree in enumerate(graph.degrees.tolist()):
        # New vertices have higher numbers, so old neighbours keep their order, and come first.
        is_old = vertex < len(wiring.names)
        old_ports = wiring.port[vertex, is_link[vertex]].tolist() if is_old else []
        port[vertex, :degree] = [*old_ports, *unused[vertex]][:degree]
    return port


def far_ports(port: NDArray[np.int32], graph: Graph) -> NDArray[np.int32]:
    """Return the port at the far end of each link, int32[S, K], by the ports at its near end."""
    far = np.zeros_like(port)
    present = graph.padded() >= 0
    far[present] = graph.reverse_values(port[present])
    return far
