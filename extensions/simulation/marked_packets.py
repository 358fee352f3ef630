"""Marked packets in a simulation: the next switch spreads them (`compilers.routing.marked_spread`).

A mark is a number that the next switch hashes; it is kept where packets that turn elsewhere have
the switch that they go by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from extensions.simulation.just_in_time import inner
from extensions.simulation.path_choice import DIRECT
from extensions.simulation.simulated_network import NOWHERE, SimulatedNetwork

MARKS = 1 << 30
"""Numbers that marks can be."""


@inner
def mark_for(net: SimulatedNetwork, row: int, out: int, chance: float) -> int:
    """The mark of a packet that a class of its host's switch sends out by an egress; or `DIRECT`.

    chance: of [0, 1), that of the packet or of its flow.
    """
    return DIRECT if out < 0 or out == net.order[row, 0] else int(chance * MARKS)


@inner
def spreads(net: SimulatedNetwork, switch: int, goal: int, mark: int) -> bool:
    """Whether a switch spreads a packet to another switch: it is marked, and for no neighbour."""
    number, classes = net.number[switch, goal], len(net.order) // net.switches - 2
    return mark >= 0 and number < classes and number // net.links != 1


@inner
def onward(net: SimulatedNetwork, arc: int, mark: int, dead: NDArray[np.bool_]) -> int:
    """The egress of a packet that is spread and came in by an arc; `NOWHERE` if none is up."""
    ports = net.links + net.hosts
    first, count = arc // ports * ports, 0
    for k in range(net.links):
        count += net.onward[arc, k] and not dead[first + k]
    turn = mark * count // MARKS
    for k in range(net.links):
        if net.onward[arc, k] and not dead[first + k]:
            if not turn:
                return first + k
            turn -= 1
    return NOWHERE
