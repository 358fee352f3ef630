"""The spare ports and spare nodes that an expansion uses, so that no installed plug is moved.

`SparePorts` lists the unused ports of a fabric. The functions count how many an expansion needs,
refuse one that needs more, and give each new link a port. `choose_spare_nodes` gives new vertices
the spare nodes of the inventory, and `host_needs` says which ports their hosts can have. A new
vertex is a *copy* of an old one, its *origin*, and has a node of the same type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, SpareHost, SpareNode
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class SparePorts:
    """The ports that may have links: all of each node type, and the unused of each switch."""

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
    ) -> SparePorts:
        """The spare ports of a fabric whose ports have roles.

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

    def counts(self) -> NDArray[np.int64]:
        """How many unused ports each switch has, int64[S]."""
        return np.array([len(ports) for ports in self.unused_ports], np.int64)


def links_to_add(expansion: Expansion) -> NDArray[np.int64]:
    """How many links an expansion adds at each vertex, int64[S']."""
    added = np.bincount(expansion.added.ravel(), minlength=len(expansion.origin))
    return np.asarray(added, np.int64)


def ports_for_links(spare: SparePorts, expansion: Expansion, wiring: Wiring) -> NDArray[np.int64]:
    """How many ports for new links each vertex has, int64[S']: unused ports, or those of a copy."""
    copies = [len(ports) for ports in _ports_of_copies(spare, expansion, wiring)]
    return np.concatenate((spare.counts(), np.array(copies, np.int64)))


@dataclass(frozen=True, slots=True)
class HostNeed:
    """The hosts of a new node, and the ports that they can have."""

    node_type: int
    """The number of its type."""
    hosts: int
    """How many hosts it is to have."""
    ports: tuple[int, ...]
    """The ports that are left over for hosts when its links have theirs: those that only hosts may
    have, then those of any role."""

    @property
    def lacks_ports(self) -> bool:
        """Whether it has fewer ports than hosts."""
        return len(self.ports) < self.hosts


def host_needs(
    spare: SparePorts,
    expansion: Expansion,
    wiring: Wiring,
    types: Sequence[NodeTypeFacts],
    hosts: Sequence[int],
) -> list[HostNeed]:
    """What each new node needs for its hosts.

    Args:
        spare: the ports of the installed fabric.
        expansion: the larger fabric.
        wiring: the types of old nodes.
        types: the node types.
        hosts: the number of hosts of each new node.
    """

    @cache
    def host_ports(node_type: int, degree: int) -> tuple[int, ...]:
        """The ports for hosts of a new node with so many links."""
        roles, links = types[node_type].role, set(spare.ports_of_type[node_type][:degree])
        return tuple(
            port
            for host_role in ("host", "any")
            for port, role in enumerate(roles, 1)
            if role == host_role and port not in links
        )

    first_new = len(wiring.names)
    new_types = wiring.node_type[expansion.origin[first_new:]].tolist()
    degrees = expansion.topology.graph.degrees[first_new:].tolist()
    return [
        HostNeed(node_type, count, host_ports(node_type, degree))
        for node_type, degree, count in zip(new_types, degrees, hosts, strict=True)
    ]


def require_room(
    spare: SparePorts, expansion: Expansion, wiring: Wiring, clusters_that_fit: int
) -> None:
    """Pass if there are ports for all links of an expansion.

    Args:
        spare: the ports of the installed fabric.
        expansion: the larger fabric.
        wiring: the names of nodes.
        clusters_that_fit: the number of clusters of this kind that the ports allow.

    Raises:
        InputError: nodes lack ports.
    """
    links, ports = links_to_add(expansion), ports_for_links(spare, expansion, wiring)
    copies = expansion.origin[len(wiring.names) :].tolist()
    names = [*wiring.names, *(f"the copy of {wiring.names[o]}" for o in copies)]
    lacking = np.flatnonzero(links > ports).tolist()
    if lacking:
        worst = max(lacking, key=lambda vertex: (links[vertex] - ports[vertex], -vertex))
        others = f", and too few at {len(lacking) - 1:,} more nodes" if len(lacking) > 1 else ""
        raise InputError.of(
            key="clusters",
            required=f"{_ports_in_words(int(links[worst]), 'unused ')} for links at {names[worst]}",
            given=f"{ports[worst]}{others}",
            todo=_remedy(clusters_that_fit),
        )


