"""Which node of the inventory is at each vertex of the graph.

A node is at the vertex that the inventory gives it. The other nodes get the vertices that are left,
in the order of the inventory. Nodes for which no vertex is left are *spares*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory


def node_indexes(vertex_count: int, inventory: Inventory) -> list[int]:
    """Return the node of each vertex, as an index into the inventory's list of nodes.

    Nodes that name a vertex are there; others get the vertices that are left, in order. There are
    enough nodes, and they name existing vertices (`compilers.spec.cross_checks`).
    """
    fixed = {node.vertex: i for i, node in enumerate(inventory.nodes) if node.vertex is not None}
    free = iter(nodes_to_place(vertex_count, inventory))
    return [fixed[v] if v in fixed else next(free) for v in range(vertex_count)]


def nodes_to_place(vertex_count: int, inventory: Inventory) -> list[int]:
    """Return the nodes without a vertex that can get one, as indexes into the list of nodes.

    If there are more nodes than vertices, planned nodes stay spares, the last first.
    """
    free = [i for i, node in enumerate(inventory.nodes) if node.vertex is None]
    planned = [i for i in free if inventory.nodes[i].state == "planned"]
    surplus = max(len(inventory.nodes) - vertex_count, 0)
    spares = {*planned[max(len(planned) - surplus, 0) :]} if surplus else set()
    return [i for i in free if i not in spares]
