"""Packets that meet failures: the elements of their next hop, and their paths without these.

A packet *meets* failures where its next links are down, or where a host's packet has no share that
is up. Up to there it travelled as without failures. So walks under failures (`failure_sets`,
`pairs_of_failures`) take each state without failures, ask `needs` which elements can fail there,
and let `follow` go on from there with these elements down.
"""

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
def needs(p: Program, s: int, ingress: int, c: int, most: int, none: Array, needed: Array) -> int:
    """Write the elements behind the next links that a packet has without failures.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link.
        c: its egress class.
        most: how many elements fail at once. A host's packet with more shares than that needs
            nothing, as one of them is always up.
        none: int64[0], no failed elements.
        needed: int64[2·most], written: for each next link its cable and the switch behind it.

    Returns:
        How many elements are written.
    """
    n = 0
    if ingress == HOST and c >= 0:
        for k in p.shares[s, c]:
            if k >= 0:
                if n == 2 * most:
                    return 0
                needed[n], needed[n + 1] = p.cable[s, k], p.cables + p.far[s, k]
                n += 2
        if n:
            return n
    k = transit(p, s, ingress, c, none)
    if k < 0:
        return 0
    needed[0], needed[1] = p.cable[s, k], p.cables + p.far[s, k]
    return 2


@loop
def meets(p: Program, s: int, ingress: int, c: int, d: int, failed: Array) -> bool:
    """Whether a packet in switch s comes there in spite of these failures, and meets them there.

    Its switch, its destination and its ingress link have to be up. A packet of a host has to find
    no share that is up; that the next link of others is down, the caller knows from `needs`.
    """
    for element in failed:
        if element == p.cables + d or element == p.cables + s:
            return False
    if ingress >= 0 and not is_up(p, s, ingress, failed):
        return False
    if ingress == HOST:  # `needs` named a link of it, so there is a class
        for k in p.shares[s, c]:
            if k >= 0 and is_up(p, s, k, failed):
                return False
    return True


@loop
def follow(
    p: Program,
    egress: Array,
    s: int,
    ingress: int,
    d: int,
    failed: Array,
    each_link: bool,
    depth: Array,
    reached: Array,
) -> int:
    """The links of the longest path of a packet to d, from where it met a failure.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        s: the switch where the packet met the failure.
        ingress: its ingress link there.
        d: the destination.
        failed: int64[n], the failed elements.
        each_link: as in `state_of`.
        depth: int8 by state, -1 for each, and so it is left.
        reached: int32, room for all states.

    Returns:
        The links; DROP or LOOPED if any path ends so.
    """
    if p.every_hop:
        return int(follow_all(p, egress, s, ingress, d, failed, each_link, depth, reached))
    for links in range(MOST_HOPS):
        k = transit(p, s, ingress, egress[s], failed)
        if k < 0:
            return links if k == DELIVER and s == d else DROP
        s, ingress = p.far[s, k], p.far_link[s, k]
    return LOOPED


@loop
def follow_all(
    p: Program,
    egress: Array,
    s: int,
    ingress: int,
    d: int,
    failed: Array,
    each_link: bool,
    depth: Array,
    reached: Array,
) -> int:
    """Follow packets over all their paths, where paths are shared at every hop.

    The arguments and the result are those of `follow`. Up to the first switch with several next
    links they have one path.
    """
    links_of = p.far.shape[1]
    link, tags = np.empty(links_of + 1, np.int64), np.empty(links_of + 1, np.int64)
    for links in range(MOST_HOPS):
        choices = next_links(p, s, ingress, PLAIN, egress[s], failed, link, tags)
        if choices > 1:
            reached[0] = state_of(p, s, ingress, PLAIN, egress[s], each_link)
            depth[reached[0]] = 0
            fate = flood(p, egress, d, failed, each_link, depth, reached, 1)
            for state in reached[: fate.reached]:
                depth[state] = -1
            if fate.endless:
                return LOOPED
            return DROP if fate.lost else links + fate.longest
        k = link[0]
        if k < 0:
            return links if k == DELIVER and s == d else DROP
        s, ingress = p.far[s, k], p.far_link[s, k]
    return LOOPED


@loop
def distinguished(p: Program, egress: Array, depth: Array, reached: Array, failures: int) -> Array:
    """The states that are enough for all sets of so many failures, those after most links first.

    A switch treats packets alike that came in by links which its class does not name. Of these
    links as many are chosen as elements fail. One failure is the next link, so at least one of the
    chosen ingress links is up, and its packets stand for those of all others.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for the destination.
        depth: int8 by state, of `flood`.
        reached: int32[n], the states that occur.
        failures: how many elements fail at once.

    Returns:
        int32[m], states.
    """
    chosen, count = np.empty(len(reached), np.int32), 0
    unnamed = np.zeros(len(p.far), np.int32)  # by switch, the chosen links that no class names
    most = 0
    for state in reached:
        most = max(most, depth[state])
    for links in range(most, -1, -1):  # numba would take longer to translate a sort than all else
        for state in reached:
            if depth[state] != links:
                continue
            s, ingress, tag = packet_in(p, state)
            c = egress[s]
            in_transit = ingress >= 0 and c >= 0 and tag == PLAIN
            if (
                in_transit
                and not contains(p.order[s, c], ingress)
                and not contains(p.bounce[s, c], ingress)
            ):
                unnamed[s] += 1
                if unnamed[s] > failures:
                    continue
            chosen[count] = state
            count += 1
    return chosen[:count]
