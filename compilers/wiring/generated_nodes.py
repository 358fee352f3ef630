"""The nodes and racks that `generate` of the inventory describes, in place of a list of nodes.

`compilers.wiring.placement` calls `with_generated_nodes` before it gives nodes their racks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.plane_numbers import plane_prefix
from compilers.wiring.rack_room import fill_racks
from inventory.problems import Finding, KeyPath, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.floor import Generate, GeneratedPart, Rack
    from inventory.model import Inventory


def with_generated_nodes(
    topology: Topology, inventory: Inventory, generate: Generate, layout: Layout, plane: int
) -> Inventory:
    """Add the nodes that `generate` describes, and racks for them if the inventory lists none."""
    from inventory.model import Node

    prefix = plane_prefix(plane)
    nodes = tuple(
        Node.model_construct(
            name=prefix + (part.name or generate.name).replace("{}", str(v)),
            type=part.type,
            vertex=v,
            group=part.group,
        )
        for v, part in enumerate(_part_of_vertex(generate, topology.graph.order))
    )
    racks = inventory.racks or _generated_racks(inventory, generate, layout, plane)
    return inventory.model_copy(update={"nodes": nodes, "racks": racks})


def _generated_racks(
    inventory: Inventory, generate: Generate, layout: Layout, plane: int
) -> tuple[Rack, ...]:
    """Return as many racks as the clusters fill, on a grid; planes are behind each other."""
    from inventory.floor import Rack

    units = generate.racks.units
    nodes_per_rack = units // max(inventory.node_types[part.type].units for part in generate.parts)
    sizes = np.bincount(layout.rack)
    # As many racks as if no clusters shared one. -(-a // b) rounds up.
    most_racks = int((-(-sizes // nodes_per_rack)).sum())
    racks_of_members = fill_racks(sizes, np.full(most_racks, nodes_per_rack)).racks
    count = int(np.concatenate(racks_of_members).max()) + 1
    columns = generate.racks.columns or round(count**0.5)
    first_row = max(plane - 1, 0) * -(-count // columns)
    return tuple(
        Rack.model_construct(
            name=plane_prefix(plane) + generate.racks.name.replace("{}", str(r)),
            row=first_row + r // columns,
            column=r % columns,
            units=units,
        )
        for r in range(count)
    )


def _part_of_vertex(generate: Generate, vertex_count: int) -> list[GeneratedPart]:
    """Return the entry of `generate` that makes the node of each vertex.

    Raises:
        Refused: the entries make more or fewer nodes than there are vertices.
    """
    parts: list[GeneratedPart] = []
    for i, part in enumerate(generate.parts):
        vertices_left = vertex_count - len(parts)
        count = vertices_left if part.count is None else part.count
        if count > vertices_left or not count:
            path: KeyPath = ("generate", "types", i)
            count_in_words = "all that are left" if part.count is None else f"{count:,}"
            given = f"{count_in_words}, where {vertices_left:,} of {vertex_count:,} are left"
            raise Refused(Finding(path, "a part of the fabric's nodes", given, "lower the counts"))
        parts += [part] * count
    if len(parts) < vertex_count:
        todo = "leave out the count of the last type, which then takes all others"
        given = f"{len(parts):,}"
        raise Refused(Finding(("generate", "types"), f"{vertex_count:,} nodes in all", given, todo))
    return parts
