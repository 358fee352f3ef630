"""Sums over neighbours for many sources at once, the kernel behind all path counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import Workers, in_blocks, reported

Report = Callable[[int, int], None]
SOURCES_AT_ONCE = 128
LEAST_BLOCKS = 4
"""Blocks of sources below which another process costs more than it saves."""
T = TypeVar("T")


def over_neighbours(table: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[N + 1, B]: for each vertex the sum of `values` over its neighbours.

    Args:
        table: int64[N + 1, K], `distance.neighbour_table`.
        values: float64[N + 1, B], a column for each source, 0 in the last row.
    """
    total = np.zeros_like(values)
    for slot in table.T:
        total += values[slot]
    return total


def blocks(
    sources: NDArray[np.int64], report: Report | None = None, size: int = SOURCES_AT_ONCE
) -> Iterator[NDArray[np.int64]]:
    """The sources, `size` at a time; report(done, all) after each."""
    found = in_blocks(sources, size)
    return reported(found, found, report)


def over_blocks(
    prepare: Callable[[Topology], Callable[[NDArray[np.int64]], T]],
    topology: Topology,
    workers: Workers,
    report: Report | None = None,
    size: int = SOURCES_AT_ONCE,
) -> Iterator[T]:
    """prepare(topology)(sources) for all nodes with hosts, in blocks that workers share."""
    found = in_blocks(np.flatnonzero(topology.endpoints), size)
    return reported(workers.over(prepare, topology, found, least=LEAST_BLOCKS), found, report)
