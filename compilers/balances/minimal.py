"""The balance `minimal`: one shortest path for every pair of switches."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.spec.balance_words import UNIFORM
from compilers.spec.balances import NO_OTHER_KEYS, Balance, HostThroughput
from compilers.spec.forwarding import Forwarding
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Minimal(Balance):
    """All packets of a pair of switches take one shortest path, so load is not balanced."""

    name = "minimal"
    place = 1  # in lists of balances
    forwarding = Forwarding()
    # Measured, in per cent of a host link's rate; a test repeats it.
    figures = MappingProxyType(
        {NO_OTHER_KEYS: HostThroughput(uniform=100, random_hosts=25, guaranteed=12.5)}
    )

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Refuse `demand` and `adjacent: bounce`: both need alternates, and this balance has none.

        Alternates are further next hops of a class, besides the one on the shortest path.
        """
        if routing.demand:
            todo = "add `balance: compact-valiant`, or remove `demand`"
            required = "a balance with alternates, whose shares are fitted to the demand"
            yield Finding(("routing", "demand"), required, self.name, todo)
        if routing.adjacent == "bounce":
            todo = "add `balance: compact-valiant`, or remove `adjacent`"
            required = f"minimal with `balance: {self.name}`"
            yield Finding(("routing", "adjacent"), required, "bounce", todo)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """Suggest this balance for uniform traffic where pairs have one shortest path.

        It is suggested with no further keys.
        """
        return NO_OTHER_KEYS if traffic == UNIFORM and family.single else None
