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
"""Pairs of switches up to which the assignment is solved without `_rows_that_matter`."""
MOST_UNITS = 1 << 9
"""The sum of all rates, in units, up to which an assignment is faster than a linear program."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstTraffic:
    """The flows that load a link most."""

    load: float
    """The load of the link."""
    source: Numbers
    """int64[n], the place of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the place of each destination among the switches with hosts."""
    rate: Reals
    """float64[n], the rate of each flow."""


class SwitchFlows(NamedTuple):
    """The flows between switches with hosts, as in `WorstTraffic`."""

    source: Numbers
    """int64[n], the place of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the place of each destination among the switches with hosts."""
    rate: Reals
    """float64[n], the rate of each flow."""


def worst_traffic(share: Reals, rates: HostRates) -> WorstTraffic:
    """The flows that load a link most.

    Args:
        share: float64[D, D], by source and destination, which fraction of the packets from one
            switch with hosts to another crosses the link.
        rates: of their hosts.
    """
    if not share.any():
        none = np.zeros(0, np.int64)
        return WorstTraffic(0.0, none, none, np.zeros(0))
    if rates.are_equal:
        source, destination = best_assignment(share)
        rate = np.full(len(source), rates.host_rate[0])
    elif (units := rates.whole_units) is not None and units.sum() <= MOST_UNITS:
        source, destination, rate = unit_assignment(share, units)
        rate = rate * (rates.host_rate[0] / units[0])
    else:
        source, destination, rate = best_transport(share, rates.host_rate)
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

    The prices of the two ends of a flow of the worst traffic add up to the flow's share. The prices
    of the two switches of any other pair add up to the pair's share or more. A source that sends
    less than its rate has price 0. So the sum of rates times prices is the load of the link. The
    smallest such prices are the lengths of longest paths. They are found by relaxation.

    Args:
        share: float64[D, D], as in `worst_traffic`.
        worst: the traffic that loads the link most.
        rates: of the hosts.

    Returns:
        float64[D] twice, by the places of the switches with hosts.
    """
    sent = np.bincount(worst.source, worst.rate, len(share))
    has_slack = sent < rates.host_rate * (1 - LOAD_TOLERANCE)
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

    Among rows with a single entry, all in one column, the assignment takes at most one row: the one
    with the largest entry.
    """
    count = np.count_nonzero(share, axis=1)
    single = np.flatnonzero(count == 1)
    column = share[single].argmax(axis=1)
    order = np.lexsort((-share[single, column], column))
    first = np.unique(column[order], return_index=True)[1]
    return np.sort(np.concatenate((np.flatnonzero(count > 1), single[order[first]])))


def unit_assignment(share: Reals, units: Numbers) -> SwitchFlows:
    """The flows that load the link most, if each switch sends and takes a whole number of units.

    A unit is assigned as a switch of its own. The rates are in units.
    """
    switch = np.repeat(np.arange(len(units)), units)
    source, destination = (switch[end] for end in best_assignment(share[np.ix_(switch, switch)]))
    flow, rate = np.unique(source * len(units) + destination, return_counts=True)
    return SwitchFlows(flow // len(units), flow % len(units), rate / 1.0)


def best_transport(share: Reals, hosts: Reals) -> SwitchFlows:
    """The flows that load the link most, if switches send and take at most the rates of hosts."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    source, destination = np.nonzero(share)
    flows, switches = np.arange(len(source)), len(share)
    ends = np.concatenate((source, switches + destination))
    sums = csr_matrix((np.ones(len(ends)), (ends, np.tile(flows, 2))), (2 * switches, len(flows)))
    most = np.tile(hosts, 2)
    solved = linprog(-share[source, destination], A_ub=sums, b_ub=most, method="highs")
    positive = solved.x > 0
    return SwitchFlows(source[positive], destination[positive], solved.x[positive])
