"""Outages: cut cables, switches without power, swapped cables, and forwarding under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import Array, Program
from mininet_scenarios.scenario.engine import Event, LinkChange, Miswire, NodeChange

Link = tuple[str, str]
"""Two switches, by name."""
LINK_DOWN = np.array([-4])
"""The element that links which do not work are, under an outage."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Cables that are cut, by their two switches, names ascending, switches without power, and
    pairs of cables that have changed places.
    """

    links: frozenset[Link] = field(default_factory=frozenset)
    switches: frozenset[str] = field(default_factory=frozenset)
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

    def up(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """bool[S]: which of these switches have power."""
        return np.array([name not in self.switches for name in names], np.bool_)

    def cabling(
        self, whole: Program, names: Sequence[str]
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Far ends as they are cabled now: `Program.far`, `far_link`, and bool[S, K], which work.

        A link is called by the switches that it has in the whole fabric, and cut at the first of
        them. What names a switch that is not there is left out.

        names: of the switches.
        """
        far, far_link = whole.far.copy(), whole.far_link.copy()
        works, number = far >= 0, {name: v for v, name in enumerate(names)}

        def end(near: str, other: str) -> tuple[int, int]:
            """A switch, and the number of its link to another."""
            at = number[near]
            return at, int(np.flatnonzero(whole.far[at] == number[other])[0])

        for wrong in self.miswires:
            (u, v), (x, y) = wrong.one, wrong.other
            for one, other in ((end(u, v), end(y, x)), (end(x, y), end(v, u))):
                far[one], far_link[one] = other
                far[other], far_link[other] = one
        for link in self.links:
            if number.keys() >= set(link):
                works[end(*sorted(link, key=number.__getitem__))] = False
        works[~self.up(names)] = False
        works &= works[far, far_link]
        return far, far_link, works

    def program(self, whole: Program, names: Sequence[str]) -> Program:
        """What switches hold, over cables as they are now; what is dead is `LINK_DOWN`."""
        far, far_link, works = self.cabling(whole, names)
        cable = np.where((far >= 0) & ~works, np.int32(LINK_DOWN[0]), whole.cable)
        return whole._replace(far=far, far_link=far_link, cable=cable)


def _ordered(link: Link) -> Link:
    return min(link), max(link)
