"""Traffic that a balance is chosen for, and words that no balance with fixed shares takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec

UNIFORM, ANY, MEASURED = TRAFFIC = ("uniform", "any", "measured")
DEMAND_FILE = "traffic.csv"
"""The file of the traffic that was measured, in the folder of fabric.yaml."""
FIGURES_OF = "PolarFly q = 7, 4 hosts a switch"
"""The fabric of `Balance.figures`."""


def fixed_shares(routing: RoutingSpec) -> Iterator[Finding]:
    """Words that ask for other paths or shares than those that are fixed."""
    for word, asked, able, todo in (
        (
            "adjacent",
            routing.adjacent == "bounce",
            "minimal",
            "packets between neighbours take other paths, too",
        ),
        ("disjoint", routing.disjoint == "edge", "auto or none", "all links share the traffic"),
        ("demand", routing.demand, "no demand", "the shares are fixed, whatever the demand"),
    ):
        if asked:
            required = f"{able} with `balance: {routing.balance}`"
            given = str(getattr(routing, word))
            yield Finding(("routing", word), required, given, f"remove it: {todo}")
