"""How the switches of a PolarStar's supernodes are cabled, and whether all supernodes are alike.

`SupernodeCables.of` reads the cables of a build, one supernode at a time. The first supernode of a
kind is the pattern for the others. So what is true of one supernode of a kind is true of all, and
`star_program` proves it once.

A *supernode* has k switches, its *members*. An *inner* link joins two members of a supernode, and
its *place* is its number among the inner links of its switch. Two neighbour supernodes are joined
member by member. An *arc* is a direction of these links: ALONG from the supernode with the smaller
number, or AGAINST from the larger. Its *bijection* gives for each member here the member there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compilers.proof.soundness.link_sets import Bits, Numbers
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.tables.star_rows import AGAINST, ALONG, StarProgram
from extensions.scale.supernode_groups import ORDINARY, QUADRIC

NO_MEMBER = -1
"""In place of a member: there is no such link."""
NO_SWITCH = -1
"""In place of the switch behind a class: the class has no link."""


class _SupernodeLinks(NamedTuple):
    """Where the links of the members of one supernode lead."""

    kind: int
    """ORDINARY or QUADRIC."""
    outer_members: dict[int, Numbers]
    """int[k, n] by arc: the member behind each member's link to each of n neighbour supernodes."""
    inner_members: Numbers
    """int[k, L]: the member behind each inner link; NO_MEMBER after the last one."""

    @classmethod
    def of(
        cls, program: StarProgram, x: int, switch_behind: Numbers, link_counts: Numbers
    ) -> _SupernodeLinks | None:
        """Read supernode x; None if its links do not lead to the supernodes that they have to.

        Args:
            program: the program of all switches.
            x: the supernode.
            switch_behind: int[k, C], the switch behind each class of its members, or NO_SWITCH.
            link_counts: int[k], how many links its members have.
        """
        k, neighbours = program.members, program.neighbours(x)
        outer_count = len(neighbours)
        # An ordinary supernode has q + 1 neighbours. A quadric has q, as it is orthogonal to
        # itself.
        most_neighbours = program.around.shape[1]
        kind = QUADRIC if outer_count < most_neighbours else ORDINARY
        inner_counts = program.links[kind].astype(np.int64)  # int64[k], inner links of each member
        # A program that was read from a file may state impossible counts.
        if (inner_counts < 0).any() or (link_counts != outer_count + inner_counts).any():
            return None
        most_inner = int(inner_counts.max())
        if outer_count + most_inner > switch_behind.shape[1]:
            return None
        # A switch numbers its links to smaller supernodes first, then inner ones, then the others.
        smaller = int(np.searchsorted(neighbours, x))
        # int[k, n], the number of each member's link to each neighbour supernode.
        outer_links = program.links_to(x, np.arange(outer_count), np.arange(k))
        # Switch (y, y') has number y·k + y', so that a difference is the member.
        outer = np.take_along_axis(switch_behind, outer_links, axis=1) - neighbours * k
        inner = switch_behind[:, smaller : smaller + most_inner] - x * k
        has_link = np.arange(most_inner) < inner_counts[:, None]
        if not _are_members(outer, k).all() or (has_link & ~_are_members(inner, k)).any():
            return None
        outer_by_arc = {AGAINST: outer[:, :smaller], ALONG: outer[:, smaller:]}
        return cls(kind, outer_by_arc, np.where(has_link, inner, NO_MEMBER))


def _are_members(number: Numbers, k: int) -> Bits:
    """Whether numbers are those of members of a supernode of k."""
    are_members: Bits = (number >= 0) & (number < k)
    return are_members


@dataclass(frozen=True, slots=True)
class SupernodeCables:
    """How the k members of every supernode are cabled, each with at most L inner links."""

    program: StarProgram
    """The program of all switches."""
    bijection: dict[int, Numbers]
    """int[k] by arc (ALONG or AGAINST): the member of the neighbour supernode behind each member's
    link to that supernode. An arc has no entry if no links have this direction."""
    inner_members: dict[int, Numbers]
    """int[k, L] by kind (ORDINARY or QUADRIC): the member behind each inner link; NO_MEMBER after
    the last one. A kind has no entry if there is no such supernode."""

    @classmethod
    def of(cls, build: Build, program: StarProgram) -> SupernodeCables | None:
        """Read all supernodes; None unless those of a kind are cabled alike."""
        bijection, inner = dict[int, Numbers](), dict[int, Numbers]()
        for x in range(len(program.around)):
            switches = slice(x * program.members, (x + 1) * program.members)
            link_counts = np.count_nonzero(build.wiring.far[switches] >= 0, axis=1)
            behind = _switches_behind(build, switches)
            supernode = _SupernodeLinks.of(program, x, behind, link_counts)
            if supernode is None:
                return None
            # The first supernode with an arc, and the first of a kind, is the pattern for others.
            for arc, members in supernode.outer_members.items():
                if members.size:
                    pattern = bijection.setdefault(arc, members[:, 0])
                    if (members != pattern[:, None]).any():
                        return None
            pattern = inner.setdefault(supernode.kind, supernode.inner_members)
            if not np.array_equal(supernode.inner_members, pattern):
                return None
        return cls(program, bijection, inner)

    def member_at(self, kind: int, place: Numbers) -> Numbers:
        """The member behind the inner link at a place, for each member of a kind, int[k, n].

        Args:
            kind: ORDINARY or QUADRIC.
            place: int[k, n], n places of each member. Negative ones, and those after a member's
                last link, give NO_MEMBER.
        """
        inner = np.pad(self.inner_members[kind], ((0, 0), (0, 1)), constant_values=NO_MEMBER)
        last = inner.shape[1] - 1
        place = np.where((place < 0) | (place > last), last, place)
        return np.take_along_axis(inner, place.astype(np.intp), axis=1)

    def joined_members(self, kind: int) -> Bits:
        """Which members of a supernode of a kind have a link to each other, bool[k, k]."""
        inner, k = self.inner_members[kind], self.program.members
        # NO_MEMBER is -1, so it marks the last column, which belongs to no member.
        matrix = np.zeros((k, k + 1), np.bool_)
        matrix[np.arange(k)[:, None], inner] = True
        return matrix[:, :k]

    def inner_links_differ(self) -> bool:
        """Whether the inner links of each member lead to different members.

        Then each member is joined to as many others as it has inner links.
        """
        return all(
            np.array_equal(self.joined_members(kind).sum(axis=1), self.program.links[kind])
            for kind in self.inner_members
        )

    def are_as_programmed(self) -> bool:
        """Whether the program states the same inner links and bijections as the cables have."""
        program = self.program
        same_bijections = all(
            np.array_equal(program.along[arc], member) for arc, member in self.bijection.items()
        )
        same_inner_links = all(
            np.array_equal(program.joined[kind], self.joined_members(kind))
            for kind in self.inner_members
        )
        return same_bijections and same_inner_links


def _switches_behind(build: Build, switches: slice) -> Numbers:
    """The switch behind each class of n switches, by its port and cable, int[n, C].

    NO_SWITCH where a class has no link. Classes whose number is no egress value are left out.
    """
    class_count = min(build.tables.classes.port.shape[1], no_route(build.tables.routes.egress))
    ports = build.tables.classes.port[switches, :class_count]
    link = PortUse.of(build.wiring).part(switches).links(ports)
    far = np.take_along_axis(build.wiring.far[switches], np.maximum(link, 0), axis=1)
    return np.where(link < 0, NO_SWITCH, far)
