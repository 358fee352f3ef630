"""The one point that two points of PG(2, q) are both orthogonal to, as a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def meets(lines: NDArray[np.int32], points: NDArray[np.integer]) -> NDArray[np.int16]:
    """int16[B, N]: the place of s×d among the q + 1 points orthogonal to s, for s in `points`.

    Args:
        lines: `polarfly.lines(q)`, int32[N, q + 1].
        points: int[B], the points s.

    The points orthogonal to the k-th point orthogonal to s are those d with s×d in the k-th place,
    and s itself, whose entry has no meaning. Time grows with the size of the table.
    """
    table = np.empty((len(points), len(lines)), np.int16)
    place = np.arange(lines.shape[1], dtype=np.int16)[:, None]
    for row, near in zip(table, lines[points], strict=True):
        row[lines[near]] = place
    return table
