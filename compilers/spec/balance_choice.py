"""Which balance fits a traffic, and what each one gives and costs, as measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilers.spec.policy import CONSTRUCTED, ECMP, LEAST_MARKED, MARKED, VALIANT

if TYPE_CHECKING:
    from compilers.topology.labelled_graph import Topology

UNIFORM, ANY, MEASURED = TRAFFIC = ("uniform", "any", "measured")
DEMAND_FILE = "traffic.csv"
"""The file of the traffic that was measured, beside fabric.yaml."""
FITTED = "balance: compact-valiant, adjacent: bounce"
"""The policy that can follow a demand in every family."""

FIGURES_OF = "PolarFly q = 7, 4 hosts a switch"
FIGURES = {
    "balance: minimal": (100, 12),
    "balance: compact-valiant": (68, 19),
    "balance: spread": (52, 46),
    "balance: valiant": (51, 51),
    f"{FITTED}, demand: {DEMAND_FILE}": (100, 62),
}
"""Per cent of its link's rate that every host can send: under uniform traffic, and the least of
tornado, a random permutation and the longest one. A test measures them again."""


def routing_for(traffic: str, topology: Topology) -> str:
    """The value of `routing:` that fits a traffic in a whole fabric, within its braces.

    Args:
        traffic: one of `TRAFFIC`.
        topology: the fabric.
    """
    if traffic == MEASURED:
        return f"{FITTED}, demand: {DEMAND_FILE}"
    family, q = topology.family, int(topology.parameters.get("q", 0))
    if traffic == ANY and q >= LEAST_MARKED.get(family, q + 1):
        return f"balance: {MARKED}"
    if not topology.endpoints.all():  # no intermediate in a tree: its paths rise and fall
        return f"balance: {ECMP}" + ", transit: ecmp" * (family not in LEAST_MARKED)
    if traffic == ANY:
        return f"balance: {VALIANT}"
    single = family in (*CONSTRUCTED, "polarstar")
    return "balance: minimal" if single else f"balance: {ECMP}"
