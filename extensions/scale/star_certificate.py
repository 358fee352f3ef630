"""The certificate of a whole PolarStar, class by class: no destination's column is looked at.

`compilers.proof.local.state_proof` asks what happens to the packets of each destination in each
state of a switch. In a PolarStar the answers are the same for all destinations of an egress class.
So `star_certificate` checks five conditions on each class, which are listed below.

Words of the conditions:

- Switch u = (x, x') is member x' of supernode x. It looks at one of its classes, whose minimal link
  leads to switch v. The class is *inner* if v is in x too, and *outer* if v is in another
  supernode, z. (w, ·) is a member of any other supernode w next to x.
- A class is *direct* if it serves v alone, *beside* if it serves other switches of the supernodes
  next to x, and *beyond* if it serves all other destinations.
- The *apex* of x and z is the supernode that is next to both.
- *Repair links* are what a class lists for packets while its minimal link is down; *bounce links*,
  what it lists for packets that came in by its minimal link. r is the switch behind such a link.
- A link to r is in the *loop-free set* of a class if r's paths to its destinations do not come back
  to u. It is in the *node-protecting set* if they do not meet v either. `loop_free_links` computes
  both sets, for all r that are needed here.

The conditions:

1. *Alternates.* A class shares packets over its minimal link, and over links of its loop-free set.
   A direct class has no alternates.
2. *Repairs beyond and beside.* There is a first repair link. It, and the second one if there is
   one, fit one of these cases:
   a. The link is in the node-protecting set. The packet arrives over r.
   b. The class is inner and beside, and r = (w, ·) has an inner path to the member of w that v is
      cabled to. What v serves in w is reached by this path. What v serves in the supernode next to
      x and w is reached by two more links. All other packets come back to u, by r's class beyond.
   c. Only links fail, the class is inner and beside, and r is in x.
   d. Only links fail, and the class is outer and beyond.
3. *Repairs of outer direct classes.* Each of these links leads to another supernode. If r is in the
   apex of x and z and sends the packet back to u, it does so by its class beside. If r is in no
   apex, it is not next to z, and sends the packet back by its class beyond.
4. *Repairs of inner direct classes.* There is a first repair link. If r is outside x and sends the
   packet back to u, it does so by its class beside. If r is in x, it does so by its class beyond.
5. *Bounces.* The first bounce link of a class beyond, and of an outer class beside, is in the
   node-protecting set.

Where r would send the packet back to u (2b, 3, 4), condition 5 holds for the class of r that would
do so. So r takes its bounce link instead, and from there the path meets neither r nor u again. In
2b it does not meet v either, as it stays out of supernode x. So one repair and one bounce cover
every failure of a link or a switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.local.class_states import balanced_links_of
from compilers.proof.local.local_proof import LocalProof
from compilers.proof.soundness.link_sets import Bits, Numbers, byte_and_bit, contain
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.tables.star_rows import AGAINST, ALONG
from extensions.scale.class_parts import BESIDE, BEYOND, DIRECT
from extensions.scale.first_alternatives import first_alternatives
from extensions.scale.loop_free_links import LoopFreeLinks
from extensions.scale.star_classes import StarClasses
from extensions.scale.star_program import hop_counts
from extensions.scale.supernode_cables import NO_MEMBER
from extensions.scale.supernode_groups import ORDINARY, QUADRIC

DIAMETER = 3
"""The most links of a minimal path."""
STRETCH = {"link": 4, "node": 3}
"""The most links that a repair adds to a path, by the kind of failure."""


def star_certificate(build: Build, kinds: tuple[str, ...]) -> LocalProof | None:
    """The proof of a whole PolarStar; None if a condition does not hold, which proves nothing.

    Args:
        build: with sound cables and prefixes (`build_soundness.unwalkable_values`).
        kinds: the kinds of failures: `link`, `node` or both.
    """
    classes = None if build.forwarding.marks else StarClasses.of(build)
    if classes is None:
        return None
    loop_free_links = LoopFreeLinks.of(classes)
    choice_counts = np.zeros(build.tables.classes.port.shape, np.int64)
    has_detours = False
    for block in switch_blocks(build):
        part, port_use = classes_of(build, block), classes.port_use.part(block)
        minimal = port_use.links(part.tables.classes.port).astype(np.int16)
        balanced = balanced_links_of(part, port_use, minimal)
        choice_counts[block] = balanced.choices
        # Condition 1. The loop-free sets of direct classes are empty.
        alternates = balanced.links & ~_single_links(minimal, balanced.links.shape[2])
        has_detours |= bool(alternates.any())
        if (alternates & ~loop_free_links.loop_free[block]).any():
            return None
        if kinds and not _Repairs.of(loop_free_links, part, port_use, block).hold(kinds):
            return None
    switches = len(choice_counts)
    return LocalProof.of_all(
        switches=switches,
        choices=_count_choices(classes, choice_counts),
        hop_counts=hop_counts(classes.cables),
        longest=DIAMETER + has_detours,
        stretch={kind: np.full(switches, STRETCH[kind]) for kind in kinds},
    )


def _count_choices(classes: StarClasses, choice_counts: Numbers) -> int:
    """How many links hosts' packets may choose from, summed over all pairs of switches.

    Args:
        classes: the classes of the whole fabric.
        choice_counts: int64[S, C], how many choices packets of hosts have in each class.
    """
    program = classes.cables.program
    k, choices = program.members, 0
    for supernode in range(len(program.around)):
        of_members = choice_counts[supernode * k : (supernode + 1) * k]
        choices += int((of_members * classes.destination_counts(supernode)).sum())
    return choices


def _single_links(link: NDArray[np.int16], width: int) -> NDArray[np.uint8]:
    """Sets of one link each, uint8[n, C, width]; the set of link -1 is empty."""
    byte, bit = byte_and_bit(np.maximum(link, 0))
    in_this_byte = (np.arange(width) == byte[..., None]) & (link >= 0)[..., None]
    return np.where(in_this_byte, bit[..., None], np.uint8(0))


@dataclass(frozen=True, slots=True, eq=False)
class _Repairs:
    """The links of repair and of bounce of n switches with K links and 3K classes."""

    loop_free_links: LoopFreeLinks
    """The links that may serve each class."""
    far: NDArray[np.int32]
    """int32[n, K], the switch behind each link."""
    is_outer: Bits
    """bool[n, K], the links to other supernodes."""
    node_protecting: NDArray[np.uint8]
    """uint8[n, 3K, B], the node-protecting links of each class, as sets."""
    first_link: NDArray[np.int32]
    """int32[n, 3, K], the first repair link of each class, other than the minimal one; -1: none."""
    second_link: NDArray[np.int32]
    """int32[n, 3, K], the second repair link."""
    bounce_link: NDArray[np.int32]
    """int32[n, 3, K], the first bounce link of each class, other than the minimal one; -1: none."""

    @classmethod
    def of(
        cls, loop_free_links: LoopFreeLinks, part: Build, port_use: PortUse, block: slice
    ) -> _Repairs:
        """The repairs of a block of switches, whose classes `part` has."""
        classes, far = part.tables.classes, part.wiring.far
        minimal = port_use.links(classes.port)
        repairs = first_alternatives(port_use.links(classes.protection), minimal)
        bounces = first_alternatives(port_use.links(classes.bounce), minimal)
        k = loop_free_links.classes.cables.program.members
        supernode = np.arange(block.start, block.start + len(far)) // k
        by_part = len(far), 3, -1  # the three parts of a switch's classes, K each
        return cls(
            loop_free_links=loop_free_links,
            far=far,
            is_outer=(far >= 0) & (far // k != supernode[:, None]),
            node_protecting=loop_free_links.node_protecting[block],
            first_link=repairs.first_link.reshape(by_part),
            second_link=repairs.second_link.reshape(by_part),
            bounce_link=bounces.first_link.reshape(by_part),
        )

    def hold(self, kinds: tuple[str, ...]) -> bool:
        """Whether conditions 2 to 5 hold for all classes and these kinds of failure."""
        bounces_hold = self._bounces_hold()
        # A class needs a first repair link; the second one may be missing.
        first_by_node, second_by_node = map(self._repairs_node, (self.first_link, self.second_link))
        first_by_link = self._repairs_link(self.first_link, first_by_node)
        second_by_link = self._repairs_link(self.second_link, second_by_node)
        has_no_second = self.second_link < 0
        is_repaired = {
            "link": bounces_hold & first_by_link & (second_by_link | has_no_second),
            "node": bounces_hold & first_by_node & (second_by_node | has_no_second),
        }
        # A direct class serves no destination while its neighbour is down.
        is_repaired["node"][:, DIRECT] = True
        # Packets take no class whose link has no cable.
        is_unused = (self.far < 0)[:, None]
        return all(bool((is_repaired[kind] | is_unused).all()) for kind in kinds)

    def _bounces_hold(self) -> Bits:
        """Whether the first bounce link of each class is as condition 5 asks, bool[n, 3, K].

        The bounces of inner classes beside, and of direct classes, may be any.
        """
        holds = self._is_node_protecting(self.bounce_link)
        holds[:, BESIDE] |= ~self.is_outer
        holds[:, DIRECT] = True
        return holds

    def _is_node_protecting(self, link: NDArray[np.int32]) -> Bits:
        """Whether a link of each class is in its node-protecting set, bool[n, 3, K]."""
        return contain(self.node_protecting, link.reshape(len(link), -1, 1)).reshape(link.shape)

    def _leads_out(self, link: NDArray[np.int32]) -> Bits:
        """Whether a link of each class exists and leads to another supernode, bool[n, 3, K]."""
        is_outer = np.broadcast_to(self.is_outer[:, None], link.shape)
        leads_out: Bits = (link >= 0) & np.take_along_axis(is_outer, np.maximum(link, 0), axis=2)
        return leads_out

    def _repairs_node(self, link: NDArray[np.int32]) -> Bits:
        """Whether a link of each class repairs the failure of its neighbour, bool[n, 3, K]."""
        repairs = self._is_node_protecting(link)  # condition 2a
        # Condition 2b is for inner classes beside whose repair link leads to another supernode.
        switch, class_link = np.nonzero(self._leads_out(link)[:, BESIDE] & ~self.is_outer)
        repair_link = link[switch, BESIDE, class_link]
        repairs[switch, BESIDE, class_link] = self._has_inner_path(switch, class_link, repair_link)
        return repairs

    def _repairs_link(self, link: NDArray[np.int32], repairs_node: Bits) -> Bits:
        """Whether a link of each class repairs the failure of the class's link, bool[n, 3, K]."""
        repairs = repairs_node.copy()
        exists, leads_out, is_inner = link >= 0, self._leads_out(link), ~self.is_outer
        repairs[:, BESIDE] |= (exists & ~leads_out)[:, BESIDE] & is_inner  # condition 2c
        repairs[:, BEYOND] |= exists[:, BEYOND] & self.is_outer  # condition 2d
        # Condition 3 is for outer classes, condition 4 for inner ones.
        repairs[:, DIRECT] = np.where(self.is_outer, leads_out[:, DIRECT], exists[:, DIRECT])
        return repairs

    def _has_inner_path(self, switch: Numbers, class_link: Numbers, repair_link: Numbers) -> Bits:
        """Whether the neighbour of repair (w, ·) has an inner path as condition 2b asks, bool[n].

        Args:
            switch: int[n], switches u.
            class_link: int[n], the link from each to its v.
            repair_link: int[n], the link from each to its (w, ·).
        """
        program = self.loop_free_links.classes.cables.program
        k = program.members
        # v = (x, m), as the class is inner, and r = (w, w').
        x, m = np.divmod(self.far[switch, class_link], k)
        w, w_member = np.divmod(self.far[switch, repair_link], k)
        joined_to_v = program.along[np.where(w < x, AGAINST, ALONG), m]
        kind = np.where(program.quadric[w], QUADRIC, ORDINARY)
        next_member = self.loop_free_links.next_member[kind, w_member, joined_to_v]
        has_path: Bits = next_member != NO_MEMBER
        return has_path
