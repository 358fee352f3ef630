"""Deadlock in a stopped network: buffers that are full and wait for each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


def waiting_cycle(waits: Numbers, choices: Numbers) -> list[int]:
    """Buffers along a cycle of those that can never move, first and last the same; [] for none.

    A buffer whose first packet has anywhere to go now, or soon, moves; so does one that waits for
    a buffer that moves. What is left waits for itself.

    Args:
        waits: bool[n], whether the first packet of each buffer finds all its choices full.
        choices: int[n, V], the buffers of which it may take any; -1 for none.
    """
    moves = ~waits
    moves = np.append(moves, False)  # the buffer -1
    while True:
        freed = waits & ~moves[:-1] & moves[choices].any(axis=1)
        if not freed.any():
            break
        moves[:-1] |= freed
    stuck = np.flatnonzero(~moves[:-1])
    if not len(stuck):
        return []
    trail = [int(stuck[0])]
    while (after := int(choices[trail[-1]].max())) not in trail:
        trail.append(after)
    return [*trail[trail.index(after) :], after]
