"""The throughput of a traffic by the best possible routing: maximum concurrent flow.

`saturation` compares its tables with it. An upper bound is quick: all flows take shortest paths,
spread evenly over all links. The exact value is the solution of a linear program, in which the
flows to one destination are one commodity. It is solved if no known routing reaches the bound, and
the fabric is small.
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
"""Switches up to which the program is solved: PolarFly of q = 5."""
SECONDS = 10.0
"""The time after which the solver gives up, and the bound is taken."""
REACHED_PART = 1 - 1e-9
"""The part of the bound from which on a known routing counts as optimal."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The throughput of the best routing, as a share of what hosts can send."""

    share: float
    """The share, or one that no routing exceeds."""
    exact: bool
    """Whether some routing gets it."""


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """The directions of links that traffic can take."""

    tail: Numbers
    """int64[n], the switch that each leaves."""
    head: Numbers
    """int64[n], the switch that it comes to."""
    capacity: Reals
    """float64[n], what it carries, in the unit of the traffic."""


def optimum(
    graph: Graph, traffic: Traffic, arcs: Arcs, host_limit: float, known_share: float
) -> Optimum:
    """The throughput of the best routing.

    Args:
        graph: of the switches.
        traffic: what they send each other; not empty.
        arcs: the links.
        host_limit: the share that the links of hosts allow.
        known_share: the share that a routing is known to get.
    """
    bound = min(host_limit, float(arcs.capacity.mean()) / least_load(graph, traffic))
    if known_share >= bound * REACHED_PART:
        return Optimum(bound, exact=True)
    if graph.order > MOST_SWITCHES or not find_spec("scipy"):
        return Optimum(bound, exact=False)
    share = concurrent_flow(graph.order, traffic, arcs, bound)
    return Optimum(bound, exact=False) if share is None else Optimum(share, exact=True)


def least_load(graph: Graph, traffic: Traffic) -> float:
    """A lower bound of the load of the hottest link, by any routing, if links have one capacity.

    It is the load of each link if all flows take shortest paths, and load all links equally.
    """
    table, crossed = neighbour_table(graph), 0.0
    for first in range(0, graph.order, DESTINATIONS_AT_ONCE):
        part = traffic.between(first, first + DESTINATIONS_AT_ONCE)
        ends, row = np.unique(part.destination, return_inverse=True)
        if len(ends):
            crossed += float(part.amount @ distances(table, ends)[row.ravel(), part.source])
    return crossed / (2 * graph.size)


def concurrent_flow(
    switches: int, traffic: Traffic, arcs: Arcs, upper_bound: float
) -> float | None:
    """The largest share of a traffic that links carry by any paths; None where time is up.

    The columns of the linear program are the flow of each commodity over each link, commodity by
    commodity, and then the share. The share is maximised. At every switch, the flow of a commodity
    that leaves, less the flow that comes in, is the share times what the switch sends. No link
    carries more than its capacity.

    Args:
        switches: S.
        traffic: what they send each other.
        arcs: the links.
        upper_bound: a share that it does not exceed.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, csr_matrix, eye, hstack, kron

    destinations, commodity = np.unique(traffic.destination, return_inverse=True)
    links, commodities = len(arcs.tail), len(destinations)
    link = np.arange(links)
    # [S, links]: 1 where a link leaves a switch, -1 where it comes in.
    sign = np.concatenate((np.ones(links), -np.ones(links)))
    entries = np.concatenate((arcs.tail, arcs.head)), np.concatenate((link, link))
    incidence = coo_matrix((sign, entries), (switches, links))
    # What each switch sends of each commodity; its destination takes all, below 0.
    demand = np.zeros((commodities, switches))
    np.add.at(demand, (commodity.ravel(), traffic.source), traffic.amount)
    np.add.at(demand, (commodity.ravel(), traffic.destination), -traffic.amount)
    conservation = hstack((kron(eye(commodities), incidence), csr_matrix(-demand.reshape(-1, 1))))
    link_loads = hstack((kron(np.ones((1, commodities)), eye(links)), csr_matrix((links, 1))))
    solution = linprog(
        c=np.append(np.zeros(commodities * links), -1.0),
        A_ub=link_loads.tocsr(),
        b_ub=arcs.capacity,
        A_eq=conservation.tocsr(),
        b_eq=np.zeros(commodities * switches),
        bounds=[*[(0, None)] * (commodities * links), (0, upper_bound)],
        method="highs",
        options={"time_limit": SECONDS},
    )
    return float(-solution.fun) if solution.status == 0 else None
