"""The egress of a packet by the tables, whatever its balance: what both kernels ask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from extensions.simulation.hop_choice import (
    EMITTED,
    came_by_next_hop,
    drawn,
    entering,
    hashed,
    transit,
    weighted,
)
from extensions.simulation.just_in_time import inner
from extensions.simulation.marked_packets import mark_for, onward, spreads
from extensions.simulation.path_choice import DIRECT
from extensions.simulation.simulated_network import NOWHERE, SimulatedNetwork


@inner
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
