"""The balance `ecmp`: packets take all shortest paths equally, and no longer ones.

The ingress switch chooses among the paths; with `transit: ecmp`, every switch does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compilers.spec.balance_words import MEASURED, UNIFORM
from compilers.spec.balances import NO_OTHER_KEYS, ROUTING, Balance
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import EQUAL_COST, LARGEST_SEARCH, constructed_instead_of_searched
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Ecmp(Balance):
    """Equal-cost multipath."""

    name = "ecmp"
    place = 2  # in lists of balances
    forwarding = Forwarding(alternates="shortest")

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Yield findings about values that ask for other paths, or for unequal shares."""
        if routing.transit == self.name and routing.demand:
            required = "no demand with `transit: ecmp`, where every switch shares alike"
            todo = "remove `demand`, or `transit`: shares are fitted where packets enter"
            yield Finding(("routing", "demand"), required, routing.demand, todo)
        for key, value, allowed in (
            ("adjacent", routing.adjacent, "minimal"),
            ("minimal_share", routing.minimal_share, EQUAL_COST),
        ):
            if value != allowed:
                todo = f"remove `{key}`, or choose `balance: compact-valiant`"
                required = f"{allowed} with `balance: {self.name}`"
                yield Finding(("routing", key), required, value, todo)
        if routing.disjoint == "edge":
            required, todo = f"auto or none with `balance: {self.name}`", "remove `disjoint`"
            yield Finding(("routing", "disjoint"), required, "edge", todo)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:
        """Return what a policy says after `balance: ecmp` if this balance suits; else None.

        That is nothing, or `, transit: ecmp`. The balance suits uniform traffic, in families where
        pairs have several shortest paths. In trees, where some switches have no hosts and cannot be
        intermediates, it suits any traffic that is not measured.
        """
        is_tree = not topology.endpoints.all()
        if not is_tree:
            return NO_OTHER_KEYS if traffic == UNIFORM and not family.single else None
        if traffic == MEASURED:
            return None
        # In trees without a formula for `spread`, every switch shares packets.
        spread_has_formula = family.marked_share(topology.parameters, hosts=1) is not None
        return NO_OTHER_KEYS if spread_has_formula else ", transit: ecmp"

    def unfit(
        self, routing: RoutingSpec, family: Family, parameters: Parameters
    ) -> Iterator[Finding]:
        """Yield reasons why a family cannot have this balance.

        There are three reasons: pairs have one shortest path only; alternates are constructed from
        algebra and not searched; or rows lead to whole supernodes, so that packets cannot be shared
        at every hop.
        """
        # PolarFly. In PolarStar rows have one shortest path, too (`single`), but only as they lead
        # to whole supernodes: a search finds alternates for a class that are as short.
        if family.single and family.constructed:
            required = "a family with several shortest paths between two switches"
            given = f"{self.name} in {family.name}, which has one"
            todo = "write minimal, or spread or compact-valiant for longer paths as well"
            yield Finding(ROUTING, required, given, todo)
        elif constructed_instead_of_searched(family, parameters, family.order(parameters)):
            required = f"another balance for more than {LARGEST_SEARCH:,} switches"
            todo = "their alternates are constructed: compact-valiant"
            yield Finding(ROUTING, required, f"{self.name} for {family.order(parameters):,}", todo)
        if routing.transit == self.name and family.by_supernodes:
            required = (
                f"minimal in a {family.name}, whose rows lead to whole supernodes: one path each"
            )
            yield Finding(("routing", "transit"), required, self.name, "remove `transit`")
