"""The traffic of Valiant's routing: the two legs of all packets, as minimal traffic of their own.

A packet goes minimally from its source to a random intermediate, and from there minimally to its
destination (PolarFly paper, §VII-B). Each of these paths is a *leg*. In `two_legs` an intermediate
is neither end of the packet, as in the paper. In `over_intermediates` it is any switch with hosts,
the ends included, as with `balance: valiant`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic

MOST_INTERMEDIATES = 1024
"""The most intermediates for which the legs are followed: there is a flow for each pair of them."""


def two_legs(traffic: Traffic, endpoints: NDArray[np.bool_]) -> Traffic | None:
    """The legs of packets over a switch with hosts that is neither of their ends.

    None where there is no such switch, or more than `MOST_INTERMEDIATES`.

    Args:
        traffic: between switches with hosts.
        endpoints: bool[S], the switches with hosts.
    """
    ends = np.flatnonzero(endpoints)
    end_count, intermediate_count = len(ends), len(ends) - 2
    if not 0 < intermediate_count <= MOST_INTERMEDIATES:
        return None
    index = np.cumsum(endpoints) - 1  # of each switch among those with hosts
    direct = np.zeros((end_count, end_count))
    np.add.at(direct, (index[traffic.source], index[traffic.destination]), traffic.amount)
    # From s to t go first legs, of what s sends to others than t, and second legs, of what others
    # than s send to t. Each packet takes one of the intermediates.
    legs = direct.sum(axis=1)[:, None] + direct.sum(axis=0) - 2 * direct
    return _traffic_between(ends, legs / intermediate_count)


def over_intermediates(traffic: Traffic, ends: NDArray[np.int64], switches: int) -> Traffic:
    """The legs of packets over any switch with hosts, as with `balance: valiant`.

    Every switch sends the same part of its traffic to each intermediate. Each intermediate sends
    the same part of a destination's traffic to that destination.

    Args:
        traffic: of hosts.
        ends: int64[n], the switches with hosts, which are the intermediates
            (`compilers.routing.intermediates`).
        switches: S.
    """
    sent = np.bincount(traffic.source, traffic.amount, minlength=switches)[ends]
    received = np.bincount(traffic.destination, traffic.amount, minlength=switches)[ends]
    return _traffic_between(ends, (sent[:, None] + received) / len(ends))


def _traffic_between(ends: NDArray[np.int64], amount: NDArray[np.float64]) -> Traffic:
    """The traffic between switches, from float64[n, n]; a switch sends nothing to itself."""
    np.fill_diagonal(amount, 0)
    source, destination = np.nonzero(amount > 0)
    return Traffic.of(ends[source], ends[destination], amount[source, destination])
