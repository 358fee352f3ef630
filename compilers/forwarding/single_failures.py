"""Every packet over every path, and under every failure of one link or switch, from the tabulation.

A block of destinations at a time. Where a packet is lost the destination is marked as `suspect`,
and the slower loops of `failure_sets` count what is lost exactly.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DELIVER, DROP, Array, Program, marks, spreads
from compilers.forwarding.tabulation import (
    FROM_HOST,
    FROM_OTHER,
    LINK_BITS,
    LINK_MASK,
    NAMED,
    SEVERAL,
    place_of,
)
from compilers.tables.fib import MOST_HOPS

LOOPED, ELSEWHERE = -5, -4
MET = 1 << 8
PATHS, LONGEST, SUSPECT, FIGURES = 0, 1, 2, 3
"""Columns of what `walk_paths` counts; from FIGURES on the longest path and the most links that a
failure adds, for links and for nodes."""


@loop
def minimal_hops(d: int, after: Array, hops: Array) -> None:
    """Write the links of the minimal path of every switch to d; DROP, LOOPED or ELSEWHERE.

    after: int32[S], the switch behind the minimal link of each; DROP.
    """
    home = after[d] == d
    for s in range(len(hops)):
        t = after[s]
        if home and t == d:
            hops[s] = s != d
            continue
        if home and t >= 0 and after[t] == d:
            hops[s] = 2
            continue
        t, links = s, 0
        while links <= MOST_HOPS and after[t] != t and after[t] >= 0:
            t, links = after[t], links + 1
        if links > MOST_HOPS:
            hops[s] = LOOPED
        elif after[t] < 0:
            hops[s] = DROP
        else:
            hops[s] = links if t == d else ELSEWHERE


@loop
def follow_one(
    order: Array,
    step: Array,
    egress: Array,
    d: int,
    s: int,
    place: int,
    v: int,
    node: bool,
) -> int:
    """The links of a packet from s to d while v, its next hop, or the link to v, is down.

    + MET where it would come to v again, by another link; DROP or LOOPED, - MET.
    """
    t, c, met = s, egress[s], -MET
    for links in range(MOST_HOPS):
        if c < 0:
            home = c == DELIVER and t == d
            return links + max(met, 0) if home else DROP - max(met, 0)
        e = step[t, c, place, 0]
        u = e >> LINK_BITS
        if u == v:
            met += MET
            if node or t == s:
                e = step[t, c, place, 1]
        elif u == s and t == v and not node:
            e = step[t, c, place, 1]
        if e < 0:
            return DROP - max(met, 0)
        t = e >> LINK_BITS
        c = egress[t]
        place = place_of(order, t, c, e & LINK_MASK)
    return LOOPED - max(met, 0)


@loop
def host_sends(
    far: Array,
    far_link: Array,
    shared: Array,
    egress: Array,
    ends: Array,
    d: int,
    t: int,
    b: int,
) -> bool:
    """Whether a host's packet can come to t by its link b as the first link of its path."""
    u = far[t, b]
    if u < 0 or u == d or not ends[u] or egress[u] < 0:
        return False
    return bool(shared[u, egress[u], far_link[t, b]])


