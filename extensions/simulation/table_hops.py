"""The egress of a packet by the tables, whatever its balance: what both kernels ask.

The next switch spreads packets that are marked (`compilers.routing.marked_spread`). A mark is a
number that it hashes; it is kept where packets that turn elsewhere have the switch that they go by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop
from extensions.simulation.hop_choice import (
    EMITTED,
    came_by_next_hop,
    drawn,
    entering,
    hashed,
    transit,
    weighted,
)
from extensions.simulation.path_choice import DIRECT
from extensions.simulation.simulated_network import NOWHERE, SimulatedNetwork

MARKS = 1 << 30
"""Numbers that marks can be."""


@inlined_loop
def by_tables(
    net: SimulatedNetwork,
    policy: int,
    threshold: float,
    flows: int,
    goal: int,
    arc: int,
    via: int,
    dead: NDArray[np.bool_],
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    which: int,
) -> tuple[int, int]:
    """The egress of a packet, and its mark or the switch that it goes by; `DIRECT`: none.

    policy, threshold, port: as for `entering`. flows: of each pair of hosts, 0: each packet goes
    by itself. goal: the arc of its host. arc: by which it came in. via: what it had until here.
    streams, which: of chance.
    """
    ports, width = net.links + net.hosts, net.order.shape[0] // net.switches
    switch, to = arc // ports, goal // ports
    row, marks = switch * width + net.number[switch, to], len(net.onward) > 0
    if arc - switch * ports >= net.links:
        u = then = 0.0
        if policy:
            u = drawn(streams, which)
            if marks:
                then = drawn(streams, which)
            if flows:
                then = hashed(goal, arc, int(u * flows))
                u = hashed(arc, goal, int(u * flows))
        if not net.carries or policy != EMITTED or switch == to:
            out = entering(net, row, arc, to, dead, policy, threshold, port, u)
            return out, mark_for(net, row, out, then) if marks else DIRECT
        via = int(net.turning[int(u * len(net.turning))])
    elif marks and spreads(net, switch, to, via):
        return onward(net, arc, via, dead), via
    if net.carries and via >= 0:
        there = switch * width + net.number[switch, via]
        first, repairs = net.order[there, 0], net.order.shape[1] > 1
        lost = repairs and first >= 0 and net.end[first] // ports == via and dead[first]
        if via == switch or lost:  # from here it is one of this switch's hosts
            via, arc = DIRECT, NOWHERE
        else:
            row = there
    if net.every_hop and policy and not came_by_next_hop(net, row, arc):
        hop = weighted(net, row, drawn(streams, which), dead)
        if hop >= 0:
            return int(hop), via
    return transit(net, row, arc, dead), via


@inlined_loop
def mark_for(net: SimulatedNetwork, row: int, out: int, chance: float) -> int:
    """The mark of a packet that a class of its host's switch sends out by an egress; or `DIRECT`.

    chance: of [0, 1), that of the packet or of its flow.
    """
    return DIRECT if out < 0 or out == net.order[row, 0] else int(chance * MARKS)


@inlined_loop
def spreads(net: SimulatedNetwork, switch: int, goal: int, mark: int) -> bool:
    """Whether a switch spreads a packet to another switch: it is marked, and for no neighbour."""
    number, classes = net.number[switch, goal], len(net.order) // net.switches - 2
    return mark >= 0 and number < classes and number // net.links != 1


@inlined_loop
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
