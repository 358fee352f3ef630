"""`spread`: packets that leave by an alternate are marked, and the next switch spreads them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.balances.spraypoint import Spraypoint
from compilers.spec.balance_words import ANY
from compilers.spec.balances import ROUTING
from compilers.topology.families import FAMILIES
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Spread(Spraypoint):
    """The same tables where the waypoints are algebra (`compilers.routing.marked_spread`)."""

    name = "spread"
    place = 6
    figures = MappingProxyType({"": (52, 46)})

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
