"""Sums over neighbours for many sources at once, the kernel behind all path counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Report = Callable[[int, int], None]
SOURCES_AT_ONCE = 128


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
    for start in range(0, len(sources), size):
        yield sources[start : start + size]
        if report:
            report(min(start + size, len(sources)), len(sources))
