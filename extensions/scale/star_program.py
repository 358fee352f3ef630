"""Minimal delivery of every pair, proved of the program that a PolarStar's rows are computed from.

The rows of `compilers.tables.star_rows` are a function of the program and of the cables, and that
function is the same for all supernodes of a kind: ordinary, or of a quadric. So the proof computes
no row. It checks four conditions of the program and the cables (`supernode_cables`).

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

from functools import lru_cache
from itertools import product

import numpy as np

from compilers.proof.soundness.link_sets import Bits, Numbers
from compilers.tables.build import Build
from compilers.tables.star_rows import (
    OVER_Z,
    TO_Y,
    WITHIN,
    StarEgress,
    StarPrefixes,
    StarProgram,
)
from extensions.scale.supernode_cables import SupernodeCables
from extensions.scale.supernode_groups import ORDINARY, QUADRIC

DIAMETER = 3
"""The most links between two switches, by the consequence above."""


def proved_program(build: Build) -> tuple[int, ...] | None:
    """The hop counts of a whole PolarStar whose program proves that all pairs are minimal.

    Args:
        build: with sound cables and prefixes (`compilers.proof.soundness.build_soundness`).

    Returns:
        How many pairs of switches have a path of 0, 1, … links. None if rows are stored, or if a
        condition does not hold, which proves nothing.
    """
    program = program_of(build)
    cables = proved_cables(build, program) if program else None
    return hop_counts(cables) if cables else None


@lru_cache(maxsize=1)
def proved_cables(build: Build, program: StarProgram) -> SupernodeCables | None:
    """The cables of supernodes, if the program has minimal paths for all pairs; else None.

    Args:
        build: the build, whose rows are computed from the program.
        program: the result of `program_of`.
    """
    if not build.topology.endpoints.all() or not _one_common_neighbour(program):
        return None
    cables = SupernodeCables.of(build, program)
    if cables is None or not cables.inner_links_differ():
        return None
    are_served = _neighbours_are_served(cables) and _members_are_served(cables)
    return cables if are_served else None


def program_of(build: Build) -> StarProgram | None:
    """The program that all rows of a build are computed from.

    None if rows are stored, or if the program does not fit the prefixes or switches of the build.
    """
    routes = build.tables.routes
    if not isinstance(routes.egress, StarEgress) or not isinstance(routes.prefix, StarPrefixes):
        return None
    program: StarProgram = routes.egress.packed
    supernodes, k = len(program.around), program.members
    # The prefixes of aggregates follow those of switches, one for each supernode.
    aggregate = supernodes * k + np.arange(supernodes).repeat(k)
    fits_build = (
        np.array_equal(routes.prefix.packed.around, program.around)
        and routes.prefix.packed.members == k == build.topology.hierarchy
        and len(build.wiring.far) == supernodes * k
        and np.array_equal(routes.aggregate, aggregate)
    )
    return program if fits_build else None


def _one_common_neighbour(program: StarProgram) -> bool:
    """Whether condition 2 holds: any two supernodes have one z, which the program names."""
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


def _neighbours_are_served(cables: SupernodeCables) -> bool:
    """Whether condition 3 holds. Two quadrics are never next to each other."""
    return all(
        _neighbour_is_served(cables, kind_x, kind_y, arc)
        for kind_x in cables.inner_members
        for kind_y in cables.inner_members
        for arc in cables.bijection
        if not kind_x == kind_y == QUADRIC
    )


def _neighbour_is_served(cables: SupernodeCables, kind_x: int, kind_y: int, arc: int) -> bool:
    """Condition 3 from supernodes x of one kind to supernodes y of another, over one arc.

    All arrays are bool[k, k]: by member x', and by member y', which is the destination.
    """
    program, bijection = cables.program, cables.bijection[arc]
    first_hop, member = program.case[arc], np.arange(len(bijection))
    has_link = bijection[:, None] == member
    # Whether two links lead to the destination, by their first hop.
    by_to_y = cables.joined_members(kind_y)[bijection]
    by_within = _joined_across(cables.member_at(kind_x, program.within[kind_x, arc]), bijection)
    if kind_x == QUADRIC:  # z is x itself
        by_over_z = _joined_across(cables.member_at(kind_x, program.loop[:, None]), bijection)
    elif kind_y == QUADRIC:  # z is y itself
        by_over_z = by_to_y
    else:
        by_over_z = _always_joined_over_z(cables)
    served = np.select(
        [has_link, first_hop == TO_Y, first_hop == WITHIN, first_hop == OVER_Z],
        [first_hop == TO_Y, by_to_y, by_within, by_over_z],
        False,
    )
    return bool(served.all())


def _joined_across(members: Numbers, bijection: Numbers) -> Bits:
    """Whether members exist, and are joined over an arc to each member y', bool[k, k].

    Args:
        members: int[k, n], members of x, or NO_MEMBER; n is 1 or k.
        bijection: int[k], that of the arc.
    """
    joined: Bits = (members >= 0) & (bijection[members] == np.arange(len(bijection)))
    return joined


def _always_joined_over_z(cables: SupernodeCables) -> Bits:
    """Whether the path x', z, y leads to y' however x, y and z are numbered, bool[k, k].

    Their numbers say which arc leads from x to z, and which from z to y. So the destination has to
    be at the end for all pairs of arcs.
    """
    ends = [
        from_z_to_y[from_x_to_z]
        for from_x_to_z, from_z_to_y in product(cables.bijection.values(), repeat=2)
    ]
    member = np.arange(cables.program.members)
    always: Bits = (np.stack(ends, axis=1)[:, :, None] == member).all(axis=1)
    return always


def _members_are_served(cables: SupernodeCables) -> bool:
    """Whether condition 4 holds."""
    return all(_members_of_kind_are_served(cables, kind) for kind in cables.inner_members)


def _members_of_kind_are_served(cables: SupernodeCables, kind: int) -> bool:
    """Condition 4 within supernodes of one kind."""
    joined, member = cables.joined_members(kind), np.arange(cables.program.members)
    # The place of the inner link to take from x' to y'; negative where packets leave x.
    place = cables.program.step[kind]
    next_member = cables.member_at(kind, place)
    served = np.select(
        [joined, joined @ joined],
        [next_member == member, (next_member >= 0) & joined[next_member, member]],
        place < 0,
    )
    np.fill_diagonal(served, True)
    return bool(served.all())


def hop_counts(cables: SupernodeCables) -> tuple[int, ...]:
    """How many pairs of switches are 0, 1, 2 and 3 links apart, if all conditions hold."""
    program, k = cables.program, cables.program.members
    supernodes, line_length = program.around.shape
    quadrics = int(np.count_nonzero(program.quadric))
    supernodes_of_kind = {ORDINARY: supernodes - quadrics, QUADRIC: quadrics}
    # A switch is no pair with itself, so the number of pairs 0 links apart stays 0.
    counts = np.zeros(DIAMETER + 1, np.int64)
    for kind in cables.inner_members:
        joined = cables.joined_members(kind)
        two_apart = joined @ joined & ~joined & ~np.eye(k, dtype=np.bool_)
        within_at_one, within_at_two = int(joined.sum()), int(two_apart.sum())
        neighbours = line_length - 1 if kind == QUADRIC else line_length
        remote = supernodes - 1 - neighbours
        # Of each neighbour supernode, one member is one link away, and the others two. Of each
        # remote supernode, one member is two links away, and the others three.
        at_one = within_at_one + neighbours * k
        at_two = within_at_two + (neighbours * (k - 1) + remote) * k
        at_three = k * (k - 1) - within_at_one - within_at_two + remote * k * (k - 1)
        counts += supernodes_of_kind[kind] * np.array([0, at_one, at_two, at_three])
    return tuple(np.trim_zeros(counts, "b").tolist())
