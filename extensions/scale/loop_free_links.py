"""Which links of a whole PolarStar may serve a class in place of the link of the class itself.

Switch (x, x') is member x' of supernode x; its links lead to members (x, m) of the same supernode,
and to one member of each supernode w next to x. A class is a link together with the destinations
that it serves (`star_choices`): the neighbour v itself (*direct*), other switches of the supernodes
next to x (*beside*), or all other destinations (*beyond*).

Let switch u = (x, x') send packets for destination d, which one of its classes serves over the
link to v, over another link instead, to r. That link is *loop-free* if the path from r to d does
not come back to u. It is *node-protecting* if the path does not meet v either (the terms of RFC
5286). Both hold for all destinations of a class, d = v excepted, by the rows that `star_program`
proves:

- *Beyond, d in a supernode Y that is not next to x.* Call w×Y the common neighbour of supernodes w
  and Y. From (w, ·) the path goes over w×Y. That is not x, as x is not next to Y. It is z, the
  supernode of v, only if w is next to z, so if w is the *apex* of x and z. The path goes on to Y,
  perhaps over the supernode next to w×Y and Y, which is neither x nor z. From (x, m) the path
  leaves x by m's own link.
- *Beyond, d in x*, not joined to x'. From (w, ·) the path takes the link w - x of d itself, or goes
  over the supernode next to x and w, which is z only if w is the apex. From (x, m) the path comes
  to x' only within x.
- *Beside, d = (y, ·).* From (x, m) the path takes the one member of x that is joined to d, which is
  not x', as d would be v; or m's own link out. So it meets a v in x only if m is joined to v, and
  meets no other v. From the apex of x and z, where y = z, it does not go over x, as that leads to
  v. Where y itself is the apex, the path stays within y, or leaves it by a turn, which may be to x.

`star_certificate` states what the repairs of direct classes do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets, bits
from compilers.tables.star_rows import OVER_Z
from extensions.scale.star_choices import BESIDE, BEYOND
from extensions.scale.star_classes import StarClasses
from extensions.scale.supernode_groups import SupernodeGroup

Members = NDArray[np.intp]
"""Numbers of members of supernodes, or of supernodes."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopFreeLinks:
    """The links that may serve each class of S switches, as sets of bits (`link_sets.Sets`)."""

    classes: StarClasses
    """The classes of the build."""
    next_member: Members
    """int[2, k, k], by kind of supernode: the member behind the link from one member to another, -1
    where that link leads out of the supernode."""
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
            group_loop_free = _packed_sets(paths.loop_free(group), group)
            group_protecting = _packed_sets(paths.node_protecting(group), group)
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
    link = np.arange(group.link_count)
    serves[..., link, link] = False
    packed = np.packbits(serves, axis=3)
    return np.repeat(packed[None], len(group.supernodes), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class _CabledPaths:
    """The first links of paths between members of a supernode, as the cables are.

    `star_choices.MemberPaths` has the same from the program, to choose the links that are judged
    here. A proof does not ask what it judges.
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
    (y, g(x')) leaves y to that supernode for a destination in y that x' serves over a third one."""

    @classmethod
    def of(cls, classes: StarClasses) -> _CabledPaths:
        """Follow the links by which supernodes are cabled."""
        cabled = classes.members
        program, k = cabled.program, cabled.program.members
        turns = program.around.shape[1]
        next_member = np.full((2, k, k), -1)
        comes_back = np.zeros((2, k, k, k), np.bool_)
        turns_to = np.zeros((2, k, turns), np.bool_)
        for kind in cabled.inner:
            step_to = cabled.behind(kind, program.step[kind])
            next_member[kind] = step_to
            two_links = ~cabled.joined(kind) & (step_to >= 0) & ~np.eye(k, dtype=np.bool_)
            start, end = np.nonzero(two_links)
            pair, r = np.nonzero(start[:, None] == step_to[:, end].T)
            comes_back[kind, start[pair], step_to[start[pair], end[pair]], r] = True
        for arc, along in cabled.along.items():
            member, end = np.nonzero((program.case[arc] == OVER_Z) & (next_member[0][along] < 0))
            turns_to[arc, member, (along[member] + end) % turns] = True
        return cls(classes, next_member, comes_back, turns_to)

    def loop_free(self, group: SupernodeGroup) -> Bits:
        """The links whose paths do not come back, bool[k, 3, K, K], without those to apexes."""
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        inner_members = self._inner_members(group)
        comes_back = self.comes_back[
            group.kind, group.members, inner_members[:, :, None], inner_members[:, None]
        ]
        serves = group.no_links()
        serves[:, BEYOND, outer] = True
        serves[:, BEYOND, inner, outer.T] = True
        serves[:, BEYOND, inner, inner.T] = ~comes_back
        serves[:, BESIDE, :, group.inner_links] = True
        return serves

    def node_protecting(self, group: SupernodeGroup) -> Bits:
        """The links whose paths do not meet v, bool[k, 3, K, K], as if there were no apexes."""
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        inner_members = self._inner_members(group)
        joined = self.classes.members.joined(group.kind)
        serves = group.no_links()
        serves[:, BEYOND, :, group.outer_links] = True
        serves[:, BESIDE, outer, inner.T] = True
        serves[:, BESIDE, inner, inner.T] = ~joined[
            inner_members[:, None], inner_members[:, :, None]
        ]
        return serves

    def _inner_members(self, group: SupernodeGroup) -> Members:
        """The member at the far end of each inner link, by the cables, int[k, L]."""
        return self.classes.members.inner[group.kind][:, : len(group.inner_links)]

    def enter_apexes(self, group: SupernodeGroup, loop_free: Sets, node_protecting: Sets) -> None:
        """Enter what links to apexes serve into the sets of a group, uint8[g, k, 3, K, B]."""
        with_apex, places = np.nonzero(group.apex_link >= 0)
        for place in np.unique(places).tolist():
            supernodes, link = with_apex[places == place], int(group.outer_links[place])
            apex_link = group.apex_link[supernodes, place]
            byte, bit = bits(apex_link)
            stays = self._apex_stays_off(group, supernodes, apex_link)
            loop_free[:, :, BESIDE, link][supernodes, :, byte] |= bit[:, None] * stays
            node_protecting[:, :, BEYOND, link][supernodes, :, byte] &= ~bit[:, None]

    def _apex_stays_off(
        self, group: SupernodeGroup, supernodes: Members, apex_link: Members
    ) -> Bits:
        """Whether the apex serves destinations within itself without a turn to x, bool[n, k].

        Args:
            group: the group of the supernodes.
            supernodes: int[n], places of supernodes x in the group.
            apex_link: int[n], the link of each to its apex.
        """
        program, place = self.classes.members.program, np.searchsorted(group.outer_links, apex_link)
        x = group.supernodes[supernodes]
        apex_lines = program.around[program.around[x, place]]
        place_of_x = np.count_nonzero(apex_lines < x[:, None], axis=1)
        stays_off: Bits = ~self.turns_to[group.arc[place], :, place_of_x]
        return stays_off
