"""`compact-valiant`: hosts' packets go by a neighbour of their switch, and minimally from there."""

from __future__ import annotations

from types import MappingProxyType

from compilers.spec.balance_words import DEMAND_FILE, MEASURED
from compilers.spec.balances import Balance, Carried
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology

FITTED = f", adjacent: bounce, demand: {DEMAND_FILE}"
"""What can follow a demand in every family."""


class CompactValiant(Balance):
    """Compact Valiant (PolarFly paper, §VII-B): alternates are as `Balance` has them."""

    name = "compact-valiant"
    place = 3
    figures = MappingProxyType({"": Carried(68, 37, 13), FITTED: Carried(100, 86, None)})

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """Traffic that was measured, to which shares are fitted."""
        return FITTED if traffic == MEASURED else None
