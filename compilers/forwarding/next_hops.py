"""Next hops of packets in every state while anything is down, and loads over intermediates."""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import kernel, loop
from compilers.forwarding.rule import HOST, MARKED, PLAIN, Array, Program, gives_up, next_links


@loop
def share_of(p: Program, weight: Array, s: int, c: int, link: int, tag: int) -> float:
    """The weight of a link that hosts' packets of a class may leave by, marked or not."""
    for i in range(p.shares.shape[2]):
        if p.shares[s, c, i] == link and (i >= p.first_marked) == (tag == MARKED):
            return float(weight[s, c, i])
    return 0.0


@kernel("Tuple((i8[::1],i2[::1],b1[::1],f8[::1],i4[:,::1]))(P,i4[:,:,::1],i8[::1])")
def next_hops(p: Program, weight: Array, dead: Array) -> tuple[Array, Array, Array, Array, Array]:
    """The next hops of packets in every state: switch, ingress place, class, counted in this order.

    The ingress places of a switch are its K links, and HOST; where packets are marked then its
    links for marked packets, to destinations of the first side and to those of the second.

    Args:
        p: what switches hold.
        weight: int32[S, C, 1 + A], of `Program.shares`.
        dead: int64[n], the elements that are down.

    Returns:
        begins, int64[states + 1], where the next hops of each state begin in these: link, int16[m],
        or DROP; marked, bool[m], whether a packet leaves marked; part, float64[m], of the packets.
        And released, int32[S, C]: the intermediate whose packets end their first leg here, as the
        link to it is down; -1: none.
    """
    switches, links = p.far.shape
    classes, places = p.order.shape[1], links + 1
    ends = np.zeros(2, np.int64)
    if len(p.onward):
        places += 2 * links
        for s in range(switches):
            if p.side[s] == 1:
                ends[1] = s
            elif p.side[s] == 0:
                ends[0] = s
    begins = np.zeros(switches * places * classes + 1, np.int64)
    link, marked = np.empty(len(begins), np.int16), np.empty(len(begins), np.bool_)
    part = np.empty(len(begins), np.float64)
    released = np.full((switches, classes), -1, np.int32)
    several, tags = np.empty(links + 1, np.int64), np.empty(links + 1, np.int64)
    n, state = 0, 0
    for s in range(switches):
        for place in range(places):
            came, tag, d = place, PLAIN, 0
            if place == links:
                came = HOST
            elif place > links:
                came, tag, d = (place - 1) % links, MARKED, ends[(place - 1) // links - 1]
            for c in range(classes):
                count = 0
                if came == HOST or p.far[s, came] >= 0:
                    count = next_links(p, s, came, tag, c, d, dead, several, tags)
                if n + count > len(link):
                    link = np.concatenate((link, np.empty(len(link) + count, np.int16)))
                    marked = np.concatenate((marked, np.empty(len(marked) + count, np.bool_)))
                    part = np.concatenate((part, np.empty(len(part) + count, np.float64)))
                total = 0.0
                for i in range(count):
                    link[n + i], marked[n + i], part[n + i] = several[i], tags[i] == MARKED, 1.0
                    if came == HOST and not p.every_hop:
                        part[n + i] = share_of(p, weight, s, c, several[i], tags[i])
                    total += part[n + i]
                for i in range(count):
                    part[n + i] = part[n + i] / total if total else 1.0 / count
                n += count
                state += 1
                begins[state] = n
                via = p.far[s, p.order[s, c, 0]] if p.order[s, c, 0] >= 0 else -1
                if via >= 0 and gives_up(p, s, via, c, dead):
                    released[s, c] = via
    return begins, link[:n], marked[:n], part[:n], released


@kernel("void(i4[:,:,::1],i4[:,::1],i4[:,:,::1],i8[:,::1],i8[::1],i8[::1])")
def bounds_over(
    first: Array, ends: Array, then: Array, packets: Array, least: Array, most: Array
) -> None:
    """Add the fewest and the most packets that each arc carries, over whatever intermediates.

    Args:
        first: int32[S, V, H], the arcs of the legs from each switch to each intermediate, -1 beyond
            the last.
        ends: int32[S, V], where these end; -1: the packet is lost.
        then: int32[S, S, H'], the arcs of the second legs.
        packets: int64[S, S], from and to each switch.
        least: int64[arcs], added to.
        most: int64[arcs], added to.
    """
    switches, vias, _ = first.shape
    longest = first.shape[2] + then.shape[2]
    met, crossings = np.zeros(len(most), np.int64), np.zeros(len(most), np.int64)
    fewest, largest = np.zeros(len(most), np.int64), np.zeros(len(most), np.int64)
    touched, path = np.empty(len(most), np.int64), np.empty(longest, np.int64)
    for s in range(switches):
        for d in range(switches):
            if packets[s, d] == 0:
                continue
            arcs = 0
            for v in range(vias):
                n = 0
                for arc in first[s, v]:
                    if arc >= 0:
                        path[n] = arc
                        n += 1
                if ends[s, v] >= 0:
                    for arc in then[ends[s, v], d]:
                        if arc >= 0:
                            path[n] = arc
                            n += 1
                for i in range(n):
                    crossings[path[i]] += 1
                for i in range(n):
                    arc, times = path[i], crossings[path[i]]
                    if times:
                        crossings[arc] = 0
                        if met[arc] == 0:
                            touched[arcs], fewest[arc], largest[arc] = arc, times, times
                            arcs += 1
                        met[arc] += 1
                        fewest[arc] = min(fewest[arc], times)
                        largest[arc] = max(largest[arc], times)
            for i in range(arcs):
                arc = touched[i]
                most[arc] += packets[s, d] * largest[arc]
                if met[arc] == vias:
                    least[arc] += packets[s, d] * fewest[arc]
                met[arc] = 0
