"""Detours: the switch that a packet reaches over each other neighbour, by its class.

Next hops towards one destination make a tree. So two paths to it that meet share all links from
there on, and a neighbour's path is as good as what it meets first: the switch itself, its next hop,
or another switch of its minimal path.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import Bits, Sets
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

LATER, NEXT_HOP, BACK, ANYTHING = 1, 2, 3, 4
DETOUR_CELLS_AT_ONCE = 1 << 22
Vertices = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Detours:
    """The paths of S switches with C classes over each of K links."""

    direct: Bits
    """bool[S, C], classes by which a destination is reached that is the neighbour itself."""
    behind: Bits
    """bool[S, C], classes by which a destination behind the neighbour is reached."""
    other: Bits
    """bool[S, C, K], links that are cabled, other than the class's own."""
    least: NDArray[np.uint8]
    """uint8[S, C, K], the least that the paths of the class's destinations meet over that link:
    BACK the switch, else NEXT_HOP its neighbour on the minimal path (unless that is the
    destination), else LATER another switch of the minimal path before its end, else 0."""
    most: NDArray[np.uint8]
    """uint8[S, C, K], the most that they meet."""
    shorter: Bits
    """bool[S, C, K], other links whose neighbour is as near to every destination of the class as
    the next hop is."""
    ever_shorter: Bits
    """bool[S, C, K], other links whose neighbour is as near to some destination of the class."""

    @classmethod
    def of(cls, build: Build) -> Detours:
        """Walk from every neighbour of every switch, through tables that deliver every pair."""
        port, w = build.tables.classes.port, build.wiring
        cabled = w.far >= 0
        other = cabled[:, None, :] & (port[..., None] > 0) & (w.port[:, None, :] != port[..., None])
        result = cls(
            direct=np.zeros(port.shape, np.bool_),
            behind=np.zeros(port.shape, np.bool_),
            other=other,
            least=np.full(other.shape, BACK, np.uint8),
            most=np.zeros(other.shape, np.uint8),
            shorter=other.copy(),
            ever_shorter=np.zeros(other.shape, np.bool_),
        )
        fib = Fib.of(build.tables, w.cables())
        ends = np.flatnonzero(build.topology.endpoints)
        step = max(1, DETOUR_CELLS_AT_ONCE // len(port))
        for first in range(0, len(ends), step):
            result._add(fib, ends[first : first + step], np.where(cabled, w.far, 0))
        return result

    def _add(self, fib: Fib, destinations: NDArray[np.int64], far: Vertices) -> None:
        """Walk towards these destinations."""
        ends = destinations.astype(np.int32)
        number = fib.egress(destinations).astype(np.intp)
        routed = number < self.direct.shape[1]
        # Without a route a switch keeps its packets.
        after = np.where(
            routed, fib.next_switch(destinations), np.arange(len(far), dtype=np.int32)[:, None]
        )
        paths = _paths(after, ends)
        hops = _hops(paths, ends)
        order = np.argsort(number, axis=1, kind="stable")
        for s, count in enumerate(np.count_nonzero(routed, axis=1).tolist()):
            columns = order[s, :count]
            classes, first = np.unique(number[s, columns], return_index=True)
            if count:
                direct = (after[s] == ends)[columns]
                self.direct[s, classes] |= np.logical_or.reduceat(direct, first)
                self.behind[s, classes] |= np.logical_or.reduceat(~direct, first)
                met = _met(paths, s, far[s], ends)[:, columns]
                for function, column in ((np.minimum, self.least), (np.maximum, self.most)):
                    met_of_class = function.reduceat(met, first, axis=1).T
                    column[s, classes] = function(column[s, classes], met_of_class)
                shorter = (hops[far[s]] < hops[s])[:, columns]
                other = self.other[s, classes]
                self.shorter[s, classes] &= np.logical_and.reduceat(shorter, first, axis=1).T
                some = np.logical_or.reduceat(shorter, first, axis=1).T
                self.ever_shorter[s, classes] |= other & some

    def part(self, some: slice) -> Detours:
        """The detours of some switches."""
        return Detours(*(getattr(self, word.name)[some] for word in fields(self)))

    @property
    def used(self) -> Bits:
        """bool[S, C], classes by which some destination is reached."""
        return self.direct | self.behind

    def without(self, least: int) -> Sets:
        """Other links whose paths meet nothing from this on, for classes in use."""
        return np.packbits(self.other & self.used[..., None] & (self.most < least), axis=2)

    def uneven(self, least: int) -> Bits:
        """bool[S, C]: classes with destinations to which not the same paths meet such things."""
        low, high = (np.where(met < least, 0, met) for met in (self.least, self.most))
        differ: Bits = (self.other & self.used[..., None] & (low != high)).any(axis=2)
        return differ

    def unevenly_shorter(self) -> Bits:
        """bool[S, C]: classes over some link of which only some destinations are as near."""
        differ: Bits = (self.ever_shorter & ~self.shorter).any(axis=2) & self.used
        return differ


def _hops(paths: list[Vertices], ends: Vertices) -> NDArray[np.uint8]:
    """uint8[S, D]: the links of every path; at least as many as are followed, where none ends."""
    hops: NDArray[np.uint8] = (np.arange(len(paths[0]))[:, None] != ends).astype(np.uint8)
    for path in paths[:-1]:
        hops += path != ends
    return hops


def _paths(after: Vertices, ends: Vertices) -> list[Vertices]:
    """int32[S, D] each: where the packets of all switches are after 1, 2, … links, to the end."""
    column, paths = np.arange(len(ends)), [after]
    while len(paths) < MOST_HOPS and (paths[-1] != ends).any():
        moved = after[paths[-1], column]
        if (moved == paths[-1]).all():
            break
        paths.append(moved)
    return paths


def _met(paths: list[Vertices], s: int, far: Vertices, ends: Vertices) -> NDArray[np.uint8]:
    """uint8[K, D]: what the paths of a switch's neighbours meet, as in `Detours.most`."""
    met = np.zeros((len(far), len(ends)), np.uint8)
    for at in (far[:, None], *(path[far] for path in paths[:-1])):
        np.maximum(met, (at == s) * np.uint8(BACK), out=met)
        within = at != ends
        for word, path in ((NEXT_HOP, paths[:1]), (LATER, paths[1:-1])):
            for next_switch in path:
                np.maximum(met, ((at == next_switch[s]) & within) * np.uint8(word), out=met)
    return met
