"""The wiring of a larger fabric: old cables stay in their ports, new cables take unused ports.

`grow` calls `grown_wiring` with the wiring of the installed fabric and the larger topology. New
nodes come after the old ones. A *spare* is a node of the inventory that becomes a new switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.expansion.host_needs import HostNeed
from compilers.expansion.link_ports import (
    LinkPorts,
    far_ports,
    grown_ports,
    links_to_add,
    ports_for_links,
)
from compilers.expansion.spare_nodes import SpareNodes
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.generated_inventory import GENERATED, generated_type
from compilers.wiring.hardware import Hardware
from compilers.wiring.host_names import host_names_at
from compilers.wiring.node_type_facts import node_type_facts
from compilers.wiring.wiring import Wiring


def with_generated_ports(
    wiring: Wiring, hardware: Hardware, expansion: Expansion
) -> tuple[Wiring, Hardware]:
    """Return the wiring and the hardware with ports for an expansion.

    Only a generated node type gets more ports. Others stay as they are.

    The new ports come after the existing ones, so that no plug is moved.
    """
    if wiring.type_names != (GENERATED,):
        return wiring, hardware
    link_ports = LinkPorts.of(wiring, hardware.types)
    lacking = links_to_add(expansion) - ports_for_links(link_ports, expansion, wiring)
    new_ports = int(lacking.max(initial=0))
    if new_ports == 0:
        return wiring, hardware
    # The generated type has ports for links, then for hosts, then those of earlier expansions.
    roles = hardware.types[0].role
    hosts = roles.count("host")
    links = roles.index("host") if hosts else len(roles)
    after_hosts = len(roles) - links - hosts
    facts = node_type_facts(GENERATED, generated_type(links, hosts, after_hosts + new_ports))
    names = (tuple(sockets[0] for sockets in facts.sockets),)
    return replace(wiring, port_names=names), replace(hardware, types=(facts,))


def grown_wiring(
    wiring: Wiring,
    expansion: Expansion,
    link_ports: LinkPorts,
    hardware: Hardware,
    spare_nodes: SpareNodes,
    host_needs: Sequence[HostNeed],
) -> Wiring:
    """Return the wiring of the larger fabric: old nodes as they are, then new nodes.

    Args:
        wiring: the wiring of the old nodes.
        expansion: the larger topology.
        link_ports: the unused ports of the old nodes.
        hardware: the node types and the spares.
        spare_nodes: the spares that are used; they keep the names and numbers of the inventory.
        host_needs: the hosts of each new node, and their ports.
    """
    first_new, graph = len(wiring.names), expansion.topology.graph
    port = grown_ports(link_ports, expansion, wiring)
    new_vertices, per_node = range(first_new, graph.order), wiring.host_port.shape[1]
    management = [""] * len(new_vertices)
    host_names: list[str] = []
    for vertex in new_vertices:
        node = spare_nodes.get(vertex)
        management[vertex - first_new] = node.management if node else ""
        names_of_hosts = [host.name for host in node.hosts] if node else []
        host_names += host_names_at(vertex, names_of_hosts, per_node)
    datapath_ids = _new_datapath_ids(wiring, hardware, spare_nodes, len(new_vertices))
    return Wiring(
        names=(*wiring.names, *_new_names(wiring, expansion, hardware, spare_nodes)),
        management=(*wiring.management, *management),
        host_names=(*wiring.host_names, *host_names),
        datapath_id=np.concatenate((wiring.datapath_id, datapath_ids)),
        port=port,
        far=graph.padded(),
        far_port=far_ports(port, graph),
        host_port=_grown_host_ports(wiring, host_needs),
        node_type=wiring.node_type[expansion.origin],
        type_names=wiring.type_names,
        port_names=wiring.port_names,
    )


def _new_datapath_ids(
    wiring: Wiring, hardware: Hardware, spare_nodes: SpareNodes, count: int
) -> NDArray[np.uint64]:
    """Return the datapath ids of `count` new nodes: those of spares, else new ones above all."""
    first_new = len(wiring.names)
    ids_of_spares = [spare.datapath_id for spare in hardware.spares]
    first = max(int(wiring.datapath_id.max()), first_new, *ids_of_spares) + 1
    datapath_ids = np.arange(first, first + count, dtype=np.uint64)
    for vertex, node in spare_nodes.items():
        if node.datapath_id:
            datapath_ids[vertex - first_new] = node.datapath_id
    return datapath_ids


def _new_names(
    wiring: Wiring, expansion: Expansion, hardware: Hardware, spare_nodes: SpareNodes
) -> list[str]:
    """Return the names of new nodes.

    A spare keeps its name. If all nodes are named by their vertices, so are new ones. Otherwise a
    new node is named by the node that it copies and the number of the copy. If the name is taken,
    an `x` is appended.
    """
    first_new = len(wiring.names)
    are_named_by_vertex = list(wiring.names) == [str(v) for v in range(first_new)]
    copies = expansion.topology.coordinates[first_new:, -1].tolist()
    used = {*wiring.names, *wiring.host_names, *(s.name for s in hardware.spares)}
    used |= {host.name for spare in hardware.spares for host in spare.hosts}
    names = []
    for vertex, copy in enumerate(copies, first_new):
        original = wiring.names[int(expansion.origin[vertex])]
        name = str(vertex) if are_named_by_vertex else f"{original}-{copy}"
        while name in used:
            name += "x"
        names.append(spare_nodes[vertex].name if vertex in spare_nodes else name)
        used.add(names[-1])
    return names


def _grown_host_ports(wiring: Wiring, needs: Sequence[HostNeed]) -> NDArray[np.int32]:
    """Return the ports of hosts, int32[S', H]: those of old nodes, then those of new nodes."""
    first_new, per_node = wiring.host_port.shape
    ports = np.zeros((first_new + len(needs), per_node), np.int32)
    ports[:first_new] = wiring.host_port
    for vertex, need in enumerate(needs, first_new):
        ports[vertex, : need.hosts] = need.ports[: need.hosts]
    return ports


def moved_cables(before: Wiring, after: Wiring) -> int:
    """Return how many old cables do not join the same two ports, by name, in the new fabric."""
    number_of: dict[str, int] = {}
    old, new = _cable_ends(before, number_of), _cable_ends(after, number_of)
    in_either = len(np.unique(np.concatenate((old, new)), axis=0))
    in_both = len(old) + len(new) - in_either
    return len(old) - in_both


def _cable_ends(wiring: Wiring, number_of: dict[str, int]) -> NDArray[np.int64]:
    """Return both ends of each cable, int64[E, 4]: vertex, port, vertex, port.

    The lower vertex comes first.

    Args:
        wiring: the cables.
        number_of: a number for each name of a port, to which new names are added.
    """
    numbers = wiring.port_name_numbers(number_of)
    vertex, link = wiring.links()
    far = wiring.far[vertex, link]
    port = numbers[wiring.node_type[vertex], wiring.port[vertex, link]]
    far_port = numbers[wiring.node_type[far], wiring.far_port[vertex, link]]
    return np.column_stack((vertex, port, far, far_port)).astype(np.int64)
