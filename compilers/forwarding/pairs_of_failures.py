"""Packets that meet two failures, of all pairs of links and switches."""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.met_failures import distinguished, follow, meets, needs
from compilers.forwarding.packet_states import flood, packet_in, start
from compilers.forwarding.rule import DELIVER, DROP, HOST, MARKED, Array, Program, contains, transit
from compilers.forwarding.single_failures import minimal_hops
from compilers.tables.fib import MOST_HOPS

LONGEST_MET, ADDED, LOSES = range(3)
"""Columns of what `walk_two` counts for a destination: the longest path of a packet that met two
failures, the most links that these add, and whether a packet is lost.
"""


@loop
def has_other(p: Program, s: int, came: int, d: int, used: Array) -> bool:
    """Whether an element can fail that a packet at s does not need; in a small ring none can."""
    for element in range(p.cables + len(p.far)):
        at = element - p.cables
        if at in (s, d) or (at >= 0 and p.far[at, 0] < 0) or contains(used, element):
            continue
        if came < 0 or (element != p.cable[s, came] and at != p.far[s, came]):
            return True
    return False


@loop
def used_under(
    p: Program, egress: Array, d: int, s: int, came: int, one: Array, used: Array
) -> tuple[int, bool]:
    """Write the elements that a packet uses while one is down; how many, and whether it arrives.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        s: the switch that the packet is in.
        came: its ingress link.
        one: int64[1], the element.
        used: int64, written.
    """
    at, entry, m, k = s, came, 0, DROP
    while m < 2 * MOST_HOPS:
        k = transit(p, at, entry, egress[at], one)
        if k < 0:
            break
        used[m], used[m + 1] = p.cable[at, k], p.cables + p.far[at, k]
        m += 2
        at, entry = p.far[at, k], p.far_link[at, k]
    return m, k == DELIVER and at == d


@loop
def walk_second(
    p: Program,
    egress: Array,
    d: int,
    state: int,
    first: int,
    depth: Array,
    hops: Array,
    seen: Array,
    others: Array,
    figures: Array,
) -> None:
    """Follow the packets of a state that meet an element and a second one, of those they use then.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each for d.
        d: the destination.
        state: see above.
        first: the element.
        depth: of `flood`, without failures.
        hops: int8[S], the links of minimal paths.
        seen: int8 by state, -1 for each, and so it is left.
        others: int32, room for all states.
        figures: int64[3], raised: LONGEST_MET, ADDED, LOSES.
    """
    none, one, dead = np.empty(0, np.int64), np.empty(1, np.int64), np.empty(2, np.int64)
    used, needed = np.empty(2 * MOST_HOPS + 8, np.int64), np.empty(6, np.int64)
    s, came, _ = packet_in(p, state)
    c, one[0] = egress[s], first
    m, home = used_under(p, egress, d, s, came, one, used)
    if came == HOST:
        for x in range(needs(p, s, came, c, 2, none, needed)):
            used[m] = needed[x]
            m += 1
    if not home and meets(p, s, came, c, d, one):
        figures[LOSES] = True
    used[m] = first
    m += 1
    other_fails = has_other(p, s, came, d, used[:m])
    for second in used[:m]:
        if second == first and not other_fails:
            continue
        dead[0], dead[1] = first, second
        if not meets(p, s, came, c, d, dead):
            continue
        taken = follow(p, egress, s, came, d, dead, True, seen, others)
        if taken >= 0:
            figures[LONGEST_MET] = max(figures[LONGEST_MET], depth[state] + taken)
            figures[ADDED] = max(figures[ADDED], taken - hops[s])
        else:
            figures[LOSES] = True


@loop
def walk_two(
    p: Program, ends: Array, egresses: Array, destinations: Array, table: Array, figures: Array
) -> None:
    """Follow all packets that meet two failures, of all pairs of links and switches.

    A packet that meets one failure goes on under it. What it needs then may be the second failure.
    So pairs that no packet meets cost nothing.

    Args:
        p: what switches hold; not `every_hop`.
        ends: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        table: of `minimal_next`.
        figures: int64[D, 3], written, with the columns LONGEST_MET to LOSES.
    """
    switches, links_of = p.far.shape
    cells = switches * (2 * links_of + 2)
    depth, seen = np.full(cells, -1, np.int8), np.full(cells, -1, np.int8)
    states, others = np.empty(cells, np.int32), np.empty(cells, np.int32)
    hops, after = np.empty(switches, np.int8), np.empty(switches, np.int32)
    none, needed = np.empty(0, np.int64), np.empty(6, np.int64)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(switches):
            after[s] = table[s, egress[s]]
        minimal_hops(d, after, hops)
        n, _ = start(p, ends, egress, d, depth, states)
        n, _, _, _ = flood(p, egress, d, none, True, depth, states, n)
        for state in distinguished(p, egress, depth, states[:n], 2):
            s, came, tag = packet_in(p, state)
            if tag == MARKED:
                continue
            for x in range(needs(p, s, came, egress[s], 2, none, needed)):
                walk_second(p, egress, d, state, needed[x], depth, hops, seen, others, figures[j])
        for state in states[:n]:
            depth[state] = -1
