"""Conic bounces in ER_q: bounce ports for packets that take bounced ways to a neighbour.

s, next to d, may send a packet to any other neighbour r. Unless r is next to d, r's way to d is
back over s; so r bounces it to a neighbour w, from where it takes two links: s–r–w–(w×d)–d. Every w
but s and the apex r×s serves. If the w of all r were on a line, these ways could share their last
link; so they are to be on a conic, of which no line has more than two points. For an r that is no
quadric, with indices modulo 3,

    w = M(s), M(s) = a·s + b·(r×s), b = t·r_i, a = N(r_{i+1}, r_{i+2}), N(x, y) = x² + uxy + vy²

where N has no zero but (0, 0). M permutes the neighbours of r where a² + b²(r·r) ≠ 0, and w is
neither s nor the apex where a, b ≠ 0, unless s is a quadric, which M leaves where it is: such an s
changes places with another neighbour. A quadric r, which is in no triangle, has its neighbours in
turn. At most 7 of these ways share their last link (q from 4 to 31).
"""

from __future__ import annotations

from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from compilers.routing.alternates import link_blocks
from compilers.topology.field import Field, field
from compilers.topology.polarity import point, points
from compilers.wiring.wiring import Wiring

Elements = NDArray[np.int32]


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
    _in_turn(bounced, np.flatnonzero(degree == q), degree)
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


def _in_turn(
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
