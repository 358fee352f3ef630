"""Channels for packets that take any shortest path, or two of them, one after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import BEYOND
from extensions.simulation.simulated_network import SimulatedNetwork


def path_channels(network: SimulatedNetwork, routing: str, scheme: str) -> int:
    """The channels that keep any shortest paths free of deadlock; schemes as in `channels`.

    Within a channel of `valley` paths rise and then fall, whichever they are; within one of `hop`
    there are no waits. So it is enough to count changes. A packet over two paths may change where
    it turns: twice as many channels do.

    Args:
        network: with distances.
        routing: `shortest`, or `ugal` or `valiant`, over two paths.
        scheme: hop or valley.
    """
    ends = np.flatnonzero(network.endpoints)
    if scheme == "hop":
        far = network.distance[np.ix_(ends, ends)]
        count = int(far[far < BEYOND].max(initial=1))
    else:
        count = 1 + int(_valleys(network)[np.ix_(ends, ends)].max(initial=0))
    return count * (1 if routing == "shortest" else 2)


def _valleys(network: SimulatedNetwork) -> NDArray[np.int8]:
    """int8[S, S]: most valleys of shortest paths from a switch to another, a level at a time."""
    distance, far = network.distance, network.far
    up = network.up.reshape(network.switches, network.ports)[:, : network.links].astype(np.bool_)
    fallen: NDArray[np.int8] = np.zeros(distance.shape, np.int8)
    risen = fallen.copy()
    for level in range(1, int(distance[distance < BEYOND].max(initial=0)) + 1):
        here = distance == level
        for k in range(network.links):
            on = here & (distance[far[:, k]] == level - 1) & (far[:, k] >= 0)[:, None]
            rises = up[:, k, None]
            after = np.where(rises, risen[far[:, k]], fallen[far[:, k]])
            risen = np.where(on, np.maximum(risen, after), risen)
            fallen = np.where(on, np.maximum(fallen, after + rises), fallen)
    return risen
