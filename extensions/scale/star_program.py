"""Minimal delivery of every pair, proved of the program that a PolarStar's rows are computed from.

The rows of `compilers.tables.star_rows` are a function of the program and of the cables, and that
function is the same for all supernodes of a kind: ordinary, or of a quadric. So the proof computes
no row. It checks four conditions of the program and the cables.

*Words.* A *supernode* x has k switches, its *members* x'. A link within it is an *inner link*, and
its *place* is its number among the inner links of its switch. Supernodes are *next to each other*
if k links join them, member by member: one supernode's x' to the other's f(x'), where f is a
bijection. An *arc* is a direction of such links: ALONG f from the smaller supernode to the larger,
AGAINST it back. So the *bijection of an arc* is f for ALONG, and the inverse of f for AGAINST. The
*line* of x has the supernodes next to x, and x itself if it is a *quadric*. Members of a quadric
have an inner link that is their *loop link*. Supernode y is next to x, and z is on the lines of two
others. A supernode r that is neither x nor next to x is *remote*.

For the way to member y' of a supernode next to x, the program names one of three first hops:

- TO_Y: the link to y.
- WITHIN: the inner link to the member of x that is joined to y'.
- OVER_Z: the link to z, which is next to both x and y; if x is a quadric, the loop link.

*Conditions.*

1. Each link to a supernode next to x leads to the one that the program takes it to lead to: they
   are in ascending order. All arcs ALONG have one bijection, and all arcs AGAINST have one. Inner
   links lead to the same members in all supernodes of a kind. There are no other links.
2. Any two supernodes have exactly one z that is on the lines of both. The program's z for them, by
   which x sends packets for a remote r and packets with OVER_Z, is this one.
3. For supernodes next to each other, by kind and arc: if a switch has a link to the destination, it
   takes this link. Else the switch behind the link taken has a link to the destination.
4. Within a supernode, by kind: the same holds, but members that have no common neighbour in their
   supernode send packets out of it.

*Consequence.* All pairs have minimal paths:

- Switches with a link use it, by 3 and 4.
- Other destinations in a supernode next to x are two links away, by 3.
- Within x, destinations are two links away by 4, or packets leave x. They come to a supernode next
  to x, from which it is two more links by 3. No path is shorter: by 1 the switch behind an outer
  link is joined to no other member of x.
- From x to a remote r, every switch has one link to z, by 1. From there each member of r is one or
  two links away, by 3. A path of two links from x to r has its middle in z. So one member of r is
  two links away, and the others are three.

Condition 3 has OVER_Z, too. By 2 it holds whatever z is: x itself if x is a quadric (then packets
take the loop link), y itself if y is one, else a supernode next to both, in any order of numbers.

`extensions.scale.row_sample` checks by samples that the rows are decoded as is assumed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Numbers
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.tables.star_rows import (
    AGAINST,
    ALONG,
    OVER_Z,
    TO_Y,
    WITHIN,
    StarEgress,
    StarPrefixes,
    StarProgram,
)

NO_MEMBER = -1
"""Stands for the member behind a link that does not exist."""
Bits = NDArray[np.bool_]


def proved_program(build: Build) -> tuple[int, ...] | None:
    """The hop counts of a whole PolarStar whose program proves that all pairs are minimal.

    Args:
        build: with sound cables and prefixes (`compilers.proof.soundness.build_soundness`).

    Returns:
        How many pairs of switches have a path of 0, 1, … links. None if rows are stored, or if a
        condition does not hold, which proves nothing.
    """
    program = program_of(build)
    members = proved_members(build, program) if program else None
    return members.hop_counts() if members else None


@lru_cache(maxsize=1)
def proved_members(build: Build, program: StarProgram) -> SupernodeMembers | None:
    """The members of supernodes, if the program has minimal paths for all pairs; else None.

    Args:
        build: the build, whose rows are computed from the program.
        program: the result of `program_of`.
    """
    if not build.topology.endpoints.all() or not _one_common_neighbour(program):
        return None
    members = SupernodeMembers.of(build, program)
    if members is None or not members.inner_links_differ():
        return None
    return members if members.serve_neighbours() and members.serve_each_other() else None


def program_of(build: Build) -> StarProgram | None:
    """The program that all rows of a build are computed from; None if there is none."""
    routes = build.tables.routes
    if not isinstance(routes.egress, StarEgress) or not isinstance(routes.prefix, StarPrefixes):
        return None
    program: StarProgram = routes.egress.packed
    supernodes, k = len(program.around), program.members
    aggregate = supernodes * k + np.arange(supernodes).repeat(k)
    is_sound = (
        np.array_equal(routes.prefix.packed.around, program.around)
        and routes.prefix.packed.members == k == build.topology.hierarchy
        and len(build.wiring.far) == supernodes * k
        and np.array_equal(routes.aggregate, aggregate)
    )
    return program if is_sound else None


def _one_common_neighbour(program: StarProgram) -> bool:
    """Condition 2."""
    lines, supernodes = program.around, len(program.around)
    on_line = np.zeros((supernodes, supernodes), np.bool_)
    on_line[np.arange(supernodes)[:, None], lines] = True
    if (on_line != on_line.T).any():
        return False
    for x in range(supernodes):
        common = np.bincount(lines[lines[x]].ravel(), minlength=supernodes)
        common[x] = 1  # x itself is not asked about
        if (common != 1).any():
            return False
        # If x is a quadric, z is x itself for all on its line, and the program names no z for them.
        others = np.flatnonzero(~on_line[x]) if on_line[x, x] else np.arange(supernodes)
        others = others[others != x]
        z = program.neighbours(x)[program.middle_places(x)[others]]
        if not on_line[z, others].all():
            return False
    return True


class _Supernode(NamedTuple):
    """What the links of the members of one supernode lead to."""

    kind: int
    """1 for a quadric, else 0."""
    across: dict[int, Numbers]
    """int[k, n] by arc, the member of each of n other supernodes behind each member's link."""
    inner: Numbers
    """int[k, L], as `SupernodeMembers.inner` has it."""

    @classmethod
    def of(
        cls, program: StarProgram, x: int, behind: Numbers, link_counts: Numbers
    ) -> _Supernode | None:
        """Read supernode x; None if its links do not lead to the supernodes that they have to.

        Args:
            program: the program of all switches.
            x: the supernode.
            behind: int[k, C], the switch behind each class of its members, -1 for none.
            link_counts: int[k], how many links its members have.
        """
        k, neighbours = program.members, program.neighbours(x)
        outer_count = len(neighbours)
        kind = int(outer_count < program.around.shape[1])  # a quadric is on its own line
        inner_counts = program.links[kind].astype(np.int64)
        if (inner_counts < 0).any() or (link_counts != outer_count + inner_counts).any():
            return None
        most_inner = int(inner_counts.max())
        if outer_count + most_inner > behind.shape[1]:
            return None
        # A switch numbers its links to smaller supernodes first, then inner ones, then the others.
        smaller = int(np.searchsorted(neighbours, x))
        outer_links = program.links_to(x, np.arange(outer_count), np.arange(k))
        outer = np.take_along_axis(behind, outer_links, axis=1) - neighbours * k
        inner = behind[:, smaller : smaller + most_inner] - x * k
        has_link = np.arange(most_inner) < inner_counts[:, None]
        if ((outer < 0) | (outer >= k)).any() or (has_link & ((inner < 0) | (inner >= k))).any():
            return None
        across = {AGAINST: outer[:, :smaller], ALONG: outer[:, smaller:]}
        return cls(kind, across, np.where(has_link, inner, NO_MEMBER))


