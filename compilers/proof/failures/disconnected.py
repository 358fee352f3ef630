"""Disconnected pairs: switches that failures leave without any path, which no table could join."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Numbers, Walks
from compilers.topology.distance import components, neighbour_table


def disconnected(
    walks: Walks,
    dead: Callable[[int], list[int]],
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """The number of pairs, of n, without a path while the elements of their case are down.

    Args:
        walks: over the fabric without failures.
        dead: the elements that are down in a case.
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(walks.build.topology.graph)
    count = 0
    for number in np.unique(case).tolist():
        part = components(_left(intact, walks, dead(number)))
        pairs = case == number
        count += int(np.count_nonzero(part[source[pairs]] != part[destination[pairs]]))
    return count


def _left(intact: NDArray[np.int64], walks: Walks, down: list[int]) -> NDArray[np.int64]:
    """The neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1
    for element in down:
        if element >= walks.links:
            table[table == element - walks.links] = none
        else:
            u, v = walks.link_ends[element]
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
