"""The kinds of traffic that balances are made for, and a check for balances with fixed shares.

A *balance* is a load-balancing rule (`compilers.spec.balances`). The files of `compilers/balances/`
share these names, and do not import each other.

- `polarfab init` asks for a kind of traffic, and each balance answers whether it suits that kind
  (`Balance.fitting`).
- Balances that mark packets or send them over intermediates have *fixed shares*: the balance alone
  says which part of the traffic each path gets. They refuse keys of the policy that ask for other
  paths (`fixed_share_findings`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec

UNIFORM = "uniform"
"""Every host sends the same rate to every other host."""
ANY = "any"
"""The traffic is unknown, and may be the worst for the fabric."""
MEASURED = "measured"
"""The rates of the traffic are in `DEMAND_FILE`."""
TRAFFIC = (UNIFORM, ANY, MEASURED)
"""The kinds of traffic that `polarfab init` chooses a balance for."""
DEMAND_FILE = "traffic.csv"
"""The file of measured traffic that `polarfab init` names in a policy, beside fabric.yaml."""
FIGURES_FABRIC = "PolarFly q = 7, 4 hosts a switch"
"""The fabric in which the throughput of every balance was measured (`Balance.figures`)."""


def fixed_share_findings(routing: RoutingSpec) -> Iterator[Finding]:
    """Yield a finding for each key of a policy that a balance with fixed shares cannot follow."""

    def finding(key: str, allowed: str, reason: str) -> Finding:
        """Return the finding that a key has a value which the balance does not allow."""
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
