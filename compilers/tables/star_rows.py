"""The routes of a whole PolarStar, computed from its program a supernode at a time.

A PolarStar replaces each vertex of a structure graph ER_q by a *supernode* of k members. Switch
(x, x') is member x' of supernode x. All members of x have rows for the same prefixes: exact ones
for the members of x and of its neighbour supernodes, then an aggregate for each other supernode.

The links of a switch, and so its egress classes, are numbered in canonical order: links to
neighbour supernodes below x, links within x, links to neighbour supernodes above x. So the class
towards the j-th neighbour supernode is j if that is below x, else j plus the links within x.

The *place* of a supernode is its index among the neighbours of x, in ascending order.

`StarPrefixes` and `StarEgress` take the place of the arrays `Routes.prefix` and `Routes.egress`:
whoever reads rows has them computed. `compilers.routing.polarstar_minimal` has the rules, and makes
the program of a topology.

Letters: x and y are supernodes, x' and y' members of them, z the common neighbour of x and y. In
shapes, N is the number of supernodes, R of the rows of a switch, D of the neighbour supernodes of
one, and m and n count what a function gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.intermediate_form import Egress, empty_egress, local, no_route

TO_Y, WITHIN, OVER_Z = range(3)
"""The first hop from (x, x') to (y, y') of a neighbour supernode y: values of `StarProgram.case`.

TO_Y: over the link to y. WITHIN: over a link within x. OVER_Z: to z, the common neighbour of x and
y; if x is a quadric, over the loop link.
"""
ALONG, AGAINST = range(2)
"""Indexes of an axis *arc*: from one of two joined supernodes to the other along their bijection f,
or against it."""
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class StarProgram:
    """The minimal routes of N supernodes of k members on the structure graph ER_q.

    A *quadric* is a structure vertex that is orthogonal to itself; its supernode has *loop links*
    among its own members. Arrays with a first axis of 2 have values for supernodes of ordinary
    structure vertices first, then for those of quadrics. The links between two supernodes x < y
    join member x' to member f(x'), f being a bijection. An axis named *arc* has values for the way
    from x to y (ALONG f) first, then for the way back (AGAINST it). The *place* of a link within a
    supernode is its number among those links of its switch.
    """

    around: Annotated[NDArray[np.int32], "structure lines", "0..structure"]
    """int32[N, q + 1], the structure vertices orthogonal to each one, ascending.

    These are its neighbours, and itself where it is a quadric.
    """
    links: Annotated[NDArray[np.int16], "2 members", "0..members"]
    """int16[2, k], how many links each member has within its supernode."""
    step: Annotated[NDArray[np.int16], "2 members members", "-1..members"]
    """int16[2, k, k], the place of the link from x' towards y' of the same supernode.

    -1 where the path leaves the supernode.
    """
    case: Annotated[NDArray[np.int8], "2 members members", "0..3"]
    """int8[arc, k, k], the rule from x' to y' across an arc: TO_Y, WITHIN or OVER_Z."""
    within: Annotated[NDArray[np.int16], "2 2 members members", "-1..members"]
    """int16[2, arc, k, k], the place of the link from x' to g⁻¹(y'), the member that is joined to
    y'; g is the bijection of the arc: f, or its inverse."""
    loop: Annotated[NDArray[np.int16], "members", "-1..members"]
    """int16[k], the place of the loop link of each member, -1 for none."""
    along: Annotated[NDArray[np.int16], "2 members", "0..members"]
    """int16[arc, k], g(x'): the member that the link of x' across an arc leads to."""
    joined: Annotated[NDArray[np.bool_], "2 members members"]
    """bool[2, k, k], which members of a supernode have a link."""
    shift: Annotated[NDArray[np.uint16], "2", "0..C"]
    """uint16[2], what is added to the number of a link to get the number of its class.

    First for a class whose destinations are behind the neighbour, then for the class whose only
    destination is the neighbour itself. 0 where classes have the numbers of their links.
    """

    @property
    def members(self) -> int:
        """The number of switches of a supernode, k."""
        return len(self.loop)

    @property
    def width(self) -> int:
        """The most rows of a switch, R: those of a switch in no quadric."""
        supernodes, degree = map(int, self.around.shape)
        near = degree + 1
        return near * self.members + supernodes - near

    @property
    def quadric(self) -> NDArray[np.bool_]:
        """Which structure vertices are quadrics, bool[N]."""
        itself = np.arange(len(self.around))[:, None]
        quadric: NDArray[np.bool_] = (self.around == itself).any(axis=1)
        return quadric

    def near(self, x: int) -> NDArray[np.int32]:
        """Return the near supernodes of x, int32[D + 1], ascending: x itself and its neighbours."""
        around = self.around[x]
        return around if x in around else np.sort(np.append(around, np.int32(x)))

    def remote(self, x: int) -> NDArray[np.intp]:
        """Return the supernodes that are not near x, intp[N - D - 1], ascending."""
        remote = np.ones(len(self.around), np.bool_)
        remote[self.near(x)] = False
        return np.flatnonzero(remote)

    def neighbours(self, x: int) -> NDArray[np.int32]:
        """Return the neighbour supernodes of x, int32[D], ascending."""
        neighbours: NDArray[np.int32] = self.around[x][self.around[x] != x]
        return neighbours

    def middle_places(self, x: int) -> NDArray[np.int16]:
        """Return which neighbour of x is the middle z of the path x, z, y to each y, int16[N].

        z is numbered by its place in `neighbours(x)`. Values for y = x, and for y whose middle is
        the quadric x itself, have no meaning.
        """
        around = self.around[x]
        place = np.empty(len(self.around), np.int16)
        # z is the middle of the paths to all y that are orthogonal to z.
        place[self.around[around]] = np.arange(len(around))[:, None]
        if (around == x).any():  # `around` has x itself, and `neighbours(x)` has not
            place -= place > np.searchsorted(around, x)
        return place

    def links_to(self, x: int, place: Numbers, members: NDArray[np.int64]) -> Numbers:
        """Return the links of members of x to neighbour supernodes, [m, n].

        Args:
            x: the supernode.
            place: int[n], neighbour supernodes by their places in `neighbours(x)`.
            members: int64[m], members of x.
        """
        around = self.around[x]
        is_quadric = int((around == x).any())
        links_within = self.links[is_quadric][members].astype(place.dtype)[:, None]
        above_x = place >= np.count_nonzero(around < x)
        # Links within x have the numbers between those to neighbours below x and above x.
        links: Numbers = place + above_x * links_within
        return links


