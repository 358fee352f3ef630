"""The traffic that loads a link most, of all that hosts can send and take.

Where the hosts of all switches can send as much, it is a permutation, which an assignment problem
finds (Towles and Dally, "Worst-case Traffic for Oblivious Routing Functions", 2002). Else it is a
transportation problem, a linear program (the hose model: Duffield et al., 1999).
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
CLOSE = 1e-9
"""The relative difference of loads that are the same."""
SAME = 1e-12
"""The difference of prices that are the same."""
SMALL = 1 << 13
"""Pairs of switches up to which an assignment is faster than the search for rows that matter."""
MOST_UNITS = 1 << 9
"""Units of what hosts send up to which an assignment takes less than a linear program."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstTraffic:
    """The flows that load a link most."""

    load: float
    """What crosses the link."""
    source: Numbers
    """int64[n], the place of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the place of each destination among them."""
    rate: Reals
    """float64[n], the rate of each flow."""


class SwitchFlows(NamedTuple):
    """The flows between switches with hosts, as in `WorstTraffic`."""

    source: Numbers
    """int64[n], the place of each source among the switches with hosts."""
    destination: Numbers
    """int64[n], the place of each destination among them."""
    rate: Reals
    """float64[n], the rate of each flow."""


def worst_traffic(share: Reals, rates: HostRates) -> WorstTraffic:
    """The flows that load a link most.

    Args:
        share: float64[D, D], the share of what each switch with hosts sends to each other that
            crosses the link.
        rates: of their hosts.
    """
    if not share.any():
        none = np.zeros(0, np.int64)
        return WorstTraffic(0.0, none, none, np.zeros(0))
    if rates.alike:
        source, destination = assigned(share)
        rate = np.full(len(source), rates.hosts[0])
    elif (units := rates.units) is not None and units.sum() <= MOST_UNITS:
        source, destination, rate = assigned_by_unit(share, units)
        rate = rate * (rates.hosts[0] / units[0])
    else:
        source, destination, rate = transported(share, rates.hosts)
    load = float((share[source, destination] * rate).sum())
    return WorstTraffic(load, source, destination, rate)


def assigned(share: Reals) -> tuple[Numbers, Numbers]:
    """The sources and destinations of the assignment whose shares have the largest sum."""
    from scipy.optimize import linear_sum_assignment

    if share.size > SMALL:
        row = _contenders(share)
        column = _contenders(share[row].T)
        chosen = linear_sum_assignment(share[np.ix_(row, column)], maximize=True)
        source, destination = row[chosen[0]], column[chosen[1]]
    else:
        source, destination = linear_sum_assignment(share, maximize=True)
    crosses = share[source, destination] > 0
    return source[crosses], destination[crosses]


def prices(share: Reals, worst: WorstTraffic, rates: HostRates) -> PairPrices:
    """Prices whose sum over all switches is the load of a link by its worst traffic.

    They solve the dual of the transportation problem: the two ends of each flow of the worst
    traffic pay its share together, and a switch that sends less than it can pays nothing. The least
    such prices are the lengths of longest paths, found by relaxation.

    Args:
        share: float64[D, D], the share of what each switch sends to each other that crosses it.
        worst: the traffic that loads the link most.
        rates: of the hosts.

    Returns:
        float64[D] twice, by the places of the switches with hosts.
    """
    sent = np.bincount(worst.source, worst.rate, len(share))
    slack = sent < rates.hosts * (1 - CLOSE)
    flow = worst.source, worst.destination
    destination = share[slack].max(axis=0, initial=0)
    for _ in worst.source:
        paid = share[flow] - destination[worst.destination]
        raised = (share[worst.source] - paid[:, None]).max(axis=0, initial=0)
        if (raised <= destination + SAME).all():
            break
        destination = np.maximum(destination, raised)
    return PairPrices((share - destination).max(axis=1, initial=0), destination)


def _contenders(share: Reals) -> Numbers:
    """int64[n], ascending: rows that the best assignment can be found among.

    Among rows with a single entry, all in one column, the assignment takes at most one row: the one
    with the largest entry.
    """
    count = np.count_nonzero(share, axis=1)
    single = np.flatnonzero(count == 1)
    column = share[single].argmax(axis=1)
    order = np.lexsort((-share[single, column], column))
    first = np.unique(column[order], return_index=True)[1]
    return np.sort(np.concatenate((np.flatnonzero(count > 1), single[order[first]])))


def assigned_by_unit(share: Reals, units: Numbers) -> SwitchFlows:
    """The flows that load the link most, if each switch sends and takes a whole number of units.

    A unit is assigned as a switch of its own. The rates are in units.
    """
    switch = np.repeat(np.arange(len(units)), units)
    source, destination = (switch[end] for end in assigned(share[np.ix_(switch, switch)]))
    flow, rate = np.unique(source * len(units) + destination, return_counts=True)
    return SwitchFlows(flow // len(units), flow % len(units), rate / 1.0)


def transported(share: Reals, hosts: Reals) -> SwitchFlows:
    """The flows that load the link most, if switches send and take at most the rates of hosts."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    source, destination = np.nonzero(share)
    flows, order = np.arange(len(source)), len(share)
    ends = np.concatenate((source, order + destination))
    sums = csr_matrix((np.ones(len(ends)), (ends, np.tile(flows, 2))), (2 * order, len(flows)))
    most = np.tile(hosts, 2)
    solved = linprog(-share[source, destination], A_ub=sums, b_ub=most, method="highs")
    positive = solved.x > 0
    return SwitchFlows(source[positive], destination[positive], solved.x[positive])
