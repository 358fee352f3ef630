"""The states of packets, and all of them that occur towards a destination.

A state is a switch with what the packet brings: its ingress link and its tag. The packets of a
state have the same destination, so the rule does the same with all of them.
"""

from __future__ import annotations

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


@loop
def state_of(p: Program, s: int, came: int, tag: int, c: int, every: bool) -> int:
    """The number of a packet's state, without its destination: (2K + 2)·s + a place.

    Ingress links that the class does not name are one, OTHER, unless `every` one is its own.
    """
    links: int = p.far.shape[1]
    first: int = s * (2 * links + 2)
    if came == HOST:
        return first + links
    if tag == MARKED and spreads(p, c):
        return first + links + 2 + came
    if every:
        return int(first + came)
    named = c >= 0 and contains(p.order[s, c], came)
    if named or (c >= 0 and p.every_hop and contains(p.shares[s, c], came)):
        return first + came
    return first + links + 1


@loop
def packet_in(p: Program, state: int) -> tuple[int, int, int]:
    """The switch, ingress link and tag of a state."""
    links = p.far.shape[1]
    s, at = state // (2 * links + 2), state % (2 * links + 2)
    if at < links:
        return s, at, PLAIN
    if at == links:
        return s, HOST, PLAIN
    if at == links + 1:
        return s, OTHER, PLAIN
    return s, at - links - 2, MARKED


@loop
def start(
    p: Program, ends: Array, egress: Array, d: int, depth: Array, found: Array
) -> tuple[int, int]:
    """The states of all packets that hosts send to d; how many these are, and their paths."""
    links_of = p.far.shape[1]
    n, paths = 0, 0
    for s in range(len(ends)):
        if ends[s] and s != d:
            found[n] = s * (2 * links_of + 2) + links_of
            depth[found[n]] = 0
            n += 1
            if egress[s] >= 0:
                for k in p.shares[s, egress[s]]:
                    paths += k >= 0
    return n, paths


@loop
def flood(
    p: Program,
    egress: Array,
    d: int,
    dead: Array,
    every: bool,
    depth: Array,
    found: Array,
    n: int,
) -> tuple[int, int, bool, int]:
    """Follow packets over all paths to their ends, a link at a time.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        dead: the elements that are down.
        every: see `state_of`.
        depth: int8, by state the most links that a packet can have taken; -1: none came.
        found: the states that occur, of which the first n are those to begin with.
        n: how many these are.

    Returns:
        How many states occur, in how many packets are lost, whether some go on for ever, and the
        links of the longest path.
    """
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    now = found[:n].copy()
    links, strays, most = 0, 0, 0
    while len(now) and links < MOST_HOPS:
        later, m = np.empty(min(len(now) * links_of, len(depth)), np.int32), 0
        links += 1
        for state in now:
            s, came, tag = packet_in(p, state)
            several = next_links(p, s, came, tag, egress[s], dead, link, tags)
            strays += several == 0
            for i in range(several):
                k = link[i]
                if k < 0 or s == d:
                    strays += k != DELIVER or s != d
                    most = max(most, links - 1)
                    continue
                t = p.far[s, k]
                into = state_of(p, t, p.far_link[s, k], tags[i], egress[t], every)
                if depth[into] < 0:
                    found[n] = into
                    n += 1
                if depth[into] < links:
                    depth[into], later[m] = links, into
                    m += 1
        now = later[:m]
    return n, strays + len(now), len(now) > 0, most
