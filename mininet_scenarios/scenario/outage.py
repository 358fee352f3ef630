"""Outages: cut cables, switches without power, swapped cables, and forwarding under them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Forwarding
from mininet_scenarios.scenario.engine import Event, LinkChange, Miswire, NodeChange
from mininet_scenarios.scenario.numbering import renumbered

Link = tuple[int, int]
SWITCH_DOWN = -4
"""The element that arcs which do not work belong to, in the forwarding under an outage."""


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

    def forwarding(self, whole: Forwarding) -> Forwarding:
        """The same tables over cables as they are now; what is dead is `SWITCH_DOWN`."""
        link, neighbour = (part.copy() for part in whole.element)
        end = whole.end.copy()
        for wrong in self.miswires:
            _swap(whole, end, wrong)
        cabled = np.flatnonzero(end >= 0)
        neighbour[cabled] = whole.links + end[cabled] // whole.slots
        link[:-2][self._dead(whole, end)] = SWITCH_DOWN
        return replace(whole, end=end, element=(link, neighbour))

    def cables(self, whole: Forwarding) -> NDArray[np.int32]:
        """int32[arcs]: the arc at the other end of each, -1 where there is none that works."""
        end = self.forwarding(whole).end
        return np.where(self._dead(whole, end), -1, end)

    def _dead(self, whole: Forwarding, end: NDArray[np.int32]) -> NDArray[np.bool_]:
        """bool[arcs]: those with a cable that does not work."""
        cabled = np.flatnonzero(end >= 0)
        dead = np.zeros(len(end), np.bool_)
        dead[_arcs(whole, self.links)] = True
        dead |= ~self.up(whole.switches).repeat(whole.slots)
        dead[cabled] |= dead[end[cabled]]
        dead &= end >= 0
        return dead


def _swap(whole: Forwarding, end: NDArray[np.int32], wrong: Miswire) -> None:
    (u, v), (x, y) = wrong.one, wrong.other
    out, back, away, home = _arcs(whole, [(u, v), (v, u), (x, y), (y, x)])
    end[out], end[home], end[away], end[back] = home, out, back, away


def _arcs(whole: Forwarding, links: Iterable[Link]) -> list[int]:
    """The arc of each link's first switch."""
    found = []
    for u, v in links:
        here = np.arange(u * whole.slots, (u + 1) * whole.slots - 1)
        behind = whole.end[here]
        found.append(int(here[(behind >= 0) & (behind // whole.slots == v)][0]))
    return found


def _ordered(link: Link) -> Link:
    return min(link), max(link)
