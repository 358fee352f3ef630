"""Pairs that failures leave without any path, so that no table could join them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.forwarding import Forwarding, Numbers
from compilers.topology.distance import components, neighbour_table
from compilers.topology.graph import Graph


def apart(
    graph: Graph,
    f: Forwarding,
    cases: Numbers,
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """How many of n pairs no path joins while the elements of their case are down.

    Args:
        graph: what is there without failures.
        f: numbers the links and switches.
        cases: int64[m, F], what is down in each case (`Forwarding.element`).
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    whole = neighbour_table(graph)
    count = 0
    for number in np.unique(case).tolist():
        part = components(_left(whole, f, cases[number].tolist()))
        pairs = case == number
        count += int(np.count_nonzero(part[source[pairs]] != part[destination[pairs]]))
    return count


def _left(whole: NDArray[np.int64], f: Forwarding, down: list[int]) -> NDArray[np.int64]:
    """The neighbour table of what is up."""
    table, nobody = whole.copy(), len(whole) - 1
    for element in down:
        if element >= f.links:
            table[table == element - f.links] = nobody
        else:
            u, v = f.ends(element)
            table[u, table[u] == v] = nobody
            table[v, table[v] == u] = nobody
    return table
