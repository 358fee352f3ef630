"""Bisection: the fewest links that METIS finds to cut the fabric in half.

`bisection` takes a topology and returns a cut. It is the analysis `bisection`, and gives `design`
an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError, install_extra

SEEDS = range(5)
"""The seeds that METIS is run with."""
CUTS = 10
"""The partitions that METIS tries with each seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Bisection:
    """The smallest cut that METIS finds, an upper bound on the bisection."""

    cut: int
    """The links between the halves."""
    links: int
    """All links."""
    one_side: NDArray[np.bool_]
    """bool[N], the nodes on one side."""

    @property
    def fraction(self) -> float:
        """Cut links over all links (PolarFly paper, Fig. 12)."""
        return self.cut / self.links


def available() -> bool:
    """Whether METIS's binding is installed."""
    from importlib.util import find_spec

    return find_spec("pymetis") is not None


def bisection(topology: Topology) -> Bisection:
    """The best of several METIS partitions in halves with nearly as many nodes with hosts.

    METIS is run with each of `SEEDS`, and tries `CUTS` partitions each time. So the result is the
    same on every run.

    Raises:
        InputError: the extra `analyse` is not installed.
    """
    if not available():
        todo = install_extra("analyse")
        raise InputError.of(key="bisection", required="pymetis", given="none", todo=todo)
    import pymetis

    graph = topology.graph
    adjacency = pymetis.CSRAdjacency(
        adj_starts=graph.offsets.tolist(), adjacent=graph.targets.tolist()
    )
    # Nodes without hosts have weight 0: they may be on either side.
    weights = topology.endpoints.astype(int).tolist()
    partitions = []
    for seed in SEEDS:
        options = pymetis.Options()
        options.seed, options.ncuts = seed, CUTS
        partition = pymetis.part_graph(2, adjacency=adjacency, vweights=weights, options=options)
        partitions.append(partition)
    best = min(partitions, key=lambda partition: partition.edge_cuts)
    one_side = np.asarray(best.vertex_part, np.bool_)
    return Bisection(best.edge_cuts, graph.size, one_side)
