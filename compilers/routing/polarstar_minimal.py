"""Minimal routes in PolarStar: exact rows for near supernodes, one row for each remote supernode.

Switch (x, x') is member x' of supernode x. Two supernodes that are adjacent in the structure graph
are joined by a bijection of their members. Here g is the bijection from x to its neighbour: f or
its inverse. Vertices of ER_q are vectors, and neighbours are orthogonal. So the cross product
z = x×y, which is orthogonal to x and y, is their common neighbour. The next hop of (x, x') towards
(y, y') is

- for y = x: y' itself where a link leads there (in the supernode, or a quadric's loop link); else a
  common neighbour of x' and y'; else (w, g(x')) for any neighbour w of x;
- for y next to x: the destination if y' = g(x'); else (x, g⁻¹(y')) if a link joins x' and g⁻¹(y');
  else (y, g(x')) if a link joins g(x') and y'; else (z, g(x')). The last case occurs only where g
  is an involution and y' = x'; the destination is two links away over z;
- for all other y: (z, g(x')), whatever y' is. So one row for the aggregate of y is enough.

Property R* or R1 of the supernode leaves no other cases, so the rules hold for every kind of
supernode. (docs/concepts/how-it-works.md; the rule of the PolarStar paper, §9.2, is not minimal.)
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
    """Return minimal routes; rows of a large fabric are computed when they are read."""
    star = star_program(topology)
    egress, prefix = unless_large(StarEgress(star)), StarPrefixes(star)
    n, k = len(star.around), star.members
    return Routes(
        prefix=unless_large(prefix, egress),
        egress=egress,
        aggregate=np.repeat(np.arange(n * k, n * k + n, dtype=np.int32), k),
    )


def star_program(topology: Topology) -> StarProgram:
    """Return the tables of one supernode from which all rows of a whole PolarStar are computed."""
    parameters = topology.parameters
    supernode = supernodes.supernode(str(parameters["supernode"]), int(parameters["degree"]))
    return program(supernode, polarity.lines(int(parameters["q"])))


def program(supernode: Supernode, around: NDArray[np.int32]) -> StarProgram:
    """Return the tables of a PolarStar with this supernode, from which its rows are computed.

    Args:
        supernode: of k members.
        around: int32[N, q + 1], the vertices orthogonal to each structure vertex, ascending.
    """
    edges, forward, backward = supernode.adjacency(), supernode.forward, supernode.backward
    members = np.arange(supernode.order)
    # A quadric's supernode also has loop links, from x' to f(x').
    with_loops = edges.copy()
    with_loops[supernode.loops(), forward[supernode.loops()]] = True
    # bool[2, k, k], the members with a link: in other supernodes, and in those of quadrics.
    joined = np.stack((edges, with_loops))
    # int16[2, k, k], the place of each link within the supernode among those of its switch.
    place = np.where(joined, np.cumsum(joined, axis=2) - 1, -1).astype(np.int16)
    to_common = np.stack(list(map(_to_common_neighbour, joined, place)))
    case = [_case(edges, forward, backward), _case(edges, backward, forward)]
    return StarProgram(
        around=around,
        links=joined.sum(axis=2).astype(np.int16),
        # From x' to y' of the same supernode: straight, or to a common neighbour.
        step=np.where(joined, place, to_common),
        # Which of the rules above holds towards a neighbour supernode.
        case=np.stack(case),
        # The link within x from x' to g⁻¹(y'): g is `forward`, then `backward`.
        within=np.stack((place[:, :, backward], place[:, :, forward]), axis=1),
        # The loop link of a quadric's member x', which leads to f(x').
        loop=place[1, members, forward],
        # g(x'): the member at the other end of the link to a neighbour supernode.
        along=np.stack((forward, backward)).astype(np.int16),
        joined=joined,
        # Classes have the numbers of their links.
        shift=np.zeros(2, np.uint16),
    )


def _case(
    edges: NDArray[np.bool_], along: NDArray[np.integer], back: NDArray[np.integer]
) -> NDArray[np.int8]:
    """Return the first hop from x' to y' of a neighbour supernode, int8[k, k]: TO_Y and so on.

    Args:
        edges: bool[k, k], the links within a supernode.
        along: int[k], the bijection g.
        back: int[k], its inverse.
    """
    is_next = along[:, None] == np.arange(len(along))
    return np.select(
        [is_next, edges[:, back], edges[along]],
        [np.int8(TO_Y), np.int8(WITHIN), np.int8(TO_Y)],
        np.int8(OVER_Z),
    )


def _to_common_neighbour(joined: NDArray[np.bool_], place: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the place of the link to a common neighbour of two members, int16[k, k], -1 for none.

    Of several common neighbours one is taken in turn, by the sum of the two members' numbers.

    Args:
        joined: bool[k, k], the members with a link.
        place: int16[k, k], the place of each link among those of its switch.
    """
    to_common = np.full(joined.shape, -1, np.int16)
    members = np.arange(len(joined))
    for member in members:
        common = joined[member] & joined
        count = common.sum(axis=1)
        turn = 1 + (member + members) % np.maximum(count, 1)
        chosen = (common & (np.cumsum(common, axis=1) == turn[:, None])).argmax(axis=1)
        to_common[member] = np.where(count, place[member, chosen], -1)
    return to_common
