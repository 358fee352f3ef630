"""PolarStar: the star product of ER_q with a supernode (PolarStar paper, §4 to §6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology import polarity, supernodes
from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Design, Topology
from compilers.topology.supernodes import Supernode, shape

NAME = "polarstar"
PARAMETERS = "q", "supernode", "degree"


def star_product(structure: Graph, quadric: NDArray[np.bool_], supernode: Supernode) -> Graph:
    """A copy of the supernode for every structure vertex, f between the copies of neighbours.

    Vertex (x, x') is numbered x·k + x'. Along an arc from the smaller x to the larger y, x' is
    joined to f(x'), against it to f⁻¹(x'). For an involution a quadric's self-loop becomes the
    links (x, x')–(x, f(x')). Time and memory grow with the number of links.
    """
    k = supernode.order
    around = structure.padded()
    own = np.arange(structure.order, dtype=np.int32)[:, None]
    width = around.shape[1] + 1 + supernode.degree
    table = np.full((structure.order, k, width), -1, np.int32)

    image = np.where(own < around, 0, 1)
    images = np.stack((supernode.forward, supernode.backward))
    far = around[:, None, :] * k + images[image].transpose(0, 2, 1)
    table[:, :, : around.shape[1]] = np.where(around[:, None, :] >= 0, far, -1)

    loops = supernode.loops()
    at = np.flatnonzero(quadric)[:, None]
    table[at, loops, around.shape[1]] = own[at[:, 0]] * k + supernode.forward[loops]

    inside = supernode.graph.padded()
    within = own[:, :, None] * k + inside
    table[:, :, around.shape[1] + 1 :] = np.where(inside >= 0, within, -1)
    rows = table.reshape(-1, width)
    rows.sort(axis=1)
    return Graph.from_padded(rows)


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of a PolarStar, and no more."""
    if topology.family != NAME:
        return False
    q, kind, degree = (topology.parameters[name] for name in PARAMETERS)
    found = shape(str(kind), int(degree))
    if found is None:
        return False
    whole = design(int(q) + 1 + int(degree), int(q), str(kind), found)
    return (topology.graph.order, topology.graph.size) == (whole.nodes, whole.links)


def design(radix: int, q: int, kind: str, supernode: supernodes.SupernodeShape) -> Design:
    """The one of this q and supernode, which has `radix` links a node."""
    vertices, edges = polarity.order(q), q * (q + 1) ** 2 // 2
    bundles = edges * supernode.order
    return Design(
        family=NAME,
        radix=radix,
        nodes=vertices * supernode.order,
        links=bundles + vertices * supernode.links + (q + 1) * supernode.loops,
        diameter=3,
        q=q,
        supernode=kind,
        supernode_degree=radix - 1 - q,
        supernode_order=supernode.order,
    )
