"""The load of every arc under uniform traffic, split evenly over all shortest paths.

It is the analysis `load`. From the loads it computes how many hosts a node can have in uniform
traffic at full rate. An arc is one direction of a link.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.neighbour_sums import (
    Report,
    over_blocks,
    over_neighbours,
)
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import THIS_PROCESS, Workers

NO_LEVEL = 254
"""The level of the last row of a table, which stands for no neighbour. It differs by more than 1
from the level of every vertex, so no shortest path leads there."""


@dataclass(frozen=True, slots=True, eq=False)
class ArcLoads:
    """The load of the arcs when every node with hosts sends one unit to every other."""

    arcs: NDArray[np.float64]
    """float64[2E], the load of each arc, by entry of `graph.targets`."""
    mean_distance: float
    """The mean number of links that a unit crosses."""
    endpoints: int
    """The number of nodes with hosts."""

    @property
    def utilisation(self) -> float:
        """u: mean over largest load (Projective Networks paper, §II-A)."""
        return float(self.arcs.mean() / self.arcs.max())

    @property
    def full_throughput_hosts(self) -> float:
        """Δ0, the hosts per node at which the fullest arc is just full (same paper).

        With N nodes with hosts, E links, the utilisation u and the mean distance k̄, Δ0 is
        2E·u / (N·k̄). As the mean load is N(N - 1)·k̄ / 2E, this is (N - 1) / largest load.
        """
        return (self.endpoints - 1) / float(self.arcs.max())

    def histogram(self) -> list[tuple[float, int]]:
        """(load, number of arcs with it), ascending."""
        loads, count = np.unique(self.arcs.round(6), return_counts=True)
        return list(zip(loads.tolist(), count.tolist(), strict=True))


def uniform(
    topology: Topology, report: Report | None = None, workers: Workers = THIS_PROCESS
) -> ArcLoads:
    """The load of every arc. A pair's unit is split evenly over its shortest paths.

    This is Brandes' accumulation, for a block of sources at a time. σ(v) is the number of shortest
    paths from a source to v, and δ(v) is what v passes on. The arc u→v carries
    σ(u)·(1 + δ(v))/σ(v).
    """
    arcs = np.zeros(len(topology.graph.targets))
    for load_of_block in over_blocks(_load_of_sources, topology, workers, report):
        arcs += load_of_block
    endpoints = int(np.count_nonzero(topology.endpoints))
    pairs = endpoints * (endpoints - 1)
    return ArcLoads(arcs, float(arcs.sum()) / pairs, endpoints)


def _load_of_sources(topology: Topology) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """Return the function from a block of sources to the load of every arc by their traffic."""
    table = neighbour_table(topology.graph)
    is_receiver = np.append(topology.endpoints, False).astype(np.float64)[:, None]

    def load(sources: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[2E]: the load of each arc by what these sources send."""
        level = np.full((len(table), len(sources)), NO_LEVEL, np.uint8)
        level[:-1] = distances(table, sources).T
        loads = _loads(table, level, _paths(table, level), is_receiver)
        is_neighbour = table[:-1] < topology.graph.order
        return loads[:-1][is_neighbour]

    return load


def _paths(table: NDArray[np.int64], level: NDArray[np.uint8]) -> NDArray[np.float64]:
    """float64[N + 1, B], σ: the number of shortest paths from each source to each vertex.

    Args:
        table: int64[N + 1, K], `distance.neighbour_table`.
        level: uint8[N + 1, B], the distance of each vertex from each source.
    """
    paths: NDArray[np.float64] = (level <= 1).astype(np.float64)
    for depth in range(1, int(level[:-1].max())):
        paths_from_level = over_neighbours(table, np.where(level == depth, paths, 0.0))
        paths = np.where(level == depth + 1, paths_from_level, paths)
    return paths


def _loads(
    table: NDArray[np.int64],
    level: NDArray[np.uint8],
    paths: NDArray[np.float64],
    is_receiver: NDArray[np.float64],
) -> NDArray[np.float64]:
    """float64[N + 1, K]: the load of the arc to each neighbour, from all sources of the block.

    Args:
        table: int64[N + 1, K], `distance.neighbour_table`.
        level: uint8[N + 1, B], the distance of each vertex from each source.
        paths: float64[N + 1, B], σ of `_paths`.
        is_receiver: float64[N + 1, 1], 1 for nodes with hosts, else 0.
    """
    # float64[N + 1, B], (1 + δ(v))/σ(v) of each vertex v, from the farthest level to the nearest.
    inverse_paths = np.divide(1.0, paths, out=np.zeros_like(paths), where=paths > 0)
    deepest = int(level[:-1].max())
    share = np.where(level == deepest, is_receiver * inverse_paths, 0.0)
    for depth in range(deepest - 1, 0, -1):
        passed = paths * over_neighbours(table, np.where(level == depth + 1, share, 0.0))
        share = np.where(level == depth, (is_receiver + passed) * inverse_paths, share)
    # The load of the arc u→v is σ(u)·share(v), if v is one level farther than u.
    loads, next_level = np.zeros(table.shape), level + 1
    level_of_heads, load_by_source = np.empty_like(level), np.empty_like(share)
    for link, heads in enumerate(table.T):
        # Written to the same two arrays for each link. Only with mode="clip" does NumPy write to
        # `out` without a copy. No index is out of range.
        level.take(heads, axis=0, out=level_of_heads, mode="clip")
        share.take(heads, axis=0, out=load_by_source, mode="clip")
        load_by_source *= paths
        load_by_source *= level_of_heads == next_level
        loads[:, link] = load_by_source.sum(axis=1)
    return loads
