"""Chooses next hops without the tables of a balance: shortest paths, UGAL and Valiant.

The kernels call `choose_without_tables` instead of `table_hops.choose_by_tables`, so that
simulations compare the tables of a build with these policies:

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

In the code `out` is an egress arc, and `in_arc` the arc at the other end of its link. `detour_tag`
is the switch that a packet goes by, or `DIRECT`. The packet is forwarded to it first, and from
there on to its destination. The *backlog* of an egress is how many flits wait for it (column
BACKLOG of `port`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop
from extensions.simulation.hop_choice import BACKLOG, draw_number
from extensions.simulation.simulated_network import HOME, NOWHERE, SimulatedNetwork

SHORTEST, UGAL, VALIANT, UGAL_PF = 3, 4, 5, 6
"""Policies of packets from hosts, numbered after those of `hop_choice`."""
DIRECT = -1
"""The `detour_tag` of a packet that goes straight to its destination."""


@inlined_loop
def minimal_row(net: SimulatedNetwork, switch: int, target: int) -> int:
    """The row of `transit_arcs` of a switch's class for another switch."""
    rows_of_switch = net.transit_arcs.shape[0] // net.switches
    return int(switch * rows_of_switch + net.class_number[switch, target])


@inlined_loop
def path_links(net: SimulatedNetwork, switch: int, target: int) -> np.int32:
    """The links of the path from a switch to another."""
    if len(net.distance):
        return np.int32(net.distance[target, switch])  # the distance is the same both ways
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
    """The egress on a shortest path to a switch, `HOME` if it is this one, `NOWHERE` for none.

    With distances there may be several. Those are counted, and then the one is taken that the
    random number stands for.

    Args:
        net: the network, with distances or without.
        switch: the switch that the packet is in.
        target: the switch that it goes to.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.
        adaptive: whether only those with the smallest backlog count, or all on shortest paths.
        chance: a random number of [0, 1), which draws one of several.
    """
    if not len(net.distance):
        return int(net.transit_arcs[minimal_row(net, switch, target), 0])
    ports, distance = net.links_a_switch + net.hosts_a_switch, net.distance[target]
    links_left = distance[switch]
    if links_left == 0:
        return HOME
    # Count the links to nearer switches, and among them those with the smallest backlog.
    smallest_backlog, count = np.int32(2**31 - 1), 0
    for out in range(switch * ports, switch * ports + net.links_a_switch):
        in_arc = net.far_arc[out]
        if in_arc >= 0 and distance[in_arc // ports] == links_left - 1:
            backlog = port[out, BACKLOG] if adaptive else np.int32(0)
            if backlog < smallest_backlog:
                smallest_backlog, count = backlog, 0
            count += backlog == smallest_backlog
    # Take the one that the random number stands for.
    left_to_skip = int(chance * count)
    for out in range(switch * ports, switch * ports + net.links_a_switch):
        in_arc = net.far_arc[out]
        is_nearer = in_arc >= 0 and distance[in_arc // ports] == links_left - 1
        if is_nearer and (not adaptive or port[out, BACKLOG] == smallest_backlog):
            if not left_to_skip:
                return out
            left_to_skip -= 1
    return NOWHERE


@inlined_loop
def ugal_pf_detour(
    net: SimulatedNetwork,
    switch: int,
    destination: int,
    minimal: int,
    port: NDArray[Any],
    chance: float,
) -> tuple[int, int]:
    """The egress by UGAL_PF of a packet whose minimal egress is loaded, and the switch it goes by.

    Args:
        net: the network.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        minimal: the minimal egress of the packet.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.
        chance: a random number of [0, 1).
    """
    ports, best = net.links_a_switch + net.hosts_a_switch, minimal
    for out in range(switch * ports, switch * ports + net.links_a_switch):
        in_arc = net.far_arc[out]
        has_hosts = in_arc >= 0 and net.endpoints[in_arc // ports]
        if has_hosts and port[out, BACKLOG] < port[best, BACKLOG]:
            best = out
    if best == minimal:
        return minimal, DIRECT
    intermediate = net.far_arc[best] // ports
    if path_links(net, switch, destination) > 1:
        return best, intermediate
    # The destination is a neighbour: draw one of the neighbours of that neighbour.
    arcs_from_intermediate = net.far_arc[
        intermediate * ports : intermediate * ports + net.links_a_switch
    ]
    count = 0
    for in_arc in arcs_from_intermediate:
        count += _may_be_intermediate(net, in_arc, switch, destination)
    left_to_skip = int(chance * count)
    for in_arc in arcs_from_intermediate:
        if _may_be_intermediate(net, in_arc, switch, destination):
            if not left_to_skip:
                intermediate = in_arc // ports
                # The first of several shortest paths with the smallest backlog will do.
                return shortest_hop(net, switch, intermediate, port, True, 0.0), intermediate
            left_to_skip -= 1
    return best, intermediate


@inlined_loop
def _may_be_intermediate(net: SimulatedNetwork, in_arc: int, switch: int, destination: int) -> bool:
    """Whether an arc is of a switch with hosts that is neither the one nor the other."""
    far = in_arc // (net.links_a_switch + net.hosts_a_switch)
    return in_arc >= 0 and far not in (switch, destination) and bool(net.endpoints[far])


@inlined_loop
def choose_without_tables(
    net: SimulatedNetwork,
    policy: int,
    samples: int,
    threshold: float,
    switch: int,
    destination: int,
    detour_tag: int,
    from_host: bool,
    port: NDArray[Any],
    streams: NDArray[np.uint64],
    stream: int,
) -> tuple[int, int]:
    """The egress arc of a packet, and the switch that it goes by, or `DIRECT`.

    Only its first switch chooses what a packet goes by. Of UGAL the cost of a path is its links
    times the backlog of its first one.

    Args:
        net: the network.
        policy: SHORTEST, UGAL, VALIANT or UGAL_PF.
        samples: how many switches UGAL draws.
        threshold: the flits that have to wait for the path before UGAL_PF looks for another one.
        switch: the switch that the packet is in.
        destination: the switch to which it goes.
        detour_tag: the switch that it goes by so far, or `DIRECT`.
        from_host: whether it comes from a host of this switch.
        port: [S·L, 4], by arc (`SimulatedNetwork`), with the column BACKLOG.
        streams: the random number generators.
        stream: the number of the stream to draw from.
    """
    adaptive = policy in (UGAL, UGAL_PF)
    if detour_tag == switch or from_host:
        detour_tag = DIRECT
    intermediates = net.intermediate_switches
    if from_host and policy == VALIANT and switch != destination and len(intermediates) > 2:
        detour_tag = int(intermediates[int(draw_number(streams, stream) * len(intermediates))])
        while detour_tag in (switch, destination):
            detour_tag = int(intermediates[int(draw_number(streams, stream) * len(intermediates))])
    target = detour_tag if detour_tag != DIRECT else destination
    out = shortest_hop(net, switch, target, port, adaptive, draw_number(streams, stream))
    if not from_host or not adaptive or out < 0 or not port[out, BACKLOG]:
        return out, detour_tag
    if policy == UGAL_PF:
        if port[out, BACKLOG] < threshold:
            return out, detour_tag
        return ugal_pf_detour(net, switch, destination, out, port, draw_number(streams, stream))
    cost = path_links(net, switch, destination) * port[out, BACKLOG]
    for _ in range(samples):
        intermediate = intermediates[int(draw_number(streams, stream) * len(intermediates))]
        if intermediate in (switch, destination):
            continue
        detour = shortest_hop(
            net, switch, intermediate, port, adaptive, draw_number(streams, stream)
        )
        if detour >= 0:
            links = path_links(net, switch, intermediate)
            links += path_links(net, intermediate, destination)
            if links * port[detour, BACKLOG] < cost:
                out, detour_tag, cost = detour, intermediate, links * port[detour, BACKLOG]
    return out, detour_tag
