"""The next hop of a packet by the tables of a build, whatever its balance.

Both kernels ask `by_tables`. The rule (`compilers.forwarding.rule`) says which links a switch
offers a packet, and one of them is drawn or chosen here. A packet has one number besides its
destination, `via`: its mark, which is a number that the next switch hashes; or the switch that it
goes by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop
from compilers.forwarding.rule import (
    HOST,
    MARKED,
    PLAIN,
    contains,
    gives_up,
    marks,
    next_links,
    spreads,
    transit,
)
from extensions.simulation.hop_choice import (
    EMITTED,
    arc_of,
    by_weight,
    drawn,
    egress,
    egress_class,
    entering,
    hashed,
)
from extensions.simulation.path_choice import DIRECT
from extensions.simulation.simulated_network import NOWHERE, SimulatedNetwork

MARKS = 1 << 30
"""How many numbers a mark can be."""


@inlined_loop
def by_tables(
    net: SimulatedNetwork,
    policy: int,
    threshold: float,
    flows: int,
    goal: int,
    arc: int,
    via: int,
    dead: NDArray[np.int64],
    offered: NDArray[np.int64],
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    which: int,
) -> tuple[int, int]:
    """The egress arc of a packet, and its `via`: its mark, or the switch that it goes by.

    `via` is `DIRECT` if it has neither.

    Args:
        net: the network.
        policy: as in `hop_choice.entering`.
        threshold: as in `hop_choice.entering`.
        flows: how many flows each pair of hosts has; 0: each packet chooses by itself.
        goal: the arc of its destination.
        arc: the arc by which it came in.
        via: its `via` so far.
        dead: int64[n], the failed elements.
        offered: int64[2, K + 1], overwritten.
        port: [S·L, 4], with the column BACKLOG.
        streams: the random number generators.
        which: the number of the stream to draw from.
    """
    p, ports = net.program, net.links + net.hosts
    switch, to = arc // ports, goal // ports
    ingress, c = arc - switch * ports, egress_class(net, switch, to)
    if ingress >= net.links:
        # From a host: a path is chosen, by a random number or by the hash of a flow.
        u = then = 0.0
        if policy:
            u = drawn(streams, which)
            if marks(p):
                then = drawn(streams, which)
            if flows:
                then = hashed(goal, arc, int(u * flows))
                u = hashed(arc, goal, int(u * flows))
        if not net.carries or policy != EMITTED or switch == to:
            link, tag = entering(net, switch, c, to, dead, offered, policy, threshold, port, u)
            return arc_of(net, switch, link), int(then * MARKS) if tag == MARKED else DIRECT
        ingress, via = HOST, int(net.turning[int(u * len(net.turning))])
    elif marks(p) and via >= 0 and spreads(p, c):
        count = next_links(p, switch, ingress, MARKED, c, dead, offered[0], offered[1])
        link = offered[0, via * count // MARKS]
        return arc_of(net, switch, link) if count else NOWHERE, via
    if net.carries and via >= 0:
        leg = egress_class(net, switch, via)
        if via == switch or gives_up(p, switch, via, leg, dead):
            via, ingress = DIRECT, HOST  # from here on it is like a packet from a host
        else:
            c = leg
    if p.every_hop and policy and (c < 0 or not contains(p.shares[switch, c], ingress)):
        u = drawn(streams, which)
        count = next_links(p, switch, ingress, PLAIN, c, dead, offered[0], offered[1])
        place = by_weight(net, switch, c, offered[0, :count], u)
        return egress(net, switch, offered[0, place], dead), via
    return egress(net, switch, transit(p, switch, ingress, c, dead), dead), via
