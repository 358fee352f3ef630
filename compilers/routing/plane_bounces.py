"""Bounces in ER_q: where packets go that came in on the port that they would leave by.

**Goals**: repairs that lose nothing under any two failures, with the same rows.

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

**Conics**: bounce ports for packets that take bounced paths to a neighbour.

s, next to d, may send a packet to any other neighbour r. Unless r is next to d, r's path to d is
back over s; so r bounces it to a neighbour w, from where it takes two links: s–r–w–(w×d)–d. Every w
but s and the apex r×s serves. If the w of all r were on a line, these paths could share their last
link; so they are to be on a conic, of which no line has more than two points. For an r that is no
quadric, with indices modulo 3,

    w = M(s), M(s) = a·s + b·(r×s), b = t·r_i, a = N(r_{i+1}, r_{i+2}), N(x, y) = x² + uxy + vy²

where N has no zero but (0, 0). M permutes the neighbours of r where a² + b²(r·r) ≠ 0, and w is
neither s nor the apex where a, b ≠ 0, unless s is a quadric, which M leaves where it is: such an s
changes places with another neighbour. A quadric r, which is in no triangle, has its neighbours in
turn. At most 7 of these paths share their last link (q from 4 to 31).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import link_blocks
from compilers.tables.intermediate_form import Tables
from compilers.topology.field import Field, field
from compilers.topology.polarity import point, points
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
Elements = NDArray[np.int32]
SMALLEST_WITH_GOALS = 3
"""The smallest q; at q = 2 a quadric has two links only."""


@dataclass(frozen=True, slots=True, eq=False)
class BounceGoals:
    """The links that come first in the orders of repair, of S switches with K links."""

    bounced: NDArray[np.int16]
    """int16[S, K], the link for packets that came in on a link and would go back over it; -1 where
    any will do."""
    quadrics: Bits
    """bool[S, K], whether the neighbour is a quadric."""
    lonely: Bits
    """bool[S, K], neighbours without a quadric next to them; packets from quadrics go there."""
    following: NDArray[np.int32]
    """int32[S, K], the next neighbour in the ring; -1 for none."""
    goal: NDArray[np.int32]
    """int32[S, K], the goal of the neighbour; -1 for none."""

    @classmethod
    def of(
        cls, tables: Tables, wiring: Wiring, module: NDArray[np.int32] | None = None
    ) -> BounceGoals:
        """The goals of a whole ER_q, from minimal tables with direct classes.

        module: int32[S, K], the module of its switch that each link is on. With several, the next
        in a ring is on another module, and the goals of each module's links take turns.
        """
        far = wiring.far
        module = np.zeros(far.shape, np.int32) if module is None else module
        links = far.shape[1]
        bounced, none = np.full(far.shape, -1, np.int16), np.zeros(far.shape, np.bool_)
        if links <= SMALLEST_WITH_GOALS:
            unset = np.full(far.shape, -1, np.int32)
            return cls(bounced, none, none, unset, unset)

        def link(switch: NDArray[Any], end: NDArray[Any]) -> NDArray[np.intp]:
            """int[n]: the link that a switch's row for another takes."""
            row: NDArray[np.intp] = tables.routes.egress[switch, end].astype(np.intp) % links
            return row

        quadric = np.count_nonzero(far >= 0, axis=1) < links
        quadrics = quadric[far] & (far >= 0)
        following = np.full(far.shape, -1, np.int32)
        nucleus = quadrics.all(axis=1)
        for centre in np.flatnonzero(quadric | nucleus):
            ring = far[centre][far[centre] >= 0]
            at = module[centre, : len(ring)][~nucleus[ring]]
            ring = ring[~nucleus[ring]]
            ring, after = _ring(ring, at)
            following[ring, link(ring, np.full(len(ring), centre))] = after
        goal = _in_turn(following, module)

        switch, back = np.nonzero(far >= 0)
        sender = far[switch, back]
        there = np.empty_like(back)  # the links by which senders lead to the switch
        there[np.argsort(sender, kind="stable")] = back
        end = goal[sender, there]
        some = end >= 0
        switch, back = switch[some], back[some]
        bounced[switch, back] = link(switch, end[some])
        lonely = ~quadric & ~quadrics.any(axis=1)
        return cls(bounced, quadrics, lonely[far] & (far >= 0), following, goal)

    def bouncing(self, some: slice) -> Bits:
        """bool[n, K, K]: by link of some switches, those over which packets bounce first."""
        first = self.quadrics[some, :, None] & self.lonely[some, None, :]
        s, k = np.nonzero(self.bounced[some] >= 0)
        first[s, k, self.bounced[some][s, k]] = True
        return first

    def repairing(self, some: slice) -> Bits:
        """bool[n, K, K]: by link of some switches, those that repair its direct class first.

        Their goal is the next in the ring of the quadric on that link.
        """
        following = self.following[some]
        first = np.zeros((*following.shape, following.shape[1]), np.bool_)
        s, k = np.nonzero(following >= 0)
        first[s, k] = following[s, k][:, None] == self.goal[some][s]
        return first


def _ring(ring: NDArray[np.int32], module: NDArray[np.int32]) -> tuple[Any, Any]:
    """Switches and the next of each, on another module where that can be, never one another's next.

    Those of one module take every other place of the ring, the largest module first.
    """
    size = np.bincount(module - module.min())[module - module.min()]
    if size[0] < len(ring):
        place = np.arange(len(ring))
        place = np.concatenate((place[::2], place[1::2]))
        ring, module = ring[(order := np.lexsort((ring, module, -size)))], module[order]
        ring, module = ring[(order := np.argsort(place))], module[order]
    after = np.roll(ring, -1)
    odd = len(ring) % 2 and len(ring) > SMALLEST_WITH_GOALS
    if odd and size[0] < len(ring) and module[-1] == module[0]:
        after[-1], after[-2] = ring[1], ring[0]
    return ring, after


