"""The certificate of a whole PolarStar, a class at a time: no destination's column is looked at.

With the sets of `star_sets`, what `compilers.proof.local.state_proof` asks of a state becomes, of
a class of u = (x, x') over the link to v, in supernode x or z:

1. No weight but that of its own port, and of alternates in its set; a direct class has none.
2. Beyond or beside: of the first two neighbours of repair, one at least, each is in the set. Or v
   is in x, the class serves beside, and it is (w, ·) with a path within w to the member behind v's
   link there: what v serves in w is reached so; in the supernode next to x and w, in two more
   links; elsewhere (w, ·) serves it over u, by its class beyond. For failures of links, of a class
   beside and within any neighbour in x does, and of a class beyond and out, any at all.
3. Direct and out: each leads out. To the apex of x and z: if it serves v over u, that is by its
   class beside. To others: they are not next to z, and serve v over u by their class beyond.
4. Direct and within: there is one. If it is out of x and serves v over u, that is by its class
   beside; if it is in x, by its class beyond, within.
5. The first neighbour of bounce of a class beyond, or beside and out, is in the set of repairs.

What comes back to (w, ·) or (x, m) from u by 2, 3 or 4 thus goes to a neighbour whose path meets
neither that switch nor u, its next hop. So one repair and one bounce cover every failure of a
link or a switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.local.class_states import links_with_shares
from compilers.proof.local.local_proof import LocalProof
from compilers.proof.soundness.port_use import Bits, Numbers, PortUse, bits, has
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from extensions.scale.star_choices import BESIDE, BEYOND, DIRECT
from extensions.scale.star_classes import StarClasses
from extensions.scale.star_sets import StarSets
from extensions.scale.two_link_classes import first_two

LONGEST = 3
STRETCH = {"link": 4, "node": 3}
"""Bounds: links of a minimal path, and those that a repair adds."""


def star_certificate(build: Build, kinds: tuple[str, ...]) -> LocalProof | None:
    """What is proved of a whole PolarStar at once; None where a condition does not hold.

    Args:
        build: sound cables and prefixes (`build_soundness.walkable`).
        kinds: of failures, of `link` and `node`.
    """
    classes = None if build.forwarding.marks else StarClasses.of(build)
    if classes is None:
        return None
    sets, k = StarSets.of(classes), classes.members.program.members
    order, count = build.tables.classes.port.shape
    paths, further = np.zeros((order, count), np.int64), 0
    for some in switch_blocks(build):
        part, use = classes_of(build, some), classes.use.part(some)
        minimal = use.links(part.tables.classes.port).astype(np.int16)
        shared = links_with_shares(part, use, minimal)
        paths[some] = shared.shares
        rest = shared.links & ~_only(minimal, shared.links.shape[2])
        further = max(further, int(rest.any()))
        if (rest & ~sets.alternates[some]).any():
            return None
        if kinds and not _Repairs.of(sets, part, use, some).holds(kinds):
            return None
    chosen = sum(
        int((paths[x * k : (x + 1) * k] * classes.rows(x)).sum()) for x in range(order // k)
    )
    return LocalProof.of_all(
        chosen,
        classes.members.hop_counts(),
        LONGEST + further,
        {kind: np.full(order, STRETCH[kind]) for kind in kinds},
    )


def _only(link: NDArray[np.int16], width: int) -> NDArray[np.uint8]:
    """uint8[n, C, B]: sets of one link each, or of none."""
    byte, bit = bits(np.maximum(link, 0))
    of_link = (np.arange(width) == byte[..., None]) & (link >= 0)[..., None]
    return np.where(of_link, bit[..., None], np.uint8(0))


@dataclass(frozen=True, slots=True, eq=False)
class _Repairs:
    """The links of repair and of bounce of n switches."""

    sets: StarSets
    """The links that serve each class."""
    far: NDArray[np.int32]
    """int32[n, K], the switch behind each link."""
    out: Bits
    """bool[n, K], links to other supernodes."""
    repairs: NDArray[np.uint8]
    """uint8[n, 3K, B], the links that may repair each class, as sets."""
    first: NDArray[np.int32]
    """int32[n, 3, K], the first link of protection of each class, other than the minimal one."""
    second: NDArray[np.int32]
    """int32[n, 3, K], the second one."""
    bounce: NDArray[np.int32]
    """int32[n, 3, K], the first link of bounce of each class, other than the minimal one."""

    @classmethod
    def of(cls, sets: StarSets, part: Build, use: PortUse, some: slice) -> _Repairs:
        """The repairs of a slice of switches."""
        c, far = part.tables.classes, part.wiring.far
        minimal = use.links(c.port)
        shape = len(far), 3, -1
        orders = (
            *first_two(use.links(c.protection), minimal),
            *first_two(use.links(c.bounce), minimal),
        )
        first, second, bounce, _ = (column.reshape(shape) for column in orders)
        k = sets.classes.members.program.members
        x = np.arange(some.start, some.start + len(far)) // k
        out = (far >= 0) & (far // k != x[:, None])
        return cls(sets, far, out, sets.repairs[some], first, second, bounce)

    def holds(self, kinds: tuple[str, ...]) -> bool:
        """Conditions 2 to 5, for all classes and these kinds of failure."""
        bounced = self._in_set(self.bounce)
        bounced[:, BESIDE] |= ~self.out
        bounced[:, DIRECT] = True
        pairs = [self._serves(link) for link in (self.first, self.second)]
        for kind, (one, two) in zip(("link", "node"), zip(*pairs, strict=True), strict=True):
            good = bounced & one & (two | (self.second < 0))
            good[:, DIRECT] |= (kind == "node") & bounced[:, DIRECT]
            # Where there is no link, there is no class.
            good |= (self.far < 0)[:, None]
            if kind in kinds and not good.all():
                return False
        return True

    def _in_set(self, link: NDArray[np.int32]) -> Bits:
        """bool[n, 3, K]: whether these links are in the sets of repairs."""
        return has(self.repairs, link.reshape(len(link), -1, 1)).reshape(link.shape)

    def _serves(self, link: NDArray[np.int32]) -> tuple[Bits, Bits]:
        """bool[n, 3, K] twice: whether neighbours repair failures of a link, and of a switch."""
        linked, within = link >= 0, ~self.out
        leads_out = linked & np.take_along_axis(
            np.broadcast_to(self.out[:, None], link.shape), np.maximum(link, 0), axis=2
        )
        node = self._in_set(link)
        s, number = np.nonzero(leads_out[:, BESIDE] & within)
        node[s, BESIDE, number] = self._inside(s, number, link[s, BESIDE, number])
        some = node.copy()
        some[:, BEYOND] |= linked[:, BEYOND] & self.out
        some[:, BESIDE] |= (linked & ~leads_out)[:, BESIDE] & within
        some[:, DIRECT] = np.where(self.out, leads_out[:, DIRECT], linked[:, DIRECT])
        return some, node

    def _inside(self, s: Numbers, number: Numbers, rho: Numbers) -> Bits:
        """bool[n]: condition 2, of links `number` of switches s, and (w, ·) over links rho."""
        members = self.sets.classes.members
        program, k = members.program, members.program.members
        (w, member), v = np.divmod(self.far[s, rho], k), self.far[s, number]
        arc = (w < v // k).astype(np.intp)
        ends = program.along[arc, v % k]
        of = program.quadric[w].astype(np.intp)
        inside: Bits = self.sets.first_members[of, member, ends] >= 0
        return inside
