"""The bisection of a design: the smallest part of its links that cuts its hosts in halves.

METIS searches the graph for a small cut, which is an upper bound; a formula may give a smaller one.
Graphs of more than `MOST_NODES` switches are not built, as `polarfab design` prints the share while
the user waits: such a design has a share only if a formula gives one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compilers.evaluation.analysis.bisection import bisection
from compilers.topology.families import build_topology
from compilers.topology.family import Design

MOST_NODES = 1500
"""The most switches of a graph that METIS is run for: it takes seconds for each."""


@dataclass(frozen=True, slots=True)
class BisectionShare:
    """An upper bound of a design's bisection, as a part of its links."""

    share: float
    """The links of the smallest known cut in halves, divided by all links."""
    basis: Literal["metis", "formula"]
    """Whether METIS found the cut, or a formula gives one."""


def bisection_share(design: Design) -> BisectionShare | None:
    """The bisection of a design; None where its graph is large and no formula is known.

    Raises:
        InputError: METIS is needed, and the extra `analyse` is not installed.
    """
    share = halved_pairs_share(design)
    if design.nodes <= MOST_NODES:
        topology = build_topology(design.family, dict(design.parameters))
        cut = bisection(topology).fraction
        if share is None or cut <= share:
            return BisectionShare(cut, "metis")
    return None if share is None else BisectionShare(share, "formula")


def halved_pairs_share(design: Design) -> float | None:
    """The part of the links in a cut that puts half of every supernode on each side, by formula.

    An Inductive-Quad supernode of degree d' consists of d' + 1 pairs {x, f(x)}. The cut puts half
    of the pairs on each side, the same pairs in all supernodes. Links between supernodes join x
    with f(x), which are on the same side, so no link between supernodes is cut. There are two links
    between any two pairs (PolarStar paper, §6.2.1). So (d' + 1)²/2 links of each supernode are cut,
    which is (d' + 1)/(2·radix) of all links.

    None for designs with other supernodes, or with an odd number of pairs.
    """
    degree = design.supernode_degree
    if design.supernode != "inductive-quad" or degree is None or degree % 2 == 0:
        return None
    return (degree + 1) / (2 * design.radix)
