"""Detours: the switch that a packet reaches over each other neighbour, by its class.

Next hops towards one destination make a tree. So two paths to it that meet share all links from
there on, and a neighbour's path is as good as what it meets first: the switch itself, its next hop,
or another switch of its minimal path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS, Walker

BACK, NEXT_HOP, LATER = 1, 2, 4
DETOUR_CELLS_AT_ONCE = 1 << 21
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Detours:
    """The paths of S switches with C classes over each of K links.

    used: bool[S, C], classes by which some row goes; direct: those that lead to the neighbour
    itself. other: bool[S, C, K], links that are there and not the class's own. meets: uint8[S, C,
    K], what the path of some destination of the class meets over that link: BACK the switch,
    NEXT_HOP its neighbour on the minimal path (unless that is the destination), LATER another
    switch of the minimal path before its end.
    """

    used: Bits
    direct: Bits
    other: Bits
    meets: NDArray[np.uint8]

    @classmethod
    def of(cls, build: Build) -> Detours:
        """Walk from every neighbour of every switch, through tables that deliver every pair."""
        port, w = build.tables.classes.port, build.wiring
        there = w.far >= 0
        other = there[:, None, :] & (port[..., None] > 0) & (w.port[:, None, :] != port[..., None])
        result = cls(
            used=np.zeros(port.shape, np.bool_),
            direct=np.zeros(port.shape, np.bool_),
            other=other,
            meets=np.zeros(other.shape, np.uint8),
        )
        walker = Walker.of(build.tables, w.cables())
        ends = np.flatnonzero(build.topology.endpoints)
        step = max(1, DETOUR_CELLS_AT_ONCE // len(port))
        for first in range(0, len(ends), step):
            result._add(walker, ends[first : first + step], np.where(there, w.far, 0))
        return result

    def _add(self, walker: Walker, ends: NDArray[np.int64], far: NDArray[np.int32]) -> None:
        """Walk towards these destinations."""
        switch = np.arange(len(far), dtype=np.int32)[:, None]
        column = np.arange(len(ends))
        number = walker.egress(ends).astype(np.intp)
        routed = number < self.used.shape[1]
        # Without a route a switch keeps its packets.
        after = np.where(routed, walker.next_switch(ends), switch)
        minimal = [after]
        while len(minimal) < MOST_HOPS and ((at := minimal[-1]) != ends).any():
            moved = after[at, column]
            if (moved == at).all():
                break
            minimal.append(moved)
        s, d = np.nonzero(routed)
        self.used[s, number[s, d]] = True
        s, d = np.nonzero(routed & (after == ends))
        self.direct[s, number[s, d]] = True
        for k in range(far.shape[1]):
            bits = self._met(after, minimal[1:-1], far[:, k], ends)
            s, d = np.nonzero(bits)
            kept = routed[s, d]
            s, d = s[kept], d[kept]
            place = np.ravel_multi_index((s, number[s, d], np.full(len(s), k)), self.meets.shape)
            np.bitwise_or.at(self.meets.reshape(-1), place, bits[s, d])

    def _met(
        self,
        after: NDArray[np.int32],
        minimal: list[NDArray[np.int32]],
        far: NDArray[np.int32],
        ends: NDArray[np.int64],
    ) -> NDArray[np.uint8]:
        """uint8[S, D]: what the path of each switch's neighbour meets; minimal: later switches."""
        switch, column = np.arange(len(far), dtype=np.int32)[:, None], np.arange(len(ends))
        towards = ends.astype(np.int32)
        at = np.broadcast_to(far[:, None], after.shape)
        moved = after[far]
        bits = np.zeros(after.shape, np.uint8)
        for _ in range(MOST_HOPS):
            within = at != towards
            bits |= (at == switch).view(np.uint8)
            bits |= ((at == after) & within).view(np.uint8) * np.uint8(NEXT_HOP)
            for there in minimal:
                bits |= ((at == there) & within).view(np.uint8) * np.uint8(LATER)
            if (moved == towards).all() or (moved == at).all():
                break
            at, moved = moved, after[moved, column]
        return bits

    def without(self, bits: int) -> Bits:
        """bool[S, C, K]: other links whose paths meet none of these, for classes in use."""
        free: Bits = self.other & self.used[..., None] & ((self.meets & bits) == 0)
        return free
