"""Alternates and repair links of a whole PolarStar, by construction: three classes for each link.

`with_choices` takes the tables of minimal routes, and returns tables whose classes also have
*alternates* (links that packets may take at any time) and *repairs* (links for packets whose
minimal link is down). It looks at no destination: a neighbour of a switch does the same with
packets for all destinations of a class, so that links are chosen class by class.

Switch u = (x, x') is member x' of supernode x. Its *outer* links lead to (z, g(x')) in another
supernode z, where the bijection g says which members are joined. Its *inner* links lead to (x, m).
A class is a link together with the destinations that it serves: the neighbour itself (*direct*),
other switches of the supernodes next to x (*beside*), or all other destinations (*beyond*). These
are the links chosen for each class:

| class | alternates | repairs |
|---|---|---|
| outer, beyond | all links | outer links, but not the one to the apex of x and z |
| outer, beside | inner links; the apex | inner links |
| outer, direct | | the apex, then outer links |
| inner, beyond | outer; inner links whose paths do not come back | outer links |
| inner, beside | inner links | inner links to members not joined to m; then outer (1) |
| inner, direct | | links whose paths do not come back, then outer links |

(1) To supernodes that have an inner path to the destination: one that does not leave them.

The *apex* of x and z is their common neighbour. If a neighbour r would send a packet back to u, r's
class for it leads over u, and the repairs of this class avoid u: the packet *bounces*.
`compilers.proof.local.state_proof` proves of each state that these links serve. It derives nothing
from this construction.

Arrays of `StarProgram` have an axis *arc*: 0 for links to supernodes with larger numbers, 1 for
links to smaller ones. An axis *kind* has 0 for ordinary supernodes, 1 for those of quadrics. In
shapes, g is the number of supernodes of a group, k of members, D of outer links, K of all links.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing import polarstar_minimal
from compilers.routing.alternate_weights import with_alternates
from compilers.routing.port_ranking import MOST_REPAIR_PORTS, ranked_ports
from compilers.spec.forwarding import Forwarding
from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Classes, Tables
from compilers.tables.star_rows import OVER_Z, WITHIN, StarEgress, StarPrefixes, StarProgram
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from extensions.scale.supernode_groups import QUADRIC, SupernodeGroup

BEYOND, DIRECT, BESIDE = range(3)
"""The three parts of a switch's classes, K each. Direct ones are the second part, as in all builds.
"""
Bits = NDArray[np.bool_]


def with_choices(
    tables: Tables, topology: Topology, wiring: Wiring, forwarding: Forwarding
) -> Tables:
    """Tables with three classes a link, their alternates and repairs.

    Args:
        tables: the tables of minimal routes.
        topology: a whole PolarStar.
        wiring: the cables of the PolarStar.
        forwarding: whether there are alternates and repair. Alternates may share links with minimal
            paths.
    """
    most_links = wiring.port.shape[1]
    program = _three_class_program(topology, most_links)
    egress = unless_large(StarEgress(program), tables.routes.egress)
    prefix = unless_large(StarPrefixes(program), egress)
    classes = Classes.minimal(np.tile(wiring.port, 3))
    if forwarding.repairs:
        repair_ports = _repair_ports(program, wiring)
        classes = replace(classes, protection=repair_ports, bounce=repair_ports)
    if forwarding.has_alternates:
        alternates = _alternate_sets(program, most_links)
        classes = with_alternates(classes, wiring, alternates, forwarding.minimal_share)
    return Tables(replace(tables.routes, prefix=prefix, egress=egress), classes)


def star_alternates(topology: Topology, most_links: int) -> NDArray[np.uint8]:
    """The alternates of a whole PolarStar as sets of links, uint8[S, 3K, ⌈K/8⌉], as in `Spread`."""
    return _alternate_sets(_three_class_program(topology, most_links), most_links)


def _three_class_program(topology: Topology, most_links: int) -> StarProgram:
    """The minimal routes, with three classes for each of so many links."""
    shift = np.array([BESIDE * most_links, DIRECT * most_links], np.uint16)
    return replace(polarstar_minimal.star_program(topology), shift=shift)


@dataclass(frozen=True, slots=True, eq=False)
class _RepairLinks:
    """The links that may repair classes: a row for each class's link, a column for each link."""

    usable: Bits
    """bool[…, K, K], whether the link may repair the class."""
    preferred: Bits
    """bool[…, K, K], whether the class takes the link before those that are only usable."""

    def ranked_ports(self, wiring: Wiring) -> NDArray[np.uint16]:
        """The first usable links of each class, uint16[…, K, P]: link k as k + 1, 0 for none."""
        rows, most_links = len(self.usable), self.usable.shape[-1]
        # `ranked_ports` chooses among ports. Here it is given port k + 1 for link k.
        usable, preferred = (
            sets.reshape(rows, -1, most_links) for sets in (self.usable, self.preferred)
        )
        port = np.tile(np.arange(1, most_links + 1, dtype=np.int32), (rows, 1))
        minimal = np.tile(port, usable.shape[1] // most_links)
        first_links = ranked_ports(
            usable, minimal, replace(wiring, port=port), MOST_REPAIR_PORTS, preferred
        )
        return first_links.reshape(*self.usable.shape[:-1], MOST_REPAIR_PORTS)


def _repair_ports(program: StarProgram, wiring: Wiring) -> NDArray[np.uint16]:
    """The ports that repair each class, in order, uint16[S, 3K, P]; bounces are the same."""
    switches, most_links = wiring.port.shape
    repair_ports = np.zeros((switches, 3, most_links, MOST_REPAIR_PORTS), np.uint16)
    paths = MemberPaths.of(program)
    # The port of link k in column k + 1. Column 0 is for no link, and has 0 for no port.
    ports = np.pad(wiring.port.astype(np.uint16), ((0, 0), (1, 0)))
    for group in SupernodeGroup.all_of(program):
        shape = len(group.supernodes), program.members, 3, group.link_count, MOST_REPAIR_PORTS
        link_number = np.zeros(shape, np.intp)
        link_number[...] = paths.repairs(group).ranked_ports(wiring)
        # Repairs of outer links are the same for all members, except in classes beside.
        outer = group.outer_links
        for part, repairs in (
            (BEYOND, _outer_beyond_repairs(group)),
            (DIRECT, _outer_direct_repairs(group)),
        ):
            link_number[:, :, part, outer] = repairs.ranked_ports(wiring)[:, None, outer]
        by_switch = link_number.reshape(-1, *shape[2:])
        group_ports = ports[group.switches[:, None, None, None], by_switch]
        repair_ports[group.switches, :, : group.link_count] = group_ports
    return repair_ports.reshape(switches, 3 * most_links, MOST_REPAIR_PORTS)


def _outer_beyond_repairs(group: SupernodeGroup) -> _RepairLinks:
    """Repairs of outer links for destinations beyond, by supernode of the group."""
    apexes = _apexes(group)
    return _RepairLinks(_other_outer_links(group) & ~apexes, np.zeros_like(apexes))


def _outer_direct_repairs(group: SupernodeGroup) -> _RepairLinks:
    """Repairs of outer links for the neighbour itself, by supernode of the group."""
    return _RepairLinks(_other_outer_links(group), _apexes(group))


def _apexes(group: SupernodeGroup) -> Bits:
    """Which link leads to the apex of each link's triangle, bool[g, K, K]."""
    apexes = np.zeros((len(group.supernodes), group.link_count, group.link_count), np.bool_)
    supernode, place = np.nonzero(group.apex_link >= 0)
    apexes[supernode, group.outer_links[place], group.apex_link[supernode, place]] = True
    return apexes


def _other_outer_links(group: SupernodeGroup) -> Bits:
    """For each outer link all the other outer links, bool[g, K, K]."""
    other_links = np.zeros((len(group.supernodes), group.link_count, group.link_count), np.bool_)
    not_itself = ~np.eye(len(group.outer_links), dtype=np.bool_)
    other_links[:, group.outer_links[:, None], group.outer_links] = not_itself
    return other_links


def _alternate_sets(program: StarProgram, most_links: int) -> NDArray[np.uint8]:
    """The links of alternates, as in `Spread`, uint8[S, 3K, ⌈K/8⌉]."""
    k, switches = program.members, len(program.around) * program.members
    alternates = np.zeros((switches, 3, most_links, (most_links + 7) // 8), np.uint8)
    paths = MemberPaths.of(program)
    for group in SupernodeGroup.all_of(program):
        # All supernodes of a group have the same alternates, except for links to apexes.
        of_members = np.packbits(paths.alternates(group), axis=3)
        sets = np.repeat(of_members[None], len(group.supernodes), axis=0)
        supernode, place = np.nonzero(group.apex_link >= 0)
        apex = group.apex_link[supernode, place]
        stays_off = paths.apex_stays_off(group)[supernode, :, place]
        # Where link k is in a set: bit k mod 8, from the highest, of byte k div 8.
        bit = (128 >> (apex & 7)).astype(np.uint8)[:, None] * stays_off
        outer_link = group.outer_links[place][:, None]
        # An outer link has one apex, so no element is indexed twice.
        sets[supernode[:, None], np.arange(k), BESIDE, outer_link, apex[:, None] >> 3] |= bit
        by_switch = sets.reshape(-1, *of_members.shape[1:])
        alternates[group.switches, :, : group.link_count, : of_members.shape[3]] = by_switch
    return alternates.reshape(switches, 3 * most_links, -1)


@dataclass(frozen=True, slots=True, eq=False)
class MemberPaths:
    """Paths between the k members of a supernode, by the program."""

    program: StarProgram
    """The program of all switches."""
    next_member: NDArray[np.int16]
    """int16[2, k, k], by kind of supernode: the member behind the link from one member to another,
    -1 where that link leads out of the supernode."""
    comes_back: Bits
    """bool[2, k, k, k], by kind, member a, and two of its neighbours m and r: whether the path from
    r to some member that a serves over m comes back to a."""

    @classmethod
    def of(cls, program: StarProgram) -> MemberPaths:
        """Find where the first link of each path within a supernode leads."""
        k = program.members
        next_member = np.full((2, k, k), -1, np.int16)
        comes_back = np.zeros((2, k, k, k), np.bool_)
        for kind, joined in enumerate(program.joined):
            # Each member's neighbours in ascending order come first: by the places of inner links.
            inner_members = np.argsort(~joined, axis=1, kind="stable")
            step = program.step[kind]
            over = np.take_along_axis(inner_members, np.maximum(step, 0).astype(np.intp), axis=1)
            next_member[kind] = np.where(step >= 0, over, -1)
            two_links = ~joined & (next_member[kind] >= 0) & ~np.eye(k, dtype=np.bool_)
            # a sends packets for b over m = next_member[a, b]. They come back from each r whose
            # next member towards b is a.
            for a, b in np.argwhere(two_links):
                comes_back[kind, a, next_member[kind, a, b]] |= next_member[kind][:, b] == a
        return cls(program, next_member, comes_back)

    def alternates(self, group: SupernodeGroup) -> Bits:
        """The links whose paths never come back, bool[k, 3, K, K], without those to apexes."""
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        members = group.inner_members
        comes_back = self.comes_back[
            group.kind, group.members, members[:, :, None], members[:, None, :]
        ]
        serves = group.no_links()
        serves[:, BEYOND, outer] = True
        serves[:, BEYOND, inner, outer.T] = True
        serves[:, BEYOND, inner, inner.T] = ~comes_back
        serves[:, BESIDE, outer, inner.T] = True
        serves[:, BESIDE, inner, inner.T] = True
        return _without_own_link(serves)

    def apex_stays_off(self, group: SupernodeGroup) -> Bits:
        """Whether the apex y of x and z does not send packets from x' back to x.

        These packets are for the destinations in y that x' serves over z, if there are any. The
        path to them may leave y, and then go over x.

        Returns:
            bool[g, k, D], by supernode x, its member x', and the outer link to z; of no meaning
            for links without an apex.
        """
        program, member = self.program, group.members[:, 0]
        # The place of y among the outer links of x, by link to z, [g, D].
        place = np.argmax(group.outer_links == group.apex_link[..., None], axis=2)
        arc = group.arc[place][:, None]
        apex_member = program.along[arc, member]
        supernode = np.arange(len(place))[:, None]
        apex_lines = program.around[self._neighbours(group)[supernode, place]]
        smaller = apex_lines < group.supernodes[:, None, None]
        place_of_x = np.count_nonzero(smaller, axis=2)[:, None]
        # A packet in (y, a) for (y, b) that leaves y takes y's neighbour number a + b, counted
        # round (`StarEgress`). Here b is x', as only (y, x') may be served over z.
        detour = (apex_member + member) % apex_lines.shape[2]
        serves_over_z = program.case[arc, member, member] == OVER_Z
        leaves_y = self.next_member[0, apex_member, member] < 0
        stays_off: Bits = ~(serves_over_z & leaves_y & (detour == place_of_x))
        return stays_off

    def _neighbours(self, group: SupernodeGroup) -> NDArray[np.int32]:
        """The supernodes next to each of the group's, int32[g, D]."""
        lines = self.program.around[group.supernodes]
        is_other = lines != group.supernodes[:, None]
        neighbours: NDArray[np.int32] = lines[is_other].reshape(len(lines), -1)
        return neighbours

    def repairs(self, group: SupernodeGroup) -> _RepairLinks:
        """The repairs of all classes by member, but of outer links beyond and direct."""
        program = self.program
        outer, inner = group.outer_links[:, None], group.inner_links[:, None]
        # By class's link (axis 1) and other link (axis 2): the member behind each.
        class_member = group.inner_members[:, :, None]
        inner_member, outer_member = group.inner_members[:, None, :], group.outer_members[:, None]
        usable, preferred = group.no_links(), group.no_links()

        usable[:, BEYOND, inner, outer.T] = True

        usable[:, BESIDE, outer, inner.T] = True
        not_joined = ~program.joined[group.kind, inner_member, class_member]
        preferred[:, BESIDE, inner, inner.T] = not_joined
        ends = program.along[group.arc, class_member]
        usable[:, BESIDE, inner, outer.T] = self._has_inner_path(outer_member, ends)

        avoids_member = self.next_member[group.kind, inner_member, class_member] != group.members
        preferred[:, DIRECT, inner, inner.T] = avoids_member
        case = program.case[1 - group.arc, outer_member, class_member]
        avoids_link = (case == WITHIN) | ((case == OVER_Z) & (group.kind != QUADRIC))
        preferred[:, DIRECT, inner, outer.T] = avoids_link
        usable[:, DIRECT, inner, outer.T] = True
        return _RepairLinks(_without_own_link(usable | preferred), _without_own_link(preferred))

    def _has_inner_path(self, start: NDArray[Any], end: NDArray[Any]) -> Bits:
        """Whether supernodes of both kinds have an inner path from one member to another."""
        has_path: Bits = np.all(self.next_member[:, start, end] >= 0, axis=0)
        return has_path


def _without_own_link(serves: Bits) -> Bits:
    """Remove from each class's set the link that the class itself leads over."""
    link = np.arange(serves.shape[3])
    serves[:, :, link, link] = False
    return serves
