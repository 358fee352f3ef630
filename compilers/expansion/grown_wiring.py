"""The wiring of a larger fabric: old nodes unchanged, new nodes like those that they copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.expansion.spare_ports import Spare, SpareNodes, far_ports, grown_ports
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import Wiring, host_names_at, of_plane
from inventory.problems import InputError


def grown_wiring(
    wiring: Wiring, expansion: Expansion, spare: Spare, known: Hardware, taken: SpareNodes
) -> Wiring:
    """The wiring of old nodes with their ports, names and numbers, then of new nodes.

    Spares that are taken keep what the inventory says of them.

    Raises:
        InputError: new nodes have no ports left for their hosts.
    """
    old, graph = len(wiring.names), expansion.topology.graph
    port = grown_ports(spare, expansion, wiring)
    node_type = wiring.node_type[expansion.origin]
    new, hosts = range(old, graph.order), wiring.host_port.shape[1]
    names = _names(wiring, expansion, known, taken)
    first = max(int(wiring.datapath_id.max()), old, *(s.datapath_id for s in known.spares)) + 1
    numbers = np.arange(first, first + len(new), dtype=np.uint64)
    for v, node in taken.items():
        numbers[v - old] = node.datapath_id or numbers[v - old]
    given = {v: [host.name for host in node.hosts] for v, node in taken.items()}
    host_names = (name for v in new for name in host_names_at(v, given.get(v, ()), hosts))
    return Wiring(
        names=(*wiring.names, *names),
        management=(*wiring.management, *(taken[v].management if v in taken else "" for v in new)),
        host_names=(*wiring.host_names, *host_names),
        datapath_id=np.concatenate((wiring.datapath_id, numbers)),
        port=port,
        far=graph.padded(),
        far_port=far_ports(port, graph),
        host_port=_host_ports(wiring, port, node_type, known.types),
        node_type=node_type,
        type_names=wiring.type_names,
        port_names=wiring.port_names,
    )


def _names(wiring: Wiring, expansion: Expansion, known: Hardware, taken: SpareNodes) -> list[str]:
    """The spare's, or the vertex, if nodes are named by it, else the copied node's name, or the
    expansion's stem, and the copy's number.

    A name that another has gets an x.
    """
    old = len(wiring.names)
    by_vertex = list(wiring.names) == [str(v) for v in range(old)]
    copies = expansion.topology.coordinates[old:, -1].tolist()
    stem = expansion.stem and of_plane(known.plane) + expansion.stem
    used = {*wiring.names, *wiring.host_names, *(s.name for s in known.spares)}
    used |= {host.name for spare in known.spares for host in spare.hosts}
    names = []
    for v, (origin, copy) in enumerate(
        zip(expansion.origin[old:].tolist(), copies, strict=True), old
    ):
        name = str(v) if by_vertex else f"{stem or wiring.names[origin]}-{copy}"
        while name in used:
            name += "x"
        names.append(taken[v].name if v in taken else name)
        used.add(names[-1])
    return names


def _host_ports(
    wiring: Wiring,
    port: NDArray[np.int32],
    node_type: NDArray[np.uint16],
    types: tuple[PortFacts, ...],
) -> NDArray[np.int32]:
    """int32[N', P]: the ports of hosts; new nodes use host ports first, then ports of any role."""
    old, hosts = wiring.host_port.shape
    ports = np.zeros((len(port), hosts), np.int32)
    ports[:old] = wiring.host_port
    for v in range(old, len(port)):
        roles, links = types[node_type[v]].role, set(port[v].tolist())
        free = [
            n
            for wanted in ("host", "any")
            for n, role in enumerate(roles, 1)
            if role == wanted and n not in links
        ]
        if len(free) < hosts:
            required = f"{hosts} ports for hosts at a new {types[node_type[v]].name}"
            raise InputError.of(required, f"{len(free)} besides its links", key="clusters")
        ports[v] = free[:hosts]
    return ports
