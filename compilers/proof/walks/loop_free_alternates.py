"""Where the paths of a switch's neighbours meet the switch's own minimal path, class by class.

The soundness checks judge alternates and repairs with it. A neighbour may serve as an alternate for
a class if its own minimal path does not lead back. It may serve as a disjoint alternate if it
shares no switch with the minimal path of the class.

Next hops towards one destination make a tree. So two paths to it that meet share all links from
there on, and a neighbour's path is as good as what it meets first: the switch itself (BACK), the
switch's next hop (NEXT_HOP), a later switch of the switch's minimal path (LATER), or nothing.
`Detours` holds, for each class and link, the least and the most of these over all destinations of
the class.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

LATER, NEXT_HOP, BACK, ANYTHING = 1, 2, 3, 4
"""What a neighbour's path meets first, the worse the higher; 0: nothing; ANYTHING is above all."""
DETOUR_CELLS_AT_ONCE = 1 << 22
"""The most pairs of a switch and a destination that are walked at once."""
Vertices = NDArray[np.int32]


class MinimalRoutes(NamedTuple):
    """The minimal paths of all S switches to D destinations."""

    number: NDArray[np.intp]
    """intp[S, D], the egress class of each switch; too large a number where it has no route."""
    routed: Bits
    """bool[S, D], whether the switch has a route."""
    next_switch: Vertices
    """int32[S, D], the next switch; the switch itself where it has no route."""
    after: list[Vertices]
    """int32[S, D] each, where the packets of all switches are after 1, 2, … links."""
    hops: NDArray[np.uint8]
    """uint8[S, D], the links of each path."""


