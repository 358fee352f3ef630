"""The events that an engine applies, and the outage of the fabric that they add up to.

A timeline has the events (`scenario.timeline_events`). The engines apply them, and predictions are
made for the outage (`verdict.predict`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.rule import Array, Program


@dataclass(frozen=True, slots=True)
class PhysicalChange:
    """Cables are cut or mended; switches lose power or get it back.

    All links of a switch without power, also those to hosts, are down at both ends. A switch that
    gets its power back has no tables, and asks the controller for them.
    """

    links: tuple[tuple[str, str], ...] = ()
    """The cables, by the two switches of each."""
    switches: tuple[str, ...] = ()
    """The switches."""
    up: bool = False
    """Whether cables are mended and power returns."""


@dataclass(frozen=True, slots=True)
class Miswire:
    """The cables u–v and x–y are exchanged at v and y: now u–y and x–v are cabled."""

    one: tuple[str, str]
    """The cable u–v."""
    other: tuple[str, str]
    """The cable x–y."""
    repaired: bool = False
    """Whether the two cables are put back where they belong."""


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """The controller is killed (SIGKILL), or started again."""

    running: bool
    """Whether the controller is started."""
    round: int | None = None
    """The round, from 1, of the move under way in which the controller is killed; None for now."""


@dataclass(frozen=True, slots=True)
class BuildChange:
    """The fabric is to move to a build in rounds (docs/how-to/move.md).

    If no controller runs, the next one that is started has that build.
    """

    build: int
    """The number of the build."""


Event = PhysicalChange | Miswire | ControllerChange | BuildChange
"""An event that an engine applies."""
Link = tuple[str, str]
"""Two switches, by name."""


LINK_DOWN = np.array([-4])
"""The element number of all links that do not work under an outage. An element is what can fail: a
cable or a switch, by its number, which is not negative."""


@dataclass(frozen=True, slots=True, eq=False)
class PresentCabling:
    """The cables of a fabric as they are now, of S switches with K links."""

    far: Array
    """int32[S, K], the switch at the far end of each link, as `Program.far`."""
    far_link: Array
    """int[S, K], the number of the link at its far end, as `Program.far_link`."""
    works: NDArray[np.bool_]
    """bool[S, K], whether the cable is whole and both ends have power."""


@dataclass(frozen=True, slots=True)
class Outage:
    """The cables and switches that are out of order."""

    links: frozenset[Link] = field(default_factory=frozenset)
    """The cables that are cut, by their two switches with ascending names."""
    switches: frozenset[str] = field(default_factory=frozenset)
    """The switches without power."""
    miswires: tuple[Miswire, ...] = ()
    """The pairs of cables that have changed places."""

    def after(self, event: Event) -> Outage:
        """The outage after one more event."""
        match event:
            case PhysicalChange(links, switches, up):
                changed_links = {ordered(link) for link in links}
                changed_switches = frozenset(switches)
                if up:
                    return replace(
                        self,
                        links=self.links - changed_links,
                        switches=self.switches - changed_switches,
                    )
                return replace(
                    self,
                    links=self.links | changed_links,
                    switches=self.switches | changed_switches,
                )
            case Miswire(one, other, repaired):
                miswire = Miswire(one, other)
                if repaired:
                    return replace(self, miswires=tuple(m for m in self.miswires if m != miswire))
                return replace(self, miswires=(*self.miswires, miswire))
        return self

    @property
    def links_around(self) -> Outage:
        """The outage without exchanged cables, as a controller learns it from switches' ports."""
        return replace(self, miswires=())

    def up(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """bool[S]: which of these switches have power."""
        return np.array([name not in self.switches for name in names], np.bool_)

    def cabling(self, undamaged: Program, names: Sequence[str]) -> PresentCabling:
        """The cables under this outage.

        A link is named by the two switches that it joins in the undamaged fabric, and cut at the
        first of them. Links that name a switch which is not there are left out.

        Args:
            undamaged: the fabric without any outage.
            names: the names of its switches.
        """
        far, far_link = undamaged.far.copy(), undamaged.far_link.copy()
        works, number = far >= 0, {name: v for v, name in enumerate(names)}

        def end(near_name: str, far_name: str) -> tuple[int, int]:
            """The place of a link in the arrays: a switch, and the number of the link there."""
            switch = number[near_name]
            return switch, int(np.flatnonzero(undamaged.far[switch] == number[far_name])[0])

        for miswire in self.miswires:
            (u, v), (x, y) = miswire.one, miswire.other
            for first, second in ((end(u, v), end(y, x)), (end(x, y), end(v, u))):
                far[first], far_link[first] = second
                far[second], far_link[second] = first
        for link in self.links:
            if number.keys() >= set(link):
                works[end(*sorted(link, key=number.__getitem__))] = False
        works[~self.up(names)] = False
        works &= works[far, far_link]  # the far end of each link has to work, too
        return PresentCabling(far, far_link, works)

    def program(self, undamaged: Program, names: Sequence[str]) -> Program:
        """The program of the switches over the cables under this outage.

        Links that do not work have the element number `LINK_DOWN`.

        Args:
            undamaged: the program without any outage.
            names: the names of the switches.
        """
        cabling = self.cabling(undamaged, names)
        is_dead = (cabling.far >= 0) & ~cabling.works
        cable = np.where(is_dead, np.int32(LINK_DOWN[0]), undamaged.cable)
        return undamaged._replace(far=cabling.far, far_link=cabling.far_link, cable=cable)


def ordered(link: Link) -> Link:
    """A link with ascending names."""
    return min(link), max(link)
