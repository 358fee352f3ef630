"""`spraypoint`: packets take a random link twice, and then shortest paths, in every family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compilers.spec.balance_words import fixed_shares
from compilers.spec.balances import Balance
from compilers.spec.features import INGRESS, MARKS, WEIGHTS
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Spraypoint(Balance):
    """Spraypoint (RNG, arXiv 2604.15261) in the form of `compilers.routing.marked_spread`.

    The stage of a packet is its mark. In PolarFly each link of the second switch leads over another
    neighbour of the destination, so to choose a link is to choose a waypoint. In other graphs the
    waypoint is whichever neighbour the shortest path enters by. What is short of links is refused
    by `marked_spread.require_onward`. It fits no traffic best: where there are marks `spread` has
    the same tables, else `valiant` never carries less than half of uniform traffic.
    """

    name = "spraypoint"
    place = 7
    needs = frozenset({WEIGHTS, INGRESS, MARKS})
    marks = True

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Marked packets take all links alike."""
        yield from fixed_shares(routing)