@dataclass(frozen=True, slots=True)
class SupernodeMembers:
    """How the k members of every supernode are cabled, each with at most L inner links."""

    program: StarProgram
    """The program of all switches."""
    bijection: dict[int, Numbers]
    """int[k] by arc (ALONG or AGAINST): the member of the other supernode behind each member's link
    to that supernode. An arc that no two supernodes have is left out."""
    inner: dict[int, Numbers]
    """int[k, L] by kind (1 for quadrics, else 0), the member behind each inner link; NO_MEMBER
    after the last one."""

    @classmethod
    def of(cls, build: Build, program: StarProgram) -> SupernodeMembers | None:
        """Read all supernodes; None unless those of a kind are cabled alike (condition 1)."""
        port_use = PortUse.of(build.wiring)
        bijection, inner = dict[int, Numbers](), dict[int, Numbers]()
        classes = min(build.tables.classes.port.shape[1], no_route(build.tables.routes.egress))
        for x in range(len(program.around)):
            switches = slice(x * program.members, (x + 1) * program.members)
            link = port_use.part(switches).links(build.tables.classes.port[switches, :classes])
            far = build.wiring.far[switches]
            behind = np.where(link < 0, -1, np.take_along_axis(far, np.maximum(link, 0), axis=1))
            supernode = _Supernode.of(program, x, behind, np.count_nonzero(far >= 0, axis=1))
            if supernode is None:
                return None
            # The first supernode with an arc, and the first of a kind, is the pattern for others.
            for arc, members in supernode.across.items():
                if members.size:
                    pattern = bijection.setdefault(arc, members[:, 0])
                    if (members != pattern[:, None]).any():
                        return None
            pattern = inner.setdefault(supernode.kind, supernode.inner)
            if not np.array_equal(supernode.inner, pattern):
                return None
        return cls(program, bijection, inner)

    def behind(self, kind: int, place: Numbers) -> Numbers:
        """The member behind the inner link of each member at a place, both int[k, n].

        NO_MEMBER where a member has no link at this place.
        """
        inner = np.pad(self.inner[kind], ((0, 0), (0, 1)), constant_values=NO_MEMBER)
        last = inner.shape[1] - 1
        place = np.where((place < 0) | (place > last), last, place)
        return np.take_along_axis(inner, place.astype(np.intp), axis=1)

    def joined(self, kind: int) -> Bits:
        """Which members of a supernode of a kind have a link to each other, bool[k, k]."""
        inner, k = self.inner[kind], self.program.members
        matrix = np.zeros((k, k + 1), np.bool_)
        matrix[np.arange(k)[:, None], inner] = True  # NO_MEMBER stands for the last column
        return matrix[:, :k]

    def inner_links_differ(self) -> bool:
        """Whether no two inner links of a member lead to the same member.

        Then each member is joined to as many others as it has inner links.
        """
        return all(
            np.array_equal(self.joined(kind).sum(axis=1), self.program.links[kind])
            for kind in self.inner
        )

    def as_programmed(self) -> bool:
        """Whether the program states the same inner links and bijections as the cables have."""
        program = self.program
        return all(
            np.array_equal(program.along[arc], member) for arc, member in self.bijection.items()
        ) and all(np.array_equal(program.joined[kind], self.joined(kind)) for kind in self.inner)

    def serve_neighbours(self) -> bool:
        """Condition 3; two quadrics are never next to each other."""
        kinds = [
            (kind_x, kind_y)
            for kind_x in self.inner
            for kind_y in self.inner
            if not (kind_x and kind_y)  # 1 is the kind of quadrics
        ]
        return all(
            self._serve_neighbour(kind_x, kind_y, arc)
            for kind_x, kind_y in kinds
            for arc in self.bijection
        )

    def _serve_neighbour(self, kind_x: int, kind_y: int, arc: int) -> bool:
        """Condition 3 from supernodes x of one kind to supernodes y of another, over one arc.

        Below, `to_y`, `over_z` and so on say of each member of x and each member of y, the
        destination, whether that first hop brings packets to it in two links, bool[k, k].
        """
        program, bijection = self.program, self.bijection[arc]
        case, member = program.case[arc], np.arange(len(bijection))
        # Whether the link to y leads to the destination itself.
        direct = bijection[:, None] == member
        to_y = self.joined(kind_y)[bijection]
        # The member of x behind the inner link of WITHIN, int[k, k].
        within_x = self.behind(kind_x, program.within[kind_x, arc])
        within = self._joined_across(within_x, bijection)
        if kind_x:  # z is x itself
            behind_loop = self.behind(kind_x, program.loop[:, None])
            over_z = self._joined_across(behind_loop, bijection)
        elif kind_y:
            over_z = to_y  # z is y itself
        else:
            # From x to z, and from z to y, either arc may be taken: the destination has to be
            # behind the second link for all four pairs of arcs.
            member_of_y = [
                from_z_to_y[from_x_to_z]
                for from_x_to_z, from_z_to_y in product(self.bijection.values(), repeat=2)
            ]
            over_z = (np.stack(member_of_y, axis=1)[:, :, None] == member).all(axis=1)
        served = np.select(
            [direct, case == TO_Y, case == WITHIN, case == OVER_Z],
            [case == TO_Y, to_y, within, over_z],
            False,
        )
        return bool(served.all())

    def _joined_across(self, members: Numbers, bijection: Numbers) -> Bits:
        """Whether members exist, and are joined over an arc to each member y', bool[k, k].

        Args:
            members: int[k, n], members of x, or NO_MEMBER; n is 1 or k.
            bijection: int[k], that of the arc.
        """
        joined: Bits = (members >= 0) & (bijection[members] == np.arange(len(bijection)))
        return joined

    def serve_each_other(self) -> bool:
        """Condition 4."""
        return all(self._serve_each_other(kind) for kind in self.inner)

    def _serve_each_other(self, kind: int) -> bool:
        """Condition 4 within supernodes of one kind."""
        joined, member = self.joined(kind), np.arange(self.program.members)
        # The place of the inner link to take from x' to y'; negative where packets leave x.
        place = self.program.step[kind]
        behind = self.behind(kind, place)
        served = np.select(
            [joined, joined @ joined],
            [behind == member, (behind >= 0) & joined[behind, member]],
            place < 0,
        )
        np.fill_diagonal(served, True)
        return bool(served.all())

    def hop_counts(self) -> tuple[int, ...]:
        """How many pairs of switches are 0, 1, 2 and 3 links apart, if all conditions hold."""
        program, k = self.program, self.program.members
        supernodes, lines = program.around.shape
        counts = np.zeros(4, np.int64)
        quadrics = int(np.count_nonzero(program.quadric))
        for kind, supernodes_of_kind in enumerate((supernodes - quadrics, quadrics)):
            if not supernodes_of_kind:
                continue
            joined = self.joined(kind)
            two_apart = joined @ joined & ~joined & ~np.eye(k, dtype=np.bool_)
            at_one, at_two = int(joined.sum()), int(two_apart.sum())  # within the supernode
            next_to_it = lines - kind  # supernodes
            remote = supernodes - 1 - next_to_it
            counts_of_supernode = [
                0,
                at_one + next_to_it * k,
                at_two + (next_to_it * (k - 1) + remote) * k,
                k * (k - 1) - at_one - at_two + remote * k * (k - 1),
            ]
            counts += supernodes_of_kind * np.array(counts_of_supernode)
        return tuple(np.trim_zeros(counts, "b").tolist())
