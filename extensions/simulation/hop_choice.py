"""The egress of a packet, as the tables of a switch say: the rule of `Classes`, for one packet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import inlined_loop, loop
from extensions.simulation.simulated_network import HOME, NOWHERE, SimulatedNetwork

MINIMAL, EMITTED, ADAPTIVE = range(3)
"""Policies of packets from hosts: the minimal port; by weights; by weights where that is loaded."""
SPREAD_LINKS = 4
"""On the path of a packet that was marked and spread."""
_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@loop
def drawn(streams: NDArray[np.uint64], which: int) -> float:
    """A number of [0, 1) of a stream (SplitMix64: Steele, Lea and Flood, 2014)."""
    z = streams[which] + _GOLDEN
    streams[which] = z
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    z = z ^ (z >> _S31)
    return float(z >> _S11) * (1.0 / 9007199254740992.0)


@inlined_loop
def hashed(source: int, destination: int, flow: int) -> float:
    """The number of [0, 1) that a flow is hashed to."""
    z = np.uint64(source) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(destination)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(flow)
    z = (z ^ (z >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined_loop
def came_by_next_hop(net: SimulatedNetwork, row: int, arc: int) -> bool:
    """Whether a packet came in by one of the next hops of its class, if that shares several."""
    several = came = 0
    for i in range(net.ingress.shape[1]):
        several += net.ingress[row, i] >= 0 and net.weight[row, i] > 0
        came += net.ingress[row, i] == arc and net.weight[row, i] > 0
    return several > 1 and came > 0


@inlined_loop
def transit(net: SimulatedNetwork, row: int, arc: int, dead: NDArray[np.bool_]) -> int:
    """The egress of a packet that came in by an arc; `HOME`: delivered here, `NOWHERE`: dropped.

    row: of the switch's class for the destination. dead: bool[S·L].
    """
    out = int(net.order[row, 0])
    shared = net.every_hop and came_by_next_hop(net, row, arc)
    if out == HOME or (out >= 0 and out != arc and not dead[out] and not shared):
        return out
    ingress = net.bounce if out == arc or shared else net.order
    for hop in ingress[row]:
        if hop >= 0 and hop != arc and not dead[hop]:
            return int(hop)
    if shared and out >= 0 and out != arc and not dead[out]:
        return out
    for hop in net.order[row]:
        if hop >= 0 and hop == arc and not dead[hop]:
            return int(hop)
    return NOWHERE


@inlined_loop
def weighted(net: SimulatedNetwork, row: int, chance: float, dead: NDArray[np.bool_]) -> int:
    """The egress of a packet from a host, by weights; `NOWHERE` if none is up."""
    total = 0
    for i in range(net.ingress.shape[1]):
        hop = net.ingress[row, i]
        if hop >= 0 and not dead[hop]:
            total += net.weight[row, i]
    left = chance * total
    for i in range(net.ingress.shape[1]):
        hop = net.ingress[row, i]
        if hop >= 0 and not dead[hop] and net.weight[row, i]:
            left -= net.weight[row, i]
            if left < 0:
                return int(hop)
    return NOWHERE


@inlined_loop
def links(net: SimulatedNetwork, hop: int, goal: int) -> int:
    """The links of a path to a destination: minimal behind the first one, or a bounce, then so.

    Or spread by the next switch.
    """
    width, ports = net.order.shape[0] // net.switches, net.links + net.hosts
    here, there = hop // ports, net.end[hop] // ports
    row = there * width + net.number[there, goal]
    first = net.order[here * width + net.number[here, goal], 0]
    if len(net.onward) and hop != first and net.number[there, goal] < net.links:
        return SPREAD_LINKS
    if net.order[row, 0] == net.end[hop]:
        for bounce in net.bounce[row]:
            if bounce >= 0 and bounce != net.end[hop]:
                return 2 + int(net.hops[net.end[bounce] // ports, goal])
    return 1 + int(net.hops[there, goal])


@inlined_loop
def least_waited_for(
    net: SimulatedNetwork, row: int, goal: int, dead: NDArray[np.bool_], port: NDArray[Any]
) -> int:
    """The next hop of a class for which the packets that wait, times its links, are fewest.

    The minimal one comes first among equals, then the others in the order of their ports.
    """
    best = int(net.order[row, 0])
    least = -1 if dead[best] else port[best, 3] * links(net, best, goal)
    for hop in net.ingress[row]:
        if hop >= 0 and hop != best and not dead[hop]:
            cost = port[hop, 3] * links(net, hop, goal)
            if least < 0 or cost < least:
                best, least = int(hop), cost
    return best


@inlined_loop
def entering(
    net: SimulatedNetwork,
    row: int,
    arc: int,
    goal: int,
    dead: NDArray[np.bool_],
    policy: int,
    threshold: float,
    port: NDArray[Any],
    chance: float,
) -> int:
    """The egress of a packet from a host, by a policy.

    goal: its destination. policy: `MINIMAL`, `EMITTED` or `ADAPTIVE`, UGAL_PF (PolarFly paper,
    §VII-C): the minimal port unless at least `threshold` flits wait for it, then the one of the
    class's ports for which the packets that wait, times its links, are fewest. port: [S·L, 4], the
    packets that wait for each port in column 3. chance: of [0, 1).
    """
    minimal = int(net.order[row, 0])
    if minimal == HOME:
        return minimal
    if policy != MINIMAL and net.ingress.shape[1] > 1:
        if policy == EMITTED:
            hop = weighted(net, row, chance, dead)
            if hop >= 0:
                return int(hop)
        elif minimal >= 0 and port[minimal, 3] >= threshold:
            return least_waited_for(net, row, goal, dead, port)
    return transit(net, row, arc, dead)
