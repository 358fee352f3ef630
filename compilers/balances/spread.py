"""The balance `spread`: packets take two random links, one after the other, then shortest paths.

The first switch sends a packet to a random neighbour and marks it. That neighbour sends it on
by another random link, and from there it takes shortest paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.spec.balance_words import ANY, fixed_share_findings
from compilers.spec.balances import NO_OTHER_KEYS, ROUTING, Balance, HostThroughput
from compilers.spec.forwarding import Forwarding
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec

REFUSED_FAMILY = "pn"
"""The family that is refused. There `spread` would carry as much as `valiant` only if a packet kept
its mark over two links instead of one."""


class Spread(Balance):
    """Marked spread: a mark in the packet tells the second switch to choose a random link, too.

    `figures` are in per cent of the link's rate, in `balance_words.FIGURES_FABRIC`. The rule of
    marks is in `compilers.routing.marked_spread`.

    Fabrics whose switches have too few links are refused by `marked_spread.require_onward`.
    """

    name = "spread"
    place = 6  # in lists of balances
    forwarding = Forwarding(alternates="all", marks=True)
    figures = MappingProxyType(
        {NO_OTHER_KEYS: HostThroughput(uniform=52, random_hosts=49, guaranteed=46)}
    )

    def problems(self, routing: RoutingSpec) -> Iterator[Finding]:
        """Yield findings about values that ask for other shares: marked packets take all links."""
        yield from fixed_share_findings(routing)

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:
        """Return NO_OTHER_KEYS if `spread` is recommended for traffic ANY, else None.

        It is recommended if the family's formula says that no other balance guarantees much more.
        """
        suits = traffic == ANY and family.marks_suit_any_traffic(topology.parameters)
        return NO_OTHER_KEYS if suits else None

    def unfit(
        self, routing: RoutingSpec, family: Family, parameters: Parameters
    ) -> Iterator[Finding]:
        """Refuse REFUSED_FAMILY, for the reason given there."""
        del routing, parameters
        if family.name == REFUSED_FAMILY:
            required = f"another balance in a {family.name}"
            todo = "write valiant: it carries every permutation"
            yield Finding(ROUTING, required, self.name, todo)
