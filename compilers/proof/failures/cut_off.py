"""Count the lost pairs of switches that failures have cut off from each other.

No table can repair a pair that no path joins any more. So a report on failures counts these pairs
apart from other lost ones (`FailureReport.cut_off`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Numbers, Walks
from compilers.proof.failures.failure_cases import FailureCases
from compilers.topology.distance import components, neighbour_table


def count_cut_off(
    walks: Walks,
    cases: FailureCases,
    case: Numbers,
    source: Numbers,
    destination: Numbers,
) -> int:
    """How many of n pairs of switches are not joined by any path in their case.

    Args:
        walks: of the build, without failures.
        cases: the cases of failures.
        case: int64[n], the case of each pair.
        source: int64[n].
        destination: int64[n].
    """
    intact = neighbour_table(walks.build.topology.graph)
    count = 0
    # A search over the fabric that is left, once for each case in which pairs are lost.
    for number in np.unique(case).tolist():
        component = components(_without(intact, walks, cases.failed(number)))
        of_case = case == number
        is_apart = component[source[of_case]] != component[destination[of_case]]
        count += int(np.count_nonzero(is_apart))
    return count


def _without(intact: NDArray[np.int64], walks: Walks, down: list[int]) -> NDArray[np.int64]:
    """A copy of the neighbour table without the elements that are down."""
    table, none = intact.copy(), len(intact) - 1  # lists are padded with `none`
    for element in down:
        if element >= walks.cable_count:
            table[table == element - walks.cable_count] = none
        else:
            u, v = walks.link_ends[element]
            table[u, table[u] == v] = none
            table[v, table[v] == u] = none
    return table
