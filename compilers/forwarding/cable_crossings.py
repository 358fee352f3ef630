"""From which switches packets of hosts cross some cables."""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import packet_in, state_of
from compilers.forwarding.rule import HOST, PLAIN, Array, Program, next_links, transit
from compilers.tables.fib import MOST_HOPS


@loop
def come_by(
    p: Program, egress: Array, d: int, s: int, k: int, into: int, seen: Array, found: Array, n: int
) -> int:
    """Add the states of a switch in which packets may leave by a link, into a state; -1: into any.

    Those that `seen`, int8 by state, has are passed over. Returns how many `found` has.
    """
    links_of, none = p.far.shape[1], np.empty(0, np.int64)
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    t, came_in, width = p.far[s, k], p.far_link[s, k], 2 * links_of + 2
    for state in range(s * width, s * width + (width if len(p.onward) else links_of + 2)):
        _, came, tag = packet_in(p, state)
        if s == d or seen[state] >= 0 or state_of(p, s, came, tag, egress[s], False) != state:
            continue
        for i in range(next_links(p, s, came, tag, egress[s], none, link, tags)):
            if link[i] == k and (
                into < 0 or state_of(p, t, came_in, tags[i], egress[t], False) == into
            ):
                seen[state], found[n] = 0, state
                n += 1
                break
    return n


@loop
def cable_ends(p: Program, chosen: Array) -> Array:
    """int64[2n, 2]: the switch and the link of both ends of each chosen cable, bool[E]."""
    ends, count = np.empty((2 * len(chosen), 2), np.int64), 0
    for s in range(p.far.shape[0]):
        for k in range(p.far.shape[1]):
            if p.cable[s, k] >= 0 and chosen[p.cable[s, k]]:
                ends[count] = s, k
                count += 1
    return ends[:count]


@loop
def crosses_ahead(
    p: Program, egress: Array, d: int, s: int, k: int, chosen: Array, none: Array
) -> bool:
    """Whether a packet in transit takes a chosen cable, after it left a switch by a link."""
    t, came = p.far[s, k], p.far_link[s, k]
    for _ in range(MOST_HOPS):
        k = transit(p, t, came, egress[t], none)
        if k < 0 or t == d:
            return False
        if chosen[p.cable[t, k]]:
            return True
        t, came = p.far[t, k], p.far_link[t, k]
    return False


@loop
def cross_at_once(
    p: Program, egress: Array, d: int, chosen: Array, ahead: bool, crosses: Array
) -> int:
    """Mark the switches whose hosts' packets cross a chosen cable by their first link.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        chosen: bool[E], the cables.
        ahead: whether packets are followed further, over the one path that they have in transit.
        crosses: bool[S], written.

    Returns:
        How many switches with a route are not marked.
    """
    links_of, left = p.far.shape[1], 0
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    none = np.empty(0, np.int64)
    for s in range(len(crosses)):
        if s == d or egress[s] < 0:
            continue
        for i in range(next_links(p, s, HOST, PLAIN, egress[s], none, link, tags)):
            if crosses[s] or link[i] < 0:
                break
            crosses[s] = chosen[p.cable[s, link[i]]]
            if ahead and not crosses[s]:
                crosses[s] = crosses_ahead(p, egress, d, s, link[i], chosen, none)
        left += not crosses[s]
    return left


@loop
def cross_later(
    p: Program, egress: Array, d: int, ends: Array, seen: Array, states: Array, crosses: Array
) -> None:
    """Follow packets back from the ends of cables, and mark the switches of hosts that sent them.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        ends: int64[n, 2], of `cable_ends`.
        seen: int8 by state, -1 for each, and so it is left.
        states: int32, room for all states.
        crosses: bool[S], written.
    """
    n, done = 0, 0
    for s, k in ends:
        n = come_by(p, egress, d, s, k, -1, seen, states, n)
    while done < n:
        state = states[done]
        s, came, tag = packet_in(p, state)
        crosses[s] |= came == HOST
        done += 1
        for k in range(p.far.shape[1]):
            t = p.far[s, k]
            if t >= 0 and state_of(p, s, k, tag, egress[s], False) == state:
                n = come_by(p, egress, d, t, p.far_link[s, k], state, seen, states, n)
    for state in states[:n]:
        seen[state] = -1


@loop
def crossing(p: Program, egresses: Array, destinations: Array, chosen: Array) -> Array:
    """From which switches some path of hosts' packets takes one of these cables, without failures.

    Packets are followed back from the cables, if these are few.

    Args:
        p: what switches hold.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        chosen: bool[E], the cables.

    Returns:
        bool[D, S].
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    seen, states = np.full(cells, -1, np.int8), np.empty(cells, np.int32)
    crosses = np.zeros((len(destinations), switches), np.bool_)
    ends = cable_ends(p, chosen)
    # Where they are many, following packets from their hosts is sooner done.
    ahead = len(ends) > 4 * links_of and not p.every_hop and not len(p.onward)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        left = cross_at_once(p, egress, d, chosen, ahead, crosses[j])
        if left and not ahead:
            cross_later(p, egress, d, ends, seen, states, crosses[j])
    return crosses
