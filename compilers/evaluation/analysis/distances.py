"""Distances between the nodes with hosts: how many pairs are how many links apart.

It is the analysis `distances`. The analyses of growth and resilience use its figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.neighbour_sums import Report, over_blocks
from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, SOURCES_AT_ONCE, neighbour_table, pairs_within
from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import THIS_PROCESS, Workers


@dataclass(frozen=True, slots=True)
class Distances:
    """The numbers of ordered pairs of distinct nodes with hosts, by distance."""

    pairs: tuple[int, ...]
    """How many pairs are d links apart, by d; 0 for d = 0."""
    unreachable: int
    """How many pairs have no path."""

    @property
    def diameter(self) -> int | None:
        """The largest distance, None if a pair has no path."""
        return None if self.unreachable else len(self.pairs) - 1

    @property
    def mean(self) -> float | None:
        """The mean distance, None if a pair has no path."""
        if self.unreachable:
            return None
        return sum(d * n for d, n in enumerate(self.pairs)) / max(sum(self.pairs), 1)


def distribution(
    topology: Topology,
    report: Report | None = None,
    graph: Graph | None = None,
    workers: Workers = THIS_PROCESS,
) -> Distances:
    """The distance distribution by search from every node with hosts.

    Args:
        topology: for the nodes with hosts.
        report: called with (sources done, all sources).
        graph: the links, if they are not those of the topology.
        workers: that share the sources.
    """
    # int64[BEYOND + 1], the number of pairs by distance.
    pairs = np.zeros(BEYOND + 1, np.int64)
    prepare = partial(_pair_counter, graph=graph)
    for pairs_of_block in over_blocks(prepare, topology, workers, report, SOURCES_AT_ONCE):
        pairs += pairs_of_block
    unreachable = int(pairs[BEYOND])
    pairs[BEYOND] = 0
    pairs[0] = 0  # a node with itself is no pair
    longest = int(np.flatnonzero(pairs).max(initial=0))
    return Distances(tuple(pairs[: longest + 1].tolist()), unreachable)


def _pair_counter(
    topology: Topology, graph: Graph | None
) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the function from a block of sources to the number of their pairs by distance.

    Pairs without a path are counted at the distance `BEYOND`.
    """
    table = neighbour_table(graph or topology.graph)

    def count_pairs(sources: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[BEYOND + 1]: how many pairs of the sources are how many links apart."""
        within = pairs_within(table, sources, topology.endpoints)  # at most d links apart, by d
        pairs = np.zeros(BEYOND + 1, np.int64)
        pairs[: len(within)] = np.diff(within, prepend=0)
        pairs[BEYOND] = len(sources) * np.count_nonzero(topology.endpoints) - within[-1]
        return pairs

    return count_pairs
