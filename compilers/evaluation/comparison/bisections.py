"""The bisection of a design: the smallest part of its links that cuts its hosts in halves.

METIS searches the built graph, which finds an upper bound; a formula may give a smaller one. What
is too large to be built while somebody waits has a figure only where a formula bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compilers.evaluation.analysis.bisection import bisection
from compilers.topology.families import build_topology
from compilers.topology.family import Design

MOST_NODES = 1500
"""The most switches of a design whose graph is built: METIS takes seconds for each."""


@dataclass(frozen=True, slots=True)
class BisectionShare:
    """The part of a design's links that a cut in halves has."""

    share: float
    """Cut links over all links; no cut is known to have fewer."""
    basis: Literal["metis", "formula"]
    """Whether METIS found the cut, or a formula gives one."""


def bisection_share(design: Design) -> BisectionShare | None:
    """The bisection of a design; None where its graph is large and no formula is known.

    Raises:
        InputError: METIS is needed, and the extra `analyse` is not installed.
    """
    share = halved_pairs(design)
    if design.nodes <= MOST_NODES:
        topology = build_topology(design.family, dict(design.parameters))
        cut = bisection(topology).fraction
        if share is None or cut <= share:
            return BisectionShare(cut, "metis")
    return None if share is None else BisectionShare(share, "formula")


def halved_pairs(design: Design) -> float | None:
    """The cut that halves the pairs {x, f(x)} of every Inductive-Quad supernode alike.

    Links between supernodes join x with f(x), which are on one side, so only links inside are cut.
    A supernode has d' + 1 pairs, and two links between any two of them (PolarStar paper, §6.2.1).
    With half of the pairs on each side (d' + 1)²/2 of its links are cut: (d' + 1)/(2·radix)
    of all links. None of other supernodes, or of an odd number of pairs.
    """
    degree = design.supernode_degree
    if design.supernode != "inductive-quad" or degree is None or degree % 2 == 0:
        return None
    return (degree + 1) / (2 * design.radix)
