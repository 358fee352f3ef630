"""Minimal delivery of every pair, proved of the program that a PolarStar's rows are computed from.

The rows of `compilers.tables.star_rows` are a function of program and cables, which says the same
of all supernodes of a kind: quadric or not. So none is computed; if

1. the link of every class leads where the program takes it to lead: to the members of the
   neighbour supernodes, ascending, that a bijection gives for arcs up or down, and within the
   supernode as in all others of its kind; and there are no other links,
2. any supernodes x, Y have exactly one z among the lines around both, over which x serves Y where
   they are remote,
3. of supernodes next to each other, by kind and direction: a direct link is taken where there is
   one, else the switch behind the class taken has a direct link to the destination,
4. within a supernode, by kind: so too, but where members have no common neighbour, out of it,

then all pairs have minimal paths. Direct links serve by 3 and 4, so near destinations are one or
two links away; out of a supernode a packet comes to one next to it, from which it is two more by 3.
No fewer: by 1 a switch behind a link out is joined to no other member of the supernode. Remote: by
1 every switch has one link to z, from which by 3 all members of Y are one link away, or two; a path
of two links has its middle in z, the one common neighbour. So one member of Y is two links away,
and the others are three.

What 3 says over z holds by 2 whatever z is: x itself if that is a quadric (its loop link), y if
that is one, else a supernode next to both, in any order of numbers.

That rows are decoded so is looked at in some, computed and judged by the cables alone
(`extensions.scale.row_sample`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import Numbers, PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.tables.star_rows import OVER_Z, TO_Y, WITHIN, StarEgress, StarPrefixes, StarProgram

UP, DOWN = range(2)
"""Arcs to a supernode of a larger number, and of a smaller: the numbers of `StarProgram.case`."""
NO_MEMBER = -1
Bits = NDArray[np.bool_]


def proved_program(build: Build) -> tuple[int, ...] | None:
    """The hop counts of a whole PolarStar of which the program proves that all pairs are minimal.

    None where rows are stored, or a condition does not hold, which proves nothing.

    Args:
        build: sound cables and prefixes (`compilers.proof.soundness.build_soundness.walkable`).
    """
    program = program_of(build)
    members = proved_members(build, program) if program else None
    return members.hop_counts() if members else None


@lru_cache(maxsize=1)
def proved_members(build: Build, program: StarProgram) -> SupernodeMembers | None:
    """The members of supernodes, of which a program has minimal paths for all pairs; else None.

    Args:
        build: as above; its rows are those of the program.
        program: see above.
    """
    if not build.topology.endpoints.all() or not _joined(program):
        return None
    members = SupernodeMembers.of(build, program)
    if members is None or not members.all_linked() or not members.near() or not members.own():
        return None
    return members


def program_of(build: Build) -> StarProgram | None:
    """The program that all rows of a build are computed from, None where there is none."""
    routes, h = build.tables.routes, build.topology.hierarchy
    if not isinstance(routes.egress, StarEgress) or not isinstance(routes.prefix, StarPrefixes):
        return None
    program: StarProgram = routes.egress.packed
    structure, k = len(program.around), program.members
    aggregate = structure * k + np.arange(structure).repeat(k)
    same = np.array_equal(routes.prefix.packed.around, program.around)
    same &= routes.prefix.packed.members == k == h and len(build.wiring.far) == structure * k
    return program if same and np.array_equal(routes.aggregate, aggregate) else None


def _joined(program: StarProgram) -> bool:
    """Condition 2."""
    around, structure = program.around, len(program.around)
    lines = np.zeros((structure, structure), np.bool_)
    lines[np.arange(structure)[:, None], around] = True
    if (lines != lines.T).any():
        return False
    for x in range(structure):
        common = np.bincount(around[around[x]].ravel(), minlength=structure)
        common[x] = 1
        if (common != 1).any():
            return False
        served = np.flatnonzero(~lines[x]) if lines[x, x] else np.arange(structure)
        served = served[served != x]
        if not lines[program.neighbours(x)[program.middle_places(x)[served]], served].all():
            return False
    return True


@dataclass(frozen=True, slots=True)
class SupernodeMembers:
    """The members of a supernode as all are cabled: k of them, with at most L links within."""

    program: StarProgram
    """The program of all switches."""
    along: dict[int, Numbers] = field(default_factory=dict)
    """int[k] by arc, the member behind the link to the other supernode."""
    inner: dict[int, Numbers] = field(default_factory=dict)
    """int[k, L] by kind (1 of a quadric), the member behind each link within, NO_MEMBER beyond the
    last."""

    @classmethod
    def of(cls, build: Build, program: StarProgram) -> SupernodeMembers | None:
        """Condition 1: as the first supernodes are cabled, if all others are, too."""
        members, use = cls(program), PortUse.of(build.wiring)
        classes = min(build.tables.classes.port.shape[1], no_route(build.tables.routes.egress))
        for x in range(len(program.around)):
            switches = slice(x * program.members, (x + 1) * program.members)
            link = use.part(switches).links(build.tables.classes.port[switches, :classes])
            far = build.wiring.far[switches]
            behind = np.where(link < 0, -1, np.take_along_axis(far, np.maximum(link, 0), axis=1))
            if not members._cabled(x, behind, np.count_nonzero(far >= 0, axis=1)):
                return None
        return members

    def _cabled(self, x: int, behind: Numbers, links: Numbers) -> bool:
        """Whether the classes of a supernode, [k, C], lead to the switches that they should."""
        program, k = self.program, self.program.members
        beside = program.neighbours(x)
        of = int(len(beside) < program.around.shape[1])  # a quadric is next to itself
        below, inside = int(np.searchsorted(beside, x)), program.links[of].astype(np.int64)
        if (inside < 0).any() or (links != len(beside) + inside).any():
            return False
        if len(beside) + int(inside.max()) > behind.shape[1]:
            return False
        over = program.links_to(x, np.arange(len(beside)), np.arange(k))
        out = np.take_along_axis(behind, over, axis=1) - beside * k
        for arc, some in ((DOWN, out[:, :below]), (UP, out[:, below:])):
            if some.size and (some != self.along.setdefault(arc, some[:, 0])[:, None]).any():
                return False
        place = np.arange(int(inside.max()))
        present = place < inside[:, None]
        within = behind[:, below : below + len(place)] - x * k
        strays = ((out < 0) | (out >= k)).any() or (present & ((within < 0) | (within >= k))).any()
        within = np.where(present, within, NO_MEMBER)
        return not strays and np.array_equal(within, self.inner.setdefault(of, within))

    def behind(self, of: int, place: Numbers) -> Numbers:
        """[k, n]: the member behind the link in a place within, [k, n]; NO_MEMBER if none is."""
        inner = np.pad(self.inner[of], ((0, 0), (0, 1)), constant_values=NO_MEMBER)
        last = inner.shape[1] - 1
        place = np.where((place < 0) | (place > last), last, place)
        return np.take_along_axis(inner, place.astype(np.intp), axis=1)

    def joined(self, of: int) -> Bits:
        """bool[k, k]: which members have a link within a supernode of a kind."""
        inner, k = self.inner[of], self.program.members
        matrix = np.zeros((k, k + 1), np.bool_)
        matrix[np.arange(k)[:, None], inner] = True  # NO_MEMBER is the last
        return matrix[:, :k]

    def all_linked(self) -> bool:
        """Whether no two of these links lead to the same member."""
        counts = ((self.joined(of).sum(axis=1), self.program.links[of]) for of in self.inner)
        return all(np.array_equal(*pair) for pair in counts)

    def as_programmed(self) -> bool:
        """Whether the program knows which links they have, and what bijections join them."""
        program = self.program
        along = (np.array_equal(program.along[arc], behind) for arc, behind in self.along.items())
        inner = (np.array_equal(program.joined[of], self.joined(of)) for of in self.inner)
        return all(along) and all(inner)

    def near(self) -> bool:
        """Condition 3."""
        kinds = [(x, y) for x in self.inner for y in self.inner if not (x and y)]
        return all(self._next_to(x, y, arc) for x, y in kinds for arc in self.along)

    def _next_to(self, x: int, y: int, arc: int) -> bool:
        """Condition 3 of supernodes of these kinds: quadric or not, and one of them at most."""
        program, along = self.program, self.along[arc]
        case, member = program.case[arc], np.arange(len(along))
        direct = along[:, None] == member
        to_y = self.joined(y)[along]
        within = self.behind(x, program.within[x, arc])
        over_z = to_y  # which is y itself, if that is a quadric
        if x:
            over_z = self._arrives(self.behind(x, program.loop[:, None]), along)
        elif not y:
            ends = np.stack([a[b] for a, b in product(self.along.values(), repeat=2)], axis=1)
            over_z = (ends[:, :, None] == member).all(axis=1)
        served = np.select(
            [direct, case == TO_Y, case == WITHIN, case == OVER_Z],
            [case == TO_Y, to_y, self._arrives(within, along), over_z],
            False,
        )
        return bool(served.all())

    def _arrives(self, within: Numbers, along: Numbers) -> Bits:
        """bool[k, k]: whether members, [k, n], are there and joined to each member of another."""
        arrives: Bits = (within >= 0) & (along[within] == np.arange(len(along)))
        return arrives

    def own(self) -> bool:
        """Condition 4."""
        return all(self._own(of) for of in self.inner)

    def _own(self, of: int) -> bool:
        joined, step = self.joined(of), self.program.step[of]
        member = np.arange(len(joined))
        behind = self.behind(of, step)
        served = np.select(
            [joined, joined @ joined],
            [behind == member, (behind >= 0) & joined[behind, member]],
            step < 0,
        )
        np.fill_diagonal(served, True)
        return bool(served.all())

    def hop_counts(self) -> tuple[int, ...]:
        """The pairs at this distance in links, where all conditions hold."""
        program, k = self.program, self.program.members
        structure, lines = program.around.shape
        counts = np.zeros(4, np.int64)
        quadrics = int(np.count_nonzero(program.quadric))
        for of, number in enumerate((structure - quadrics, quadrics)):
            if not number:
                continue
            joined = self.joined(of)
            common = joined @ joined & ~joined & ~np.eye(k, dtype=np.bool_)
            ones, twos = int(joined.sum()), int(common.sum())
            near, remote = lines - of, structure - 1 - (lines - of)
            counts += number * np.array(
                [
                    0,
                    ones + near * k,
                    twos + (near * (k - 1) + remote) * k,
                    k * (k - 1) - ones - twos + remote * k * (k - 1),
                ]
            )
        return tuple(np.trim_zeros(counts, "b").tolist())
