"""The throughput of a traffic by the best possible routing: maximum concurrent flow.

`saturation` compares the tables of a build with it. A bound from above is quick to compute: all
flows take shortest paths, and load all links equally. If a known routing reaches the bound, the
bound is the optimum. Else the optimum is the solution of a linear program, in which the flows to
one destination are one commodity. The program is solved in small fabrics only; larger ones have the
bound alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
DESTINATIONS_AT_ONCE = 128
"""Destinations whose distances are in memory together."""
MOST_SWITCHES = 31
"""Switches up to which the linear program is solved: those of PolarFly of q = 5.

The program has a variable for each destination and direction of a link.
"""
SECONDS = 10.0
"""The time after which the solver gives up, and the bound is taken."""
ROUNDING = 1e-9
"""The part of the bound by which a routing may fall short of it by rounding errors."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The throughput of the best routing, as a share of what hosts can send."""

    share: float
    """The share, or one that no routing exceeds."""
    exact: bool
    """Whether some routing gets it."""


@dataclass(frozen=True, slots=True, eq=False)
class DirectedLinks:
    """The directions of links that traffic can take."""

    tail: Numbers
    """int64[n], the switch that each leaves."""
    head: Numbers
    """int64[n], the switch that it comes to."""
    capacity: Reals
    """float64[n], what it carries, in the unit of the traffic."""


def optimum(
    graph: Graph, traffic: Traffic, links: DirectedLinks, host_limit: float, known_share: float
) -> Optimum:
    """The throughput of the best routing.

    Args:
        graph: of the switches.
        traffic: what they send each other; not empty.
        links: both directions of the links between them.
        host_limit: the share that the links of hosts allow.
        known_share: the largest share of the routings that were computed before.
    """
    bound = min(host_limit, float(links.capacity.mean()) / least_load(graph, traffic))
    if known_share >= bound * (1 - ROUNDING):
        return Optimum(bound, exact=True)
    if graph.order > MOST_SWITCHES or not find_spec("scipy"):
        return Optimum(bound, exact=False)
    share = concurrent_flow(graph.order, traffic, links, bound)
    return Optimum(bound, exact=False) if share is None else Optimum(share, exact=True)


def least_load(graph: Graph, traffic: Traffic) -> float:
    """A lower bound of the load of the hottest link, by any routing, if links have one capacity.

    It is the load of each link if all flows take shortest paths, and load all links equally. So it
    is the sum of each flow's amount times its distance, divided by the 2E directions of links.
    """
    table, sum_of_loads = neighbour_table(graph), 0.0
    for first in range(0, graph.order, DESTINATIONS_AT_ONCE):
        flows = traffic.between(first, first + DESTINATIONS_AT_ONCE)
        destinations, row = np.unique(flows.destination, return_inverse=True)
        if len(destinations):
            distance = distances(table, destinations)[row.ravel(), flows.source]
            sum_of_loads += float(flows.amount @ distance)
    return sum_of_loads / (2 * graph.size)


def concurrent_flow(
    switches: int, traffic: Traffic, links: DirectedLinks, upper_bound: float
) -> float | None:
    """The largest share of a traffic that links carry by any paths; None where time is up.

    The columns of the linear program are the flow of each commodity over each link, commodity by
    commodity, and then the share. The share is maximised. At every switch, the flow of a commodity
    that leaves, less the flow that comes in, is the share times what the switch sends. No link
    carries more than its capacity.

    Args:
        switches: S.
        traffic: what they send each other.
        links: both directions of the links between them.
        upper_bound: a share that it does not exceed.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, csr_matrix, eye, hstack, kron

    destinations, commodity = np.unique(traffic.destination, return_inverse=True)
    link_count, commodities = len(links.tail), len(destinations)
    link = np.arange(link_count)
    # [S, links]: 1 where a link leaves a switch, -1 where it comes in.
    sign = np.concatenate((np.ones(link_count), -np.ones(link_count)))
    entries = np.concatenate((links.tail, links.head)), np.concatenate((link, link))
    incidence = coo_matrix((sign, entries), (switches, link_count))
    # What each switch sends of each commodity. What a destination takes is below 0.
    demand = np.zeros((commodities, switches))
    np.add.at(demand, (commodity.ravel(), traffic.source), traffic.amount)
    np.add.at(demand, (commodity.ravel(), traffic.destination), -traffic.amount)
    conservation = hstack((kron(eye(commodities), incidence), csr_matrix(-demand.reshape(-1, 1))))
    sums_of_flows = kron(np.ones((1, commodities)), eye(link_count))
    link_loads = hstack((sums_of_flows, csr_matrix((link_count, 1))))
    solution = linprog(
        c=np.append(np.zeros(commodities * link_count), -1.0),
        A_ub=link_loads.tocsr(),
        b_ub=links.capacity,
        A_eq=conservation.tocsr(),
        b_eq=np.zeros(commodities * switches),
        bounds=[*[(0, None)] * (commodities * link_count), (0, upper_bound)],
        method="highs",
        options={"time_limit": SECONDS},
    )
    return float(-solution.fun) if solution.status == 0 else None
