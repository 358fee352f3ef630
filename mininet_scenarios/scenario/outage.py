"""Outages: cut cables, switches without power, swapped cables, and forwarding under them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import Array, Program
from mininet_scenarios.scenario.engine import Event, LinkChange, Miswire, NodeChange
from mininet_scenarios.scenario.numbering import renumbered

Link = tuple[int, int]
LINK_DOWN = np.array([-4])
"""The element that links which do not work are, under an outage."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Cables that are cut (two switches each, the lower one first), switches without power, and
    pairs of cables that have changed places.
    """

    links: frozenset[Link] = field(default_factory=frozenset)
    switches: frozenset[int] = field(default_factory=frozenset)
    miswires: tuple[Miswire, ...] = ()

    def after(self, event: Event) -> Outage:
        """The outage after one more event."""
        match event:
            case LinkChange(links, up):
                cut = {_ordered(link) for link in links}
                return replace(self, links=self.links - cut if up else self.links | cut)
            case NodeChange(switches, up):
                dark = frozenset(switches)
                left = self.switches - dark if up else self.switches | dark
                return replace(self, switches=left)
            case Miswire(one, other, repaired):
                wrong = Miswire(one, other)
                if repaired:
                    return replace(self, miswires=tuple(m for m in self.miswires if m != wrong))
                return replace(self, miswires=(*self.miswires, wrong))
        return self

    def renumbered(self, vertex: NDArray[np.int64]) -> Outage:
        """The same where switch v has number vertex[v]; what names one without is left out."""
        result = Outage()
        down: list[LinkChange | NodeChange | Miswire] = [
            LinkChange(tuple(sorted(self.links)), up=False),
            NodeChange(tuple(sorted(self.switches)), up=False),
            *self.miswires,
        ]
        for event in down:
            result = result.after(renumbered(event, vertex))
        return result

    def up(self, order: int) -> NDArray[np.bool_]:
        """bool[S]: the switches with power."""
        up = np.ones(order, np.bool_)
        up[list(self.switches)] = False
        return up

    def cabling(self, whole: Program) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Far ends as they are cabled now: `Program.far`, `far_link`, and bool[S, K], which work.

        A link is called by the switches that it has in the whole fabric, and cut at the first.
        """
        far, far_link = whole.far.copy(), whole.far_link.copy()
        works = far >= 0
        for wrong in self.miswires:
            (u, v), (x, y) = wrong.one, wrong.other
            ends = [_end(whole, *link) for link in ((u, v), (y, x), (x, y), (v, u))]
            out, home, away, back = ends
            for one, other in ((out, home), (away, back)):
                far[one], far_link[one] = other
                far[other], far_link[other] = one
        for link in self.links:
            works[_end(whole, *link)] = False
        works[list(self.switches)] = False
        works &= works[far, far_link]
        return far, far_link, works

    def program(self, whole: Program) -> Program:
        """What switches hold, over cables as they are now; what is dead is `LINK_DOWN`."""
        far, far_link, works = self.cabling(whole)
        cable = np.where((far >= 0) & ~works, np.int32(LINK_DOWN[0]), whole.cable)
        return whole._replace(far=far, far_link=far_link, cable=cable)


def _end(whole: Program, near: int, far: int) -> tuple[int, int]:
    """A switch, and the number of its link to another."""
    return near, int(np.flatnonzero(whole.far[near] == far)[0])


def _ordered(link: Link) -> Link:
    return min(link), max(link)
