"""Disconnected pairs: switches that failures leave without any path, which no table could join."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Forwarding, Numbers
from compilers.topology.distance import components, neighbour_table
from compilers.topology.graph import Graph


def disconnected(
    graph: Graph,
    f: Forwarding,
    dead: Callable[[int], list[int]],
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """The number of pairs, of n, without a path while the elements of their case are down.

    Args:
        graph: the fabric without failures.
        f: numbers the links and switches.
        dead: the elements that are down in a case (`Forwarding.element`).
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(graph)
    count = 0
    for number in np.unique(case).tolist():
        part = components(_left(intact, f, dead(number)))
        pairs = case == number
        count += int(np.count_nonzero(part[source[pairs]] != part[destination[pairs]]))
    return count


def _left(intact: NDArray[np.int64], f: Forwarding, down: list[int]) -> NDArray[np.int64]:
    """The neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1
    for element in down:
        if element >= f.links:
            table[table == element - f.links] = none
        else:
            u, v = f.ends(element)
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
