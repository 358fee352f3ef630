"""`spread`: packets take a random link twice, and then shortest paths, in any graph."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.spec.balance_words import ANY, fixed_shares
from compilers.spec.balances import ROUTING, Balance, Carried
from compilers.spec.forwarding import Forwarding
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec

REFUSED = "pn"
"""The family where packets would have to stay marked on two links, to carry what valiant does."""


class Spread(Balance):
    """The stage of a packet is its mark (`compilers.routing.marked_spread`).

    What is short of links is refused by `marked_spread.require_onward`.
    """

    name = "spread"
    place = 6
    forwarding = Forwarding(alternates="all", marks=True)
    figures = MappingProxyType({"": Carried(52, 49, 46)})

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Marked packets take all links alike."""
        yield from fixed_shares(routing)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:
        """Any traffic, where a formula says what every permutation gets."""
        known = family.marked_share(topology.parameters, 1)
        return "" if traffic == ANY and known else None

    def unfit(
        self, routing: RoutingSpec, family: Family, parameters: Parameters
    ) -> Iterator[Finding]:
        """PN, where valiant carries as much of every permutation."""
        del routing, parameters
        if family.name == REFUSED:
            required = f"another balance in a {family.name}"
            yield Finding(
                ROUTING, required, self.name, "write valiant: it carries every permutation"
            )
