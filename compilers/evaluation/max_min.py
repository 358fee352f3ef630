"""Max-min fair rates of flows that share links: progressive filling (Bertsekas and Gallager, Data
Networks, §6.5.2), over arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
ENOUGH = 1e-9
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
        pull = np.bincount(link, share * growing[flow], minlength=len(capacity))
        used = np.bincount(link, share * rate[flow], minlength=len(capacity))
        room = np.full(len(capacity), np.inf)
        np.divide(capacity - used, pull, out=room, where=pull > ENOUGH)
        step = max(0.0, min(room.min(initial=np.inf), (demand - rate)[growing].min()))
        rate[growing] += step
        full = room <= step * (1 + ENOUGH)
        done = demand - rate <= ENOUGH * np.where(np.isfinite(demand), demand, 1)
        done[flow[full[link] & (share > 0)]] = True
        growing &= ~done
    return rate
