"""Alternates: the ports that share a switch's ingress traffic.

Compact Valiant (PolarFly paper, §VII-B) sends a packet to a neighbour of its source and minimally
from there. In ER_q the set of alternates of a pair depends on the source s and the minimal port
alone: with the minimal path s–x–d, every other neighbour r of s gives s–r–(r×d)–d, exactly 3 links,
never through s again, and the alternates are internally disjoint. So they are a property of the
class. If neither s nor x is a quadric, the one through the apex r = s×x shares the last link x–d.

Between adjacent switches the paper has the minimal path alone. With bounces every other neighbour
serves them, too: over the apex in 2 links, else in 4, as r bounces what comes from s
(`compilers.routing.bounces.conic_bounces`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Classes, Tables
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    counts,
)
from compilers.topology.triangles import apex_links
from compilers.wiring.wiring import Wiring

LARGEST_WEIGHT, MOST = 100, 65535
LINK_PAIRS_AT_ONCE = 1 << 20


def compact_valiant(
    tables: Tables,
    wiring: Wiring,
    edge_disjoint: bool,
    minimal_share: Fraction | None,
    bounces: bool = False,
) -> Tables:
    """Give every class behind a neighbour the other neighbours as alternates.

    Args:
        tables: with separate direct classes (`compilers.routing.split_classes`).
        wiring: the cables.
        edge_disjoint: leave out the alternate that shares a link with the minimal path.
        minimal_share: the minimal path's part of the traffic, None for equal shares.
        bounces: classes that lead to the neighbour itself have the others, too.
    """
    packed = alternate_links(wiring, edge_disjoint, bounces)
    return replace(tables, classes=spread(tables.classes, wiring, packed, minimal_share))


def alternate_links(wiring: Wiring, edge_disjoint: bool, bounces: bool) -> NDArray[np.uint8]:
    """uint8[S, 2K, ⌈K/8⌉]: the links of alternates, as in `AlternateLinks`; arguments as above."""
    order, links = wiring.port.shape
    packed = np.zeros((order, 2 * links, (links + 7) // 8), np.uint8)
    apex = apex_of(wiring)
    for some in link_blocks(wiring):
        usable = other_links(wiring.far[some])
        if bounces:
            packed[some, links:] = np.packbits(usable, axis=2)
        if edge_disjoint:
            usable &= ~apexes(apex[some])
        packed[some, :links] = np.packbits(usable, axis=2)
    return packed


def spread(
    classes: Classes, wiring: Wiring, links: NDArray[np.uint8], minimal_share: Fraction | None
) -> Classes:
    """Classes with alternates over these links, as in `AlternateLinks`, packed where many."""
    weight = weight_pairs(counts(links), minimal_share)
    packed = AlternateLinks(links, wiring.port.astype(np.uint16), weight)
    ports = AlternatePorts(packed)
    weights = AlternateWeights(packed, ports.shape[2])
    return replace(classes, alternate=unless_large(ports), weight=unless_large(weights))


@lru_cache(maxsize=1)
def apex_of(wiring: Wiring) -> NDArray[np.int16]:
    """int16[S, K]: `compilers.topology.triangles.apex_links` of a fabric."""
    return apex_links(wiring.far)


def link_blocks(wiring: Wiring) -> Iterator[slice]:
    """Ranges of switches that have about a million pairs of links."""
    order, links = wiring.far.shape
    step = max(1, LINK_PAIRS_AT_ONCE // max(1, links * links))
    for first in range(0, order, step):
        yield slice(first, first + step)


def other_links(far: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[n, K, K]: whether links k and j of a switch both exist and differ."""
    present = far >= 0
    found: NDArray[np.bool_] = present[:, :, None] & present[:, None, :]
    number = np.arange(far.shape[1])
    found[:, number, number] = False
    return found


def apexes(apex: NDArray[np.int16]) -> NDArray[np.bool_]:
    """bool[n, K, K]: whether the j-th and the k-th neighbour are cabled to each other.

    In ER_q that is at most one j for each k, the apex of the triangle on link k.

    Args:
        apex: int16[n, K], `compilers.topology.triangles.apex_links` of some switches.
    """
    result = np.zeros((*apex.shape, apex.shape[1]), np.bool_)
    s, k = np.nonzero(apex >= 0)
    result[s, k, apex[s, k]] = True
    return result


def weight_pairs(
    alternates: NDArray[np.integer], minimal_share: Fraction | None
) -> NDArray[np.uint16]:
    """uint16[S, C, 2]: whole weights of the minimal port and of each alternate.

    Args:
        alternates: int[S, C], the number of alternates of each class.
        minimal_share: the minimal port's part, None for one share each.
    """
    result = np.ones((*alternates.shape, 2), np.uint16)
    if minimal_share is not None:
        for count in np.unique(alternates[alternates > 0]).tolist():
            where = alternates == count
            result[where] = _ratio(minimal_share, count)
    return result


def _ratio(minimal_share: Fraction, alternates: int) -> tuple[int, int]:
    """The weight of the minimal port, and that of each alternate."""
    if minimal_share == 1:
        return 1, 0
    ratio = minimal_share * alternates / (1 - minimal_share)
    if ratio > LARGEST_WEIGHT:
        whole = Fraction(min(round(ratio), MOST))
    elif 0 < ratio < Fraction(1, LARGEST_WEIGHT):
        whole = Fraction(1, min(round(1 / ratio), MOST))
    else:
        whole = ratio.limit_denominator(LARGEST_WEIGHT)
    return whole.numerator, whole.denominator
