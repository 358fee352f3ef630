"""The first two repair or bounce links of each egress class, other than its minimal link.

A class may list its minimal link, or a link twice. The proofs of PolarFly and PolarStar ask only
for the links that a packet can take while the minimal one is down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_LINK = -1
"""In place of a link: there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstAlternatives:
    """Of the links that each class lists, the first two other than its minimal link."""

    first_link: NDArray[Any]
    """int[S, C], the first one; NO_LINK: there is none."""
    second_link: NDArray[Any]
    """int[S, C], the second one; NO_LINK: there is none."""


def first_alternatives(links: NDArray[Any], minimal: NDArray[Any]) -> FirstAlternatives:
    """Of links that classes list, the first two other than the minimal one.

    Args:
        links: int[S, C, n], the links that each class lists, in order, or NO_LINK.
        minimal: int[S, C], the minimal link of each class.

    >>> some = first_alternatives(np.array([[[2, 5, 5, 7]]]), np.array([[2]]))
    >>> some.first_link.tolist(), some.second_link.tolist()
    ([[5]], [[7]])
    """
    first = np.full(minimal.shape, NO_LINK, links.dtype)
    second = first.copy()
    for link in np.moveaxis(links, 2, 0):
        is_new = (link != NO_LINK) & (link != minimal) & (link != first)
        has_first, has_second = first != NO_LINK, second != NO_LINK
        second = np.where(is_new & has_first & ~has_second, link, second)
        first = np.where(is_new & ~has_first, link, first)
    return FirstAlternatives(first, second)