@dataclass(frozen=True, slots=True, eq=False)
class Detours:
    """The paths of S switches with C classes over each of their K links.

    Of a class, the link of its minimal port is no detour, and all other cabled links are.
    """

    direct: Bits
    """bool[S, C], whether the class has the neighbour behind its link as a destination."""
    behind: Bits
    """bool[S, C], whether the class has other destinations."""
    is_detour: Bits
    """bool[S, C, K], the cabled links other than the class's own."""
    least: NDArray[np.uint8]
    """uint8[S, C, K], what paths over that link meet, the least over the destinations of the class:
    BACK, NEXT_HOP (unless the next hop is the destination), LATER (a switch before the end), or 0.
    """
    most: NDArray[np.uint8]
    """uint8[S, C, K], the most over the destinations of the class."""
    shorter: Bits
    """bool[S, C, K], other links whose neighbour is as near as the next hop to every destination of
    the class."""
    ever_shorter: Bits
    """bool[S, C, K], other links whose neighbour is as near to some destination of the class."""

    @classmethod
    def of(cls, build: Build) -> Detours:
        """Walk from every neighbour of every switch to every destination.

        build: its tables deliver every pair over minimal ports.
        """
        port, wiring = build.tables.classes.port, build.wiring
        cabled = wiring.far >= 0
        is_detour = (
            cabled[:, None, :]
            & (port[..., None] > 0)
            & (wiring.port[:, None, :] != port[..., None])
        )
        detours = cls(
            direct=np.zeros(port.shape, np.bool_),
            behind=np.zeros(port.shape, np.bool_),
            is_detour=is_detour,
            least=np.full(is_detour.shape, BACK, np.uint8),
            most=np.zeros(is_detour.shape, np.uint8),
            shorter=is_detour.copy(),
            ever_shorter=np.zeros(is_detour.shape, np.bool_),
        )
        fib = Fib.of(build.tables, wiring.cables())
        ends = np.flatnonzero(build.topology.endpoints)
        step = max(1, DETOUR_CELLS_AT_ONCE // len(port))
        for first in range(0, len(ends), step):
            detours._add(fib, ends[first : first + step], np.where(cabled, wiring.far, 0))
        return detours

    def _add(self, fib: Fib, destinations: NDArray[np.int64], far: Vertices) -> None:
        """Add the paths to some destinations.

        Args:
            fib: the routes of the build.
            destinations: int64[D].
            far: int32[S, K], the neighbour behind each link; 0 where there is none.
        """
        ends = destinations.astype(np.int32)
        paths = _minimal_paths(fib, destinations, self.direct.shape[1])
        # Destinations sorted by class, so that each class is a range of columns.
        order = np.argsort(paths.number, axis=1, kind="stable")
        for s, count in enumerate(np.count_nonzero(paths.routed, axis=1).tolist()):
            if not count:
                continue
            columns = order[s, :count]
            classes, first = np.unique(paths.number[s, columns], return_index=True)
            direct = (paths.next_switch[s] == ends)[columns]
            self.direct[s, classes] |= np.logical_or.reduceat(direct, first)
            self.behind[s, classes] |= np.logical_or.reduceat(~direct, first)
            met = _met(paths.after, s, far[s], ends)[:, columns]
            least = np.minimum.reduceat(met, first, axis=1).T
            most = np.maximum.reduceat(met, first, axis=1).T
            self.least[s, classes] = np.minimum(self.least[s, classes], least)
            self.most[s, classes] = np.maximum(self.most[s, classes], most)
            shorter = (paths.hops[far[s]] < paths.hops[s])[:, columns]
            for_all = np.logical_and.reduceat(shorter, first, axis=1).T
            for_some = np.logical_or.reduceat(shorter, first, axis=1).T
            self.shorter[s, classes] &= for_all
            self.ever_shorter[s, classes] |= self.is_detour[s, classes] & for_some

    def part(self, switches: slice) -> Detours:
        """The detours of some switches."""
        return Detours(*(getattr(self, field.name)[switches] for field in fields(self)))

    @property
    def used(self) -> Bits:
        """bool[S, C], whether the class has any destination."""
        return self.direct | self.behind

    def without(self, least: int) -> Sets:
        """The detours that serve all destinations of their class, as sets of links.

        least: they meet nothing of this value or above, such as BACK.
        """
        return np.packbits(self.is_detour & self.used[..., None] & (self.most < least), axis=2)

    def uneven(self, least: int) -> Bits:
        """The classes, bool[S, C], that some detour serves for some of their destinations only.

        least: a detour serves if it meets nothing of this value or above.
        """
        low, high = (np.where(met < least, 0, met) for met in (self.least, self.most))
        differ: Bits = (self.is_detour & self.used[..., None] & (low != high)).any(axis=2)
        return differ

    def unevenly_shorter(self) -> Bits:
        """The classes, bool[S, C], with a link that is as near to some of their destinations
        only.
        """
        differ: Bits = (self.ever_shorter & ~self.shorter).any(axis=2) & self.used
        return differ


def _minimal_paths(fib: Fib, destinations: NDArray[np.int64], classes: int) -> MinimalRoutes:
    """The minimal paths of all switches to some destinations, int64[D]."""
    ends = destinations.astype(np.int32)
    number = fib.egress(destinations).astype(np.intp)
    routed = number < classes
    itself = np.arange(len(number), dtype=np.int32)[:, None]
    next_switch = np.where(routed, fib.next_switch(destinations), itself)
    after = _places(next_switch, ends)
    return MinimalRoutes(number, routed, next_switch, after, _hops(after, ends))


def _places(next_switch: Vertices, ends: Vertices) -> list[Vertices]:
    """int32[S, D] each: where the packets of all switches are after 1, 2, … links, to their end."""
    column, places = np.arange(len(ends)), [next_switch]
    while len(places) < MOST_HOPS and (places[-1] != ends).any():
        moved = next_switch[places[-1], column]
        if (moved == places[-1]).all():
            break
        places.append(moved)
    return places


def _hops(places: list[Vertices], ends: Vertices) -> NDArray[np.uint8]:
    """uint8[S, D], the links of every path; where a path does not end, at least as many as
    `places` has.
    """
    hops: NDArray[np.uint8] = (np.arange(len(places[0]))[:, None] != ends).astype(np.uint8)
    for place in places[:-1]:
        hops += place != ends
    return hops


def _met(places: list[Vertices], s: int, far: Vertices, ends: Vertices) -> NDArray[np.uint8]:
    """What the paths of a switch's neighbours meet of the switch's own path, as in `Detours`.

    Args:
        places: of `_places`.
        s: the switch.
        far: int32[K], its neighbours.
        ends: int32[D], the destinations.

    Returns:
        uint8[K, D].
    """
    met = np.zeros((len(far), len(ends)), np.uint8)
    for at in (far[:, None], *(place[far] for place in places[:-1])):
        met[np.broadcast_to(at == s, met.shape)] = BACK
        before_end = at != ends
        for value, on_path in ((NEXT_HOP, places[:1]), (LATER, places[1:-1])):
            for place in on_path:
                meets = (at == place[s]) & before_end
                np.maximum(met, np.where(meets, np.uint8(value), np.uint8(0)), out=met)
    return met
