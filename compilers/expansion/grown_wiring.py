"""The wiring of a larger fabric: old nodes unchanged, new nodes like those that they copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.expansion.spare_ports import Spare, far_ports, grown_ports
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import PortFacts
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError


def grown_wiring(
    wiring: Wiring, expansion: Expansion, spare: Spare, types: tuple[PortFacts, ...]
) -> Wiring:
    """The wiring of old nodes with their ports, names and numbers, then of new nodes.

    Raises:
        InputError: new nodes have no ports left for their hosts.
    """
    old, graph = len(wiring.names), expansion.topology.graph
    port = grown_ports(spare, expansion, wiring)
    node_type = wiring.node_type[expansion.origin]
    names = _names(wiring, expansion)
    first = max(int(wiring.datapath_id.max()), old) + 1
    numbers = np.arange(first, first + len(names), dtype=np.uint64)
    hosts = wiring.host_port.shape[1]
    return Wiring(
        names=(*wiring.names, *names),
        management=(*wiring.management, *("" for _ in names)),
        host_names=(*wiring.host_names, *_host_names(old, graph.order, hosts)),
        datapath_id=np.concatenate((wiring.datapath_id, numbers)),
        port=port,
        far=graph.padded(),
        far_port=far_ports(port, graph),
        host_port=_host_ports(wiring, port, node_type, types),
        node_type=node_type,
        type_names=wiring.type_names,
        port_names=wiring.port_names,
    )


def _names(wiring: Wiring, expansion: Expansion) -> list[str]:
    """The vertex, if nodes are named by it, else the copied node's name and the copy's number.

    A name that is taken gets an x.
    """
    old = len(wiring.names)
    if list(wiring.names) == [str(v) for v in range(old)]:
        return [str(v) for v in range(old, len(expansion.origin))]
    copies = expansion.topology.coordinates[old:, -1].tolist()
    taken = {*wiring.names, *wiring.host_names}
    names = []
    for origin, copy in zip(expansion.origin[old:].tolist(), copies, strict=True):
        name = f"{wiring.names[origin]}-{copy}"
        while name in taken:
            name += "x"
        taken.add(name)
        names.append(name)
    return names


def _host_names(old: int, order: int, hosts: int) -> list[str]:
    new = range(old, order)
    if hosts == 1:
        return [f"h{v}" for v in new]
    return [f"h{v}-{h}" for v in new for h in range(hosts)]


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
