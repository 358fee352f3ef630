"""The next hop of a packet by the tables of a build, whatever its balance (`routing.balance`).

The simulation's kernels call `choose_by_tables` for each packet at each switch. The rule of
forwarding (`compilers.forwarding.rule`) says which links a switch offers a packet, and one of them
is drawn or chosen here.

A packet carries one number besides its destination, its `detour_tag`. There are three kinds of
fabrics:

- In a fabric with *intermediates* (Valiant's routing, `net.uses_intermediates`) it is the random
  switch that the packet goes by. Up to there it is forwarded as a packet for that switch. From
  there on, or where the way to that switch is broken, it is forwarded as a packet of a host there.
- In a fabric that *marks* packets it is the mark, a number below MARKS. By it the next switch
  spreads the packet over its links, instead of using its tables.
- In other fabrics it is DIRECT, which also stands for a packet without intermediate or mark.

No fabric has both, and both are 0 or more, while DIRECT is below 0.

The policies are those of `hop_choice`: MINIMAL takes minimal ports, WEIGHTED draws by the weights
of the tables, and ADAPTIVE compares how long the packets wait.

An *egress class* of a switch is a forwarding equivalence class with its next-hop group.
`draw_number` takes a random number from 0 to 1 from a stream. `hash_number` computes one from a
flow, as ECMP does.
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
    MINIMAL,
    WEIGHTED,
    arc_of,
    draw_number,
    egress,
    egress_class,
    hash_number,
    host_egress,
    weighted_link_index,
)
from extensions.simulation.path_choice import DIRECT
from extensions.simulation.simulated_network import NOWHERE, SimulatedNetwork

MARKS = 1 << 30
"""How many values a mark can have, from 0."""


@inlined_loop
def host_chances(
    net: SimulatedNetwork,
    policy: int,
    flows: int,
    destination: int,
    arc: int,
    streams: NDArray[np.uint64],
    stream: int,
) -> tuple[float, float]:
    """Two numbers of [0, 1), by which a packet from a host chooses its path and its mark.

    They are random, or hashes of a flow. Both are 0 if the packet has no choice. The arguments are
    those of `choose_by_tables`.
    """
    if policy == MINIMAL:
        return 0.0, 0.0
    chance = draw_number(streams, stream)
    mark_chance = draw_number(streams, stream) if marks(net.program) else 0.0
    if not flows:
        return chance, mark_chance
    flow = int(chance * flows)
    return hash_number(arc, destination, flow), hash_number(destination, arc, flow)


@inlined_loop
def choose_by_tables(
    net: SimulatedNetwork,
    policy: int,
    threshold: float,
    flows: int,
    destination: int,
    arc: int,
    detour_tag: int,
    dead: NDArray[np.int64],
    offered: NDArray[np.int64],
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    stream: int,
) -> tuple[int, int]:
    """The egress arc of a packet, and its `detour_tag`: its mark, or its intermediate switch.

    `detour_tag` is `DIRECT` if it has neither.

    Args:
        net: the network.
        policy: MINIMAL, WEIGHTED or ADAPTIVE (`hop_choice`).
        threshold: the flits that have to wait for the minimal port before ADAPTIVE looks further.
        flows: how many flows each pair of hosts has; 0: each packet chooses by itself.
        destination: the arc of the host to which it goes.
        arc: the arc by which it came in.
        detour_tag: the `detour_tag` of the packet so far.
        dead: int64[n], the failed elements.
        offered: int64[2, K + 1], overwritten.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.
        streams: the random number generators.
        stream: the number of the stream to draw from.
    """
    program, ports = net.program, net.links_a_switch + net.hosts_a_switch
    switch, target = arc // ports, destination // ports
    ingress = arc - switch * ports
    class_number = egress_class(net, switch, target)
    # First the packets whose next hop is chosen at random: those of hosts, and spread ones.
    if ingress >= net.links_a_switch:
        chance, mark_chance = host_chances(net, policy, flows, destination, arc, streams, stream)
        if not net.uses_intermediates or policy != WEIGHTED or switch == target:
            link, tag = host_egress(
                net, switch, class_number, target, dead, offered, policy, threshold, port, chance
            )
            mark = int(mark_chance * MARKS) if tag == MARKED else DIRECT
            return arc_of(net, switch, link), mark
        # The packet goes by an intermediate, which is drawn here. As it came from a host, the rule
        # of forwarding has to see HOST as its ingress link below.
        intermediate_index = int(chance * len(net.intermediate_switches))
        ingress, detour_tag = HOST, int(net.intermediate_switches[intermediate_index])
    elif marks(program) and detour_tag >= 0 and spreads(program, class_number):
        # Here `detour_tag` is a mark, which chooses one of `count` links.
        count = next_links(
            program, switch, ingress, MARKED, class_number, dead, offered[0], offered[1]
        )
        link = offered[0, detour_tag * count // MARKS]
        return arc_of(net, switch, link) if count else NOWHERE, detour_tag
    # All others follow a class: that of their intermediate, or that of their destination.
    if net.uses_intermediates and detour_tag >= 0:  # here `detour_tag` is an intermediate
        intermediate_class = egress_class(net, switch, detour_tag)
        # It goes on to its destination from the intermediate, or where the way to that is broken.
        if detour_tag == switch or gives_up(program, switch, detour_tag, intermediate_class, dead):
            detour_tag, ingress = DIRECT, HOST  # from here on it is like a packet from a host
        else:
            class_number = intermediate_class
    if program.every_hop and policy != MINIMAL:
        # ECMP in transit, too. A packet that came by one of the next hops is bounced instead.
        shares = program.shares[switch, class_number]
        came_by_next_hop = class_number >= 0 and contains(shares, ingress)
        if not came_by_next_hop:
            chance = draw_number(streams, stream)
            count = next_links(
                program, switch, ingress, PLAIN, class_number, dead, offered[0], offered[1]
            )
            index = weighted_link_index(net, switch, class_number, offered[0, :count], chance)
            return egress(net, switch, offered[0, index], dead), detour_tag
    return egress(
        net, switch, transit(program, switch, ingress, class_number, dead), dead
    ), detour_tag
