"""The spare nodes of the inventory that become new switches of an expansion.

A *spare* is a node that the inventory names, and that has had no vertex so far. A new vertex is a
copy of an old one, its *origin*, and has a node of the same type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.hardware import Hardware, SpareHost, SpareNode
from compilers.wiring.wiring import Wiring

SpareNodes = Mapping[int, SpareNode]
"""The spare node that each new vertex takes. Vertices that are not in it get generated nodes."""


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