def require_room_for_hosts(
    needs: Sequence[HostNeed], types: Sequence[NodeTypeFacts], clusters_that_fit: int
) -> None:
    """Pass if new nodes have ports for their hosts.

    Args:
        needs: the hosts of new nodes.
        types: the node types.
        clusters_that_fit: the number of clusters of this kind that the ports allow.

    Raises:
        InputError: new nodes lack ports.
    """
    for need in needs:
        if need.lacks_ports:
            type_name = types[need.node_type].name
            raise InputError.of(
                key="clusters",
                required=f"{_ports_in_words(need.hosts)} for hosts at a new {type_name}",
                given=f"{len(need.ports)} besides its links",
                todo=_remedy(clusters_that_fit),
            )


def _ports_in_words(number: int, adjective: str = "") -> str:
    """A number of ports in words."""
    return f"{number} {adjective}port{'' if number == 1 else 's'}"


def _remedy(clusters_that_fit: int) -> str:
    """What to do if ports are lacking."""
    few = {0: "no cluster of this kind fits", 1: "one cluster of this kind fits"}
    most = few.get(clusters_that_fit, f"at most {clusters_that_fit} clusters of this kind fit")
    return f"{most}; use node types with more ports for more"


def _ports_of_copies(
    spare: SparePorts, expansion: Expansion, wiring: Wiring
) -> list[tuple[int, ...]]:
    """The ports for links of each new node, which has the type of its origin."""
    origin = expansion.origin[len(wiring.names) :]
    return [spare.ports_of_type[t] for t in wiring.node_type[origin].tolist()]


def grown_ports(spare: SparePorts, expansion: Expansion, wiring: Wiring) -> NDArray[np.int32]:
    """The port of each link of the larger fabric, int32[S', K'].

    Old links keep their ports, and new links take spare ones.
    """
    graph = expansion.topology.graph
    port = np.zeros(graph.padded().shape, np.int32)
    is_link = wiring.far >= 0
    unused = (*spare.unused_ports, *_ports_of_copies(spare, expansion, wiring))
    for vertex, degree in enumerate(graph.degrees.tolist()):
        # New vertices have higher numbers, so old neighbours keep their order, and come first.
        is_old = vertex < len(wiring.names)
        old_ports = wiring.port[vertex, is_link[vertex]].tolist() if is_old else []
        port[vertex, :degree] = [*old_ports, *unused[vertex]][:degree]
    return port


def far_ports(port: NDArray[np.int32], graph: Graph) -> NDArray[np.int32]:
    """The port at the far end of each link, int32[S, K], by the ports at its near end."""
    far = np.zeros_like(port)
    present = graph.padded() >= 0
    far[present] = graph.reverse_values(port[present])
    return far


SpareNodes = Mapping[int, SpareNode]
"""The spare node that each new vertex takes. A new vertex that is not in it gets a generated
node.
"""


def choose_spare_nodes(hardware: Hardware, wiring: Wiring, expansion: Expansion) -> SpareNodes:
    """Choose spare nodes for new vertices, in the order of the inventory.

    A new vertex takes a spare of the type of the node that it copies. Spares with disabled ports
    are not used.
    """
    first_new = len(wiring.names)
    intact = [spare for spare in hardware.spares if not spare.disabled_ports]
    spares_of_type = {
        name: iter([spare for spare in intact if spare.type == name]) for name in wiring.type_names
    }
    types = wiring.node_type[expansion.origin[first_new:]].tolist()
    # `next` takes the spares of a type one after the other, and gives None when none is left.
    spare_nodes = {
        vertex: next(spares_of_type[wiring.type_names[node_type]], None)
        for vertex, node_type in enumerate(types, first_new)
    }
    return {vertex: spare for vertex, spare in spare_nodes.items() if spare}


def hosts_of_spares(
    spare_nodes: SpareNodes, per_node: int
) -> Iterator[tuple[tuple[int, int], SpareHost]]:
    """Yield the hosts of spares that are used, each with its vertex and its number there.

    Args:
        spare_nodes: the spares by the vertex that takes them.
        per_node: how many hosts a node has at most.
    """
    for vertex, spare in spare_nodes.items():
        for number, host in enumerate(spare.hosts[:per_node]):
            yield (vertex, number), host
