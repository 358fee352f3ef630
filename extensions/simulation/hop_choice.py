"""Chooses one of the links that the tables offer a packet from a host, by a policy.

The rule of forwarding (`compilers.forwarding.rule`) says which links a packet may take. A policy
says which one it takes: the minimal one, one by the weights of its class, or one for which few
packets wait. `table_hops` calls `host_egress`. The random numbers of both kernels come from here,
too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import DELIVER, DROP, HOST, PLAIN, is_up, marks, next_links, transit
from extensions.simulation.simulated_network import HOME, NOWHERE, SimulatedNetwork

MINIMAL, WEIGHTED, ADAPTIVE = range(3)
"""Policies of packets from hosts. `path_choice` has further ones.

- MINIMAL: they take the minimal port.
- WEIGHTED: they take a port at random, by the weights of the tables.
- ADAPTIVE: they take the minimal port, or where it is loaded the port with the least delay
  (UGAL_PF).
"""
BACKLOG = 3
"""The column of `port`, in the states of simulations, with the flits that wait for an egress."""
SPREAD_LINKS = 4
"""The links of the path of a packet that was marked and spread: to the switch that spreads it, over
a random link, and then the two of a minimal path."""
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64: 2^64 divided by the golden ratio."""
_FACTOR_1, _FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The factors of SplitMix64."""
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
"""The shifts of SplitMix64, in bits."""
_HASH_SHIFT_1, _HASH_SHIFT_2 = np.uint64(29), np.uint64(32)
"""The first two shifts of `hash_number`, in bits. They differ from those above, so that a flow's
hash is no number of a stream."""
_BEYOND_FLOAT = np.uint64(11)
"""The bits of a 64-bit number beyond the 53 that a float holds exactly."""
_UNIT = 1.0 / (1 << 53)
"""The distance of two random numbers of 53 bits."""


@loop
def draw_number(streams: NDArray[np.uint64], stream: int) -> float:
    """The next random number of [0, 1) of a stream (SplitMix64: Steele, Lea and Flood, 2014).

    Args:
        streams: uint64[n], the states of the streams; one is advanced.
        stream: the number of the stream.
    """
    z = streams[stream] + _INCREMENT
    streams[stream] = z
    z = (z ^ (z >> _SHIFT_1)) * _FACTOR_1
    z = (z ^ (z >> _SHIFT_2)) * _FACTOR_2
    z = z ^ (z >> _SHIFT_3)
    return float(z >> _BEYOND_FLOAT) * _UNIT


@inlined_loop
def hash_number(source: int, destination: int, flow: int) -> float:
    """The number of [0, 1) that a flow between two hosts is hashed to.

    It is mixed from the two hosts and the number of the flow, as SplitMix64 mixes a state.
    """
    z = np.uint64(source) * _INCREMENT + np.uint64(destination)
    z = (z ^ (z >> _HASH_SHIFT_1)) * _FACTOR_1 + np.uint64(flow)
    z = (z ^ (z >> _HASH_SHIFT_2)) * _FACTOR_2
    z = z ^ (z >> _SHIFT_3)
    return float(z >> _BEYOND_FLOAT) * _UNIT


@inlined_loop
def egress_class(net: SimulatedNetwork, switch: int, destination: int) -> int:
    """The egress class of a switch for another switch; `DELIVER` or `DROP`."""
    number, classes = int(net.class_number[switch, destination]), net.program.order.shape[1]
    if number < classes:
        return number
    return DELIVER if number == classes else DROP


@inlined_loop
def arc_of(net: SimulatedNetwork, switch: int, link: int) -> int:
    """The egress arc of a link of a switch; `HOME` for `DELIVER`, `NOWHERE` for `DROP`."""
    if link >= 0:
        return switch * (net.links_a_switch + net.hosts_a_switch) + link
    return HOME if link == DELIVER else NOWHERE


@inlined_loop
def egress(net: SimulatedNetwork, switch: int, link: int, dead: NDArray[np.int64]) -> int:
    """The egress arc of a link that the rule names; `NOWHERE` if the link is down.

    The rule sends a packet back over its ingress link without asking whether that is still up.
    """
    if link >= 0 and not is_up(net.program, switch, link, dead):
        return NOWHERE
    return arc_of(net, switch, link)


@inlined_loop
def weighted_link_index(
    net: SimulatedNetwork, switch: int, class_number: int, links: NDArray[np.int64], chance: float
) -> int:
    """Which of the links that the rule offers a packet takes, by the weights of its class.

    The class lists its links in order, each with a weight. `links` are those of them that are up,
    in the same order. The first loop sums up the weights of `links`. The second loop takes the
    weights off the fraction `chance` of that sum, one after the other, until nothing is left: that
    link is taken.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        class_number: the egress class of the packet.
        links: int64[n], the links that the rule offers.
        chance: a random number of [0, 1).

    Returns:
        An index in `links`.
    """
    if len(links) == 1:
        return 0
    shares = net.program.shares[switch, class_number]
    rows_a_switch = len(net.transit_arcs) // net.switches
    class_row = switch * rows_a_switch + class_number
    total = index = 0
    for i in range(len(shares)):
        if index < len(links) and shares[i] == links[index]:
            total += net.weight[class_row, i]
            index += 1
    remaining, index = chance * total, 0
    for i in range(len(shares)):
        if index < len(links) and shares[i] == links[index]:
            remaining -= net.weight[class_row, i]
            if remaining < 0:
                return index
            index += 1
    return len(links) - 1


@inlined_loop
def path_length(net: SimulatedNetwork, out: int, destination: int) -> int:
    """The number of links of the path to a destination that begins with an egress arc.

    After the first link the path is minimal, with two exceptions:

    - The next switch may spread the packet: in a fabric with marks, if the first link is not the
      minimal one and the next switch has a class for the destination that can be spread.
    - The next switch may bounce the packet, if its minimal link is the one that the packet came by.

    Args:
        net: the network.
        out: the egress arc.
        destination: the switch where the path ends.
    """
    rows_a_switch = len(net.transit_arcs) // net.switches
    ports = net.links_a_switch + net.hosts_a_switch
    switch, in_arc = out // ports, net.far_arc[out]
    next_switch = in_arc // ports
    next_class = net.class_number[next_switch, destination]
    minimal = net.transit_arcs[switch * rows_a_switch + net.class_number[switch, destination], 0]
    is_marked = marks(net.program) and out != minimal
    # Packets to the next switch itself or to its neighbours are not spread (`rule.spreads`).
    can_be_spread = next_class < net.links_a_switch
    if is_marked and can_be_spread:
        return SPREAD_LINKS
    if net.transit_arcs[next_switch * rows_a_switch + next_class, 0] == in_arc:
        ingress = in_arc - next_switch * ports
        for bounce in net.program.bounce[next_switch, next_class]:
            if bounce >= 0 and bounce != ingress:
                return 2 + int(net.hops[net.program.far[next_switch, bounce], destination])
    return 1 + int(net.hops[next_switch, destination])


@inlined_loop
def least_delay_index(
    net: SimulatedNetwork,
    switch: int,
    destination: int,
    links: NDArray[np.int64],
    port: NDArray[Any],
) -> int:
    """Which of the links that the rule offers has the least delay.

    The delay is estimated as the flits that wait for a link, times the links of the path over it.

    Among equals the minimal link comes first, then the others in the order of their ports.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        links: int64[n], the links that the rule offers.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.

    Returns:
        An index in `links`.
    """
    best_index, least_cost = 0, -1
    for index in range(len(links)):
        out = arc_of(net, switch, links[index])
        if out >= 0:
            cost = port[out, BACKLOG] * path_length(net, out, destination)
            if least_cost < 0 or cost < least_cost:
                best_index, least_cost = index, cost
    return best_index


@inlined_loop
def host_egress(
    net: SimulatedNetwork,
    switch: int,
    class_number: int,
    destination: int,
    dead: NDArray[np.int64],
    offered: NDArray[np.int64],
    policy: int,
    threshold: float,
    port: NDArray[Any],
    chance: float,
) -> tuple[int, int]:
    """The egress link of a packet from a host, by a policy, and its tag.

    ADAPTIVE is UGAL_PF (PolarFly paper, §VII-C): the minimal port unless at least `threshold` flits
    wait for it; then the port of the class for which the flits that wait, times the links of the
    path, are fewest.

    Args:
        net: the network.
        switch: the switch of the host.
        class_number: the egress class of its destination.
        destination: the switch to which it goes.
        dead: int64[n], the failed elements.
        offered: int64[2, K + 1], written: the links that the rule offers, and the tags.
        policy: MINIMAL, WEIGHTED or ADAPTIVE.
        threshold: the flits that have to wait for the minimal port before ADAPTIVE looks further.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.
        chance: a random number of [0, 1).
    """
    minimal = NOWHERE
    if class_number >= 0:
        minimal = arc_of(net, switch, net.program.order[switch, class_number, 0])
    is_loaded = minimal >= 0 and port[minimal, BACKLOG] >= threshold
    if policy == WEIGHTED or (policy == ADAPTIVE and is_loaded):
        count = next_links(
            net.program, switch, HOST, PLAIN, class_number, dead, offered[0], offered[1]
        )
        if policy == WEIGHTED:
            index = weighted_link_index(net, switch, class_number, offered[0, :count], chance)
        else:
            index = least_delay_index(net, switch, destination, offered[0, :count], port)
        return int(offered[0, index]), int(offered[1, index])
    return transit(net.program, switch, HOST, class_number, dead), PLAIN
