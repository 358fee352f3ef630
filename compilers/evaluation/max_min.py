"""Max-min fair rates of flows that share links, by progressive filling over arrays.

`max_min` takes flows with their links, capacities and demands, and returns the rates (Bertsekas and
Gallager, Data Networks, §6.5.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
TOLERANCE = 1e-9
"""The relative tolerance for a full link and a satisfied flow."""


def max_min(
    link: NDArray[np.integer],
    flow: NDArray[np.integer],
    share: Reals,
    capacity: Reals,
    demand: Reals,
) -> Reals:
    """float64[n]: the rate of each of n flows.

    All rates grow together. When a link is full, the flows over it stop growing; a flow that has
    its demand stops too. A flow that no link limits gets its demand.

    `link`, `flow` and `share` are the columns of a table: each of its m rows says that a part of a
    flow crosses a link. Here flow 0 crosses links 0 and 1, and flows 1 and 2 one of them each:

    >>> link, flow, share = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]), np.ones(4)
    >>> max_min(link, flow, share, capacity=np.array([1.0, 3.0]), demand=np.full(3, 9.0))
    array([0.5, 0.5, 2.5])

    Args:
        link: int[m], a link that a flow crosses.
        flow: int[m], that flow.
        share: float64[m], the part of the flow that crosses it.
        capacity: float64[E], of each link, in any unit; inf where it has no limit.
        demand: float64[n], of each flow, in that unit; may be inf if a link limits the flow.
    """
    rate = np.zeros(len(demand))
    growing = demand > 0
    while growing.any():
        # By how much the load of each link grows if all growing rates grow by 1.
        growth = np.bincount(link, share * growing[flow], minlength=len(capacity))
        load = np.bincount(link, share * rate[flow], minlength=len(capacity))
        # How much rates can grow until each link is full.
        growth_until_full = np.full(len(capacity), np.inf)
        np.divide(capacity - load, growth, out=growth_until_full, where=growth > TOLERANCE)
        first_full = growth_until_full.min(initial=np.inf)
        first_satisfied = (demand - rate)[growing].min()
        step = max(0.0, min(first_full, first_satisfied))
        rate[growing] += step
        is_full = growth_until_full <= step * (1 + TOLERANCE)
        stops = demand - rate <= TOLERANCE * np.where(np.isfinite(demand), demand, 1)
        stops[flow[is_full[link] & (share > 0)]] = True
        growing &= ~stops
    return rate