def _in_turn(following: NDArray[np.int32], module: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[S, K]: the goal of each neighbour, -1: none, from the rings that switches are in.

    Args:
        following: int32[S, K], the next switch in the ring of each neighbour; -1: it has no ring.
        module: int32[S, K], the links of each of which take turns.
    """
    centre = following >= 0
    rings = np.count_nonzero(centre, axis=1)[:, None]
    first = np.argsort(~centre, axis=1, kind="stable")[:, :2]
    turn = np.zeros(following.shape, np.int64)
    for number in range(int(module.max(initial=0)) + 1):
        own = module == number
        turn += own * (np.cumsum(own & ~centre, axis=1) - 1)
    turn = np.where(centre, np.cumsum(centre, axis=1), turn)
    goal = np.take_along_axis(
        following, np.take_along_axis(first, turn % 2 % np.maximum(rings, 1), 1), 1
    )
    return np.where((rings == 0) | (centre & (rings == 1)), np.int32(-1), goal)


def conic_bounces(q: int, wiring: Wiring) -> NDArray[np.int16]:
    """int16[S, K]: the link of a switch over which it bounces what came in on link k.

    -1 where there is no link, and at q = 2, where some points have no such M.

    Args:
        q: of a whole ER_q.
        wiring: its cables, links in the order of the neighbours' numbers.
    """
    f, vector, far = field(q), points(q), wiring.far
    degree = np.count_nonzero(far >= 0, axis=1)
    first, second = _coefficients(f, vector)
    bounced = np.full(far.shape, -1, np.int16)
    for some in link_blocks(wiring):
        s, r = vector[far[some]], np.broadcast_to(vector[some, None], (*far[some].shape, 3))
        moved = f.add[
            f.mul[first[some, None, None], s], f.mul[second[some, None, None], _cross(f, r, s)]
        ]
        there = point(q, moved)[..., None] == far[some, None]
        bounced[some] = np.where(there.any(axis=2), there.argmax(axis=2), -1)
    _of_quadrics(bounced, np.flatnonzero(degree == q), degree)
    bounced[(far < 0) | ((degree > q) & (second == 0))[:, None]] = -1
    _exchanged(bounced, degree)
    return bounced


def _cross(f: Field, r: Elements, s: Elements) -> Elements:
    """int32[…, 3]: the cross products of vectors."""
    one, two = np.roll(r, -1, axis=-1), np.roll(s, -1, axis=-1)
    # Each part of r×s is r_{i+1} s_{i+2} - r_{i+2} s_{i+1}.
    here = f.mul[r, two], f.mul[one, s]
    return np.roll(f.add[here[0], f.neg[here[1]]], -1, axis=-1)


def _coefficients(f: Field, r: Elements) -> tuple[Elements, Elements]:
    """A and b of every point, int32[N] each; 0 and 0 of quadrics."""
    u, v = _without_zeros(f)
    a, b = np.zeros((2, len(r)), np.int32)
    dot = f.add[f.add[f.mul[r[:, 0], r[:, 0]], f.mul[r[:, 1], r[:, 1]]], f.mul[r[:, 2], r[:, 2]]]
    left = np.flatnonzero(dot)
    # Of a few points, such as (0, 0, 1), none of the forms will do; constants will from q = 4 on.
    for i, t in chain(product(range(3), range(1, f.q)), product([3], range(1, f.q))):
        form, over = np.ones_like(left), np.full_like(left, t)
        if i < 3:
            x, y, z = (r[left, (i + place) % 3] for place in (1, 2, 0))
            form = f.add[f.add[f.mul[x, x], f.mul[u, f.mul[x, y]]], f.mul[v, f.mul[y, y]]]
            over = f.mul[t, z]
        size = f.add[f.mul[form, form], f.mul[f.mul[over, over], dot[left]]]
        good = (form > 0) & (over > 0) & (size > 0)
        a[left[good]], b[left[good]] = form[good], over[good]
        left = left[~good]
    return a, b


def _without_zeros(f: Field) -> tuple[int, int]:
    """U and v, the least v and then u, such that x² + ux + v has no zero."""
    x = np.arange(f.q)
    pairs = product(range(1, f.q), range(f.q))
    return next((u, v) for v, u in pairs if f.add[f.add[f.mul[x, x], f.mul[u, x]], v].all())


def _of_quadrics(
    bounced: NDArray[np.int16], quadrics: NDArray[np.int64], degree: NDArray[np.int64]
) -> None:
    """The neighbours of quadrics in turn, each by so many places as its number says."""
    count = degree[quadrics, None]
    shift = 1 + quadrics[:, None] % (count - 1)
    bounced[quadrics] = (np.arange(bounced.shape[1]) + shift) % count


def _exchanged(bounced: NDArray[np.int16], degree: NDArray[np.int64]) -> None:
    """Links that would bounce to themselves exchange images with another of their switch."""
    switch, link = np.nonzero(bounced == np.arange(bounced.shape[1]))
    for r, k in zip(switch.tolist(), link.tolist(), strict=True):
        if bounced[r, k] == k:
            count = int(degree[r])
            j = (k + 1 + (r * r + r // 7) % (count - 1)) % count
            bounced[r, [k, j]] = bounced[r, [j, k]]
