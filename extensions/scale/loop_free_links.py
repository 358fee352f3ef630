"""Which links of a whole PolarStar may serve a class in place of the link of the class itself.

`LoopFreeLinks.of` takes the classes of a build and returns two sets of links for each class. With
them `star_certificate` judges alternates and repair links. The sets are the same for all
destinations of a class, so no destination is looked at.

*Words.* Switch u = (x, x') is member x' of supernode x. Its links lead to members (x, m) of x, and
to one member (w, ·) of each supernode w next to x. A class is a link together with the destinations
that it serves (`class_parts`): the neighbour v itself (*direct*), other switches of the supernodes
next to x (*beside*), or all other destinations (*beyond*). If v is outside x, its supernode is z,
and the *apex* is the supernode that is next to both x and z.

Let u send a packet for d, which the class to v serves, over another link, to r. The link to r is
*loop-free* if the path from r to d does not come back to u. It is *node-protecting* if the path
does not meet v either (the terms of RFC 5286). Where that is so follows from the rows that
`star_program` proves, for all d but v:

- *Beyond, d in a supernode Y that is not next to x.* From r = (w, ·) the path goes over the common
  neighbour of w and Y. This is not x, as x is not next to Y. It is z only if w is next to z, so if
  w is the apex. The path then goes on to Y, perhaps over the common neighbour of that supernode and
  Y, which is neither x nor z. From r = (x, m) the path leaves x by m's own link.
- *Beyond, d in x*, not joined to x'. From r = (w, ·) the path takes the link from w to d itself, or
  goes over the supernode next to x and w, which is z only if w is the apex. From r = (x, m) the
  path comes to x' only within x.
- *Beside, d in a supernode y next to x.* From r = (x, m) the path takes m's own link out of x, or
  goes over the one member of x that is joined to d. That member is not x', as d would be v. So the
  path meets a v in x only if m is joined to v, and it meets no v outside x. From r in the apex: if
  y = z, the path does not go over x, as the link from there leads to v. If y is the apex, the path
  stays within y, or it *turns*: it leaves y for a supernode next to y, which may be x.

`star_certificate` says what the repairs of direct classes do.

In shapes, k is the number of members of a supernode, g of supernodes of a group, K of links, and B
of bytes of a set. An axis *kind* has values for ORDINARY and QUADRIC supernodes. An axis *arc* has
values for links to supernodes with larger numbers (ALONG), and with smaller ones (AGAINST).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets, byte_and_bit
from compilers.tables.star_rows import OVER_Z
from extensions.scale.class_parts import BESIDE, BEYOND
from extensions.scale.star_classes import StarClasses
from extensions.scale.supernode_cables import NO_MEMBER
from extensions.scale.supernode_groups import ORDINARY, SupernodeGroup

Members = NDArray[np.intp]
"""Numbers of members, or of supernodes."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopFreeLinks:
    """The links that may serve each class of S switches, as sets of bits (`link_sets.Sets`)."""

    classes: StarClasses
    """The classes of the build."""
    next_member: Members
    """int[2, k, k], by kind of supernode: the next member on the path from one member to another;
    NO_MEMBER where that path leaves the supernode."""
    loop_free: Sets
    """uint8[S, C, B], the links, the class's own left out, whose paths do not come back."""
    node_protecting: Sets
    """uint8[S, C, B], for classes that are not direct: the links whose paths do not meet v either.
    A few such links are left out."""

    @classmethod
    def of(cls, classes: StarClasses) -> LoopFreeLinks:
        """The links that may serve each of the classes."""
        switches, most_links = classes.build.wiring.far.shape
        width = (most_links + 7) // 8
        loop_free = np.zeros((switches, 3, most_links, width), np.uint8)
        node_protecting = np.zeros_like(loop_free)
        paths = _CabledPaths.of(classes)
        for group in classes.groups():
            # First the links whose answer is the same in all supernodes of the group, then those to
            # apexes, which differ.
            group_loop_free = _packed_sets(paths.loop_free_but_apexes(group), group)
            group_protecting = _packed_sets(paths.node_protecting_but_apexes(group), group)
            paths.enter_apexes(group, group_loop_free, group_protecting)
            for sets, group_sets in (
                (loop_free, group_loop_free),
                (node_protecting, group_protecting),
            ):
                of_switches = group_sets.reshape(-1, *group_sets.shape[2:])
                sets[group.switches, :, : group.link_count, : of_switches.shape[3]] = of_switches
        shape = switches, 3 * most_links, width
        return cls(
            classes, paths.next_member, loop_free.reshape(shape), node_protecting.reshape(shape)
        )


