"""The routes of a whole PolarStar, computed a supernode at a time from its program.

All members of a supernode have the same prefixes: those of the switches in near supernodes, then
the aggregates of the others. The links of a switch are numbered in canonical order: to supernodes
below its own x, within x, to those above. So the class towards the neighbour supernode in some
place among x's neighbours is that place, and past x the links within x more.
`compilers.routing.polarstar_minimal` has the rules that the program holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.intermediate_form import Egress, empty_egress, local, no_route

TO_Y, WITHIN, OVER_Z = range(3)
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class StarProgram:
    """The minimal routes of N supernodes of k members on the structure graph ER_q.

    around: int32[N, q + 1], the structure vertices orthogonal to each, ascending, a quadric itself
    among them. links: int16[2, k], the links within the supernode of each member, first in one
    without loop links, then in that of a quadric; places are among them. step: int16[2, k, k], the
    place of the link to take towards a member, -1 for none. case: int8[2, k, k], the rule from x'
    to y' across an arc, along f or against it. within: int16[2, 2, k, k], by loops and arc, the
    place of the link to g⁻¹(y'). loop: int16[k], the place of a loop link. along: int16[2, k],
    g(x') by arc. joined: bool[2, k, k], members with a link. shift: uint16[2], what is added to the
    class of a link where it serves other supernodes next to x, and where it serves its neighbour.
    """

    around: Annotated[NDArray[np.int32], "structure lines", "0..structure"]
    links: Annotated[NDArray[np.int16], "2 members", "0..members"]
    step: Annotated[NDArray[np.int16], "2 members members", "-1..members"]
    case: Annotated[NDArray[np.int8], "2 members members", "0..3"]
    within: Annotated[NDArray[np.int16], "2 2 members members", "-1..members"]
    loop: Annotated[NDArray[np.int16], "members", "-1..members"]
    along: Annotated[NDArray[np.int16], "2 members", "0..members"]
    joined: Annotated[NDArray[np.bool_], "2 members members"]
    shift: Annotated[NDArray[np.uint16], "2", "0..C"]

    @property
    def members(self) -> int:
        """K, the switches of a supernode."""
        return len(self.loop)

    @property
    def width(self) -> int:
        """R, the most rows of a switch."""
        structure, lines = map(int, self.around.shape)
        return (lines + 1) * self.members + structure - lines - 1

    @property
    def quadric(self) -> NDArray[np.bool_]:
        """bool[N]."""
        quadric: NDArray[np.bool_] = (self.around == np.arange(len(self.around))[:, None]).any(
            axis=1
        )
        return quadric

    def near(self, x: int) -> NDArray[np.int32]:
        """int32[D + 1]: the supernode and those next to it, ascending."""
        around = self.around[x]
        return around if x in around else np.sort(np.append(around, np.int32(x)))

    def remote(self, x: int) -> NDArray[np.intp]:
        """intp[N - D - 1]: all other supernodes, ascending."""
        remote = np.ones(len(self.around), np.bool_)
        remote[self.near(x)] = False
        return np.flatnonzero(remote)

    def beside(self, x: int) -> NDArray[np.int32]:
        """int32[D]: the supernodes next to it, ascending."""
        others: NDArray[np.int32] = self.around[x][self.around[x] != x]
        return others

    def towards(self, x: int) -> NDArray[np.int16]:
        """int16[N]: the place of x×y among the supernodes next to x, where that is not x itself."""
        around = self.around[x]
        place = np.empty(len(self.around), np.int16)
        place[self.around[around]] = np.arange(len(around))[:, None]
        if (around == x).any():
            place -= place > np.searchsorted(around, x)
        return place

    def outward(self, x: int, place: Numbers, members: NDArray[np.int64]) -> Numbers:
        """[m, n]: the class of each of some members to the neighbour supernode in each place."""
        around = self.around[x]
        links = self.links[int((around == x).any())][members].astype(place.dtype)[:, None]
        classes: Numbers = place + (place >= np.count_nonzero(around < x)) * links
        return classes


class StarPrefixes(ComputedArray):
    """`Routes.prefix`, int32[N, R]."""

    def __init__(self, packed: StarProgram) -> None:
        super().__init__(packed, (len(packed.around), packed.width), np.int32)

    def rows(self, number: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[n, R]: the prefixes of supernodes, ascending."""
        program: StarProgram = self.packed
        structure, k = len(self), program.members
        found = np.full((len(number), program.width), structure * k + structure, np.int32)
        for row, x in zip(found, number.tolist(), strict=True):
            exact = (program.near(x)[:, None] * k + np.arange(k)).ravel()
            remote = program.remote(x)
            row[: len(exact)] = exact
            row[len(exact) : len(exact) + len(remote)] = structure * k + remote
        return found


class StarEgress(ComputedEgress):
    """`Routes.egress`, uint8 or uint16[N·k, R]."""

    def __init__(self, packed: StarProgram) -> None:
        lines, k = packed.around.shape[1], packed.members
        classes = max(lines + int(packed.links[0].max()), lines - 1 + int(packed.links[1].max()))
        self.classes = classes + int(packed.shift.max())
        shape = len(packed.around) * k, packed.width
        super().__init__(packed, shape, empty_egress(0, 0, self.classes).dtype)
        self.alike = k
        self.latest: tuple[int, Egress] | None = None
        self.quadric = packed.quadric

    def rows(self, number: NDArray[np.int64]) -> Egress:
        """[n, R]: the egress values of switches."""
        x, member = np.divmod(number, self.alike)
        if len(number) == 1 and (self.latest is None or self.latest[0] != x[0]):
            return self._computed(int(x[0]), member)
        found: Egress = np.empty((len(number), self.shape[1]), self.dtype)
        for one in sorted(set(x.tolist())):
            here = np.flatnonzero(x == one)
            found[here] = self.supernode(one)[member[here]]
        return found

    def supernode(self, x: int) -> Egress:
        """[k, R]: the egress values of the members of a supernode; the latest is kept."""
        if self.latest is None or self.latest[0] != x:
            self.latest = x, self._computed(x, np.arange(self.alike))
        return self.latest[1]

    def _computed(self, x: int, members: NDArray[np.int64]) -> Egress:
        """[n, R]: the egress values of some members of a supernode, [n]."""
        program: StarProgram = self.packed
        k, of, kind = self.alike, int(self.quadric[x]), self.dtype.type
        around, places = program.beside(x), program.towards(x).astype(kind)
        below = int(np.count_nonzero(around < x))
        exact = (len(around) + 1) * k
        found: Egress = np.full((len(members), self.shape[1]), no_route(np.empty(0, kind)), kind)
        near = found[:, :exact].reshape(len(members), -1, k)
        to_y = program.outward(x, np.arange(len(around), dtype=kind), members)
        over_z = program.outward(x, places[around], members)
        shift, direct = program.shift.astype(kind)
        if of:
            loop = (below + program.loop[members]).astype(kind)
            over_z = np.broadcast_to(loop[:, None], to_y.shape)
        for arc, (rows, there) in enumerate(
            ((slice(below, None), slice(below + 1, None)), (slice(below), slice(below)))
        ):
            case = program.case[arc][members, None]
            within = (below + program.within[of, arc][members, None]).astype(kind)
            block = np.where(case == WITHIN, within, to_y[:, rows, None])
            np.copyto(block, over_z[:, rows, None], where=case == OVER_Z)
            block += shift
            itself = np.arange(len(members)), slice(None), program.along[arc][members]
            block[itself] = block[itself] - shift + direct
            near[:, there] = block
        turn = np.add.outer(members, np.arange(k)) % len(around)
        out = program.outward(x, turn.astype(kind), members)
        step = program.step[of][members]
        own = np.where(step >= 0, (below + step).astype(kind), out)
        own += program.joined[of][members] * direct
        own[np.arange(len(members)), members] = local(found)
        near[:, below] = own
        remote = program.remote(x)
        found[:, exact : exact + len(remote)] = program.outward(x, places[remote], members)
        return found

    def towards(self, destinations: NDArray[np.int64]) -> Egress:
        """[N·k, D]: the egress values of all switches for each destination."""
        found: Egress = np.empty((len(destinations), len(self)), self.dtype)
        for column, destination in zip(found, destinations.tolist(), strict=True):
            column[...] = self._towards(destination).ravel()
        return found.T

    def _towards(self, destination: int) -> Egress:
        """[N, k]: the egress values for one destination, of the members of each supernode."""
        program: StarProgram = self.packed
        around, k = program.around, self.alike
        y, member = divmod(destination, k)
        over = np.empty(len(around), np.int32)
        over[around[around[y]]] = around[y][:, None]
        place = (around == over[:, None]).argmax(axis=1)
        below = np.count_nonzero(around < np.arange(len(around))[:, None], axis=1)
        place -= self.quadric & (place > below)
        links = program.links[self.quadric.astype(np.intp)]
        found: Egress = (place[:, None] + (place >= below)[:, None] * links).astype(self.dtype)
        for x in program.near(y).tolist():
            place_of_y = int(np.searchsorted(program.near(x), y))
            found[x] = self.supernode(x)[:, place_of_y * k + member]
        return found

    def routed(self) -> NDArray[np.int64]:
        """int64[N·k]: how many rows each switch has, fewer where its supernode is a quadric."""
        near: NDArray[np.int64] = self.packed.around.shape[1] + 1 - self.quadric.astype(np.int64)
        return (near * self.alike + len(near) - near).repeat(self.alike)
