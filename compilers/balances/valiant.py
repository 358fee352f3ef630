"""The balance `valiant`: packets go by an intermediate switch, drawn at random where they enter."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from compilers.spec.balance_words import ANY, fixed_share_findings
from compilers.spec.balances import NO_OTHER_KEYS, ROUTING, Balance, HostThroughput
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import EQUAL_COST
from compilers.topology.families import family_of
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Valiant(Balance):
    """Valiant's routing (`compilers.routing.intermediates`)."""

    name = "valiant"
    place = 4  # in lists of balances
    forwarding = Forwarding(intermediates=True)
    figures = MappingProxyType(
        {NO_OTHER_KEYS: HostThroughput(uniform=51, random_hosts=51, guaranteed=51)}
    )

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Yield findings about values that ask for unequal shares of intermediates."""
        yield from fixed_share_findings(routing)
        if routing.minimal_share != EQUAL_COST:
            required = f"{EQUAL_COST} with `balance: {self.name}`"
            todo = "remove it: each intermediate is drawn as often as another"
            given = routing.minimal_share
            yield Finding(("routing", "minimal_share"), required, given, todo)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """Return keys for any traffic, where every switch has hosts and can be an intermediate."""
        every_switch_has_hosts = topology.endpoints.all()
        return NO_OTHER_KEYS if traffic == ANY and every_switch_has_hosts else None

    def placed(self, topology: Topology, wiring: Any) -> Iterator[Finding]:
        """Refuse fabrics with switches without hosts, which cannot be intermediates.

        A switch that takes the intermediate off forwards the packet like one of its own hosts, and
        needs routes that are proved for hosts. Trees would gain nothing, as all paths go up and
        down anyway.
        """
        without_hosts = np.flatnonzero((wiring.far >= 0).any(axis=1) & ~topology.endpoints)
        if not len(without_hosts):
            return
        todo = "write ecmp, which spreads over all shortest paths, or compact-valiant"
        family = family_of(topology.family)
        if family.marked_share(topology.parameters, hosts=1) is not None:
            todo = "write spread, which carries every permutation"
        yield Finding(
            ROUTING,
            f"another balance in family {topology.family}, where not every switch has hosts",
            f"{self.name}, and {len(without_hosts):,} switches without, such as "
            f"{wiring.names[int(without_hosts[0])]}",
            todo,
        )
