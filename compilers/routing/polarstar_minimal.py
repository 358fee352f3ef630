"""Minimal routes in PolarStar: a row a remote supernode, exact rows for the near ones.

At router (x, x') for (y, y'), with g the bijection along the arc from x (f or its inverse) and
z = x×y (docs/concepts/how-it-works.md; the rule of the PolarStar paper, §9.2, is not minimal):

- y = x: y' itself where a link leads there (in the supernode, or a quadric's loop link), else a
  common neighbour of x' and y', else (w, g(x')) for any neighbour w of x.
- y next to x: y' = g(x') is next; else (x, g⁻¹(y')) where x' is joined to that; else (y, g(x'))
  where that is joined to y'; else, for involutions only, y' = x', two links away over z.
- otherwise: (z, g(x')) for every y' alike. That is the aggregate.

By Property R* or R1 of the supernode there are no other cases, so the rules serve every kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Routes
from compilers.tables.star_rows import (
    OVER_Z,
    TO_Y,
    WITHIN,
    StarEgress,
    StarPrefixes,
    StarProgram,
)
from compilers.topology import polarity, supernodes
from compilers.topology.labelled_graph import Topology
from compilers.topology.supernodes import Supernode


def routes(topology: Topology) -> Routes:
    """Hierarchical minimal rows; those of a large fabric are computed when they are read."""
    rules = star_program(topology)
    egress, prefix = unless_large(StarEgress(rules)), StarPrefixes(rules)
    n, k = len(rules.around), rules.members
    return Routes(
        prefix=unless_large(prefix, egress),
        egress=egress,
        aggregate=np.repeat(np.arange(n * k, n * k + n, dtype=np.int32), k),
    )


def star_program(topology: Topology) -> StarProgram:
    """The program of a whole PolarStar."""
    parameters = topology.parameters
    supernode = supernodes.supernode(str(parameters["supernode"]), int(parameters["degree"]))
    return program(supernode, polarity.lines(int(parameters["q"])))


def program(supernode: Supernode, around: NDArray[np.int32]) -> StarProgram:
    """The program of a PolarStar of this supernode.

    Args:
        supernode: of k members.
        around: int32[N, q + 1], `polarity.lines(q)`.
    """
    edges, forward, backward = supernode.adjacency(), supernode.forward, supernode.backward
    members = np.arange(supernode.order)
    looped = edges.copy()
    looped[supernode.loops(), forward[supernode.loops()]] = True
    joined = np.stack((edges, looped))
    place = np.where(joined, np.cumsum(joined, axis=2) - 1, -1).astype(np.int16)
    common = np.stack([_to_common_neighbour(*pair) for pair in zip(joined, place, strict=True)])
    case = [
        np.select(
            [along[:, None] == members, edges[:, back], edges[along]],
            [np.int8(TO_Y), np.int8(WITHIN), np.int8(TO_Y)],
            np.int8(OVER_Z),
        )
        for along, back in ((forward, backward), (backward, forward))
    ]
    return StarProgram(
        around=around,
        links=joined.sum(axis=2).astype(np.int16),
        step=np.where(joined, place, common),
        case=np.stack(case),
        within=np.stack((place[:, :, backward], place[:, :, forward]), axis=1),
        loop=place[1, members, forward],
        along=np.stack((forward, backward)).astype(np.int16),
        joined=joined,
        shift=np.zeros(2, np.uint16),
    )


def _to_common_neighbour(joined: NDArray[np.bool_], place: NDArray[np.int16]) -> NDArray[np.int16]:
    """int16[k, k]: the place of the link to a common neighbour, taken in turn; -1 for none."""
    table = np.full(joined.shape, -1, np.int16)
    members = np.arange(len(joined))
    for member in members:
        common = joined[member] & joined
        count = common.sum(axis=1)
        turn = 1 + (member + members) % np.maximum(count, 1)
        chosen = (common & (np.cumsum(common, axis=1) == turn[:, None])).argmax(axis=1)
        table[member] = np.where(count, place[member, chosen], -1)
    return table
