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
from compilers.forwarding.rule import DELIVER, DROP, HOST, PLAIN, is_up, next_links, transit
from extensions.simulation.simulated_network import HOME, NOWHERE, SimulatedNetwork

MINIMAL, EMITTED, ADAPTIVE = range(3)
"""Policies of packets from hosts.

- MINIMAL: they take the minimal port.
- EMITTED: they take a port by weights.
- ADAPTIVE: they take the minimal port, or where it is loaded the port with the least delay
  (UGAL_PF).
"""
BACKLOG = 3
"""The column of `port`, in the states of simulations, with the flits that wait for an egress."""
SPREAD_LINKS = 4
"""The links of the path of a packet that was marked and spread."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64: 2^64 divided by the golden ratio."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The factors of SplitMix64."""
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
"""The shifts of SplitMix64, in bits."""
_S29, _S32 = np.uint64(29), np.uint64(32)
"""Other shifts, of `hashed`, in bits."""
_S11 = np.uint64(11)
"""The bits of a 64-bit number beyond the 53 that a float holds exactly."""
_UNIT = 1.0 / (1 << 53)
"""The distance of two random numbers of 53 bits."""


@loop
def drawn(streams: NDArray[np.uint64], stream: int) -> float:
    """The next random number of [0, 1) of a stream (SplitMix64: Steele, Lea and Flood, 2014).

    Args:
        streams: uint64[n], the states of the streams; one is advanced.
        stream: the number of the stream.
    """
    z = streams[stream] + _GOLDEN
    streams[stream] = z
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    z = z ^ (z >> _S31)
    return float(z >> _S11) * _UNIT


@inlined_loop
def hashed(source: int, destination: int, flow: int) -> float:
    """The number of [0, 1) that a flow between two hosts is hashed to."""
    z = np.uint64(source) * _GOLDEN + np.uint64(destination)
    z = (z ^ (z >> _S29)) * _FIRST + np.uint64(flow)
    z = (z ^ (z >> _S32)) * _SECOND
    z = z ^ (z >> _S31)
    return float(z >> _S11) * _UNIT


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
        return switch * (net.links + net.hosts) + link
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
def by_weight(
    net: SimulatedNetwork, switch: int, c: int, links: NDArray[np.int64], chance: float
) -> int:
    """Which of the links that the rule offers a packet takes, by the weights of its class.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        c: the egress class of the packet.
        links: int64[n], the links that the rule offers.
        chance: a random number of [0, 1).

    Returns:
        A place in `links`.
    """
    if len(links) == 1:
        return 0
    shares = net.program.shares[switch, c]
    row = switch * (len(net.transit_arcs) // net.switches) + c
    total = place = 0
    for i in range(len(shares)):
        if place < len(links) and shares[i] == links[place]:
            total += net.weight[row, i]
            place += 1
    remaining, place = chance * total, 0
    for i in range(len(shares)):
        if place < len(links) and shares[i] == links[place]:
            remaining -= net.weight[row, i]
            if remaining < 0:
                return place
            place += 1
    return len(links) - 1


@inlined_loop
def path_length(net: SimulatedNetwork, hop: int, destination: int) -> int:
    """The number of links of the path to a destination that begins with an egress arc.

    After the first link the path is minimal, unless the next switch bounces or spreads the packet.

    Args:
        net: the network.
        hop: the egress arc.
        destination: the switch where the path ends.
    """
    rows_of_switch, ports = net.transit_arcs.shape[0] // net.switches, net.links + net.hosts
    switch, next_switch = hop // ports, net.end[hop] // ports
    c = net.class_number[next_switch, destination]
    row = next_switch * rows_of_switch + c
    minimal = net.transit_arcs[switch * rows_of_switch + net.class_number[switch, destination], 0]
    if len(net.program.onward) and hop != minimal and c < net.links:
        return SPREAD_LINKS
    if net.transit_arcs[row, 0] == net.end[hop]:
        ingress = net.end[hop] - next_switch * ports
        for bounce in net.program.bounce[next_switch, c]:
            if bounce >= 0 and bounce != ingress:
                return 2 + int(net.hops[net.program.far[next_switch, bounce], destination])
    return 1 + int(net.hops[next_switch, destination])


@inlined_loop
def least_delay(
    net: SimulatedNetwork,
    switch: int,
    destination: int,
    links_up: NDArray[np.int64],
    port: NDArray[Any],
) -> int:
    """The link of least delay among those that the rule offers: flits that wait times path links.

    Among equals the minimal link comes first, then the others in the order of their ports.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        links_up: int64[n], the links that the rule offers.
        port: [S·L, 4], with the column BACKLOG.

    Returns:
        A place in `links_up`.
    """
    best_place, least_cost = 0, -1
    for place in range(len(links_up)):
        hop = arc_of(net, switch, links_up[place])
        if hop >= 0:
            cost = port[hop, BACKLOG] * path_length(net, hop, destination)
            if least_cost < 0 or cost < least_cost:
                best_place, least_cost = place, cost
    return best_place


@inlined_loop
def host_egress(
    net: SimulatedNetwork,
    switch: int,
    c: int,
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
        c: the egress class of its destination.
        destination: the switch to which it goes.
        dead: int64[n], the failed elements.
        offered: int64[2, K + 1], written: the links that the rule offers, and the tags.
        policy: MINIMAL, EMITTED or ADAPTIVE.
        threshold: the flits that have to wait for the minimal port before ADAPTIVE looks further.
        port: [S·L, 4], with the column BACKLOG.
        chance: a random number of [0, 1).
    """
    minimal = arc_of(net, switch, net.program.order[switch, c, 0]) if c >= 0 else NOWHERE
    is_loaded = minimal >= 0 and port[minimal, BACKLOG] >= threshold
    if policy == EMITTED or (policy == ADAPTIVE and is_loaded):
        count = next_links(net.program, switch, HOST, PLAIN, c, dead, offered[0], offered[1])
        if policy == EMITTED:
            place = by_weight(net, switch, c, offered[0, :count], chance)
        else:
            place = least_delay(net, switch, destination, offered[0, :count], port)
        return int(offered[0, place]), int(offered[1, place])
    return transit(net.program, switch, HOST, c, dead), PLAIN
