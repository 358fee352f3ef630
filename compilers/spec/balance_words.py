"""What several balances share: names of kinds of traffic, and a check of fixed shares.

A *balance* is a load-balancing rule (`compilers.spec.balances`). Here is what the files of
`compilers/balances/` have in common, so that none of them imports another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec

UNIFORM = "uniform"
"""Traffic in which every host sends alike to all others."""
ANY = "any"
"""Traffic that is unknown."""
MEASURED = "measured"
"""Traffic that `DEMAND_FILE` says."""
TRAFFIC = (UNIFORM, ANY, MEASURED)
"""The kinds of traffic that `polarfab init` chooses a balance for."""
DEMAND_FILE = "traffic.csv"
"""The file of measured traffic, in the folder of fabric.yaml."""
FIGURES_FABRIC = "PolarFly q = 7, 4 hosts a switch"
"""The fabric in which `Balance.figures` were measured."""


def fixed_share_findings(routing: RoutingSpec) -> Iterator[Finding]:
    """Yield a finding for each key of a policy that a balance with fixed shares cannot follow."""

    def finding(key: str, allowed: str, reason: str) -> Finding:
        """Return the finding that a key of the policy needs another value with the balance."""
        required = f"{allowed} with `balance: {routing.balance}`"
        given = str(getattr(routing, key))
        return Finding(("routing", key), required, given, f"remove it: {reason}")

    if routing.adjacent == "bounce":
        reason = "packets between neighbours take other paths, too"
        yield finding("adjacent", "minimal", reason)
    if routing.disjoint == "edge":
        yield finding("disjoint", "auto or none", "all links share the traffic")
    if routing.demand:
        yield finding("demand", "no demand", "the shares are fixed, whatever the demand")
