"""The egress of a packet by the tables, whatever its balance: what both kernels ask.

The rule (`compilers.forwarding.rule`) says which links a switch offers; one of them is drawn or
chosen here. A mark is a number that the next switch hashes; it is kept where packets that turn
elsewhere have the switch that they go by.
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
    dead: NDArray[np.int64],
    offered: NDArray[np.int64],
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    which: int,
) -> tuple[int, int]:
    """The egress of a packet, and its mark or the switch that it goes by; `DIRECT`: none.

    policy, threshold, dead, offered, port: as for `entering`. flows: of each pair of hosts, 0: each
    packet goes by itself. goal: the arc of its host. arc: by which it came in. via: what it had
    until here. streams, which: of chance.
    """
    p, ports = net.program, net.links + net.hosts
    switch, to = arc // ports, goal // ports
    came, c = arc - switch * ports, egress_class(net, switch, to)
    if came >= net.links:
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
        came, via = HOST, int(net.turning[int(u * len(net.turning))])
    elif marks(p) and via >= 0 and spreads(p, c):
        count = next_links(p, switch, came, MARKED, c, dead, offered[0], offered[1])
        link = offered[0, via * count // MARKS]
        return arc_of(net, switch, link) if count else NOWHERE, via
    if net.carries and via >= 0:
        leg = egress_class(net, switch, via)
        if via == switch or gives_up(p, switch, via, leg, dead):
            via, came = DIRECT, HOST  # from here it is one of this switch's hosts
        else:
            c = leg
    if p.every_hop and policy and (c < 0 or not contains(p.shares[switch, c], came)):
        u = drawn(streams, which)
        count = next_links(p, switch, came, PLAIN, c, dead, offered[0], offered[1])
        place = by_weight(net, switch, c, offered[0, :count], u)
        return egress(net, switch, offered[0, place], dead), via
    return egress(net, switch, transit(p, switch, came, c, dead), dead), via
