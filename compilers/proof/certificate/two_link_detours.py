"""The detours of a whole PolarFly whose rows prove minimal delivery, by its triangles alone.

In ER_q two switches have exactly one path of two links (`compilers.topology.polarfly`), so let s be
joined to x and to r, and d be served over x. If d is not x, it is not joined to s, and r's way to
it is r - w - d or r - d, never over s. It meets x only if r is joined to x: then x is the one
common neighbour of r and d, as d is joined to x, and not to r, which has x's other neighbour s. If
d is x, then r reaches it in one link if it is joined to x, else over the one common neighbour, s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.proof.certificate.two_link_classes import Links, TwoLinkClasses
from compilers.proof.walks.detours import BACK, NEXT_HOP
from compilers.proof.walks.link_sets import Bits, Sets, bits


@dataclass(frozen=True, slots=True, eq=False)
class TriangleSets:
    """The detours of some switches (`detours.ClassDetours`), as sets of links.

    other: links that are there and not the class's own. apex: int16[S, C], that of the class's
    link, -1 where there is none.
    """

    direct: Bits
    behind: Bits
    other: Sets
    apex: Links

    @property
    def used(self) -> Bits:
        """bool[S, C], classes by which some destination is reached."""
        return self.direct | self.behind

    def without(self, least: int) -> Sets:
        """Other links whose paths meet nothing from this on, for classes in use."""
        found = self.other.copy()
        if least > BACK:
            found[~self.used] = 0
            return found
        found[self.direct | ~self.behind] = 0
        s, k = np.nonzero((self.apex >= 0) & self.used)
        byte, bit = bits(self.apex[s, k])
        # Over the apex the neighbour is reached itself, and met on the way to what is behind.
        met = self.behind[s, k] & (least <= NEXT_HOP)
        found[s, k, byte] = np.where(met, found[s, k, byte] & ~bit, found[s, k, byte] | bit)
        return found

    def uneven(self, least: int) -> Bits:
        """bool[S, C]: classes with destinations to which not the same paths meet such things."""
        alike = self.other.copy()
        if least > NEXT_HOP:
            s, k = np.nonzero(self.apex >= 0)
            byte, bit = bits(self.apex[s, k])
            alike[s, k, byte] &= ~bit
        differ: Bits = self.direct & self.behind & alike.any(axis=2)
        return differ


@dataclass(frozen=True, slots=True, eq=False)
class TriangleDetours:
    """The detours of a whole PolarFly, as `Detours.of` finds them by walks."""

    classes: TwoLinkClasses

    def part(self, some: slice) -> TriangleSets:
        """Those of some switches."""
        c, there = self.classes, self.classes.build.wiring.far[some] >= 0
        direct = np.zeros(c.rows[some].shape, np.bool_)
        s, k = np.nonzero(there)
        direct[s, c.direct[some][s, k]] = True
        link = c.link[some]
        other = np.repeat(np.packbits(there, axis=1)[:, None], link.shape[1], axis=1)
        other[link < 0] = 0
        s, k = np.nonzero(link >= 0)
        byte, bit = bits(link[s, k])
        other[s, k, byte] &= ~bit
        return TriangleSets(direct, c.rows[some] > 0, other, c.class_apex[some])
