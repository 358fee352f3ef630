"""The states of packets towards a destination, and a walk over all states that occur.

A *state* is all that the rule asks about a packet whose destination is known: the switch that it
is in, its ingress link there, and its tag. So the rule treats all packets of a state alike, and a
walk follows states instead of packets. Walks under sets of failures (`failure_sets`,
`pairs_of_failures`), waits (`link_waits`) and crossings (`cable_crossings`) are made of these
functions.

States are numbers. A switch with K links has 2K + 2, in this order: K for unmarked packets by their
ingress link, one for packets of hosts, one for packets that came in by any link that their class
does not name (OTHER), and K for marked packets by their ingress link.

Letters in the loops: p the program, s and t switches, c an egress class, k a link, d the
destination.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import (
    DELIVER,
    HOST,
    MARKED,
    OTHER,
    PLAIN,
    Array,
    Program,
    contains,
    next_links,
    spreads,
)
from compilers.tables.fib import MOST_HOPS

EACH_LINK, NAMED_LINKS = True, False
"""Values of `each_link` of `state_of`.

EACH_LINK: each ingress link has a state of its own. NAMED_LINKS: only the links that the packet's
class names have states of their own.
"""


class FloodOutcome(NamedTuple):
    """The outcome for packets that were followed over all their paths."""

    state_count: int
    """How many states occur."""
    lost_count: int
    """In how many states packets are lost, or still forwarded after `MOST_HOPS` links."""
    is_endless: bool
    """Whether packets are still forwarded after `MOST_HOPS` links."""
    max_hops: int
    """The links of the longest path."""


@loop
def states_a_switch(p: Program) -> int:
    """The number of states of a switch, 2K + 2."""
    return 2 * int(p.far.shape[1]) + 2


@loop
def count_states(p: Program) -> int:
    """The number of states of all switches."""
    return len(p.far) * states_a_switch(p)


@loop
def state_of(p: Program, s: int, ingress: int, tag: int, c: int, each_link: bool) -> int:
    """The number of a packet's state.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link, or HOST.
        tag: PLAIN or MARKED.
        c: its egress class at s.
        each_link: whether each ingress link has a state of its own. Otherwise the links that the
            class does not name share the state of OTHER, which is enough where at most one element
            fails.
    """
    most_links: int = p.far.shape[1]
    first: int = s * states_a_switch(p)
    if ingress == HOST:
        return first + most_links
    if tag == MARKED and spreads(p, c):
        return first + most_links + 2 + ingress
    if each_link:
        return int(first + ingress)
    named = c >= 0 and contains(p.order[s, c], ingress)
    if named or (c >= 0 and p.every_hop and contains(p.shares[s, c], ingress)):
        return first + ingress
    return first + most_links + 1


@loop
def packet_in(p: Program, state: int) -> tuple[int, int, int]:
    """The switch, the ingress link (or HOST, or OTHER) and the tag of a state."""
    most_links = p.far.shape[1]
    s, index = state // states_a_switch(p), state % states_a_switch(p)
    if index < most_links:
        return s, index, PLAIN
    if index == most_links:
        return s, HOST, PLAIN
    if index == most_links + 1:
        return s, OTHER, PLAIN
    return s, index - most_links - 2, MARKED


@loop
def write_host_states(
    p: Program, has_hosts: Array, egress: Array, d: int, depth: Array, reached: Array
) -> tuple[int, int]:
    """Write the states in which hosts' packets to d begin.

    Args:
        p: what switches hold.
        has_hosts: bool[S], the switches with hosts.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        depth: int8 by state, written: 0 for each of these.
        reached: int32, written: the states.

    Returns:
        How many states these are, and how many paths the hosts may choose.
    """
    count, paths = 0, 0
    for s in range(len(has_hosts)):
        if has_hosts[s] and s != d:
            reached[count] = state_of(p, s, HOST, PLAIN, egress[s], EACH_LINK)
            depth[reached[count]] = 0
            count += 1
            if egress[s] >= 0:
                for k in p.shares[s, egress[s]]:
                    paths += k >= 0
    return count, paths


@loop
def flood(
    p: Program,
    egress: Array,
    d: int,
    failed: Array,
    each_link: bool,
    depth: Array,
    reached: Array,
    count: int,
) -> FloodOutcome:
    """Follow packets over all paths to their ends, a link a round.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        failed: int64[n], the failed elements.
        each_link: as in `state_of`.
        depth: int8 by state, raised to the most links after which a packet is there; -1: none is.
        reached: int32, the states that occur: those to begin with; others are appended.
        count: how many states to begin with.
    """
    most_links = p.far.shape[1]
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    current = reached[:count].copy()
    links, lost, longest = 0, 0, 0
    while len(current) and links < MOST_HOPS:
        later, count_later = np.empty(min(len(current) * most_links, len(depth)), np.int32), 0
        links += 1
        for state in current:
            s, ingress, tag = packet_in(p, state)
            choices = next_links(p, s, ingress, tag, egress[s], failed, link, tags)
            lost += choices == 0
            for i in range(choices):
                k = link[i]
                if k < 0 or s == d:  # the path ends here: at d the packet should be delivered
                    lost += k != DELIVER or s != d
                    longest = max(longest, links - 1)
                    continue
                t = p.far[s, k]
                next_state = state_of(p, t, p.far_link[s, k], tags[i], egress[t], each_link)
                if depth[next_state] < 0:
                    reached[count] = next_state
                    count += 1
                if depth[next_state] < links:
                    depth[next_state], later[count_later] = links, next_state
                    count_later += 1
        current = later[:count_later]
    return FloodOutcome(count, lost + len(current), len(current) > 0, longest)
