"""The alternates of a whole PolarStar: links that packets of a class may take at any time.

Switch u = (x, x') is member x' of supernode x. Its *outer* links lead to one member of each
supernode z next to x, its *inner* links to members (x, m). A class is a link together with the
destinations that it serves (`class_parts`): beyond, direct or beside. A link is an alternate of a
class if no path over it comes back to u:

| class | alternates |
|---|---|
| outer, beyond | all links |
| outer, beside | inner links; the link to the apex, if the apex does not send packets back to x |
| inner, beyond | outer links; inner links whose paths do not come back |
| inner, beside | inner links |
| direct | none |

The *apex* of x and z is their common neighbour. The link of a class itself is no alternate of it.

Arrays of `StarProgram` have an axis *arc*, ALONG for links to supernodes with larger numbers, and
AGAINST for links to smaller ones, and an axis *kind*, ORDINARY or QUADRIC. In shapes, g is the
number of supernodes of a group, k of members, D of outer links, K of all links.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets, byte_and_bit
from compilers.tables.star_rows import OVER_Z, StarProgram
from extensions.scale.class_parts import BESIDE, BEYOND
from extensions.scale.member_paths import LEAVES, MemberPaths
from extensions.scale.supernode_groups import ORDINARY, SupernodeGroup


def alternate_sets(program: StarProgram, most_links: int) -> Sets:
    """The links of alternates as sets of bits, uint8[S, 3K, ⌈K/8⌉]."""
    switches = len(program.around) * program.members
    alternates = np.zeros((switches, 3, most_links, (most_links + 7) // 8), np.uint8)
    paths = MemberPaths.of(program)
    for group in SupernodeGroup.groups_of(program):
        # All supernodes of a group have the same alternates, except for links to apexes.
        of_members = np.packbits(_alternates_but_apexes(paths, group), axis=3)
        sets = np.repeat(of_members[None], len(group.supernodes), axis=0)
        _add_apexes(sets, paths, group)
        by_switch = sets.reshape(-1, *of_members.shape[1:])
        alternates[group.switches, :, : group.link_count, : of_members.shape[3]] = by_switch
    return alternates.reshape(switches, 3 * most_links, -1)


def _add_apexes(sets: Sets, paths: MemberPaths, group: SupernodeGroup) -> None:
    """Add the links to apexes, as alternates of outer classes beside.

    Args:
        sets: uint8[g, k, 3, K, ⌈K/8⌉], the alternates of a group without these links; written.
        paths: the paths between members of a supernode.
        group: the group.
    """
    # The n links from supernodes of the group that have an apex, and the link to the apex of each.
    supernode, outer = np.nonzero(group.apex_link >= 0)
    outer_link, apex_link = group.outer_links[outer], group.apex_link[supernode, outer]
    stays_off = _apex_stays_off(paths, group)[supernode, :, outer]  # bool[n, k]
    byte, bit = byte_and_bit(apex_link)  # where each apex link is in a set
    member = np.arange(paths.program.members)
    # An outer link has one apex, so no element is indexed twice.
    cells = supernode[:, None], member, BESIDE, outer_link[:, None], byte[:, None]
    sets[cells] |= bit[:, None] * stays_off


def _alternates_but_apexes(paths: MemberPaths, group: SupernodeGroup) -> Bits:
    """The links whose paths never come back, bool[k, 3, K, K], without those to apexes.

    By member, part of the classes, the class's link and the alternate.
    """
    outer, inner = group.outer_links[:, None], group.inner_links[:, None]
    neighbours = group.inner_members
    comes_back = paths.comes_back[
        group.kind, group.members, neighbours[:, :, None], neighbours[:, None, :]
    ]
    alternates = group.empty_sets()
    alternates[:, BEYOND, outer] = True
    alternates[:, BEYOND, inner, outer.T] = True
    alternates[:, BEYOND, inner, inner.T] = ~comes_back
    alternates[:, BESIDE, outer, inner.T] = True
    alternates[:, BESIDE, inner, inner.T] = True
    return group.without_own_link(alternates)


def _apex_stays_off(paths: MemberPaths, group: SupernodeGroup) -> Bits:
    """Whether the apex y of x and z does not send packets from x' back to x.

    These packets are for the destinations in y that x' serves over z, if there are any. The path to
    them may leave y, and then go over x.

    Returns:
        bool[g, k, D], by supernode x, its member x', and the outer link to z; of no meaning for
        links without an apex.
    """
    program, member = paths.program, group.members[:, 0]  # int[k, 1]
    # int[g, D], the outer link of x that leads to y, by the link to z.
    to_y = np.argmax(group.outer_links == group.apex_link[..., None], axis=2)
    # The arc from x to y, int[g, 1, D], and the member a of y that x' is joined to, int[g, k, D].
    arc = group.direction[to_y][:, None]
    apex_member = program.along[arc, member]
    # The supernodes on the line of y, int[g, D, q + 1], and the place of x among these,
    # int[g, 1, D].
    apex = np.take_along_axis(_neighbours(program, group), to_y, axis=1)
    apex_line = program.around[apex]
    is_smaller = apex_line < group.supernodes[:, None, None]
    place_of_x = np.count_nonzero(is_smaller, axis=2)[:, None]
    # A packet in (y, a) for (y, b) that leaves y takes y's neighbour number a + b, counted round
    # (`StarEgress`). Here b is x', as only (y, x') may be served over z.
    place_of_exit = (apex_member + member) % apex_line.shape[2]
    serves_over_z = program.case[arc, member, member] == OVER_Z
    # A quadric is in no triangle, so y is an ordinary supernode.
    leaves_y = paths.next_member[ORDINARY, apex_member, member] == LEAVES
    goes_over_x = serves_over_z & leaves_y & (place_of_exit == place_of_x)
    return np.asarray(~goes_over_x)


def _neighbours(program: StarProgram, group: SupernodeGroup) -> NDArray[np.int32]:
    """The supernodes next to each of the group's, int32[g, D]."""
    lines = program.around[group.supernodes]
    is_other = lines != group.supernodes[:, None]
    neighbours: NDArray[np.int32] = lines[is_other].reshape(len(lines), -1)
    return neighbours