class StarPrefixes(ComputedArray):
    """`Routes.prefix` of a whole PolarStar, int32[N, R], computed from its program."""

    def __init__(self, packed: StarProgram) -> None:
        super().__init__(packed, (len(packed.around), packed.width), np.int32)

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the prefixes of supernodes, int32[n, R], ascending; beyond the last, N·k + N."""
        program: StarProgram = self.packed
        structure, k = len(self), program.members
        prefixes = np.full((len(number), program.width), structure * k + structure, np.int32)
        for row, x in zip(prefixes, number.tolist(), strict=True):
            exact = (program.near(x)[:, None] * k + np.arange(k)).ravel()
            remote = program.remote(x)
            row[: len(exact)] = exact
            row[len(exact) : len(exact) + len(remote)] = structure * k + remote
        return prefixes


class StarEgress(ComputedEgress):
    """`Routes.egress` of a whole PolarStar, uint8 or uint16[N·k, R], computed from its program."""

    def __init__(self, packed: StarProgram) -> None:
        degree, k = packed.around.shape[1], packed.members
        in_ordinary, in_quadric = (int(of_kind.max()) for of_kind in packed.links)
        links = max(degree + in_ordinary, degree - 1 + in_quadric)
        self.classes = links + int(packed.shift.max())
        shape = len(packed.around) * k, packed.width
        super().__init__(packed, shape, empty_egress(0, 0, self.classes).dtype)
        self.group_size = k
        # The supernode whose members were computed last, and their rows.
        self.latest: tuple[int, Egress] | None = None
        self.quadric = packed.quadric

    def rows(self, number: NDArray[np.int64]) -> Egress:
        """Return the egress values of switches, [n, R], for their numbers, int64[n]."""
        x, member = np.divmod(number, self.group_size)
        if len(number) == 1 and (self.latest is None or self.latest[0] != x[0]):
            # One switch alone is computed without the others of its supernode.
            return self._rows_of(int(x[0]), member)
        egress: Egress = np.empty((len(number), self.shape[1]), self.dtype)
        for supernode in sorted(set(x.tolist())):
            row = np.flatnonzero(x == supernode)
            egress[row] = self.supernode(supernode)[member[row]]
        return egress

    def supernode(self, x: int) -> Egress:
        """Return the egress values of all members of x, [k, R], and keep them for the next call."""
        if self.latest is None or self.latest[0] != x:
            self.latest = x, self._rows_of(x, np.arange(self.group_size))
        return self.latest[1]

    def _rows_of(self, x: int, members: NDArray[np.int64]) -> Egress:
        """Compute the egress values of members of x, [m, R], for their numbers, int64[m]."""
        program: StarProgram = self.packed
        neighbours, remote = program.neighbours(x), program.remote(x)
        below = int(np.count_nonzero(neighbours < x))
        exact = (len(neighbours) + 1) * self.group_size
        none = no_route(np.empty(0, self.dtype))
        egress: Egress = np.full((len(members), self.shape[1]), none, self.dtype)
        # [m, D + 1, k], a view of the exact rows: by supernode, and member there.
        near = egress[:, :exact].reshape(len(members), -1, self.group_size)
        near[:, below] = self._rows_within(x, members)
        # Neighbours below x are reached against the bijection, those above x along it.
        middle = program.middle_places(x).astype(self.dtype)
        near[:, below + 1 :] = self._rows_across(x, members, middle, slice(below, None), ALONG)
        near[:, :below] = self._rows_across(x, members, middle, slice(below), AGAINST)
        egress[:, exact : exact + len(remote)] = program.links_to(x, middle[remote], members)
        return egress

    def _rows_across(
        self, x: int, members: NDArray[np.int64], middle: Numbers, towards: slice, arc: int
    ) -> Egress:
        """Compute the egress values of members of x towards members of its neighbours, [m, n, k].

        Args:
            x: the supernode.
            members: int64[m], members of x.
            middle: int[N], `middle_places(x)`.
            towards: which n neighbour supernodes, by their places in `neighbours(x)`.
            arc: ALONG or AGAINST the bijection f.
        """
        program: StarProgram = self.packed
        neighbours = program.neighbours(x)
        # The number of the first link within x, which follows those to neighbours below x.
        below = int(np.count_nonzero(neighbours < x))
        is_quadric = int(self.quadric[x])
        to_y = program.links_to(x, np.arange(len(neighbours), dtype=self.dtype), members)
        if is_quadric:
            # x is orthogonal to itself and to y, so it is the middle of this path: z = x.
            loop = (below + program.loop[members]).astype(self.dtype)
            over_z = np.broadcast_to(loop[:, None], to_y.shape)
        else:
            over_z = program.links_to(x, middle[neighbours], members)
        within = (below + program.within[is_quadric, arc][members, None]).astype(self.dtype)
        case = program.case[arc][members, None]
        classes: Egress = np.where(case == WITHIN, within, to_y[:, towards, None])
        np.copyto(classes, over_z[:, towards, None], where=case == OVER_Z)
        behind, direct = program.shift.astype(self.dtype)
        classes += behind
        # The member at the other end of the link has the class of its own.
        direct_cells = np.arange(len(members)), slice(None), program.along[arc][members]
        classes[direct_cells] = classes[direct_cells] - behind + direct
        return classes

    def _rows_within(self, x: int, members: NDArray[np.int64]) -> Egress:
        """Compute the egress values of members of x towards all members of x, [m, k].

        Where x' and y' are more than two links apart within x, the path leads over a neighbour
        supernode: that with the number x' + y' modulo the number of neighbours.
        """
        program: StarProgram = self.packed
        neighbours = program.neighbours(x)
        below = int(np.count_nonzero(neighbours < x))
        is_quadric = int(self.quadric[x])
        detour = np.add.outer(members, np.arange(self.group_size)) % len(neighbours)
        outside = program.links_to(x, detour.astype(self.dtype), members)
        step = program.step[is_quadric][members]
        classes: Egress = np.where(step >= 0, (below + step).astype(self.dtype), outside)
        direct = program.shift.astype(self.dtype)[1]
        classes += program.joined[is_quadric][members] * direct
        classes[np.arange(len(members)), members] = local(classes)
        return classes

    def towards(self, destinations: NDArray[np.int64]) -> Egress:
        """Return the egress values of all switches, [N·k, D], for destinations, int64[D]."""
        egress: Egress = np.empty((len(destinations), len(self)), self.dtype)
        for column, destination in zip(egress, destinations.tolist(), strict=True):
            column[...] = self._column(destination).ravel()
        return egress.T

    def _column(self, destination: int) -> Egress:
        """Return the egress values for one destination, [N, k], by supernode and member.

        Switches of remote supernodes use the aggregate of y, the destination's supernode, so the
        values of all of them are computed at once. Those near y have an exact row.
        """
        program: StarProgram = self.packed
        around, k = program.around, self.group_size
        supernodes = np.arange(len(around))
        y, member = divmod(destination, k)
        # int32[N], the middle z of the path x, z, y from each supernode x: z is orthogonal to both.
        middle = np.empty(len(around), np.int32)
        middle[around[around[y]]] = around[y][:, None]
        # intp[N], the place of that middle in `neighbours(x)`, as `middle_places` has it for one x;
        # then the links to it, as in `links_to`.
        place = (around == middle[:, None]).argmax(axis=1)
        below = np.count_nonzero(around < supernodes[:, None], axis=1)
        place -= self.quadric & (place > below)
        links_within = program.links[self.quadric.astype(np.intp)]
        above_x = (place >= below)[:, None]
        egress: Egress = (place[:, None] + above_x * links_within).astype(self.dtype)
        for x in program.near(y).tolist():
            place_of_y = int(np.searchsorted(program.near(x), y))
            egress[x] = self.supernode(x)[:, place_of_y * k + member]
        return egress

    def row_counts(self) -> NDArray[np.int64]:
        """Count the rows of each switch, int64[N·k]: fewer where its supernode is a quadric."""
        # int64[N], how many supernodes are near each one: a quadric has a neighbour less.
        near: NDArray[np.int64] = self.packed.around.shape[1] + 1 - self.quadric.astype(np.int64)
        remote = len(near) - near
        # A row for each member of a near supernode, and one for each remote supernode.
        return (near * self.group_size + remote).repeat(self.group_size)