@loop
def walk_paths(
    p: Program,
    step: Array,
    shared: Array,
    number: Array,
    table: Array,
    ends: Array,
    link: bool,
    node: bool,
    egresses: Array,
    destinations: Array,
    figures: Array,
) -> None:
    """Follow all packets of hosts to some destinations.

    Args:
        p: what switches hold; not `every_hop`.
        step: with `shared` and `number`, of `tabulate`.
        shared: see there.
        number: see there.
        table: of `minimal_next`.
        ends: bool[S], the switches with hosts.
        link: whether links fail, one at a time.
        node: whether switches do.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        figures: int64[D, FIGURES + 4], written: the paths that hosts may choose, the links of the
            longest, whether any packet is lost, and for links and for nodes that fail the longest
            path of a packet that met the failure, and the most links that its repair adds.
    """
    switches, _, named = p.order.shape
    links_of = p.far.shape[1]
    order, far, far_link = p.order, p.far, p.far_link
    shares, marking_hosts = p.shares, marks(p)
    pushes = (
        marking_hosts or shares.shape[2] <= 2
    )  # else it is quicker to ask where packets come from
    marked_from = named + NAMED
    bits = 1
    while 1 << bits < (marked_from + links_of if marking_hosts else marked_from):
        bits += 1
    mask, cells = (1 << bits) - 1, switches << bits
    spreading = np.zeros(switches, np.bool_)
    marking = np.empty(switches, np.int32)
    leaves = np.zeros((switches, links_of), np.bool_)
    depth = np.full(cells, -1, np.int8)
    found, now = np.empty(cells, np.int32), np.empty(cells, np.int32)
    spare = np.empty(cells, np.int32)
    hops, after = np.empty(switches, np.int8), np.empty(switches, np.int32)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(switches):
            after[s] = table[s, egress[s]]
        minimal_hops(d, after, hops)
        paths, strays, longest, n, m, links = 0, 0, 0, 0, 0, 1
        for s in range(switches):  # packets of hosts, up to the first link
            c = egress[s]
            if ends[s] and s != d:
                paths += number[s, c] if c >= 0 else 0
                strays += c < 0
                if c >= 0 and step[s, c, FROM_HOST, 0] != SEVERAL:
                    depth[s << bits], found[n] = 0, s << bits
                    n += 1
                    e = step[s, c, FROM_HOST, 0]
                    if number[s, c] == 0 and e >= 0:
                        t = e >> LINK_BITS  # as in transit
                        into = (t << bits) + place_of(order, t, egress[t], e & LINK_MASK)
                        if depth[into] < 0:
                            found[n] = into
                            n += 1
                        depth[into] = max(depth[into], 1)
                    strays += e < 0
                if pushes and c >= 0:
                    for i in range(shares.shape[2]):
                        k = shares[s, c, i]
                        if k >= 0:
                            t, b = far[s, k], far_link[s, k]
                            if marking_hosts and i > 0 and spreads(p, egress[t]):
                                into = (t << bits) + marked_from + b
                            else:
                                into = (t << bits) + place_of(order, t, egress[t], b)
                            if depth[into] < 0:
                                depth[into], found[n] = 1, into
                                n += 1
            if not pushes:  # the links that the class names, and one other
                if c >= 0:
                    for i in range(named):
                        b = order[s, c, i]
                        into = (s << bits) + NAMED + i
                        if (
                            b >= 0
                            and depth[into] < 0
                            and host_sends(far, far_link, shared, egress, ends, d, s, b)
                        ):
                            depth[into], found[n] = 1, into
                            n += 1
                for b in range(links_of):
                    if (
                        host_sends(far, far_link, shared, egress, ends, d, s, b)
                        and place_of(order, s, c, b) == FROM_OTHER
                    ):
                        into = (s << bits) + FROM_OTHER
                        if depth[into] < 0:
                            found[n] = into
                            n += 1
                        depth[into] = max(depth[into], 1)
                        break
        later = now
        for i in range(n):
            if depth[found[i]] == 1:
                later[m] = found[i]
                m += 1
        other = spare
        while m and links < MOST_HOPS:
            current, later, other = later, other, later
            several, m, u = m, 0, 0
            links += 1
            for i in range(several):
                s, place = current[i] >> bits, current[i] & mask
                c = egress[s]
                if c < 0:
                    strays += c != DELIVER or s != d
                    longest = max(longest, links - 1)
                    continue
                if place >= marked_from:  # by all links of all its marked packets, once
                    if not spreading[s]:
                        spreading[s], marking[u] = True, s
                        u += 1
                    stuck = True
                    for k in range(links_of):
                        if p.onward[s, place - marked_from, k]:
                            leaves[s, k], stuck = True, False
                    strays += stuck
                    continue
                e = step[s, c, place, 0]
                if e < 0 or s == d:
                    strays += 1
                    continue
                t = e >> LINK_BITS
                into = (t << bits) + place_of(order, t, egress[t], e & LINK_MASK)
                if depth[into] < 0:
                    found[n] = into
                    n += 1
                if depth[into] < links:
                    depth[into], later[m] = links, into
                    m += 1
            for i in range(u):
                s = marking[i]
                spreading[s] = False
                for k in range(links_of):
                    if leaves[s, k]:
                        leaves[s, k] = False
                        t, b = far[s, k], far_link[s, k]
                        into = (t << bits) + place_of(order, t, egress[t], b)
                        if depth[into] < 0:
                            found[n] = into
                            n += 1
                        if depth[into] < links:
                            depth[into], later[m] = links, into
                            m += 1
        strays += m
        suspect = strays > 0
        for i in range(n if (link or node) and not suspect else 0):
            s, place = found[i] >> bits, found[i] & mask
            c = egress[s]
            if c < 0 or place >= marked_from:
                continue
            e = step[s, c, place, 0]
            if e < 0:
                continue
            v = e >> LINK_BITS
            if place >= NAMED and order[s, c, place - NAMED] == far_link[v, e & LINK_MASK]:
                continue
            taken = follow_one(order, step, egress, d, s, place, v, False)
            for kind in range(2):
                if not (node if kind else link) or (kind == 1 and v == d):
                    continue
                if kind == 1 and (taken >= MET or taken <= -MET):
                    taken = follow_one(order, step, egress, d, s, place, v, True)
                if taken >= 0:
                    most = FIGURES + 2 * kind
                    figures[j, most] = max(figures[j, most], depth[found[i]] + taken % MET)
                    figures[j, most + 1] = max(figures[j, most + 1], taken % MET - hops[s])
                else:
                    suspect = True
        figures[j, PATHS], figures[j, LONGEST] = paths, longest
        figures[j, SUSPECT] = suspect
        for i in range(n):
            depth[found[i]] = -1
