"""Bounce goals in ER_q: repairs that lose nothing under any two failures, with the same rows.

A packet for a quadric d whose link u–d is down bounces: u–r–w–y–d, with w the bounce port of r for
packets from u, and y = w×d. If y–d is down as well and y bounces to u in turn, the packet loops; no
other two failures lose any. So y is to be σ_d(u), the next after u in N(d), cyclic: σ_d has no
2-cycle. The goal of (u, r) is that switch, and r bounces to r×σ_d(u). In detail, for q ≥ 3:

- Odd q: u next to two quadrics d, e. Its other neighbours have the goals σ_d(u) and σ_e(u) in turn;
  e has σ_d(u), and d has σ_e(u). A quadric u: its neighbours bounce to one without quadrics.
- Even q: the nucleus n, next to all quadrics, is no member of N(d). u next to one quadric d: all
  neighbours but d have σ_d(u). A quadric u: all but n have σ_n(u).

`polarfab verify --failures 2` walks it: nothing is lost, in any case, for q from 3 to 16, and with
minimal routes to 27.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
SMALLEST_WITH_GOALS = 3
"""The smallest q; at q = 2 a quadric has two links only."""


@dataclass(frozen=True, slots=True, eq=False)
class BounceGoals:
    """The links that come first in the orders of repair, by link of a switch and other link.

    bounced: bool[S, K, K], where packets go that came in on a link and would go back over it.
    repairing: bool[S, K, K], neighbours that repair a direct class, whose goal is the next in the
    ring of the quadric on that link.
    """

    bounced: Bits
    repairing: Bits

    @classmethod
    def of(cls, tables: Tables, wiring: Wiring) -> BounceGoals:
        """The goals of a whole ER_q, from minimal tables with direct classes."""
        far = wiring.far
        links = far.shape[1]
        bounced = np.zeros((*far.shape, links), np.bool_)
        if links <= SMALLEST_WITH_GOALS:
            return cls(bounced, bounced)

        def link(switch: NDArray[Any], end: NDArray[Any]) -> NDArray[np.intp]:
            """int[n]: the link that a switch's row for another takes."""
            row: NDArray[np.intp] = tables.routes.egress[switch, end].astype(np.intp) % links
            return row

        quadric = np.count_nonzero(far >= 0, axis=1) < links
        beside = quadric[far] & (far >= 0)
        following = np.full(far.shape, -1, np.int32)
        nucleus = beside.all(axis=1)
        for centre in np.flatnonzero(quadric | nucleus):
            ring = far[centre][far[centre] >= 0]
            ring = ring[~nucleus[ring]]
            following[ring, link(ring, np.full(len(ring), centre))] = np.roll(ring, -1)
        goal = _in_turn(following)

        switch, back = np.nonzero(far >= 0)
        sender = far[switch, back]
        end = goal[sender, link(sender, switch)]
        some = end >= 0
        switch, back = switch[some], back[some]
        bounced[switch, back, link(switch, end[some])] = True
        lonely = ~quadric & ~beside.any(axis=1)
        bounced |= beside[..., None] & (lonely[far] & (far >= 0))[:, None, :]
        repairing = (following >= 0)[..., None] & (following[..., None] == goal[:, None, :])
        return cls(bounced, repairing)


def _in_turn(following: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[S, K]: the goal of each neighbour, -1: none, from the rings that switches are in.

    Args:
        following: int32[S, K], the next switch in the ring of each neighbour; -1: it has no ring.
    """
    centre = following >= 0
    rings = np.count_nonzero(centre, axis=1)[:, None]
    first = np.argsort(~centre, axis=1, kind="stable")[:, :2]
    turn = np.where(centre, np.cumsum(centre, axis=1), np.cumsum(~centre, axis=1) - 1)
    goal = np.take_along_axis(
        following, np.take_along_axis(first, turn % 2 % np.maximum(rings, 1), 1), 1
    )
    return np.where((rings == 0) | (centre & (rings == 1)), np.int32(-1), goal)
