"""Routing policy as numbers: alternates, repair, and how far a search for them goes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

CONSTRUCTED = ("polarfly",)
"""Families whose alternates and repair are constructed; those of the others are searched for."""
LARGEST_SEARCH = 8192
"""Switches of the largest fabric whose alternates and repair are searched for."""

PROMISED = {"none": (), "link": ("link",), "node": ("link", "node")}
"""Failures, one at a time, that lose no pair that is still joined, by the word of `protect`."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Alternates for entering packets or not, and repair in the switch or not.

    minimal_share: the minimal path's part of the traffic, None for as much as each alternate.
    edge_disjoint: whether alternates that share a link with the minimal path are left out.
    """

    balances: bool
    protects: bool
    edge_disjoint: bool = True
    minimal_share: Fraction | None = None
