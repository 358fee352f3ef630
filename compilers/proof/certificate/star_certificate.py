"""The certificate of a whole PolarStar, a class at a time: no destination's column is looked at.

With the sets of `star_sets`, the column certificate's conditions (`column_certificate`) become, of
a class of u = (x, x') over the link to v, in supernode x or z:

1. No weight but that of its own port, and of alternates in its set; a direct class has none.
2. Beyond or beside: of the first two neighbours of repair, one at least, each is in the set. Or v
   is in x, the class serves beside, and it is (w, ·) with a way within w to the member behind v's
   link there: what v serves in w is reached so; in the supernode next to x and w, in two more
   links; elsewhere (w, ·) serves it over u, by its class beyond. For failures of links, of a class
   beside and within any neighbour in x does, and of a class beyond and out, any at all.
3. Direct and out: each leads out. To the apex of x and z: if it serves v over u, that is by its
   class beside. To others: they are not next to z, and serve v over u by their class beyond.
4. Direct and within: there is one. If it is out of x and serves v over u, that is by its class
   beside; if it is in x, by its class beyond, within.
5. The first neighbour of bounce of a class beyond, or beside and out, is in the set of repairs.

What comes back to (w, ·) or (x, m) from u by 2, 3 or 4 thus goes to a neighbour whose way meets
neither that switch nor u, its next hop. So one repair and one bounce stand for every failure of a
link or a switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.certificate.certificate import Certificate
from compilers.proof.certificate.class_certificate import weighted
from compilers.proof.certificate.star_classes import BESIDE, BEYOND, DIRECT
from compilers.proof.certificate.star_sets import StarSets
from compilers.proof.soundness.port_use import PortUse
from compilers.proof.walks.forwarding import Numbers
from compilers.proof.walks.link_sets import Bits, first_two, has, packed_alternates
from compilers.tables.build import Build
from compilers.tables.spread import SpreadWeights
from compilers.tables.switch_blocks import classes_of, switch_blocks

LONGEST = 3
STRETCH = {"link": 4, "node": 3}
HOPS = {"link": 7, "node": 6}
"""Bounds: links that a repair adds, and those of a packet on minimal ways that meets a failure."""
WAYS = "ways"


def star_certificate(sets: StarSets, kinds: tuple[str, ...]) -> Certificate:
    """The certificate of a whole PolarStar, all of whose switches have hosts.

    Args:
        sets: of its classes.
        kinds: of failures, of `link` and `node`.
    """
    classes = sets.classes
    build, k = classes.build, classes.members.program.members
    order, count = build.tables.classes.port.shape
    wrong = {word: np.zeros((order, count), np.bool_) for word in (WAYS, *kinds)}
    ways = np.zeros((order, count), np.int64)
    further = 0
    for some in switch_blocks(build):
        part, use = classes_of(build, some), classes.use.part(some)
        minimal, spread = weighted(part, use)
        there = use.links(part.tables.classes.port) >= 0
        ways[some], further = spread + (minimal & there), max(further, int(spread.any()))
        wrong[WAYS][some] = _astray(part, use, sets.alternates[some])
        if kinds:
            repaired = _Repairs.of(sets, part, use, some).holds()
            for kind in kinds:
                wrong[kind][some] = ~repaired[kind]
    whole, lost = 0, {word: np.zeros(order, np.bool_) for word in wrong}
    for x in range(order // k):
        own = slice(x * k, (x + 1) * k)
        whole += int((ways[own] * classes.rows(x)).sum())
        for word, found in wrong.items():
            if found[own].any():
                lost[word] |= classes.towards(x, found[own])
    return Certificate(
        destinations=np.arange(order),
        delivers=~lost[WAYS],
        repairs={kind: ~lost[WAYS] & ~lost[kind] for kind in kinds},
        stretch={kind: np.full(order, STRETCH[kind]) for kind in kinds},
        hops={kind: np.full(order, HOPS[kind] + further) for kind in kinds},
        ways=whole,
        longest=LONGEST + further,
    )


def _astray(build: Build, use: PortUse, allowed: NDArray[np.uint8]) -> Bits:
    """bool[n, C]: classes of some switches with a weight for a port that is not allowed."""
    c = build.tables.classes
    if isinstance(c.weight, SpreadWeights) and (spread := packed_alternates(build, use)):
        strays = (spread.links & ~allowed).any(axis=2)
        return np.asarray(strays & (c.weight.packed.weight[..., 1] > 0), np.bool_)
    links = use.links(np.asarray(c.alternate))
    strays = (links >= 0) & (c.weight[..., 1:] > 0) & ~has(allowed, links)
    return np.asarray(strays.any(axis=2), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class _Repairs:
    """Links of repair and bounce of n switches, int32[n, 3, K] each, and their sets.

    far: int32[n, K]. out: bool[n, K], links to other supernodes. repairs: uint8[n, 3K, B].
    """

    sets: StarSets
    far: NDArray[np.int32]
    out: Bits
    repairs: NDArray[np.uint8]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    bounce: NDArray[np.int32]

    @classmethod
    def of(cls, sets: StarSets, part: Build, use: PortUse, some: slice) -> _Repairs:
        """Those of some switches."""
        c, far = part.tables.classes, part.wiring.far
        minimal = use.links(c.port)
        shape = len(far), 3, -1
        orders = (
            *first_two(use.links(c.protection), minimal),
            *first_two(use.links(c.bounce), minimal),
        )
        first, second, bounce, _ = (each.reshape(shape) for each in orders)
        k = sets.classes.members.program.members
        x = np.arange(some.start, some.start + len(far)) // k
        out = (far >= 0) & (far // k != x[:, None])
        return cls(sets, far, out, sets.repairs[some], first, second, bounce)

    def holds(self) -> dict[str, Bits]:
        """bool[n, C] by kind of failure: conditions 2 to 5."""
        bounced = self._in_set(self.bounce)
        bounced[:, BESIDE] |= ~self.out
        bounced[:, DIRECT] = True
        found = {}
        pairs = [self._serves(link) for link in (self.first, self.second)]
        for kind, (one, two) in zip(("link", "node"), zip(*pairs, strict=True), strict=True):
            good = bounced & one & (two | (self.second < 0))
            good[:, DIRECT] |= (kind == "node") & bounced[:, DIRECT]
            # Where there is no link, there is no class.
            good |= (self.far < 0)[:, None]
            found[kind] = good.reshape(len(good), -1)
        return found

    def _in_set(self, link: NDArray[np.int32]) -> Bits:
        """bool[n, 3, K]: whether these links are in the sets of repairs."""
        return has(self.repairs, link.reshape(len(link), -1, 1)).reshape(link.shape)

    def _serves(self, link: NDArray[np.int32]) -> tuple[Bits, Bits]:
        """bool[n, 3, K] twice: whether neighbours repair failures of a link, and of a switch."""
        there, within = link >= 0, ~self.out
        leads_out = there & np.take_along_axis(
            np.broadcast_to(self.out[:, None], link.shape), np.maximum(link, 0), axis=2
        )
        node = self._in_set(link)
        s, number = np.nonzero(leads_out[:, BESIDE] & within)
        node[s, BESIDE, number] = self._inside(s, number, link[s, BESIDE, number])
        some = node.copy()
        some[:, BEYOND] |= there[:, BEYOND] & self.out
        some[:, BESIDE] |= (there & ~leads_out)[:, BESIDE] & within
        some[:, DIRECT] = np.where(self.out, leads_out[:, DIRECT], there[:, DIRECT])
        return some, node

    def _inside(self, s: Numbers, number: Numbers, rho: Numbers) -> Bits:
        """bool[n]: condition 2, of links `number` of switches s, and (w, ·) over links rho."""
        members = self.sets.classes.members
        program, k = members.program, members.program.members
        (w, member), v = np.divmod(self.far[s, rho], k), self.far[s, number]
        arc = (w < v // k).astype(np.intp)
        ends = program.along[arc, v % k]
        of = program.quadric[w].astype(np.intp)
        found: Bits = self.sets.first_members[of, member, ends] >= 0
        return found
