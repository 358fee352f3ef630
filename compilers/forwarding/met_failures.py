"""A packet that meets failures: what it needs for its next hop, and where it gets without that."""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.packet_states import flood, packet_in, state_of
from compilers.forwarding.rule import (
    DELIVER,
    DROP,
    HOST,
    PLAIN,
    Array,
    Program,
    contains,
    is_up,
    next_links,
    transit,
)
from compilers.forwarding.single_failures import LOOPED
from compilers.tables.fib import MOST_HOPS


@loop
def needs(p: Program, s: int, came: int, c: int, most: int, none: Array, needed: Array) -> int:
    """Write the elements that a packet needs for its next hop, failures aside; how many they are.

    Of hosts' packets those of all their links, none of them if these are more than `most`: so many
    failures leave one that is up. needed: int64[2·most].
    """
    n = 0
    if came == HOST and c >= 0:
        for k in p.shares[s, c]:
            if k >= 0:
                if n == 2 * most:
                    return 0
                needed[n], needed[n + 1] = p.cable[s, k], p.cables + p.far[s, k]
                n += 2
        if n:
            return n
    k = transit(p, s, came, c, none)
    if k < 0:
        return 0
    needed[0], needed[1] = p.cable[s, k], p.cables + p.far[s, k]
    return 2


@loop
def meets(p: Program, s: int, came: int, c: int, d: int, dead: Array) -> bool:
    """Whether a packet meets these failures here: its switch, its destination and its ingress link
    are up, and none of a host's links is.
    """
    for element in dead:
        if element == p.cables + d or element == p.cables + s:
            return False
    if came >= 0 and not is_up(p, s, came, dead):
        return False
    if came == HOST:  # which needs a link, so it has a class
        for k in p.shares[s, c]:
            if k >= 0 and is_up(p, s, k, dead):
                return False
    return True


@loop
def follow(
    p: Program,
    egress: Array,
    s: int,
    came: int,
    d: int,
    dead: Array,
    every: bool,
    depth: Array,
    found: Array,
) -> int:
    """The most links that a packet takes to d from where it met a failure, so in transit or with
    no link of a host's up; DROP or LOOPED if any path ends so.
    """
    if not p.every_hop:
        for links in range(MOST_HOPS):
            k = transit(p, s, came, egress[s], dead)
            if k < 0:
                return links if k == DELIVER and s == d else DROP
            s, came = p.far[s, k], p.far_link[s, k]
        return LOOPED
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    for links in range(MOST_HOPS):
        several = next_links(p, s, came, PLAIN, egress[s], dead, link, tags)
        if several > 1:
            found[0] = state_of(p, s, came, PLAIN, egress[s], every)
            depth[found[0]] = 0
            n, strays, looped, most = flood(p, egress, d, dead, every, depth, found, 1)
            for state in found[:n]:
                depth[state] = -1
            if looped:
                return LOOPED
            return DROP if strays else links + most
        k = link[0]
        if k < 0:
            return links if k == DELIVER and s == d else DROP
        s, came = p.far[s, k], p.far_link[s, k]
    return LOOPED


@loop
def distinguished(p: Program, egress: Array, depth: Array, found: Array, failures: int) -> Array:
    """The states that so many failures can distinguish, and of the others those after most links.

    A switch distinguishes the ingress links that its class names. Of all others as many are kept as
    elements fail: the next link is down, so one of them is up, and what came by it does what those
    of all others do.
    """
    kept, count = np.empty(len(found), np.int32), 0
    others = np.zeros(len(p.far), np.int32)
    order = np.argsort(-depth[found])
    for i in order:
        s, came, tag = packet_in(p, found[i])
        c = egress[s]
        transits = came >= 0 and c >= 0 and tag == PLAIN
        if transits and not contains(p.order[s, c], came) and not contains(p.bounce[s, c], came):
            others[s] += 1
            if others[s] > failures:
                continue
        kept[count] = found[i]
        count += 1
    return kept[:count]
