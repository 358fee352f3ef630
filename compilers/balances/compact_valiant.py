"""The balance `compact-valiant`: packets of hosts go to a random neighbour, then minimally."""

from __future__ import annotations

from types import MappingProxyType

from compilers.spec.balance_words import DEMAND_FILE, MEASURED
from compilers.spec.balances import NO_OTHER_KEYS, Balance, HostThroughput
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology

FITTED = f", adjacent: bounce, demand: {DEMAND_FILE}"
"""The text after the balance's name in a policy whose weights are fitted to measured traffic. With
`adjacent: bounce` packets to neighbours have alternates, too."""


class CompactValiant(Balance):
    """Compact Valiant (PolarFly paper, §VII-B).

    The ingress switch sends a packet to its minimal next hop or to an alternate. Alternates are all
    neighbours whose minimal path does not lead back, the default of `Balance`.
    """

    name = "compact-valiant"
    place = 3  # in lists of balances
    figures = MappingProxyType(
        {
            NO_OTHER_KEYS: HostThroughput(uniform=68, random_hosts=37, guaranteed=13),
            FITTED: HostThroughput(uniform=100, random_hosts=86, guaranteed=None),
        }
    )

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """Return keys for measured traffic only: weights are fitted to it."""
        return FITTED if traffic == MEASURED else None
