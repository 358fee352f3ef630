"""The traffic of the hose model that loads a link most, and the dual prices that prove it.

If all switches have the same rate, the worst traffic is a permutation, the solution of an
assignment problem (Towles and Dally, "Worst-case Traffic for Oblivious Routing Functions", 2002).
Else it is the solution of a transportation problem, a linear program (Duffield et al., 1999).
`worst_link` calls `worst_traffic` for each link that may be the worst.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.host_rates import HostRates
from compilers.forwarding.link_bounds import PairPrices

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
LOAD_TOLERANCE = 1e-9
"""The relative difference up to which two loads count as equal."""
PRICE_TOLERANCE = 1e-12
"""The difference up to which two prices count as equal."""
FEW_PAIRS = 1 << 13
"""Pairs of switches up to which the assignment is faster than to look for `_rows_that_matter`."""
MOST_UNITS = 1 << 9
"""The sum of all rates, in units, up to which an assignment is faster than a linear program."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstTraffic:
    """The flows that load a link most."""

    load: float
    """The load of the link."""
    source: Numbers
    """int64[n], the index of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the index of each destination among the switches with hosts."""
    rate: Reals
    """float64[n], the rate of each flow."""


class SwitchFlows(NamedTuple):
    """The n flows of `WorstTraffic`, before the load of the link is known."""

    source: Numbers
    """int64[n], the index of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the index of each destination among the switches with hosts."""
    rate: Reals
    """float64[n], the rate of each flow."""


def worst_traffic(share: Reals, rates: HostRates) -> WorstTraffic:
    """The flows that load a link most.

    The problem is solved by the first of three ways that fits: an assignment of switches if all
    have the same rate, an assignment of units of rates if there are few units, or a linear program.

    Args:
        share: float64[H, H], by source and destination, which fraction of the packets from one
            switch with hosts to another crosses the link.
        rates: the rates of these H switches' hosts.
    """
    if not share.any():
        no_switches = np.zeros(0, np.int64)
        return WorstTraffic(0.0, no_switches, no_switches, np.zeros(0))
    if rates.are_equal:
        source, destination = best_assignment(share)
        rate = np.full(len(source), rates.host_rate_sum[0])
    elif (units := rates.whole_units) is not None and units.sum() <= MOST_UNITS:
        source, destination, rate = unit_assignment(share, units)
        rate = rate * (rates.host_rate_sum[0] / units[0])
    else:
        source, destination, rate = best_transport(share, rates.host_rate_sum)
    load = float((share[source, destination] * rate).sum())
    return WorstTraffic(load, source, destination, rate)


def best_assignment(share: Reals) -> tuple[Numbers, Numbers]:
    """The sources and destinations of the assignment whose shares have the largest sum."""
    from scipy.optimize import linear_sum_assignment

    if share.size > FEW_PAIRS:
        row = _rows_that_matter(share)
        column = _rows_that_matter(share[row].T)
        assignment = linear_sum_assignment(share[np.ix_(row, column)], maximize=True)
        source, destination = row[assignment[0]], column[assignment[1]]
    else:
        source, destination = linear_sum_assignment(share, maximize=True)
    loads_link = share[source, destination] > 0
    return source[loads_link], destination[loads_link]


def dual_prices(share: Reals, worst: WorstTraffic, rates: HostRates) -> PairPrices:
    """Prices of sources and destinations that solve the dual of the transportation problem.

    Prices solve the dual if these hold:

    - the prices of the two ends of a flow of the worst traffic add up to the flow's share;
    - the prices of the two switches of any other pair add up to the pair's share or more;
    - a source that sends less than its rate has price 0.

    Then the sum of rates times prices is the load of the link, which no traffic exceeds. The
    smallest such prices are the lengths of longest paths, which are found by relaxation
    (Bellman-Ford).

    Args:
        share: float64[H, H], as in `worst_traffic`.
        worst: the traffic that loads the link most.
        rates: the rates of the H switches' hosts.

    Returns:
        float64[H] twice, by the index of each switch among those with hosts.
    """
    sent = np.bincount(worst.source, worst.rate, len(share))
    has_slack = sent < rates.host_rate_sum * (1 - LOAD_TOLERANCE)
    flow = worst.source, worst.destination
    destination = share[has_slack].max(axis=0, initial=0)
    # A longest path has at most as many steps as there are flows.
    for _ in worst.source:
        source_price = share[flow] - destination[worst.destination]
        least_price = (share[worst.source] - source_price[:, None]).max(axis=0, initial=0)
        if (least_price <= destination + PRICE_TOLERANCE).all():
            break
        destination = np.maximum(destination, least_price)
    return PairPrices((share - destination).max(axis=1, initial=0), destination)


def _rows_that_matter(share: Reals) -> Numbers:
    """Rows to which the best assignment can be restricted, int64[n], ascending.

    Of all rows whose only entry is in the same column, the assignment takes at most one: that with
    the largest entry.
    """
    entry_count = np.count_nonzero(share, axis=1)
    single_entry_rows = np.flatnonzero(entry_count == 1)
    column = share[single_entry_rows].argmax(axis=1)
    # By column, the largest entry first: the first row of each column is kept.
    order = np.lexsort((-share[single_entry_rows, column], column))
    first = np.unique(column[order], return_index=True)[1]
    several_entry_rows = np.flatnonzero(entry_count > 1)
    return np.sort(np.concatenate((several_entry_rows, single_entry_rows[order[first]])))


def unit_assignment(share: Reals, units: Numbers) -> SwitchFlows:
    """The flows that load the link most, if each switch sends and takes a whole number of units.

    Each unit of a switch is assigned as if it were a switch of its own.

    Args:
        share: float64[H, H], as in `worst_traffic`.
        units: int64[H], the units of each switch.

    Returns:
        The flows, with rates in units.
    """
    switch = np.repeat(np.arange(len(units)), units)
    source, destination = (switch[end] for end in best_assignment(share[np.ix_(switch, switch)]))
    flow, rate = np.unique(source * len(units) + destination, return_counts=True)
    return SwitchFlows(flow // len(units), flow % len(units), rate / 1.0)


def best_transport(share: Reals, host_rate_sum: Reals) -> SwitchFlows:
    """The flows that load the link most, as the solution of a transportation problem.

    Args:
        share: float64[H, H], as in `worst_traffic`.
        host_rate_sum: float64[H], the most that each switch sends, and the most that it takes.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    source, destination = np.nonzero(share)
    flow, switches = np.arange(len(source)), len(share)
    # Rows 0 to H - 1 sum what each switch sends, and rows H to 2H - 1 what each switch takes.
    row = np.concatenate((source, switches + destination))
    column = np.tile(flow, 2)
    sums = csr_matrix((np.ones(len(row)), (row, column)), (2 * switches, len(flow)))
    solution = linprog(
        -share[source, destination], A_ub=sums, b_ub=np.tile(host_rate_sum, 2), method="highs"
    )
    positive = solution.x > 0
    return SwitchFlows(source[positive], destination[positive], solution.x[positive])
