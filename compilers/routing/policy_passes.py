"""The passes after minimal routes: classes, alternates, protection, as the policy asks."""

from __future__ import annotations

from compilers.routing import alternate_search
from compilers.routing.alternates import compact_valiant
from compilers.routing.protection import polarfly
from compilers.routing.split_classes import split_direct
from compilers.spec.policy import CONSTRUCTED, LARGEST_SEARCH, Policy
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring
from inventory.problems import Finding, Refused


def choices(
    tables: Tables, topology: Topology, wiring: Wiring, policy: Policy, whole: bool = True
) -> Tables:
    """Minimal tables with all that the policy asks for.

    Args:
        tables: minimal.
        topology: the fabric, or what is left of it after damage.
        wiring: likewise.
        policy: protection and balancing.
        whole: whether nothing is missing; only then the constructions hold.
    """
    if not policy.balances and not policy.protects:
        return tables
    # Direct classes first: an adjacent switch has no alternates, and a different repair.
    tables = split_direct(tables, wiring)
    if topology.family not in CONSTRUCTED or not whole:
        return alternate_search.with_choices(tables, wiring, topology, policy)
    if policy.balances:
        tables = compact_valiant(tables, wiring, policy.edge_disjoint, policy.minimal_share)
    if policy.protects:
        tables = polarfly(tables, wiring)
    return tables


def require_searchable(topology: Topology, policy: Policy) -> None:
    """Refuse alternates and protection by search in a damaged fabric that is too large for it.

    Raises:
        Refused: the fabric has more than `LARGEST_SEARCH` switches.
    """
    order = topology.graph.order
    if order > LARGEST_SEARCH and (policy.balances or policy.protects):
        raise Refused(
            Finding(
                path=("routing",),
                required="minimal routes without protection in a damaged fabric of more than "
                f"{LARGEST_SEARCH:,} switches",
                given=f"alternates or protection for {order:,} switches",
                todo="remove `balance` and `protect`, or repair the fabric: only in a whole "
                "PolarFly they need no search",
            )
        )
