"""The passes behind minimal routes: classes, alternates, protection, as the policy asks."""

from __future__ import annotations

from compilers.routing import search
from compilers.routing.alternates import compact_valiant
from compilers.routing.classes import split_direct
from compilers.routing.policy import Policy
from compilers.routing.protection import polarfly
from compilers.tables import Tables
from compilers.topologies.topology import Topology
from compilers.wiring import Wiring

CONSTRUCTED = ("polarfly",)
LARGEST = search.LARGEST


def choices(tables: Tables, topology: Topology, wiring: Wiring, policy: Policy) -> Tables:
    """Minimal tables with all that the policy asks for."""
    if not policy.balances and not policy.protects:
        return tables
    # Direct classes first: an adjacent switch has no alternates, and its repair is another.
    tables = split_direct(tables, wiring)
    if topology.family not in CONSTRUCTED:
        return search.with_choices(tables, wiring, topology, policy)
    if policy.balances:
        tables = compact_valiant(tables, wiring, policy.edge_disjoint, policy.minimal_share)
    if policy.protects:
        tables = polarfly(tables, wiring)
    return tables
