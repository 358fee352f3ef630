"""The repair links of a whole PolarStar: where packets go while the link of their class is down.

Switch u = (x, x') is member x' of supernode x. Its *outer* links lead to one member of each
supernode z next to x, its *inner* links to members (x, m). A class is a link together with the
destinations that it serves (`class_parts`): beyond, direct or beside. These links repair a class:

| class | repairs, in this order |
|---|---|
| outer, beyond | outer links, but not the one to the apex of x and z |
| outer, beside | inner links |
| outer, direct | the apex, then other outer links |
| inner, beyond | outer links |
| inner, beside | inner links to members not joined to m, then some outer links |
| inner, direct | links whose paths do not come back, then all outer links |

The *apex* of x and z is their common neighbour. The outer links of an inner class beside lead to
supernodes that have an inner path to the destination: one that does not leave them. If a neighbour
r would send a packet back to u, r's class for it leads over u, and the repairs of this class avoid
u: the packet *bounces*. So bounces are the same links as repairs.

In shapes, g is the number of supernodes of a group, k of members, K of links of a switch, and P of
repair ports of a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits
from compilers.routing.port_ranking import MOST_REPAIR_PORTS, ranked_ports
from compilers.tables.star_rows import OVER_Z, WITHIN, StarProgram
from compilers.wiring.wiring import Wiring
from extensions.scale.class_parts import BESIDE, BEYOND, DIRECT
from extensions.scale.member_paths import MemberPaths
from extensions.scale.supernode_groups import QUADRIC, SupernodeGroup

NO_LINK = 0
"""In place of the number of a link, counted from 1: there is none."""


def repair_ports(program: StarProgram, wiring: Wiring) -> NDArray[np.uint16]:
    """The ports that repair each class, in order, uint16[S, 3K, P]; 0 beyond the last."""
    switches, most_links = wiring.port.shape
    chosen = np.zeros((switches, 3, most_links, MOST_REPAIR_PORTS), np.uint16)
    paths = MemberPaths.of(program)
    # The port of each link, by its number from 1 on. Column NO_LINK has 0, which is no port.
    ports = np.pad(wiring.port.astype(np.uint16), ((0, 0), (1, 0)))
    for group in SupernodeGroup.groups_of(program):
        shape = len(group.supernodes), program.members, 3, group.link_count, MOST_REPAIR_PORTS
        repairs = np.zeros(shape, np.intp)
        repairs[...] = _member_repairs(paths, group).ranked_links()
        # All members have the same repairs of outer links beyond and direct.
        outer = group.outer_links
        beyond = _outer_beyond_repairs(group).ranked_links()
        repairs[:, :, BEYOND, outer] = beyond[:, None, outer]
        direct = _outer_direct_repairs(group).ranked_links()
        repairs[:, :, DIRECT, outer] = direct[:, None, outer]
        by_switch = repairs.reshape(-1, *shape[2:])
        group_ports = ports[group.switches[:, None, None, None], by_switch]
        chosen[group.switches, :, : group.link_count] = group_ports
    return chosen.reshape(switches, 3 * most_links, MOST_REPAIR_PORTS)


@dataclass(frozen=True, slots=True, eq=False)
class _RepairLinks:
    """The links that may repair classes: a row for each class's link, a column for each link."""

    is_usable: Bits
    """bool[…, K, K], whether the link may repair the class."""
    is_preferred: Bits
    """bool[…, K, K], whether the class takes the link before those that are only usable."""

    def ranked_links(self) -> NDArray[np.uint16]:
        """The first usable links of each class, uint16[…, K, P], counted from 1; NO_LINK for none.

        `ranked_ports` ranks the ports of links. Switches of a group have different ports on the
        same link, so here the port of a link is its number, counted from 1.
        """
        rows, most_links = len(self.is_usable), self.is_usable.shape[-1]
        usable, preferred = (
            links.reshape(rows, -1, most_links) for links in (self.is_usable, self.is_preferred)
        )
        number = np.tile(np.arange(1, most_links + 1, dtype=np.int32), (rows, 1))
        minimal = np.tile(number, usable.shape[1] // most_links)
        ranked = ranked_ports(usable, minimal, number, MOST_REPAIR_PORTS, preferred)
        return ranked.reshape(*self.is_usable.shape[:-1], MOST_REPAIR_PORTS)


def _member_repairs(paths: MemberPaths, group: SupernodeGroup) -> _RepairLinks:
    """The repairs by member, bool[k, 3, K, K] each; of outer links, only those beside."""
    program = paths.program
    outer, inner = group.outer_links[:, None], group.inner_links[:, None]
    # The members at the far ends, by the class's link (axis 1) and the repair link (axis 2).
    class_member = group.inner_members[:, :, None]
    inner_member, outer_member = group.inner_members[:, None, :], group.outer_members[:, None]
    usable, preferred = group.empty_sets(), group.empty_sets()

    usable[:, BEYOND, inner, outer.T] = True

    usable[:, BESIDE, outer, inner.T] = True
    not_joined = ~program.joined[group.kind, inner_member, class_member]
    preferred[:, BESIDE, inner, inner.T] = not_joined
    # In the supernode behind an outer link, the member that is joined to m.
    joined_to_m = program.along[group.direction, class_member]
    usable[:, BESIDE, inner, outer.T] = paths.have_inner_path(outer_member, joined_to_m)

    avoids_member = paths.next_member[group.kind, inner_member, class_member] != group.members
    preferred[:, DIRECT, inner, inner.T] = avoids_member
    # The neighbour's link back to x has the other arc.
    case_back = program.case[1 - group.direction, outer_member, class_member]
    avoids_link = (case_back == WITHIN) | ((case_back == OVER_Z) & (group.kind != QUADRIC))
    preferred[:, DIRECT, inner, outer.T] = avoids_link
    usable[:, DIRECT, inner, outer.T] = True
    return _RepairLinks(
        group.without_own_link(usable | preferred), group.without_own_link(preferred)
    )


def _outer_beyond_repairs(group: SupernodeGroup) -> _RepairLinks:
    """Repairs of outer links for destinations beyond, by supernode, bool[g, K, K] each."""
    to_apex = _links_to_apexes(group)
    return _RepairLinks(_other_outer_links(group) & ~to_apex, np.zeros_like(to_apex))


def _outer_direct_repairs(group: SupernodeGroup) -> _RepairLinks:
    """Repairs of outer links for the neighbour itself, by supernode, bool[g, K, K] each."""
    return _RepairLinks(_other_outer_links(group), _links_to_apexes(group))


def _links_to_apexes(group: SupernodeGroup) -> Bits:
    """Which link leads to the apex of each link's triangle, bool[g, K, K]."""
    to_apex = np.zeros((len(group.supernodes), group.link_count, group.link_count), np.bool_)
    supernode, outer = np.nonzero(group.apex_link >= 0)
    to_apex[supernode, group.outer_links[outer], group.apex_link[supernode, outer]] = True
    return to_apex


def _other_outer_links(group: SupernodeGroup) -> Bits:
    """For each outer link all the other outer links, bool[g, K, K]."""
    other_links = np.zeros((len(group.supernodes), group.link_count, group.link_count), np.bool_)
    not_itself = ~np.eye(len(group.outer_links), dtype=np.bool_)
    other_links[:, group.outer_links[:, None], group.outer_links] = not_itself
    return other_links
