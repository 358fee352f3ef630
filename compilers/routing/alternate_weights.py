"""Give egress classes alternates with weights, over the links that a balance has chosen.

What comes in is a set of links for each class, and the part of the traffic that the minimal port
gets. What goes out are the ports of these links, with weights that are whole numbers, as switches
need them. `compilers.routing.choose` and the families' constructions call `with_alternates`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Classes
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    count_set_bits,
)
from compilers.wiring.wiring import Wiring

LARGEST_WEIGHT = 100
"""The largest weight, unless the ratio of two weights has to be larger."""
LARGEST_STORED_WEIGHT = 65535
"""The largest weight that the tables can hold."""


def with_alternates(
    classes: Classes, wiring: Wiring, links: NDArray[np.uint8], minimal_share: Fraction | None
) -> Classes:
    """Return classes with alternates over the chosen links; packed where there are very many.

    Args:
        classes: without alternates; they may have protection.
        wiring: the ports of links.
        links: uint8[S, C, ⌈K/8⌉], one bit for each link, as in `AlternateLinks`.
        minimal_share: the minimal port's part of the traffic; None for equal shares.
    """
    alternate_count = count_set_bits(links)
    weight = weight_pairs(alternate_count, minimal_share)
    packed = AlternateLinks(links, wiring.port.astype(np.uint16), weight)
    ports = AlternatePorts(packed)
    weights = AlternateWeights(packed, ports.shape[2])
    # Plain arrays, unless they would be large: then ports and weights are computed when read.
    return replace(classes, alternate=unless_large(ports), weight=unless_large(weights))


def weight_pairs(
    alternates: NDArray[np.integer], minimal_share: Fraction | None
) -> NDArray[np.uint16]:
    """Return the weights of the minimal port and of each alternate, uint16[S, C, 2].

    Args:
        alternates: int[S, C], the number of alternates of each class.
        minimal_share: the minimal port's part of the traffic; None for equal shares.

    >>> weight_pairs(np.array([[0, 3]]), Fraction(1, 2)).tolist()
    [[[1, 1], [3, 1]]]
    """
    weights = np.ones((*alternates.shape, 2), np.uint16)
    if minimal_share is not None:
        for count in np.unique(alternates[alternates > 0]).tolist():
            weights[alternates == count] = _weight_ratio(minimal_share, count)
    return weights


def _weight_ratio(minimal_share: Fraction, alternates: int) -> tuple[int, int]:
    """Return the weight of the minimal port, and the weight of each alternate.

    Args:
        minimal_share: the minimal port's part of the traffic.
        alternates: the number of alternates, which share the rest equally.
    """
    if minimal_share == 1:
        return 1, 0
    # The weight of the minimal port to that of one alternate. Large weights make switches need many
    # buckets, so the ratio is rounded to one of weights up to LARGEST_WEIGHT. Beyond that range one
    # of the two weights is 1, and the other one as large as needed.
    ratio = minimal_share * alternates / (1 - minimal_share)
    if ratio > LARGEST_WEIGHT:
        rounded = Fraction(min(round(ratio), LARGEST_STORED_WEIGHT))
    elif 0 < ratio < Fraction(1, LARGEST_WEIGHT):
        rounded = Fraction(1, min(round(1 / ratio), LARGEST_STORED_WEIGHT))
    else:
        rounded = ratio.limit_denominator(LARGEST_WEIGHT)
    return rounded.numerator, rounded.denominator
