"""`spread`: packets that leave by an alternate are marked, and the next switch spreads them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.spec.balance_words import ANY, fixed_shares
from compilers.spec.balances import ROUTING, Balance
from compilers.spec.features import INGRESS, MARKS, WEIGHTS
from compilers.topology.families import FAMILIES
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Spread(Balance):
    """Marked packets (`compilers.routing.marked_spread`)."""

    name = "spread"
    place = 6
    needs = frozenset({WEIGHTS, INGRESS, MARKS})
    marks = True
    figures = MappingProxyType({"": (52, 46)})

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Marked packets take all links alike."""
        yield from fixed_shares(routing)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:
        """Any traffic, where packets can be marked."""
        return "" if traffic == ANY and family.has_marks(topology.parameters) else None

    def unfit(
        self,
        routing: RoutingSpec,
        family: Family,
        parameters: Parameters,
    ) -> Iterator[Finding]:
        """Families without marks, or too small for them."""
        del routing
        if family.has_marks(parameters):
            return
        q = int(parameters.get("q", 0))
        required = f"a balance without marks in a {family.name}" + f" of q={q}" * bool(q)
        able = ", ".join(
            f"{name} from q={each.least_marked} on"
            for name, each in FAMILIES.items()
            if each.least_marked is not None and name == each.name
        )
        todo = f"write valiant or compact-valiant: packets are marked in {able}"
        yield Finding(ROUTING, required, self.name, todo)
