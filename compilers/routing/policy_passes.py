"""The passes after minimal routes: classes, alternates, protection, as the policy asks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.routing.search import alternate_search
from compilers.routing.split_classes import split_direct
from compilers.spec.policy import LARGEST_SEARCH, Policy
from compilers.tables.intermediate_form import Tables
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused


def choices(
    tables: Tables,
    topology: Topology,
    wiring: Wiring,
    policy: Policy,
    whole: bool = True,
    module: NDArray[np.int32] | None = None,
) -> Tables:
    """Minimal tables with all that the policy asks for.

    Args:
        tables: minimal.
        topology: the fabric, or what is left of it after damage.
        wiring: likewise.
        policy: protection and balancing.
        whole: whether nothing is missing; only then the constructions hold.
        module: int32[S, K], the module of its switch that each link is on, where that is known.
    """
    if not policy.balances and not policy.protects:
        return tables
    if whole:
        family = family_of(topology.family)
        made: Tables | None = family.choices(tables, topology, wiring, policy, module)
        if made is not None:
            return made
    # Direct classes first: an adjacent switch has other alternates or none, and another repair.
    tables = split_direct(tables, wiring)
    return alternate_search.with_choices(tables, wiring, topology, policy, module)


def require_searchable(topology: Topology, policy: Policy, balance: str) -> None:
    """Refuse alternates and protection by search in a damaged fabric that is too large for it.

    And marked packets in any that is damaged.

    Raises:
        Refused: the fabric has more than `LARGEST_SEARCH` switches, or packets are to be marked.
    """
    if policy.marks:
        raise Refused(
            Finding(
                path=("routing", "balance"),
                required="a balance without marks in a damaged fabric",
                given=balance,
                todo="write compact-valiant, or repair the fabric",
            )
        )
    order = topology.graph.order
    if order > LARGEST_SEARCH and (policy.balances or policy.protects):
        raise Refused(
            Finding(
                path=("routing",),
                required="minimal routes without protection in a damaged fabric of more than "
                f"{LARGEST_SEARCH:,} switches",
                given=f"alternates or protection for {order:,} switches",
                todo="remove `balance` and `protect`, or repair the fabric: only in a whole "
                "PolarFly or PolarStar they need no search",
            )
        )