def _packed_sets(serves: Bits, group: SupernodeGroup) -> Sets:
    """The sets of all supernodes of a group, uint8[g, k, 3, K, B], from bool[k, 3, K, K].

    The link of a class itself is in no set.
    """
    packed = np.packbits(group.without_own_link(serves), axis=3)
    return np.repeat(packed[None], len(group.supernodes), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class _CabledPaths:
    """The first links of paths between members of a supernode, as the cables are.

    `member_paths` has the same from the program, to choose the links that are judged here. A proof
    does not ask what it judges.
    """

    classes: StarClasses
    """The classes of the build."""
    next_member: Members
    """int[2, k, k], as in `LoopFreeLinks`."""
    comes_back: Bits
    """bool[2, k, k, k], by kind, member x', and two of its neighbours m and r: whether r's path to
    some member that x' serves over m comes back to x'."""
    turns_to: Bits
    """bool[2, k, D], by the arc to y, member x', and the place of a supernode next to y: whether
    packets turn to that supernode. They are in the member of y that x' is joined to, and are for a
    member of y that x' serves over a third supernode."""

    @classmethod
    def of(cls, classes: StarClasses) -> _CabledPaths:
        """Follow the links by which supernodes are cabled."""
        cables = classes.cables
        program, k = cables.program, cables.program.members
        neighbours = program.around.shape[1]
        next_member = np.full((2, k, k), NO_MEMBER)
        comes_back = np.zeros((2, k, k, k), np.bool_)
        turns_to = np.zeros((2, k, neighbours), np.bool_)
        for kind in cables.inner_members:
            next_of_kind = cables.member_at(kind, program.step[kind])
            next_member[kind] = next_of_kind
            # The pairs of members that are two links apart: `start` sends packets for `end` over m.
            stays_inside = next_of_kind != NO_MEMBER
            two_links = ~cables.joined_members(kind) & stays_inside & ~np.eye(k, dtype=np.bool_)
            start, end = np.nonzero(two_links)
            m = next_of_kind[start, end]
            # They come back from each r whose own next member towards `end` is `start`:
            # bool[pairs, k], by pair and r.
            sends_back = start[:, None] == next_of_kind[:, end].T
            pair, r = np.nonzero(sends_back)
            comes_back[kind, start[pair], m[pair], r] = True
        for arc, bijection in cables.bijection.items():
            # By member x' and destination in y: whether the path from the neighbour of x' in y
            # leaves y. An apex y is no quadric, as a quadric is in no triangle.
            leaves_y = next_member[ORDINARY][bijection] == NO_MEMBER
            member, end = np.nonzero((program.case[arc] == OVER_Z) & leaves_y)
            # A path from a to b that leaves y takes y's neighbour number a + b, counted round.
            turns_to[arc, member, (bijection[member] + end) % neighbours] = True
        return cls(classes, next_member, comes_back, turns_to)

    def loop_free_but_apexes(self, group: SupernodeGroup) -> Bits:
        """The links whose paths do not come back, bool[k, 3, K, K], without those to apexes."""
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        inner_members = self._inner_members(group)
        comes_back = self.comes_back[
            group.kind, group.members, inner_members[:, :, None], inner_members[:, None]
        ]
        serves = group.empty_sets()
        serves[:, BEYOND, outer] = True
        serves[:, BEYOND, inner, outer.T] = True
        serves[:, BEYOND, inner, inner.T] = ~comes_back
        serves[:, BESIDE, :, group.inner_links] = True
        return serves

    def node_protecting_but_apexes(self, group: SupernodeGroup) -> Bits:
        """The links whose paths do not meet v, bool[k, 3, K, K], as if there were no apexes."""
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        inner_members = self._inner_members(group)
        joined = self.classes.cables.joined_members(group.kind)
        serves = group.empty_sets()
        serves[:, BEYOND, :, group.outer_links] = True
        serves[:, BESIDE, outer, inner.T] = True
        serves[:, BESIDE, inner, inner.T] = ~joined[
            inner_members[:, None], inner_members[:, :, None]
        ]
        return serves

    def _inner_members(self, group: SupernodeGroup) -> Members:
        """The member at the far end of each inner link, by the cables, int[k, L]."""
        return self.classes.cables.inner_members[group.kind][:, : len(group.inner_links)]

    def enter_apexes(self, group: SupernodeGroup, loop_free: Sets, node_protecting: Sets) -> None:
        """Correct the sets of a group, uint8[g, k, 3, K, B], for the links to apexes.

        The link to the apex is loop-free for a class beside where the apex does not turn packets
        to x. It is not node-protecting for a class beyond.
        """
        # Of all links with an apex: the supernode's place in the group, and the link's place among
        # outer links.
        with_apex, places = np.nonzero(group.apex_link >= 0)
        for place in np.unique(places).tolist():
            supernodes, link = with_apex[places == place], int(group.outer_links[place])
            apex_link = group.apex_link[supernodes, place]
            byte, bit = byte_and_bit(apex_link)  # where each apex link is in a set
            stays_off = self._apex_stays_off(group, supernodes, apex_link)
            loop_free[:, :, BESIDE, link][supernodes, :, byte] |= bit[:, None] * stays_off
            node_protecting[:, :, BEYOND, link][supernodes, :, byte] &= ~bit[:, None]

    def _apex_stays_off(
        self, group: SupernodeGroup, supernodes: Members, apex_link: Members
    ) -> Bits:
        """Whether the apex sends no packet for its own members to x, bool[n, k] by member x'.

        Args:
            group: the group of the supernodes.
            supernodes: int[n], places of supernodes x in the group.
            apex_link: int[n], the link of each to its apex.
        """
        program, place = self.classes.cables.program, np.searchsorted(group.outer_links, apex_link)
        x = group.supernodes[supernodes]
        # The apex, int[n]. No x is a quadric, so all places on its line are those of neighbours.
        apex = program.around[x, place]
        apex_line = program.around[apex]  # int[n, q + 1], the supernodes next to the apex
        place_of_x = np.count_nonzero(apex_line < x[:, None], axis=1)
        stays_off: Bits = ~self.turns_to[group.direction[place], :, place_of_x]
        return stays_off
