"""Alternates: the ports that share a switch's ingress traffic.

Compact Valiant (PolarFly paper, §VII-B) sends a packet to a neighbour of its source and minimally
from there. In ER_q the set of alternates of a pair depends on the source s and the minimal port
alone: with the minimal path s–x–d, every other neighbour r of s gives s–r–(r×d)–d, exactly 3 links,
never through s again, and the alternates are internally disjoint. So they are a property of the
class. If neither s nor x is a quadric, the one through the apex r = s×x shares the last link x–d.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from compilers.routing.port_ranking import ranked
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring

LARGEST_WEIGHT, MOST = 100, 65535


def compact_valiant(
    tables: Tables, wiring: Wiring, edge_disjoint: bool, minimal_share: Fraction | None
) -> Tables:
    """Give every class behind a neighbour the other neighbours as alternates.

    Args:
        tables: with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        edge_disjoint: leave out the alternate that shares a link with the minimal path.
        minimal_share: the minimal path's part of the traffic, None for equal shares.
    """
    usable = other_links(wiring)
    if edge_disjoint:
        usable &= ~apexes(wiring)
    kept = max(1, int(usable.sum(axis=2).max()))
    port = ranked(usable, wiring.port, wiring, kept, turn=False)
    none = np.zeros_like(port)
    alternate = np.concatenate((port, none), axis=1)
    return replace(
        tables,
        classes=replace(
            tables.classes,
            alternate=alternate,
            weight=weights(np.count_nonzero(alternate, axis=2), kept, minimal_share),
        ),
    )


def other_links(wiring: Wiring) -> NDArray[np.bool_]:
    """bool[S, K, K]: whether links k and j of a switch both exist and differ."""
    links = wiring.port.shape[1]
    present = wiring.far >= 0
    return present[:, :, None] & present[:, None, :] & ~np.eye(links, dtype=bool)


def apexes(wiring: Wiring) -> NDArray[np.bool_]:
    """bool[S, K, K]: whether the j-th and the k-th neighbour are cabled to each other.

    In ER_q that is at most one j for each k, the apex of the triangle on link k.
    """
    order, links = wiring.far.shape
    result = np.zeros((order, links, links), np.bool_)
    link_to = np.full(order + 1, -1)
    for s, far in enumerate(wiring.far):
        near = far[far >= 0]
        link_to[near] = np.arange(len(near))
        # A missing neighbour, -1, reads the last entry, which is never a link.
        meets = link_to[wiring.far[near]]
        k, j = np.nonzero(meets >= 0)
        result[s, k, meets[k, j]] = True
        link_to[near] = -1
    return result


def weights(
    alternates: NDArray[np.integer], most: int, minimal_share: Fraction | None
) -> NDArray[np.uint16]:
    """uint16[S, C, 1 + most]: whole weights of the minimal port and of each alternate.

    Args:
        alternates: int[S, C], the number of alternates of each class.
        most: A, the width of `Classes.alternate`.
        minimal_share: the minimal port's part, None for one share each.
    """
    result = np.zeros((*alternates.shape, 1 + most), np.uint16)
    result[..., 0] = 1
    result[..., 1:] = np.arange(most) < alternates[..., None]
    if minimal_share is not None:
        for count in np.unique(alternates[alternates > 0]).tolist():
            where = alternates == count
            result[where] *= _ratio(minimal_share, count, most)
    return result


def _ratio(minimal_share: Fraction, alternates: int, most: int) -> NDArray[np.uint16]:
    """uint16[1 + most]: the weight of the minimal port, then that of each alternate."""
    if minimal_share == 1:
        return np.array([1] + [0] * most, np.uint16)
    ratio = minimal_share * alternates / (1 - minimal_share)
    if ratio > LARGEST_WEIGHT:
        whole = Fraction(min(round(ratio), MOST))
    elif 0 < ratio < Fraction(1, LARGEST_WEIGHT):
        whole = Fraction(1, min(round(1 / ratio), MOST))
    else:
        whole = ratio.limit_denominator(LARGEST_WEIGHT)
    return np.array([whole.numerator] + [whole.denominator] * most, np.uint16)
