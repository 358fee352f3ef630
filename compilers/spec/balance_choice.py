"""Which balance fits a traffic, and what each one gives and costs, as measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilers.spec.policy import ECMP, MARKED, VALIANT
from compilers.topology.families import family_of

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
    family = family_of(topology.family)
    if traffic == ANY and family.has_marks(topology.parameters):
        return f"balance: {MARKED}"
    if not topology.endpoints.all():  # no intermediate in a tree: its paths rise and fall
        return f"balance: {ECMP}" + ", transit: ecmp" * (family.least_marked is None)
    if traffic == ANY:
        return f"balance: {VALIANT}"
    return "balance: minimal" if family.single else f"balance: {ECMP}"
