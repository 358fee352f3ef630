"""What a fabric asks of its routing, and the passes that give it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


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
