"""The inventory of a fabric without one: a node type that just fits, and a node for each vertex.

A compile calls `generated_inventory` where fabric.yaml names no inventory. An expansion calls
`generated_type`, as the larger fabric needs a type with more ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compilers.topology.labelled_graph import Topology
from compilers.wiring.plane_numbers import plane_prefix

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, NodeType


GENERATED = "generated"
"""The node type of fabrics without an inventory."""


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
