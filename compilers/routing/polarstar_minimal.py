"""Minimal routes in PolarStar: a row a remote supernode, exact rows for the near ones.

At router (x, x') for (y, y'), with g the bijection along the arc from x (f or its inverse) and
z = x×y (docs/concepts/routing.md; PolarStar paper §9.2, which is not minimal within a supernode):

- y = x: y' itself where a link leads there (in the supernode, or a quadric's loop link), else a
  common neighbour of x' and y', else (w, g(x')) for any neighbour w of x.
- y next to x: y' = g(x') is next; else (x, g⁻¹(y')) where x' is joined to that; else (y, g(x'))
  where that is joined to y'; else, for involutions only, y' = x', two links away over z.
- otherwise: (z, g(x')) for every y' alike. That is the aggregate.

By Property R* or R1 of the supernode there are no other cases, so the rules serve every kind.

A router's links are numbered in canonical order: to supernodes below x, within x, to those above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.routing.pg2 import meets
from compilers.tables.intermediate_form import Routes, empty_egress, local, no_route
from compilers.topology import polarfly, supernodes
from compilers.topology.labelled_graph import Topology
from compilers.topology.supernodes import Supernode

POLARSTAR_ENTRIES_AT_ONCE = 1 << 20
TO_Y, WITHIN, OVER_Z = range(3)


def routes(topology: Topology) -> Routes:
    """Hierarchical minimal rows; time and memory grow with the size of the table."""
    parameters = topology.parameters
    supernode = supernodes.supernode(str(parameters["supernode"]), int(parameters["degree"]))
    lines = polarfly.lines(int(parameters["q"]))
    n, k = len(lines), supernode.order
    rows = (lines.shape[1] + 1) * k + n - lines.shape[1] - 1
    prefix = np.full((n, rows), n * k + n, np.int32)
    egress = empty_egress(n * k, rows, int(topology.graph.degrees.max()))
    egress[...] = no_route(egress)
    table = egress.reshape(n, k, rows)

    quadric = (lines == np.arange(n)[:, None]).any(axis=1)
    step = max(1, POLARSTAR_ENTRIES_AT_ONCE // (k * rows))
    for loops in (False, True):
        inside = SupernodeRules.of(supernode, loops)
        alike = np.flatnonzero(quadric == loops)
        for first in range(0, len(alike), step):
            part = Part.of(alike[first : first + step], lines, inside)
            numbers = part.prefixes()
            prefix[part.x, : numbers.shape[1]] = numbers
            table[part.x, :, : numbers.shape[1]] = part.classes(local(egress))
    return Routes(
        prefix=prefix,
        egress=egress,
        aggregate=np.repeat(np.arange(n * k, n * k + n, dtype=np.int32), k),
    )


@dataclass(frozen=True, slots=True)
class SupernodeRules:
    """The rules of a supernode of k members, with the loop links of a quadric or without.

    links: int64[k], the number of links within the supernode. All places below are among these
    links. step: int16[k, k], the place of the link to take towards a member, -1 for none. case:
    int8[2, k, k], the rule from x' to y' across an arc, along f or against it. within:
    int16[2, k, k], the place of the link to g⁻¹(y'). loop: int16[k], the place of the loop link;
    None without loop links.
    """

    links: NDArray[np.int64]
    step: NDArray[np.int16]
    case: NDArray[np.int8]
    within: NDArray[np.int16]
    loop: NDArray[np.int16] | None

    @classmethod
    def of(cls, supernode: Supernode, loops: bool) -> SupernodeRules:
        """The tables of a supernode."""
        edges, forward, backward = supernode.adjacency(), supernode.forward, supernode.backward
        members = np.arange(supernode.order)
        joined = edges.copy()
        if loops:
            joined[supernode.loops(), forward[supernode.loops()]] = True
        place = np.where(joined, np.cumsum(joined, axis=1) - 1, -1).astype(np.int16)
        arcs = ((forward, backward), (backward, forward))
        return cls(
            links=joined.sum(axis=1),
            step=np.where(joined, place, _to_common_neighbour(joined, place)),
            case=np.stack(
                [
                    np.select(
                        [along[:, None] == members, edges[:, back], edges[along]],
                        [np.int8(TO_Y), np.int8(WITHIN), np.int8(TO_Y)],
                        np.int8(OVER_Z),
                    )
                    for along, back in arcs
                ]
            ),
            within=np.stack([place[:, back] for _, back in arcs]),
            loop=place[members, forward] if loops else None,
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


@dataclass(frozen=True, slots=True)
class Part:
    """B structure vertices with D neighbours each; their supernodes have k members.

    x: int64[B]. around: int64[B, D], the neighbours. below: int64[B, 1], how many of these have a
    smaller number. towards: int64[B, N], the place of x×y among them, where y and x×y are not x.
    """

    x: NDArray[np.int64]
    around: NDArray[np.int64]
    below: NDArray[np.int64]
    towards: NDArray[np.int64]
    inside: SupernodeRules

    @classmethod
    def of(cls, x: NDArray[np.int64], lines: NDArray[np.int32], inside: SupernodeRules) -> Part:
        """The part of vertices `x`: all quadrics if `inside` has loop links, else none of them."""
        around, towards = lines[x].astype(np.int64), meets(lines, x).astype(np.int64)
        below = np.count_nonzero(around < x[:, None], axis=1)[:, None]
        if inside.loop is not None:
            around = around[around != x[:, None]].reshape(len(x), -1)
            towards -= towards > below
        return cls(x, around, below, towards, inside)

    def prefixes(self) -> NDArray[np.int64]:
        """int64[B, R]: the vertices of near supernodes, then the aggregates of the others."""
        n, k = self.towards.shape[1], len(self.inside.links)
        near = np.sort(np.column_stack((self.around, self.x)), axis=1)
        exact = near[:, :, None] * k + np.arange(k)
        return np.concatenate((exact.reshape(len(near), -1), n * k + self._remote()), axis=1)

    def classes(self, here: int) -> NDArray[np.int64]:
        """int64[B, k, R]: the egress classes of these rows; `here` is the value that delivers."""
        b, d, k = *self.around.shape, len(self.inside.links)
        near = np.empty((b, d + 1, k, k), np.int64)
        each, place = np.arange(b)[:, None], np.arange(d)
        near[each, place + (place >= self.below)] = self._adjacent()
        near[each, self.below] = self._own(here)[:, None]
        towards = np.take_along_axis(self.towards, self._remote(), axis=1)
        far = self._outward(towards).transpose(0, 2, 1)
        return np.concatenate((near.transpose(0, 2, 1, 3).reshape(b, k, -1), far), axis=2)

    def _remote(self) -> NDArray[np.int64]:
        """int64[B, N - D - 1]: the structure vertices other than x and its neighbours."""
        remote = np.ones(self.towards.shape, np.bool_)
        remote[np.arange(len(self.x))[:, None], self.around] = False
        remote[np.arange(len(self.x)), self.x] = False
        return np.nonzero(remote)[1].reshape(len(self.x), -1)

    def _outward(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[B, …, k]: the class of each member to the neighbour supernode in each place."""
        below = self.below.reshape(-1, *(1,) * (place.ndim - 1))
        return place[..., None] + (place >= below)[..., None] * self.inside.links

    def _own(self, here: int) -> NDArray[np.int64]:
        """int64[B, k, k]: from each member (axis 1) to each of the same supernode."""
        inside, k = self.inside, len(self.inside.links)
        turn = np.add.outer(np.arange(k), np.arange(k)) % self.around.shape[1]
        below = self.below[:, :, None]
        out = turn + (turn >= below) * inside.links[:, None]
        classes = np.where(inside.step >= 0, below + inside.step, out)
        classes[:, np.arange(k), np.arange(k)] = here
        return classes

    def _adjacent(self) -> NDArray[np.int64]:
        """int64[B, D, k, k]: from each member (axis 2) to each of the D neighbours."""
        inside, below = self.inside, self.below[:, :, None, None]
        arc = (self.around < self.x[:, None]).astype(np.int64)
        to_y = self._outward(np.broadcast_to(np.arange(arc.shape[1]), arc.shape))[..., None]
        if inside.loop is not None:
            over_z = below + inside.loop[:, None]
        else:
            over_z = self._outward(np.take_along_axis(self.towards, self.around, axis=1))[..., None]
        case = inside.case[arc]
        classes = np.where(case == WITHIN, below + inside.within[arc], to_y)
        return np.where(case == OVER_Z, over_z, classes)
