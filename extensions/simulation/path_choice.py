"""Chooses next hops without the tables of a balance: shortest paths, UGAL and Valiant.

The kernels call `without_tables` instead of `table_hops.by_tables`, so that simulations compare the
tables of a build with these policies:

- SHORTEST: every packet takes a shortest path.
- VALIANT (1982): every packet goes over a random switch.
- UGAL, that is UGAL-L (Singh, 2005; PolarStar paper, §9.3): a packet from a host compares the path
  to its destination with paths over a few random switches. It takes the path for which its links
  times the flits that wait for its first link is least. In a fat tree, where all shortest paths go
  up first, that is adaptive routing to a nearest common ancestor.
- UGAL_PF (PolarFly paper, §VII; the authors' program): a packet takes the path to its destination
  unless at least `threshold` flits wait for it. Otherwise it goes over the neighbour for which the
  fewest wait; to a destination that is a neighbour, over a random neighbour of that one. Packets go
  over switches with hosts only.

A path is the one of the minimal table, as in BookSim's `anynet`; or any shortest one, if the
network has distances (`SimulatedNetwork.with_distances`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop
from extensions.simulation.hop_choice import BACKLOG, drawn
from extensions.simulation.simulated_network import HOME, NOWHERE, SimulatedNetwork

SHORTEST, UGAL, VALIANT, UGAL_PF = 3, 4, 5, 6
"""Policies of all packets, after those of `hop_choice`."""
DIRECT = -1
"""The `via` of a packet that goes over no other switch: its own path."""


@inlined_loop
def minimal_row(net: SimulatedNetwork, switch: int, target: int) -> int:
    """The row of `transit_arcs` of a switch's class for another switch."""
    rows_of_switch = net.transit_arcs.shape[0] // net.switches
    return int(switch * rows_of_switch + net.class_number[switch, target])


@inlined_loop
def path_links(net: SimulatedNetwork, switch: int, target: int) -> np.int32:
    """The links of the path to a switch."""
    if len(net.distance):
        return np.int32(net.distance[target, switch])
    return np.int32(net.hops[switch, target])


@inlined_loop
def shortest_hop(
    net: SimulatedNetwork,
    switch: int,
    target: int,
    port: NDArray[Any],
    adaptive: bool,
    chance: float,
) -> int:
    """A link on a shortest path to a switch, `HOME` if it is this one, `NOWHERE` if there is none.

    Args:
        net: the network, with distances or without.
        switch: the switch that the packet is in.
        target: the switch that it goes to.
        port: [S·L, 4], with the column BACKLOG.
        adaptive: whether the links are compared for which fewest flits wait, or all shortest ones.
        chance: a random number of [0, 1), which draws one of several.
    """
    if not len(net.distance):
        return int(net.transit_arcs[minimal_row(net, switch, target), 0])
    ports, distance = net.links + net.hosts, net.distance[target]
    links_left = distance[switch]
    if links_left == 0:
        return HOME
    fewest_waiting, count = np.int32(2**31 - 1), 0
    for out in range(switch * ports, switch * ports + net.links):
        far = net.end[out]
        if far >= 0 and distance[far // ports] == links_left - 1:
            waiting = port[out, BACKLOG] if adaptive else np.int32(0)
            if waiting < fewest_waiting:
                fewest_waiting, count = waiting, 0
            count += waiting == fewest_waiting
    left_to_skip = int(chance * count)
    for out in range(switch * ports, switch * ports + net.links):
        far = net.end[out]
        nearer = far >= 0 and distance[far // ports] == links_left - 1
        if nearer and (not adaptive or port[out, BACKLOG] == fewest_waiting):
            if not left_to_skip:
                return out
            left_to_skip -= 1
    return NOWHERE


@inlined_loop
def ugal_pf_detour(
    net: SimulatedNetwork,
    switch: int,
    destination: int,
    hop: int,
    port: NDArray[Any],
    chance: float,
) -> tuple[int, int]:
    """The egress by UGAL_PF of a packet whose minimal egress is loaded, and the switch it goes by.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        hop: the minimal egress of the packet.
        port: [S·L, 4], with the column BACKLOG.
        chance: a random number of [0, 1).
    """
    ports, best = net.links + net.hosts, hop
    for out in range(switch * ports, switch * ports + net.links):
        far = net.end[out]
        if far >= 0 and net.endpoints[far // ports] and port[out, BACKLOG] < port[best, BACKLOG]:
            best = out
    if best == hop:
        return hop, DIRECT
    via = net.end[best] // ports
    if path_links(net, switch, destination) > 1:
        return best, via
    arcs_from_via = net.end[via * ports : via * ports + net.links]
    count = 0
    for far in arcs_from_via:
        count += (
            far >= 0 and far // ports not in (switch, destination) and net.endpoints[far // ports]
        )
    left_to_skip = int(chance * count)
    for far in arcs_from_via:
        if far >= 0 and far // ports not in (switch, destination) and net.endpoints[far // ports]:
            if not left_to_skip:
                via = far // ports
                return shortest_hop(net, switch, via, port, True, 0.0), via
            left_to_skip -= 1
    return best, via


@inlined_loop
def without_tables(
    net: SimulatedNetwork,
    policy: int,
    samples: int,
    threshold: float,
    switch: int,
    destination: int,
    via: int,
    from_host: bool,
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    stream: int,
) -> tuple[int, int]:
    """The egress arc of a packet, and the switch that it goes by, or `DIRECT`.

    Args:
        net: the network.
        policy: SHORTEST, UGAL, VALIANT or UGAL_PF.
        samples: how many switches UGAL draws.
        threshold: the flits that have to wait for the path before UGAL_PF looks for another one.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        via: the switch that it goes by so far, or `DIRECT`.
        from_host: whether it comes from a host of this switch.
        port: [S·L, 4], with the column BACKLOG.
        streams: the random number generators.
        stream: the number of the stream to draw from.
    """
    adaptive = policy in (UGAL, UGAL_PF)
    if via == switch or from_host:
        via = DIRECT
    intermediates = net.intermediate_switches
    if from_host and policy == VALIANT and switch != destination and len(intermediates) > 2:
        via = int(intermediates[int(drawn(streams, stream) * len(intermediates))])
        while via in (switch, destination):
            via = int(intermediates[int(drawn(streams, stream) * len(intermediates))])
    target = via if via != DIRECT else destination
    hop = shortest_hop(net, switch, target, port, adaptive, drawn(streams, stream))
    if not from_host or not adaptive or hop < 0 or not port[hop, BACKLOG]:
        return hop, via
    if policy == UGAL_PF:
        if port[hop, BACKLOG] < threshold:
            return hop, via
        return ugal_pf_detour(net, switch, destination, hop, port, drawn(streams, stream))
    cost = path_links(net, switch, destination) * port[hop, BACKLOG]
    for _ in range(samples):
        middle = intermediates[int(drawn(streams, stream) * len(intermediates))]
        if middle in (switch, destination):
            continue
        detour = shortest_hop(net, switch, middle, port, adaptive, drawn(streams, stream))
        if detour >= 0:
            links = path_links(net, switch, middle) + path_links(net, middle, destination)
            if links * port[detour, BACKLOG] < cost:
                hop, via, cost = detour, middle, links * port[detour, BACKLOG]
    return hop, via
