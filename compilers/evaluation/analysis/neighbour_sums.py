"""Sums over the neighbours of vertices, for many sources at once. Paths are counted with these
sums.

`over_neighbours` is one step of a walk from many sources: `link_load` and `path_diversity` count
paths with it. `over_blocks` divides the sources of an analysis into blocks, and the blocks among
processes.

In tables of neighbours, short lists are padded with N, the number of a row below those of the N
vertices. Values have 0 in this row, so the padding adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import Workers, in_blocks, reported

Report = Callable[[int, int], None]
"""A function that is called with how much is done, and how much there is."""
SOURCES_AT_ONCE = 128
"""The sources of a block."""
LEAST_BLOCKS = 4
"""Blocks of sources below which another process costs more than it saves."""
T = TypeVar("T")
"""The type of the result for a block of sources."""


def over_neighbours(table: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[N + 1, B]: for each vertex the sum of `values` over its neighbours.

    Args:
        table: int64[N + 1, K], `distance.neighbour_table`.
        values: float64[N + 1, B], a column for each source, 0 in the last row.
    """
    total, values_there = np.zeros_like(values), np.empty_like(values)
    for neighbour in table.T:  # int64[N + 1], the k-th neighbour of each vertex
        # Only with mode="clip" does NumPy write to `out` without a copy. No index is out of range.
        total += values.take(neighbour, axis=0, out=values_there, mode="clip")
    return total


def reported_blocks(
    sources: NDArray[np.int64], report: Report | None = None, size: int = SOURCES_AT_ONCE
) -> Iterator[NDArray[np.int64]]:
    """Yield the sources, `size` at a time, and report progress after each block."""
    blocks = in_blocks(sources, size)
    return reported(blocks, blocks, report)


def over_blocks(
    prepare: Callable[[Topology], Callable[[NDArray[np.int64]], T]],
    topology: Topology,
    workers: Workers,
    report: Report | None = None,
    size: int = SOURCES_AT_ONCE,
) -> Iterator[T]:
    """Yield the result of a function for each block of sources. All nodes with hosts are sources.

    Args:
        prepare: makes the function for a topology. Each worker calls it once.
        topology: the graph, and its nodes with hosts.
        workers: the processes that share the blocks.
        report: called with (sources done, all sources).
        size: the sources of a block.
    """
    blocks = in_blocks(np.flatnonzero(topology.endpoints), size)
    return reported(workers.over(prepare, topology, blocks, least=LEAST_BLOCKS), blocks, report)
