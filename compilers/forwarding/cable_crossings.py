"""The pairs of switches whose hosts send packets over some cables, without failures.

A move from one build to another removes cables. `sources_over_cables` computes, for each
destination, the switches whose hosts have a path over one of the removed cables. The report on a
move calls it through `Walks.sources_over_cables`.

With few cables, packets are followed backwards, from the ends of the cables to the hosts. With
many, it is quicker to follow packets forwards from the hosts. What is followed are states. A
*state* is all that decides a packet's next hop: the switch that it is in, its ingress link there,
and its tag (none or marked), as one number (`packet_states`).

Letters in the loops: p the program, d a destination, s and t switches, k a link of s.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import (
    NAMED_LINKS,
    count_states,
    packet_in,
    state_of,
    states_a_switch,
)
from compilers.forwarding.rule import HOST, PLAIN, Array, Program, marks, next_links, transit
from compilers.tables.fib import MOST_HOPS

ANY_STATE = -1
"""In place of the state at the far end of a link: packets may have any state there."""
NOT_VISITED, VISITED = -1, 0
"""Values of an array by state."""


@loop
def add_states_before(
    p: Program,
    egress: Array,
    d: int,
    s: int,
    k: int,
    next_state: int,
    visited: Array,
    states: Array,
    n: int,
) -> int:
    """Add the states of switch s from which packets may leave by its link k.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        s: the switch.
        k: its link.
        next_state: the state that the packets have at the far end, or ANY_STATE.
        visited: int8 by state, VISITED for those that are in `states`; written.
        states: int32, written from index n on.
        n: how many states are in `states`.

    Returns:
        How many states are in `states` now.
    """
    most_links, no_failures = p.far.shape[1], np.empty(0, np.int64)
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    t, far_link, first = p.far[s, k], p.far_link[s, k], s * states_a_switch(p)
    # The last K states of a switch are those of marked packets.
    occurring = states_a_switch(p) if marks(p) else states_a_switch(p) - most_links
    for state in range(first, first + occurring):
        _, ingress, tag = packet_in(p, state)
        if s == d or visited[state] == VISITED:
            continue
        if state_of(p, s, ingress, tag, egress[s], NAMED_LINKS) != state:
            continue  # OTHER stands for this ingress link
        for i in range(next_links(p, s, ingress, tag, egress[s], no_failures, link, tags)):
            if link[i] == k and (
                next_state == ANY_STATE
                or state_of(p, t, far_link, tags[i], egress[t], NAMED_LINKS) == next_state
            ):
                visited[state], states[n] = VISITED, state
                n += 1
                break
    return n


@loop
def cable_ends(p: Program, chosen: Array) -> Array:
    """int64[2n, 2]: the switch and the link of both ends of each chosen cable.

    Args:
        p: what switches hold.
        chosen: bool[E], the n cables.
    """
    ends, count = np.empty((2 * len(chosen), 2), np.int64), 0
    for s in range(p.far.shape[0]):
        for k in range(p.far.shape[1]):
            if p.cable[s, k] >= 0 and chosen[p.cable[s, k]]:
                ends[count, 0], ends[count, 1] = s, k
                count += 1
    return ends[:count]


@loop
def uses_cable_after(
    p: Program, egress: Array, d: int, s: int, k: int, chosen: Array, no_failures: Array
) -> bool:
    """Whether a packet that leaves switch s by its link k takes a chosen cable after that link.

    The packet has one path, as this is called only where paths are not shared at every hop.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        s: the switch.
        k: its link.
        chosen: bool[E], the cables.
        no_failures: int64[0], no failed elements.
    """
    t, ingress = p.far[s, k], p.far_link[s, k]
    for _ in range(MOST_HOPS):
        k = transit(p, t, ingress, egress[t], no_failures)
        if k < 0 or t == d:
            return False
        if chosen[p.cable[t, k]]:
            return True
        t, ingress = p.far[t, k], p.far_link[t, k]
    return False


@loop
def follow_from_hosts(
    p: Program, egress: Array, d: int, chosen: Array, whole_path: bool, uses_cable: Array
) -> int:
    """Mark the switches whose hosts' packets cross a chosen cable.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        chosen: bool[E], the cables.
        whole_path: whether packets are followed to the end of their path (`uses_cable_after`), not
            only over their first link.
        uses_cable: bool[S], set for these switches.

    Returns:
        How many switches with a route are not set in `uses_cable`.
    """
    most_links, unmarked = p.far.shape[1], 0
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    no_failures = np.empty(0, np.int64)
    for s in range(len(uses_cable)):
        if s == d or egress[s] < 0:
            continue
        for i in range(next_links(p, s, HOST, PLAIN, egress[s], no_failures, link, tags)):
            if uses_cable[s] or link[i] < 0:
                break
            uses_cable[s] = chosen[p.cable[s, link[i]]]
            if whole_path and not uses_cable[s]:
                uses_cable[s] = uses_cable_after(p, egress, d, s, link[i], chosen, no_failures)
        unmarked += not uses_cable[s]
    return unmarked


@loop
def follow_back_from_cables(
    p: Program, egress: Array, d: int, ends: Array, visited: Array, states: Array, uses_cable: Array
) -> None:
    """Follow packets back from the ends of cables to the hosts, and mark the hosts' switches.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        ends: int64[n, 2], the ends of the cables, of `cable_ends`.
        visited: int8 by state, NOT_VISITED for each before and after the call.
        states: int32, a buffer as long as there are states.
        uses_cable: bool[S], set for these switches.
    """
    n, followed = 0, 0
    for s, k in ends:
        n = add_states_before(p, egress, d, s, k, ANY_STATE, visited, states, n)
    while followed < n:
        state = states[followed]
        s, ingress, tag = packet_in(p, state)
        uses_cable[s] |= ingress == HOST
        followed += 1
        for k in range(p.far.shape[1]):
            t = p.far[s, k]
            if t >= 0 and state_of(p, s, k, tag, egress[s], NAMED_LINKS) == state:
                n = add_states_before(p, egress, d, t, p.far_link[s, k], state, visited, states, n)
    for state in states[:n]:
        visited[state] = NOT_VISITED


@loop
def sources_over_cables(p: Program, egresses: Array, destinations: Array, chosen: Array) -> Array:
    """Find the switches whose hosts have a path over one of some cables.

    Args:
        p: what switches hold.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        chosen: bool[E], the cables.

    Returns:
        bool[D, S], by destination and source.
    """
    switches, most_links = p.far.shape
    all_states = count_states(p)
    visited, states = np.full(all_states, NOT_VISITED, np.int8), np.empty(all_states, np.int32)
    uses_cable = np.zeros((len(destinations), switches), np.bool_)
    ends = cable_ends(p, chosen)
    # From more than 4K ends, the search backwards comes to nearly every state. Packets with several
    # paths in transit cannot be followed from the hosts one by one.
    from_hosts = len(ends) > 4 * most_links and not p.every_hop and not marks(p)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        unmarked = follow_from_hosts(p, egress, d, chosen, from_hosts, uses_cable[j])
        if unmarked and not from_hosts:
            follow_back_from_cables(p, egress, d, ends, visited, states, uses_cable[j])
    return uses_cable
