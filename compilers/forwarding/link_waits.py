"""Waits of a lossless fabric: by which links packets come and leave, and the channels they need."""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import packet_in, start, state_of
from compilers.forwarding.rule import DROP, HOST, MARKED, PLAIN, Array, Program, next_links, transit
from compilers.tables.fib import MOST_HOPS


@loop
def only_link(p: Program, s: int, came: int, c: int, none: Array, link: Array, tags: Array) -> int:
    """The next link of a packet that has no other; DROP where it has several, or none."""
    if came == HOST:
        several, only = 0, DROP
        for i in range(p.shares.shape[2] if c >= 0 else 0):
            if p.shares[s, c, i] >= 0:
                several += 1
                only = p.shares[s, c, i]
        return only if several == 1 else DROP
    if next_links(p, s, came, PLAIN, c, none, link, tags) > 1:
        return DROP
    return int(link[0])


@loop
def raised(
    p: Program,
    egress: Array,
    dead: Array,
    changes: Array,
    waits: Array,
    held: Array,
    waiting: Array,
    found: Array,
    n: int,
) -> tuple[int, int, bool]:
    """Follow packets over all links, by the highest channel that they can have in each state.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for a destination.
        dead: the elements that are down.
        changes: of `link_waits`.
        waits: the same.
        held: int16, by state the highest channel of a packet there; -1: none came.
        waiting: bool, False by state, and so it is left.
        found: the states that occur, of which the first n are those to begin with.
        n: how many these are.

    Returns:
        How many states occur, the highest channel, and whether channels rise for ever.
    """
    links_of, highest = p.far.shape[1], 0
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    now = found[:n].copy()
    for _ in range(MOST_HOPS + 2):
        later, m = np.empty(min(len(now) * links_of, len(held)), np.int32), 0
        for state in now:
            waiting[state] = False
            s, came, tag = packet_in(p, state)
            for i in range(next_links(p, s, came, tag, egress[s], dead, link, tags)):
                k, channel = link[i], held[state]
                if k < 0:
                    continue
                if came >= 0:
                    waits[s, came, k] = True
                    channel += changes[s, came, k]
                highest, t = max(highest, channel), p.far[s, k]
                into = state_of(p, t, p.far_link[s, k], tags[i], egress[t], True)
                if held[into] < 0:
                    found[n] = into
                    n += 1
                if held[into] < channel:
                    held[into] = channel
                    if not waiting[into]:
                        waiting[into], later[m] = True, into
                        m += 1
        now = later[:m]
        if m == 0:
            break
    for state in now:
        waiting[state] = False
    return n, highest, len(now) > 0


@loop
def link_waits(
    p: Program,
    ends: Array,
    egresses: Array,
    destinations: Array,
    link_fails: bool,
    node_fails: bool,
    changes: Array,
    waits: Array,
) -> tuple[int, bool]:
    """Follow all packets of hosts to some destinations, and from where they meet one failure.

    Up to there they went as without failures, so the next link of every state is a case.

    Args:
        p: what switches hold.
        ends: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        link_fails: whether links fail, one at a time.
        node_fails: whether switches do.
        changes: int8[S, K, K], by ingress link and next link how many channels a packet goes up.
        waits: bool[S, K, K], written: whether packets come in by one link and leave by another.

    Returns:
        The highest channel, from 0, and whether packets go on for ever.
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    none, dead = np.empty(0, np.int64), np.empty(1, np.int64)
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    waiting = np.zeros(cells, np.bool_)
    held, other = np.full(cells, -1, np.int16), np.full(cells, -1, np.int16)
    found, more = np.empty(cells, np.int32), np.empty(cells, np.int32)
    depth = np.empty(cells, np.int8)
    highest, looped = 0, False
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        n, _ = start(p, ends, egress, d, depth, found)
        held[found[:n]] = 0
        n, most, endless = raised(p, egress, none, changes, waits, held, waiting, found, n)
        highest, looped = max(highest, most), looped or endless
        for kind in range(2):
            for i in range(n if (node_fails if kind else link_fails) else 0):
                s, came, tag = packet_in(p, found[i])
                if tag == MARKED:
                    continue
                k = only_link(p, s, came, egress[s], none, link, tags)
                if k < 0 or (kind and p.far[s, k] == d):
                    continue
                dead[0] = p.cables + p.far[s, k] if kind else p.cable[s, k]
                if p.every_hop:
                    more[0], other[found[i]] = found[i], held[found[i]]
                    m, most, endless = raised(
                        p, egress, dead, changes, waits, other, waiting, more, 1
                    )
                    other[more[:m]] = -1
                    highest, looped = max(highest, most), looped or endless
                    continue
                channel, hops = held[found[i]], 0
                while hops <= MOST_HOPS:  # there is one path
                    k = transit(p, s, came, egress[s], dead)
                    if k < 0:
                        break
                    if came >= 0:
                        waits[s, came, k] = True
                        channel += changes[s, came, k]
                    highest, hops = max(highest, channel), hops + 1
                    s, came = p.far[s, k], p.far_link[s, k]
                looped |= hops > MOST_HOPS
        held[found[:n]] = -1
    return highest, looped
