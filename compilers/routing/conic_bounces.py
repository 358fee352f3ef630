"""Bounces in ER_q over conics, so that few bounced paths to a neighbour share their last link.

A switch *bounces* a packet if the packet's next hop is the switch from which it came: then it sends
the packet by another link. What comes in is the wiring of a whole ER_q. What goes out is, for each
link of each switch, the link by which the switch bounces packets from there. The family PolarFly
calls `conic_bounces` for balances with bounced paths.

*The problem.* A switch s next to d may send a packet for d to any other neighbour r. Unless r is
next to d, the path from r to d leads back over s. So r bounces the packet to a neighbour w, and
from there it takes two links: s–r–w–(w×d)–d. Any w but s and the apex r×s will do. If the switches
w of all r were on one line, these paths could share their last link. So they are chosen on a conic,
which has at most two points on any line.

*The formula.* If r is no quadric, then w is the image M(s) of s. With indices modulo 3,

    M(s) = a·s + b·(r×s), with b = t·r_i and a = N(r_{i+1}, r_{i+2}), N(x, y) = x² + uxy + vy²

where N has no zero but (0, 0). M permutes the neighbours of r if a² + b²(r·r) ≠ 0. If a, b ≠ 0 then
w is neither s nor the apex, unless s is a quadric. The index i and the element t ≠ 0 are the first
for which a and b meet both conditions. For a few points r, such as (0, 0, 1), none do; there
constants a = 1 and b = t are taken, which meet them from q = 4 on. M maps a quadric to itself, so
its image is exchanged with the image of another neighbour. If r is a quadric, it is in no triangle,
and bounces the packets of its k-th link over a link some places after the k-th.

At most 8 of these paths share their last link (q from 4 to 31; 8 at q = 29, else 7).
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_pairs import link_blocks
from compilers.topology.field import Field, field
from compilers.topology.polarity import point, points
from compilers.wiring.wiring import Wiring

CONSTANTS = 3
"""In place of the index i in the formula: a = 1 and b = t, where no i gives valid a and b."""
Elements = NDArray[np.int32]
"""Elements of F_q, or vectors of them."""


def conic_bounces(q: int, wiring: Wiring) -> NDArray[np.int16]:
    """int16[S, K]: the link of a switch over which it bounces what came in on link k.

    -1 where there is no link, and at q = 2, where some points have no such M.

    Args:
        q: of a whole ER_q.
        wiring: its cables, links in the order of the neighbours' numbers.
    """
    far = wiring.far
    degree = np.count_nonzero(far >= 0, axis=1)
    is_quadric = degree == q
    a, b = _coefficients(field(q), points(q))
    bounced = np.full(far.shape, -1, np.int16)
    for switches in link_blocks(wiring):
        image = _images(q, switches, far[switches], a[switches], b[switches])
        is_image = image[..., None] == far[switches, None]
        bounced[switches] = np.where(is_image.any(axis=2), is_image.argmax(axis=2), -1)
    _bounce_by_shift(bounced, np.flatnonzero(is_quadric), degree)
    has_no_map = ~is_quadric & (b == 0)
    bounced[(far < 0) | has_no_map[:, None]] = -1
    _exchange_fixed_links(bounced, degree)
    return bounced


def _images(q: int, switches: slice, far: NDArray[np.int32], a: Elements, b: Elements) -> Elements:
    """Return the points M(s) = a·s + b·(r×s) for the neighbours s of switches r, int32[n, K].

    Args:
        q: of the field.
        switches: a range of n switches.
        far: int32[n, K], their neighbours.
        a: int32[n], the first coefficient of each.
        b: int32[n], the second one.
    """
    gf, vectors = field(q), points(q)
    s = vectors[far]
    r = np.broadcast_to(vectors[switches, None], s.shape)
    along_s = gf.mul[a[:, None, None], s]
    along_cross = gf.mul[b[:, None, None], _cross(gf, r, s)]
    return point(q, gf.add[along_s, along_cross])


def _cross(gf: Field, r: Elements, s: Elements) -> Elements:
    """The cross products of vectors, int32[…, 3]: part i is r_{i+1} s_{i+2} - r_{i+2} s_{i+1}."""
    r1, r2 = np.roll(r, -1, axis=-1), np.roll(r, -2, axis=-1)
    s1, s2 = np.roll(s, -1, axis=-1), np.roll(s, -2, axis=-1)
    cross: Elements = gf.add[gf.mul[r1, s2], gf.neg[gf.mul[r2, s1]]]
    return cross


def _coefficients(gf: Field, r: Elements) -> tuple[Elements, Elements]:
    """Return the coefficients a and b of every point, int32[N] each; both are 0 for quadrics.

    Args:
        gf: the field.
        r: int32[N, 3], the vectors of the points.
    """
    u, v = _form_without_zeros(gf)
    a, b = np.zeros((2, len(r)), np.int32)
    squares = gf.mul[r, r]
    dot = gf.add[gf.add[squares[:, 0], squares[:, 1]], squares[:, 2]]
    missing = np.flatnonzero(dot)  # the points without coefficients so far
    for i, t in product((0, 1, 2, CONSTANTS), range(1, gf.q)):
        if i == CONSTANTS:
            new_a, new_b = np.ones_like(missing), np.full_like(missing, t)
        else:
            x, y, z = r[missing, (i + 1) % 3], r[missing, (i + 2) % 3], r[missing, i]
            new_a = gf.add[gf.add[gf.mul[x, x], gf.mul[u, gf.mul[x, y]]], gf.mul[v, gf.mul[y, y]]]
            new_b = gf.mul[t, z]
        norm = gf.add[gf.mul[new_a, new_a], gf.mul[gf.mul[new_b, new_b], dot[missing]]]
        is_valid = (new_a > 0) & (new_b > 0) & (norm > 0)
        a[missing[is_valid]], b[missing[is_valid]] = new_a[is_valid], new_b[is_valid]
        missing = missing[~is_valid]
    return a, b


def _form_without_zeros(gf: Field) -> tuple[int, int]:
    """Return u and v such that x² + ux + v has no zero: the least v, and for it the least u."""
    x = np.arange(gf.q)
    for v, u in product(range(1, gf.q), range(gf.q)):
        if gf.add[gf.add[gf.mul[x, x], gf.mul[u, x]], v].all():
            return u, v
    raise ValueError(gf.q)


def _bounce_by_shift(
    bounced: NDArray[np.int16], quadrics: NDArray[np.int64], degree: NDArray[np.int64]
) -> None:
    """Let each quadric bounce packets of its k-th link over its (k + shift)-th link.

    The shift depends on the number of the quadric, so that quadrics use different shifts.

    Args:
        bounced: int16[S, K], where the rows of quadrics are written.
        quadrics: int64[n], the quadrics.
        degree: int64[S], the number of links of each switch.
    """
    count = degree[quadrics, None]
    shift = 1 + quadrics[:, None] % (count - 1)
    bounced[quadrics] = (np.arange(bounced.shape[1]) + shift) % count


def _exchange_fixed_links(bounced: NDArray[np.int16], degree: NDArray[np.int64]) -> None:
    """For each link that would bounce packets over itself, exchange its image and another link's.

    Args:
        bounced: int16[S, K], is changed.
        degree: int64[S], the number of links of each switch.
    """
    switch, link = np.nonzero(bounced == np.arange(bounced.shape[1]))
    for r, k in zip(switch.tolist(), link.tolist(), strict=True):
        if bounced[r, k] != k:
            continue  # an earlier exchange has changed it
        count = int(degree[r])
        partner = (k + 1 + _scattered(r) % (count - 1)) % count
        bounced[r, [k, partner]] = bounced[r, [partner, k]]


def _scattered(switch: int) -> int:
    """A hash of a switch's number, so that switches with neighbouring numbers choose different
    links.

    The module text states how many bounced paths a link carries. That holds with this hash.
    """
    return switch * switch + switch // 7
